// Passes over a module.
#include <fmt/format.h>

#include "bind.h"
#include "hlo/pass.h"

namespace hlo::python {
namespace {

// `module.passes`.
struct Passes {
  Module module;
};
// Of one pass, or of several together.
struct PassDone : PassResult {
  std::string pass;
};

// As passes.def writes them: flags are true and false.
std::string option_text(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True) ? "true" : "false";
  return nb::cast<std::string>(nb::str(value));
}

PassDone run(const Passes& p, const std::string& name, std::optional<int64_t> fuel, const nb::kwargs& options) {
  if (fuel && *fuel < 0) throw Error(ErrorKind::usage, fmt::format("a pass makes no {} rewrites", *fuel));
  std::map<std::string, std::string> given;
  for (auto [key, value] : options) given[nb::cast<std::string>(key)] = option_text(value);
  PassDone all;
  bool first = true;
  for (size_t at = 0; at <= name.size();) {
    size_t end = std::min(name.find(',', at), name.size());
    std::string one = name.substr(at, end - at);
    at = end + 1;
    PassOptions o;
    o.options = given;
    if (fuel) o.fuel = *fuel;
    PassDone done{interruptible([m = p.module, one, o] { return run_pass(m, one, o); }), pass_info(one).name};
    if (first) {
      all = std::move(done), first = false;
      continue;
    }
    all.pass += "," + done.pass, all.changed |= done.changed, all.instructions_after = done.instructions_after;
    all.rewrites += done.rewrites, all.microseconds += done.microseconds;
    all.notes.insert(all.notes.end(), done.notes.begin(), done.notes.end());
  }
  return all;
}

// The identifier that a name with dashes is in Python.
std::string identifier(std::string name) {
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

std::vector<PassInfo> implemented() {
  std::vector<PassInfo> out;
  for (PassInfo& p : hlo::passes())
    if (p.implemented) out.push_back(std::move(p));
  return out;
}

nb::object attribute(nb::handle self, const std::string& name) {
  for (const PassInfo& p : implemented())
    if (identifier(p.name) == name) return nb::module_::import_("functools").attr("partial")(self.attr("run"), p.name);
  throw nb::attribute_error(fmt::format("no pass is called '{}'; hlo.passes() lists them", name).c_str());
}

}  // namespace

void bind_passes(nb::module_& m, nb::class_<Module>& module) {
  nb::class_<PassInfo>(m, "PassInfo", "A pass, as XLA calls it.")
      .def_ro("name", &PassInfo::name)
      .def_ro("aliases", &PassInfo::aliases, "Other names.")
      .def_ro("summary", &PassInfo::summary)
      .def_prop_ro(
          "options",
          [](const PassInfo& p) {
            nb::dict out;
            for (const PassOption& o : p.options) out[o.name.c_str()] = o.absent;
            return out;
          },
          nb::sig("def options(self) -> dict[str, str]"), "And what each is where it is left out.")
      .def_ro("implemented", &PassInfo::implemented, "False: there is no code for it here.")
      .def("__repr__", [](const PassInfo& p) { return fmt::format("<PassInfo {}: {}>", p.name, p.summary); });
  nb::class_<PassDone>(m, "PassDone", "What a pass did.")
      .def_prop_ro("pass_name", [](const PassDone& d) { return d.pass; })
      .def_ro("changed", &PassDone::changed)
      .def_ro("rewrites", &PassDone::rewrites)
      .def_ro("microseconds", &PassDone::microseconds)
      .def_ro("instructions_before", &PassDone::instructions_before)
      .def_ro("instructions_after", &PassDone::instructions_after)
      .def_prop_ro(
          "notes",
          [](const PassDone& d) {
            nb::list out;
            for (const PassNote& n : d.notes)
              out.append(nb::make_tuple(n.rule, text_of(fmt::format("{}", fmt::join(n.names, ", ")))));
            return out;
          },
          nb::sig("def notes(self) -> list[tuple[str, str]]"), "Rewrites and decisions: rule, instructions by name.")
      .def("__repr__", [](const PassDone& d) {
        return fmt::format("<PassDone {}: {} rewrites, {} → {} instructions>", d.pass, d.rewrites,
                           d.instructions_before, d.instructions_after);
      });
  nb::class_<Passes>(m, "Passes",
                     "Passes to be run over a module, which they change: `module.passes.algsimp()`,\n"
                     "`module.passes.run('algsimp,dce')`; dashes of names are underscores.")
      .def("run", &run, "name"_a, "fuel"_a = nb::none(), "options"_a,
           nb::sig("def run(self, name: str, fuel: int | None = None, **options: bool | int | str) -> PassDone"),
           "A pass, or several with commas between them, by name or alias. fuel: most rewrites of each. options: those "
           "of\n"
           "the pass. The module is verified before and after it. Raises hlo.UsageError, naming the nearest, where "
           "there is\n"
           "no such pass or option.")
      .def("__getattr__", &attribute, "name"_a,
           nb::sig("def __getattr__(self, name: str) -> typing.Callable[..., PassDone]"))
      .def("__dir__",
           [](const Passes&) {
             std::vector<std::string> out{"run"};
             for (const PassInfo& p : implemented()) out.push_back(identifier(p.name));
             return out;
           })
      .def("__len__", [](const Passes&) { return implemented().size(); })
      .def("__contains__",
           [](const Passes&, const std::string& name) {
             for (const PassInfo& p : implemented())
               if (p.name == name) return true;
             return false;
           })
      .def(
          "__iter__", [](const Passes&) { return nb::iter(nb::cast(implemented())); },
          nb::sig("def __iter__(self) -> typing.Iterator[PassInfo]"));
  module.def_prop_ro(
      "passes", [](const Module& m) { return Passes{m}; }, "Passes to be run over it: hlo.Passes.");
  m.def("passes", &hlo::passes, "Every pass that is known, those without code here too.");
  m.def("pipelines", &hlo::pipelines, "Names of the pipelines that replay() takes.");
}

}  // namespace hlo::python
