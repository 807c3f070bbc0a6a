// A TensorFlow GraphDef in text form, read as far as it goes: nodes, their inputs, and scalar attributes.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace hlo {

struct GraphDefNode {
  std::string name, op, device;
  std::vector<std::string> inputs;           // `node`, `node:2`, `^node`
  std::map<std::string, std::string> attrs;  // key → scalar value or function name; of lists the number of entries
};

struct GraphDef {
  std::vector<GraphDefNode> nodes;
  std::vector<std::string> problems;  // what was passed over, with lines
  const GraphDefNode* find(const std::string& name) const;
};

// `file` names the text in messages. Throws Failure(kSyntax) where there is no node at all.
GraphDef parse_graphdef(const std::string& text, const std::string& file);

// Which input of which cluster takes which output of which other, through Identity and the like.
struct ClusterEdge {
  std::string from, to;
  int64_t output = -1;  // -1: the graph is from before the clusters became calls
  int64_t input = -1;   // among the arguments that are no compile-time constants
  std::string tensor;
};
// The cluster that a node is (a call of it) or stands in; empty for none.
std::string cluster_of(const GraphDefNode& node);
std::vector<ClusterEdge> cluster_edges(const GraphDef& graph);

std::string graphdef_dot(const GraphDef& graph);

}  // namespace hlo
