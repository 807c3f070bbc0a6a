// Graphviz, found at run time: texts of drawings need none, and a machine without it can do everything else.
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "dump/graph.h"
#include "ir/base/check.h"

namespace hlo {
namespace {

// The part of libgvc's and libcgraph's interface that draws a DOT text; alike from version 2.40 to 13 but for the
// length's type, which was unsigned before 13: a size_t that starts as zero takes both.
struct GraphvizLibrary {
  void* (*context)() = nullptr;                                         // gvContext
  void* (*read)(const char*) = nullptr;                                 // agmemread: a graph
  int (*close)(void*) = nullptr;                                        // agclose
  int (*layout)(void*, void*, const char*) = nullptr;                   // gvLayout: context, graph, engine
  int (*free_layout)(void*, void*) = nullptr;                           // gvFreeLayout
  int (*render)(void*, void*, const char*, char**, size_t*) = nullptr;  // gvRenderData
  void (*free_data)(char*) = nullptr;                                   // gvFreeRenderData

  bool load() {
    for (const char* name : {"libgvc.so.6", "libgvc.so.7", "libgvc.so"}) {
      void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (!library) continue;
      auto find = [&](auto& function, const char* symbol) {  // libcgraph's, too: what a library needs is asked with it
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
        return function != nullptr;
      };
      return find(context, "gvContext") && find(read, "agmemread") && find(close, "agclose") &&
             find(layout, "gvLayout") && find(free_layout, "gvFreeLayout") && find(render, "gvRenderData") &&
             find(free_data, "gvFreeRenderData");
    }
    return false;
  }
};

const GraphvizLibrary& graphviz() {
  static GraphvizLibrary library;
  static const bool kFound = library.load();
  if (!kFound) fail(FailureKind::kUnsupported, "svg, png and drawn pages need Graphviz: apt-get install graphviz");
  return library;
}

}  // namespace

void require_graphviz() { graphviz(); }

std::string render_dot(const std::string& dot, const std::string& format) {
  static std::mutex one;  // Graphviz keeps global state
  std::lock_guard<std::mutex> lock(one);
  const GraphvizLibrary& g = graphviz();
  static void* const kContext = g.context();
  void* graph = g.read(dot.c_str());
  if (!graph) fail(FailureKind::kUnsupported, "Graphviz cannot read the drawing");
  char* data = nullptr;
  size_t size = 0;
  bool failed = g.layout(kContext, graph, "dot") != 0;
  if (!failed) {
    failed = g.render(kContext, graph, format.c_str(), &data, &size) != 0;
    g.free_layout(kContext, graph);
  }
  std::string out = failed || !data ? std::string() : std::string(data, size);
  if (data) g.free_data(data);
  g.close(graph);
  if (failed) fail(FailureKind::kUnsupported, "Graphviz cannot draw that as {}", format);
  return out;
}

}  // namespace hlo
