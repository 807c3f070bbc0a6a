#include "ir/analysis/buffer_sharing.h"

#include <algorithm>
#include <unordered_set>

#include "ir/aliasing.h"
#include "ir/analysis/fusion_analysis.h"

namespace hlo {

std::vector<InPlaceOperand> in_place_operands(const Module& m, InstId i) {
  std::vector<InPlaceOperand> out;
  auto direct = [&](InstId of) -> size_t {
    if (m.op(of) == Opcode::DynamicUpdateSlice) return 1;
    return m.op(of) == Opcode::Scatter ? (m.operand_count(of) - 1) / 2 : 0;
  };
  if (m.op(i) != Opcode::Fusion) {
    for (size_t n = 0; n < direct(i); ++n) out.push_back({n, i, n});
    return out;
  }
  const InstId root = m.comp(m.called(i)[0]).root;
  std::vector<InstId> results = {root};
  if (m.op(root) == Opcode::Tuple) results.assign(m.operands(root).begin(), m.operands(root).end());
  for (size_t k = 0; k < results.size(); ++k)
    for (size_t n = 0; n < direct(results[k]); ++n) {
      InstId o = m.operand(results[k], n);
      if (m.op(o) == Opcode::Bitcast) o = m.operand(o, 0);
      if (m.op(o) == Opcode::Parameter) out.push_back({static_cast<size_t>(m.parameter_number(o)), results[k], k + n});
    }
  return out;
}

bool is_elementwise_on(const Module& m, InstId i, size_t operand) {
  if (m.op(i) == Opcode::DynamicUpdateSlice) return operand == 0;
  return m.op(i) != Opcode::Fusion && m.op(i) != Opcode::Copy && is_elementwise(m, i);
}

namespace {

ShapeId part_of(const Universe& u, ShapeId shape, const Dims& index) {
  for (int64_t k : index) shape = u[shape].elements[static_cast<size_t>(k)];
  return shape;
}

bool reads_once(const Module& m, InstId user, InstId operand) {
  auto ops = m.operands(user);
  return std::count(ops.begin(), ops.end(), operand) == 1;
}

// Whether a fusion's kernel reads each element of one operand before it writes what lies there, and in no other place:
// all that comes of the parameter goes element by element to that one result.
class FusedWay {
 public:
  FusedWay(const Module& m, InstId fusion, InstId parameter, const Dims& index, const GpuTarget& target)
      : m_(m), fusion_(fusion), parameter_(parameter), root_(m.comp(m.called(fusion)[0]).root), output_(root_) {
    for (int64_t k : index)
      if (m.op(output_) == Opcode::Tuple) output_ = m.operand(output_, static_cast<size_t>(k));
    changed_ = output_;
    if (m.op(changed_) == Opcode::Bitcast) changed_ = m.operand(changed_, 0);
    const FusionView view(m, fusion);
    const FusionAnalysis analysis = analyze_fusion(view, target);
    if (analysis.kind == EmitterKind::kReduction)
      for (size_t k = 0; k < analysis.heroes.size() && !reduction_.valid(); ++k)
        if (is_reduction_hero(m, analysis.roots[k], analysis.heroes[k], target)) reduction_ = analysis.heroes[k];
    for (size_t k = 0; k < analysis.heroes.size(); ++k)
      if (m.op(analysis.heroes[k]) == Opcode::Transpose || m.op(analysis.heroes[k]) == Opcode::Copy)
        moved_.insert(analysis.roots[k]);
  }

  bool open() {
    std::vector<InstId> queue = {parameter_};
    std::unordered_set<InstId> seen = {parameter_};
    std::vector<InstId> others;
    bool found = false;
    for (size_t k = 0; k < queue.size(); ++k) {
      const InstId at = queue[k];
      if (at == output_) {
        found = true;
        if (m_.user_count(at) > 1) return false;  // read on while it is written
      } else if (is_result(at)) {
        others.push_back(at);
      }
      if (at == reduction_) continue;  // it reads all before anything is written
      for (InstId user : m_.users(at)) {
        if (user == root_ && m_.op(user) == Opcode::Tuple) continue;
        if (!step(at, user)) return false;
        if (seen.insert(user).second) queue.push_back(user);
      }
    }
    if (!found && reduction_.valid() && seen.contains(reduction_)) found = behind_reduction();
    if (others.empty()) return found;
    // Another result is made of the same elements: both must go through them in one order.
    if (m_.operand_count(output_) == 0 || !is_elementwise_on(m_, output_, 0)) return false;
    if (moved_.contains(output_)) return false;
    return found && std::none_of(others.begin(), others.end(), [&](InstId r) { return moved_.contains(r); });
  }

 private:
  bool is_result(InstId i) const {
    if (i == root_) return true;
    if (m_.op(root_) != Opcode::Tuple) return false;
    auto results = m_.operands(root_);
    return std::find(results.begin(), results.end(), i) != results.end();
  }
  bool behind_reduction() const {
    std::vector<InstId> queue = {reduction_};
    std::unordered_set<InstId> seen = {reduction_};
    for (size_t k = 0; k < queue.size(); ++k) {
      if (queue[k] == output_) return true;
      for (InstId user : m_.users(queue[k]))
        if (seen.insert(user).second) queue.push_back(user);
    }
    return false;
  }
  bool step(InstId at, InstId user) const {
    if (user == reduction_) return true;
    const Opcode op = m_.op(user);
    if (op == Opcode::Bitcast) return true;
    if (m_.op(changed_) == Opcode::DynamicUpdateSlice) {
      // The slice that will be overwritten may be read, and be the new one.
      if (op == Opcode::DynamicSlice && m_.operand(user, 0) == m_.operand(changed_, 0) && m_.operand(user, 0) == at) {
        if (m_.shape_id(user) != m_.shape_id(m_.operand(changed_, 1))) return false;
        for (size_t n = 1; n < m_.operand_count(user); ++n)
          if (m_.operand(user, n) != m_.operand(changed_, n + 1)) return false;
        return reads_once(m_, user, at);
      }
      if (user == changed_) return (m_.operand(user, 0) == at || m_.operand(user, 1) == at) && reads_once(m_, user, at);
    }
    if (user == changed_ && (op == Opcode::Scatter || op == Opcode::Sort))
      return m_.operand(user, 0) == at && reads_once(m_, user, at);
    auto ops = m_.operands(user);
    for (size_t n = 0; n < ops.size(); ++n)
      if (ops[n] == at && !is_elementwise_on(m_, user, n)) return false;
    return true;
  }

  const Module& m_;
  const InstId fusion_, parameter_, root_;
  InstId output_, changed_;  // the result, and what a bitcast makes it of
  InstId reduction_;
  std::unordered_set<InstId> moved_;  // results whose kernel turns what it reads
};

bool same_room(const Universe& u, ShapeId a, ShapeId b) {
  if (a == b) return true;
  const Shape &x = u[a], &y = u[b];
  return x.is_array() && y.is_array() && x.elements_count() == y.elements_count() &&
         type_bits(x.type) == type_bits(y.type);
}

bool declared_alias(const Module& m, InstId user, InstId operand, const Dims& operand_index, const Dims& user_index) {
  const AttrSet& a = m.attrs(user);
  if (!a.has(Attr::output_to_operand_aliasing)) return false;
  for (const AliasEntry& e : parse_aliases(m.u().text(a.text(Attr::output_to_operand_aliasing))))
    if (e.output == user_index && e.index == operand_index && e.number >= 0 &&
        static_cast<size_t>(e.number) < m.operand_count(user) &&
        m.operand(user, static_cast<size_t>(e.number)) == operand)
      return true;
  return false;
}

}  // namespace

bool can_share_buffer(const Module& m, InstId operand, const Dims& operand_index, InstId user, const Dims& user_index,
                      const GpuTarget& target) {
  if (m.op(operand) == Opcode::Constant) return false;
  const Universe& u = m.u();
  const ShapeId from = part_of(u, m.shape_id(operand), operand_index), to = part_of(u, m.shape_id(user), user_index);
  if (declared_alias(m, user, operand, operand_index, user_index)) return true;
  auto ops = m.operands(user);
  if (from == to && operand_index.empty())
    for (const InPlaceOperand& p : in_place_operands(m, user)) {
      const bool there = user_index.empty() ? p.result == 0
                                            : user_index.size() == 1 && user_index[0] == static_cast<int64_t>(p.result);
      if (there && ops[p.operand] == operand) return true;
    }
  if (m.op(user) == Opcode::Fusion) {
    if (!same_room(u, from, to) || !operand_index.empty() || !reads_once(m, user, operand)) return false;
    const size_t n = static_cast<size_t>(std::find(ops.begin(), ops.end(), operand) - ops.begin());
    return FusedWay(m, user, m.comp(m.called(user)[0]).params[n], user_index, target).open();
  }
  if (from != to) return false;
  switch (m.op(user)) {
    case Opcode::AllReduce:
      return true;
    case Opcode::While:
    case Opcode::Conditional:
      return user_index == operand_index;
    case Opcode::TriangularSolve:
      return ops[1] == operand && reads_once(m, user, operand);
    case Opcode::Sort:
      // Each array is sorted where it is, if nobody else looks at it meanwhile.
      return m.user_count(operand) == 1 && reads_once(m, user, operand) &&
             (user_index.empty() ? ops[0] == operand : ops[static_cast<size_t>(user_index[0])] == operand);
    case Opcode::CustomCall:
    case Opcode::Scatter:
    case Opcode::DynamicUpdateSlice:
      return false;
    default:
      for (size_t n = 0; n < ops.size(); ++n)
        if (ops[n] == operand && !is_elementwise_on(m, user, n)) return false;
      return is_elementwise(m, user);
  }
}

}  // namespace hlo
