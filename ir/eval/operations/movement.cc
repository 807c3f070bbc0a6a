// Data movement: everything that is a strided copy.
#include <algorithm>
#include <cstring>

#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/types/tiling.h"

namespace hlo {

Dims row_major_strides(const Dims& dims) {
  Dims out(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) out[i] = stride, stride *= dims[i];
  return out;
}

namespace {
template <class T>
void inner_copy(int64_t n, const char* in, int64_t is, char* out, int64_t os) {
  const T* a = reinterpret_cast<const T*>(in);
  T* b = reinterpret_cast<T*>(out);
  if (is == 1 && os == 1) {
    if (n) std::memcpy(b, a, static_cast<size_t>(n) * sizeof(T));
  } else if (is == 0 && os == 1) {
    std::fill(b, b + n, *a);
  } else {
    for (int64_t i = 0; i < n; ++i) b[i * os] = a[i * is];
  }
}
struct Wide {
  uint64_t parts[2];
};

// Rows of one side are columns of the other: by tiles that stay in the cache.
template <class T>
void tiled(int64_t rows, int64_t columns, const char* in, int64_t column_stride, char* out, int64_t row_stride) {
  const T* a = reinterpret_cast<const T*>(in);
  T* b = reinterpret_cast<T*>(out);
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kTile)
    for (int64_t j0 = 0; j0 < columns; j0 += kTile)
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i)
        for (int64_t j = j0; j < std::min(columns, j0 + kTile); ++j) b[i * row_stride + j] = a[i + j * column_stride];
}

template <class F>
auto with_width(int width, F f) {
  switch (width) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Wide{});
  }
}

// Dimensions already joined, at least one.
void copy_joined(const Dims& size, const char* in, const Dims& is, char* out, const Dims& os, int width) {
  size_t last = size.size() - 1, across = last;
  // The result's rows are contiguous, the operand's are not: which dimension is contiguous there?
  if (os[last] == 1 && is[last] > 1)
    for (size_t d = 0; d < last; ++d)
      if (is[d] == 1 && size[d] >= 4 && size[last] >= 4) across = d;
  Dims outer, outer_is, outer_os;
  for (size_t d = 0; d < last; ++d)
    if (d != across) outer.push_back(size[d]), outer_is.push_back(is[d]), outer_os.push_back(os[d]);
  Dims at(outer.size(), 0);
  for (;;) {
    with_width(width, [&](auto zero) {
      using T = decltype(zero);
      if (across != last)
        tiled<T>(size[across], size[last], in, is[last], out, os[across]);
      else
        inner_copy<T>(size[last], in, is[last], out, os[last]);
    });
    size_t d = outer.size();
    for (;;) {
      if (d == 0) return;
      --d;
      in += outer_is[d] * width, out += outer_os[d] * width;
      if (++at[d] < outer[d]) break;
      in -= outer_is[d] * outer[d] * width, out -= outer_os[d] * outer[d] * width;
      at[d] = 0;
    }
  }
}
}  // namespace

void copy_nd(const Dims& dims, const char* in, const Dims& in_strides, char* out, const Dims& out_strides, int width) {
  for (int64_t d : dims)
    if (d <= 0) return;
  // Drop dimensions of size one and join neighbours that are contiguous on both sides.
  Dims size, is, os;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!size.empty() && is.back() == in_strides[i] * dims[i] && os.back() == out_strides[i] * dims[i]) {
      size.back() *= dims[i];
      is.back() = in_strides[i];
      os.back() = out_strides[i];
    } else {
      size.push_back(dims[i]), is.push_back(in_strides[i]), os.push_back(out_strides[i]);
    }
  }
  if (size.empty()) size.push_back(1), is.push_back(1), os.push_back(1);
  // Large copies in parts of the longest dimension that is not the innermost one.
  int64_t elements = 1;
  for (int64_t d : size) elements *= d;
  size_t longest = 0;
  for (size_t d = 1; d + 1 < size.size(); ++d)
    if (size[d] > size[longest]) longest = d;
  // Writes must not overlap, as they do where the result's stride is 0.
  if (elements < (1 << 17) || size[longest] < 2 || !os[longest]) return copy_joined(size, in, is, out, os, width);
  int64_t parts = std::min<int64_t>(size[longest], 16), grain = (size[longest] + parts - 1) / parts;
  parallel_ranges(size[longest], grain, [&](int64_t first, int64_t last) {
    Dims part = size;
    part[longest] = last - first;
    copy_joined(part, in + first * is[longest] * width, is, out + first * os[longest] * width, os, width);
  });
}

Value Evaluator::bitcast(const Value& v, ShapeId to_id) {
  const Shape &from = u_[v.shape], &to = u_[to_id];
  // Logical → physical order of the operand, same bytes, physical → logical of the result.
  auto physical = [](const Shape& s) {
    Dims strides(s.dims.size());
    int64_t stride = 1;
    for (int64_t d : s.layout.minor_to_major)
      strides[static_cast<size_t>(d)] = stride, stride *= s.dims[static_cast<size_t>(d)];
    return strides;
  };
  Value out = make(to_id);
  int width = storage_bytes(from.type), to_width = storage_bytes(to.type);
  if (is_default_layout(from.layout) && is_default_layout(to.layout)) {
    if (!out.data->empty() && !v.data->empty())
      std::memcpy(out.data->data(), v.bytes(), std::min(out.data->size(), v.data->size()));
    return out;
  }
  std::vector<char> middle(v.data->size());
  copy_nd(from.dims, v.bytes(), row_major_strides(from.dims), middle.data(), physical(from), width);
  copy_nd(to.dims, middle.data(), physical(to), out.data->data(), row_major_strides(to.dims), to_width);
  return out;
}

// Start indices of dynamic slices: scalars, or one vector in old texts; clamped as XLA clamps.
Dims Evaluator::clamped_starts(const std::vector<Value>& ops, size_t first, const Shape& in, const Dims& sizes) const {
  Dims start;
  if (ops.size() == first + 1 && u_[ops[first].shape].rank() == 1) {
    const Shape& s = u_[ops[first].shape];
    for (int64_t i = 0; i < s.dims[0]; ++i)
      start.push_back(load_int(s.type, ops[first].bytes() + i * storage_bytes(s.type)));
  } else {
    for (size_t i = first; i < ops.size(); ++i) {
      ElementType t = u_[ops[i].shape].type;
      int64_t v = load_int(t, ops[i].bytes());
      start.push_back(t == ElementType::U64 && v < 0 ? INT64_MAX : v);
    }
  }
  for (size_t i = 0; i < start.size(); ++i) start[i] = std::clamp<int64_t>(start[i], 0, in.dims[i] - sizes[i]);
  return start;
}

namespace {

int64_t offset_of(const Dims& index, const Dims& strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

}  // namespace

Value Evaluator::dynamic_reshape(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  // What is valid of the operand, in order, to what is valid of the result.
  Dims from = ops[0].sizes.size() == in.dims.size() ? ops[0].sizes : in.dims, to;
  int64_t count = 1, wanted = 1;
  for (size_t k = 1; k < ops.size(); ++k) to.push_back(load_int(u_[ops[k].shape].type, ops[k].bytes()));
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] < 0 || d >= out_shape.dims.size() || to[d] > out_shape.dims[d])
      refuse(inst, fmt::format("its size {} of dimension {} is out of bounds", to[d], d));
    wanted *= to[d];
  }
  for (int64_t d : from) count *= d;
  if (count != wanted || to.size() != out_shape.dims.size())
    refuse(inst, fmt::format("{} elements do not make a shape of {}", count, wanted));
  Value out = make(m_.shape_id(inst));
  auto place = [](int64_t k, const Dims& valid, const Dims& whole) {
    int64_t at = 0, step = 1;
    for (size_t d = valid.size(); d-- > 0; step *= whole[d]) at += k % valid[d] * step, k /= valid[d];
    return at;
  };
  auto bytes = static_cast<size_t>(storage_bytes(in.type));
  for (int64_t k = 0; k < count; ++k)
    std::memcpy(out.data->data() + static_cast<size_t>(place(k, to, out_shape.dims)) * bytes,
                ops[0].bytes() + static_cast<size_t>(place(k, from, in.dims)) * bytes, bytes);
  if (to != out_shape.dims) out.sizes = to;
  return out;
}

Value Evaluator::broadcast(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  const Dims in_strides = row_major_strides(in.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = unset(m_.shape_id(inst));
  const Dims& map = m_.attrs(inst).ints(Attr::dimensions);
  Dims strides(out_shape.dims.size(), 0);
  for (size_t i = 0; i < map.size(); ++i)
    if (in.dims[i] != 1 || out_shape.dims[static_cast<size_t>(map[i])] == 1)
      strides[static_cast<size_t>(map[i])] = in_strides[i];
  copy_nd(out_shape.dims, ops[0].bytes(), strides, out.data->data(), out_strides, width);
  return out;
}

Value Evaluator::transpose(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  const Dims in_strides = row_major_strides(in.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = unset(m_.shape_id(inst));
  Dims strides;
  for (int64_t d : m_.attrs(inst).ints(Attr::dimensions)) strides.push_back(in_strides[static_cast<size_t>(d)]);
  copy_nd(out_shape.dims, ops[0].bytes(), strides, out.data->data(), out_strides, width);
  return out;
}

Value Evaluator::reverse(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  Dims in_strides = row_major_strides(in.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = make(m_.shape_id(inst));
  if (in.elements_count() == 0) return out;
  int64_t offset = 0;
  for (int64_t d : m_.attrs(inst).ints(Attr::dimensions)) {
    offset += (in.dims[static_cast<size_t>(d)] - 1) * in_strides[static_cast<size_t>(d)];
    in_strides[static_cast<size_t>(d)] *= -1;
  }
  copy_nd(out_shape.dims, ops[0].bytes() + offset * width, in_strides, out.data->data(), out_strides, width);
  return out;
}

Value Evaluator::slice(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  Dims in_strides = row_major_strides(in.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = make(m_.shape_id(inst));
  int64_t offset = 0;
  const auto& slices = *m_.attrs(inst).get<std::vector<SliceDim>>(Attr::slice);
  for (size_t i = 0; i < slices.size(); ++i) {
    offset += slices[i].start * in_strides[i];
    in_strides[i] *= slices[i].stride;
  }
  copy_nd(out_shape.dims, ops[0].bytes() + offset * width, in_strides, out.data->data(), out_strides, width);
  return out;
}

Value Evaluator::dynamic_slice(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  const Dims in_strides = row_major_strides(in.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = make(m_.shape_id(inst));
  Dims start = clamped_starts(ops, 1, in, out_shape.dims);
  copy_nd(out_shape.dims, ops[0].bytes() + offset_of(start, in_strides) * width, in_strides, out.data->data(),
          out_strides, width);
  return out;
}

Value Evaluator::dynamic_update_slice(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  const int width = storage_bytes(out_shape.type);
  const Shape& update = u_[ops[1].shape];
  Dims start = clamped_starts(ops, 2, in, update.dims);
  Value updates = ops[1];
  Value out = std::move(ops[0]);
  out.shape = m_.shape_id(inst);
  char* data = out.mutable_bytes();
  copy_nd(update.dims, updates.bytes(), row_major_strides(update.dims), data + offset_of(start, out_strides) * width,
          out_strides, width);
  return out;
}

Value Evaluator::concatenate(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Dims out_strides = row_major_strides(out_shape.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = make(m_.shape_id(inst));
  size_t dim = static_cast<size_t>(m_.attrs(inst).ints(Attr::dimensions)[0]);
  int64_t at = 0;
  for (Value& v : ops) {
    const Dims& dims = u_[v.shape].dims;
    copy_nd(dims, v.bytes(), row_major_strides(dims), out.data->data() + at * out_strides[dim] * width, out_strides,
            width);
    at += dims[dim];
  }
  return out;
}

Value Evaluator::pad(InstId inst, std::vector<Value>& ops) {
  const Shape& out_shape = u_[m_.shape_id(inst)];
  const Shape& in = u_[ops[0].shape];
  const Dims out_strides = row_major_strides(out_shape.dims);
  const Dims in_strides = row_major_strides(in.dims);
  const int width = storage_bytes(out_shape.type);
  Value out = make(m_.shape_id(inst));
  const auto& pads = *m_.attrs(inst).get<std::vector<PaddingDim>>(Attr::padding);
  copy_nd(out_shape.dims, ops[1].bytes(), Dims(out_shape.dims.size(), 0), out.data->data(), out_strides, width);
  Dims dims, is, os;
  int64_t in_offset = 0, out_offset = 0;
  for (size_t i = 0; i < pads.size(); ++i) {
    int64_t step = pads[i].interior + 1, first = 0, last = in.dims[i];
    // Elements that negative padding leaves inside.
    while (first < last && pads[i].low + first * step < 0) ++first;
    while (last > first && pads[i].low + (last - 1) * step >= out_shape.dims[i]) --last;
    dims.push_back(last - first);
    is.push_back(in_strides[i]);
    os.push_back(out_strides[i] * step);
    in_offset += first * in_strides[i];
    out_offset += (pads[i].low + first * step) * out_strides[i];
  }
  bool any = std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d > 0; });
  if (any) copy_nd(dims, ops[0].bytes() + in_offset * width, is, out.data->data() + out_offset * width, os, width);
  return out;
}

Value Evaluator::movement(InstId inst, std::vector<Value>& ops) {
  ShapeId out_id = m_.shape_id(inst);
  switch (m_.op(inst)) {
    case Opcode::Reshape:
    case Opcode::Copy:
    case Opcode::Domain: {
      Value out = ops[0];
      out.shape = out_id;
      return out;
    }
    case Opcode::DynamicReshape:
      return dynamic_reshape(inst, ops);
    case Opcode::Bitcast: {
      const Shape &in = u_[ops[0].shape], &out_shape = u_[out_id];
      // How many bits an element takes in memory changes nothing here, where each takes whole bytes.
      if (has_tiles(in) || has_tiles(out_shape)) return tiled_bitcast(inst, ops[0]);
      if (type_bits(in.type) != type_bits(out_shape.type) &&
          std::min(type_bits(in.type), type_bits(out_shape.type)) < 8)
        refuse(inst, "a bitcast between elements of less than a byte and larger ones");
      return bitcast(ops[0], out_id);
    }
    case Opcode::Broadcast:
      return broadcast(inst, ops);
    case Opcode::Transpose:
      return transpose(inst, ops);
    case Opcode::Reverse:
      return reverse(inst, ops);
    case Opcode::Slice:
      return slice(inst, ops);
    case Opcode::DynamicSlice:
      return dynamic_slice(inst, ops);
    case Opcode::DynamicUpdateSlice:
      return dynamic_update_slice(inst, ops);
    case Opcode::Concatenate:
      return concatenate(inst, ops);
    case Opcode::Pad:
      return pad(inst, ops);
    default:
      refuse(inst, "no such data movement");
  }
}

}  // namespace hlo
