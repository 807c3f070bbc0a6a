// Failures of the library as exceptions of hlo_replay.errors.
#include <new>

#include "bind.h"
#include "hlo/error.h"

namespace hlo::python {
namespace {

void raise(const Error& e) {
  nb::list diagnostics;
  for (const Diagnostic& d : e.diagnostics()) {
    nb::dict entry;
    entry["file"] = d.place.file;
    entry["line"] = d.place.line;
    entry["column"] = d.place.column;
    entry["message"] = d.message;
    entry["hint"] = d.hint;
    diagnostics.append(entry);
  }
  // Messages quote what stands in files, whatever its encoding.
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(e.what(), static_cast<Py_ssize_t>(strlen(e.what())), "replace"));
  nb::object failure = nb::module_::import_("hlo_replay.errors").attr("failure")(word(e.kind()), text, diagnostics);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(failure.ptr())), failure.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      try {
        raise(e);
      } catch (nb::python_error& inner) {
        inner.restore();
      }
    } catch (const Work::Ended&) {
      PyErr_SetString(PyExc_KeyboardInterrupt, "");
    }
  });
}

}  // namespace hlo::python
