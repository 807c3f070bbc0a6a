#include "replay/report/measured/same_compilation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "parser/proto/proto_reader.h"

namespace hlo {
namespace {

constexpr double kMostSeconds = 0.1, kMostNames = 0.5;

class Evidence {
 public:
  Evidence(const Timeline& t, const std::vector<PlacedSpan>& spans, const MeasuredModule& m) : t_(t), m_(m) {
    const bool device =
        std::any_of(spans.begin(), spans.end(), [&](const PlacedSpan& p) { return at(p).details != 0; });
    if (device) launches_.emplace(*m.module);
    for (const PlacedSpan& p : spans) {
      if (of_graph(t, at(p)) && !plain_instruction(at(p)))
        out.graph_spans.push_back(p);
      else
        plain(at(p));
    }
    if (!out.graph_spans.empty()) graphs();
    counts();
    says_module_ = !spans.empty() && at(spans.front()).module != 0;
    conclude(spans.empty() || m.held ? "" : held_differs(at(spans.front())));
  }
  KernelsOfModule out;

 private:
  const Span& at(const PlacedSpan& p) const { return t_.tracks[p.track].spans[p.span]; }

  InstId named(const Span& s) const {
    auto found = m_.by_name.find(std::string(t_.text(s.op)));
    return found == m_.by_name.end() ? InstId() : found->second;
  }
  // Graphs' kernels that name their instruction themselves; a call is what a buffer was made of.
  bool plain_instruction(const Span& s) const {
    const InstId i = named(s);
    if (!i.valid()) return false;
    const Opcode op = m_.module->op(i);
    return op != Opcode::Call && op != Opcode::While && op != Opcode::Conditional;
  }

  void plain(const Span& s) {
    const InstId i = named(s);
    const bool compiled =
        s.details && kernel_details(t_.text(s.details)) && kernel_kind(t_.text(s.name)) == KernelKind::kCompiled;
    const bool fusion = i.valid() && m_.module->op(i) == Opcode::Fusion;
    bool right = i.valid();
    if (right && compiled && fusion) right = launches_->runs(i, t_.text(s.name));
    judge(std::string(t_.text(right || !i.valid() ? s.op : s.name)), s.seconds, right);
    if (!i.valid()) return;
    plain_.insert(i);
    if (compiled && fusion && m_.module->parent(i) == m_.module->entry()) {
      Count& c = counts_[i];
      ++c.spans, c.seconds += s.seconds, c.kernels.insert(s.name);
    }
  }

  void graphs() {
    out.matches.assign(
        out.graph_spans.size(),
        {{}, fmt::format("it is not known what the module launches: {}", launches_ ? launches_->problem() : "")});
    if (!launches_) launches_.emplace(*m_.module);
    if (!launches_->problem().empty()) return;
    out.matches = match_spans(t_, out.graph_spans, *launches_, plain_);
    for (size_t k = 0; k < out.graph_spans.size(); ++k) {
      const Span& s = at(out.graph_spans[k]);
      if (kernel_kind(t_.text(s.name)) == KernelKind::kCompiled)
        judge(std::string(t_.text(s.name)), s.seconds, !out.matches[k].insts.empty());
    }
  }

  // Fusions of the entry computation run equally often, but for those at a profile's ends.
  void counts() {
    std::vector<size_t> all;
    for (const auto& [i, c] : counts_)
      if (c.kernels.size() == 1) all.push_back(c.spans);
    if (all.size() < 2) return;
    std::sort(all.begin(), all.end());
    const size_t middle = all[(all.size() - 1) / 2];
    for (const auto& [i, c] : counts_)
      if (c.kernels.size() == 1 && (c.spans > 2 * middle + 2 || middle > 2 * c.spans + 2)) {
        wrong_seconds_ += c.seconds;
        wrong_.insert(fmt::format("{} ran {} times where others ran {}", m_.module->inst_name(i), c.spans, middle));
      }
  }

  void judge(std::string name, double seconds, bool right) {
    seconds_ += seconds;
    if (!right) wrong_seconds_ += seconds, wrong_.insert(name);
    names_.insert(std::move(name));
  }

  // The profile's own module of that name and number has these instructions, or it is another one.
  std::string held_differs(const Span& s) const {
    for (const HeldModule& held : t_.modules) {
      if (held.name != m_.name || held.number != s.program) continue;
      try {
        std::unique_ptr<Module> own = read_proto(held.bytes, held.name, std::make_shared<Universe>()).module;
        size_t all = 0, missing = 0;
        for (CompId c : own->computations())
          for (InstId i : own->comp(c).order) {
            // Printed modules call elements of tuples otherwise than protos.
            const Opcode op = own->op(i);
            if (!own->alive(i) || op == Opcode::GetTupleElement || op == Opcode::Bitcast || op == Opcode::Tuple)
              continue;
            ++all, missing += !m_.by_name.contains(std::string(own->inst_name(i)));
          }
        if (static_cast<double>(missing) > 0.1 * static_cast<double>(all))
          return fmt::format("{} of {} instructions of the module that the profile holds are not in it", missing, all);
      } catch (const Failure&) {
        return "";  // said by whoever asks for that module
      }
    }
    return "";
  }

  void conclude(std::string why) {
    const double names = static_cast<double>(names_.size());
    if ((says_module_ && wrong_seconds_ > kMostSeconds * seconds_) ||
        static_cast<double>(wrong_.size()) > kMostNames * names) {
      why = fmt::format("{} of {} names, {:.0f} % of the time, disagree", wrong_.size(), names_.size(),
                        seconds_ > 0 ? std::min(100.0, 100 * wrong_seconds_ / seconds_) : 0);
      size_t told = 0;
      for (const std::string& w : wrong_)
        if (told++ < 3) why += (told == 1 ? ": " : ", ") + w;
      if (wrong_.size() > 3) why += ", …";
    }
    if (!why.empty())
      out.another_compilation = fmt::format("the profile is of another compilation than module '{}': {}", m_.name, why);
  }

  struct Count {
    size_t spans = 0;
    double seconds = 0;
    std::set<uint32_t> kernels;
  };
  const Timeline& t_;
  const MeasuredModule& m_;
  std::optional<ModuleLaunches> launches_;
  std::unordered_set<InstId> plain_;
  std::map<InstId, Count> counts_;
  std::set<std::string> names_, wrong_;
  bool says_module_ = false;
  double seconds_ = 0, wrong_seconds_ = 0;
};

}  // namespace

KernelsOfModule kernels_of_module(const Timeline& t, const std::vector<PlacedSpan>& spans, const MeasuredModule& m) {
  return Evidence(t, spans, m).out;
}

}  // namespace hlo
