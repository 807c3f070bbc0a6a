#include "replay/report/measured/measured.h"

#include <algorithm>
#include <map>
#include <set>

#include "parser/proto/proto_reader.h"
#include "replay/report/measured/graph_spans.h"
#include "replay/report/measured/same_compilation.h"

namespace hlo {
namespace {

class Joiner {
 public:
  Joiner(const Timeline& timeline, Measured* out) : t_(timeline), out_(out) {}

  void run() {
    choose_modules();
    look_at_kernels();
    for (size_t k = 0; k < t_.tracks.size(); ++k) track(k);
    std::stable_sort(out_->spans.begin(), out_->spans.end(),
                     [&](const MeasuredSpan& a, const MeasuredSpan& b) { return span(a).begin < span(b).begin; });
    add_kernels();
    order_ops();
    for (auto& [key, u] : unjoined_) out_->unjoined.push_back(std::move(u));
    for (auto& [key, u] : unnamed_) out_->unnamed.push_back(std::move(u));
    for (const MeasuredOp& op : out_->ops) {
      MeasuredModule& m = out_->modules[op.module];
      if (m.module->parent(op.inst) == m.module->entry()) m.runs = m.runs ? std::min(m.runs, op.count) : op.count;
    }
    for (auto* list : {&out_->unjoined, &out_->unnamed})
      std::stable_sort(list->begin(), list->end(),
                       [](const Unjoined& a, const Unjoined& b) { return a.seconds > b.seconds; });
  }

 private:
  struct Choice {
    size_t module = SIZE_MAX;
    std::string why_not;
    std::vector<size_t> fits = {};  // places of modules that it may be, before their kernels are looked at
    bool exact = false;             // the first of them has the number, too
  };
  using Key = std::pair<uint32_t, int64_t>;  // the module's name, its number
  static Key key_of(const Span& s) { return {s.module, s.program}; }

  const Span& span(const MeasuredSpan& s) const { return t_.tracks[s.track].spans[s.span]; }

  // Instructions by the module that is said for them decide among modules of one name.
  void choose_modules() {
    std::map<Key, std::set<uint32_t>> named;
    for (const Track& track : t_.tracks)
      for (const Span& s : track.spans)
        if (s.names_hlo()) named[key_of(s)].insert(of_graph(t_, s) ? 0 : s.op);
    for (const auto& [key, ops] : named) chosen_[key] = choose(key, ops);
  }

  Choice choose(const Key& key, const std::set<uint32_t>& ops) {
    const std::string name(t_.text(key.first));
    Choice out;
    std::vector<size_t>& fits = out.fits;
    for (size_t k = 0; k < out_->modules.size(); ++k)
      if (key.first == 0 || out_->modules[k].name == name) fits.push_back(k);
    const auto number_is = [&](size_t k) { return out_->modules[k].number == key.second; };
    const bool exact = key.second >= 0 && key.first && std::count_if(fits.begin(), fits.end(), number_is) == 1;
    if (fits.size() > 1) {
      // Numbers of a dump are not always those of the profiler: the others stand behind.
      std::erase_if(fits, [&](size_t k) { return !(exact && number_is(k)) && !has_all(out_->modules[k], ops); });
      if (exact) std::stable_partition(fits.begin(), fits.end(), number_is);
      out.exact = exact;
      if (fits.empty())
        out.why_not = key.first ? fmt::format("of the modules called '{}' none has all of its instructions", name)
                                : "it says no module, and none has all of its instructions";
    } else if (fits.empty()) {
      out.why_not = fmt::format("no module '{}' among those that were given", name);
    } else if (MeasuredModule& m = out_->modules[fits[0]]; !m.read()) {
      out.why_not = fmt::format("module '{}' cannot be read: {}", m.name, m.unreadable), fits.clear();
    }
    // What spans are loops is asked of the first; which one it is, their kernels decide.
    if (!fits.empty() && (fits.size() == 1 || exact)) out.module = fits[0];
    return out;
  }

  // Graphs' kernels to instructions, and whether the modules are the profile's at all.
  void look_at_kernels() {
    std::map<Key, std::vector<PlacedSpan>> of_module;
    for (size_t t = 0; t < t_.tracks.size(); ++t) {
      std::vector<bool> counted = counted_spans(t_.tracks[t], [&](const Span& s) { return container(s); });
      for (size_t k = 0; k < counted.size(); ++k)
        if (counted[k]) of_module[key_of(t_.tracks[t].spans[k])].push_back({t, k});
    }
    for (auto& [key, spans] : of_module) decide(chosen_.at(key), t_.text(key.first), spans);
  }

  void decide(Choice& choice, std::string_view name, const std::vector<PlacedSpan>& spans) {
    std::vector<std::pair<size_t, KernelsOfModule>> left;
    std::string why;
    for (size_t k : choice.fits) {
      MeasuredModule& m = out_->modules[k];
      if (!m.read()) continue;
      KernelsOfModule seen = kernels_of_module(t_, spans, m);
      if (seen.another_compilation.empty())
        left.emplace_back(k, std::move(seen));
      else if (why.empty())
        why = seen.another_compilation, m.another_compilation = why;
      if (choice.exact && left.size() == 1) break;
    }
    if (choice.fits.empty()) return;
    choice.module = left.size() == 1 ? left[0].first : SIZE_MAX;
    if (left.empty()) choice.why_not = why.empty() ? "the module cannot be read" : why;
    if (left.size() > 1)
      choice.why_not = name.empty() ? fmt::format("it says no module, and {} fit; name one", left.size())
                                    : fmt::format("{} modules called '{}' fit; name one", left.size(), name);
    if (left.size() != 1) return;
    KernelsOfModule& seen = left[0].second;
    for (size_t k = 0; k < seen.graph_spans.size(); ++k) {
      const PlacedSpan& at = seen.graph_spans[k];
      in_graphs_.emplace(&t_.tracks[at.track].spans[at.span], std::move(seen.matches[k]));
    }
  }

  bool has_all(MeasuredModule& m, const std::set<uint32_t>& ops) {
    if (!m.read()) return false;
    return std::all_of(ops.begin(), ops.end(),
                       [&](uint32_t op) { return !op || m.by_name.contains(std::string(t_.text(op))); });
  }

  // The instructions that a span may be of; why there are none.
  std::vector<InstId> find(const Span& s, const Choice& choice, std::string* why) const {
    if (choice.module == SIZE_MAX) {
      *why = choice.why_not;
      return {};
    }
    if (auto graph = in_graphs_.find(&s); graph != in_graphs_.end()) {
      *why = fmt::format("kernels of a command buffer: {}", graph->second.why);
      return graph->second.insts;
    }
    const MeasuredModule& m = out_->modules[choice.module];
    auto at = m.by_name.find(std::string(t_.text(s.op)));
    if (at != m.by_name.end()) return {at->second};
    *why = fmt::format("module '{}' has no instruction of that name", m.name);
    return {};
  }

  bool container(const Span& s) const {
    const Choice& choice = chosen_.at({s.module, s.program});
    std::string ignored;
    if (of_graph(t_, s)) return false;
    const std::vector<InstId> insts = find(s, choice, &ignored);
    if (insts.empty()) return container_by_name(t_, s);
    Opcode op = out_->modules[choice.module].module->op(insts[0]);
    return op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call;
  }

  void track(size_t number) {
    const Track& track = t_.tracks[number];
    const std::string where = track.group.empty() ? track.name : track.group + " " + track.name;
    std::vector<bool> counted = counted_spans(track, [&](const Span& s) { return container(s); });
    Unjoined rest{"", "it names no instruction (Python, the runtime)", 0, 0};
    double until = -1;
    for (size_t k = 0; k < track.spans.size(); ++k) {
      const Span& s = track.spans[k];
      if (!s.names_hlo()) {
        // What is within another such span is part of it.
        ++rest.spans;
        if (s.begin + s.seconds > until) {
          rest.seconds += s.begin + s.seconds - std::max(until, s.begin);
          until = s.begin + s.seconds;
        }
        continue;
      }
      if (counted[k]) add(number, k, s, where);
    }
    if (!rest.spans) return;
    Unjoined& all = unnamed_.try_emplace(track.group, Unjoined{track.group, rest.why, 0, 0}).first->second;
    all.seconds += rest.seconds, all.spans += rest.spans;
  }

  void add(size_t track, size_t place, const Span& s, const std::string& where) {
    out_->named += s.seconds;
    const Choice& choice = chosen_.at(key_of(s));
    std::string why;
    const std::vector<InstId> insts = find(s, choice, &why);
    for (InstId inst : insts) add_to(choice.module, inst, {track, place, 0, insts.size()}, s);
    if (!insts.empty()) {
      out_->joined += s.seconds;
      if (insts.size() > 1) out_->ambiguous += s.seconds;
      return;
    }
    Unjoined& u = unjoined_.try_emplace({where, why}, Unjoined{where, why, 0, 0}).first->second;
    u.seconds += s.seconds, ++u.spans;
    out_->spans.push_back({track, place, SIZE_MAX, 1});
  }

  void add_to(size_t module, InstId inst, MeasuredSpan placed, const Span& s) {
    const double seconds = s.seconds / static_cast<double>(placed.ways);
    auto [at, fresh] = ops_.try_emplace({module, inst.value}, out_->ops.size());
    if (fresh) out_->ops.push_back({module, inst, 0, 0, 0, s.seconds, s.seconds, 0, 0, 0});
    MeasuredOp& op = out_->ops[at->second];
    ++op.count, op.seconds += seconds;
    if (placed.ways > 1) op.ambiguous += seconds;
    op.least = std::min(op.least, s.seconds), op.most = std::max(op.most, s.seconds);
    // What is called alike: of a device its kernels.
    KernelOf& kernel = kernels_[{at->second, s.details ? s.name : 0}];
    ++kernel.spans, kernel.seconds += seconds;
    if (s.details) kernel.details = s.details;
    placed.op = at->second;
    out_->spans.push_back(placed);
  }

  // Of each instruction's kernels the one that took most, and how often the least frequent ran.
  void add_kernels() {
    std::vector<double> most(out_->ops.size(), -1);
    for (const auto& [key, kernel] : kernels_) {
      MeasuredOp& op = out_->ops[key.first];
      op.calls = op.calls ? std::min(op.calls, kernel.spans) : kernel.spans;
      if (kernel.seconds <= most[key.first]) continue;
      most[key.first] = kernel.seconds, op.kernel = key.second, op.details = kernel.details;
    }
  }

  void order_ops() {
    std::vector<size_t> order(out_->ops.size()), place(order.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return out_->ops[a].seconds > out_->ops[b].seconds; });
    std::vector<MeasuredOp> sorted;
    for (size_t k = 0; k < order.size(); ++k) sorted.push_back(out_->ops[order[k]]), place[order[k]] = k;
    out_->ops = std::move(sorted);
    for (MeasuredSpan& s : out_->spans)
      if (s.op != SIZE_MAX) s.op = place[s.op];
  }

  const Timeline& t_;
  Measured* out_;
  struct KernelOf {
    size_t spans = 0;
    double seconds = 0;
    uint32_t details = 0;
  };
  std::map<Key, Choice> chosen_;
  std::unordered_map<const Span*, NodeMatch> in_graphs_;
  std::map<std::pair<size_t, uint32_t>, KernelOf> kernels_;  // by place in ops, and name
  std::map<std::pair<size_t, uint32_t>, size_t> ops_;
  std::map<std::pair<std::string, std::string>, Unjoined> unjoined_;
  std::map<std::string, Unjoined> unnamed_;  // by device or process
};

}  // namespace

bool MeasuredModule::read() {
  if (module) return true;
  if (!unreadable.empty()) return false;
  try {
    module = load();
  } catch (const Failure& e) {
    unreadable = std::string(std::string_view(e.what()).substr(0, std::string_view(e.what()).find('\n')));
    if (unreadable.empty()) unreadable = "unreadable";
    return false;
  }
  for (CompId c : module->computations())
    for (InstId i : module->comp(c).order)
      if (module->alive(i)) by_name.emplace(std::string(module->inst_name(i)), i);
  return true;
}

const MeasuredOp* Measured::find(size_t module, InstId inst) const {
  for (const MeasuredOp& op : ops)
    if (op.module == module && op.inst == inst) return &op;
  return nullptr;
}

std::optional<double> Measured::seconds(size_t module, InstId inst) const {
  const Module& m = *modules[module].module;
  if (const MeasuredOp* op = find(module, inst)) return op->seconds;
  if (m.op(inst) != Opcode::AsyncStart || m.called(inst).empty()) return {};
  std::optional<double> out;
  for (InstId i : m.live_order(m.called(inst)[0]))
    if (const MeasuredOp* op = find(module, i)) out = out.value_or(0) + op->seconds;
  return out;
}

Measured join(const Timeline& timeline, std::vector<MeasuredModule> modules) {
  Measured out;
  out.modules = std::move(modules);
  Joiner(timeline, &out).run();
  add_devices(timeline, &out);
  return out;
}

std::vector<MeasuredModule> modules_of(const Timeline& timeline, const std::string& label) {
  std::vector<MeasuredModule> out;
  for (const HeldModule& held : timeline.modules) {
    MeasuredModule m;
    m.held = true, m.name = held.name, m.number = held.number, m.selector = label + ":" + held.label();
    m.load = [bytes = &held.bytes, where = m.selector]() -> std::shared_ptr<Module> {
      return std::move(read_proto(*bytes, where, std::make_shared<Universe>()).module);
    };
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace hlo
