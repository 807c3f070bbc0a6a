#include "replay/hunt/last_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "replay/record/logs/log_file.h"

namespace hlo {
namespace {

constexpr size_t kMostChecks = 8, kLongest = 400;

void once(std::vector<std::string>* list, std::string text) {
  if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(std::move(text));
}

// The class of a frame `… xla::gpu::PriorityFusion::RunImpl(…)` or `::Run(`; empty where the line holds none.
std::string pass_class(std::string_view line) {
  for (std::string_view method : {"::RunImpl(", "::Run("}) {
    const size_t end = line.find(method);
    if (end == std::string_view::npos) continue;
    size_t begin = end;
    while (begin > 0 && (std::isalnum(static_cast<unsigned char>(line[begin - 1])) || line[begin - 1] == '_')) --begin;
    std::string name(line.substr(begin, end - begin));
    // A pipeline and what repeats passes are on the stack of every one of them.
    if (line.substr(0, begin).find("xla::") == std::string_view::npos || name.empty() ||
        name.find("Pipeline") != std::string::npos || name.find("HloPassFix") != std::string::npos)
      continue;
    return name;
  }
  return {};
}

// `RET_CHECK failure (external/xla/xla/service/hlo_dce.cc:12) a == b`: place and words; empty where there is none.
std::string failed_ret_check(std::string_view line) {
  constexpr std::string_view kSign = "RET_CHECK failure (";
  const size_t at = line.find(kSign);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + kSign.size());
  const size_t close = line.find(')');
  if (close == std::string_view::npos) return {};
  std::string_view place = line.substr(0, close);
  place = place.substr(place.rfind('/') + 1);
  return fmt::format("{}: RET_CHECK failure{}", place, line.substr(close + 1, kLongest));
}

std::string letters(std::string_view name) {
  std::string out;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Is a pass of that class the one that XLA calls `pass`? `GpuLayoutAssignment` is layout-assignment, `HloCSE` cse.
bool class_named_like(std::string_view cls, std::string_view pass) {
  std::string name = letters(cls), wanted = letters(pass);
  if (name == wanted) return true;
  for (std::string_view prefix : {"gpu", "cpu", "hlo", "tpu"})
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      break;
    }
  return !wanted.empty() && (name == wanted || letters(pass_of_other_name(name)) == wanted);
}

}  // namespace

std::string_view pass_of_other_name(std::string_view cls) {
  static constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"algebraicsimplifier", "algsimp"},
      {"gemmrewriter", "cublas-gemm-rewriter"},
      {"spmdpartitioner", "spmd-partitioning"},
      {"statefulrngspmdpartitioner", "spmd-partitioning"},
      {"whileloopsimplifier", "simplify-while-loops"},
      {"conditionalsimplifier", "simplify-conditional"},
      {"floatnormalization", "float-normalization-bf16"}};
  const std::string name = letters(cls);
  for (const auto& [known, pass] : kOthers)
    if (name == known) return pass;
  return {};
}

bool pass_named_like(std::string_view cls, std::string_view pass) { return class_named_like(cls, pass); }

LastWords last_words(std::string_view log) {
  LastWords out;
  const LogFile lines = read_log(log);
  for (const LogFailure& f : lines.failures) {
    if (out.checks.size() == kMostChecks) break;
    once(&out.checks, fmt::format("{}: {}", f.place.substr(f.place.rfind('/') + 1),
                                  std::string_view(f.message).substr(0, kLongest)));
  }
  if (const LogPass* pass = lines.last_pass()) out.entered = pass->name;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (std::string check = failed_ret_check(line); !check.empty() && out.checks.size() < kMostChecks)
      once(&out.checks, std::move(check));
    if (std::string name = pass_class(line); !name.empty() && out.running.size() < kMostChecks)
      once(&out.running, std::move(name));
  }
  return out;
}

std::vector<Unfinished> unfinished_modules(const std::vector<Recording>& all) {
  std::vector<Unfinished> out;
  for (const Recording& r : all) {
    if (r.rows.empty() ||
        std::any_of(r.rows.begin(), r.rows.end(), [](const StageRow& row) { return row.kind == StageRow::kResult; }))
      continue;
    // The record of passes lists those that changed nothing, too; it is written last, so a dead run has none.
    const StageRow& last = r.rows.back();
    out.push_back({r.module_name, last.name(), last.next});
  }
  return out;
}

std::vector<std::string> running_passes(const LastWords& words, const std::vector<Unfinished>& unfinished,
                                        const std::vector<std::string>& known) {
  std::vector<std::string> out;
  for (const std::string& name : words.running)
    for (const std::string& pass : known)
      if (pass_named_like(name, pass)) once(&out, pass);
  if (!words.entered.empty()) once(&out, words.entered);
  for (const Unfinished& u : unfinished)
    if (!u.next.empty()) once(&out, u.next);
  return out;
}

}  // namespace hlo
