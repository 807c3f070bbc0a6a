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

Value Evaluator::scatter(InstId inst, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  size_t count = ops.size() / 2;
  const Shape &in = u_[ops[0].shape], &idx = u_[ops[count].shape], &up = u_[ops[count + 1].shape];
  const Dims &window = a.ints(Attr::update_window_dims), &inserted = a.ints(Attr::inserted_window_dims),
             &map = a.ints(Attr::scatter_dims_to_operand_dims);
  const Dims &batching = a.ints(Attr::input_batching_dims), &idx_batching = a.ints(Attr::scatter_indices_batching_dims);
  int64_t ivd = a.integer(Attr::index_vector_dim);
  CompId function = m_.called(inst)[0];
  std::vector<Value> out(ops.begin(), ops.begin() + static_cast<ptrdiff_t>(count));
  for (Value& v : out) v.mutable_bytes();
  Dims in_strides = row_major_strides(in.dims), idx_strides = row_major_strides(idx.dims),
       up_strides = row_major_strides(up.dims);
  Dims batch_up, batch_idx, window_in;
  for (int64_t i = 0; i < up.rank(); ++i)
    if (!contains(window, i)) batch_up.push_back(i);
  for (int64_t i = 0; i < idx.rank(); ++i)
    if (i != ivd) batch_idx.push_back(i);
  for (int64_t i = 0; i < in.rank(); ++i)
    if (!contains(inserted, i) && !contains(batching, i)) window_in.push_back(i);
  int idx_width = storage_bytes(idx.type);
  // The combiner, when it is plain: return the update, or one operation of both.
  const Computation& c = m_.comp(function);
  bool overwrite = count == 1 && c.root == c.params[1];
  Opcode op = Opcode::Add;
  bool one_op = false;
  if (count == 1 && !overwrite) {
    auto o = m_.operands(c.root);
    one_op = o.size() == 2 && o[0] == c.params[0] && o[1] == c.params[1] && op_info(m_.op(c.root)).elementwise &&
             m_.op(c.root) != Opcode::Compare;
    op = m_.op(c.root);
  }
  std::vector<size_t> widths;
  for (size_t i = 0; i < count; ++i) widths.push_back(static_cast<size_t>(storage_bytes(u_[ops[i].shape].type)));
  // Index by index, each with its whole window: who comes last counts where windows overlap.
  Dims order = batch_up, counted, steps(up.dims.size(), 0), at(up.dims.size(), 0);
  order.insert(order.end(), window.begin(), window.end());
  for (int64_t d : order) counted.push_back(up.dims[static_cast<size_t>(d)]);
  if (up.elements_count() && in.elements_count()) do {
      for (size_t k = 0; k < order.size(); ++k) at[static_cast<size_t>(order[k])] = steps[k];
      int64_t idx_at = 0, in_at = 0;
      bool inside = true;
      Dims where(in.dims.size(), 0);
      for (size_t i = 0; i < batch_up.size(); ++i)
        idx_at += at[static_cast<size_t>(batch_up[i])] * idx_strides[static_cast<size_t>(batch_idx[i])];
      for (size_t k = 0; k < map.size(); ++k) {
        int64_t place =
            idx_at + (ivd < idx.rank() ? static_cast<int64_t>(k) * idx_strides[static_cast<size_t>(ivd)] : 0);
        int64_t start = load_int(idx.type, ops[count].bytes() + place * idx_width);
        if (idx.type == ElementType::U64 && start < 0) start = INT64_MAX / 2;
        where[static_cast<size_t>(map[k])] = start;
      }
      for (size_t k = 0; k < batching.size(); ++k) {
        size_t which =
            static_cast<size_t>(std::find(batch_idx.begin(), batch_idx.end(), idx_batching[k]) - batch_idx.begin());
        where[static_cast<size_t>(batching[k])] = at[static_cast<size_t>(batch_up[which])];
      }
      // A window that leaves the operand anywhere is skipped whole.
      for (size_t i = 0; i < window.size(); ++i) {
        size_t d = static_cast<size_t>(window_in[i]);
        int64_t base = where[d];
        if (base < 0 || base > in.dims[d] - up.dims[static_cast<size_t>(window[i])]) inside = false;
        where[d] = base + at[static_cast<size_t>(window[i])];
      }
      for (size_t d = 0; d < where.size() && inside; ++d) inside = where[d] >= 0 && where[d] < in.dims[d];
      if (!inside) continue;
      in_at = flat(where, in_strides);
      int64_t up_at = flat(at, up_strides);
      if (overwrite) {
        std::memcpy(out[0].data->data() + static_cast<size_t>(in_at) * widths[0],
                    ops[count + 1].bytes() + static_cast<size_t>(up_at) * widths[0], widths[0]);
      } else if (one_op) {
        EwArgs e;
        e.op = op, e.in = e.out = in.type, e.n = 1;
        e.result = out[0].data->data() + static_cast<size_t>(in_at) * widths[0];
        e.a = e.result, e.b = ops[count + 1].bytes() + static_cast<size_t>(up_at) * widths[0];
        if (!elementwise_kernel(e)) refuse(inst, "combiner of this type");
      } else {
        std::vector<Value> args;
        auto scalar = [&](const Value& v, int64_t i, size_t w) {
          Value s;
          s.shape = u_.scalar(u_[v.shape].type);
          const char* from = v.bytes() + static_cast<size_t>(i) * w;
          s.data = std::make_shared<std::vector<char>>(from, from + w);
          args.push_back(std::move(s));
        };
        for (size_t i = 0; i < count; ++i) scalar(out[i], in_at, widths[i]);
        for (size_t i = 0; i < count; ++i) scalar(ops[count + 1 + i], up_at, widths[i]);
        std::vector<Value> r = lifted(function, args, 1);
        for (size_t i = 0; i < count; ++i)
          std::memcpy(out[i].data->data() + static_cast<size_t>(in_at) * widths[i], r[i].bytes(), widths[i]);
      }
    } while (advance(steps, counted));
  return packed(m_.shape_id(inst), std::move(out));
}

}  // namespace hlo
