// Passes over dots: dot-merger (xla/hlo/transforms/simplifiers/dot_merger.cc), dot_dimension_sorter,
// dot_dimension_merger, dot-strength-reduction (xla/service/gpu/transforms/…), operand_upcaster, result_caster and
// operand_converter (xla/hlo/transforms/expanders/operand_upcaster.cc and beside it).
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "ir/inference/shape_inference.h"
#include "passes/library_calls/gemm_call.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

// One side of a dot.
struct Side {
  InstId value;
  Dims batch, contracting, free;
  bool vector() const { return free.empty(); }
};
Side side_of(const Module& m, InstId dot, size_t k) {
  const AttrSet& a = m.attrs(dot);
  Side s{m.operand(dot, k),
         a.ints(k ? Attr::rhs_batch_dims : Attr::lhs_batch_dims),
         a.ints(k ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims),
         {}};
  for (int64_t d = 0; d < m.shape(s.value).rank(); ++d)
    if (!contains(s.batch, d) && !contains(s.contracting, d)) s.free.push_back(d);
  return s;
}

int64_t product(const Dims& dims, const Dims& of) {
  return std::accumulate(of.begin(), of.end(), int64_t{1},
                         [&](int64_t n, int64_t d) { return n * dims[static_cast<size_t>(d)]; });
}

bool consecutive(Dims d) {
  std::sort(d.begin(), d.end());
  for (size_t k = 1; k < d.size(); ++k)
    if (d[k] != d[k - 1] + 1) return false;
  return true;
}

// Dots without the attributes that belong to one place.
AttrSet bare(const Module& m, InstId dot) {
  AttrSet set = m.attrs(dot);
  for (Attr key : {Attr::sharding, Attr::origin}) set.erase(key);
  return set;
}

constexpr size_t kPartsTold = 64;  // of a concatenation's history

class DotMerger {
 public:
  DotMerger(Module& m, PassContext& ctx)
      : m_(m), ctx_(ctx), limit_(ctx.number("max_size_mib") * int64_t{1024} * 1024) {}

  bool run() {
    bool changed = false;
    for (CompId c : m_.nonfusion_computations()) changed |= run(c);
    return changed;
  }

 private:
  // In its history, while XLA gives it neither metadata nor attributes of these.
  void made_of(InstId from, InstId to) {
    const AttrsId attrs = m_[to].attrs;
    const MetaId meta = m_[to].meta;
    m_.inherit(from, to);
    m_.set_attrs(to, attrs), m_.set_meta(to, meta);
  }

  bool small(InstId dot) const {
    int64_t bytes = m_.u().byte_size(m_.shape_id(dot));
    for (InstId o : m_.operands(dot)) bytes += m_.u().byte_size(m_.shape_id(o));
    return bytes <= limit_;
  }

  bool run(CompId c) {
    // Dots by what they multiply, operands in the order in which they are met.
    std::vector<InstId> keys;
    std::unordered_map<InstId, std::vector<InstId>> classes;
    place_.clear();
    for (InstId i : m_.post_order(c)) {
      place_[i] = place_.size();
      if (m_.op(i) != Opcode::Dot || m_.has_control(i)) continue;
      for (InstId o : m_.operands(i)) {
        std::vector<InstId>& list = classes[o];
        if (list.empty()) keys.push_back(o);
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
    std::sort(keys.begin(), keys.end());
    bool changed = false;
    for (InstId key : keys) {
      std::vector<InstId>& dots = classes[key];
      if (dots.size() < 2 || std::none_of(dots.begin(), dots.end(), [&](InstId d) { return small(d); })) continue;
      std::sort(dots.begin(), dots.end());
      budget_ = 200'000;
      for (size_t a = 0; a < dots.size(); ++a)
        for (size_t b = a + 1; b < dots.size(); ++b) {
          InstId x = dots[a], y = dots[b];
          if (!x.valid() || !y.valid() || dead_.contains(x) || dead_.contains(y)) continue;
          if ((!small(x) && !small(y)) || reaches(x, y) || reaches(y, x)) continue;
          InstId merged = merge(x, y);
          if (!merged.valid()) continue;
          dead_.insert(x), dead_.insert(y);
          dots[a] = merged, dots[b] = InstId();
          changed = true;
        }
      if (budget_ == 0) ctx_.note(m_, "search given up", {key}, "too many dots of one operand depend on each other");
    }
    for (InstId i : dead_)
      if (m_.alive(i) && m_.parent(i) == c && m_.users(i).empty()) m_.remove(i);
    return changed;
  }

  // Does `to` depend on `from`? Nothing in front of `from` in post order can; what merging made stands where the later
  // of its dots stood. The searches of one class have a common budget; when it is spent
  // the answer is yes, so that the pass stays near-linear.
  bool reaches(InstId from, InstId to) {
    auto place = [&](InstId i) {
      auto at = place_.find(i);
      return at == place_.end() ? SIZE_MAX : at->second;
    };
    size_t first = place(from);
    std::vector<InstId> stack{to};
    std::unordered_set<InstId> seen;
    while (!stack.empty()) {
      InstId i = stack.back();
      stack.pop_back();
      if (i == from || budget_ == 0) return true;
      if (place(i) < first || !seen.insert(i).second) continue;
      --budget_;
      for (InstId o : m_.operands(i)) stack.push_back(o);
      for (InstId p : m_.control_preds(i)) stack.push_back(p);
    }
    return false;
  }

  //   dot(A, B), dot(A, C)      →      slice(dot(A, concatenate(B, C))), slice(the same)
  InstId merge(InstId a, InstId b) {
    bool same_lhs = m_.operand(a, 0) == m_.operand(b, 0), same_rhs = m_.operand(a, 1) == m_.operand(b, 1);
    if (same_lhs == same_rhs) return {};
    AttrSet set = bare(m_, a);
    if (m_.u().attrs(set) != m_.u().attrs(bare(m_, b))) return {};
    size_t other = same_lhs ? 1 : 0;
    Side sa = side_of(m_, a, other), sb = side_of(m_, b, other);
    const Shape &out_a = m_.shape(a), &out_b = m_.shape(b), &in_a = m_.shape(sa.value), &in_b = m_.shape(sb.value);
    if (out_a.type != out_b.type || in_a.type != in_b.type || out_a.rank() != out_b.rank() ||
        out_a.layout.minor_to_major != out_b.layout.minor_to_major ||
        in_a.layout.minor_to_major != in_b.layout.minor_to_major || sa.free.size() != 1 || sa.free != sb.free)
      return {};
    if (!ctx_.spend(m_, "dots of one operand", {a, b})) return {};
    CompId c = m_.parent(a);
    Universe& u = m_.u();
    // It lies, and is sharded, as its first part.
    const Shape part = m_.shape(sa.value);
    Shape whole = part;
    whole.dims[static_cast<size_t>(sa.free[0])] += m_.shape(sb.value).dims[static_cast<size_t>(sb.free[0])];
    InstId wide = make_derived(m_, sa.value, Opcode::Concatenate, {sa.value, sb.value},
                               dims_attr(u, Opcode::Concatenate, sa.free), u.shape(std::move(whole)));
    // What this pass has joined before is no one's past: its parts are.
    std::vector<InstId> parts;
    for (InstId value : {sa.value, sb.value}) {
      auto before = joined_.find(value);
      if (before == joined_.end())
        parts.push_back(value);
      else
        parts.insert(parts.end(), before->second.begin(), before->second.end());
    }
    if (parts.size() > kPartsTold) parts.resize(kPartsTold);
    for (InstId from : parts) made_of(from, wide);
    joined_[wide] = std::move(parts);
    // The joined dimension in the result: behind the batch, and behind the other side's where that comes first.
    Side shared = side_of(m_, a, 1 - other);
    size_t at = shared.batch.size() + (same_lhs ? shared.free.size() : 0);
    Dims dims = out_a.dims;
    dims[at] += out_b.dims[at];
    ShapeId shape = u.with_layout(u.array(out_a.type, dims),
                                  Dims(out_a.layout.minor_to_major.begin(), out_a.layout.minor_to_major.end()));
    std::vector<InstId> ops{same_lhs ? shared.value : wide, same_lhs ? wide : shared.value};
    InstId dot = make(m_, c, Opcode::Dot, ops, u.attrs(std::move(set)), shape);
    int64_t start = 0;
    for (InstId old : {a, b}) {
      made_of(old, dot);
      std::vector<SliceDim> cut;
      for (int64_t d : m_.shape(old).dims) cut.push_back({0, d, 1});
      cut[at] = {start, start + cut[at].limit, 1};
      start = cut[at].limit;
      InstId piece =
          make(m_, c, Opcode::Slice, {dot}, attrs_of(u, Opcode::Slice, {{Attr::slice, cut}}), m_.shape_id(old));
      m_.replace_all_uses(old, piece);
    }
    return dot;
  }

  Module& m_;
  PassContext& ctx_;
  int64_t limit_;
  std::unordered_set<InstId> dead_;
  std::unordered_map<InstId, std::vector<InstId>> joined_;  // concatenations made here, with what they join
  std::unordered_map<InstId, size_t> place_;                // in post order
  int64_t budget_ = 0;
};

// The type of a dot or convolution by its operands alone.
ElementType natural_type(const Module& m, InstId i) {
  Inferred inferred = infer_shape(m, m.op(i), m.operands(i), m.attrs(i));
  return inferred.shape.valid() ? m.u()[inferred.shape].type : m.shape(i).type;
}

bool products(const Module& m, InstId i) { return m.op(i) == Opcode::Dot || m.op(i) == Opcode::Convolution; }

std::vector<InstId> found_products(Module& m, PassContext& ctx) {
  std::vector<InstId> out;
  if (!m.has_any({Opcode::Dot, Opcode::Convolution})) return out;
  bool filter = ctx.flag("unsupported_by_library");
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c))
      if (products(m, i) && !(filter && is_library_product(m, i, false))) out.push_back(i);
  return out;
}

bool upcasts(ElementType from, ElementType to) { return higher_precision(from, to) == to; }

bool sort_dimensions(Module& m, InstId i) {
  AttrSet set = m.attrs(i);
  Dims l = set.ints(Attr::lhs_contracting_dims), r = set.ints(Attr::rhs_contracting_dims);
  std::vector<size_t> order(l.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const Dims& key = consecutive(l) ? l : r;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
  // XLA applies the sorting permutation's inverse: {2,0,1} becomes {1,2,0}, pairs and reversals come out sorted.
  Dims nl(l.size()), nr(l.size());
  for (size_t k = 0; k < order.size(); ++k) nl[order[k]] = l[k], nr[order[k]] = r[k];
  set.set(Attr::lhs_contracting_dims, nl), set.set(Attr::rhs_contracting_dims, nr);
  AttrsId attrs = m.u().attrs(std::move(set));
  std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
  return m.replace(i, make(m, m.parent(i), Opcode::Dot, ops, attrs, m.shape_id(i)));
}

// Of n dimensions from `at` on one is made, which lies where their most minor part lay.
Dims layout_with_joined(const Shape& s, int64_t at, int64_t n) {
  Dims layout;
  for (int64_t d : s.layout.minor_to_major) {
    const int64_t to = d < at ? d : d < at + n ? at : d - n + 1;
    if (!contains(layout, to)) layout.push_back(to);
  }
  return layout;
}

}  // namespace

bool run_dot_merger(Module& m, PassContext& ctx) { return DotMerger(m, ctx).run(); }

//   dot(A, B), lhs_contracting_dims={2,1}, rhs_contracting_dims={1,0}      →      {1,2}, {0,1}
bool run_dot_dimension_sorter(Module& m, PassContext& ctx) {
  bool changed = false;
  auto unsorted = [&](InstId i) {
    const Dims &l = m.attrs(i).ints(Attr::lhs_contracting_dims), &r = m.attrs(i).ints(Attr::rhs_contracting_dims);
    if (l.size() < 2 && r.size() < 2) return false;
    bool cl = consecutive(l), cr = consecutive(r);
    bool wl = cl && !std::is_sorted(l.begin(), l.end()), wr = cr && !std::is_sorted(r.begin(), r.end());
    return (wl && !cr) || (wr && !cl) || (wl && wr);
  };
  for (InstId i : all_of_opcode(m, Opcode::Dot, unsorted)) {
    if (!ctx.spend(m, "contracting dimensions sorted", {i})) return changed;
    changed |= sort_dimensions(m, i);
  }
  return changed;
}

//   dot(f32[2,3,8,20] A, f32[2,3,20,9] B), two batch dimensions      →      reshape(dot(f32[6,8,20], f32[6,20,9]))
bool run_dot_dimension_merger(Module& m, PassContext& ctx) {
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Dot)) {
    Side sides[2] = {side_of(m, i, 0), side_of(m, i, 1)};
    int64_t n = static_cast<int64_t>(sides[0].batch.size());
    auto orderly = [&](const Side& s) {
      if (!std::is_sorted(s.batch.begin(), s.batch.end()) || !consecutive(s.batch)) return false;
      // The batch must lie in one piece of memory, in whatever order.
      const auto& from = m.shape(s.value).layout.minor_to_major;
      auto first = std::find_if(from.begin(), from.end(), [&](int64_t d) { return contains(s.batch, d); });
      for (int64_t k = 0; k < n; ++k, ++first)
        if (first == from.end() || !contains(s.batch, *first)) return false;
      return true;
    };
    if (n < 2 || !orderly(sides[0]) || !orderly(sides[1])) continue;
    if (!ctx.spend(m, "batch dimensions joined", {i})) return changed;
    AttrSet set = bare(m, i);
    std::vector<InstId> ops;
    for (size_t k = 0; k < 2; ++k) {
      const Side& s = sides[k];
      Dims dims = m.shape(s.value).dims;
      int64_t at = s.batch[0], count = product(dims, s.batch);
      dims.erase(dims.begin() + at, dims.begin() + at + n);
      dims.insert(dims.begin() + at, count);
      Dims contracting;
      for (int64_t d : s.contracting) contracting.push_back(d > at ? d - n + 1 : d);
      set.set(k ? Attr::rhs_batch_dims : Attr::lhs_batch_dims, Dims{at});
      set.set(k ? Attr::rhs_contracting_dims : Attr::lhs_contracting_dims, contracting);
      InstId joined = make_reshape(m, s.value, dims);
      m.set_shape(joined, u.with_layout(m.shape_id(joined), layout_with_joined(m.shape(s.value), at, n)));
      ops.push_back(joined);
    }
    Dims out = m.shape(i).dims;
    int64_t count = std::accumulate(out.begin(), out.begin() + n, int64_t{1}, std::multiplies<>());
    out.erase(out.begin(), out.begin() + n);
    out.insert(out.begin(), count);
    const ShapeId shape = u.with_layout(u.array(m.shape(i).type, out), layout_with_joined(m.shape(i), 0, n));
    InstId dot = make(m, m.parent(i), Opcode::Dot, ops, u.attrs(std::move(set)), shape);
    InstId to = m.add_derived(dot, {.op = Opcode::Reshape, .shape = m.shape_id(i), .operands = {dot}});
    changed |= m.replace(i, to);
  }
  return changed;
}

//   dot(f32[8,20] A, f32[20] b)      →      reduce(multiply(A, broadcast(b)), 0), dimensions={1}
bool run_dot_strength_reduction(Module& m, PassContext& ctx) {
  constexpr int64_t kSmall = 10'000'000;
  bool changed = false;
  Universe& u = m.u();
  for (InstId i : all_of_opcode(m, Opcode::Dot)) {
    Side sides[2] = {side_of(m, i, 0), side_of(m, i, 1)};
    const Shape out = m.shape(i);
    bool integers = out.type == ElementType::S32 && m.shape(sides[0].value).type == ElementType::S32 &&
                    m.shape(sides[1].value).type == ElementType::S32 && sides[1].contracting == Dims{1};
    bool both = sides[0].vector() && sides[1].vector();
    if (!(sides[0].vector() || sides[1].vector() || integers)) continue;
    const Dims &ld = m.shape(sides[0].value).dims, &rd = m.shape(sides[1].value).dims;
    int64_t work = (product(ld, sides[0].free) + product(rd, sides[1].free)) * product(ld, sides[0].contracting);
    if (!both && work >= kSmall) {
      ctx.note(m, "product kept", {i}, fmt::format("(M + N) K = {}, at least {}", work, kSmall));
      continue;
    }
    if (!ctx.spend(m, "product of a vector", {i})) return changed;
    CompId c = m.parent(i);
    size_t batch = sides[0].batch.size();
    Dims wide = out.dims;
    for (int64_t d : sides[0].contracting) wide.push_back(ld[static_cast<size_t>(d)]);
    InstId spread[2];
    for (size_t k = 0; k < 2; ++k) {
      const Side& s = sides[k];
      InstId x = make_convert(m, s.value, out.type);
      Dims order = s.batch;
      order.insert(order.end(), s.free.begin(), s.free.end());
      order.insert(order.end(), s.contracting.begin(), s.contracting.end());
      if (!is_identity(order)) x = make_transpose(m, x, order);
      if (!sides[1 - k].vector()) {
        Dims map;
        for (size_t d = 0; d < batch; ++d) map.push_back(static_cast<int64_t>(d));
        size_t first = batch + (k ? sides[0].free.size() : 0);
        for (size_t d = 0; d < s.free.size(); ++d) map.push_back(static_cast<int64_t>(first + d));
        for (size_t d = 0; d < s.contracting.size(); ++d) map.push_back(static_cast<int64_t>(out.dims.size() + d));
        // What is spread lies just outside of the dimension that follows it.
        Dims layout;
        for (int64_t d : m.shape(x).layout.minor_to_major) layout.push_back(map[static_cast<size_t>(d)]);
        for (auto d = static_cast<int64_t>(wide.size()); d-- > 0;)
          if (!contains(map, d))
            layout.insert(std::find(layout.begin(), layout.end(), d + 1) + (contains(layout, d + 1) ? 1 : 0), d);
        x = make_broadcast(m, c, x, map, u.with_layout(u.array(out.type, wide), layout));
      }
      spread[k] = x;
    }
    InstId sum = make(m, c, Opcode::Multiply, {spread[0], spread[1]}, {}, m.shape_id(spread[0]));
    if (sides[0].contracting.empty()) {
      changed |= m.replace(i, sum);
      continue;
    }
    ElementType kept = is_float(out.type) && type_bits(out.type) < 32 ? ElementType::F32 : out.type;
    sum = make_convert(m, sum, kept);
    InstId zero = make_scalar(m, c, kept, 0);
    Dims dims;
    for (size_t d = 0; d < sides[0].contracting.size(); ++d) dims.push_back(static_cast<int64_t>(out.dims.size() + d));
    // A reducer a dot would be enough for each, XLA makes one each time.
    CompId adder = make_reducer(m, "scalar_add_computation", Opcode::Add, kept, "scalar_lhs", "scalar_rhs");
    sum = make(m, c, Opcode::Reduce, {sum, zero},
               attrs_of(u, Opcode::Reduce, {{Attr::dimensions, dims}, {Attr::to_apply, adder}}));
    changed |= m.replace(i, make_convert(m, sum, out.type));
  }
  return changed;
}

//   s32 dot(s8 A, s8 B)      →      s32 dot(convert(A), convert(B))
bool run_operand_upcaster(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : found_products(m, ctx)) {
    ElementType to = m.shape(i).type, now = natural_type(m, i);
    auto operands = m.operands(i);
    bool packed =
        std::any_of(operands.begin(), operands.end(), [&](InstId o) { return type_bits(m.shape(o).type) == 4; });
    bool alike =
        now == to && std::all_of(operands.begin(), operands.end(), [&](InstId o) { return m.shape(o).type == to; });
    if ((alike && !packed) || !upcasts(now, to)) continue;
    if (!ctx.spend(m, "operands widened", {i})) return changed;
    for (size_t k = 0; k < 2; ++k) m.set_operand(i, k, make_convert(m, m.operand(i, k), to));
    changed = true;
  }
  return changed;
}

//   bf16 dot(f32 A, f32 B)      →      convert(f32 dot(A, B))
bool run_result_caster(Module& m, PassContext& ctx) {
  bool changed = false;
  for (InstId i : found_products(m, ctx)) {
    ElementType to = m.shape(i).type, now = natural_type(m, i);
    // XLA would convert complex numbers to real ones there, which it compiles no further.
    if (now == to || !upcasts(to, now) || m.has_control(i) || (is_complex(now) && !is_complex(to))) continue;
    if (!ctx.spend(m, "result narrowed after the product", {i})) return changed;
    std::vector<InstId> ops(m.operands(i).begin(), m.operands(i).end());
    InstId wide = m.clone_inst(i, m.parent(i), ops, m.u().with_type(m.shape_id(i), now));
    changed |= m.replace(i, make_convert(m, wide, to));
  }
  return changed;
}

//   dot(bf16 A, f32 B)      →      dot(convert(A), B)
bool run_operand_converter(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Dot)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::Dot) continue;
      ElementType l = m.shape(m.operand(i, 0)).type, r = m.shape(m.operand(i, 1)).type;
      if (l == r || (type_bits(l) == 8 && type_bits(r) == 8 && is_float(l) && is_float(r))) continue;
      ElementType to = higher_precision(l, r);
      if (!ctx.spend(m, "operands of one type", {i})) return changed;
      for (size_t k = 0; k < 2; ++k) m.set_operand(i, k, make_convert(m, m.operand(i, k), to));
      changed = true;
    }
  return changed;
}

}  // namespace hlo
