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
    throw Error(ErrorKind::usage, fmt::format("{} is a tuple of {}: {} was given", what, shape.elements.size(),
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

// The arrays of all arguments.
std::vector<Array> flattened(nb::handle values, const std::vector<Shape>& shapes) {
  const auto n = static_cast<size_t>(PyTuple_Size(values.ptr()));
  if (n != shapes.size())
    throw Error(ErrorKind::usage, fmt::format("the module takes {} arguments: {} were given", shapes.size(), n));
  std::vector<Array> out;
  for (size_t k = 0; k < n; ++k) flatten(values[k], shapes[k], fmt::format("argument {}", k), &out);
  return out;
}

std::vector<Shape> parameter_shapes(const Module& m) {
  std::vector<Shape> out;
  for (const Instruction& p : m.entry().parameters()) out.push_back(p.shape());
  return out;
}

nb::object result_of(const Module& m, const std::vector<Array>& leaves) {
  size_t next = 0;
  return nested(m.entry().root().shape(), leaves, &next);
}

nb::object run(const Module& m, const nb::args& arguments, const std::string& backend, uint64_t rng_seed,
               std::optional<int64_t> most_steps) {
  std::vector<Array> given = flattened(arguments, parameter_shapes(m));
  RunOptions o;
  o.backend = backend, o.rng_seed = rng_seed;
  if (most_steps) o.max_steps = *most_steps;
  return result_of(m, interruptible([m, given = std::move(given), o] { return hlo::run(m, given, o); }).outputs);
}

nb::list seeded_inputs(const Module& m, uint64_t seed, bool positive) {
  RunOptions o;
  o.seed = seed, o.positive = positive;
  auto leaves = interruptible([m, o] { return make_inputs(m, o); });
  nb::list out;
  size_t next = 0;
  for (const Shape& shape : parameter_shapes(m)) out.append(nested(shape, leaves, &next));
  return out;
}

}  // namespace

void bind_running(nb::module_& m, nb::class_<Module>& module) {
  module
      .def("run", &run, "arguments"_a, nb::kw_only(), "backend"_a = "eval", "rng_seed"_a = 42,
           "most_steps"_a = nb::none(),
           nb::sig("def run(self, *arguments: typing.Any, backend: str = 'eval', rng_seed: int = 42, most_steps: int | "
                   "None = "
                   "None) -> typing.Any"),
           "The entry on arrays of numpy, one a parameter, tuples as tuples; its result likewise. dtypes must be those "
           "of the\n"
           "parameters, bf16, f8 and int4 by ml_dtypes; Python's numbers and lists are taken where they fit. Of a "
           "module for\n"
           "several devices, which are simulated, arrays are whole ones.\n\n"
           "backend: `eval` (exact and slow), `host` (machine code), `emulated` (GPU kernels on the CPU), `cuda`:\n"
           "hlo.backends(). rng_seed: of the module's own random numbers. most_steps: refuse loops that take more.\n"
           "Raises hlo.UsageError where arguments do not fit, hlo.InputError where the module does not verify,\n"
           "hlo.UnsupportedError, naming the instruction, where something cannot be run. The GIL is released; Ctrl-C "
           "ends\n"
           "it within a second (an operation that does not stop is left to end by itself, and until then the "
           "module's\n"
           "universe is in use).")
      .def("seeded_inputs", &seeded_inputs, "seed"_a = 1, nb::kw_only(), "positive"_a = false,
           nb::sig("def seeded_inputs(self, seed: int = 1, *, positive: bool = False) -> list[typing.Any]"),
           "Arguments for run(), drawn as `hlo-replay exec --seed` draws them. positive: none is below zero.");
  m.def(
      "backends",
      [] {
        nb::dict out;
        for (const Backend& b : hlo::backends()) out[b.name.c_str()] = b.unavailable;
        return out;
      },
      nb::sig("def backends() -> dict[str, str]"),
      "What modules run with, and why it cannot be used here; empty: it can.");
}

}  // namespace hlo::python
