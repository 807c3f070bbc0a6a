// Recordings, and searches that ask Python.
#include <nanobind/stl/map.h>
#include <nanobind/stl/set.h>

#include "bind.h"
#include "hlo/scripting.h"

namespace hlo::python {
namespace {

using scripting::Recording;

// What a judge says of a module: True, False, and None where that is allowed.
std::optional<bool> verdict(nb::handle judge, const Module& m, bool may_be_unknown) {
  nb::gil_scoped_acquire with;
  if (PyErr_CheckSignals()) throw nb::python_error();
  nb::object said = judge(m);
  if (said.is(Py_True)) return true;
  if (said.is(Py_False)) return false;
  if (may_be_unknown && said.is_none()) return std::nullopt;
  throw nb::type_error(may_be_unknown ? "the oracle must give True, False or None"
                                      : "the callable must give True or False");
}

void require_callable(nb::handle callable) {
  if (!PyCallable_Check(callable.ptr())) throw nb::type_error("a callable is wanted, which takes a hlo.Module");
}

Recording replay_into(const Module& m, const std::string& folder, const std::string& pipeline,
                      const std::set<std::string>& only, const std::set<std::string>& disabled,
                      const std::map<std::string, int64_t>& fuel, const std::set<std::string>& formats,
                      nb::object progress) {
  if (!progress.is_none()) require_callable(progress);
  scripting::ReplayOptions o;
  o.pipeline = pipeline, o.only = only, o.disabled = disabled, o.fuel = fuel, o.formats = formats;
  // The thread of the work must own nothing of Python's: this function keeps `progress`.
  PyObject* borrowed = progress.is_none() ? nullptr : progress.ptr();
  return interruptible([m, folder, o, borrowed] {
    std::function<bool(size_t, size_t, const std::string&)> told;
    if (borrowed)
      told = [borrowed](size_t done, size_t all, const std::string& pass) {
        bool go_on = true;
        Work::call_back([&] { go_on = !nb::handle(borrowed)(done, all, text_of(pass)).is(Py_False); });
        return go_on;
      };
    return Recording::replay(m, folder, o, told);
  });
}

nb::object rows(const Recording& r) {
  std::string text = interruptible([r] { return r.json(); });
  return nb::module_::import_("json").attr("loads")(nb::bytes(text.data(), text.size())).attr("__getitem__")("stages");
}

nb::tuple bisect(const Recording& r, nb::object judge, bool every) {
  require_callable(judge);
  Recording::Found found = watched([&] {
    return r.bisect(
        [&](const Module& m) {
          std::optional<bool> good = verdict(judge, m, true);
          return !good ? Recording::Verdict::unknown : *good ? Recording::Verdict::good : Recording::Verdict::bad;
        },
        every);
  });
  constexpr const char* kOutcomes[] = {"found", "all good", "first bad", "unknown"};
  return nb::make_tuple(kOutcomes[found.outcome], found.good, found.bad, found.asked);
}

Module reduce(const Module& m, nb::object faulty, bool keep_shapes, bool keep_invalid, std::optional<size_t> most) {
  require_callable(faulty);
  scripting::ReduceOptions o;
  o.keep_shapes = keep_shapes, o.keep_invalid = keep_invalid;
  if (most) o.most_candidates = *most;
  return watched([&] {
    return scripting::reduce(
        m, [&](const Module& candidate) { return *verdict(faulty, candidate, false); }, o);
  });
}

}  // namespace

void bind_recordings(nb::module_& m, nb::class_<Module>& module) {
  nb::class_<Recording>(m, "RecordingHandle", "What hlo.Recording is made over.")
      .def_prop_ro("name", [](const Recording& r) { return text_of(r.name()); })
      .def_prop_ro("function", [](const Recording& r) { return text_of(r.function()); })
      .def_prop_ro("source", &Recording::source)
      .def_prop_ro("pipeline", [](const Recording& r) { return text_of(r.pipeline()); })
      .def_prop_ro("selector", &Recording::selector)
      .def_prop_ro(
          "problems",
          [](const Recording& r) {
            nb::list out;
            for (const std::string& p : r.problems()) out.append(text_of(p));
            return out;
          },
          nb::sig("def problems(self) -> list[str]"))
      .def("rows", &rows, nb::sig("def rows(self) -> list[dict[str, typing.Any]]"))
      .def(
          "text_file", [](const Recording& r, size_t row) { return text_of(r.text_file(row)); }, "row"_a)
      .def(
          "text", [](const Recording& r, size_t row) { return text_of(r.text(row)); }, "row"_a)
      .def(
          "module", [](const Recording& r, size_t row) { return interruptible([r, row] { return r.module(row); }); },
          "row"_a)
      .def("bisect", &bisect, "judge"_a, "every"_a,
           nb::sig("def bisect(self, judge: typing.Callable[[Module], bool | None], every: bool) -> tuple[str, int, "
                   "int, int]"));
  m.def(
      "open_recordings",
      [](const std::string& folder) { return interruptible([folder] { return Recording::open(folder); }); },
      "folder"_a);
  m.def("replay_into", &replay_into, "module"_a, "folder"_a, "pipeline"_a, "only"_a, "disabled"_a, "fuel"_a,
        "formats"_a, "progress"_a.none(),
        nb::sig("def replay_into(module: Module, folder: str, pipeline: str, only: set[str], disabled: set[str], fuel: "
                "dict[str, int], formats: set[str], progress: typing.Callable[[int, int, str], object] | None) -> "
                "RecordingHandle"));
  module.def(
      "reduce", &reduce, "faulty"_a, nb::kw_only(), "keep_shapes"_a = false, "keep_invalid"_a = false,
      "most"_a = nb::none(),
      nb::sig("def reduce(self, faulty: typing.Callable[[Module], bool], *, keep_shapes: bool = False, keep_invalid: "
              "bool = False, most: int | None = None) -> Module"),
      "The smallest module that is still faulty, by delta debugging; this one is left as it is.\n\n"
      "faulty: told of a candidate, True where it still has the fault; what it raises comes out of the call.\n"
      "keep_shapes: dimensions and trip counts stay. keep_invalid: candidates need not verify. most: so many\n"
      "candidates. Raises hlo.UsageError where the module itself is not faulty.");
  module
      .def(
          "cost",
          [](nb::handle self, const std::string& device) {
            return nb::module_::import_("hlo_replay._reports").attr("cost")(self, device);
          },
          "device"_a = "", nb::sig("def cost(self, device: str = '') -> hlo_replay.results.Cost"),
          "What it needs at least on a device (`H100`, `A100` …), by counting.")
      .def(
          "memory",
          [](nb::handle self, const std::string& by) {
            return nb::module_::import_("hlo_replay._reports").attr("memory")(self, by);
          },
          "by"_a = "line", nb::sig("def memory(self, by: str = 'line') -> hlo_replay.results.Memory"),
          "What it holds on its device, by our own buffer assignment. by: line, scope or value.");
}

}  // namespace hlo::python
