// Recordings, and searches that ask Python.
#include <nanobind/stl/map.h>
#include <nanobind/stl/set.h>

#include "bind.h"
#include "hlo/recording.h"

namespace hlo::python {
namespace {

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

// An object of a JSON text.
nb::object object_of(const std::string& json) {
  return nb::module_::import_("json").attr("loads")(nb::bytes(json.data(), json.size()));
}

using Words = std::set<std::string>;

Recording replay_module(const Module& m, const std::string& folder, const std::string& pipeline, const Words& only,
                        const Words& disabled, const std::map<std::string, int64_t>& fuel, const Words& formats,
                        bool again, const nb::object& progress) {
  if (!progress.is_none()) require_callable(progress);
  for (const auto& [pass, rewrites] : fuel)
    if (rewrites < 0) throw Error(ErrorKind::usage, pass + " makes no " + std::to_string(rewrites) + " rewrites");
  ReplayOptions o;
  o.pipeline = pipeline, o.only = only, o.disabled = disabled, o.fuel = fuel, o.formats = formats, o.folder = folder;
  o.force = again;
  // The thread of the work must own nothing of Python's: this function keeps `progress`.
  PyObject* borrowed = progress.is_none() ? nullptr : progress.ptr();
  return interruptible([m, o, borrowed] {
    size_t told = SIZE_MAX;
    auto watch = [&](const Progress& p) {
      if (Work::stopped()) return false;
      if (!p.all || p.done == told) return true;
      told = p.done;
      bool go_on = true;
      const std::string what(p.what);
      Work::call_back(
          [&, done = p.done, all = p.all] { go_on = !nb::handle(borrowed)(done, all, text_of(what)).is(Py_False); });
      return go_on;
    };
    std::optional<Watch> own;
    if (borrowed) own.emplace(watch, 0);
    return replay(m, o);
  });
}

nb::list texts(const std::vector<std::string>& all) {
  nb::list out;
  for (const std::string& one : all) out.append(text_of(one));
  return out;
}

nb::object rows(const Recording& r) {
  std::string json = interruptible([r] {
    for (const Stage& s : r.stages()) s.instructions_after();  // a dump's are counted when asked
    return r.json();
  });
  return object_of(json).attr("__getitem__")("stages");
}

nb::tuple bisect(const Recording& r, const nb::object& judge, bool every) {
  require_callable(judge);
  BisectOptions o;
  o.every = every;
  size_t asked = 0;
  BisectResult found = watched([&] {
    return r.bisect(
        [&](const Module& m) -> Judgement {
          ++asked;
          std::optional<bool> good = verdict(judge, m, true);
          return {!good ? Verdict::unknown : *good ? Verdict::good : Verdict::bad};
        },
        o);
  });
  constexpr const char* kOutcomes[] = {"found", "all good", "first bad", "unknown"};
  return nb::make_tuple(kOutcomes[found.outcome], found.good.value_or(0), found.bad.value_or(0), asked);
}

Module reduce_module(const Module& m, const nb::object& faulty, bool keep_shapes, bool keep_invalid,
                     std::optional<size_t> most) {
  require_callable(faulty);
  ReduceOptions o;
  o.keep_shapes = keep_shapes, o.keep_invalid = keep_invalid;
  if (most) o.most_candidates = *most;
  return watched([&] {
    return reduce(
               m, [&](const Module& candidate) { return *verdict(faulty, candidate, false); }, o)
        .module;
  });
}

void bind_handle(nb::module_& m) {
  nb::class_<Recording>(m, "RecordingHandle", "What hlo.Recording is made over.")
      .def("modules", &Recording::modules)
      .def_prop_ro("name", [](const Recording& r) { return text_of(r.module_name()); })
      .def_prop_ro("folder", [](const Recording& r) { return text_of(r.folder()); })
      .def_prop_ro("source", &Recording::source)
      .def_prop_ro("pipeline", [](const Recording& r) { return text_of(r.pipeline()); })
      .def_prop_ro("selector", [](const Recording& r) { return text_of(r.selector()); })
      .def_prop_ro(
          "problems", [](const Recording& r) { return texts(r.problems()); },
          nb::sig("def problems(self) -> list[str]"))
      .def("rows", &rows, nb::sig("def rows(self) -> list[dict[str, typing.Any]]"))
      .def(
          "text",
          [](const Recording& r, size_t row) {
            return text_of(interruptible([r, row] { return r.stage(row).text(); }));
          },
          "row"_a)
      .def(
          "module",
          [](const Recording& r, size_t row) { return interruptible([r, row] { return r.stage(row).module(); }); },
          "row"_a)
      .def(
          "diff",
          [](const Recording& r, size_t a, size_t b) {
            return object_of(interruptible([r, a, b] { return r.diff_json(a, b); }));
          },
          "a"_a, "b"_a, nb::sig("def diff(self, a: int, b: int) -> dict[str, typing.Any]"))
      .def(
          "explain",
          [](const Recording& r, const nb::str& name) {
            return object_of(interruptible([r, name = bytes_of(name)] { return r.explain_json(name); }));
          },
          "name"_a, nb::sig("def explain(self, name: str) -> dict[str, typing.Any]"))
      .def(
          "cost",
          [](const Recording& r, const std::string& device) {
            return object_of(interruptible([r, device] { return r.cost_json(device); }));
          },
          "device"_a, nb::sig("def cost(self, device: str) -> dict[str, typing.Any]"))
      .def(
          "memory",
          [](const Recording& r, const std::string& by) {
            return object_of(interruptible([r, by] { return r.memory_json(by); }));
          },
          "by"_a, nb::sig("def memory(self, by: str) -> dict[str, typing.Any]"))
      .def(
          "summary",
          [](const Recording& r, const std::string& by, const std::string& device) {
            return object_of(interruptible([r, by, device] { return r.summary_json(by, device); }));
          },
          "by"_a, "device"_a, nb::sig("def summary(self, by: str, device: str) -> dict[str, typing.Any]"))
      .def("bisect", &bisect, "oracle"_a, "every"_a,
           nb::sig("def bisect(self, oracle: typing.Callable[[Module], bool | None], every: bool) -> tuple[str, int, "
                   "int, int]"))
      .def("close", &Recording::close);
}

// JSON objects, which hlo_replay.results makes classes of.
void bind_reports(nb::module_& m) {
  m.def(
      "module_cost",
      [](const Module& m, const std::string& device) {
        return object_of(interruptible([m, device] { return cost_json(m, device); }));
      },
      "module"_a, "device"_a, nb::sig("def module_cost(module: Module, device: str) -> dict[str, typing.Any]"));
  m.def(
      "module_memory",
      [](const Module& m, const std::string& by) {
        return object_of(interruptible([m, by] { return memory_json(m, by); }));
      },
      "module"_a, "by"_a, nb::sig("def module_memory(module: Module, by: str) -> dict[str, typing.Any]"));
  m.def(
      "module_diff",
      [](const Module& a, const Module& b) { return object_of(interruptible([a, b] { return diff_json(a, b); })); },
      "a"_a, "b"_a, nb::sig("def module_diff(a: Module, b: Module) -> dict[str, typing.Any]"));
}

}  // namespace

void bind_recordings(nb::module_& m, nb::class_<Module>& module) {
  bind_handle(m);
  bind_reports(m);
  m.def(
      "open_recording",
      [](const std::string& folder) { return interruptible([folder] { return Recording::open(folder); }); },
      "folder"_a);
  m.def("replay_module", &replay_module, "module"_a, "folder"_a, "pipeline"_a, "only"_a, "disabled"_a, "fuel"_a,
        "formats"_a, "again"_a, "progress"_a.none(),
        nb::sig("def replay_module(module: Module, folder: str, pipeline: str, only: set[str], disabled: set[str], "
                "fuel: dict[str, int], formats: set[str], again: bool, progress: typing.Callable[[int, int, str], "
                "object] | None) -> RecordingHandle"));
  module.def(
      "reduce", &reduce_module, "faulty"_a, nb::kw_only(), "keep_shapes"_a = false, "keep_invalid"_a = false,
      "most"_a = nb::none(),
      nb::sig("def reduce(self, faulty: typing.Callable[[Module], bool], *, keep_shapes: bool = False, keep_invalid: "
              "bool = False, most: int | None = None) -> Module"),
      "The smallest module that is still faulty, by delta debugging; this one is left as it is.\n\n"
      "faulty: called with a candidate: True where it still has the fault; what it raises comes out of the call.\n"
      "keep_shapes: dimensions and trip counts stay. keep_invalid: candidates need not verify. most: that many\n"
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
