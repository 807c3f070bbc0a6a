// Sums of products by elements: what dots, convolutions and library calls have in common.
#pragma once
#include "replay/judge/chosen/elements/rules.h"

namespace hlo {

struct ProductPlan {
  size_t left = 0, right = 1;           // operands
  ElementType sums = ElementType::F64;  // what the result is stored as
  int64_t length = 0;                   // of a line
  ElementList left_lines, right_lines;  // lines one behind the other
  struct Sum {
    int64_t group, left, right;  // sums of one group may be made as one matrix
  };
  std::vector<Sum> sums_of;  // by element
};

// Elements of the dot of operands 0 and 1. A side without batch dimensions serves all of the other's batch. `group`: so
// many of the left side's batch, one behind the other, have one of the right side's.
ProductPlan dot_products(const ElementOperation& o, const DotNumbers& d, std::span<const int64_t> at,
                         ElementSource& source, int64_t group = 1);
// Elements of one side's lines, one behind the other.
struct ProductSide {
  ElementType type;
  int64_t length;
  std::vector<char> lines;
  size_t bytes() const { return static_cast<size_t>(length) * static_cast<size_t>(storage_bytes(type)); }
  std::vector<char> chosen(std::span<const int64_t> which) const;
};
// The sums, when the lines are known.
std::vector<char> summed(const ProductPlan& p, const ProductSide& l, const ProductSide& r);
std::vector<char> summed(const ElementOperation& o, const ProductPlan& p, ElementSource& source);

// Dimensions that are counted together, in row-major order.
struct CountedDims {
  Dims dims, strides;
  int64_t size = 1;
  CountedDims(const Shape& s, const Dims& which) {
    const Dims all = row_major_strides(s.dims);
    for (int64_t d : which) {
      dims.push_back(s.dims[static_cast<size_t>(d)]), strides.push_back(all[static_cast<size_t>(d)]);
      size *= dims.back();
    }
  }
  int64_t place(int64_t n) const {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0;) at += n % dims[k] * strides[k], n /= dims[k];
    return at;
  }
};
Dims other_dims(const Shape& s, const Dims& a, const Dims& b);

// Lists of elements of one operand, all of one length, each made once.
class ElementLines {
 public:
  ElementLines(int64_t length, ElementSource& source) : length_(length), source_(source) {}
  // f(list) appends the line's elements; -1: 0 stands there.
  template <class F>
  int64_t line(int64_t key, F f) {
    auto [at, fresh] = number_.try_emplace(key, static_cast<int64_t>(number_.size()));
    if (fresh) {
      source_.afford(static_cast<int64_t>(elements_.size()) + length_);
      f(elements_);
    }
    return at->second;
  }
  int64_t count() const { return static_cast<int64_t>(number_.size()); }
  ElementList take() { return element_list(std::move(elements_)); }

 private:
  int64_t length_;
  ElementSource& source_;
  std::unordered_map<int64_t, int64_t> number_;
  std::vector<int64_t> elements_;
};

}  // namespace hlo
