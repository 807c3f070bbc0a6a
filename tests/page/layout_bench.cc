// How long modules take to fold and to lay out, and what comes of it: layout_bench [--all] [--svg=FOLDER] FILE.hlo...
// With --steps the files are stages of one module, in their order: how many boxes stay where they were, by name.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "parser/parser.h"
#include "viewer/layout/folding.h"
#include "viewer/layout/layout.h"
#include "viewer/layout/svg.h"

namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Keys of one reading of a module as those of another: ids by the names behind them.
std::string translated(const std::string& key, const hlo::Module& from,
                       const std::unordered_map<std::string, uint32_t>& insts,
                       const std::unordered_map<std::string, uint32_t>& comps) {
  std::string out;
  for (size_t k = 0; k < key.size() && key[k] != '/';) {
    bool inst = key[k] == 'i', comp = key[k] == 'c' || key[k] == 's' || key[k] == 'q';
    out += key[k++];
    std::string digits;
    while (k < key.size() && key[k] >= '0' && key[k] <= '9') digits += key[k++];
    if (digits.empty()) continue;
    auto id = static_cast<uint32_t>(std::stoul(digits));
    if (inst && id < from.inst_slots()) {
      auto found = insts.find(std::string(from.inst_name(hlo::InstId(id))));
      out += found == insts.end() ? "-" : std::to_string(found->second);
    } else if (comp && id < from.comp_slots()) {
      auto found = comps.find(std::string(from.comp_name(hlo::CompId(id))));
      out += found == comps.end() ? "-" : std::to_string(found->second);
    }
  }
  size_t slash = key.find('/');
  return slash == std::string::npos ? out : out + key.substr(slash);
}

struct Steps {
  std::unique_ptr<hlo::Module> module;
  hlo::Drawing before;
  size_t kept = 0, stay = 0, all = 0;

  void next(std::unique_ptr<hlo::Module> m, bool open_all) {
    std::unordered_map<std::string, uint32_t> insts, comps;
    for (size_t k = 0; k < m->inst_slots(); ++k)
      if (m->alive(hlo::InstId(k))) insts.emplace(m->inst_name(hlo::InstId(k)), static_cast<uint32_t>(k));
    for (hlo::CompId c : m->computations()) comps.emplace(m->comp_name(c), c.value);
    hlo::LayoutOptions options;
    if (open_all) options.open = hlo::LayoutOptions::Open::kAll;
    if (module) {
      for (hlo::DrawnBox& b : before.boxes) {
        b.key = translated(b.key, *module, insts, comps);
        if (b.kind == hlo::BoxKind::kOpen) options.keys.insert(b.key);
      }
      if (!open_all) options.open = hlo::LayoutOptions::Open::kThese;
      options.before = &before;
    }
    hlo::Drawing now = hlo::lay_out(*m, options);
    if (module) count(now);
    before = std::move(now);
    module = std::move(m);
  }
  void count(const hlo::Drawing& now) {
    std::unordered_map<std::string, uint32_t> old;
    for (uint32_t k = 0; k < before.boxes.size(); ++k) old.emplace(before.boxes[k].key, k);
    for (const hlo::DrawnBox& b : now.boxes) {
      if (b.parent == hlo::DrawnBox::kNoBox) continue;
      ++all;
      auto was = old.find(b.key);
      if (was == old.end()) continue;
      const hlo::DrawnBox &o = before.boxes[was->second], &p = now.boxes[b.parent];
      if (o.parent == hlo::DrawnBox::kNoBox || before.boxes[o.parent].key != p.key) continue;
      const hlo::DrawnBox& q = before.boxes[o.parent];
      ++kept;
      stay += std::abs((b.x - p.x) - (o.x - q.x)) < b.w && std::abs((b.y - p.y) - (o.y - q.y)) < b.h;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  bool all = false, steps = false;
  Steps stages;
  std::filesystem::path folder;
  std::printf("%8s %7s %7s %8s %8s %8s %8s %12s  file\n", "ops", "groups", "boxes", "edges", "parse", "fold", "layout",
              "size");
  for (int k = 1; k < argc; ++k) {
    std::string arg = argv[k];
    if (arg == "--all") {
      all = true;
      continue;
    }
    if (arg == "--steps") {
      steps = true;
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
      if (steps) {
        stages.next(std::move(m), all);
        continue;
      }
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
  if (steps)
    std::printf("%zu boxes of all steps, %zu were there before under the same group, %zu of them stayed (%.1f %%)\n",
                stages.all, stages.kept, stages.stay,
                100.0 * static_cast<double>(stages.stay) / static_cast<double>(std::max<size_t>(1, stages.kept)));
}
