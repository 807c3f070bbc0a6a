#include "gpu_exec/lower/row_groups.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "gpu_exec/emit/kernel.h"
#include "ir/base/check.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr int64_t kLeastRowLength = 32, kLeastGroupRows = 16;
// A row is one block's on a GPU: longer ones want many rows.
constexpr int64_t kLong = 65536, kManyRows = 128;
constexpr size_t kMostReduces = 4, kMostInFront = 12, kMostMembers = 96;

class Groups {
 public:
  Groups(Module& m, CompId comp) : m_(m), u_(m.u()), comp_(comp) {}

  void run() {
    std::vector<InstId> order = m_.post_order(comp_);
    for (size_t k = 0; k < order.size(); ++k)
      if (!taken_.contains(order[k]) && m_.op(order[k]) == Opcode::Reduce) group(order, k);
  }

 private:
  bool plain(ShapeId s) const { return !u_[s].has_layout || is_default_layout(u_[s].layout); }

  // The shape whose rows are summed, of the reduction that a group begins with.
  bool begins(InstId reduce) {
    const Shape& s = m_.shape(reduce);
    if (!s.is_array() || m_.operand_count(reduce) != 2) return false;
    const Shape& in = m_.shape(m_.operand(reduce, 0));
    dims_ = in.dims, kept_ = in.dims.size() - m_.attrs(reduce).ints(Attr::dimensions).size();
    int64_t rows = 1, length = 1;
    for (size_t k = 0; k < dims_.size(); ++k) (k < kept_ ? rows : length) *= dims_[k];
    return length >= kLeastRowLength && rows >= (length > kLong ? kManyRows : kLeastGroupRows) && fits(reduce);
  }
  bool is_row(const Dims& d) const {
    return d.size() >= kept_ && std::equal(dims_.begin(), dims_.begin() + static_cast<ptrdiff_t>(kept_), d.begin()) &&
           std::all_of(d.begin() + static_cast<ptrdiff_t>(kept_), d.end(), [](int64_t x) { return x == 1; });
  }
  // May it stand behind a reduction of the group? As row_fusion() asks.
  bool fits(InstId i) const {
    const Shape& s = m_.shape(i);
    Opcode op = m_.op(i);
    if (!s.is_array() || s.is_dynamic() || m_.has_control(i) || !plain(m_.shape_id(i))) return false;
    for (InstId o : m_.operands(i))
      if (!m_.shape(o).is_array() || m_.shape(o).is_dynamic() || !plain(m_.shape_id(o))) return false;
    if (op == Opcode::Reduce) {
      const Dims& over = m_.attrs(i).ints(Attr::dimensions);
      return m_.operand_count(i) == 2 && m_.shape(m_.operand(i, 0)).dims == dims_ &&
             over.size() == dims_.size() - kept_ &&
             std::all_of(over.begin(), over.end(), [&](int64_t d) { return static_cast<size_t>(d) >= kept_; });
    }
    if (s.dims != dims_ && !is_row(s.dims)) return false;
    if (op == Opcode::Broadcast) {
      const Dims& to = m_.attrs(i).ints(Attr::dimensions);
      for (size_t k = 0; k < to.size(); ++k)
        if (to[k] != static_cast<int64_t>(k)) return false;
      return is_row(m_.shape(m_.operand(i, 0)).dims);
    }
    if (op == Opcode::Reshape) {
      const Dims& from = m_.shape(m_.operand(i, 0)).dims;
      return from == s.dims || (is_row(from) && is_row(s.dims));
    }
    return op_info(op).elementwise && type_bits(s.type) >= 8;
  }
  // Work that may be done again for every reduction: no calls of mathematical functions.
  bool cheap(InstId i) const {
    const Shape& s = m_.shape(i);
    if (!s.is_array() || s.is_dynamic() || s.dims != dims_ || m_.has_control(i) || !plain(m_.shape_id(i))) return false;
    switch (m_.op(i)) {
      case Opcode::Add:
      case Opcode::Subtract:
      case Opcode::Multiply:
      case Opcode::Negate:
      case Opcode::Abs:
      case Opcode::Maximum:
      case Opcode::Minimum:
      case Opcode::Select:
      case Opcode::Compare:
      case Opcode::Convert:
      case Opcode::And:
      case Opcode::Or:
      case Opcode::Not:
        break;
      case Opcode::Broadcast:
        return plain(m_.shape_id(m_.operand(i, 0)));
      default:
        return false;
    }
    for (InstId o : m_.operands(i))
      if (m_.shape(o).dims != s.dims || type_bits(m_.shape(o).type) < 8 || !plain(m_.shape_id(o))) return false;
    return type_bits(s.type) >= 8;
  }
  // What every fusion that reads it gets for its own: constants and what is made of one.
  bool copied(InstId i) const {
    return (m_.op(i) == Opcode::Constant && m_.shape(i).is_scalar()) || is_broadcast_of_scalar_constant(m_, i);
  }

  void group(const std::vector<InstId>& order, size_t start) {
    if (!begins(order[start])) return;
    std::vector<InstId> members{order[start]};
    std::unordered_set<InstId> in{order[start]}, behind;  // behind: depends on the group and is not of it
    size_t reduces = 1;
    bool inner = false;
    for (size_t k = start + 1; k < order.size() && members.size() < kMostMembers; ++k) {
      InstId i = order[k];
      if (taken_.contains(i)) continue;
      bool reads = false, late = false;
      for (InstId o : m_.operands(i)) reads |= in.contains(o), late |= behind.contains(o);
      if (!reads && !late) continue;
      bool reduce = m_.op(i) == Opcode::Reduce;
      if (late || !reads || !fits(i) || (reduce && (in.contains(m_.operand(i, 1)) || reduces == kMostReduces))) {
        behind.insert(i);
        continue;
      }
      reduces += reduce;
      inner |= m_.shape(i).dims == dims_;
      members.push_back(i), in.insert(i);
    }
    if (!inner) return;
    // In front: what does not depend on it and nobody else reads, the last first.
    size_t front = 0;
    for (size_t k = order.size(); k-- > 0 && front < kMostInFront;) {
      InstId i = order[k];
      if (in.contains(i) || behind.contains(i) || taken_.contains(i) || m_.is_root(i) || copied(i) || !cheap(i))
        continue;
      auto users = m_.users(i);
      if (users.empty()) continue;
      if (std::all_of(users.begin(), users.end(), [&](InstId user) { return in.contains(user); }))
        ++front, in.insert(i);
    }
    std::vector<InstId> all;
    for (InstId i : order)
      if (in.contains(i)) all.push_back(i);
    outline(all, in);
  }

  void outline(const std::vector<InstId>& all, const std::unordered_set<InstId>& in) {
    CompId body = m_.add_computation("fused_rows");
    std::unordered_map<InstId, InstId> inside;
    std::vector<InstId> operands, outputs;
    auto value = [&](auto&& self, InstId o) -> InstId {
      if (auto known = inside.find(o); known != inside.end()) return known->second;
      if (copied(o)) {
        std::vector<InstId> own;
        for (InstId x : m_.operands(o)) own.push_back(self(self, x));
        return inside[o] = m_.clone_inst(o, body, own);
      }
      auto number = static_cast<uint32_t>(operands.size());
      operands.push_back(o);
      return inside[o] = m_.add(body, {Opcode::Parameter, m_.shape_id(o), {}, {}, {}, "p", number});
    };
    for (InstId i : all) {
      std::vector<InstId> own;
      for (InstId o : std::vector<InstId>(m_.operands(i).begin(), m_.operands(i).end())) own.push_back(value(value, o));
      inside[i] = m_.clone_inst(i, body, own);
      auto users = m_.users_copy(i);
      if (m_.is_root(i) || std::any_of(users.begin(), users.end(), [&](InstId user) { return !in.contains(user); }))
        outputs.push_back(i);
    }
    InstId root = inside.at(outputs[0]);
    if (outputs.size() > 1) {
      std::vector<InstId> parts;
      for (InstId o : outputs) parts.push_back(inside.at(o));
      root = make(m_, body, Opcode::Tuple, parts);
    }
    m_.set_root(body, root);
    AttrsId attrs = attrs_of(u_, Opcode::Fusion, {{Attr::kind, u_.str("kCustom")}, {Attr::calls, body}});
    InstId fusion =
        m_.add(comp_, {Opcode::Fusion, m_.shape_id(root), operands, attrs, m_[all.back()].meta, "row_fusion"});
    HLO_CHECK(row_fusion(m_, fusion), "{} is no row fusion", m_.inst_name(fusion));
    for (size_t k = 0; k < outputs.size(); ++k) {
      InstId v = outputs.size() > 1 ? make_element(m_, fusion, static_cast<int64_t>(k)) : fusion;
      bool root_of_all = m_.is_root(outputs[k]);
      m_.replace_all_uses(outputs[k], v);
      if (root_of_all) m_.set_root(comp_, v);
    }
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
      taken_.insert(*at);
      m_.remove(*at);
    }
  }

  Module& m_;
  Universe& u_;
  CompId comp_;
  Dims dims_;
  size_t kept_ = 0;
  std::unordered_set<InstId> taken_;
};

}  // namespace

void fuse_row_groups(Module& m) {
  std::vector<CompId> comps = m.nonfusion_computations();
  for (CompId c : comps) {
    Groups(m, c).run();
    m.cleanup();
  }
}

}  // namespace hlo
