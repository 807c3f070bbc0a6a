// A module's drawing: DOT text of our own, SVG and PNG by Graphviz where the machine has it. Conventions are those of
// XLA's own graphs: colours by class, fusions as clusters, small constants inside their users.
#pragma once
#include <memory>
#include <string>
#include <unordered_set>

#include "ir/module.h"

namespace hlo {

struct GraphOptions {
  std::string title;
  // Marked with a thick border: what is new, and what is there in another form, since the stage before.
  std::unordered_set<StrId> added, modified;
  size_t neighbourhood = 300;  // nodes of it
  size_t most_nodes = 1500;    // above it, the neighbourhood of what changed is drawn, and the title says so
};

class Graph {
 public:
  Graph(const Module& m, const GraphOptions& options);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string dot() const;
  // The text as render_dot lays it out. format: svg or png.
  std::string render(const std::string& format) const;
  size_t drawn() const { return drawn_; }
  bool partial() const { return partial_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  size_t drawn_ = 0;
  bool partial_ = false;
};

// Throws Failure(kUnsupported), with what to install, where there is no Graphviz: before work whose end needs it.
void require_graphviz();

// Any DOT text, laid out by dot. format: svg or png. Throws Failure(kUnsupported) where there is no Graphviz, or where
// it cannot read the text.
std::string render_dot(const std::string& dot, const std::string& format);

}  // namespace hlo
