// Gather and scatter in all their forms.
#include <algorithm>
#include <cstring>

#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"

namespace hlo {
namespace {

// Steps an index through dims in row-major order; false at the end.
bool advance(Dims& index, const Dims& dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}
int64_t flat(const Dims& index, const Dims& strides) {
  int64_t out = 0;
  for (size_t i = 0; i < index.size(); ++i) out += index[i] * strides[i];
  return out;
}
}  // namespace

Value Evaluator::gather(InstId inst, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  const Shape &in = u_[ops[0].shape], &idx = u_[ops[1].shape];
  Value out = make(m_.shape_id(inst));
  const Shape& os = u_[out.shape];
  if (!os.elements_count()) return out;
  const Dims &offset = a.ints(Attr::offset_dims), &collapsed = a.ints(Attr::collapsed_slice_dims),
             &map = a.ints(Attr::start_index_map);
  const Dims &batching = a.ints(Attr::operand_batching_dims), &idx_batching = a.ints(Attr::start_indices_batching_dims),
             &sizes = a.ints(Attr::slice_sizes);
  int64_t ivd = a.integer(Attr::index_vector_dim);
  Dims in_strides = row_major_strides(in.dims), idx_strides = row_major_strides(idx.dims),
       out_strides = row_major_strides(os.dims);
  Dims batch_out, batch_idx;  // dimensions of the output and of the indices that run together
  for (int64_t i = 0; i < os.rank(); ++i)
    if (!contains(offset, i)) batch_out.push_back(i);
  for (int64_t i = 0; i < idx.rank(); ++i)
    if (i != ivd) batch_idx.push_back(i);
  Dims window_in;
  for (int64_t i = 0; i < in.rank(); ++i)
    if (!contains(collapsed, i) && !contains(batching, i)) window_in.push_back(i);
  Dims batch_dims;
  for (int64_t d : batch_idx) batch_dims.push_back(idx.dims[static_cast<size_t>(d)]);
  Dims window_dims, window_in_strides, window_out_strides;
  for (size_t i = 0; i < window_in.size(); ++i) {
    window_dims.push_back(sizes[static_cast<size_t>(window_in[i])]);
    window_in_strides.push_back(in_strides[static_cast<size_t>(window_in[i])]);
    window_out_strides.push_back(out_strides[static_cast<size_t>(offset[i])]);
  }
  int width = storage_bytes(in.type), idx_width = storage_bytes(idx.type);
  const bool single = std::all_of(window_dims.begin(), window_dims.end(), [](int64_t d) { return d == 1; });
  Dims at(batch_dims.size(), 0);
  do {
    int64_t idx_at = 0, out_at = 0, in_at = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      idx_at += at[i] * idx_strides[static_cast<size_t>(batch_idx[i])];
      out_at += at[i] * out_strides[static_cast<size_t>(batch_out[i])];
    }
    for (size_t k = 0; k < map.size(); ++k) {
      int64_t where = idx_at + (ivd < idx.rank() ? static_cast<int64_t>(k) * idx_strides[static_cast<size_t>(ivd)] : 0);
      int64_t start = load_int(idx.type, ops[1].bytes() + where * idx_width);
      if (idx.type == ElementType::U64 && start < 0) start = INT64_MAX;
      size_t d = static_cast<size_t>(map[k]);
      in_at += std::clamp<int64_t>(start, 0, in.dims[d] - sizes[d]) * in_strides[d];
    }
    for (size_t k = 0; k < batching.size(); ++k) {
      size_t which =
          static_cast<size_t>(std::find(batch_idx.begin(), batch_idx.end(), idx_batching[k]) - batch_idx.begin());
      in_at += at[which] * in_strides[static_cast<size_t>(batching[k])];
    }
    const char* from = ops[0].bytes() + in_at * width;
    char* to = out.data->data() + out_at * width;
    if (single)
      std::memcpy(to, from, static_cast<size_t>(width));
    else
      copy_nd(window_dims, from, window_in_strides, to, window_out_strides, width);
  } while (advance(at, batch_dims));
  return out;
}

namespace {

// Where the elements of a scatter's updates go.
class ScatterPlaces {
 public:
  ScatterPlaces(const AttrSet& a, const Shape& in, const Shape& idx, const Shape& up, const char* indices)
      : in_(in),
        idx_(idx),
        up_(up),
        indices_(indices),
        window_(a.ints(Attr::update_window_dims)),
        map_(a.ints(Attr::scatter_dims_to_operand_dims)),
        batching_(a.ints(Attr::input_batching_dims)),
        ivd_(a.integer(Attr::index_vector_dim)),
        idx_width_(storage_bytes(idx.type)),
        in_strides_(row_major_strides(in.dims)),
        idx_strides_(row_major_strides(idx.dims)) {
    const Dims &inserted = a.ints(Attr::inserted_window_dims),
               &idx_batching = a.ints(Attr::scatter_indices_batching_dims);
    for (int64_t i = 0; i < up.rank(); ++i)
      if (!contains(window_, i)) batch_up_.push_back(i);
    for (int64_t i = 0; i < idx.rank(); ++i)
      if (i != ivd_) batch_idx_.push_back(i);
    for (int64_t i = 0; i < in.rank(); ++i)
      if (!contains(inserted, i) && !contains(batching_, i)) window_in_.push_back(i);
    for (size_t k = 0; k < batching_.size(); ++k) {
      auto which = std::find(batch_idx_.begin(), batch_idx_.end(), idx_batching[k]) - batch_idx_.begin();
      batch_of_.push_back(batch_up_[static_cast<size_t>(which)]);
    }
  }

  // The updates' dimensions, those of a window last.
  Dims order() const {
    Dims all = batch_up_;
    all.insert(all.end(), window_.begin(), window_.end());
    return all;
  }

  // False where the window of the update at `at` leaves the operand anywhere: it is skipped whole.
  bool find(const Dims& at, int64_t* to) const {
    int64_t idx_at = 0;
    bool inside = true;
    Dims where(in_.dims.size(), 0);
    for (size_t i = 0; i < batch_up_.size(); ++i)
      idx_at += at[static_cast<size_t>(batch_up_[i])] * idx_strides_[static_cast<size_t>(batch_idx_[i])];
    for (size_t k = 0; k < map_.size(); ++k) {
      int64_t place =
          idx_at + (ivd_ < idx_.rank() ? static_cast<int64_t>(k) * idx_strides_[static_cast<size_t>(ivd_)] : 0);
      int64_t start = load_int(idx_.type, indices_ + place * idx_width_);
      if (idx_.type == ElementType::U64 && start < 0) start = INT64_MAX / 2;
      where[static_cast<size_t>(map_[k])] = start;
    }
    for (size_t k = 0; k < batching_.size(); ++k)
      where[static_cast<size_t>(batching_[k])] = at[static_cast<size_t>(batch_of_[k])];
    for (size_t i = 0; i < window_.size(); ++i) {
      size_t d = static_cast<size_t>(window_in_[i]);
      int64_t base = where[d];
      if (base < 0 || base > in_.dims[d] - up_.dims[static_cast<size_t>(window_[i])]) inside = false;
      where[d] = base + at[static_cast<size_t>(window_[i])];
    }
    for (size_t d = 0; d < where.size() && inside; ++d) inside = where[d] >= 0 && where[d] < in_.dims[d];
    if (inside) *to = flat(where, in_strides_);
    return inside;
  }

 private:
  const Shape &in_, &idx_, &up_;
  const char* indices_;
  const Dims &window_, &map_, &batching_;
  int64_t ivd_;
  int idx_width_;
  Dims in_strides_, idx_strides_;
  Dims batch_up_, batch_idx_, window_in_;
  Dims batch_of_;  // of the updates, for each of the operand's batching dimensions
};

}  // namespace

// What a scatter makes of an element and its update.
struct Evaluator::Combining {
  Combining(const Module& m, InstId i, const std::vector<Value>& given)
      : inst(i), ops(given), out(given.begin(), given.begin() + static_cast<ptrdiff_t>(given.size() / 2)) {
    for (Value& v : out) v.mutable_bytes();
    for (const Value& v : out) widths.push_back(static_cast<size_t>(storage_bytes(m.u()[v.shape].type)));
    const Computation& c = m.comp(m.called(i)[0]);
    overwrite = out.size() == 1 && c.root == c.params[1];
    if (out.size() != 1 || overwrite) return;
    auto o = m.operands(c.root);
    one_op = o.size() == 2 && o[0] == c.params[0] && o[1] == c.params[1] && op_info(m.op(c.root)).elementwise &&
             m.op(c.root) != Opcode::Compare;
    op = m.op(c.root);
  }
  char* element(size_t k, int64_t at) { return out[k].data->data() + static_cast<size_t>(at) * widths[k]; }
  const char* update(size_t k, int64_t at) const {
    return ops[out.size() + 1 + k].bytes() + static_cast<size_t>(at) * widths[k];
  }

  InstId inst;
  const std::vector<Value>& ops;
  std::vector<Value> out;
  std::vector<size_t> widths;
  // The combiner, when it is plain: return the update, or one operation of both.
  bool overwrite = false, one_op = false;
  Opcode op = Opcode::Add;
};

void Evaluator::combine(Combining& c, int64_t to, int64_t from) {
  if (c.overwrite) {
    std::memcpy(c.element(0, to), c.update(0, from), c.widths[0]);
    return;
  }
  if (c.one_op) {
    EwArgs e;
    e.op = c.op, e.in = e.out = u_[c.ops[0].shape].type, e.n = 1;
    e.result = c.element(0, to);
    e.a = e.result, e.b = c.update(0, from);
    if (!elementwise_kernel(e)) refuse(c.inst, "combiner of this type");
    return;
  }
  std::vector<Value> args;
  auto scalar = [&](const Value& v, const char* at, size_t width) {
    Value s;
    s.shape = u_.scalar(u_[v.shape].type);
    s.data = std::make_shared<std::vector<char>>(at, at + width);
    args.push_back(std::move(s));
  };
  const size_t count = c.out.size();
  for (size_t i = 0; i < count; ++i) scalar(c.out[i], c.element(i, to), c.widths[i]);
  for (size_t i = 0; i < count; ++i) scalar(c.ops[count + 1 + i], c.update(i, from), c.widths[i]);
  std::vector<Value> r = lifted(m_.called(c.inst)[0], args, 1);
  for (size_t i = 0; i < count; ++i) std::memcpy(c.element(i, to), r[i].bytes(), c.widths[i]);
}

Value Evaluator::scatter(InstId inst, std::vector<Value>& ops) {
  size_t count = ops.size() / 2;
  const Shape &in = u_[ops[0].shape], &up = u_[ops[count + 1].shape];
  const ScatterPlaces places(m_.attrs(inst), in, u_[ops[count].shape], up, ops[count].bytes());
  Combining combining(m_, inst, ops);
  // Index by index, each with its whole window: who comes last counts where windows overlap.
  const Dims order = places.order(), up_strides = row_major_strides(up.dims);
  Dims counted, steps(up.dims.size(), 0), at(up.dims.size(), 0);
  for (int64_t d : order) counted.push_back(up.dims[static_cast<size_t>(d)]);
  if (up.elements_count() && in.elements_count()) do {
      for (size_t k = 0; k < order.size(); ++k) at[static_cast<size_t>(order[k])] = steps[k];
      if (int64_t to = 0; places.find(at, &to)) combine(combining, to, flat(at, up_strides));
    } while (advance(steps, counted));
  return packed(m_.shape_id(inst), std::move(combining.out));
}

}  // namespace hlo
