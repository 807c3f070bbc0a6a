#include "replay/report/shared_cache.h"

#include <algorithm>
#include <map>
#include <optional>

namespace hlo {
namespace {

// An array: the instruction that makes it, and which element of its tuple it is; -1: all of it.
using ArrayKey = std::pair<uint32_t, int64_t>;

ArrayKey key_of(InstId i, int64_t index = -1) { return {i.value, index}; }

// The array that an operand is, through what only names it.
ArrayKey made_by(const Module& m, InstId i) {
  for (int steps = 0; steps < 64; ++steps) {
    switch (m.op(i)) {
      case Opcode::Bitcast:
      case Opcode::OptBarrier:
      case Opcode::AddDependency:
        i = m.operand(i, 0);
        continue;
      case Opcode::GetTupleElement: {
        const InstId tuple = m.operand(i, 0);
        const int64_t index = m.attrs(i).integer(Attr::index);
        if (m.op(tuple) != Opcode::Tuple || index < 0 || static_cast<size_t>(index) >= m.operand_count(tuple))
          return key_of(tuple, index);
        i = m.operand(tuple, static_cast<size_t>(index));
        continue;
      }
      case Opcode::AsyncDone:
      case Opcode::CopyDone:
      case Opcode::AllGatherDone:
      case Opcode::AllReduceDone:
      case Opcode::CollectivePermuteDone:
      case Opcode::SendDone:
      case Opcode::RecvDone:
        return key_of(m.operand(i, 0));
      default:
        return key_of(i);
    }
  }
  return key_of(i);
}

double array_bytes(const Universe& u, ShapeId shape) {
  if (!u[shape].is_tuple()) return u[shape].is_array() ? static_cast<double>(u.byte_size(shape)) : 0;
  double sum = 0;
  for (ShapeId e : u[shape].elements) sum += array_bytes(u, e);
  return sum;
}

// One walk after the other over a computation, which remembers when each array was touched last: bytes that went to the
// device's memory, or came from it, before.
class CacheWalk {
 public:
  CacheWalk(const Module& m, CostAnalysis& costs, double capacity, CompId comp)
      : m_(m), costs_(costs), capacity_(capacity), comp_(comp), order_(running_order(m, comp)) {}

  void run(std::unordered_map<InstId, KernelReads>* kernels) {
    for (InstId i : order_) {
      const Opcode op = m_.op(i);
      if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call) {
        // Of what it hands on, any part may be what it touched last.
        clock_ += std::min(costs_.of(i).bytes(), 2 * capacity_);
        touch_operands(i), touched_[key_of(i)] = clock_;
      } else if (CostAnalysis::runs(m_, i)) {
        auto [at, fresh] = kernels->try_emplace(i);
        KernelReads& k = at->second;
        if (fresh) k.cost = costs_.of(i);
        if (capacity_ <= 0) continue;
        k.cached = 0;
        for (InstId o : m_.operands(i)) k.cached += held(made_by(m_, o), array_bytes(m_.u(), m_.shape_id(o)));
        k.cached = std::min(k.cached, k.cost.bytes_read);
        clock_ += k.cost.bytes() - k.cached;
        touch_operands(i), touched_[key_of(i)] = clock_;
      }
    }
  }

  // What a body's next turn begins with is what this one ended with.
  void hand_on() {
    if (comp_ == m_.entry()) return;
    const InstId root = m_.comp(comp_).root;
    for (InstId p : m_.comp(comp_).params) {
      if (m_.op(root) != Opcode::Tuple) {
        touched_[key_of(p)] = clock_;
        continue;
      }
      for (size_t k = 0; k < m_.operand_count(root); ++k)
        if (const std::optional<double> when = last_touch(made_by(m_, m_.operand(root, k))))
          touched_[key_of(p, static_cast<int64_t>(k))] = *when;
    }
  }

 private:
  std::optional<double> last_touch(const ArrayKey& array) const {
    for (const ArrayKey& key : {array, ArrayKey{array.first, -1}})
      if (auto found = touched_.find(key); found != touched_.end()) return found->second;
    // What a caller hands in it may have made just now.
    if (comp_ != m_.entry() && m_.op(InstId{array.first}) == Opcode::Parameter) return 0;
    return std::nullopt;
  }
  double held(const ArrayKey& array, double bytes) const {
    const std::optional<double> when = last_touch(array);
    return when ? std::clamp(capacity_ - (clock_ - *when), 0.0, bytes) : 0;
  }
  void touch_operands(InstId i) {
    for (InstId o : m_.operands(i)) {
      touched_[made_by(m_, o)] = clock_;
      if (m_.op(o) == Opcode::Tuple)
        for (InstId part : m_.operands(o)) touched_[made_by(m_, part)] = clock_;
    }
  }

  const Module& m_;
  CostAnalysis& costs_;
  double capacity_;
  CompId comp_;
  std::vector<InstId> order_;
  std::map<ArrayKey, double> touched_;
  double clock_ = 0;
};

}  // namespace

std::vector<InstId> running_order(const Module& m, CompId comp) {
  if (!m.config().is_scheduled) return m.post_order(comp);
  std::vector<InstId> out;
  for (InstId i : m.comp(comp).order)
    if (m.alive(i)) out.push_back(i);
  return out;
}

std::unordered_map<InstId, KernelReads> SharedCache::kernels(CompId comp) {
  std::unordered_map<InstId, KernelReads> out;
  CacheWalk walk(m_, costs_, capacity_, comp);
  walk.run(&out);
  if (capacity_ > 0) walk.hand_on(), walk.run(&out);
  return out;
}

}  // namespace hlo
