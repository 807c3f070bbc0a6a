#include "ir/eval/value.h"

#include <new>
#include <stdexcept>

#include "ir/base/check.h"
#include "ir/eval/spare_arrays.h"
#include "ir/program/buffer.h"

namespace hlo {

Checked array_bytes(const Shape& s) {
  Checked elements = 1;
  for (int64_t d : s.dims) elements *= d;
  constexpr int64_t kWidest = 16;
  return (elements * kWidest).capped() > kMostArrayBytes ? Checked(INT64_MAX) : elements * storage_bytes(s.type);
}

namespace {

std::shared_ptr<std::vector<char>> array_of(const Universe& u, ShapeId shape, bool zero) {
  Checked bytes = array_bytes(u[shape]);
  if (bytes.fits()) try {
      return array_storage(bytes.size("an array"), zero);
    } catch (const std::bad_alloc&) {
    }
  fail(FailureKind::kUnsupported, "no memory left for an array of shape {}{}", u.shape_text_plain(shape),
       bytes.fits() ? fmt::format(" ({})", human_bytes(bytes.capped())) : "");
}

}  // namespace

std::shared_ptr<std::vector<char>> new_array(const Universe& u, ShapeId shape) { return array_of(u, shape, true); }
std::shared_ptr<std::vector<char>> unset_array(const Universe& u, ShapeId shape) { return array_of(u, shape, false); }

Value value_of_literal(const Universe& u, LitId id) {
  const Literal& lit = u[id];
  if (lit.elided)
    fail(FailureKind::kUnsupported, "a constant of shape {} is elided ({{...}}): its value is unknown",
         u.shape_text_plain(lit.shape));
  Value v;
  v.shape = lit.shape;
  for (LitId e : lit.elements) v.elements.push_back(value_of_literal(u, e));
  if (u[lit.shape].is_array()) v.data = std::make_shared<std::vector<char>>(lit.bytes.begin(), lit.bytes.end());
  return v;
}

Literal literal_of_value(const Universe& u, const Value& v) {
  Literal lit;
  lit.shape = v.shape;
  if (u[v.shape].is_tuple())
    for (const Value& e : v.elements) lit.elements.push_back(const_cast<Universe&>(u).literal(literal_of_value(u, e)));
  else if (v.data)
    lit.bytes.assign(v.data->begin(), v.data->end());
  return lit;
}

void flatten(const Universe& u, const Value& v, std::vector<Value>* leaves) {
  if (!u[v.shape].is_tuple()) {
    leaves->push_back(v);
    return;
  }
  for (const Value& e : v.elements) flatten(u, e, leaves);
}

}  // namespace hlo
