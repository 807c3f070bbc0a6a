#include "replay/judge/chosen/draws.h"

#include <algorithm>
#include <cstring>

#include "ir/base/hash.h"
#include "ir/literal.h"

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

void draw_elements(const Expressions& all, ExprId e, std::span<const int64_t> indices, uint64_t seed, Draw how,
                   char* out) {
  const Expr& x = all[e];
  const ElementType type = x.m->u()[x.shape].type;
  const auto width = static_cast<size_t>(storage_bytes(type));
  const uint64_t base = hash_combine(hash_combine(mix64(seed), e), static_cast<uint64_t>(how));
  for (size_t k = 0; k < indices.size(); ++k)
    store(type, mix64(base + (static_cast<uint64_t>(indices[k]) + 1) * 0x9E3779B97F4A7C15ull), how, out + k * width);
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
