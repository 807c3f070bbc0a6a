#include "replay/report/kernels/shared_cache.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "ir/base/stack_guard.h"

namespace hlo {
namespace {

constexpr size_t kLooksBack = 1024;  // kernels; of those before only the sum counts

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
      default:
        return key_of(ends_pair(m.op(i)) ? m.operand(i, 0) : i);
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

// Bytes that a kernel reads from the device's memory, at least. What it writes may lie where something else lay that is
// in the cache already: only a kernel's own arrays are surely not the same.
double from_memory(const KernelReads& k) { return std::max(k.cost.bytes_read - k.cost.bytes_repeated - k.cached, 0.0); }

// One walk after the other over a computation, which remembers when each array was touched last: bytes that came from
// the device's memory before, and kernels that ran.
class CacheWalk {
 public:
  // `inside`: what a loop or a call reads from memory, at least.
  CacheWalk(const Module& m, CostAnalysis& costs, double capacity, CompId comp, std::function<double(InstId)> inside)
      : m_(m),
        costs_(costs),
        capacity_(capacity),
        comp_(comp),
        order_(running_order(m, comp)),
        inside_(std::move(inside)) {}

  void run(std::unordered_map<InstId, KernelReads>* kernels) {
    for (InstId i : order_) {
      const Opcode op = m_.op(i);
      if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call) {
        // Of what it hands on, any part may be what it touched last.
        clock_ += std::min(inside_(i), 2 * capacity_);
        steps_.push_back(0), touch_operands(i), touched_[key_of(i)] = now();
      } else if (CostAnalysis::runs(m_, i)) {
        auto [at, fresh] = kernels->try_emplace(i);
        KernelReads& k = at->second;
        if (fresh) k.cost = costs_.of(i);
        if (capacity_ <= 0) continue;
        k.cached = 0;
        for (InstId o : m_.operands(i)) k.cached += held(made_by(m_, o), array_bytes(m_.u(), m_.shape_id(o)));
        k.cached = std::min(k.cached, k.cost.bytes_read);
        clock_ += from_memory(k);
        steps_.push_back(std::max(k.cost.bytes_read, k.cost.bytes_written) - k.cost.bytes_repeated);
        touch_operands(i), touched_[key_of(i)] = now();
      }
    }
  }

  // What a body's next turn begins with is what this one ended with.
  void hand_on() {
    if (comp_ == m_.entry()) return;
    const InstId root = m_.comp(comp_).root;
    for (InstId p : m_.comp(comp_).params) {
      if (m_.op(root) != Opcode::Tuple) {
        touched_[key_of(p)] = now();
        continue;
      }
      for (size_t k = 0; k < m_.operand_count(root); ++k)
        if (const std::optional<Touch> when = last_touch(made_by(m_, m_.operand(root, k))))
          touched_[key_of(p, static_cast<int64_t>(k))] = *when;
    }
  }

 private:
  struct Touch {
    double clock = 0;
    size_t steps = 0;
  };
  Touch now() const { return {clock_, steps_.size()}; }
  std::optional<Touch> last_touch(const ArrayKey& array) const {
    std::optional<Touch> last;  // of a tuple's element: when it was read, or the tuple made
    for (const ArrayKey& key : {array, ArrayKey{array.first, -1}})
      if (auto found = touched_.find(key); found != touched_.end())
        if (!last || last->steps < found->second.steps) last = found->second;
    if (last) return last;
    // What a caller hands in it may have made just now.
    if (comp_ != m_.entry() && m_.op(InstId{array.first}) == Opcode::Parameter) return Touch{};
    return std::nullopt;
  }
  double held(const ArrayKey& array, double bytes) const {
    const std::optional<Touch> when = last_touch(array);
    if (!when) return 0;
    double since = clock_ - when->clock;
    for (size_t k = std::max(when->steps, steps_.size() - std::min(steps_.size(), kLooksBack)); k < steps_.size(); ++k)
      since = std::max(since, steps_[k]);
    return std::clamp(capacity_ - since, 0.0, bytes);
  }
  void touch_operands(InstId i) {
    for (InstId o : m_.operands(i)) {
      touched_[made_by(m_, o)] = now();
      if (m_.op(o) == Opcode::Tuple)
        for (InstId part : m_.operands(o)) touched_[made_by(m_, part)] = now();
    }
  }

  const Module& m_;
  CostAnalysis& costs_;
  double capacity_;
  CompId comp_;
  std::vector<InstId> order_;
  std::function<double(InstId)> inside_;
  std::map<ArrayKey, Touch> touched_;
  double clock_ = 0;
  std::vector<double> steps_;  // bytes that each kernel touched, at least: results may lie where operands lay
};

}  // namespace

std::vector<InstId> running_order(const Module& m, CompId comp) {
  if (!m.config().is_scheduled) return m.post_order(comp);
  std::vector<InstId> out;
  for (InstId i : m.comp(comp).order)
    if (m.alive(i)) out.push_back(i);
  return out;
}

const std::unordered_map<InstId, KernelReads>& SharedCache::kernels(CompId comp) {
  if (auto found = known_.find(comp); found != known_.end()) return found->second;
  check_stack("computations call each other");
  std::unordered_map<InstId, KernelReads> out;
  CacheWalk walk(m_, costs_, capacity_, comp, [this](InstId i) { return from_memory_inside(i); });
  walk.run(&out);
  if (capacity_ > 0) walk.hand_on(), walk.run(&out);
  return known_[comp] = std::move(out);
}

double SharedCache::from_memory_of(CompId comp) {
  if (auto found = from_memory_.find(comp); found != from_memory_.end()) return found->second;
  double sum = 0;
  for (const auto& [i, reads] : kernels(comp)) sum += from_memory(reads);
  for (InstId i : m_.post_order(comp)) sum += from_memory_inside(i);
  return from_memory_[comp] = sum;
}

double SharedCache::from_memory_inside(InstId i) {
  const Opcode op = m_.op(i);
  if (capacity_ <= 0 || (op != Opcode::While && op != Opcode::Conditional && op != Opcode::Call)) return 0;
  double all = 0, least = std::numeric_limits<double>::infinity();
  for (CompId c : m_.called(i)) {
    const double one = from_memory_of(c);
    all += one, least = std::min(least, one);
  }
  if (op == Opcode::Conditional) return m_.called(i).empty() ? 0 : least;
  return op == Opcode::While ? all * static_cast<double>(std::max<int64_t>(costs_.trip_count(i), 0)) : all;
}

}  // namespace hlo
