#include "hlo/builder.h"

#include "replay/library/access.h"

namespace hlo::api {

Builder::Builder(Module module, std::string_view computation)
    : module_(module), computation_(call([&] {
        const auto& body = Access::body(module);
        const Editing editing(*body);
        return Access::computation(body, body->m->add_computation(sanitized_name(computation)));
      })) {}

Instruction Builder::add(std::string_view name, const std::string& rest) {
  return computation_.add(fmt::format("{} = {}", name, rest));
}

Instruction Builder::parameter(std::string_view shape, std::string_view name) {
  const std::string own = name.empty() ? fmt::format("p{}", parameters_) : std::string(name);
  Instruction out = add(own, fmt::format("{} parameter({})", shape, parameters_));
  ++parameters_;
  return out;
}

Instruction Builder::constant(const Array& value, std::string_view name) {
  // Not by its text, which large arrays have much of.
  return call([&] {
    const auto& body = Access::body(computation_);
    const Editing editing(*body);
    hlo::Shape shape;
    type_from_name(value.element_type(), &shape.type);
    Literal literal;
    literal.shape = body->m->u().array(shape.type, Dims(value.dims().begin(), value.dims().end()));
    literal.bytes.assign(static_cast<const char*>(value.data()), value.size_bytes());
    const CompId into(computation_.id());
    const InstId made = body->m->constant(into, std::move(literal), name);
    if (!body->m->comp(into).root.valid()) body->m->set_root(into, made);
    return Access::instruction(body, made);
  });
}

Instruction Builder::constant(std::string_view text, std::string_view name) {
  // The shape ends where its brackets do: `f32[2]{0} {1, 2}`.
  size_t end = 0;
  int depth = 0;
  for (; end < text.size() && (depth || text[end] != ' '); ++end) {
    if (text[end] == '[' || text[end] == '{' || text[end] == '(') ++depth;
    if (text[end] == ']' || text[end] == '}' || text[end] == ')') --depth;
  }
  if (end == text.size()) refuse(ErrorKind::usage, "a constant is a shape, a blank and a literal: s32[] 7");
  return add(name.empty() ? "constant" : name,
             fmt::format("{} constant({})", text.substr(0, end), text.substr(end + 1)));
}

Instruction Builder::op(std::string_view opcode, const std::vector<Instruction>& operands, std::string_view attributes,
                        std::string_view shape, std::string_view name) {
  std::string rest = shape.empty() ? std::string(opcode) : fmt::format("{} {}", shape, opcode);
  rest += '(';
  for (size_t k = 0; k < operands.size(); ++k) {
    if (Access::body(operands[k]) != Access::body(computation_) || operands[k].computation() != computation_)
      refuse(ErrorKind::usage, "operand " + std::to_string(k) + " is no instruction of this computation");
    rest += fmt::format("{}%{}", k ? ", " : "", operands[k].name());
  }
  rest += ')';
  if (!attributes.empty()) rest += fmt::format(", {}", attributes);
  return add(name.empty() ? opcode : name, rest);
}

Computation Builder::build(const Instruction& root, bool entry) {
  if (Access::body(root) != Access::body(computation_) || root.computation() != computation_)
    refuse(ErrorKind::usage, "the root is no instruction of this computation");
  Instruction(root).make_root();
  if (entry) module_.set_entry(computation_);
  return computation_;
}

}  // namespace hlo::api
