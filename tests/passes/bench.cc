// Timings: parse, print and replay of real modules, and the recorder on a generated module of a million instructions.
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <filesystem>
#include <random>

#include "ir/print/print.h"
#include "ir/snapshot.h"
#include "parser/parser.h"
#include "passes/pipelines/pipelines.h"
#include "replay/os/files.h"
#include "replay/record/recording/store.h"

namespace hlo {
namespace {

double resident_mb() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// A chain of elementwise operations with broadcasts and metadata, about 138 bytes a line as in real modules.
std::string generated(int n) {
  std::string out =
      "HloModule generated\n\nENTRY %main (p0: f32[128,256], p1: f32[128,256]) -> f32[128,256] {\n  %p0 = "
      "f32[128,256]{1,0} parameter(0)\n  %p1 = f32[128,256]{1,0} parameter(1)\n";
  const char* ops[] = {"add", "multiply", "subtract", "maximum", "divide"};
  std::string a = "%p0", b = "%p1";
  for (int i = 0; i < n; ++i) {
    const char* op = ops[i % 5];
    std::string name = fmt::format("%{}.{}", op, i);
    out += fmt::format(
        "  {}{} = f32[128,256]{{1,0}} {}({}, {}), metadata={{op_name=\"jit(main)/layer_{}/{}\" "
        "source_file=\"model.py\" source_line={}}}\n",
        i + 1 == n ? "ROOT " : "", name, op, a, b, i % 4096, op, i % 997);
    b = a;
    a = name;
  }
  return out + "}\n";
}

void parse_text(benchmark::State& state, const std::string& text) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_module(text, std::make_shared<Universe>()));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(text.size()));
}
void print_text(benchmark::State& state, const std::string& text) {
  auto m = parse_module(text, std::make_shared<Universe>());
  size_t size = 0;
  for (auto _ : state) size = print_module(*m).size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(size));
}
void replay_text(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    auto m = parse_module(text, std::make_shared<Universe>());
    run_pipeline(*m, *find_pipeline("xla-2019"), {});
  }
}

// 100 stages, each changing 1 % of the instructions: the pass, its recording, the neighbour diff, all stages kept.
void stages(benchmark::State& state) {
  for (auto _ : state) {
    // Only the stages are counted: the text is gone by then.
    auto m = parse_module(generated(static_cast<int>(state.range(0))), std::make_shared<Universe>());
    std::vector<InstId> order = m->live_order(m->entry());
    Recorder recorder(m->universe());
    std::vector<Snapshot> kept{recorder.freeze(*m)};
    std::mt19937 random(1);
    double freeze = 0, diff = 0;
    for (int stage = 0; stage < 100; ++stage) {
      auto t0 = std::chrono::steady_clock::now();
      for (size_t k = 0; k < order.size() / 100; ++k) {
        InstId i = order[2 + random() % (order.size() - 2)];
        InstId a = m->operand(i, 0), b = m->operand(i, 1);
        m->set_operand(i, 0, b);
        m->set_operand(i, 1, a);
      }
      kept.push_back(recorder.freeze(*m));
      auto t1 = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(diff_stages(kept[kept.size() - 2], kept.back()));
      auto t2 = std::chrono::steady_clock::now();
      freeze = std::max(freeze, std::chrono::duration<double>(t1 - t0).count()),
      diff = std::max(diff, std::chrono::duration<double>(t2 - t1).count());
    }
    state.counters["worst_pass_and_freeze_ms"] = freeze * 1e3;
    state.counters["worst_diff_ms"] = diff * 1e3;
    state.counters["resident_mb"] = resident_mb();
  }
}

// A recording of 117 stages, each changing 1 %: written, opened, and one stage after the other thawed by its number.
void store_117(benchmark::State& state) {
  auto m = parse_module(generated(static_cast<int>(state.range(0))), std::make_shared<Universe>());
  std::vector<InstId> order = m->live_order(m->entry());
  Lineage lineage(m->universe());
  Recording recording;
  std::mt19937 random(1);
  for (int stage = 0; stage < 117; ++stage) {
    for (size_t k = 0; stage > 0 && k < order.size() / 100; ++k) {
      InstId i = order[2 + random() % (order.size() - 2)];
      InstId a = m->operand(i, 0), b = m->operand(i, 1);
      m->set_operand(i, 0, b);
      m->set_operand(i, 1, a);
    }
    StageRow row;
    row.stage = static_cast<int>(lineage.add(*m));
    recording.rows.push_back(row);
  }
  auto ms = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count() * 1e3;
  };
  for (auto _ : state) {
    auto t0 = std::chrono::steady_clock::now();
    std::string bytes = store_bytes(recording, lineage);
    state.counters["write_ms"] = ms(t0);
    state.counters["mb"] = static_cast<double>(bytes.size()) / 1e6;
    auto t1 = std::chrono::steady_clock::now();
    StoredRecording stored = read_store(bytes, "store");
    state.counters["open_ms"] = ms(t1);
    double worst = 0, sum = 0;
    for (size_t k = 0; k < stored.lineage->size(); ++k) {
      auto t2 = std::chrono::steady_clock::now();
      auto stage = stored.lineage->module(k);
      benchmark::DoNotOptimize(stage->entry());
      double took = ms(t2);
      worst = std::max(worst, took), sum += took;
    }
    state.counters["worst_stage_ms"] = worst, state.counters["mean_stage_ms"] = sum / 117;
  }
}

}  // namespace
}  // namespace hlo

int main(int argc, char** argv) {
  using namespace hlo;
  std::vector<std::string> files = {"mobilenet_v1.hlo", "linear_regression.hlo", "linear_regression_loop.hlo",
                                    "mnist_softmax.hlo"};
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::string& f : files) texts.push_back({f, read_file(std::string(HLO_TESTDATA) + "/" + f)});
  // Larger modules, where the folder that HLO_CORPUS names has them.
  if (const char* corpus = std::getenv("HLO_CORPUS"))
    for (const char* f :
         {"rocm__resnet50__infer__1gpu__predict_step_m1589.hlo.txt",
          "rocm__llama3_8b__infer__1gpu__prefill_jit_m0087.hlo.txt", "xla__cpubench__gemma2_2b_keras_jax.hlo.txt"})
      if (std::filesystem::exists(std::string(corpus) + "/" + f))
        texts.push_back({f, read_file(std::string(corpus) + "/" + f)});
  texts.push_back({"generated_100k", generated(100'000)});
  texts.push_back({"generated_1M", generated(1'000'000)});
  for (const auto& [name, text] : texts) {
    benchmark::RegisterBenchmark(("parse/" + name).c_str(), [&text = text](benchmark::State& s) {
      parse_text(s, text);
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("print/" + name).c_str(), [&text = text](benchmark::State& s) {
      print_text(s, text);
    })->Unit(benchmark::kMillisecond);
    if (name != "generated_1M")
      benchmark::RegisterBenchmark(("replay/" + name).c_str(), [&text = text](benchmark::State& s) {
        replay_text(s, text);
      })->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("stages_100", stages)
      ->Arg(100'000)
      ->Arg(1'000'000)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  benchmark::RegisterBenchmark("store_117", store_117)->Arg(14'000)->Unit(benchmark::kMillisecond)->Iterations(3);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
