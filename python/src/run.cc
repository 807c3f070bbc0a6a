// Modules run on arrays.
#include <fmt/format.h>

#include "bind.h"
#include "hlo/executor.h"

namespace hlo::python {
namespace {

// The arrays of a value of that shape, tuples from tuples, appended in order.
void flatten(nb::handle value, const Shape& shape, const std::string& what, std::vector<Array>* out) {
  if (shape.element_type != "tuple") {
    out->push_back(array_of(value, shape, what));
    return;
  }
  const bool listed = PyTuple_Check(value.ptr()) || PyList_Check(value.ptr());
  const Py_ssize_t n = listed ? PySequence_Size(value.ptr()) : -1;
  if (n != static_cast<Py_ssize_t>(shape.elements.size()))
    throw Error(ErrorKind::usage,
                fmt::format("{} is a tuple of {}: {} was given", what, shape.elements.size(),
                            listed ? fmt::format("one of {}", n) : "no tuple"));
  for (Py_ssize_t k = 0; k < n; ++k) {
    nb::object element = nb::steal(PySequence_GetItem(value.ptr(), k));
    if (!element) throw nb::python_error();
    flatten(element, shape.elements[static_cast<size_t>(k)], fmt::format("{}[{}]", what, k), out);
  }
}

// A value of that shape from its arrays, the next of which is at `next`.
nb::object nested(const Shape& shape, const std::vector<Array>& leaves, size_t* next) {
  if (shape.element_type != "tuple") {
    if (*next >= leaves.size()) throw Error(ErrorKind::internal, "a result has fewer arrays than its shape");
    return numpy_of(leaves[(*next)++]);
  }
  nb::list all;
  for (const Shape& element : shape.elements) all.append(nested(element, leaves, next));
  return nb::tuple(all);
}

}  // namespace
}  // namespace hlo::python
