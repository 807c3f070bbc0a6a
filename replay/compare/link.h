// The modules of one run as one graph: which result of one feeds which parameter of another. A dump does not say it;
// shapes, the order of leaves, names, aliasing, layouts, shardings and recorded values are the evidence.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct GraphDef;

struct LinkModule {
  std::string label;
  std::unique_ptr<Module> module;  // all of one universe
  std::vector<LitId> arguments;    // of a snapshot, where there is one
  LitId result;
};

struct LinkLeaf {
  ShapeId shape;
  Dims index;                     // inside the parameter or the result
  size_t parameter = 0;           // its number; of results 0
  std::string name;               // metadata's op_name, or where a result goes; empty where nothing tells
  std::vector<std::string> path;  // the name's parts: state.params['w'] → state, params, w
  std::string sharding;
  std::string bytes;  // recorded value; empty: none
};

struct LinkEdge {
  size_t from = 0, to = 0;           // modules
  size_t result = 0, parameter = 0;  // leaves of their result and parameters
  double confidence = 0;             // 1: a snapshot or a graph proves it
  bool ambiguous = false;            // another pair fits about as well
  bool loop = false;                 // of the module to itself: from one step to the next
  std::vector<std::string> evidence;
};

struct Links {
  struct Leaves {
    std::vector<LinkLeaf> parameters, results;
    std::vector<std::string> roles;  // of parameters: state, weights, linked, input
  };
  std::vector<Leaves> leaves;   // by module
  std::vector<LinkEdge> edges;  // by `to`, parameter, then confidence
  std::vector<std::string> notes;
};

// `graph` may be null; with it, edges that it denies are gone, and those that it proves have confidence 1.
Links link_modules(const std::vector<LinkModule>& modules, const GraphDef* graph = nullptr);

// One module that runs all in their order: linked parameters get the results that feed them, the others are its
// parameters, results that feed nothing are its results. `edges` go from earlier modules to later ones, one a
// parameter. Throws Failure(kUsage) otherwise.
std::unique_ptr<Module> stitched(const std::vector<LinkModule>& modules, const Links& links,
                                 const std::vector<LinkEdge>& edges, const std::string& name);

// `jit_init o3` and `jit_train p5` as texts name them.
std::string leaf_text(const LinkLeaf& leaf, const Universe& u);
std::string link_dot(const std::vector<LinkModule>& modules, const Links& links, double least);

}  // namespace hlo
