#include "replay/compare/common_kernels.h"

#include <string>
#include <unordered_map>

#include "ir/cost/cost.h"
#include "ir/query/fingerprint.h"

namespace hlo {
namespace {

class KernelPrints {
 public:
  explicit KernelPrints(const Module& m) : m_(m), fingerprints_(m) {}

  std::vector<KernelPrint> all() {
    std::vector<bool> reached(m_.comp_slots(), false);
    reached[m_.entry().value] = true;
    std::vector<CompId> order = m_.computation_post_order();
    for (auto comp = order.rbegin(); comp != order.rend(); ++comp) {
      if (!reached[comp->value]) continue;
      made_.clear();
      for (InstId i : m_.post_order(*comp)) {
        take(i);
        if (walks_into(m_.op(i)))
          for (CompId c : m_.called(i)) reached[c.value] = true;
      }
    }
    return std::move(out_);
  }

 private:
  static bool walks_into(Opcode op) {
    return op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call || op == Opcode::AsyncStart;
  }

  uint64_t by_shape(InstId i) const {
    return hash_combine(static_cast<uint64_t>(m_.op(i)), hash_bytes(m_.u().shape_text(m_.shape_id(i))));
  }

  uint64_t wired(uint64_t own, InstId i) const {
    for (InstId o : m_.operands(i)) own = hash_combine(own, made_.at(o));
    return own;
  }

  // What the instruction is to those that take its value, and its print where it is a kernel.
  void take(InstId i) {
    const Opcode op = m_.op(i);
    if (walks_into(op)) {
      made_[i] = by_shape(i);
      out_.push_back({i, wired(made_[i], i)});
    } else if (op == Opcode::Parameter) {
      made_[i] = hash_combine(static_cast<uint64_t>(op), static_cast<uint64_t>(m_[i].operand[0]));
    } else if (op == Opcode::Constant) {
      made_[i] = fingerprints_.instruction(i);
    } else if (!CostAnalysis::runs(m_, i)) {
      made_[i] = wired(op == Opcode::GetTupleElement ? fingerprints_.instruction(i) : static_cast<uint64_t>(op), i);
    } else {
      made_[i] = fingerprints_.instruction(i);
      out_.push_back({i, wired(made_[i], i)});
    }
  }

  const Module& m_;
  Fingerprints fingerprints_;
  std::unordered_map<InstId, uint64_t> made_;
  std::vector<KernelPrint> out_;
};

}  // namespace

std::vector<KernelPrint> kernel_prints(const Module& m) { return KernelPrints(m).all(); }

CommonKernels common_kernels(const Module& first, const Module& second) {
  const std::vector<KernelPrint> a = kernel_prints(first), b = kernel_prints(second);
  CommonKernels out{a.size(), b.size(), 0, {}, {}};
  std::unordered_map<uint64_t, size_t> left;
  for (const KernelPrint& k : b) ++left[k.print];
  for (const KernelPrint& k : a)
    if (auto found = left.find(k.print); found != left.end() && found->second > 0)
      --found->second, ++out.both;
    else
      out.only_first.push_back(k.inst);
  // What is left over are the last ones of each print.
  for (auto k = b.rbegin(); k != b.rend(); ++k)
    if (size_t& n = left[k->print]; n > 0) --n, out.only_second.push_back(k->inst);
  out.only_second = {out.only_second.rbegin(), out.only_second.rend()};
  return out;
}

std::vector<std::pair<InstId, InstId>> kernel_pairs(const Module& first, const Module& second) {
  std::unordered_map<uint64_t, std::vector<InstId>> left;  // of the second, the last ones in front
  const std::vector<KernelPrint> b = kernel_prints(second);
  for (auto k = b.rbegin(); k != b.rend(); ++k) left[k->print].push_back(k->inst);
  std::vector<std::pair<InstId, InstId>> out;
  for (const KernelPrint& k : kernel_prints(first))
    if (auto found = left.find(k.print); found != left.end() && !found->second.empty())
      out.emplace_back(k.inst, found->second.back()), found->second.pop_back();
  return out;
}

}  // namespace hlo
