// Instruction and Computation; shapes and element types as plain data.
#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "replay/library/access.h"

namespace hlo::api {

const std::vector<std::string_view>& element_types() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> out;
    for (int k = 0; k < kElementTypeCount; ++k) out.push_back(type_name(static_cast<ElementType>(k)));
    out.back() = "tuple";
    return out;
  }();
  return all;
}
const std::vector<std::string_view>& opcodes() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> out;
    for (int k = 0; k < kOpcodeCount; ++k) out.push_back(op_text(static_cast<Opcode>(k)));
    return out;
  }();
  return all;
}
namespace {
ElementType array_type_of(std::string_view name) {
  ElementType type = ElementType::Tuple;
  if (!type_from_name(name, &type)) refuse(ErrorKind::usage, "no element type is called '" + std::string(name) + "'");
  return type;
}
}  // namespace
int element_bits(std::string_view name) { return name == "tuple" ? 0 : type_bits(array_type_of(name)); }
int storage_bytes(std::string_view name) { return name == "tuple" ? 0 : hlo::storage_bytes(array_type_of(name)); }

Shape shape_of(const hlo::Universe& u, ShapeId id) {
  const hlo::Shape& s = u[id];
  Shape out;
  out.element_type = s.is_tuple() ? "tuple" : type_name(s.type);
  out.dims.assign(s.dims.begin(), s.dims.end());
  out.dynamic = s.dynamic;
  out.has_layout = s.has_layout;
  out.minor_to_major.assign(s.layout.minor_to_major.begin(), s.layout.minor_to_major.end());
  out.layout_rest = s.layout.rest;
  for (ShapeId e : s.elements) out.elements.push_back(shape_of(u, e));
  out.text = u.shape_text(id);
  if (Checked bytes = u.bytes(id); bytes.fits()) out.bytes = bytes.capped();
  return out;
}

namespace {

// A call that reads one instruction.
template <class Body>
auto asked(const std::shared_ptr<ModuleBody>& body, uint32_t id, Body&& answer) {
  return call([&] {
    const Reading reading(*body->universe);
    if (!body->m->alive(InstId(id))) fail(FailureKind::kUsage, "instruction {} has been removed", id);
    return answer(std::as_const(*body->m), InstId(id));
  });
}
template <class Body>
auto edited(const std::shared_ptr<ModuleBody>& body, uint32_t id, Body&& edit) {
  return call([&] {
    const Editing editing(*body);
    if (!body->m->alive(InstId(id))) fail(FailureKind::kUsage, "instruction {} has been removed", id);
    return edit(*body->m, InstId(id));
  });
}
bool comp_alive(const hlo::Module& m, uint32_t id) { return id < m.comp_slots() && m.comp(CompId(id)).alive; }
template <class Body>
auto comp_asked(const std::shared_ptr<ModuleBody>& body, uint32_t id, Body&& answer) {
  return call([&] {
    const Reading reading(*body->universe);
    if (!comp_alive(*body->m, id)) fail(FailureKind::kUsage, "computation {} has been removed", id);
    return answer(std::as_const(*body->m), CompId(id));
  });
}

template <class Ids>
std::vector<Instruction> handles(const std::shared_ptr<ModuleBody>& body, const Ids& ids) {
  std::vector<Instruction> out;
  for (InstId i : ids)
    if (body->m->alive(i)) out.push_back(Access::instruction(body, i));
  return out;
}

}  // namespace

Instruction::Instruction(std::shared_ptr<ModuleBody> body, uint32_t id) : body_(std::move(body)), id_(id) {}

Module Instruction::module() const { return Access::module(body_); }
bool Instruction::alive() const { return body_->m->alive(InstId(id_)); }

std::string_view Instruction::name() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return m.inst_name(i); });
}
std::string_view Instruction::opcode() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return op_text(m.op(i)); });
}
std::string_view Instruction::shape_text() const {
  return asked(body_, id_,
               [](const hlo::Module& m, InstId i) -> std::string_view { return m.u().shape_text(m.shape_id(i)); });
}
Shape Instruction::shape() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return shape_of(m.u(), m.shape_id(i)); });
}
Computation Instruction::computation() const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) { return Access::computation(body_, m.parent(i)); });
}
bool Instruction::is_root() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return m.is_root(i); });
}
size_t Instruction::operand_count() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return m.operand_count(i); });
}
Instruction Instruction::operand(size_t k) const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) {
    if (k >= m.operand_count(i))
      fail(FailureKind::kUsage, "{} has {} operands, there is no number {}", m.inst_name(i), m.operand_count(i), k);
    return Access::instruction(body_, m.operand(i, k));
  });
}
std::vector<Instruction> Instruction::operands() const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) { return handles(body_, m.operands(i)); });
}
std::vector<Instruction> Instruction::users() const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) {
    const std::lock_guard<std::mutex> lock(body_->lists);
    return handles(body_, m.users(i));
  });
}
std::vector<Instruction> Instruction::control_predecessors() const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) { return handles(body_, m.control_preds(i)); });
}
std::vector<Computation> Instruction::called_computations() const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) {
    std::vector<Computation> out;
    for (CompId c : m.called(i)) out.push_back(Access::computation(body_, c));
    return out;
  });
}
std::vector<std::pair<std::string, std::string>> Instruction::attributes() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return attribute_texts(m, i); });
}
std::optional<std::string> Instruction::attribute(std::string_view key) const {
  return asked(body_, id_, [&](const hlo::Module& m, InstId i) -> std::optional<std::string> {
    for (auto& [name, text] : attribute_texts(m, i))
      if (name == key) return std::move(text);
    return std::nullopt;
  });
}
std::string Instruction::metadata_text() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) {
    return m[i].meta.valid() ? hlo::metadata_text(m.u(), m.u()[m[i].meta]) : std::string();
  });
}
std::string Instruction::op_name() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return op_name_of(m, i); });
}
std::vector<SourceFrame> Instruction::source() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) {
    std::vector<SourceFrame> out;
    for (const SourceLine& l : source_stack(m, i)) out.push_back({l.file, l.function, l.line, l.column});
    return out;
  });
}
std::optional<int64_t> Instruction::parameter_number() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) -> std::optional<int64_t> {
    if (m.op(i) != Opcode::Parameter) return std::nullopt;
    return m.parameter_number(i);
  });
}
std::optional<Array> Instruction::literal() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) -> std::optional<Array> {
    if (m.op(i) != Opcode::Constant || !m.shape(i).is_array() || m.literal(i).elided) return std::nullopt;
    return Access::array(m.u(), value_of_literal(m.u(), m.literal_id(i)));
  });
}
std::string Instruction::text() const {
  return asked(body_, id_, [](const hlo::Module& m, InstId i) { return print_instruction(m, i); });
}

// --- edits ---

namespace {
// An operand of the same computation.
InstId same_computation(const hlo::Module& m, InstId of, const std::shared_ptr<ModuleBody>& body,
                        const Instruction& value) {
  const auto& other = Access::body(value);
  require_same(*body->universe, *other->universe);
  if (body != other) fail(FailureKind::kUsage, "the value is an instruction of another module");
  const InstId id(value.id());
  if (!m.alive(id)) fail(FailureKind::kUsage, "instruction {} has been removed", id.value);
  if (m.parent(id) != m.parent(of))
    fail(FailureKind::kUsage, "{} is in computation {}, {} in {}", m.inst_name(id), m.comp_name(m.parent(id)),
         m.inst_name(of), m.comp_name(m.parent(of)));
  return id;
}
}  // namespace

void Instruction::set_name(std::string_view name) {
  edited(body_, id_, [&](hlo::Module& m, InstId i) {
    if (name.starts_with('%')) name.remove_prefix(1);
    if (name.empty() || sanitized_name(name) != name)
      fail(FailureKind::kUsage, "'{}' cannot be a name: letters, digits, '_', '.' and '-' can", name);
    const InstId other = find_instruction(*body_, name);
    if (other == i) return;
    if (other.valid()) fail(FailureKind::kUsage, "another instruction is called '{}'", name);
    m.ensure_names();
    m.set_uniquified_name(i, name);
    // The numbering has forgotten no name of the past: where it gives another one, this is the one that was meant.
    if (m.inst_name(i) != name) m.set_name(i, m.u().str(name));
  });
}
void Instruction::set_operand(size_t k, const Instruction& value) {
  edited(body_, id_, [&](hlo::Module& m, InstId i) {
    if (k >= m.operand_count(i))
      fail(FailureKind::kUsage, "{} has {} operands, there is no number {}", m.inst_name(i), m.operand_count(i), k);
    const InstId to = same_computation(m, i, body_, value);
    if (to == i) fail(FailureKind::kUsage, "{} cannot be an operand of itself", m.inst_name(i));
    m.ensure_users();
    m.set_operand(i, k, to);
  });
}
void Instruction::replace_all_uses_with(const Instruction& value) {
  edited(body_, id_, [&](hlo::Module& m, InstId i) {
    const InstId to = same_computation(m, i, body_, value);
    if (to == i) return;
    m.ensure_users();
    m.replace_all_uses(i, to);
  });
}
void Instruction::remove() {
  edited(body_, id_, [&](hlo::Module& m, InstId i) {
    m.ensure_users();
    if (!m.users(i).empty())
      fail(FailureKind::kUsage, "{} has {} users, {} among them: replace_all_uses_with() first", m.inst_name(i),
           m.user_count(i), m.inst_name(m.users(i)[0]));
    if (m.is_root(i)) fail(FailureKind::kUsage, "{} is the root of {}", m.inst_name(i), m.comp_name(m.parent(i)));
    if (m.op(i) == Opcode::Parameter)
      fail(FailureKind::kUsage, "{} is a parameter of {}", m.inst_name(i), m.comp_name(m.parent(i)));
    const CompId parent = m.parent(i);
    m.remove(i);
    std::vector<InstId> order = m.live_order(parent);
    m.set_order(parent, std::move(order));
  });
}
void Instruction::set_attribute(std::string_view key, std::string_view text) {
  edited(body_, id_, [&](hlo::Module&, InstId i) { set_attribute_text(*body_, i, key, text); });
}
void Instruction::erase_attribute(std::string_view key) {
  edited(body_, id_, [&](hlo::Module& m, InstId i) {
    if (key == "metadata") return m.set_meta(i, MetaId());
    Attr attr{};
    if (!attr_from_text(key, &attr)) fail(FailureKind::kUsage, "no attribute is called '{}'", key);
    if (m.attrs(i).has(attr)) m.erase_attr(i, attr);
  });
}
void Instruction::make_root() {
  edited(body_, id_, [&](hlo::Module& m, InstId i) { m.set_root(m.parent(i), i); });
}

// --- computations ---

Computation::Computation(std::shared_ptr<ModuleBody> body, uint32_t id) : body_(std::move(body)), id_(id) {}

Module Computation::module() const { return Access::module(body_); }
bool Computation::alive() const { return comp_alive(*body_->m, id_); }
std::string_view Computation::name() const {
  return comp_asked(body_, id_, [](const hlo::Module& m, CompId c) { return m.comp_name(c); });
}
bool Computation::is_entry() const {
  return comp_asked(body_, id_, [](const hlo::Module& m, CompId c) { return m.entry() == c; });
}
Instruction Computation::root() const {
  return comp_asked(body_, id_, [&](const hlo::Module& m, CompId c) {
    if (!m.comp(c).root.valid()) fail(FailureKind::kUsage, "computation {} has no root yet", m.comp_name(c));
    return Access::instruction(body_, m.comp(c).root);
  });
}
std::vector<Instruction> Computation::parameters() const {
  return comp_asked(body_, id_, [&](const hlo::Module& m, CompId c) { return handles(body_, m.comp(c).params); });
}
std::vector<Instruction> Computation::instructions() const {
  return comp_asked(body_, id_, [&](const hlo::Module& m, CompId c) { return handles(body_, m.comp(c).order); });
}
std::vector<Instruction> Computation::post_order() const {
  return comp_asked(body_, id_, [&](const hlo::Module& m, CompId c) {
    const std::lock_guard<std::mutex> lock(body_->lists);
    return handles(body_, m.post_order(c));
  });
}
std::vector<Instruction> Computation::callers() const {
  return comp_asked(body_, id_, [&](const hlo::Module& m, CompId c) { return handles(body_, m.callers()[c.value]); });
}
std::string Computation::text() const {
  return comp_asked(body_, id_, [&](const hlo::Module& m, CompId c) {
    const std::lock_guard<std::mutex> lock(body_->lists);
    return print_computation(m, c);
  });
}
Instruction Computation::add(std::string_view line) {
  return call([&] {
    const Editing editing(*body_);
    if (!alive()) fail(FailureKind::kUsage, "computation {} has been removed", id_);
    return Access::instruction(body_, add_line(*body_, CompId(id_), line));
  });
}

}  // namespace hlo::api
