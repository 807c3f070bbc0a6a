// dynamic_padder (xla/service/dynamic_padder.cc), for the part of dynamic shapes that it treats by itself: sizes set by
// set-dimension-size that pass through elementwise operations, broadcasts, transposes, dynamic-update-slices, loops,
// conditionals and calls, and end in reductions, dots or get-dimension-size. A computation with more than that is left
// alone with a note; with it all that sizes flow into or out of.
#include <algorithm>
#include <optional>

#include "ir/base/check.h"

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

namespace {

bool dynamic_shape(const Universe& u, ShapeId id) {
  const Shape& s = u[id];
  if (s.is_tuple())
    return std::any_of(s.elements.begin(), s.elements.end(), [&](ShapeId e) { return dynamic_shape(u, e); });
  return s.is_dynamic();
}

ShapeId fixed_shape(Universe& u, ShapeId id) {
  Shape s = u[id];
  s.dynamic.clear();
  return u.shape(std::move(s));
}

// Sizes across calls: an array of dynamic dimensions that a loop carries, or that goes into or out of a branch or a
// callee, goes as its padded array and a scalar a dynamic dimension, which are put together again on the other side
// (xla/service/dynamic_dimension_inference.cc adds such elements, too).
//
//   while(tuple(A)), A f32[<=4]      →      while(tuple(A', get-dimension-size(A))), A' f32[4]
class SizesAcrossCalls {
 public:
  explicit SizesAcrossCalls(Module& m) : m_(m), u_(m.u()) {}

  // False, and the module is half changed, where one cannot go so: nested tuples, whole tuples that are used as such.
  bool run() {
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.live_order(c)) {
        const Opcode op = m_.op(i);
        if (op != Opcode::While && op != Opcode::Conditional && op != Opcode::Call) continue;
        if (m_.dead(i)) continue;
        bool any = dynamic_shape(u_, m_.shape_id(i));
        for (InstId o : m_.operands(i)) any |= dynamic_shape(u_, m_.shape_id(o));
        for (CompId callee : m_.called(i)) any |= dynamic_shape(u_, m_.shape_id(m_.comp(callee).root));
        if (any && (m_.has_control(i) || !(op == Opcode::While ? loop(i) : branches(i)))) return false;
        changed_ |= any;
      }
    return true;
  }
  bool changed() const { return changed_; }

 private:
  // A shape whose arrays have their sizes behind them.
  struct Parts {
    bool tuple = false;
    std::vector<ShapeId> elements;                 // as they were
    std::vector<std::pair<size_t, size_t>> sizes;  // element and dimension of each scalar
    ShapeId shape;                                 // the tuple of static arrays and scalars
  };
  std::optional<Parts> parts_of(ShapeId id) {
    Parts out;
    out.tuple = u_[id].is_tuple();
    out.elements = out.tuple ? u_[id].elements : std::vector<ShapeId>{id};
    std::vector<ShapeId> all;
    for (size_t k = 0; k < out.elements.size(); ++k) {
      const Shape s = u_[out.elements[k]];
      if (s.is_tuple() && dynamic_shape(u_, out.elements[k])) return std::nullopt;
      for (size_t d = 0; d < s.dynamic.size(); ++d)
        if (s.dynamic[d]) out.sizes.emplace_back(k, d);
      all.push_back(s.is_dynamic() ? fixed_shape(u_, out.elements[k]) : out.elements[k]);
    }
    all.resize(all.size() + out.sizes.size(), u_.scalar(ElementType::S32));
    out.shape = u_.tuple(all);
    return out;
  }

  // What `v` is, with its sizes, as one tuple of static shape.
  InstId packed(InstId v, const Parts& p) {
    const CompId c = m_.parent(v);
    std::vector<InstId> all;
    for (size_t k = 0; k < p.elements.size(); ++k)
      all.push_back(!p.tuple                    ? v
                    : m_.op(v) == Opcode::Tuple ? m_.operand(v, k)
                                                : make_element(m_, v, static_cast<int64_t>(k)));
    const std::vector<InstId> arrays = all;
    for (const auto& [k, d] : p.sizes)
      all.push_back(make(m_, c, Opcode::GetDimensionSize, {arrays[k]},
                         dims_attr(u_, Opcode::GetDimensionSize, {static_cast<int64_t>(d)}),
                         u_.scalar(ElementType::S32)));
    return make(m_, c, Opcode::Tuple, all, {}, p.shape);
  }
  // `array`, an element of a packed tuple, with its sizes.
  InstId sized(InstId holder, InstId array, const Parts& p, size_t element) {
    Shape s = u_[m_.shape_id(array)];
    const Shape whole = u_[p.elements[element]];
    s.dynamic.assign(whole.dynamic.size(), false);
    for (size_t n = 0; n < p.sizes.size(); ++n) {
      const auto& [k, d] = p.sizes[n];
      if (k != element) continue;
      s.dynamic[d] = true;
      InstId size = make_element(m_, holder, static_cast<int64_t>(p.elements.size() + n));
      array = make(m_, m_.parent(holder), Opcode::SetDimensionSize, {array, size},
                   dims_attr(u_, Opcode::SetDimensionSize, {static_cast<int64_t>(d)}), u_.shape(Shape(s)));
    }
    return array;
  }
  void replace_use(InstId user, InstId from, InstId to) {
    for (size_t k = 0; k < m_.operand_count(user); ++k)
      if (m_.operand(user, k) == from) m_.set_operand(user, k, to);
  }
  // `holder` has become a packed tuple: those that used what it was use that again.
  bool unpack(InstId holder, const Parts& p) {
    const std::vector<InstId> users = m_.users_copy(holder);
    const bool root = m_.is_root(holder);
    if (p.tuple && (root || !std::all_of(users.begin(), users.end(),
                                         [&](InstId user) { return m_.op(user) == Opcode::GetTupleElement; })))
      return false;
    m_.set_shape(holder, p.shape);
    if (!p.tuple) {
      const InstId back = sized(holder, make_element(m_, holder, 0), p, 0);
      for (InstId user : users) replace_use(user, holder, back);
      if (root) m_.set_root(m_.parent(holder), back);
      return true;
    }
    for (InstId g : users) {
      const auto k = static_cast<size_t>(m_.attrs(g).integer(Attr::index));
      if (!u_[p.elements[k]].is_dynamic()) continue;
      const std::vector<InstId> readers = m_.users_copy(g);
      const bool result = m_.is_root(g);
      m_.set_shape(g, u_[p.shape].elements[k]);
      const InstId back = sized(holder, g, p, k);
      for (InstId reader : readers) replace_use(reader, g, back);
      if (result) m_.set_root(m_.parent(g), back);
    }
    return true;
  }
  void pack_operand(InstId i, size_t n, const Parts& p) {
    const InstId before = m_.operand(i, n);
    m_.set_operand(i, n, packed(before, p));
    if (m_.op(before) == Opcode::Tuple && m_.dead(before)) m_.remove(before);
  }
  void pack_root(CompId c, const Parts& p) {
    const InstId before = m_.comp(c).root;
    m_.set_root(c, packed(before, p));
    if (m_.op(before) == Opcode::Tuple && m_.dead(before)) m_.remove(before);
  }

  bool loop(InstId i) {
    const CompId body = m_.attrs(i).comp(Attr::body), condition = m_.attrs(i).comp(Attr::condition);
    const std::optional<Parts> p = parts_of(m_.shape_id(i));
    if (!p) return false;
    pack_root(body, *p);
    pack_operand(i, 0, *p);
    return unpack(m_.comp(body).params[0], *p) && unpack(m_.comp(condition).params[0], *p) && unpack(i, *p);
  }
  bool branches(InstId i) {
    const std::vector<CompId> called(m_.called(i).begin(), m_.called(i).end());
    const size_t first = m_.op(i) == Opcode::Conditional ? 1 : 0;
    for (size_t n = first; n < m_.operand_count(i); ++n) {
      const CompId callee = first ? called[n - 1] : called[0];
      const InstId given = m_.comp(callee).params[first ? 0 : n];
      if (!dynamic_shape(u_, m_.shape_id(m_.operand(i, n))) && !dynamic_shape(u_, m_.shape_id(given))) continue;
      const std::optional<Parts> p = parts_of(m_.shape_id(given));
      if (!p || !unpack(given, *p)) return false;
      pack_operand(i, n, *p);
    }
    if (!dynamic_shape(u_, m_.shape_id(i))) return true;
    const std::optional<Parts> p = parts_of(m_.shape_id(i));
    if (!p) return false;
    for (CompId c : called) pack_root(c, *p);
    return unpack(i, *p);
  }

  Module& m_;
  Universe& u_;
  bool changed_ = false;
};

class Padder {
 public:
  Padder(Module& m, PassContext& ctx) : m_(m), u_(m.u()), ctx_(ctx) {}

  bool run() {
    bool changed = fold_static_sizes();
    changed |= across_calls();
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
  bool dynamic(ShapeId id) const { return dynamic_shape(u_, id); }

  // Tried on a copy first: either every computation can then be treated, or nothing of this is done.
  bool across_calls() {
    auto calls = [&](const Module& m) {
      for (CompId c : m.nonfusion_computations())
        for (InstId i : m.live_order(c)) {
          const Opcode op = m.op(i);
          if (op != Opcode::While && op != Opcode::Conditional && op != Opcode::Call) continue;
          if (dynamic(m.shape_id(i))) return i;
          for (InstId o : m.operands(i))
            if (dynamic(m.shape_id(o))) return i;
        }
      return InstId();
    };
    const InstId first = calls(m_);
    if (!first.valid()) return false;
    std::unique_ptr<Module> copy = m_.clone();
    PassContext quiet;
    quiet.keep_notes = false;
    Padder tried(*copy, quiet);
    quiet.run(*copy, "flatten-call-graph");
    SizesAcrossCalls trial(*copy);
    bool fine = trial.run();
    for (CompId c : copy->nonfusion_computations()) fine = fine && tried.treatable(c);
    if (!fine) {
      ctx_.note(m_, "dynamic shapes kept", {first},
                "sizes that cross a loop, a branch or a call and cannot go as values");
      return false;
    }
    if (!ctx_.spend(m_, "sizes next to arrays across calls", {first})) return false;
    ctx_.run(m_, "flatten-call-graph");
    SizesAcrossCalls sizes(m_);
    const bool done = sizes.run();
    HLO_CHECK(done, "{}: sizes across calls", m_.name());
    return true;
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
      if (m_.dead(i) && m_.op(i) == Opcode::GetTupleElement) continue;
      bool in =
          std::any_of(m_.operands(i).begin(), m_.operands(i).end(), [&](InstId o) { return dynamic(m_.shape_id(o)); });
      if (!in && !dynamic(m_.shape_id(i)) && m_.op(i) != Opcode::SetDimensionSize) continue;
      switch (m_.op(i)) {
        case Opcode::SetDimensionSize:
        case Opcode::GetDimensionSize:
        case Opcode::Broadcast:
        case Opcode::Transpose:
          break;
        case Opcode::Tuple:  // of static shape: what SizesAcrossCalls makes
          if (dynamic(m_.shape_id(i))) return no(i);
          break;
        case Opcode::DynamicUpdateSlice:
          if (dynamic(m_.shape_id(m_.operand(i, 1)))) return no(i);
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

  ShapeId fixed(ShapeId id) const { return fixed_shape(u_, id); }

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

  void set_size(InstId i, std::unordered_map<InstId, Sizes>& sizes) {
    const CompId c = m_.parent(i);
    Sizes out;
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
  }

  void get_size(InstId i, std::unordered_map<InstId, Sizes>& sizes) {
    const CompId c = m_.parent(i);
    const Sizes& of = sizes[m_.operand(i, 0)];
    auto d = static_cast<size_t>(m_.attrs(i).ints(Attr::dimensions)[0]);
    auto at = of.find(d);
    InstId value =
        at != of.end() ? at->second : make_scalar(m_, c, ElementType::S32, m_.shape(m_.operand(i, 0)).dims[d]);
    m_.replace(i, value);
  }

  Sizes of_reduce(InstId i, const Sizes& of) {
    Sizes out;
    InstId a = m_.operand(i, 0);
    if (of.empty()) return out;
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
    return out;
  }

  Sizes of_dot(InstId i, std::unordered_map<InstId, Sizes>& sizes) {
    const CompId c = m_.parent(i);
    Sizes out;
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
    return out;
  }

  void rewrite(CompId c) {
    std::unordered_map<InstId, Sizes> sizes;
    for (InstId i : m_.post_order(c)) {
      Sizes out;
      switch (m_.op(i)) {
        case Opcode::SetDimensionSize:
          set_size(i, sizes);
          continue;
        case Opcode::GetDimensionSize:
          get_size(i, sizes);
          continue;
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
        case Opcode::Reduce:
          out = of_reduce(i, sizes[m_.operand(i, 0)]);
          break;
        case Opcode::Dot:
          out = of_dot(i, sizes);
          break;
        case Opcode::DynamicUpdateSlice:
          out = sizes[m_.operand(i, 0)];
          break;
        case Opcode::Tuple:
          break;
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
