// Changing modules and building them.
#include "bind.h"
#include "hlo/builder.h"

namespace hlo::python {
namespace {

void bind_builder(nb::module_& m) {
  nb::class_<Builder>(
      m, "Builder",
      "A computation made instruction by instruction; names are made unique:\n\n"
      "    b = hlo.Builder(hlo.Module('f'), 'main')\n"
      "    x = b.parameter('f32[4]')\n"
      "    b.build(b.op('add', [x, b.op('negate', [x])]))\n\n"
      "Until build() the module is not whole. Raises hlo.InputError with the text that could not be read,\n"
      "hlo.UsageError for operands of another computation.")
      .def(nb::init<Module, std::string_view>(), "module"_a, "computation"_a)
      .def("parameter", &Builder::parameter, "shape"_a, "name"_a = "",
           "Number 0, 1 …; the shape as HLO has it, `f32[4]`.")
      .def(
          "constant",
          [](Builder& b, const nb::object& value, std::string_view name) {
            if (PyUnicode_Check(value.ptr())) return b.constant(bytes_of(value), name);
            return b.constant(array_of(value, std::nullopt, "the constant"), name);
          },
          "value"_a, "name"_a = "",
          nb::sig("def constant(self, value: str | numpy.typing.NDArray[typing.Any] | numpy.generic, name: str = "
                  "'') -> Instruction"),
          "Of a numpy array, or of a text of HLO: shape and literal, `f32[2] {1, 2}`.")
      .def(
          "op", &Builder::op, "opcode"_a, "operands"_a, "attributes"_a = "", "shape"_a = "", "name"_a = "",
          "attributes: as HLO has them, `dimensions={0}, to_apply=%add`. shape: inferred where it is left out and the\n"
          "opcode allows it.")
      .def("build", &Builder::build, "root"_a, "entry"_a = true, "Ends it. entry: it becomes the module's.")
      .def_prop_ro("computation", &Builder::computation);
}

}  // namespace

void bind_edits(nb::module_& m, nb::class_<Module>& module, nb::class_<Computation>& computation,
                nb::class_<Instruction>& instruction) {
  bind_builder(m);
  instruction
      .def_prop_rw(
          "name", [](const Instruction& i) { return text_of(i.name()); },
          [](Instruction& i, const nb::str& name) { i.set_name(bytes_of(name)); }, nb::for_setter("name"_a),
          "May be set; raises hlo.UsageError where another instruction has it.")
      .def_prop_rw(
          "operands", [](const Instruction& i) { return i.operands(); },
          [](Instruction& i, const std::vector<Instruction>& values) {
            if (values.size() != i.operand_count())
              throw Error(ErrorKind::usage, std::string(i.name()) + " has " + std::to_string(i.operand_count()) +
                                                " operands, not " + std::to_string(values.size()));
            for (size_t k = 0; k < values.size(); ++k) i.set_operand(k, values[k]);
          },
          nb::for_getter(nb::sig("def operands(self) -> list[Instruction]")),
          nb::for_setter(nb::sig("def operands(self, operands: list[Instruction], /) -> None")),
          "A new list; as many others may be set in their place, of this computation.")
      .def_prop_rw(
          "metadata", [](const Instruction& i) { return text_of(i.metadata_text()); },
          [](Instruction& i, const nb::str& text) {
            std::string given = bytes_of(text);
            if (given.empty())
              i.erase_attribute("metadata");
            else
              i.set_attribute("metadata", given);
          },
          nb::for_setter("metadata"_a),
          "As HLO's text has it, `{op_name=\"…\"}`; empty where there is none. May be set, empty to take it away.")
      .def("set_operand", &Instruction::set_operand, "index"_a, "value"_a)
      .def("replace_all_uses_with", &Instruction::replace_all_uses_with, "value"_a,
           "`value` replaces this one as an operand everywhere, and as the root where it was that.")
      .def("remove", &Instruction::remove, "Raises hlo.UsageError where it has users or is a root.")
      .def(
          "set_attribute",
          [](Instruction& i, std::string_view key, const nb::str& text) { i.set_attribute(key, bytes_of(text)); },
          "key"_a, "text"_a,
          "`text` as HLO has it after `key=`. Raises hlo.InputError where the opcode does not take it.")
      .def("erase_attribute", &Instruction::erase_attribute, "key"_a)
      .def("make_root", &Instruction::make_root, "Of its computation.");
  computation
      .def_prop_rw(
          "root", &Computation::root,
          [](Computation& c, Instruction root) {
            if (!(root.computation() == c))
              throw Error(ErrorKind::usage,
                          std::string(root.name()) + " is no instruction of " + std::string(c.name()));
            root.make_root();
          },
          nb::for_setter("root"_a), "May be set, to another of its instructions.")
      .def(
          "add", [](Computation& c, const nb::str& line) { return c.add(bytes_of(line)); }, "line"_a,
          "An instruction of a line of HLO: `sum = add(a, b)`, the shape inferred where it is left out, operands by "
          "name.\n"
          "Its name is made unique; it becomes the root where the line begins with `ROOT`. Raises hlo.ParseError.");
  module
      .def_prop_rw(
          "name", [](const Module& m) { return text_of(m.name()); },
          [](Module& m, const nb::str& name) { m.set_name(bytes_of(name)); }, nb::for_setter("name"_a))
      .def_prop_rw(
          "entry", &Module::entry, [](Module& m, const Computation& entry) { m.set_entry(entry); },
          nb::for_setter("entry"_a), "May be set. Raises hlo.UsageError while there is none.")
      .def(
          "add_computation", [](Module& m, const nb::str& text) { return m.add_computation(bytes_of(text)); }, "text"_a,
          "Of HLO's text, `f (x: f32[2]) -> f32[2] { … }`; the first one of an empty module becomes the entry. Raises\n"
          "hlo.ParseError.")
      .def("remove_unused_computations", &Module::remove_unused_computations);
}

}  // namespace hlo::python
