// Modules, computations and instructions.
#include <fmt/format.h>

#include <algorithm>

#include "bind.h"

namespace hlo::python {
namespace {

nb::dict dict_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  nb::dict out;
  for (const auto& [key, value] : pairs) out[text_of(key)] = text_of(value);
  return out;
}

// Of a text, of bytes or of a path: what parse() takes.
struct Source {
  std::string bytes, path;
};
Source source_of(nb::handle source) {
  if (PyUnicode_Check(source.ptr())) return {bytes_of(source), {}};
  if (PyObject_CheckBuffer(source.ptr())) {
    nb::object bytes = nb::steal(PyBytes_FromObject(source.ptr()));
    if (!bytes) throw nb::python_error();
    return {std::string(PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))), {}};
  }
  return {{}, path_of(source)};
}

Module parse(nb::handle source, const std::string& label, bool permissive) {
  Source from = source_of(source);
  ParseOptions options;
  options.permissive = permissive;
  if (!label.empty()) options.file = label;
  return interruptible([from = std::move(from), options] {
    return from.path.empty() ? Module::parse(from.bytes, options) : Module::parse_file(from.path, options);
  });
}

nb::list parse_all(nb::handle source, const std::string& label, bool permissive) {
  Source from = source_of(source);
  if (!from.path.empty()) {
    nb::object bytes = nb::module_::import_("pathlib").attr("Path")(source).attr("read_bytes")();
    from.bytes = source_of(bytes).bytes;
  }
  ParseOptions options;
  options.permissive = permissive;
  options.file = !label.empty() ? label : !from.path.empty() ? from.path : options.file;
  nb::list out;
  for (Module& m :
       interruptible([bytes = std::move(from.bytes), options] { return Module::parse_all(bytes, options); }))
    out.append(nb::cast(std::move(m)));
  return out;
}

std::string one_line(std::string text, size_t most = 160) {
  if (text.size() <= most) return text;
  while (most && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;  // not within a character
  return text.substr(0, most) + "…";
}

nb::object shown(nb::handle self, const char* how) {
  return nb::module_::import_("hlo_replay._notebook").attr(how)(self);
}

void bind_shapes(nb::module_& m) {
  nb::class_<Shape>(m, "Shape", "A shape with its layout; `str()` gives HLO's text of it, `f32[2,3]{1,0}`.")
      .def_ro("element_type", &Shape::element_type, "HLO's name: `f32`, `bf16`, `s4`, `tuple`, `token` …")
      .def_prop_ro(
          "dims", [](const Shape& s) { return nb::tuple(nb::cast(s.dims)); },
          nb::sig("def dims(self) -> tuple[int, ...]"), "Sizes of an array's dimensions, of dynamic ones their bounds.")
      .def_prop_ro(
          "elements", [](const Shape& s) { return nb::tuple(nb::cast(s.elements)); },
          nb::sig("def elements(self) -> tuple[Shape, ...]"), "Of a tuple.")
      .def_prop_ro(
          "minor_to_major",
          [](const Shape& s) { return s.has_layout ? nb::object(nb::tuple(nb::cast(s.minor_to_major))) : nb::none(); },
          nb::sig("def minor_to_major(self) -> tuple[int, ...] | None"), "The layout; None where there is none.")
      .def_ro("layout_rest", &Shape::layout_rest, "Tiles, memory space and the like of the layout, as text.")
      .def_prop_ro(
          "dynamic", [](const Shape& s) { return nb::tuple(nb::cast(s.dynamic)); },
          nb::sig("def dynamic(self) -> tuple[bool, ...]"), "Empty where no dimension is, else a flag a dimension.")
      .def_prop_ro(
          "bytes", [](const Shape& s) { return s.bytes < 0 ? std::nullopt : std::optional(s.bytes); },
          "As XLA's buffers count them; None where the number does not fit into 63 bits.")
      .def_prop_ro(
          "dtype",
          [](const Shape& s) { return nb::module_::import_("hlo_replay._arrays").attr("dtype")(s.element_type); },
          nb::sig("def dtype(self) -> numpy.dtype[typing.Any]"),
          "numpy's dtype of an element, narrow ones by ml_dtypes. Raises hlo.UnsupportedError of tuples and tokens.")
      .def("__eq__", [](const Shape& a,
                        nb::handle b) { return nb::isinstance<Shape>(b) && a.text == nb::cast<const Shape&>(b).text; })
      .def("__hash__", [](const Shape& s) { return std::hash<std::string>()(s.text); })
      .def("__str__", [](const Shape& s) { return s.text; })
      .def("__repr__", [](const Shape& s) { return "<Shape " + one_line(s.text) + ">"; });
}

void bind_instruction(nb::class_<Instruction>& c) {
  c.def_prop_ro("id", &Instruction::id,
                "A number that it keeps through edits and passes; in a recording it is the same in every stage.")
      .def_prop_ro("module", &Instruction::module)
      .def_prop_ro("alive", &Instruction::alive, "False once it was removed; every other property raises then.")
      .def_prop_ro(
          "opcode", [](const Instruction& i) { return text_of(i.opcode()); }, "`add`, `get-tuple-element` …")
      .def_prop_ro("shape", &Instruction::shape)
      .def_prop_ro("computation", &Instruction::computation)
      .def_prop_ro("is_root", &Instruction::is_root)
      .def_prop_ro("users", &Instruction::users, "Instructions that have it as an operand, each once.")
      .def_prop_ro("control_predecessors", &Instruction::control_predecessors)
      .def_prop_ro("called_computations", &Instruction::called_computations)
      .def_prop_ro(
          "attributes", [](const Instruction& i) { return dict_of(i.attributes()); },
          nb::sig("def attributes(self) -> dict[str, str]"),
          "A copy of all that comes after the operands but metadata: `{'dimensions': '{0,1}'}`.")
      .def_prop_ro(
          "op_name", [](const Instruction& i) { return text_of(i.op_name()); },
          "The framework's name of it; empty where there is none.")
      .def_prop_ro("source", &Instruction::source, "Lines of the program, the innermost first; empty where unknown.")
      .def_prop_ro("parameter_number", &Instruction::parameter_number, "None of what is no parameter.")
      .def_prop_ro(
          "literal",
          [](const Instruction& i) {
            std::optional<Array> a = i.literal();
            return a ? numpy_of(*a) : nb::none();
          },
          nb::sig("def literal(self) -> numpy.typing.NDArray[typing.Any] | None"),
          "A constant's value; None of what is no constant, of tuples, and of values that the text left out.")
      .def_prop_ro(
          "text", [](const Instruction& i) { return text_of(i.text()); }, "Its line of HLO.")
      .def("__eq__",
           [](const Instruction& a, nb::handle b) {
             return nb::isinstance<Instruction>(b) && a == nb::cast<const Instruction&>(b);
           })
      .def("__hash__", [](const Instruction& i) { return static_cast<size_t>(i.id()) * 0x9E3779B1u; })
      .def("__str__", [](const Instruction& i) { return text_of(i.text()); })
      .def("__repr__", [](const Instruction& i) {
        return i.alive() ? text_of("<Instruction " + one_line(i.text()) + ">")
                         : nb::str("<Instruction that was removed>");
      });
}

void bind_computation(nb::class_<Computation>& c) {
  c.def_prop_ro("id", &Computation::id)
      .def_prop_ro("module", &Computation::module)
      .def_prop_ro("alive", &Computation::alive)
      .def_prop_ro("name", [](const Computation& c) { return text_of(c.name()); })
      .def_prop_ro("is_entry", &Computation::is_entry)
      .def_prop_ro("parameters", &Computation::parameters, "By number.")
      .def_prop_ro("instructions", &Computation::instructions,
                   "In order of creation; of a scheduled module that is the schedule.")
      .def_prop_ro("post_order", &Computation::post_order, "Operands before their users, as HLO's text has them.")
      .def_prop_ro("callers", &Computation::callers)
      .def_prop_ro("text", [](const Computation& c) { return text_of(c.text()); })
      .def("__len__", [](const Computation& c) { return c.instructions().size(); })
      .def(
          "__iter__", [](const Computation& c) { return nb::iter(nb::cast(c.instructions())); },
          nb::sig("def __iter__(self) -> typing.Iterator[Instruction]"))
      .def("__eq__",
           [](const Computation& a, nb::handle b) {
             return nb::isinstance<Computation>(b) && a == nb::cast<const Computation&>(b);
           })
      .def("__hash__", [](const Computation& c) { return static_cast<size_t>(c.id()) * 0x9E3779B1u; })
      .def("__str__", [](const Computation& c) { return text_of(c.text()); })
      .def("__repr__", [](const Computation& c) {
        return c.alive() ? text_of(fmt::format("<Computation {}>", c.name()))
                         : nb::str("<Computation that was removed>");
      });
}

constexpr const char* kModule =
    "A module of HLO: computations of instructions. Made by `hlo.parse`, by a recording's stages, or empty by\n"
    "`Module(name)`.\n\n"
    "It is a handle: an instruction keeps its module alive. Several threads may read it; while one runs, verifies or\n"
    "changes it, or another module of its recording, calls of other threads raise hlo.UsageError.";

void bind_module(nb::class_<Module>& c) {
  c.def(
       "__init__", [](Module* self, std::string_view name) { new (self) Module(Module::make(name)); }, "name"_a)
      .def_prop_ro("is_scheduled", &Module::is_scheduled, "Is the order of instructions the one in which they run?")
      .def_prop_ro("replica_count", &Module::replica_count)
      .def_prop_ro("num_partitions", &Module::num_partitions)
      .def_prop_ro("computations", &Module::computations)
      .def_prop_ro("instructions", &Module::instructions, "Those of all computations; a new list.")
      .def_prop_ro("input_shapes", &Module::input_shapes, "Of the entry's parameters, tuples flattened.")
      .def_prop_ro("output_shapes", &Module::output_shapes, "Of the entry's result, tuples flattened.")
      .def("computation", &Module::computation, "name"_a,
           "Raises hlo.UsageError, naming the nearest, where none has it.")
      .def("instruction", nb::overload_cast<std::string_view>(&Module::instruction, nb::const_), "name"_a,
           "By name, with or without `%`. Raises hlo.UsageError where none has it.")
      .def("instruction", nb::overload_cast<uint32_t>(&Module::instruction, nb::const_), "id"_a,
           "By `Instruction.id`. Raises hlo.UsageError where none has it.")
      .def("__getitem__", nb::overload_cast<std::string_view>(&Module::instruction, nb::const_), "name"_a)
      .def("__len__", &Module::instruction_count)
      .def("__bool__", [](const Module&) { return true; })
      .def(
          "__iter__", [](const Module& m) { return nb::iter(nb::cast(m.instructions())); },
          nb::sig("def __iter__(self) -> typing.Iterator[Instruction]"))
      .def(
          "__contains__",
          [](const Module& m, std::string_view name) {
            try {
              m.instruction(name);
              return true;
            } catch (const Error& e) {
              if (e.kind() != ErrorKind::usage) throw;
              return false;
            }
          },
          "name"_a)
      .def("columns", &columns_of, nb::sig("def columns(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
           "All instructions as numpy arrays of one length, for pandas.DataFrame: id, name, computation, opcode,\n"
           "element_type, rank, bytes (-1: does not fit into 63 bits), operand_count, user_count, is_root. A copy of "
           "the\n"
           "moment.")
      .def("edges", &edges_of, nb::sig("def edges(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
           "Every use of an instruction by another as numpy arrays of ids: user, index (which operand), operand.")
      .def("__eq__",
           [](const Module& a, nb::handle b) { return nb::isinstance<Module>(b) && a == nb::cast<const Module&>(b); })
      .def("__hash__", [](const Module& m) { return std::hash<std::string>()(m.name()); });
}

void bind_module_whole(nb::class_<Module>& c) {
  c.def("clone", &Module::clone, "A copy that can be changed by itself; instructions keep their ids.")
      .def(
          "print",
          [](const Module& m, const std::string& style, bool metadata, bool large_constants, bool lossless) {
            PrintOptions o;
            o.style = style, o.metadata = metadata, o.large_constants = large_constants, o.lossless = lossless;
            return text_of(interruptible([m, o] { return m.text(o); }));
          },
          "style"_a = "default", nb::kw_only(), "metadata"_a = true, "large_constants"_a = false, "lossless"_a = false,
          "HLO's text as XLA prints it. style: default, long, short, canonical or fingerprint. large_constants: "
          "arrays\n"
          "of more than ten elements in full. lossless: nothing that reading back would change.")
      .def(
          "to_proto",
          [](const Module& m, const std::string& form) {
            std::string out = interruptible([m, form] { return m.to_proto(form); });
            return nb::bytes(out.data(), out.size());
          },
          "form"_a = "pb", "XLA's HloModuleProto as bytes. form: pb, pb.gz or pbtxt.")
      .def(
          "verify",
          [](const Module& m, size_t limit, const std::string& layouts, const std::string& precision) {
            VerifyOptions o;
            o.limit = limit, o.layouts = layouts, o.precision = precision;
            return interruptible([m, o] { return m.verify(o); });
          },
          nb::kw_only(), "limit"_a = 20, "layouts"_a = "auto", "precision"_a = "auto",
          "What XLA's verifier would refuse, at most `limit`; an empty list where all is well. layouts: auto, binding "
          "or\n"
          "free (do they count?); precision: auto, uniform or mixed (may f32 be next to bf16?).")
      .def("__str__", [](const Module& m) { return text_of(interruptible([m] { return m.text(); })); })
      .def("__repr__",
           [](const Module& m) {
             return text_of(fmt::format("<Module {}: {} instructions in {} computations>", m.name(),
                                        m.instruction_count(), m.computations().size()));
           })
      .def(
          "_repr_html_", [](nb::handle self) { return shown(self, "module"); },
          nb::sig("def _repr_html_(self) -> str"));
}

}  // namespace

nb::str text_of(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (!made) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

std::string bytes_of(nb::handle text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string path_of(nb::handle path) {
  nb::object given = nb::steal(PyOS_FSPath(path.ptr()));
  if (!given) throw nb::python_error();
  if (!PyUnicode_Check(given.ptr()))
    return {PyBytes_AsString(given.ptr()), static_cast<size_t>(PyBytes_Size(given.ptr()))};
  return bytes_of(given);
}

void bind_modules(nb::module_& m) {
  bind_shapes(m);
  nb::class_<SourceFrame>(m, "SourceFrame", "A line of the program that an instruction comes from.")
      .def_prop_ro("file", [](const SourceFrame& f) { return text_of(f.file); })
      .def_prop_ro(
          "function", [](const SourceFrame& f) { return text_of(f.function); },
          "Empty where the module does not say it.")
      .def_ro("line", &SourceFrame::line, "From 1; 0 where it is unknown.")
      .def_ro("column", &SourceFrame::column)
      .def("__repr__",
           [](const SourceFrame& f) { return text_of(fmt::format("<SourceFrame {}:{}>", f.file, f.line)); });
  nb::class_<Finding>(m, "Finding", "What the verifier refuses.")
      .def_ro("rule", &Finding::rule, "A word for it: `shapes`, `operands` …")
      .def_prop_ro(
          "message", [](const Finding& f) { return text_of(f.message); }, "Names instruction and computation.")
      .def_prop_ro(
          "instruction",
          [](const Finding& f) { return f.instruction < 0 ? std::nullopt : std::optional(f.instruction); },
          "`Instruction.id`; None where it is the module's.")
      .def("__repr__", [](const Finding& f) { return text_of(fmt::format("<Finding {}: {}>", f.rule, f.message)); });
  nb::class_<Instruction> instruction(m, "Instruction",
                                      "An operation of a module: a handle, which keeps the module alive. Once it was\n"
                                      "removed every property but `alive` and `id` raises hlo.UsageError.");
  nb::class_<Computation> computation(m, "Computation", "A function of instructions, one of which is its root.");
  nb::class_<Module> module(m, "Module", kModule);
  bind_instruction(instruction);
  bind_computation(computation);
  bind_module(module);
  bind_module_whole(module);
  bind_edits(m, module, computation, instruction);
  bind_running(m, module);
  bind_passes(m, module);
  bind_recordings(m, module);
  m.def(
      "parse", &parse, "source"_a, nb::kw_only(), "label"_a = "", "permissive"_a = false,
      nb::sig("def parse(source: str | bytes | bytearray | memoryview | os.PathLike[str], *, label: str = '', "
              "permissive: bool = "
              "False) -> Module"),
      "A module from HLO text of any year (str or bytes), from a proto (bytes: HloModuleProto, HloProto, HloSnapshot,\n"
      "gzipped or not) or from a file (os.PathLike; also FILE@2 of several, and DIR:MODULE:STAGE of a recording).\n\n"
      "label: what messages call it. permissive: unknown attributes are kept as they are.\n"
      "Raises hlo.ParseError with every diagnostic, hlo.InputError where the file cannot be read.");
  m.def("parse_all", &parse_all, "source"_a, nb::kw_only(), "label"_a = "", "permissive"_a = false,
        nb::sig("def parse_all(source: str | bytes | bytearray | memoryview | os.PathLike[str], *, label: str = '', "
                "permissive: bool "
                "= False) -> list[Module]"),
        "All modules of a text that holds several.");
}

}  // namespace hlo::python
