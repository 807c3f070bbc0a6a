#include "replay/judge/chosen/walk/draws.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/base/hash.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

double real(uint64_t bits, Draw how) {
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  return how == Draw::kMixed ? 2 * unit - 1 : unit + 0.5;
}

void store(ElementType type, uint64_t bits, Draw how, char* at) {
  switch (type_kind(type)) {
    case TypeKind::kBool:
      *at = static_cast<char>(bits & 1);
      return;
    case TypeKind::kSigned:
    case TypeKind::kUnsigned: {
      const int width = type_bits(type);
      const uint64_t most = width >= 4 ? 8 : uint64_t{1} << (width - 1);
      if (how == Draw::kPositive && !is_signed_int(type))
        store_int(type, at, static_cast<int64_t>(width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1)));
      else
        store_int(type, at, static_cast<int64_t>(bits % most));
      return;
    }
    case TypeKind::kComplex: {
      const auto half = static_cast<size_t>(storage_bytes(type)) / 2;
      const ElementType part = half == 8 ? ElementType::F64 : ElementType::F32;
      store_double(part, at, real(bits, how));
      store_double(part, at + half, real(mix64(bits), how));
      return;
    }
    default:
      store_double(type, at, real(bits, how));
  }
}

}  // namespace

int64_t DrawnNear::turns() const {
  return static_cast<int64_t>(std::min<size_t>(24, std::max(integers.size(), reals.size())));
}

void draw_elements(const Expressions& all, ExprId e, std::span<const int64_t> indices, uint64_t seed, Draw how,
                   const DrawnNear* near, char* out) {
  const Expr& x = all[e];
  if (how == Draw::kInside) how = x.kind == Expr::kParameter ? Draw::kMixed : Draw::kPositive;
  const ElementType type = x.m->u()[x.shape].type;
  const auto width = static_cast<size_t>(storage_bytes(type));
  const uint64_t base = hash_combine(hash_combine(mix64(seed), e), static_cast<uint64_t>(how));
  const bool integer = type_kind(type) == TypeKind::kSigned || type_kind(type) == TypeKind::kUnsigned;
  // A scalar takes one after the other, each from another one on.
  const uint64_t first = hash_combine(mix64(0xF125), e);
  const bool single = x.m->u()[x.shape].elements_count() == 1;
  // Behind these turns scalars are large, then each leaf has a magnitude of its own: what a constant makes small beside
  // others is not so everywhere.
  const uint64_t magnitude = near ? mix64(hash_combine(first, static_cast<uint64_t>(near->turn))) % 41 : 0;
  const bool scalars = near && (near->turn - near->turns()) % 2 == 0;
  const double scale = std::ldexp(1.0, scalars ? (single ? 20 : 0) : static_cast<int>(magnitude) - 20);
  for (size_t k = 0; k < indices.size(); ++k) {
    const uint64_t bits = mix64(base + (static_cast<uint64_t>(indices[k]) + 1) * 0x9E3779B97F4A7C15ull);
    char* at = out + k * width;
    store(type, bits, how == Draw::kNear ? Draw::kMixed : how, at);
    if (how != Draw::kNear) continue;
    if (near->turn >= near->turns()) {
      if (is_float(type)) store_double(type, at, load_double(type, at) * scale);
      continue;
    }
    const uint64_t pick = static_cast<uint64_t>(near->turn) + ((single ? first : bits) >> 17);
    if (integer && !near->integers.empty())
      store_int(type, at, near->integers[pick % near->integers.size()]);
    else if (is_float(type) && !near->reals.empty() && (single || bits & 1))
      // The others are as they come: where nothing but zeros is near, no element would tell anything.
      store_double(type, at, near->reals[pick % near->reals.size()] * (1 + 0.5 * real(bits, Draw::kMixed)));
  }
}

std::vector<int64_t> sampled_indices(const Dims& dims, size_t count, uint64_t seed) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::vector<int64_t> out;
  if (n <= static_cast<int64_t>(count)) {
    for (int64_t k = 0; k < n; ++k) out.push_back(k);
    return out;
  }
  out = {0, n - 1};
  uint64_t h = mix64(seed);
  auto next = [&] { return h = mix64(h + 0x9E3779B97F4A7C15ull); };
  for (size_t k = 2; k < count; ++k) {
    if (k % 2) {
      out.push_back(static_cast<int64_t>(next() % static_cast<uint64_t>(n)));
      continue;
    }
    int64_t at = 0;
    for (int64_t d : dims) {
      const uint64_t which = next() % 3;
      const int64_t i = which == 0 ? 0 : which == 1 ? d - 1 : static_cast<int64_t>(next() % static_cast<uint64_t>(d));
      at = at * d + i;
    }
    out.push_back(at);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace hlo
