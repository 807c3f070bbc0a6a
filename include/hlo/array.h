// Arrays that go into a run and come out of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hlo/export.h"

HLO_API_BEGIN

// Bytes with a type: row-major whatever the layout, little endian. An element takes storage_bytes(type) bytes:
//   pred            one byte, 0 or 1
//   s1 s2 s4 u1 …   one byte each, not packed: signed ones sign-extended, unsigned ones zero-extended
//   f4* f6* f8*     one byte each, the format's bits at the low end
//   bf16 f16        two bytes
//   c64 c128        real part, imaginary part
// A handle: copies share the bytes, which nobody changes.
class HLO_EXPORT Array {
 public:
  // A copy of `size` bytes. Throws Error(usage) where they are not what the type and the dimensions make.
  Array(std::string element_type, std::vector<int64_t> dims, const void* data, size_t size);
  // Without a copy: `keeper` is let go when the last handle is. The bytes must not change meanwhile.
  static Array borrowed(std::string element_type, std::vector<int64_t> dims, const void* data, size_t size,
                        std::shared_ptr<const void> keeper);

  const std::string& element_type() const { return element_type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  // Of an array whose shape has dynamic dimensions: how far each is filled. Otherwise dims().
  const std::vector<int64_t>& sizes() const { return sizes_.empty() ? dims_ : sizes_; }
  const void* data() const { return data_; }
  size_t size_bytes() const { return size_; }
  // What keeps the bytes alive.
  const std::shared_ptr<const void>& keeper() const { return keeper_; }
  // As HLO text has a literal of it, without its shape.
  std::string text() const;

 private:
  friend struct Access;
  Array() = default;
  std::string element_type_;
  std::vector<int64_t> dims_, sizes_;
  const void* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> keeper_;
};

HLO_API_END
