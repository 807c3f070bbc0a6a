// Passes over a module.
#include <fmt/format.h>

#include "bind.h"
#include "hlo/scripting.h"

namespace hlo::python {
namespace {

// `module.passes`.
struct Passes {
  Module module;
};

// As passes.def writes them: flags are true and false.
std::string option_text(nb::handle value) {
  if (PyBool_Check(value.ptr())) return value.is(Py_True) ? "true" : "false";
  return nb::cast<std::string>(nb::str(value));
}

scripting::PassDone run(const Passes& p, const std::string& name, std::optional<int64_t> fuel, nb::kwargs options) {
  std::map<std::string, std::string> given;
  for (auto [key, value] : options) given[nb::cast<std::string>(key)] = option_text(value);
  scripting::PassDone all;
  bool first = true;
  for (size_t at = 0; at <= name.size();) {
    size_t end = std::min(name.find(',', at), name.size());
    std::string one = name.substr(at, end - at);
    at = end + 1;
    scripting::PassDone done = interruptible(
        [m = p.module, one, given, fuel] { return scripting::run_pass(m, one, given, fuel.value_or(INT64_MAX)); });
    if (first) {
      all = std::move(done), first = false;
      continue;
    }
    all.pass += "," + done.pass, all.changed |= done.changed, all.after = done.after;
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

std::vector<scripting::PassInfo> implemented() {
  std::vector<scripting::PassInfo> out;
  for (scripting::PassInfo& p : scripting::passes())
    if (p.implemented) out.push_back(std::move(p));
  return out;
}

nb::object attribute(nb::handle self, const std::string& name) {
  for (const scripting::PassInfo& p : implemented())
    if (identifier(p.name) == name) return nb::module_::import_("functools").attr("partial")(self.attr("run"), p.name);
  throw nb::attribute_error(fmt::format("no pass is called '{}'; hlo.passes() lists them", name).c_str());
}

}  // namespace

void bind_passes(nb::module_& m, nb::class_<Module>& module) {
  nb::class_<scripting::PassInfo>(m, "PassInfo", "A pass, as XLA calls it.")
      .def_ro("name", &scripting::PassInfo::name)
      .def_ro("aliases", &scripting::PassInfo::aliases, "Other names, with blanks between them.")
      .def_ro("summary", &scripting::PassInfo::summary)
      .def_prop_ro(
          "options",
          [](const scripting::PassInfo& p) {
            nb::dict out;
            for (const auto& [name, absent] : p.options) out[name.c_str()] = absent;
            return out;
          },
          nb::sig("def options(self) -> dict[str, str]"), "And what each is where it is left out.")
      .def_ro("implemented", &scripting::PassInfo::implemented, "False: there is no code for it here.")
      .def("__repr__",
           [](const scripting::PassInfo& p) { return fmt::format("<PassInfo {}: {}>", p.name, p.summary); });
  nb::class_<scripting::PassDone>(m, "PassDone", "What a pass did.")
      .def_prop_ro("pass_name", [](const scripting::PassDone& d) { return d.pass; })
      .def_ro("changed", &scripting::PassDone::changed)
      .def_ro("rewrites", &scripting::PassDone::rewrites)
      .def_ro("microseconds", &scripting::PassDone::microseconds)
      .def_ro("instructions_before", &scripting::PassDone::before)
      .def_ro("instructions_after", &scripting::PassDone::after)
      .def_prop_ro(
          "notes",
          [](const scripting::PassDone& d) {
            nb::list out;
            for (const auto& [rule, names] : d.notes) out.append(nb::make_tuple(rule, text_of(names)));
            return out;
          },
          nb::sig("def notes(self) -> list[tuple[str, str]]"), "Rewrites and decisions: rule, instructions by name.")
      .def("__repr__", [](const scripting::PassDone& d) {
        return fmt::format("<PassDone {}: {} rewrites, {} → {} instructions>", d.pass, d.rewrites, d.before, d.after);
      });
  nb::class_<Passes>(m, "Passes",
                     "Passes to be run over a module, which they change: `module.passes.algsimp()`,\n"
                     "`module.passes.run('algsimp,dce')`; dashes of names are underscores.")
      .def("run", &run, "name"_a, "fuel"_a = nb::none(), "options"_a,
           nb::sig("def run(self, name: str, fuel: int | None = None, **options: bool | int | str) -> PassDone"),
           "A pass, or several with commas between them, by name or alias. fuel: most rewrites of each. options: those "
           "of\n"
           "the pass. The module is verified before and behind it. Raises hlo.UsageError, naming the nearest, where "
           "there is\n"
           "no such pass or option.")
      .def("__getattr__", &attribute, "name"_a,
           nb::sig("def __getattr__(self, name: str) -> typing.Callable[..., PassDone]"))
      .def("__dir__",
           [](const Passes&) {
             std::vector<std::string> out{"run"};
             for (const scripting::PassInfo& p : implemented()) out.push_back(identifier(p.name));
             return out;
           })
      .def("__len__", [](const Passes&) { return implemented().size(); })
      .def("__contains__",
           [](const Passes&, const std::string& name) {
             for (const scripting::PassInfo& p : implemented())
               if (p.name == name) return true;
             return false;
           })
      .def(
          "__iter__", [](const Passes&) { return nb::iter(nb::cast(implemented())); },
          nb::sig("def __iter__(self) -> typing.Iterator[PassInfo]"));
  module.def_prop_ro(
      "passes", [](const Module& m) { return Passes{m}; }, "Passes to be run over it: hlo.Passes.");
  m.def("passes", &scripting::passes, "Every pass that is known, those without code here too.");
  m.def("pipelines", &scripting::pipelines, "Names of the pipelines that replay() takes.");
}

}  // namespace hlo::python
