#include "replay/judge/arguments/memory.h"

#include <algorithm>
#include <unordered_map>

#include "ir/base/memory.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/value.h"
#include "ir/program/buffer.h"

namespace hlo {
namespace {

class MemoryLiveness {
 public:
  MemoryLiveness(const Module& m, bool in_kernels, bool wide)
      : m_(m), u_(m.u()), in_kernels_(in_kernels), wide_(wide) {}

  struct Peak {
    double bytes = 0;
    InstId at;
  };

  double leaves(ShapeId id) const {
    const Shape& s = u_[id];
    double sum = 0;
    for (ShapeId e : s.elements) sum += leaves(e);
    if (!s.is_array()) return sum;
    auto bytes = static_cast<double>(array_bytes(s).capped());
    return wide_ && is_float(s.type) ? bytes / storage_bytes(s.type) * 8 : bytes;
  }

  // Of the values that the computation makes; its parameters are the caller's. `body`: of a loop, whose results take
  // the place of its state.
  const Peak& of(CompId c, bool body) {
    if (auto known = peaks_.find(c); known != peaks_.end()) return known->second;
    check_stack("calls of computations are nested");
    Peak peak = find(c, body);
    return peaks_[c] = peak;
  }

 private:
  // May the result lie where the first operand lies (or is it the operand)?
  bool in_place(InstId i) const {
    Opcode op = m_.op(i);
    const OpInfo& info = op_info(op);
    switch (op) {
      case Opcode::AddDependency:
      case Opcode::Bitcast:
      case Opcode::Copy:
      case Opcode::CopyDone:
      case Opcode::CopyStart:
      case Opcode::Domain:
      case Opcode::DynamicUpdateSlice:
      case Opcode::GetTupleElement:
      case Opcode::OptBarrier:
      case Opcode::Reshape:
      case Opcode::Scatter:
      case Opcode::While:
        return true;
      case Opcode::CustomCall:  // marks hand on what they get
        return m_.operand_count(i) == 1 && leaves(m_.shape_id(i)) == leaves(m_.shape_id(m_.operand(i, 0)));
      default:
        return info.elementwise || info.cls == OpClass::Async || info.cls == OpClass::Io;
    }
  }
  bool in_kernel(InstId i) const {
    OpClass c = op_info(m_.op(i)).cls;
    return in_kernels_ &&
           (op_info(m_.op(i)).elementwise || c == OpClass::Move || c == OpClass::Reduce || c == OpClass::Window ||
            c == OpClass::Gather || m_.op(i) == Opcode::Broadcast || m_.op(i) == Opcode::Iota);
  }

  // At most, of what an instruction calls and waits for.
  double called(InstId i) {
    Opcode op = m_.op(i);
    bool loop = op == Opcode::While;
    double most = 0;
    if (loop || op == Opcode::Call || op == Opcode::Conditional || (op == Opcode::Fusion && !in_kernels_) ||
        op == Opcode::AsyncStart)
      for (CompId c : m_.called(i)) most = op == Opcode::Conditional ? most : std::max(most, of(c, loop).bytes);
    return most;
  }

  // Memory that an instruction made: until when something holds it.
  struct Piece {
    double bytes;
    size_t first, last;
  };

  Peak find(CompId c, bool body) {
    const std::vector<InstId> order = m_.config().is_scheduled ? m_.live_order(c) : m_.post_order(c);
    std::vector<Piece> pieces;
    std::unordered_map<InstId, std::vector<size_t>> holds;
    for (size_t at = 0; at < order.size(); ++at) {
      InstId i = order[at];
      Opcode op = m_.op(i);
      std::vector<size_t> own;
      for (InstId o : m_.operands(i))
        for (size_t k : holds[o]) pieces[k].last = at;
      InstId first = m_.operand_count(i) ? m_.operand(i, 0) : InstId();
      if (op == Opcode::GetTupleElement && m_.op(first) == Opcode::Tuple) {
        own = holds[m_.operand(first, static_cast<size_t>(m_.attrs(i).integer(Attr::index)))];
      } else if (op == Opcode::Tuple) {
        for (InstId o : m_.operands(i)) own.insert(own.end(), holds[o].begin(), holds[o].end());
      } else if (first.valid() && in_place(i)) {
        own = holds[first];
      } else if (op != Opcode::Parameter && !in_kernel(i)) {
        own.push_back(pieces.size());
        pieces.push_back({leaves(m_.shape_id(i)), at, at});
      }
      holds[i] = std::move(own);
    }
    for (size_t k : holds[m_.comp(c).root]) {
      if (body) pieces[k].bytes = 0;
      pieces[k].last = order.size();
    }
    std::vector<double> starts(order.size() + 1, 0), ends(order.size() + 1, 0);
    for (const Piece& p : pieces) starts[p.first] += p.bytes, ends[p.last] += p.bytes;
    Peak peak;
    double live = 0;
    for (size_t at = 0; at < order.size(); ++at) {
      // What a call uses last may end inside of it.
      double within = live - ends[at] + called(order[at]);
      live += starts[at];
      double most = std::max(live, within);
      if (most > peak.bytes) peak = {most, order[at]};
      live -= ends[at];
    }
    return peak;
  }

  const Module& m_;
  const Universe& u_;
  bool in_kernels_, wide_;
  std::unordered_map<CompId, Peak> peaks_;
};

// What all instructions give: no run needs more, since no computation runs twice at a time.
double bytes_of_all(const Module& m) {
  MemoryLiveness each(m, false, false);
  double sum = 0;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (i.valid()) sum += each.leaves(m.shape_id(i));
  return sum;
}

std::string bytes_text(double bytes) { return human_bytes(static_cast<int64_t>(std::min(bytes, 9e18))); }

}  // namespace

MemoryNeed memory_need(const Module& m, bool in_kernels, bool wide) {
  MemoryLiveness liveness(m, in_kernels, wide);
  MemoryNeed need;
  for (InstId p : m.comp(m.entry()).params) {
    need.parameters += liveness.leaves(m.shape_id(p));
    // Those of the run's own are kept beside.
    if (wide) need.parameters += MemoryLiveness(m, false, false).leaves(m.shape_id(p));
  }
  for (InstId i : m.elided_constants()) need.constants += liveness.leaves(m.shape_id(i));
  MemoryLiveness::Peak peak = liveness.of(m.entry(), false);
  need.values = peak.bytes, need.at = peak.at;
  return need;
}

void foresee_memory(const Module& m, const std::string& file, const std::string& backend, bool wide) {
  bool evaluator = backend == "evaluator";
  AvailableMemory there = available_memory();
  if (!wide && bytes_of_all(m) <= static_cast<double>(there.bytes)) return;
  MemoryNeed need = memory_need(m, !evaluator, wide);
  if (backend == "cuda") need.values = 0, need.at = InstId();  // the card's, which asks for itself
  if (need.sum() <= static_cast<double>(there.bytes)) return;
  const auto& params = m.comp(m.entry()).params;
  std::string text = fmt::format("{} takes at least {} of memory, and {} is {}\n  parameters {:>10}, {} of them", file,
                                 bytes_text(need.sum()), human_bytes(there.bytes), there.limit,
                                 bytes_text(need.parameters), params.size());
  MemoryLiveness liveness(m, false, wide);
  auto largest = std::max_element(params.begin(), params.end(), [&](InstId a, InstId b) {
    return liveness.leaves(m.shape_id(a)) < liveness.leaves(m.shape_id(b));
  });
  if (largest != params.end())
    text += fmt::format("; {} is the largest, {}", m.inst_name(*largest),
                        bytes_text(liveness.leaves(m.shape_id(*largest))));
  if (need.constants > 0) text += fmt::format("\n  constants  {:>10}", bytes_text(need.constants));
  text += fmt::format("\n  values     {:>10}", bytes_text(need.values));
  if (need.at.valid()) text += fmt::format(" at once, at {}", m.inst_name(need.at));
  text += "\nways out: a smaller batch or a shorter sequence; `hlo-replay extract` for the part that matters";
  if (wide) text += "; without --precision=high";
  if (evaluator && need.values > need.sum() / 10)
    text += "; --backend=host, whose kernels keep no values between their operations";
  text += "; --ignore-memory runs it all the same";
  fail(FailureKind::kUnsupported, "{}", text);
}

}  // namespace hlo
