// The engine's exports, while the engine itself is on its way: a text in, a text out.
#include <cstdlib>
#include <new>
#include <string>

#include "ir/base/check.h"
#include "ir/print.h"
#include "ir/universe.h"
#include "parser/parser.h"
#include "passes/pipelines.h"

namespace {
std::string g_answer;
}

extern "C" {
__attribute__((export_name("hlo_allocate"))) void* hlo_allocate(size_t n) { return std::malloc(n); }
__attribute__((export_name("hlo_free"))) void hlo_free(void* p) { std::free(p); }
__attribute__((export_name("hlo_answer"))) const char* hlo_answer() { return g_answer.data(); }
__attribute__((export_name("hlo_answer_size"))) size_t hlo_answer_size() { return g_answer.size(); }
__attribute__((export_name("hlo_text"))) int hlo_text(const char* text, size_t size, const char* pipeline,
                                                      size_t pipeline_size) {
  using namespace hlo;
  try {
    g_answer.clear();
    auto m = parse_module({text, size}, std::make_shared<Universe>());
    if (pipeline_size) {
      const auto* steps = find_pipeline({pipeline, pipeline_size});
      PipelineOptions options;
      std::vector<Step> one;
      if (!steps) {
        one = {Step{"p", {}, {Step{std::string(pipeline, pipeline_size), {}, {}}}}};
        steps = &one;
      }
      options.observe = [&](const Module& now, const PassEvent& e) {
        if (e.kind != PassEvent::kPipelineStart)
          g_answer += fmt::format("// {} {} {}\n", e.pipeline, e.pass, e.changed);
        if (e.changed) g_answer += print_module(now);
      };
      run_pipeline(*m, *steps, options);
    } else {
      g_answer = print_module(*m);
    }
    return 0;
  } catch (const std::exception& e) {
    g_answer = e.what();
    return 1;
  }
}
}
