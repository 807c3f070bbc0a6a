// layout-assignment-2019, a reduced form of it: every array gets a layout. Arrays take the default
// layout but where something demands another one: the entry's stated layouts, cuDNN calls (NCHW),
// operand_layout_constraints. Elementwise operations carry a demanded layout on; copies are inserted where two demands
// meet.
#include <algorithm>
#include <unordered_map>

#include "ir/library/cudnn.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

class LayoutAssigner2019 {
 public:
  LayoutAssigner2019(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    for (CompId c : m_.nonfusion_computations()) computation(c);
    const Computation& entry = m_.comp(m_.entry());
    std::vector<ShapeId> params = m_.config().entry_params;
    for (size_t i = 0; i < entry.params.size(); ++i) params[i] = m_.shape_id(entry.params[i]);
    m_.set_entry_layout(std::move(params), m_.shape_id(entry.root));
    return changed_;
  }

 private:
  static Dims channels_first(int64_t batch, int64_t feature, const Dims& spatial) {
    Dims major{batch, feature};
    major.insert(major.end(), spatial.begin(), spatial.end());
    std::reverse(major.begin(), major.end());
    return major;
  }

  ShapeId laid_out(ShapeId s, const Layout& layout) {
    Shape out = u_[s];
    out.layout.minor_to_major = layout.minor_to_major;
    return u_.shape(std::move(out));
  }
  void shape(InstId i, ShapeId s) {
    if (m_.shape_id(i) == s) return;
    m_.set_shape(i, s);
    changed_ = true;
  }
  static bool free_to_choose(const Module& m, InstId i) {
    Opcode op = m.op(i);
    return (op == Opcode::Broadcast || op == Opcode::Iota) && m.user_count(i) == 1;
  }
  // Operand n of i in the wanted shape: re-laid where nobody else looks, else copied.
  void demand(InstId i, size_t n, ShapeId wanted) {
    InstId o = m_.operand(i, n);
    if (m_.shape_id(o) == wanted) return;
    if (u_[wanted].is_tuple()) {
      std::vector<InstId> parts;
      for (size_t k = 0; k < u_[wanted].elements.size(); ++k) {
        InstId part = make_element(m_, o, static_cast<int64_t>(k));
        if (m_.shape_id(part) != u_[wanted].elements[k]) part = copy(part, u_[wanted].elements[k]);
        parts.push_back(part);
      }
      m_.set_operand(i, n, make(m_, m_.parent(i), Opcode::Tuple, parts));
      changed_ = true;
      return;
    }
    if (!u_[wanted].is_array()) return;
    if (free_to_choose(m_, o)) {
      shape(o, wanted);
      return;
    }
    m_.set_operand(i, n, copy(o, wanted));
    changed_ = true;
  }
  InstId copy(InstId of, ShapeId wanted) {
    ctx_.note(m_, "copy for layout", {of}, u_.shape_text(wanted));
    // One copy an array and layout.
    auto [at, fresh] = copies_.try_emplace(static_cast<uint64_t>(of.value) << 32 | wanted.value);
    if (fresh || !m_.alive(at->second))
      at->second = m_.add(m_.parent(of), {.op = Opcode::Copy, .shape = wanted, .operands = {of}, .meta = m_[of].meta});
    return at->second;
  }

  void computation(CompId c) {
    bool entry = c == m_.entry();
    for (InstId i : m_.post_order(c)) {
      const Shape s = m_.shape(i);
      Opcode op = m_.op(i);
      ShapeId plain = u_.with_default_layout(m_.shape_id(i));
      switch (op) {
        case Opcode::Parameter:
          shape(i, entry ? m_.config().entry_params[static_cast<size_t>(m_.parameter_number(i))] : plain);
          break;
        case Opcode::GetTupleElement:
          shape(i, m_.shape(m_.operand(i, 0)).elements[static_cast<size_t>(m_.attrs(i).integer(Attr::index))]);
          break;
        case Opcode::Tuple: {
          std::vector<ShapeId> parts;
          for (InstId o : m_.operands(i)) parts.push_back(m_.shape_id(o));
          shape(i, u_.tuple(parts));
          break;
        }
        case Opcode::OptBarrier:
        case Opcode::Domain:
          shape(i, m_.shape_id(m_.operand(i, 0)));
          break;
        case Opcode::While:
        case Opcode::Call:
        case Opcode::Conditional:
        case Opcode::Fusion: {
          // Callees come first in this walk; their parameters have default layouts.
          size_t first = op == Opcode::Conditional ? 1 : 0;
          for (size_t n = first; n < m_.operand_count(i); ++n)
            demand(i, n, u_.with_default_layout(m_.shape_id(m_.operand(i, n))));
          for (CompId callee : m_.called(i))
            root(callee, plain, op == Opcode::While && callee == m_.attrs(i).comp(Attr::condition));
          shape(i, plain);
          break;
        }
        case Opcode::CustomCall:
          custom_call(i);
          break;
        case Opcode::Bitcast:
          break;
        default:
          if ((keeps_layout(op) || op == Opcode::Copy) && s.is_array() && s.rank() > 1)
            elementwise(i);
          else
            shape(i, plain);
      }
    }
    if (entry) root(c, m_.config().entry_result, false);
  }

  void root(CompId c, ShapeId wanted, bool skip) {
    if (skip) return;
    InstId r = m_.comp(c).root;
    if (m_.shape_id(r) == wanted) return;
    if (u_[wanted].is_tuple()) {
      std::vector<InstId> parts;
      for (size_t k = 0; k < u_[wanted].elements.size(); ++k) {
        InstId part = m_.op(r) == Opcode::Tuple ? m_.operand(r, k) : make_element(m_, r, static_cast<int64_t>(k));
        parts.push_back(m_.shape_id(part) == u_[wanted].elements[k] || !u_[m_.shape_id(part)].is_array()
                            ? part
                            : copy(part, u_[wanted].elements[k]));
      }
      InstId fresh = make(m_, c, Opcode::Tuple, parts);
      m_.set_meta(fresh, m_[r].meta);
      m_.set_root(c, fresh);
      if (m_.op(r) == Opcode::Tuple && m_.users(r).empty()) m_.remove(r);
      changed_ = true;
    } else if (u_[wanted].is_array()) {
      m_.set_root(c, copy(r, wanted));
      changed_ = true;
    }
  }

  void custom_call(InstId i) {
    const AttrSet& a = m_.attrs(i);
    if (const auto* wanted = a.get<std::vector<ShapeId>>(Attr::operand_layout_constraints)) {
      std::vector<ShapeId> list = *wanted;
      for (size_t n = 0; n < list.size() && n < m_.operand_count(i); ++n) demand(i, n, list[n]);
      return;
    }
    std::string_view target = u_.text(a.text(Attr::custom_call_target));
    // No verifier asks whether such a call has labels.
    if (target != "__cudnn$convForward" || !is_cudnn_convolution_of_fitting_ranks(m_, i)) {
      shape(i, u_.with_default_layout(m_.shape_id(i)));
      return;
    }
    DimLabels d = *a.get<DimLabels>(Attr::dim_labels);
    auto in = [&](InstId o, const Dims& order) {
      return u_.with_layout(u_.with_default_layout(m_.shape_id(o)), order);
    };
    demand(i, 0, in(m_.operand(i, 0), channels_first(d.input_batch, d.input_feature, d.input_spatial)));
    demand(i, 1, in(m_.operand(i, 1), channels_first(d.kernel_output, d.kernel_input, d.kernel_spatial)));
    std::vector<ShapeId> parts = m_.shape(i).elements;
    parts[0] = u_.with_layout(u_.with_default_layout(parts[0]),
                              channels_first(d.output_batch, d.output_feature, d.output_spatial));
    shape(i, u_.tuple(parts));
  }

  void elementwise(InstId i) {
    // The first operand with a layout of its own decides.
    Layout layout = u_[u_.with_default_layout(m_.shape_id(i))].layout;
    for (InstId o : m_.operands(i)) {
      const Shape& s = m_.shape(o);
      if (s.is_array() && s.rank() == m_.shape(i).rank() && !is_default_layout(s.layout) && s.layout.rest.empty()) {
        layout = s.layout;
        break;
      }
    }
    for (size_t n = 0; n < m_.operand_count(i); ++n) {
      const Shape& s = m_.shape(m_.operand(i, n));
      if (s.is_array() && s.rank() == m_.shape(i).rank()) demand(i, n, laid_out(m_.shape_id(m_.operand(i, n)), layout));
    }
    shape(i, laid_out(u_.with_default_layout(m_.shape_id(i)), layout));
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  std::unordered_map<uint64_t, InstId> copies_;
  bool changed_ = false;
};

}  // namespace

bool run_layout_assignment_2019(Module& m, PassContext& ctx) { return LayoutAssigner2019(m, ctx).run(); }

}  // namespace hlo
