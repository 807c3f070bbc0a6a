#include "ir/print/print.h"
#include "replay/library/access.h"

namespace hlo::api {
namespace {

// Throws where they are not the bytes of such an array.
void check_bytes(const std::string& type, const std::vector<int64_t>& dims, const void* data, size_t size) {
  hlo::Shape shape;
  if (!type_from_name(type, &shape.type) || !is_array_type(shape.type))
    refuse(ErrorKind::usage, "no element type of arrays is called '" + type + "'");
  for (int64_t d : dims)
    if (d < 0) refuse(ErrorKind::usage, "an array of " + std::to_string(d) + " elements along a dimension");
  shape.dims.assign(dims.begin(), dims.end());
  const Checked bytes = array_bytes(shape);
  if (!bytes.fits() || static_cast<uint64_t>(bytes.capped()) != size)
    refuse(ErrorKind::usage,
           "the array's bytes are " + std::to_string(size) + ", its shape asks for " +
               (bytes.fits() ? std::to_string(bytes.capped()) : std::string("more than a machine has")));
  if (size && !data) refuse(ErrorKind::usage, "an array without bytes");
}

}  // namespace

Array::Array(std::string element_type, std::vector<int64_t> dims, const void* data, size_t size) {
  check_bytes(element_type, dims, data, size);
  call([&] {
    const char* from = static_cast<const char*>(data);
    auto own = std::make_shared<std::vector<char>>(from, from + size);
    data_ = own->data();
    keeper_ = std::move(own);
  });
  size_ = size, element_type_ = std::move(element_type), dims_ = std::move(dims);
}

Array Array::borrowed(std::string element_type, std::vector<int64_t> dims, const void* data, size_t size,
                      std::shared_ptr<const void> keeper) {
  check_bytes(element_type, dims, data, size);
  Array out;
  out.element_type_ = std::move(element_type), out.dims_ = std::move(dims);
  out.data_ = data, out.size_ = size, out.keeper_ = std::move(keeper);
  return out;
}

Array Access::array(const hlo::Universe& u, const Value& v) {
  const hlo::Shape& shape = u[v.shape];
  HLO_CHECK(shape.is_array() && v.data, "a {} as an array", u.shape_text(v.shape));
  Array out;
  out.element_type_ = type_name(shape.type);
  out.dims_.assign(shape.dims.begin(), shape.dims.end());
  out.sizes_.assign(v.sizes.begin(), v.sizes.end());
  out.data_ = v.data->data(), out.size_ = v.data->size();
  out.keeper_ = v.data;
  return out;
}

std::string Array::text() const {
  return call([&] {
    hlo::Universe u;
    hlo::Shape shape;
    type_from_name(element_type_, &shape.type);
    hlo::Literal literal;
    literal.shape = u.array(shape.type, Dims(dims_.begin(), dims_.end()));
    literal.bytes.assign(static_cast<const char*>(data_), size_);
    return literal_text(u, u.literal(std::move(literal)), true, true);
  });
}

}  // namespace hlo::api
