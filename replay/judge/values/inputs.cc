#include "replay/judge/values/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/base/hash.h"
#include "ir/eval/widen.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

template <class Change>
void change_leaves(const Universe& u, Value& v, const Change& change) {
  for (Value& e : v.elements) change_leaves(u, e, change);
  if (u[v.shape].is_array() && v.data) change(u[v.shape], v);
}

}  // namespace

std::vector<Value> edge_arguments(const Module& m, std::vector<Value> arguments) {
  const Universe& u = m.u();
  // Bounds that are worth trying: sizes of what is there.
  int64_t bound = 8;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!i.valid()) continue;
      Opcode op = m.op(i);
      if (op != Opcode::Gather && op != Opcode::Scatter && op != Opcode::DynamicSlice &&
          op != Opcode::DynamicUpdateSlice)
        continue;
      for (int64_t d : m.shape(m.operand(i, 0)).dims)
        if (d > 1) bound = std::min(std::max<int64_t>(bound, d), int64_t{1} << 20);
    }
  for (size_t k = 0; k < arguments.size(); ++k)
    change_leaves(u, arguments[k], [&](const Shape& s, Value& v) {
      int width = storage_bytes(s.type);
      bool real = is_float(s.type), whole = is_integral(s.type) && type_bits(s.type) >= 8;
      if (!real && !(whole && is_signed_int(s.type))) return;
      char floats[2][8][16] = {};
      for (int k = 0; real && k < 8; ++k) {
        store_double(s.type, floats[0][k], (1.0 + k) / 8), store_double(s.type, floats[1][k], -(1.0 + k) / 8);
      }
      const int64_t choices[] = {0, 1, 2, 3, -1, bound - 1, bound, bound + 1};
      char* data = v.mutable_bytes();
      for (int64_t i = 0, n = s.elements_count(); i < n; ++i) {
        char* at = data + i * width;
        uint64_t h = mix64(hash_combine(k + 1, static_cast<uint64_t>(i)));
        if (real) {
          // Little-endian: the last byte holds the sign, where the type fills its bytes and has one.
          bool negative = width > 1 ? (at[width - 1] & 0x80) != 0 : std::signbit(load_double(s.type, at));
          const char* from = floats[negative][h % 8];
          if (width == 2)
            std::memcpy(at, from, 2);
          else if (width == 4)
            std::memcpy(at, from, 4);
          else
            std::memcpy(at, from, static_cast<size_t>(width));
        } else {
          int64_t x = choices[h % 8];
          if (type_bits(s.type) > 8 || (x > -128 && x < 128)) store_int(s.type, at, x);
        }
      }
    });
  return arguments;
}

bool has_edges(const Module& m) {
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!i.valid()) continue;
      switch (m.op(i)) {
        case Opcode::Sort:
        case Opcode::TopK:
        case Opcode::Gather:
        case Opcode::Scatter:
        case Opcode::DynamicSlice:
        case Opcode::DynamicUpdateSlice:
          return true;
        default:
          break;
      }
    }
  return false;
}

std::vector<Value> scaled_arguments(const Module& m, std::vector<Value> arguments, double by, bool positive) {
  const Universe& u = m.u();
  for (Value& a : arguments)
    change_leaves(u, a, [&](const Shape& s, Value& v) {
      if (!is_float(s.type) || s.rank() < 2) return;
      int width = storage_bytes(s.type);
      char* data = v.mutable_bytes();
      for (int64_t i = 0, n = s.elements_count(); i < n; ++i) {
        double x = load_double(s.type, data + i * width) * by;
        store_double(s.type, data + i * width, positive ? std::fabs(x) : x);
      }
    });
  return arguments;
}

std::vector<Value> balanced_arguments(const Module& m, std::vector<Value> arguments) {
  const Universe& u = m.u();
  constexpr double kMostSummed = 4096;
  for (Value& a : arguments)
    change_leaves(u, a, [&](const Shape& s, Value& v) {
      const int64_t n = s.elements_count();
      if (!is_float(s.type) || s.rank() < 2 || n == 0) return;
      const int width = storage_bytes(s.type);
      char* data = v.mutable_bytes();
      double squares = 0;
      for (int64_t i = 0; i < n; ++i) squares += std::pow(load_double(s.type, data + i * width), 2);
      const double summed = std::min(static_cast<double>(n) / static_cast<double>(s.dims.back()), kMostSummed);
      const double by = std::sqrt(2 / summed) / std::sqrt(squares / static_cast<double>(n));
      if (!std::isfinite(by)) return;
      for (int64_t i = 0; i < n; ++i)
        store_double(s.type, data + i * width, load_double(s.type, data + i * width) * by);
    });
  return arguments;
}

int64_t bytes_inside(const Module& m) {
  Universe& u = m.u();
  Checked sum = 0;
  int64_t largest = 0;
  auto bytes = [&](ShapeId s) { return u.bytes(widened_shape(u, s)).capped(); };
  for (InstId p : m.comp(m.entry()).params) sum += bytes(m.shape_id(p));
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (i.valid() && m.op(i) != Opcode::Tuple && m.op(i) != Opcode::Parameter && m.op(i) != Opcode::While)
        largest = std::max(largest, bytes(m.shape_id(i)));
  sum += Checked(largest) * 4;
  return sum.capped();
}

}  // namespace hlo
