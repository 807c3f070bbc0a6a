// How long modules take to fold and to lay out, and what comes of it: layout_bench [--all] [--svg=FOLDER] FILE.hlo...
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "parser/parser.h"
#include "viewer/layout/folding.h"
#include "viewer/layout/layout.h"
#include "viewer/layout/svg.h"

namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
}  // namespace

int main(int argc, char** argv) {
  bool all = false;
  std::filesystem::path folder;
  std::printf("%8s %7s %7s %8s %8s %8s %8s %12s  file\n", "ops", "groups", "boxes", "edges", "parse", "fold", "layout",
              "size");
  for (int k = 1; k < argc; ++k) {
    std::string arg = argv[k];
    if (arg == "--all") {
      all = true;
      continue;
    }
    if (arg.starts_with("--svg=")) {
      folder = arg.substr(6);
      continue;
    }
    try {
      std::ifstream in(arg, std::ios::binary);
      std::string text((std::istreambuf_iterator<char>(in)), {});
      double t0 = now();
      auto m = hlo::parse_module(text, std::make_shared<hlo::Universe>());
      double t1 = now();
      hlo::Folding folding(*m);
      double t2 = now();
      hlo::LayoutOptions options;
      if (all) options.open = hlo::LayoutOptions::Open::kAll;
      hlo::Drawing d = hlo::lay_out(folding, options);
      double t3 = now();
      std::printf("%8u %7zu %7zu %8zu %8.3f %8.3f %8.3f %6.0fx%-6.0f %s\n", d.total, folding.groups().size(),
                  d.boxes.size(), d.edges.size(), t1 - t0, t2 - t1, t3 - t2, static_cast<double>(d.width),
                  static_cast<double>(d.height), std::filesystem::path(arg).filename().c_str());
      if (!folder.empty())
        std::ofstream(folder / (std::filesystem::path(arg).stem().string() + ".svg")) << hlo::drawing_svg(*m, d);
    } catch (const std::exception& e) {
      std::printf("%s: %s\n", arg.c_str(), e.what());
    }
  }
}
