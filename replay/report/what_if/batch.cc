#include "replay/report/what_if/batch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/verify/verifier.h"
#include "replay/report/what_if/batch_rules.h"

namespace hlo {
namespace {

// What the marked dimensions make of the module.
class BatchEdit {
 public:
  BatchEdit(Module& m, const BatchDimensions& dims, const std::vector<bool>& marked, int64_t from, int64_t to)
      : m_(m), u_(m.u()), dims_(dims), marked_(marked), from_(from), to_(to), before_(m.inst_slots()) {
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c)) before_[i.value] = m.shape_id(i);
  }

  size_t run() {
    size_t changed = 0;
    ModuleConfig config = m_.config();
    const std::vector<InstId> params = m_.comp(m_.entry()).params;
    for (size_t k = 0; k < params.size() && k < config.entry_params.size(); ++k)
      config.entry_params[k] = scaled(params[k], config.entry_params[k]);
    const InstId root = m_.comp(m_.entry()).root;
    if (config.entry_result.valid()) config.entry_result = scaled(root, config.entry_result);
    m_.edit_config() = config;
    for (CompId c : m_.computations())
      for (InstId i : m_.live_order(c)) {
        if (i.value >= before_.size()) continue;
        const ShapeId old = m_.shape_id(i), now = scaled(i, old);
        sizes_of_slices(i);
        if (old == now) continue;
        ++changed;
        if (m_.op(i) == Opcode::Constant) m_.set_literal(i, tiled(i, now));
        if (m_.op(i) == Opcode::Reshape && repeats(i))
          repeat(i, now);
        else
          m_.set_shape(i, now);
      }
    return changed;
  }

 private:
  ShapeId scaled(InstId i, ShapeId shape) {
    uint32_t node = dims_.first(i);
    return scaled_from(i, shape, &node);
  }
  ShapeId scaled_from(InstId i, ShapeId shape, uint32_t* node) {
    Shape s = u_[shape];
    if (s.is_tuple()) {
      for (ShapeId& e : s.elements) e = scaled_from(i, e, node);
      return s.elements == u_[shape].elements ? shape : u_.tuple(s.elements);
    }
    for (int64_t& d : s.dims)
      if (marked_[dims_.group((*node)++)]) d = size_of(i, d);
    return u_.shape(std::move(s));
  }
  int64_t size_of(InstId i, int64_t old) const {
    int64_t out = 0;
    if (old % from_ || __builtin_mul_overflow(old / from_, to_, &out))
      fail(FailureKind::kUnsupported,
           "{}: its dimension of {} is no multiple of the batch of {}, or not of a size any more", m_.inst_name(i), old,
           from_);
    return out;
  }
  bool marked(InstId i, size_t dim) const { return marked_[dims_.group(dims_.first(i) + static_cast<uint32_t>(dim))]; }

  void sizes_of_slices(InstId i) {
    const Opcode op = m_.op(i);
    if (op == Opcode::Slice) {
      std::vector<SliceDim> slice = *m_.attrs(i).get<std::vector<SliceDim>>(Attr::slice);
      for (size_t d = 0; d < slice.size(); ++d)
        if (marked(i, d)) slice[d].limit = size_of(i, slice[d].limit);
      m_.set_attr(i, Attr::slice, slice);
    }
    if (op != Opcode::DynamicSlice && op != Opcode::Gather) return;
    const Attr key = op == Opcode::Gather ? Attr::slice_sizes : Attr::dynamic_slice_sizes;
    const InstId from = m_.operand(i, 0);
    const Dims& whole = u_[before_[from.value]].dims;
    Dims sizes = m_.attrs(i).ints(key);
    for (size_t d = 0; d < sizes.size(); ++d) {
      const auto dim = static_cast<int64_t>(d);
      if (contains(m_.attrs(i).ints(Attr::collapsed_slice_dims), dim)) continue;
      if (contains(m_.attrs(i).ints(Attr::operand_batching_dims), dim)) continue;
      if (marked(from, d) && sizes[d] == whole[d]) sizes[d] = size_of(i, sizes[d]);
    }
    m_.set_attr(i, key, sizes);
  }

  // The same values once more for each member of the batch: of one number, or where there was one of them.
  LitId tiled(InstId i, ShapeId now) {
    Literal l = m_.literal(i);
    const Shape &old = u_[l.shape], &s = u_[now];
    l.shape = now;
    if (l.elided) return u_.literal(std::move(l));
    const size_t width = l.bytes.size() / static_cast<size_t>(std::max<int64_t>(old.elements_count(), 1));
    if (u_.bytes(now).capped() > int64_t{1} << 30)
      fail(FailureKind::kUnsupported, "{}: a constant of over a GiB", m_.inst_name(i));
    std::string_view one = std::string_view(l.bytes).substr(0, width);
    bool uniform = true;
    for (size_t at = 0; at < l.bytes.size(); at += width) uniform = uniform && l.bytes.compare(at, width, one) == 0;
    for (size_t d = 0; d < s.dims.size(); ++d)
      if (!uniform && s.dims[d] != old.dims[d] && old.dims[d] != 1)
        fail(FailureKind::kUnsupported, "{}: the batch is a dimension of a table of constants", m_.inst_name(i));
    std::string bytes;
    const auto count = static_cast<size_t>(s.elements_count());
    bytes.reserve(count * width);
    Dims at(s.dims.size(), 0);
    for (size_t n = 0; n < count; ++n) {
      size_t from = 0;
      for (size_t d = 0; d < at.size(); ++d)
        from = from * static_cast<size_t>(old.dims[d]) + static_cast<size_t>(at[d] % old.dims[d]);
      bytes.append(l.bytes, from * width, width);
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < s.dims[d]) break;
        at[d] = 0;
      }
    }
    l.bytes = std::move(bytes);
    return u_.literal(std::move(l));
  }

  // A reshape that added the batch as a dimension of one element to what has none.
  bool repeats(InstId i) const {
    const InstId from = m_.operand(i, 0);
    for (size_t d = 0; d < m_.shape(from).dims.size(); ++d)
      if (marked(from, d)) return false;
    return true;
  }
  // reshape f32[1,9](f32[9] x) → broadcast f32[8,9](reshape f32[9](x)), dimensions={1}
  void repeat(InstId i, ShapeId now) {
    const Shape old = u_[m_.shape_id(i)];
    Dims kept, sizes;
    for (size_t d = 0; d < old.dims.size(); ++d)
      if (!marked(i, d)) kept.push_back(static_cast<int64_t>(d)), sizes.push_back(old.dims[d]);
    const CompId comp = m_.parent(i);
    const InstId narrow = m_.add(comp, {.op = Opcode::Reshape,
                                        .shape = u_.array(old.type, sizes),
                                        .operands = {m_.operand(i, 0)},
                                        .meta = m_[i].meta});
    AttrSet a;
    a.op = Opcode::Broadcast;
    a.set(Attr::dimensions, kept);
    const InstId wide = m_.add(comp, {.op = Opcode::Broadcast,
                                      .shape = now,
                                      .operands = {narrow},
                                      .attrs = u_.attrs(std::move(a)),
                                      .meta = m_[i].meta});
    m_.replace_all_uses(i, wide);
    m_.remove(i);
  }

  Module& m_;
  Universe& u_;
  const BatchDimensions& dims_;
  const std::vector<bool>& marked_;
  int64_t from_, to_;
  std::vector<ShapeId> before_;
};

// Every array of a value: its shape and the node of its first dimension.
template <class F>
void each_array(const Universe& u, ShapeId shape, uint32_t* node, F f) {
  const Shape& s = u[shape];
  for (ShapeId e : s.elements) each_array(u, e, node, f);
  if (s.is_tuple()) return;
  f(s, *node);
  *node += static_cast<uint32_t>(s.dims.size());
}
template <class F>
void each_input(const Module& m, const BatchDimensions& dims, F f) {
  for (InstId p : m.comp(m.entry()).params) {
    uint32_t node = dims.first(p);
    each_array(m.u(), m.shape_id(p), &node, [&](const Shape& s, uint32_t at) {
      if (s.rank()) f(p, s, at);
    });
  }
}

// The node of the batch.
uint32_t found_batch(const Module& m, const BatchDimensions& dims, const std::string& wanted) {
  std::map<uint32_t, uint32_t> leading;  // node by group
  std::set<uint32_t> inside;
  each_input(m, dims, [&](InstId p, const Shape& s, uint32_t at) {
    if (wanted.empty() || wanted == m.inst_name(p) || wanted == std::to_string(m.parameter_number(p)))
      leading.try_emplace(dims.group(at), at);
    for (int d = 1; d < s.rank(); ++d) inside.insert(dims.group(at + static_cast<uint32_t>(d)));
  });
  if (!wanted.empty() && leading.size() == 1) return leading.begin()->second;
  if (!wanted.empty())
    fail(FailureKind::kUsage, "{} is {}", wanted,
         leading.empty() ? "no parameter of the entry with dimensions" : "a tuple whose arrays have several batches");
  std::map<uint32_t, size_t> count;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.shape(i).rank())
        if (const uint32_t g = dims.group(dims.first(i)); leading.contains(g) && !inside.contains(g)) ++count[g];
  std::vector<std::pair<size_t, uint32_t>> best;  // most instructions in front
  for (const auto& [g, n] : count) best.emplace_back(n, g);
  std::sort(best.rbegin(), best.rend());
  if (best.empty())
    fail(FailureKind::kUsage, "no parameter's first dimension looks like a batch; --batch=PARAMETER:N names one");
  if (best.size() > 1 && best[0].first == best[1].first)
    fail(FailureKind::kUsage,
         "the first dimensions of several parameters may be the batch; --batch=PARAMETER:N names one");
  return leading.at(best[0].second);
}

// Groups that go together with `batch`, by reshapes, too.
class BatchMarks {
 public:
  BatchMarks(const Module& m, const BatchDimensions& dims, uint32_t batch, int64_t size)
      : m_(m), dims_(dims), size_(size), marked_(dims.nodes()) {
    marked_[dims.group(batch)] = true;
    for (bool more = true; more;) {
      more = false;
      for (const auto& r : dims.reshaped()) {
        more |= carry(r, r.operand, r.operand_sizes, r.result, r.result_sizes, false);
        more |= carry(r, r.result, r.result_sizes, r.operand, r.operand_sizes, true);
      }
    }
    for (const auto& f : dims.fixed())
      if (at(f.node)) fail(FailureKind::kUnsupported, "{}: the batch {}", m.inst_name(f.inst), f.why);
  }
  const std::vector<bool>& marked() const { return marked_; }
  bool at(uint32_t node) const { return marked_[dims_.group(node)]; }

 private:
  bool carry(const BatchDimensions::Reshaped& r, const std::vector<uint32_t>& from, const Dims& from_sizes,
             const std::vector<uint32_t>& to, const Dims& to_sizes, bool back) {
    if (std::any_of(to.begin(), to.end(), [&](uint32_t n) { return at(n); })) return false;
    size_t k = 0;
    while (k < from.size() && !at(from[k])) ++k;
    if (k == from.size()) return false;
    // A batch of one that the reshape adds: what it is added to is the same for each member.
    if (back && from_sizes[k] == 1) return false;
    const bool first = std::all_of(from_sizes.begin(), from_sizes.begin() + static_cast<ptrdiff_t>(k),
                                   [](int64_t d) { return d == 1; });
    size_t t = 0;
    while (size_ > 1 && t < to.size() && to_sizes[t] == 1) ++t;
    if (!first || t == to.size() || to_sizes[t] % size_)
      fail(FailureKind::kUnsupported, "{}: the batch is in the middle of what the reshape takes apart or together",
           m_.inst_name(r.inst));
    return marked_[dims_.group(to[t])] = true;
  }

  const Module& m_;
  const BatchDimensions& dims_;
  int64_t size_;
  std::vector<bool> marked_;  // by group
};

int64_t size_at(const Module& m, const BatchDimensions& dims, uint32_t node) {
  int64_t size = 0;
  each_input(m, dims, [&](InstId, const Shape& s, uint32_t at) {
    if (node >= at && node < at + static_cast<uint32_t>(s.rank())) size = s.dims[node - at];
  });
  return size;
}

}  // namespace

std::string BatchChange::in_words() const {
  return fmt::format(
      "batch {} → {}: {} instructions, parameter{} {}; numbers that were computed from it stay as they are", from, to,
      instructions, parameters.size() == 1 ? "" : "s", fmt::join(parameters, ", "));
}

std::unique_ptr<Module> with_batch(const Module& m, const std::string& parameter, int64_t to, BatchChange* change) {
  const BatchDimensions plain(m, false);
  const uint32_t batch = found_batch(m, plain, parameter);
  const int64_t from = size_at(m, plain, batch);
  // The same nodes, in other groups.
  std::optional<BatchDimensions> of_one;
  if (from == 1) of_one.emplace(m, true);
  const BatchDimensions& dims = of_one ? *of_one : plain;
  if (from < 1) fail(FailureKind::kUnsupported, "a batch of {} cannot be made another one", from);
  const BatchMarks marks(m, dims, batch, from);
  *change = {{}, from, to, 0};
  each_input(m, dims, [&](InstId p, const Shape& s, uint32_t at) {
    for (uint32_t d = 0; d < static_cast<uint32_t>(s.rank()); ++d) {
      if (!marks.at(at + d)) continue;
      if (d || s.dims[d] != from)
        fail(FailureKind::kUnsupported, "{}: dimension {} of this parameter, {}, would go with the batch of {}",
             m.inst_name(p), d, s.dims[d], from);
    }
    if (marks.at(at) && (change->parameters.empty() || change->parameters.back() != m.inst_name(p)))
      change->parameters.emplace_back(m.inst_name(p));
  });
  std::unique_ptr<Module> out = m.clone();
  change->instructions = BatchEdit(*out, dims, marks.marked(), from, to).run();
  if (const std::vector<VerifyError> errors = verify_module(*out); !errors.empty())
    fail(FailureKind::kUnsupported, "the batch cannot be followed: {}", errors[0].message);
  return out;
}

}  // namespace hlo
