// dynamic_padder (xla/service/dynamic_padder.cc), for the part of dynamic shapes that it treats by itself: sizes set by
// set-dimension-size that pass through elementwise operations, broadcasts, transposes and slices of everything, and end
// in reductions, dots or get-dimension-size. A module with more than that is left alone with a note.
#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

namespace {

class Padder {
 public:
  Padder(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    bool changed = fold_static_sizes();
    std::vector<CompId> with;
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::SetDimensionSize || dynamic(m_.shape_id(i))) {
          with.push_back(c);
          break;
        }
    for (CompId c : with) {
      if (!treatable(c)) continue;
      if (!ctx_.spend(m_, "dynamic sizes as values", {m_.comp(c).root})) break;
      rewrite(c);
      changed = true;
    }
    // XLA gives every computation one caller here, since sizes are known by caller.
    if (changed) ctx_.run(m_, "flatten-call-graph");
    return changed;
  }

 private:
  bool dynamic(ShapeId id) const {
    const Shape& s = u_[id];
    if (s.is_tuple()) return std::any_of(s.elements.begin(), s.elements.end(), [&](ShapeId e) { return dynamic(e); });
    return s.is_dynamic();
  }

  //   get-dimension-size of a static dimension      →      constant
  bool fold_static_sizes() {
    bool changed = false;
    for (InstId i : all_of_opcode(m_, Opcode::GetDimensionSize)) {
      const Shape& s = m_.shape(m_.operand(i, 0));
      auto d = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
      if (s.is_dynamic() && s.dynamic[d]) continue;
      if (!ctx_.spend(m_, "static size", {i})) return changed;
      changed |= m_.replace(i, make_scalar(m_, m_.parent(i), ElementType::S32, s.dims[d]));
    }
    return changed;
  }

  bool treatable(CompId c) {
    auto no = [&](InstId i) {
      ctx_.note(m_, "dynamic shapes kept", {i}, "of an operation that is not treated here");
      return false;
    };
    if (dynamic(m_.shape_id(m_.comp(c).root))) return no(m_.comp(c).root);
    for (InstId i : m_.live_order(c)) {
      bool in =
          std::any_of(m_.operands(i).begin(), m_.operands(i).end(), [&](InstId o) { return dynamic(m_.shape_id(o)); });
      if (!in && !dynamic(m_.shape_id(i)) && m_.op(i) != Opcode::SetDimensionSize) continue;
      switch (m_.op(i)) {
        case Opcode::SetDimensionSize:
        case Opcode::GetDimensionSize:
        case Opcode::Broadcast:
        case Opcode::Transpose:
          break;
        case Opcode::Reduce:
          if (m_.operand_count(i) != 2) return no(i);
          break;
        case Opcode::Dot:
          break;
        default:
          if (!op_info(m_.op(i)).elementwise || !m_.called(i).empty()) return no(i);
      }
      if (m_.has_control(i)) return no(i);
    }
    return true;
  }

  ShapeId fixed(ShapeId id) const {
    Shape s = u_[id];
    s.dynamic.clear();
    return u_.shape(std::move(s));
  }

  using Sizes = std::map<size_t, InstId>;  // dimension → scalar

  // What lies behind the size becomes `value`.
  InstId padded(InstId x, const Sizes& sizes, const std::vector<size_t>& dims, InstId value) {
    CompId c = m_.parent(x);
    for (size_t d : dims) {
      auto at = sizes.find(d);
      if (at == sizes.end()) continue;
      ShapeId counter = u_.with_type(m_.shape_id(x), ElementType::S32), pred = u_.with_type(counter, ElementType::Pred);
      InstId iota = make(m_, c, Opcode::Iota, {},
                         attrs_of(u_, Opcode::Iota, {{Attr::iota_dimension, static_cast<int64_t>(d)}}), counter);
      InstId size = make_broadcast(m_, c, at->second, {}, counter);
      InstId inside = make(m_, c, Opcode::Compare, {iota, size},
                           attrs_of(u_, Opcode::Compare, {{Attr::direction, u_.str("LT")}}), pred);
      InstId other = make_broadcast(m_, c, value, {}, m_.shape_id(x));
      x = make(m_, c, Opcode::Select, {inside, x, other}, {}, m_.shape_id(x));
    }
    return x;
  }

  void rewrite(CompId c) {
    std::unordered_map<InstId, Sizes> sizes;
    for (InstId i : m_.post_order(c)) {
      Sizes out;
      switch (m_.op(i)) {
        case Opcode::SetDimensionSize: {
          InstId a = m_.operand(i, 0), n = m_.operand(i, 1);
          out = sizes[a];
          auto d = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
          // The whole of it is no limit.
          bool whole = is_scalar_constant(m_, n) && !m_.literal(n).elided &&
                       load_int(m_.shape(n).type, m_.literal(n).bytes.data()) == m_.shape(a).dims[d];
          if (whole)
            out.erase(d);
          else
            out[d] = n;
          // The array itself does not change; its size is known by another name from here on.
          InstId same = a;
          if (sizes.contains(a) || out != sizes[a]) {
            same = m_.user_count(a) == 1 ? a : make(m_, c, Opcode::Copy, {a}, {}, m_.shape_id(a));
          }
          m_.replace_all_uses(i, same);
          m_.remove(i);
          sizes[same] = out;
          continue;
        }
        case Opcode::GetDimensionSize: {
          const Sizes& of = sizes[m_.operand(i, 0)];
          auto d = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
          auto at = of.find(d);
          InstId value =
              at != of.end() ? at->second : make_scalar(m_, c, ElementType::S32, m_.shape(m_.operand(i, 0)).dims[d]);
          m_.replace(i, value);
          continue;
        }
        case Opcode::Broadcast: {
          const Dims map = m_.attrs(i).ints(Attr::dimensions);
          for (const auto& [d, n] : sizes[m_.operand(i, 0)]) out[static_cast<size_t>(map[d])] = n;
          break;
        }
        case Opcode::Transpose: {
          const Dims p = m_.attrs(i).ints(Attr::dimensions);
          const Sizes of = sizes[m_.operand(i, 0)];
          for (size_t d = 0; d < p.size(); ++d)
            if (auto at = of.find(static_cast<size_t>(p[d])); at != of.end()) out[d] = at->second;
          break;
        }
        case Opcode::Reduce: {
          InstId a = m_.operand(i, 0);
          const Sizes of = sizes[a];
          if (of.empty()) break;
          const Dims gone = m_.attrs(i).ints(Attr::dimensions);
          std::vector<size_t> dims;
          for (int64_t d : gone) dims.push_back(static_cast<size_t>(d));
          InstId p = padded(a, of, dims, m_.operand(i, 1));
          if (p != a) m_.set_operand(i, 0, p);
          for (const auto& [d, n] : of) {
            if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
            auto before = std::count_if(dims.begin(), dims.end(), [d = d](size_t e) { return e < d; });
            out[d - static_cast<size_t>(before)] = n;
          }
          break;
        }
        case Opcode::Dot: {
          for (size_t k = 0; k < 2; ++k) {
            InstId a = m_.operand(i, k);
            const Sizes of = sizes[a];
            if (of.empty()) continue;
            const AttrSet& set = m_.attrs(i);
            const Dims contract = set.ints(k ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims),
                       batch = set.ints(k ? Attr::rhs_batch_dims : Attr::lhs_batch_dims),
                       other = m_.attrs(i).ints(Attr::lhs_contracting_dims);
            std::vector<size_t> dims;
            for (int64_t d : contract) dims.push_back(static_cast<size_t>(d));
            InstId p = padded(a, of, dims, make_scalar(m_, c, m_.shape(a).type, 0));
            if (p != a) m_.set_operand(i, k, p);
            size_t next = batch.size();
            if (k) next += static_cast<size_t>(m_.shape(m_.operand(i, 0)).rank()) - batch.size() - other.size();
            for (size_t d = 0; d < static_cast<size_t>(m_.shape(a).rank()); ++d) {
              auto id = static_cast<int64_t>(d);
              if (std::find(contract.begin(), contract.end(), id) != contract.end()) continue;
              auto b = std::find(batch.begin(), batch.end(), id);
              size_t place = b != batch.end() ? static_cast<size_t>(b - batch.begin()) : next++;
              if (auto at = of.find(d); at != of.end()) out[place] = at->second;
            }
          }
          break;
        }
        default:
          for (InstId o : m_.operands(i))
            for (const auto& [d, n] : sizes[o]) out.emplace(d, n);
      }
      if (m_.shape(i).is_array() && m_.shape(i).is_dynamic()) m_.set_shape(i, fixed(m_.shape_id(i)));
      if (!out.empty()) sizes[i] = out;
    }
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
};

}  // namespace

//   reduce(set-dimension-size(A, n), 0)      →      reduce(select(iota < n, A, 0), 0)
bool run_dynamic_padder(Module& m, PassContext& ctx) { return Padder(m, ctx).run(); }

}  // namespace hlo
