// How often the matcher (replay/record/match/match.h) is right about dumps in which the truth is known otherwise:
//   ancestors_bench [--metadata] [--wrong=N] [--steps] FOLDER…
// --steps: the stages that lose answers against the one before, those that lose the most first.
// Asked is, for every instruction of every stage, which one of the stage before and which one of the first stage it
// comes from. Truth is metadata, which the matcher does not see (but with --metadata): op_name and source line that one
// instruction alone has there, or one alone of that opcode. An answer is right if the true one is among those named.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "parser/parser.h"
#include "replay/os/confined_path.h"
#include "replay/record/match/match.h"
#include "replay/record/match/match_impl.h"
#include "replay/record/recording/recording.h"

namespace hlo {
namespace {

bool moves(Opcode op) {
  return op == Opcode::Copy || op == Opcode::Bitcast || op == Opcode::Convert || op == Opcode::Transpose ||
         op == Opcode::Reshape || op == Opcode::Pad || op == Opcode::Slice || op == Opcode::Broadcast;
}

// The instruction whose opcode counts: a fusion is what its root is.
Opcode kind_of(const Module& m, InstId i) {
  for (int k = 0; k < 10 && m.op(i) == Opcode::Fusion; ++k) {
    i = m.comp(m.called(i)[0]).root;
    while (moves(m.op(i)) && m.op(m.operand(i, 0)) != Opcode::Parameter) i = m.operand(i, 0);
  }
  if (m.op(i) == Opcode::CustomCall) {
    std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
    if (target.find("gemm") != std::string_view::npos || target.find("matmul") != std::string_view::npos)
      return Opcode::Dot;
    if (target.find("conv") != std::string_view::npos) return Opcode::Convolution;
  }
  return m.op(i);
}

struct Score {
  size_t unclear = 0, asked = 0, answered = 0, right = 0, named = 0;
  void print(const char* what) const {
    std::printf("  %-12s asked %7zu  answered %6.2f %%  right %6.2f %%  (%.2f named each; %zu unclear)\n", what, asked,
                asked ? 100.0 * static_cast<double>(answered) / static_cast<double>(asked) : 0,
                answered ? 100.0 * static_cast<double>(right) / static_cast<double>(answered) : 0,
                answered ? static_cast<double>(named) / static_cast<double>(answered) : 0, unclear);
  }
};

using Sets = std::vector<std::vector<InstId>>;

using Keys = std::vector<uint64_t>;
Keys keys_of(const Module& m) {
  Keys out(m.inst_slots(), 0);
  std::vector<uint64_t> frames = frame_hashes(m);
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (m.op(i) == Opcode::Parameter || m.op(i) == Opcode::Constant || m.op(i) == Opcode::Tuple ||
          m.op(i) == Opcode::GetTupleElement)
        continue;
      const Metadata& d = m.u()[m[i].meta];
      std::string_view name = m.u().text(StrId(d.op_name));
      // Names that passes give, or that say no more than the opcode.
      if (name.find('/') == std::string_view::npos) continue;
      auto frame = static_cast<size_t>(d.stack_frame_id);
      uint64_t h = hash_combine(hash_combine(d.op_name, d.source_file), static_cast<uint64_t>(d.source_line));
      out[i.value] = hash_combine(h, frame < frames.size() ? frames[frame] : 0) | 1;
    }
  return out;
}

class Truth {
 public:
  Truth(const Module& m, const Keys& keys) : m_(m) {
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (uint64_t k = keys[i.value]) members_[k].push_back(i);
  }
  InstId of(const Module& other, const Keys& keys, InstId y) const {
    uint64_t k = keys[y.value];
    auto at = members_.find(k);
    if (k == 0 || at == members_.end()) return {};
    Opcode kind = kind_of(other, y);
    // What only moves may have its metadata from what it moves, or from what it was put there for.
    if (moves(kind))
      for (InstId x : at->second)
        if (!moves(kind_of(m_, x))) return {};
    // By opcode; where none has it, by what kind of operation it is. A call's metadata is given to what it calls.
    for (bool exact : {true, false}) {
      InstId found;
      size_t count = 0;
      for (InstId x : at->second) {
        Opcode op = kind_of(m_, x);
        if (op == kind || (!exact && !moves(op) && !moves(kind) && op_info(op).cls == op_info(kind).cls))
          found = x, ++count;
      }
      if (count > 0) return count == 1 ? found : InstId();
    }
    return {};
  }

 private:
  const Module& m_;
  std::unordered_map<uint64_t, std::vector<InstId>> members_;
};

void judge(const Truth& truth, const Module& earlier, const Module& m, const Keys& keys, const Sets& answers,
           Score* score, size_t* show, const std::string& stage) {
  for (CompId c : m.computations())
    for (InstId y : m.comp(c).order) {
      InstId x = truth.of(m, keys, y);
      if (!x.valid()) continue;
      // XLA gives what it makes the metadata of what it makes it from: of a copy with its operand's metadata that may
      // be the operand, or what it stands for.
      if (moves(m.op(y)) && keys[m.operand(y, 0).value] == keys[y.value]) {
        ++score->unclear;
        continue;
      }
      ++score->asked;
      const auto& set = answers[y.value];
      bool right = std::find(set.begin(), set.end(), x) != set.end();
      if (!set.empty()) ++score->answered, score->named += set.size();
      score->right += right;
      if (!right && *show > 0) {
        --*show;
        std::printf("    %s %s: %s (%s) is %s", set.empty() ? "UNANSWERED" : "WRONG", stage.c_str(),
                    std::string(m.inst_name(y)).c_str(),
                    std::string(m.u().text(StrId(m.u()[m[y].meta].op_name))).c_str(),
                    std::string(earlier.inst_name(x)).c_str());
        for (InstId s : set) std::printf(" said %s", std::string(earlier.inst_name(s)).c_str());
        std::printf("\n");
      }
    }
}

void run(const std::string& folder, bool metadata, size_t show, bool steps) {
  for (const Recording& r : open_folder(folder)) {
    auto universe = std::make_shared<Universe>();
    std::vector<std::unique_ptr<Module>> modules;
    std::vector<std::string> names;
    std::string last;
    auto now = [] { return std::chrono::steady_clock::now(); };
    auto seconds = [](auto t) { return std::chrono::duration<double>(t).count(); };
    auto start = now();
    size_t files = 0;
    for (const StageRow& row : r.rows) {
      if (row.file.empty() || !row.file.ends_with(".txt")) continue;
      ++files;
      std::string text = read_confined(folder, row.file);
      if (text == last) continue;
      ParseOptions parse;
      parse.file = row.file;
      modules.push_back(parse_module(text, universe, parse));
      names.push_back(row.name());
      last = std::move(text);
    }
    double parsing = seconds(now() - start), matching = 0;
    std::printf("%s: %zu stages, %zu that differ, %zu instructions at the end\n", folder.c_str(), files, modules.size(),
                modules.back()->instruction_count());
    Keys keys = keys_of(*modules[0]);
    Truth first(*modules[0], keys);
    Sets zero(modules[0]->inst_slots());
    for (size_t i = 0; i < zero.size(); ++i) zero[i] = {InstId(i)};
    Score before, origin, end;
    std::vector<std::pair<Score, std::string>> losses;
    MatchOptions options;
    options.use_metadata = metadata;
    for (size_t k = 1; k < modules.size(); ++k) {
      const Module &a = *modules[k - 1], &b = *modules[k];
      start = now();
      StageMatch match = match_stages(a, b, options);
      matching += seconds(now() - start);
      Sets previous(b.inst_slots()), now_zero(b.inst_slots());
      for (size_t y = 0; y < previous.size(); ++y)
        if (match.same[y].valid()) previous[y] = {match.same[y]};
      for (const Heir& h : match.heirs)
        if (!match.same[h.to.value].valid()) previous[h.to.value].push_back(h.from);
      for (size_t y = 0; y < previous.size(); ++y) {
        auto& set = now_zero[y];
        for (InstId x : previous[y]) set.insert(set.end(), zero[x.value].begin(), zero[x.value].end());
        std::sort(set.begin(), set.end());
        set.erase(std::unique(set.begin(), set.end()), set.end());
      }
      Truth earlier(a, keys);
      keys = keys_of(b);
      Score here;
      size_t quiet = 0, *shown = steps ? &show : &quiet;
      judge(earlier, a, b, keys, previous, &here, shown, names[k]);
      before.asked += here.asked, before.answered += here.answered, before.right += here.right,
          before.named += here.named, before.unclear += here.unclear;
      judge(first, *modules[0], b, keys, now_zero, &origin, &quiet, names[k]);
      if (k + 1 == modules.size()) judge(first, *modules[0], b, keys, now_zero, &end, steps ? &quiet : &show, names[k]);
      if (here.right < here.asked) losses.emplace_back(here, names[k]);
      zero = std::move(now_zero);
    }
    std::stable_sort(losses.begin(), losses.end(), [](const auto& p, const auto& q) {
      return p.first.asked - p.first.right > q.first.asked - q.first.right;
    });
    for (const auto& [score, stage] : losses)
      if (steps) score.print(stage.c_str());
    before.print("one before"), origin.print("the first"), end.print("at the end");
    std::printf("  %.2f s parsing, %.2f s matching\n", parsing, matching);
  }
}

}  // namespace
}  // namespace hlo

int main(int argc, char** argv) {
  bool metadata = false, steps = false;
  size_t show = 0;
  for (int k = 1; k < argc; ++k) {
    std::string word = argv[k];
    if (word == "--metadata")
      metadata = true;
    else if (word == "--steps")
      steps = true;
    else if (word.starts_with("--wrong="))
      show = std::stoul(word.substr(8));
    else
      try {
        hlo::run(word, metadata, show, steps);
      } catch (const hlo::Failure& e) {
        std::printf("%s: %s\n", word.c_str(), e.what());
      }
  }
}
