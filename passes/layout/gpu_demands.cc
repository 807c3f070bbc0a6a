#include <algorithm>
#include <array>
#include <unordered_set>

#include "ir/analysis/fusion/fusion_view.h"
#include "passes/layout/propagation.h"

namespace hlo {

namespace {
class GpuDemands {
 public:
  GpuDemands(LayoutPropagation& p, CompId c) : p_(p), m_(p.module()), c_(c) {}

  // From the last to the first: what the earliest asks is spread first.
  void run() {
    std::vector<InstId> order = m_.post_order(c_);
    find_packed(order);
    for (auto i = order.rbegin(); i != order.rend(); ++i) instruction(*i);
  }

 private:
  const Shape& operand_shape(InstId i, size_t n) const { return m_.shape(m_.operand(i, n)); }
  const Dims& order(InstId i) const { return m_.shape(i).layout.minor_to_major; }
  void operand(InstId i, size_t n, const Dims& order) { p_.set_operand(i, n, {p_.orders().id(order)}); }
  void result(InstId i, const Dims& order) { p_.set_instruction(i, {p_.orders().id(order)}); }
  void part(InstId i, size_t element, const Dims& order) {
    const Shape& s = m_.shape(i);
    if (s.is_array()) return p_.set_buffer(p_.points().of(i)[0], p_.orders().id(order));
    if (element >= s.elements.size() || !m_.u()[s.elements[element]].is_array()) return;
    if (m_.u()[s.elements[element]].dims.size() != order.size()) return;
    p_.set_buffer(p_.points().of(i)[p_.points().nodes().child(m_.shape_id(i), element)], p_.orders().id(order));
  }
  void all_by_default(InstId i) {
    for (size_t n = 0; n < m_.operand_count(i); ++n)
      p_.set_operand(i, n, p_.orders_in(m_.u().with_default_layout(m_.shape_id(m_.operand(i, n)))));
    p_.set_instruction(i, p_.orders_in(m_.u().with_default_layout(m_.shape_id(i))));
  }

  void instruction(InstId i) {
    const AttrSet& a = m_.attrs(i);
    switch (m_.op(i)) {
      case Opcode::CustomCall:
        return custom_call(i);
      case Opcode::Dot:
        return dot(i);
      case Opcode::Transpose:
        return transposed_dot(i);
      case Opcode::Fft:
      case Opcode::RaggedDot:
        return all_by_default(i);
      case Opcode::Sort:
        return sort(i);
      case Opcode::BitcastConvert:
        return bitcast_convert(i);
      case Opcode::TriangularSolve: {
        const Shape& s = m_.shape(i);
        Dims fortran = default_minor_to_major(s.rank());
        if (fortran.size() < 2) return;
        std::swap(fortran[0], fortran[1]);
        for (size_t n = 0; n < 2; ++n) operand(i, n, fortran);
        return result(i, fortran);
      }
      case Opcode::ReduceScatter:
      case Opcode::AllGather:
      case Opcode::AllToAll:
        if (m_.shape(i).is_array() && !a.ints(Attr::dimensions).empty())
          result(i, with_major(order(i), a.ints(Attr::dimensions)[0]));
        return;
      case Opcode::RaggedAllToAll:
        if (m_.shape(i).is_array() && m_.shape(i).rank() > 0) result(i, with_major(order(i), 0));
        return;
      case Opcode::Recv:
        return p_.set_instruction(i, p_.orders_in(m_.u().with_default_layout(m_.shape_id(i))));
      case Opcode::Send: {
        InstId o = m_.operand(i, 0);  // a copy, made for this
        if (m_.op(o) != Opcode::Copy || !m_.shape(o).is_array()) return;
        result(o, default_minor_to_major(m_.shape(o).rank()));
        return operand(o, 0, default_minor_to_major(m_.shape(o).rank()));
      }
      default:
        return;
    }
  }

  // --- calls ---

  struct Conv {
    Dims input, filter, output;
  };
  // Where the channels lie: at the minor end (NHWC) or behind the batch (NCHW).
  Conv conv_orders(InstId i) const {
    const DimLabels& d = *m_.attrs(i).get<DimLabels>(Attr::dim_labels);
    const Shape& in = operand_shape(i, 0);
    const bool integer = is_integral(in.type);
    const auto vector = integer && in.type == ElementType::S8 && d.input_spatial.size() == 2 && in.rank() == 5;
    bool minor = true;
    if (!integer && !is_float8(in.type)) {
      const bool half = in.type == ElementType::F16 || in.type == ElementType::BF16;
      minor = p_.capability() >= 90 ? in.type != ElementType::F64 && d.input_spatial.size() <= 2
                                    : half && p_.capability() >= 70 && d.out_rank == 4;
    }
    auto major_to_minor = [&](int64_t outer, int64_t channels, const Dims& spatial, int rank) {
      Dims list{outer};
      if (!minor || vector) list.push_back(channels);
      list.insert(list.end(), spatial.begin(), spatial.end());
      if (minor && !vector) list.push_back(channels);
      for (int64_t k = 0; k < rank; ++k)  // the vector's
        if (!contains(list, k)) list.push_back(k);
      return order_of_major_to_minor(list);
    };
    return {major_to_minor(d.input_batch, d.input_feature, d.input_spatial, d.lhs_rank),
            major_to_minor(d.kernel_output, d.kernel_input, d.kernel_spatial, d.rhs_rank),
            major_to_minor(d.output_batch, d.output_feature, d.output_spatial, d.out_rank)};
  }
  static bool is_float8(ElementType t) { return is_float(t) && type_bits(t) == 8; }

  void convolution(InstId i, std::string_view target) {
    const Conv conv = conv_orders(i);
    // The labels name input, filter and output, whichever of them are operands.
    const bool of_input = target == "__cudnn$convBackwardInput", of_filter = target == "__cudnn$convBackwardFilter";
    const Dims& lhs = of_input ? conv.output : conv.input;
    const Dims& rhs = of_filter ? conv.output : conv.filter;
    const Dims& out = of_input ? conv.input : of_filter ? conv.filter : conv.output;
    if (lhs.size() != operand_shape(i, 0).dims.size() || rhs.size() != operand_shape(i, 1).dims.size()) return;
    operand(i, 0, lhs);
    operand(i, 1, rhs);
    part(i, 0, out);
    const bool graph = target == "__cudnn$convForwardGraph";
    for (size_t n = graph ? 2 : 3; n < m_.operand_count(i); ++n)
      if (operand_shape(i, n).is_array() && operand_shape(i, n).dims.size() == out.size() && !out.empty())
        operand(i, n, out);
  }

  void custom_call(InstId i) {
    std::string_view target = m_.u().text(m_.attrs(i).text(Attr::custom_call_target));
    if (target.starts_with("__cudnn$conv")) {
      if (m_.attrs(i).get<DimLabels>(Attr::dim_labels) && m_.operand_count(i) >= 2) convolution(i, target);
    } else if (target == "__gpu$TopK") {
      for (size_t k = 0; k < 2; ++k) part(i, k, default_minor_to_major(operand_shape(i, 0).rank()));
    } else if (target == "MoveToHost" || target == "MoveToDevice" || target == "annotate_device_placement") {
      all_by_default(i);
    } else if (target == "__cub$DeviceRadixSortUnassignedScratchSize") {
      sort(i);
    }
  }

  void sort(InstId i) {
    if (!m_.operand_count(i) || operand_shape(i, 0).rank() <= 1) return;
    const Dims keys = default_minor_to_major(operand_shape(i, 0).rank());
    for (size_t n = 0; n < m_.operand_count(i); ++n) {
      operand(i, n, keys);
      part(i, n, keys);
    }
  }

  void bitcast_convert(InstId i) {
    const Shape &in = operand_shape(i, 0), &out = m_.shape(i);
    if (in.rank() == out.rank()) return;
    const Shape& larger = in.rank() > out.rank() ? in : out;
    const auto last = static_cast<int64_t>(larger.dims.size()) - 1;
    const Dims wide = with_minor(larger.layout.minor_to_major, last);
    const Dims narrow(wide.begin() + 1, wide.end());
    operand(i, 0, &larger == &in ? wide : narrow);
    result(i, &larger == &in ? narrow : wide);
  }

  // --- dots ---

  // What comes of elements of less than a byte by operations of one operand, or elementwise ones of two: several such
  // elements share a byte, and a dot reads them one by one unless they follow each other along what it contracts.
  void find_packed(const std::vector<InstId>& order) {
    if (m_.count(Opcode::Dot) == 0) return;
    for (InstId i : order) {
      const Shape& s = m_.shape(i);
      const size_t operands = m_.operand_count(i);
      bool is = s.is_array() && element_bits(s.type) < 8;
      if (!is && (operands == 1 || (operands == 2 && op_info(m_.op(i)).elementwise)))
        for (InstId o : m_.operands(i)) is |= packed_.contains(o);
      if (is) packed_.insert(i);
    }
  }

  struct Side {
    Dims batch, contracting, other;
  };
  Side side(InstId i, size_t n) const {
    const AttrSet& a = m_.attrs(i);
    Side s{a.ints(n ? Attr::rhs_batch_dims : Attr::lhs_batch_dims),
           a.ints(n ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims),
           {}};
    for (int64_t d = 0; d < operand_shape(i, n).rank(); ++d)
      if (!contains(s.batch, d) && !contains(s.contracting, d)) s.other.push_back(d);
    return s;
  }
  // Can a dot write its result so?
  bool can_write(InstId dot, const Dims& order) const {
    const Side lhs = side(dot, 0), rhs = side(dot, 1);
    Dims batch, rows, columns;
    int64_t at = 0;
    for (size_t k = 0; k < lhs.batch.size(); ++k) batch.push_back(at++);
    for (size_t k = 0; k < lhs.other.size(); ++k) rows.push_back(at++);
    for (size_t k = 0; k < rhs.other.size(); ++k) columns.push_back(at++);
    return order.size() == static_cast<size_t>(at) && is_matrix_order(order, batch, rows, columns);
  }
  static Dims in_groups(const Dims& a, const Dims& b, const Dims& c) {
    Dims list = a;
    list.insert(list.end(), b.begin(), b.end());
    list.insert(list.end(), c.begin(), c.end());
    return order_of_major_to_minor(list);
  }

  void dot(InstId i) {
    if (m_.operand_count(i) != 2) return;  // sparse
    const std::array<Side, 2> sides{side(i, 0), side(i, 1)};
    const ElementType l = operand_shape(i, 0).type, r = operand_shape(i, 1).type;
    auto narrow = [](ElementType t) { return t == ElementType::F8E4M3FN || t == ElementType::F8E5M2FNUZ; };
    const bool minor_contracting = (l == ElementType::S8 && r == l && m_.shape(i).type == ElementType::S32) ||
                                   (narrow(l) && narrow(r) && p_.capability() < 100);
    for (size_t n = 0; n < 2; ++n) {
      const Side& s = sides[n];
      const Dims &lies = operand_shape(i, n).layout.minor_to_major,
                 plain = default_minor_to_major(operand_shape(i, n).rank());
      if (minor_contracting || packed_.contains(m_.operand(i, n))) {
        bool minor = lies.size() >= s.contracting.size();
        for (size_t k = 0; minor && k < s.contracting.size(); ++k) minor = contains(s.contracting, lies[k]);
        operand(i, n,
                minor && is_matrix_order(lies, s.batch, s.other, s.contracting)
                    ? lies
                    : in_groups(s.batch, s.other, s.contracting));
      } else if (!s.batch.empty() || s.contracting.size() > 1 || s.other.size() > 1) {
        auto fits = [&](const Dims& o) { return is_matrix_order(o, s.batch, s.contracting, s.other); };
        operand(i, n, fits(lies) ? lies : fits(plain) ? plain : in_groups(s.batch, s.contracting, s.other));
      }
    }
    if (sides[0].batch.empty() && sides[0].other.size() <= 1 && sides[1].other.size() <= 1) return;
    for (InstId user : m_.users(i))
      for (size_t n = 0; n < m_.operand_count(user); ++n) {
        if (m_.operand(user, n) != i) continue;
        const NodeOrders* wanted = p_.operand(user, n);
        if (wanted && can_write(i, p_.orders()[(*wanted)[0]])) return result(i, Dims(p_.orders()[(*wanted)[0]]));
      }
    result(i, default_minor_to_major(m_.shape(i).rank()));
  }

  void transposed_dot(InstId i) {
    const InstId o = m_.operand(i, 0);
    if (m_.op(o) != Opcode::Dot || m_.operand_count(o) != 2 || m_.user_count(o) > 1) return;
    const Dims wanted = order_of_major_to_minor(m_.attrs(i).ints(Attr::dimensions));
    if (can_write(o, wanted)) operand(i, 0, wanted);
  }

  LayoutPropagation& p_;
  const Module& m_;
  CompId c_;
  std::unordered_set<InstId> packed_;
};
}  // namespace

void add_gpu_demands(LayoutPropagation& p, CompId c) { GpuDemands(p, c).run(); }

}  // namespace hlo
