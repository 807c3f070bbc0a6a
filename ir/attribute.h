// Attribute values and the interned set that an instruction points at.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/base/ids.h"
#include "ir/opcode.h"
#include "ir/types/shape.h"

namespace hlo {

struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0;
  int64_t lhs_dilate = 1, rhs_dilate = 1;  // base and window dilation
  bool reversal = false;
  bool operator==(const WindowDim&) const = default;
  // Elements that a dilated extent covers.
  static int64_t dilated(int64_t extent, int64_t dilation) { return extent == 0 ? 0 : (extent - 1) * dilation + 1; }
  int64_t output_size(int64_t input) const {
    int64_t padded = dilated(input, lhs_dilate) + pad_low + pad_high, reach = dilated(size, rhs_dilate);
    return padded < reach || padded <= 0 ? 0 : (padded - reach) / stride + 1;
  }
};
struct Window {
  std::vector<WindowDim> dims;
  bool operator==(const Window&) const = default;
};

// dim_labels=b01f_01io->b01f. Ranks are kept because a label may be `?`.
struct DimLabels {
  int lhs_rank = 0, rhs_rank = 0, out_rank = 0;
  int64_t input_batch = 0, input_feature = 0, kernel_input = 0, kernel_output = 0, output_batch = 0, output_feature = 0;
  Dims input_spatial, kernel_spatial, output_spatial;
  bool operator==(const DimLabels&) const = default;
};

struct PaddingDim {
  int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PaddingDim&) const = default;
};
struct SliceDim {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceDim&) const = default;
};

// A large value that few attributes have, shared so that the variant stays small.
template <class T>
class Boxed {
 public:
  Boxed(T value) : value_(std::make_shared<const T>(std::move(value))) {}  // NOLINT: converts as the value itself would
  const T& operator*() const { return *value_; }
  bool operator==(const Boxed& o) const { return *value_ == *o.value_; }

 private:
  std::shared_ptr<const T> value_;
};

using AttrValue =
    std::variant<bool, int64_t, double, StrId, Dims, CompId, std::vector<CompId>, Window, Boxed<DimLabels>,
                 std::vector<PaddingDim>, std::vector<SliceDim>, ShapeId, std::vector<ShapeId>>;

// Attributes of one instruction, in the opcode's print order, defaults left out: what is in the set is printed.
struct AttrSet {
  Opcode op = Opcode::Abs;
  std::vector<std::pair<Attr, AttrValue>> list;
  std::vector<CompId> called;  // in XLA's order of called_computations (a while's body first)

  const AttrValue* find(Attr key) const {
    for (const auto& [k, v] : list)
      if (k == key) return &v;
    return nullptr;
  }
  bool has(Attr key) const { return find(key) != nullptr; }
  template <class T>
  const T* get(Attr key) const {
    const AttrValue* v = find(key);
    if constexpr (std::is_same_v<T, DimLabels>) {
      const auto* boxed = v ? std::get_if<Boxed<T>>(v) : nullptr;
      return boxed ? &**boxed : nullptr;
    } else {
      return v ? std::get_if<T>(v) : nullptr;
    }
  }
  // Values with XLA's defaults where the attribute is absent.
  int64_t integer(Attr key, int64_t absent = 0) const {
    const int64_t* v = get<int64_t>(key);
    return v ? *v : absent;
  }
  bool flag(Attr key) const {
    const bool* v = get<bool>(key);
    return v && *v;
  }
  const Dims& ints(Attr key) const;  // empty when absent
  CompId comp(Attr key) const {
    const CompId* v = get<CompId>(key);
    return v ? *v : CompId();
  }
  StrId text(Attr key) const {
    const StrId* v = get<StrId>(key);
    return v ? *v : StrId();
  }

  // Puts or replaces a value, keeping print order; an opcode that does not take the key is a failed check.
  void set(Attr key, AttrValue value);
  void erase(Attr key);
  void finish();  // recomputes `called`
};

// Bytes that identify the set (opcode, keys, values); the Universe interns by them.
std::string attr_key(const AttrSet& set);

// The text of one attribute's value needs the module for computation names; see print.h.

}  // namespace hlo
