// Module: reading, writing, what is asked of the whole.
#include <algorithm>

#include "dump/json.h"
#include "dump/proto_writer.h"
#include "ir/print/print.h"
#include "ir/query/find_instruction.h"
#include "ir/verify/verifier.h"
#include "parser/proto/proto_reader.h"
#include "replay/library/access.h"
#include "replay/record/files/input.h"

namespace hlo::api {
namespace {

LoadOptions load_options(const ParseOptions& o, const UniverseBody& universe) {
  LoadOptions out;
  out.permissive = o.permissive, out.universe = universe.u, out.max_errors = o.max_errors;
  return out;
}

void append_leaves(const hlo::Universe& u, ShapeId id, std::vector<Shape>* out) {
  if (!u[id].is_tuple()) return out->push_back(shape_of(u, id));
  for (ShapeId e : u[id].elements) append_leaves(u, e, out);
}

hlo::PrintOptions print_options(const PrintOptions& o) {
  hlo::PrintOptions out;
  if (!hlo::PrintOptions::by_name(o.style, &out))
    refuse(ErrorKind::usage,
           "no style is called '" + o.style + "': default, long, short, canonical and fingerprint are");
  out.metadata &= o.metadata;
  out.large_constants |= o.large_constants;
  out.compact_gte |= o.compact_gte;
  return out;
}

}  // namespace

Module::Module(std::shared_ptr<ModuleBody> body) : body_(std::move(body)) {}

Module Access::adopt(const std::shared_ptr<UniverseBody>& universe, std::unique_ptr<hlo::Module> m, bool of_2019) {
  auto body = std::make_shared<ModuleBody>();
  body->universe = universe, body->m = std::move(m), body->of_2019 = of_2019;
  return Module(std::move(body));
}

static Module adopt_read(const std::shared_ptr<UniverseBody>& universe, Loaded read) {
  return Access::adopt(universe, std::move(read.module), read.of_2019);
}

Module Module::parse(std::string_view bytes, const ParseOptions& options, const Universe& universe) {
  return call([&] {
    const auto& u = Access::body(universe);
    const Working working(*u);
    Input input = input_of(options.file, std::string(bytes), options.permissive);
    if (size_t parts = read_parts(&input); parts > 1)
      fail(FailureKind::kUsage, "{} holds {} modules: parse_all() takes all of them", options.file, parts);
    return adopt_read(u, load_part(input, 0, load_options(options, *u)));
  });
}

std::vector<Module> Module::parse_all(std::string_view bytes, const ParseOptions& options, const Universe& universe) {
  return call([&] {
    const auto& u = Access::body(universe);
    const Working working(*u);
    Input input = input_of(options.file, std::string(bytes), options.permissive);
    const size_t parts = read_parts(&input);
    std::vector<Module> out;
    for (size_t k = 0; k < parts; ++k) out.push_back(adopt_read(u, load_part(input, k, load_options(options, *u))));
    return out;
  });
}

Module Module::parse_file(const std::string& path, const ParseOptions& options, const Universe& universe) {
  return call([&] {
    const auto& u = Access::body(universe);
    const Working working(*u);
    if (path == "-") fail(FailureKind::kUsage, "standard input is the program's: read it and call parse()");
    return adopt_read(u, load_all(path, load_options(options, *u)));
  });
}

Module Module::from_proto(std::string_view bytes, const Universe& universe) {
  return call([&] {
    const auto& u = Access::body(universe);
    const Working working(*u);
    return Access::adopt(u, std::move(read_proto(bytes, "<proto>", u->u).module));
  });
}

Module Module::make(std::string_view name, const Universe& universe) {
  return call([&] {
    const auto& u = Access::body(universe);
    const Working working(*u);
    auto m = std::make_unique<hlo::Module>(u->u);
    m->set_module_name(sanitized_name(name));
    return Access::adopt(u, std::move(m));
  });
}

Universe Module::universe() const { return Access::universe(body_->universe); }

Module Module::clone() const {
  return call([&] {
    const Working working(*body_->universe);
    return Access::adopt(body_->universe, body_->m->clone(), body_->of_2019);
  });
}

Module Module::copied_into(const Universe& other) const {
  if (Access::body(other) == body_->universe) return clone();
  return from_proto(to_proto(), other);
}

std::string Module::name() const {
  const Reading reading(*body_->universe);
  return body_->m->name();
}
void Module::set_name(std::string_view name) {
  call([&] {
    const Editing editing(*body_);
    body_->m->set_module_name(sanitized_name(name));
  });
}
bool Module::is_scheduled() const {
  const Reading reading(*body_->universe);
  return body_->m->config().is_scheduled;
}
int64_t Module::replica_count() const {
  const Reading reading(*body_->universe);
  return body_->m->config().replica_count;
}
int64_t Module::num_partitions() const {
  const Reading reading(*body_->universe);
  return body_->m->config().num_partitions;
}
std::string Module::header_text() const {
  return call([&] {
    const Reading reading(*body_->universe);
    std::string text = print_header(*body_->m);
    text.resize(std::min(text.size(), text.find('\n')));
    return text;
  });
}

Computation Module::entry() const {
  const Reading reading(*body_->universe);
  if (!body_->m->entry().valid()) refuse(ErrorKind::usage, "the module has no entry yet");
  return Computation(body_, body_->m->entry().value);
}
std::vector<Computation> Module::computations() const {
  return call([&] {
    const Reading reading(*body_->universe);
    std::vector<Computation> out;
    for (CompId c : body_->m->computations()) out.push_back(Computation(body_, c.value));
    return out;
  });
}
Computation Module::computation(std::string_view name) const {
  return call([&] {
    const Reading reading(*body_->universe);
    if (name.starts_with('%')) name.remove_prefix(1);
    NearestName near(name);
    for (CompId c : body_->m->computations()) {
      std::string_view one = body_->m->comp_name(c);
      if (one == name) return Computation(body_, c.value);
      near.see(one);
    }
    fail(FailureKind::kUsage, "no computation is called '{}'{}", name, near.hint());
  });
}
std::vector<Instruction> Module::instructions() const {
  return call([&] {
    const Reading reading(*body_->universe);
    std::vector<Instruction> out;
    out.reserve(body_->m->instruction_count());
    for (CompId c : body_->m->computations())
      for (InstId i : body_->m->comp(c).order)
        if (body_->m->alive(i)) out.push_back(Instruction(body_, i.value));
    return out;
  });
}
Instruction Module::instruction(std::string_view name) const {
  return call([&] {
    const Working working(*body_->universe);  // the index is made when it is first asked for
    if (name.starts_with('%')) name.remove_prefix(1);
    const InstId found = find_instruction(*body_, name);
    if (!found.valid()) {
      NearestName near(name);
      for (CompId c : body_->m->computations())
        for (InstId i : body_->m->live_order(c)) near.see(body_->m->inst_name(i));
      fail(FailureKind::kUsage, "no instruction is called '{}'{}", name, near.hint());
    }
    return Instruction(body_, found.value);
  });
}
Instruction Module::instruction(uint32_t id) const {
  const Reading reading(*body_->universe);
  if (!body_->m->alive(InstId(id)))
    refuse(ErrorKind::usage, "no instruction has the id " + std::to_string(id) + " (any more)");
  return Instruction(body_, id);
}
size_t Module::instruction_count() const {
  const Reading reading(*body_->universe);
  return body_->m->instruction_count();
}

std::vector<Shape> Module::input_shapes() const {
  return call([&] {
    const Reading reading(*body_->universe);
    std::vector<Shape> out;
    if (body_->m->entry().valid())
      for (InstId p : body_->m->comp(body_->m->entry()).params)
        append_leaves(body_->m->u(), body_->m->shape_id(p), &out);
    return out;
  });
}
std::vector<Shape> Module::output_shapes() const {
  return call([&] {
    const Reading reading(*body_->universe);
    std::vector<Shape> out;
    if (body_->m->entry().valid())
      append_leaves(body_->m->u(), body_->m->shape_id(body_->m->comp(body_->m->entry()).root), &out);
    return out;
  });
}

Columns Module::columns() const {
  return call([&] {
    const Reading reading(*body_->universe);
    const hlo::Module& m = *body_->m;
    const hlo::Universe& u = m.u();
    const size_t n = m.instruction_count();
    Columns out;
    for (auto* list : {&out.id, &out.computation}) list->reserve(n);
    for (auto* list : {&out.opcode, &out.element_type, &out.root}) list->reserve(n);
    out.rank.reserve(n), out.bytes.reserve(n), out.operand_offsets.reserve(n + 1), out.name_offsets.reserve(n + 1);
    out.operands.reserve(n * 2), out.names.reserve(n * 16);
    out.operand_offsets.push_back(0), out.name_offsets.push_back(0);
    // Shapes are few.
    constexpr int64_t kNotYet = -2;
    std::vector<int64_t> bytes(u.shape_count(), kNotYet);
    for (CompId c : m.computations()) {
      const hlo::Computation& comp = m.comp(c);
      for (InstId i : comp.order) {
        if (!m.alive(i)) continue;
        const Inst& inst = m[i];
        const hlo::Shape& shape = u[inst.shape];
        int64_t& size = bytes[inst.shape.value];
        if (size == kNotYet) size = u.bytes(inst.shape).fits() ? u.bytes(inst.shape).capped() : -1;
        out.id.push_back(i.value), out.computation.push_back(c.value);
        out.opcode.push_back(static_cast<uint8_t>(inst.op));
        out.element_type.push_back(static_cast<uint8_t>(shape.type));
        out.root.push_back(comp.root == i);
        out.rank.push_back(shape.rank()), out.bytes.push_back(size);
        for (InstId o : m.operands(i)) out.operands.push_back(o.value);
        out.operand_offsets.push_back(out.operands.size());
        out.names += m.inst_name(i);
        out.name_offsets.push_back(out.names.size());
      }
    }
    return out;
  });
}

Computation Module::add_computation(std::string_view text) {
  return call([&] {
    const Editing editing(*body_);
    return Computation(body_, hlo::api::add_computation_text(*body_, text).value);
  });
}
void Module::set_entry(const Computation& computation) {
  call([&] {
    const Editing editing(*body_);
    if (computation.body_ != body_) fail(FailureKind::kUsage, "the computation is another module's");
    if (!computation.alive()) fail(FailureKind::kUsage, "the computation has been removed");
    hlo::Module& m = *body_->m;
    m.set_entry(CompId(computation.id_));
    // What the header says of the entry's layouts was said of the one before.
    m.edit_config().has_entry_layout = true;
    std::vector<ShapeId> params;
    for (InstId p : m.comp(m.entry()).params) params.push_back(m.shape_id(p));
    m.set_entry_layout(params, m.shape_id(m.comp(m.entry()).root));
  });
}
void Module::remove_unused_computations() {
  call([&] {
    const Editing editing(*body_);
    if (!body_->m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    body_->m->remove_uncalled_computations();
  });
}

std::string Module::text(const PrintOptions& options) const {
  return call([&] {
    const Reading reading(*body_->universe);
    if (options.lossless) return lossless_text(*body_->m);
    return print_module(*body_->m, print_options(options));
  });
}
std::string Module::json() const {
  return call([&] {
    const Reading reading(*body_->universe);
    return module_json(*body_->m);
  });
}
std::string Module::to_proto(std::string_view format) const {
  return call([&] {
    const Working working(*body_->universe);  // attributes are read again to be written
    if (format != "pb" && format != "pb.gz" && format != "pbtxt")
      fail(FailureKind::kUsage, "no form of a proto is called '{}': pb, pb.gz and pbtxt are", format);
    return module_to_proto_bytes(*body_->m, "." + std::string(format));
  });
}

std::vector<Finding> Module::verify(const VerifyOptions& options) const {
  return call([&] {
    const Working working(*body_->universe);  // shapes are inferred
    Layouts layouts = options.layouts == "auto"      ? Layouts::kAuto
                      : options.layouts == "binding" ? Layouts::kBinding
                                                     : Layouts::kFree;
    Precision precision = options.precision == "auto"    ? Precision::kAuto
                          : options.precision == "mixed" ? Precision::kMixed
                                                         : Precision::kUniform;
    if (layouts == Layouts::kFree && options.layouts != "free")
      fail(FailureKind::kUsage, "layouts are auto, binding or free, not '{}'", options.layouts);
    if (precision == Precision::kUniform && options.precision != "uniform")
      fail(FailureKind::kUsage, "precision is auto, uniform or mixed, not '{}'", options.precision);
    if (!body_->m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    std::vector<Finding> out;
    for (const VerifyError& e : verify_module(*body_->m, options.limit, layouts, Moment::kBetweenPasses, precision))
      out.push_back({e.rule, e.message, e.inst.valid() ? int64_t{e.inst.value} : -1});
    return out;
  });
}
void Module::require_valid(const VerifyOptions& options) const {
  const std::vector<Finding> found = verify(options);
  if (found.empty()) return;
  std::string text = "the module does not verify:";
  for (const Finding& f : found) text += "\n" + f.message + " [" + f.rule + "]";
  refuse(ErrorKind::bad_input, text);
}

}  // namespace hlo::api
