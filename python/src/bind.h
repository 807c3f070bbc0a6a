// What the files of the extension share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "hlo/module.h"
#include "hlo/progress.h"
#include "work.h"

namespace hlo::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

// Each binds what its file is about.
void bind_errors(nb::module_& m);
void bind_modules(nb::module_& m);
void bind_edits(nb::module_& m, nb::class_<Module>& module, nb::class_<Computation>& computation,
                nb::class_<Instruction>& instruction);
void bind_running(nb::module_& m, nb::class_<Module>& module);
void bind_passes(nb::module_& m, nb::class_<Module>& module);
void bind_recordings(nb::module_& m, nb::class_<Module>& module);

// A numpy array over the bytes, which it keeps; and the other way round, a copy, checked against the shape. `what`
// names it in messages; without a shape it is the array's own. Throws hlo.UsageError where the dtype or the shape is
// another.
nb::object numpy_of(const Array& array);
Array array_of(nb::handle value, const std::optional<Shape>& shape, const std::string& what);
// Dicts of numpy arrays.
nb::dict columns_of(const Module& m);
nb::dict edges_of(const Module& m);

// What stands in files may be in any encoding: bytes that are no UTF-8 go into a str and out of it by surrogateescape.
nb::str text_of(std::string_view text);
std::string bytes_of(nb::handle text);
std::string path_of(nb::handle path);  // of str, bytes or os.PathLike

// Runs `f` beside the interpreter (work.h), with the library told to end when Ctrl-C is pressed.
template <class F>
auto interruptible(F f) {
  return beside([f = std::move(f)]() mutable {
    Watch watch([](const Progress&) { return !Work::stopped(); });
    return f();
  });
}

// The same on the calling thread, for work that asks callbacks about modules: those may read them then. Ctrl-C ends it
// where the library next looks.
template <class F>
auto watched(F f) {
  nb::gil_scoped_release without;
  Watch watch([](const Progress&) {
    nb::gil_scoped_acquire with;
    if (PyErr_CheckSignals()) throw nb::python_error();
    return true;
  });
  return f();
}

}  // namespace hlo::python
