// memory --log: what a program printed when memory ran out, joined to the modules of a dump.
#include <algorithm>

#include "ir/base/checked.h"
#include "ir/program/buffer.h"
#include "ir/query/source_lines.h"
#include "replay/cli/cost/memory_parts.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace {

constexpr size_t kShownAlive = 6, kShownCandidates = 6;

struct AllocationAt {
  size_t module = 0, allocation = 0;
};

std::string bytes_words(const LoggedBytes& b) {
  if (!b.known()) return "unknown";
  return human_bytes(b.exact() ? b.least : b.least + (b.most - b.least) / 2);
}

Json bytes_json(const LoggedBytes& b) { return b.known() ? Json(b.least + (b.most - b.least) / 2) : Json(); }

class JoiningLog {
 public:
  JoiningLog(const MemoryLog& log, const std::vector<HeldMemory>& modules, size_t most, bool print)
      : log_(log), modules_(modules), most_(most), print_(print) {}

  MemoryLogAnswer run(const std::string& label) {
    Json complaints = Json::array();
    if (print_)
      fmt::print(
          "{}: {}\n", printable(label),
          log_.empty() ? "no line reports that memory ran out" : "what it says of memory, and where that is here");
    for (const MemoryComplaint& c : log_.complaints) complaints.push_back(complaint(c));
    Json buffers = Json::array();
    for (const NamedBuffer& b : log_.buffers) buffers.push_back(buffer(b));
    MemoryLogAnswer out;
    out.json = {{"file", label},
                {"found", !log_.empty()},
                {"complaints", complaints},
                {"blocks", blocks()},
                {"pool_bytes", log_.pool < 0 ? Json() : Json(log_.pool)},
                {"in_use_bytes", log_.in_use < 0 ? Json() : Json(log_.in_use)},
                {"buffers", buffers}};
    out.joined = joined_;
    return out;
  }

 private:
  std::string module_words(size_t k) const {
    const HeldMemory& m = modules_[k];
    return m.selector.empty() || m.selector == m.name
               ? printable(m.name)
               : fmt::format("{} ({})", printable(m.name), printable(m.selector));
  }

  // The module at its peak: what else lives at that moment.
  void print_alive(size_t k) const {
    const MemoryReport& r = modules_[k].report;
    if (r.alive.empty()) {
      fmt::print("    what is alive with it is unknown\n");
      return;
    }
    fmt::print("    {} alive at its peak{}:\n", human_bytes(r.peak),
               r.peak_at.empty() ? "" : ", at " + printable(r.peak_at));
    for (size_t v = 0; v < r.alive.size() && v < std::min(kShownAlive, most_); ++v) {
      const MemoryValue& value = r.alive[v];
      fmt::print("      {:>10} {:<9} {:<32} {}  {}\n", human_bytes(value.bytes), value.kind, printable(value.name()),
                 printable(value.shape), printable(value.source.known() ? value.source.brief() : value.op_name));
    }
    if (r.alive.size() > kShownAlive)
      fmt::print("      … and {} more: hlo-replay memory\n", r.alive.size() - kShownAlive);
  }

  std::vector<AllocationAt> of_size(const LoggedBytes& bytes) const {
    std::vector<AllocationAt> out;
    for (size_t m = 0; m < modules_.size(); ++m)
      for (size_t k = 0; k < modules_[m].report.allocations.size(); ++k)
        if (bytes.holds(modules_[m].report.allocations[k].bytes)) out.push_back({m, k});
    // What a program asks for itself while it runs, before what it is handed.
    auto rank = [&](const AllocationAt& a) {
      const std::string& kind = modules_[a.module].report.allocations[a.allocation].kind;
      return kind == "temporary" ? 0 : kind == "output" ? 1 : kind == "constant" ? 2 : 3;
    };
    std::stable_sort(out.begin(), out.end(), [&](const auto& x, const auto& y) { return rank(x) < rank(y); });
    return out;
  }

  Json allocation_json(const AllocationAt& at) const {
    const HeldMemory& m = modules_[at.module];
    const MemoryAllocation& a = m.report.allocations[at.allocation];
    return {{"selector", m.selector}, {"module", m.name},     {"bytes", a.bytes},
            {"kind", a.kind},         {"largest", a.largest}, {"source", m.sources[at.allocation]},
            {"values", a.values}};
  }

  void print_allocation(const AllocationAt& at) const {
    const HeldMemory& m = modules_[at.module];
    const MemoryAllocation& a = m.report.allocations[at.allocation];
    const std::string& source = m.sources[at.allocation];
    fmt::print("    {} of {}: {}, {} value{}, the largest {}{}\n", a.kind == "temporary" ? "the temporaries" : a.kind,
               module_words(at.module), human_bytes(a.bytes), a.values, a.values == 1 ? "" : "s", printable(a.largest),
               source.empty() ? "" : ", " + printable(source));
  }

  // Modules that may be the one that was not got below the limit.
  std::vector<size_t> rematerialized(const MemoryComplaint& c) const {
    std::vector<size_t> out;
    for (size_t k = 0; k < modules_.size(); ++k) {
      const MemoryReport& r = modules_[k].report;
      if (!c.module.empty() ? modules_[k].name == c.module
                            : c.reached.known() && r.peak > 0 &&
                                  static_cast<double>(r.peak) > 0.85 * static_cast<double>(c.reached.least) &&
                                  static_cast<double>(r.peak) < 1.15 * static_cast<double>(c.reached.most))
        out.push_back(k);
    }
    return out;
  }

  Json complaint(const MemoryComplaint& c) {
    const char* kind = c.kind == MemoryComplaint::kAllocation          ? "allocation"
                       : c.kind == MemoryComplaint::kRematerialization ? "rematerialization"
                                                                       : "other";
    Json joined = Json::array(), peaks = Json::array();
    std::string why_not;
    if (print_)
      fmt::print("line {}: {}{}\n", c.line, printable(c.text), c.times > 1 ? fmt::format(" ({} times)", c.times) : "");
    if (c.kind == MemoryComplaint::kAllocation) {
      const std::vector<AllocationAt> found = of_size(c.asked);
      for (const AllocationAt& at : found) joined.push_back(allocation_json(at));
      if (found.empty())
        why_not = fmt::format("no allocation of {} has that size: another program's, or an array that was put there",
                              modules_.size() == 1 ? "this module" : fmt::format("these {} modules", modules_.size()));
      if (print_ && !found.empty()) {
        if (found.size() > 1)
          fmt::print("  {} allocations have that size; which one is meant is not recorded:\n", found.size());
        for (size_t k = 0; k < found.size() && k < kShownCandidates; ++k) print_allocation(found[k]);
        if (found.size() > kShownCandidates) fmt::print("    … and {} more\n", found.size() - kShownCandidates);
        const bool one =
            std::all_of(found.begin(), found.end(), [&](const auto& f) { return f.module == found[0].module; });
        if (one) print_alive(found[0].module);
      }
    } else if (c.kind == MemoryComplaint::kRematerialization) {
      const std::vector<size_t> found = rematerialized(c);
      for (size_t k : found)
        peaks.push_back({{"selector", modules_[k].selector},
                         {"module", modules_[k].name},
                         {"peak_bytes", modules_[k].report.peak},
                         {"peak_at", modules_[k].report.peak_at}});
      if (found.empty())
        why_not = c.module.empty() ? "no module here needs about as much as it was reduced to"
                                   : fmt::format("no module here is called {}", c.module);
      if (print_ && !found.empty()) {
        if (found.size() > 1)
          fmt::print("  {} modules need about as much; which one is meant is not recorded\n", found.size());
        for (size_t k : found)
          fmt::print("  {}: XLA wanted {} and came from {} to {}{}\n", module_words(k), bytes_words(c.limit),
                     bytes_words(c.before), bytes_words(c.reached), c.module.empty() ? " (known by its size)" : "");
        if (found.size() == 1) print_alive(found[0]);
      }
    } else {
      why_not = "it says no number";
    }
    if (print_ && !why_not.empty()) fmt::print("  not joined: {}\n", why_not);
    joined_ |= why_not.empty();
    return {{"kind", kind},
            {"line", c.line},
            {"text", c.text},
            {"times", c.times},
            {"asked_bytes", bytes_json(c.asked)},
            {"limit_bytes", bytes_json(c.limit)},
            {"reached_bytes", bytes_json(c.reached)},
            {"before_bytes", bytes_json(c.before)},
            {"allocations", joined},
            {"modules", peaks},
            {"why_not", why_not}};
  }

  // Blocks of the allocator by whether an allocation of a module has their size: each allocation is taken once.
  Json blocks() {
    if (log_.blocks.empty()) return nullptr;
    int64_t count = 0, found = 0;
    Checked bytes = 0, found_bytes = 0;
    Json left = Json::array();
    std::vector<std::string> words;
    for (const AllocatorBlocks& b : log_.blocks) {
      int64_t have = 0;
      for (const HeldMemory& m : modules_)
        for (const MemoryAllocation& a : m.report.allocations) have += LoggedBytes{b.bytes, b.bytes}.holds(a.bytes);
      have = std::min(have, b.count);
      count += b.count, found += have;
      bytes = bytes + Checked(b.bytes) * b.count, found_bytes = found_bytes + Checked(b.bytes) * have;
      if (have == b.count) continue;
      left.push_back({{"bytes", b.bytes}, {"count", b.count - have}, {"line", b.line}});
      if (words.size() < kShownAlive) words.push_back(fmt::format("{} of {}", b.count - have, human_bytes(b.bytes)));
    }
    joined_ |= found > 0;
    if (print_) {
      fmt::print("the allocator's list: {} blocks in use, {}; {} of them, {}, have the sizes of allocations here\n",
                 count, human_bytes(bytes.capped()), found, human_bytes(found_bytes.capped()));
      if (!left.empty())
        fmt::print("  not joined: {}{}: other programs' arrays, or data that was put there\n", fmt::join(words, ", "),
                   left.size() > words.size() ? fmt::format(" and {} sizes more", left.size() - words.size()) : "");
    }
    return {{"count", count},
            {"bytes", bytes.capped()},
            {"joined_count", found},
            {"joined_bytes", found_bytes.capped()},
            {"not_joined", left}};
  }

  // A buffer that XLA lists: by the instruction's name and shape, else by its op_name and shape.
  Json buffer(const NamedBuffer& b) {
    std::string name = b.what.substr(0, b.what.find(' '));
    if (name.starts_with('%')) name.erase(0, 1);
    const std::string shape = b.shape.substr(0, b.shape.find('{'));
    Json found = Json::array();
    std::string words;
    for (const HeldMemory& m : modules_) {
      const MemoryValue* best = nullptr;
      for (const MemoryValue& v : m.report.alive) {
        const bool same_shape = shape.empty() || v.shape == shape;
        if (same_shape && ((!name.empty() && v.instruction == name) || (!b.op_name.empty() && v.op_name == b.op_name)))
          if (!best || v.instruction == name) best = &v;
      }
      if (!best) continue;
      found.push_back({{"selector", m.selector},
                       {"module", m.name},
                       {"instruction", best->name()},
                       {"source", best->source.text()},
                       {"bytes", best->bytes}});
      words = fmt::format("{} of {}{}", printable(best->name()), printable(m.name),
                          best->source.known() ? ", " + printable(best->source.text()) : "");
    }
    joined_ |= !found.empty();
    if (print_)
      fmt::print("buffer {} {}: {}\n", printable(b.size), printable(b.shape),
                 found.empty()       ? "not joined: no value at a peak here has that name or op_name and that shape"
                 : found.size() == 1 ? words
                                     : fmt::format("{} modules have it", found.size()));
    return {{"size", b.size}, {"what", b.what}, {"shape", b.shape}, {"op_name", b.op_name}, {"joined", found}};
  }

  const MemoryLog& log_;
  const std::vector<HeldMemory>& modules_;
  const size_t most_;
  const bool print_;
  bool joined_ = false;
};

}  // namespace

std::vector<std::string> allocation_sources(const Module& m, const MemoryReport& r) {
  std::unordered_map<std::string, std::string> lines;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (const SourceLine line = kernel_source_line(m, i); line.known())
        lines.emplace(std::string(m.inst_name(i)), line.text());
  std::vector<std::string> out;
  for (const MemoryAllocation& a : r.allocations) {
    const auto at = lines.find(a.largest.substr(0, a.largest.find('{')));
    out.push_back(at == lines.end() ? "" : at->second);
  }
  return out;
}

MemoryLogAnswer tell_memory_log(const std::string& label, const MemoryLog& log, const std::vector<HeldMemory>& modules,
                                size_t most, bool print) {
  return JoiningLog(log, modules, most, print).run(label);
}

}  // namespace hlo
