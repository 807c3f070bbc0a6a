// How well our cost model of GPU fusions agrees with XLA's, step by step:
//   priority_fusion_bench [--show=N] [--within=0.01] [--triton] [--explain=NAME] MODULE.priority_fusion_dump.txt…
// The dump holds the module before fusion, each fusion in order and every decision in between. Our queue is led along
// XLA's fusions, whatever it would choose itself, and each of its decisions is compared with XLA's about the same
// producer: times within 1 %, refusals by their reasons. Rows about Triton's fusions are counted apart.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/passes/fusion_dump.h"

int main(int argc, char** argv) {
  size_t show = 2;
  std::string explain;
  double within = 0.01;
  bool show_triton = false;
  for (int n = 1; n < argc; ++n) {
    if (std::strncmp(argv[n], "--show=", 7) == 0) {
      show = static_cast<size_t>(std::atoi(argv[n] + 7));
      continue;
    }
    if (std::strcmp(argv[n], "--triton") == 0) {
      show_triton = true;
      continue;
    }
    if (std::strncmp(argv[n], "--within=", 9) == 0) {
      within = std::atof(argv[n] + 9);
      continue;
    }
    if (std::strncmp(argv[n], "--explain=", 10) == 0) {
      explain = argv[n] + 10;
      continue;
    }
    try {
      hlo::FusionDump dump = hlo::read_fusion_dump(argv[n]);
      hlo::FusionLeader leader(&dump, show, explain, within, show_triton);
      std::string_view name = argv[n];
      name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
      leader.run();
      leader.print(std::string(name).c_str());
    } catch (const hlo::Failure& f) {
      std::printf("%s: %s\n", argv[n], f.what());
    }
    std::fflush(stdout);
  }
  return 0;
}
