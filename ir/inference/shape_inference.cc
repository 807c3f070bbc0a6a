#include "ir/inference/shape_inference.h"

#include <algorithm>
#include <set>

namespace hlo {
namespace {

class Inferrer {
 public:
  Inferrer(const Module& m, Opcode op, std::span<const InstId> operands, const AttrSet& attrs, bool mixed)
      : m_(m), u_(m.u()), op_(op), operands_(operands), attrs_(attrs), mixed_(mixed) {}

  Inferred run() {
    Inferred out;
    ShapeId s = infer();
    if (error_.empty()) out.shape = s;
    out.error = std::move(error_);
    return out;
  }

 private:
  ShapeId id(size_t i) const { return m_.shape_id(operands_[i]); }
  const Shape& at(size_t i) const { return m_.shape(operands_[i]); }
  size_t count() const { return operands_.size(); }

  template <class... A>
  ShapeId bad(fmt::format_string<A...> text, A&&... args) {
    if (error_.empty()) error_ = fmt::format(text, std::forward<A>(args)...);
    return ShapeId();
  }
  ShapeId plain(ShapeId s) { return u_.with_default_layout(s); }
  ShapeId root_of(CompId c) {
    return c.valid() && m_.comp(c).root.valid() ? plain(m_.shape_id(m_.comp(c).root)) : ShapeId();
  }
  bool arrays() {
    for (size_t i = 0; i < count(); ++i)
      if (!at(i).is_array())
        return bad("{} takes arrays, operand {} is a {}", op_text(op_), i, u_.shape_text_plain(id(i))), false;
    return true;
  }

  // In type; floats do not where precisions are mixed.
  bool differ(const Shape& a, const Shape& b) const {
    return a.type != b.type && !(mixed_ && is_float(a.type) && is_float(b.type));
  }

  // Same dimensions; a dynamic one anywhere makes the result's dynamic.
  ShapeId elementwise(bool same_type) {
    if (!arrays() || !count()) return ShapeId();
    Shape out = at(0);
    out.layout = {default_minor_to_major(out.rank()), "", 0};
    for (size_t i = 1; i < count(); ++i) {
      if (at(i).dims != at(0).dims)
        return bad("operands of {} have different dimensions: {} and {}", op_text(op_), u_.shape_text_plain(id(0)),
                   u_.shape_text_plain(id(i)));
      if (same_type && differ(at(i), at(0)))
        return bad("operands of {} have different types: {} and {}", op_text(op_), u_.shape_text_plain(id(0)),
                   u_.shape_text_plain(id(i)));
      if (at(i).is_dynamic()) {
        if (out.dynamic.empty()) out.dynamic.assign(out.dims.size(), false);
        for (size_t d = 0; d < out.dims.size(); ++d)
          if (at(i).dynamic[d]) out.dynamic[d] = true;
      }
    }
    return u_.shape(std::move(out));
  }
  ShapeId typed(ShapeId s, ElementType t) { return s.valid() ? u_.with_type(s, t) : s; }

  bool distinct(const Dims& d, int rank, const char* what) {
    std::set<int64_t> seen;
    for (int64_t v : d) {
      if (v < 0 || v >= rank) return bad("{} of {} names dimension {} of {}", what, op_text(op_), v, rank), false;
      if (!seen.insert(v).second) return bad("{} of {} names dimension {} twice", what, op_text(op_), v), false;
    }
    return true;
  }

  ShapeId dot() {
    if (!arrays()) return ShapeId();
    const Dims &lb = attrs_.ints(Attr::lhs_batch_dims), &rb = attrs_.ints(Attr::rhs_batch_dims);
    const Dims &lc = attrs_.ints(Attr::lhs_contracting_dims), &rc = attrs_.ints(Attr::rhs_contracting_dims);
    const Shape &l = at(0), &r = at(1);
    if (!distinct(lb, l.rank(), "lhs_batch_dims") || !distinct(rb, r.rank(), "rhs_batch_dims") ||
        !distinct(lc, l.rank(), "lhs_contracting_dims") || !distinct(rc, r.rank(), "rhs_contracting_dims"))
      return ShapeId();
    if (lb.size() != rb.size() || lc.size() != rc.size())
      return bad("{} has different numbers of batch or contracting dimensions on its sides", op_text(op_));
    for (size_t i = 0; i < lb.size(); ++i)
      if (l.dims[static_cast<size_t>(lb[i])] != r.dims[static_cast<size_t>(rb[i])])
        return bad("batch dimensions of {} differ in size", op_text(op_));
    for (size_t i = 0; i < lc.size(); ++i)
      if (l.dims[static_cast<size_t>(lc[i])] != r.dims[static_cast<size_t>(rc[i])])
        return bad("contracting dimensions of {} differ in size: {} and {}", op_text(op_),
                   l.dims[static_cast<size_t>(lc[i])], r.dims[static_cast<size_t>(rc[i])]);
    Dims out;
    for (int64_t b : lb) out.push_back(l.dims[static_cast<size_t>(b)]);
    auto rest = [&](const Shape& s, const Dims& batch, const Dims& contracting) {
      for (int64_t d = 0; d < s.rank(); ++d)
        if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
            std::find(contracting.begin(), contracting.end(), d) == contracting.end())
          out.push_back(s.dims[static_cast<size_t>(d)]);
    };
    rest(l, lb, lc), rest(r, rb, rc);
    return u_.array(higher_precision(l.type, r.type), std::move(out));
  }

  ShapeId convolution() {
    if (!arrays()) return ShapeId();
    const DimLabels* d = attrs_.get<DimLabels>(Attr::dim_labels);
    const Window* w = attrs_.get<Window>(Attr::window);
    static const Window kNone;
    if (!w) w = &kNone;
    if (!d) return bad("convolution needs dim_labels");
    const Shape &l = at(0), &r = at(1);
    if (l.rank() != d->lhs_rank || r.rank() != d->rhs_rank) return bad("dim_labels do not fit the operands' ranks");
    if (w->dims.size() != d->input_spatial.size())
      return bad("window has {} dimensions, dim_labels {}", w->dims.size(), d->input_spatial.size());
    int64_t groups = attrs_.integer(Attr::feature_group_count, 1),
            batch_groups = attrs_.integer(Attr::batch_group_count, 1);
    if (groups < 1 || batch_groups < 1) return bad("group counts of a convolution are positive");
    int64_t in_f = l.dims[static_cast<size_t>(d->input_feature)], k_in = r.dims[static_cast<size_t>(d->kernel_input)];
    if (in_f != k_in * groups)
      return bad("the input has {} features, the kernel takes {} in {} group(s)", in_f, k_in, groups);
    if (r.dims[static_cast<size_t>(d->kernel_output)] % groups)
      return bad("kernel output features are not divisible by the group count");
    if (l.dims[static_cast<size_t>(d->input_batch)] % batch_groups)
      return bad("the batch is not divisible by the batch group count");
    Dims out(static_cast<size_t>(d->out_rank), 0);
    out[static_cast<size_t>(d->output_batch)] = l.dims[static_cast<size_t>(d->input_batch)] / batch_groups;
    out[static_cast<size_t>(d->output_feature)] = r.dims[static_cast<size_t>(d->kernel_output)];
    for (size_t i = 0; i < w->dims.size(); ++i) {
      if (w->dims[i].size != r.dims[static_cast<size_t>(d->kernel_spatial[i])])
        return bad("window size {} is not the kernel's {}", w->dims[i].size,
                   r.dims[static_cast<size_t>(d->kernel_spatial[i])]);
      if (w->dims[i].stride < 1) return bad("window strides are positive");
      if (!window_fits(w->dims[i], l.dims[static_cast<size_t>(d->input_spatial[i])]))
        return bad("the window of dimension {} does not fit into 63 bits", i);
      out[static_cast<size_t>(d->output_spatial[i])] =
          w->dims[i].output_size(l.dims[static_cast<size_t>(d->input_spatial[i])]);
    }
    ElementType type = higher_precision(l.type, r.type);
    return u_.array(type, std::move(out));
  }

  ShapeId reduce() {
    size_t n = count() / 2;
    if (count() % 2 || !n) return bad("reduce takes inputs and as many initial values");
    if (!arrays()) return ShapeId();
    const Dims& dims = attrs_.ints(Attr::dimensions);
    if (!distinct(dims, at(0).rank(), "dimensions")) return ShapeId();
    std::vector<ShapeId> parts;
    CompId c = attrs_.comp(Attr::to_apply);
    for (size_t i = 0; i < n; ++i) {
      if (at(i).dims != at(0).dims) return bad("inputs of reduce have different dimensions");
      if (at(n + i).rank()) return bad("initial values of reduce are scalars");
      Shape s;
      s.type = at(i).type;
      // The reducer's result decides the type.
      if (ShapeId root = root_of(c); root.valid()) {
        const Shape& r = u_[root];
        if (r.is_tuple() && i < r.elements.size())
          s.type = u_[r.elements[i]].type;
        else if (r.is_array())
          s.type = r.type;
      }
      for (int d = 0; d < at(i).rank(); ++d)
        if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
          s.dims.push_back(at(i).dims[static_cast<size_t>(d)]);
          s.dynamic.push_back(at(i).is_dynamic() && at(i).dynamic[static_cast<size_t>(d)]);
        }
      parts.push_back(u_.shape(std::move(s)));
    }
    ShapeId root = root_of(c);
    return n == 1 && !(root.valid() && u_[root].is_tuple()) ? parts[0] : u_.tuple(std::move(parts));
  }

  ShapeId window_shape(const Shape& in, ElementType type) {
    const Window* w = attrs_.get<Window>(Attr::window);
    if (!w || static_cast<int>(w->dims.size()) != in.rank())
      return bad("window has {} dimensions, the operand {}", w ? w->dims.size() : 0, in.rank());
    Dims out;
    for (size_t i = 0; i < w->dims.size(); ++i) {
      if (w->dims[i].stride < 1) return bad("window strides are positive");
      if (!window_fits(w->dims[i], in.dims[i])) return bad("the window of dimension {} does not fit into 63 bits", i);
      out.push_back(w->dims[i].output_size(in.dims[i]));
    }
    return u_.array(type, std::move(out));
  }

  ShapeId gather() {
    if (!arrays()) return ShapeId();
    const Dims &offset = attrs_.ints(Attr::offset_dims), &collapsed = attrs_.ints(Attr::collapsed_slice_dims),
               &sizes = attrs_.ints(Attr::slice_sizes);
    const Dims& batching = attrs_.ints(Attr::operand_batching_dims);
    int64_t ivd = attrs_.integer(Attr::index_vector_dim);
    const Shape &in = at(0), &idx = at(1);
    if (static_cast<int>(sizes.size()) != in.rank())
      return bad("gather has {} slice sizes for {} dimensions", sizes.size(), in.rank());
    if (ivd < 0 || ivd > idx.rank()) return bad("index_vector_dim {} of gather is out of range", ivd);
    Dims batch, window;
    for (int i = 0; i < idx.rank(); ++i)
      if (i != ivd) batch.push_back(idx.dims[static_cast<size_t>(i)]);
    for (int i = 0; i < in.rank(); ++i) {
      if (sizes[static_cast<size_t>(i)] < 0 || sizes[static_cast<size_t>(i)] > in.dims[static_cast<size_t>(i)])
        return bad("slice size {} of gather is out of range", sizes[static_cast<size_t>(i)]);
      if (std::find(collapsed.begin(), collapsed.end(), i) == collapsed.end() &&
          std::find(batching.begin(), batching.end(), i) == batching.end())
        window.push_back(sizes[static_cast<size_t>(i)]);
    }
    if (window.size() != offset.size())
      return bad("gather has {} offset_dims for {} window dimensions", offset.size(), window.size());
    Dims out(batch.size() + window.size(), -1);
    for (size_t i = 0; i < offset.size(); ++i) {
      if (offset[i] < 0 || offset[i] >= static_cast<int64_t>(out.size()))
        return bad("offset_dims of gather are out of range");
      out[static_cast<size_t>(offset[i])] = window[i];
    }
    size_t next = 0;
    for (int64_t& d : out)
      if (d < 0) d = next < batch.size() ? batch[next++] : 0;
    return u_.array(in.type, std::move(out));
  }

  ShapeId select() {
    if (!arrays()) return ShapeId();
    if (at(0).type != ElementType::Pred)
      return bad("the first operand of select is a pred, not a {}", u_.shape_text_plain(id(0)));
    if (at(1).dims != at(2).dims || differ(at(1), at(2)))
      return bad("operands of select have different shapes: {} and {}", u_.shape_text_plain(id(1)),
                 u_.shape_text_plain(id(2)));
    if (at(0).rank() && at(0).dims != at(1).dims)
      return bad("the pred of select is a scalar or has the dimensions of the others");
    return plain(id(1));
  }

  ShapeId clamp() {
    if (!arrays()) return ShapeId();
    for (size_t i : {size_t{0}, size_t{2}})
      if (differ(at(i), at(1)) || (at(i).rank() && at(i).dims != at(1).dims))
        return bad("bounds of clamp are scalars or have the shape of the value");
    return plain(id(1));
  }

  ShapeId tuple_element() {
    int64_t i = attrs_.integer(Attr::index);
    if (!at(0).is_tuple() || i < 0 || i >= static_cast<int64_t>(at(0).elements.size()))
      return bad("no element {} in {}", i, u_.shape_text_plain(id(0)));
    return at(0).elements[static_cast<size_t>(i)];
  }

  ShapeId transpose() {
    const Dims& perm = attrs_.ints(Attr::dimensions);
    if (!arrays() || !distinct(perm, at(0).rank(), "dimensions")) return ShapeId();
    if (static_cast<int>(perm.size()) != at(0).rank())
      return bad("transpose of {} dimensions of {}", perm.size(), at(0).rank());
    Shape s;
    s.type = at(0).type;
    for (int64_t d : perm) {
      s.dims.push_back(at(0).dims[static_cast<size_t>(d)]);
      s.dynamic.push_back(at(0).is_dynamic() && at(0).dynamic[static_cast<size_t>(d)]);
    }
    // XLA infers the layout that makes the transpose a bitcast (ShapeUtil::PermuteDimensions).
    Dims inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    s.has_layout = true;
    for (int64_t d : at(0).layout.minor_to_major) s.layout.minor_to_major.push_back(inverse[static_cast<size_t>(d)]);
    if (at(0).layout.rest.starts_with("E(")) s.layout.rest = at(0).layout.rest;
    return u_.shape(std::move(s));
  }

  ShapeId concatenate() {
    if (!arrays() || !count()) return bad("concatenate needs operands");
    const Dims& dims = attrs_.ints(Attr::dimensions);
    if (dims.size() != 1 || dims[0] < 0 || dims[0] >= at(0).rank())
      return bad("concatenate takes one dimension of its operands");
    Shape s = at(0);
    s.layout = {default_minor_to_major(s.rank()), "", 0};
    for (size_t i = 1; i < count(); ++i) {
      if (at(i).rank() != s.rank() || differ(at(i), s))
        return bad("operands of concatenate have different ranks or types");
      for (int d = 0; d < s.rank(); ++d)
        if (d != dims[0] && at(i).dims[static_cast<size_t>(d)] != s.dims[static_cast<size_t>(d)])
          return bad("operands of concatenate differ in dimension {}", d);
      int64_t& sum = s.dims[static_cast<size_t>(dims[0])];
      if (__builtin_add_overflow(sum, at(i).dims[static_cast<size_t>(dims[0])], &sum))
        return bad("the sum of what concatenate joins does not fit into 63 bits");
    }
    return u_.shape(std::move(s));
  }

  ShapeId slice() {
    const auto* slices = attrs_.get<std::vector<SliceDim>>(Attr::slice);
    if (!arrays() || !slices) return ShapeId();
    if (static_cast<int>(slices->size()) != at(0).rank())
      return bad("slice of {} dimensions of {}", slices->size(), at(0).rank());
    Dims out;
    for (size_t i = 0; i < slices->size(); ++i) {
      const SliceDim& s = (*slices)[i];
      if (s.stride < 1 || s.start < 0 || s.limit < s.start || s.limit > at(0).dims[i])
        return bad("slice [{}:{}:{}] is out of range of dimension {} of size {}", s.start, s.limit, s.stride, i,
                   at(0).dims[i]);
      out.push_back((s.limit - s.start) / s.stride + ((s.limit - s.start) % s.stride != 0));
    }
    return u_.array(at(0).type, std::move(out));
  }

  ShapeId dynamic_slice() {
    const Dims& sizes = attrs_.ints(Attr::dynamic_slice_sizes);
    if (!at(0).is_array() || static_cast<int>(sizes.size()) != at(0).rank())
      return bad("dynamic-slice has {} sizes for {}", sizes.size(), u_.shape_text_plain(id(0)));
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] < 0 || sizes[i] > at(0).dims[i])
        return bad("dynamic-slice size {} is out of range of dimension {}", sizes[i], i);
    return u_.array(at(0).type, sizes);
  }

  ShapeId dynamic_update_slice() {
    if (!at(0).is_array() || !at(1).is_array() || at(0).rank() != at(1).rank() || differ(at(0), at(1)))
      return bad("the update of dynamic-update-slice does not fit its operand");
    for (size_t i = 0; i < at(0).dims.size(); ++i)
      if (at(1).dims[i] > at(0).dims[i]) return bad("the update of dynamic-update-slice is larger than its operand");
    return plain(id(0));
  }

  ShapeId pad() {
    const auto* pads = attrs_.get<std::vector<PaddingDim>>(Attr::padding);
    if (!arrays() || !pads) return ShapeId();
    if (static_cast<int>(pads->size()) != at(0).rank())
      return bad("padding of {} dimensions of {}", pads->size(), at(0).rank());
    if (at(1).rank() || differ(at(1), at(0))) return bad("the padding value is a scalar of the operand's type");
    Dims out;
    for (size_t i = 0; i < pads->size(); ++i) {
      const PaddingDim& p = (*pads)[i];
      int64_t n = at(0).dims[i];
      int64_t between = 0, sides = 0;
      if (__builtin_mul_overflow(std::max<int64_t>(n - 1, 0), p.interior, &between) ||
          __builtin_add_overflow(p.low, p.high, &sides) || __builtin_add_overflow(n, between, &n) ||
          __builtin_add_overflow(n, sides, &n))
        return bad("padding makes dimension {} larger than 63 bits", i);
      if (n < 0) return bad("padding makes dimension {} negative", i);
      out.push_back(n);
    }
    return u_.array(at(0).type, std::move(out));
  }

  ShapeId reduce_window() {
    size_t n = count() / 2;
    if (count() % 2 || !n || !arrays()) return bad("reduce-window takes inputs and as many initial values");
    std::vector<ShapeId> parts;
    for (size_t i = 0; i < n; ++i) {
      ElementType type = at(i).type;
      if (ShapeId root = root_of(attrs_.comp(Attr::to_apply)); root.valid()) {
        const Shape& r = u_[root];
        type = r.is_tuple() && i < r.elements.size() ? u_[r.elements[i]].type : r.is_array() ? r.type : type;
      }
      parts.push_back(window_shape(at(i), type));
    }
    if (!error_.empty()) return ShapeId();
    return n == 1 ? parts[0] : u_.tuple(std::move(parts));
  }

  ShapeId sort() {
    if (!arrays() || !count()) return ShapeId();
    std::vector<ShapeId> parts;
    for (size_t i = 0; i < count(); ++i) {
      if (at(i).dims != at(0).dims) return bad("operands of sort have different dimensions");
      parts.push_back(plain(id(i)));
    }
    return count() == 1 ? parts[0] : u_.tuple(std::move(parts));
  }

  ShapeId top_k() {
    if (!arrays()) return ShapeId();
    Shape s = at(0);
    if (!s.rank()) return bad("topk needs an array of at least one dimension");
    s.layout = {default_minor_to_major(s.rank()), "", 0};
    s.dims.back() = attrs_.integer(Attr::k);
    if (s.dims.back() < 0) return bad("topk takes {} elements", s.dims.back());
    ShapeId values = u_.shape(s);
    return u_.tuple({values, u_.with_type(values, ElementType::S32)});
  }

  ShapeId scatter() {
    size_t n = count() / 2;
    if (count() % 2 == 0 || !n) return bad("scatter takes inputs, indices and as many updates");
    std::vector<ShapeId> parts;
    for (size_t i = 0; i < n; ++i) parts.push_back(plain(id(i)));
    return n == 1 ? parts[0] : u_.tuple(std::move(parts));
  }

  ShapeId fft() {
    if (!arrays()) return ShapeId();
    std::string_view kind = u_.text(attrs_.text(Attr::fft_type));
    const Dims& length = attrs_.ints(Attr::fft_length);
    Shape s = at(0);
    if (length.empty() || static_cast<int>(length.size()) > s.rank())
      return bad("fft of {} dimensions of {}", length.size(), s.rank());
    if (std::any_of(length.begin(), length.end(), [](int64_t n) { return n < 0; }))
      return bad("fft of a negative length");
    s.layout = {default_minor_to_major(s.rank()), "", 0};
    if (kind == "RFFT") {
      s.type = s.type == ElementType::F64 ? ElementType::C128 : ElementType::C64;
      s.dims.back() = length.back() / 2 + 1;
    } else if (kind == "IRFFT") {
      s.type = component_type(s.type);
      s.dims.back() = length.back();
    }
    return u_.shape(std::move(s));
  }

  ShapeId map() {
    ShapeId root = root_of(attrs_.comp(Attr::to_apply));
    return root.valid() && count() ? typed(plain(id(0)), u_[root].type) : ShapeId();
  }

  // The operands' shapes: the only one, or a tuple of all.
  ShapeId all_operands() {
    if (!count()) return ShapeId();
    std::vector<ShapeId> parts;
    for (size_t i = 0; i < count(); ++i) parts.push_back(id(i));
    return count() == 1 ? parts[0] : u_.tuple(std::move(parts));
  }

  // What the operands, a computation that is called or the operation alone decide.
  ShapeId handed_on() {
    switch (op_) {
      case Opcode::Copy:
      case Opcode::OptBarrier:
      case Opcode::Domain:
        return count() ? id(0) : ShapeId();
      case Opcode::AddDependency:
      case Opcode::While:
      case Opcode::AllReduceDone:
        return id(0);
      case Opcode::SelectAndScatter:
      case Opcode::BatchNormInference:
      case Opcode::Cholesky:
      case Opcode::SetDimensionSize:
        return plain(id(0));
      case Opcode::TriangularSolve:
        return plain(id(1));
      case Opcode::AfterAll:
        return u_.token();
      case Opcode::PartitionId:
      case Opcode::ReplicaId:
        return u_.scalar(ElementType::U32);
      case Opcode::GetDimensionSize:
        return u_.scalar(ElementType::S32);
      case Opcode::BatchNormTraining:
      case Opcode::BatchNormGrad:
        return u_.tuple({plain(id(0)), plain(id(1)), plain(id(1))});
      case Opcode::AllReduce:
      case Opcode::AllReduceStart:
        return all_operands();
      case Opcode::CollectiveBroadcast:
      case Opcode::CollectivePermute:
        return count() == 1 ? id(0) : ShapeId();
      case Opcode::Call:
        return root_of(attrs_.comp(Attr::to_apply));
      case Opcode::Conditional:
        return attrs_.called.empty() ? ShapeId() : root_of(attrs_.called[0]);
      case Opcode::Broadcast:
        arrays();
        return ShapeId();
      case Opcode::Convert:
      case Opcode::BitcastConvert:
      case Opcode::ReducePrecision:
      case Opcode::StochasticConvert:
        return ShapeId();
      default:
        return op_info(op_).elementwise ? elementwise(true) : ShapeId();
    }
  }

  ShapeId infer() {
    switch (op_) {
      case Opcode::Compare:
      case Opcode::IsFinite:
        return typed(elementwise(true), ElementType::Pred);
      case Opcode::Complex:
        return typed(elementwise(true),
                     count() && at(0).type == ElementType::F64 ? ElementType::C128 : ElementType::C64);
      case Opcode::Abs:
      case Opcode::Real:
      case Opcode::Imag:
        return arrays() ? typed(elementwise(true), component_type(at(0).type)) : ShapeId();
      case Opcode::Tuple: {
        std::vector<ShapeId> parts;
        for (size_t i = 0; i < count(); ++i) parts.push_back(id(i));
        return u_.tuple(std::move(parts));
      }
      case Opcode::Reverse:
        return arrays() && distinct(attrs_.ints(Attr::dimensions), at(0).rank(), "dimensions") ? plain(id(0))
                                                                                               : ShapeId();
      case Opcode::Dot:
        return dot();
      case Opcode::Convolution:
        return convolution();
      case Opcode::Reduce:
        return reduce();
      case Opcode::Gather:
        return gather();
      case Opcode::Select:
        return select();
      case Opcode::Clamp:
        return clamp();
      case Opcode::GetTupleElement:
        return tuple_element();
      case Opcode::Transpose:
        return transpose();
      case Opcode::Concatenate:
        return concatenate();
      case Opcode::Slice:
        return slice();
      case Opcode::DynamicSlice:
        return dynamic_slice();
      case Opcode::DynamicUpdateSlice:
        return dynamic_update_slice();
      case Opcode::Pad:
        return pad();
      case Opcode::ReduceWindow:
        return reduce_window();
      case Opcode::Sort:
        return sort();
      case Opcode::TopK:
        return top_k();
      case Opcode::Scatter:
        return scatter();
      case Opcode::Fft:
        return fft();
      case Opcode::Map:
        return map();
      default:
        return handed_on();
    }
  }

  const Module& m_;
  Universe& u_;
  Opcode op_;
  std::span<const InstId> operands_;
  const AttrSet& attrs_;
  bool mixed_;
  std::string error_;
};

}  // namespace

bool window_fits(const WindowDim& w, int64_t input) {
  auto dilated = [](int64_t extent, int64_t dilation, int64_t* out) {
    if (extent == 0) return *out = 0, true;
    return !__builtin_sub_overflow(extent, 1, out) && !__builtin_mul_overflow(*out, dilation, out) &&
           !__builtin_add_overflow(*out, 1, out);
  };
  int64_t padded = 0, reach = 0, free = 0;
  return dilated(input, w.lhs_dilate, &padded) && dilated(w.size, w.rhs_dilate, &reach) &&
         !__builtin_add_overflow(padded, w.pad_low, &padded) && !__builtin_add_overflow(padded, w.pad_high, &padded) &&
         !__builtin_sub_overflow(padded, reach, &free);
}

bool is_prefix_of(Universe& u, ShapeId part, ShapeId whole) {
  if (u.compatible(part, whole)) return true;
  const Shape &x = u[part], &y = u[whole];
  if (!x.is_tuple()) return false;
  if (x.elements.empty()) return true;
  if (!y.is_tuple() || x.elements.size() > y.elements.size()) return false;
  for (size_t k = 0; k < x.elements.size(); ++k)
    if (!u.compatible(x.elements[k], y.elements[k])) return false;
  return true;
}

Inferred infer_shape(const Module& m, Opcode op, std::span<const InstId> operands, const AttrSet& attrs, bool mixed) {
  return Inferrer(m, op, operands, attrs, mixed).run();
}

}  // namespace hlo
