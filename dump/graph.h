// A module's drawing through Graphviz: DOT text by libcgraph, SVG and PNG by libgvc. Conventions are those of XLA's own
// graphs: colours by class, fusions as clusters, small constants inside their users.
#pragma once
#include <string>
#include <unordered_set>

#include "ir/module.h"

namespace hlo {

struct GraphOptions {
  std::string title;
  // Marked with a thick border: what is new, and what is there in another form, since the stage before.
  std::unordered_set<StrId> added, modified;
  size_t most_nodes = 1500;  // above it, the neighbourhood of what changed is drawn, and the title says so
};

class Graph {
 public:
  Graph(const Module& m, const GraphOptions& options);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string dot() const;
  // format: svg or png. Lays the graph out on the first call.
  std::string render(const std::string& format);
  size_t drawn() const { return drawn_; }
  bool partial() const { return partial_; }

 private:
  struct Impl;
  Impl* impl_;
  size_t drawn_ = 0;
  bool partial_ = false;
};

// Any DOT text, laid out by dot. format: svg or png. Throws Failure(kUnsupported) where Graphviz cannot read it.
std::string render_dot(const std::string& dot, const std::string& format);

}  // namespace hlo
