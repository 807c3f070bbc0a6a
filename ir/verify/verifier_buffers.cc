// Buffers `b(f32[4])`: arrays that are written in place, so each of their values has one writer
// (xla/service/hlo_verifier.cc; the rules were learnt from what XLA 0.10.2 refuses).
#include <map>
#include <set>

#include "ir/sharding/aliasing.h"
#include "ir/verify/verifier_rules.h"

namespace hlo {
namespace {

using Leaves = std::vector<std::pair<Dims, ShapeId>>;

void collect(const Universe& u, ShapeId s, Dims& at, Leaves& out) {
  const Shape& shape = u[s];
  if (shape.is_buffer) out.push_back({at, s});
  for (size_t k = 0; k < shape.elements.size(); ++k) {
    at.push_back(static_cast<int64_t>(k));
    collect(u, shape.elements[k], at, out);
    at.pop_back();
  }
}

class Buffers {
 public:
  Buffers(const Module& m, const std::function<void(InstId, std::string)>& error) : m_(m), u_(m.u()), error_(error) {}

  void run() {
    for (CompId c : m_.computations())
      for (InstId i : m_.comp(c).order)
        if (m_.alive(i)) instruction(i, c == m_.entry());
    for (const auto& [value, writers] : writers_)
      if (writers.size() > 1)
        error_(writers[1], fmt::format("is the second writer of a buffer of {}, after {}", m_.inst_name(value.first),
                                       m_.inst_name(writers[0])));
  }

 private:
  Leaves leaves(ShapeId s) const {
    Leaves out;
    Dims at;
    collect(u_, s, at, out);
    return out;
  }

  void instruction(InstId i, bool entry) {
    Leaves made = leaves(m_.shape_id(i));
    bool any = !made.empty(), read = false;
    for (InstId o : m_.operands(i)) read |= !leaves(m_.shape_id(o)).empty();
    if (!any && !read) {
      if (m_.op(i) == Opcode::CustomCall) pinning(i);
      return;
    }
    switch (m_.op(i)) {
      case Opcode::Parameter:
        if (entry) error_(i, "is a buffer, which the entry cannot take");
        return;
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
        return;
      case Opcode::CustomCall:
        if (pinning(i) || custom_call(i, made)) return;
        break;
      case Opcode::While:
      case Opcode::Fusion:
      case Opcode::Bitcast:
      case Opcode::AsyncStart:
      case Opcode::AsyncUpdate:
      case Opcode::AsyncDone:
        break;
      case Opcode::DynamicUpdateSlice:
        if (m_.shape(m_.operand(i, 0)).is_buffer != m_.shape(i).is_buffer)
          return error_(i, "gives a buffer where it takes one, and only there");
        break;
      default:
        return error_(i, "works on buffers, which it cannot");
    }
    for (size_t n = 0; n < m_.operand_count(i); ++n)
      for (const auto& [at, shape] : leaves(m_.shape_id(m_.operand(i, n)))) writes(i, m_.operand(i, n), at);
  }

  // Notes that `by` takes the buffer at `at` of `value`, and follows it back through tuples.
  void writes(InstId by, InstId value, Dims at) {
    for (;;) {
      if (m_.op(value) == Opcode::GetTupleElement) {
        at.insert(at.begin(), m_.attrs(value).integer(Attr::index));
        value = m_.operand(value, 0);
      } else if (m_.op(value) == Opcode::Tuple && !at.empty()) {
        value = m_.operand(value, static_cast<size_t>(at.front()));
        at.erase(at.begin());
      } else {
        break;
      }
    }
    writers_[{value, at}].push_back(by);
  }

  // `Pin`, `Unpin` and `CreateBuffer`: is it one of them, and wrong?
  bool pinning(InstId i) {
    std::string_view target = u_.text(m_.attrs(i).text(Attr::custom_call_target));
    const Shape& out = m_.shape(i);
    auto wrong = [&](std::string text) {
      error_(i, std::move(text));
      return true;
    };
    if (target == "CreateBuffer") {
      if (m_.operand_count(i)) return wrong("makes a buffer and takes no operand");
      return out.is_buffer ? false : wrong("makes one buffer");
    }
    if (target != "Pin" && target != "Unpin") return false;
    bool pin = target == "Pin";
    if (m_.operand_count(i) != 1) return wrong("takes one operand");
    const Shape& in = m_.shape(m_.operand(i, 0));
    const Shape &array = pin ? in : out, &buffer = pin ? out : in;
    if (!array.is_array() || array.is_buffer || !buffer.is_buffer)
      return wrong(pin ? "makes a buffer of an array" : "makes an array of a buffer");
    if (array.type != buffer.type || array.dims != buffer.dims)
      return wrong(fmt::format("makes {} of {}", u_.shape_text_plain(m_.shape_id(i)),
                               u_.shape_text_plain(m_.shape_id(m_.operand(i, 0)))));
    if (parse_aliases(u_.text(m_.attrs(i).text(Attr::output_to_operand_aliasing))).size() != 1)
      return wrong("names in output_to_operand_aliasing that its result is its operand, {{}: (0, {})}");
    return false;
  }

  // Any other target passes every buffer on, once. True: an error was told.
  bool custom_call(InstId i, const Leaves& made) {
    std::string_view target = u_.text(m_.attrs(i).text(Attr::custom_call_target));
    if (target == "Pin" || target == "Unpin" || target == "CreateBuffer") return false;
    std::map<Dims, int> out;
    std::map<std::pair<int64_t, Dims>, int> in;
    for (const AliasEntry& e : parse_aliases(u_.text(m_.attrs(i).text(Attr::output_to_operand_aliasing))))
      ++out[e.output], ++in[{e.number, e.index}];
    auto wrong = [&](const char* text, const Dims& at) {
      error_(i, fmt::format(
                    "{} {{{}}}: output_to_operand_aliasing pairs each buffer of the operands with one of the result",
                    text, fmt::join(at, ",")));
      return true;
    };
    for (const auto& [at, shape] : made)
      if (out[at] != 1) return wrong("makes a buffer at", at);
    for (size_t n = 0; n < m_.operand_count(i); ++n)
      for (const auto& [at, shape] : leaves(m_.shape_id(m_.operand(i, n))))
        if (in[{static_cast<int64_t>(n), at}] != 1)
          return wrong(fmt::format("takes a buffer of operand {} at", n).c_str(), at);
    return false;
  }

  const Module& m_;
  const Universe& u_;
  const std::function<void(InstId, std::string)>& error_;
  std::map<std::pair<InstId, Dims>, std::vector<InstId>> writers_;
};

}  // namespace

void verify_buffers(const Module& m, const std::function<void(InstId, std::string)>& error) {
  const Universe& u = m.u();
  bool any = false;
  for (uint32_t s = 0; s < u.shape_count(); ++s) any |= u[ShapeId{s}].is_buffer;
  // The three calls that make and end buffers are judged without any, too.
  for (const char* target : {"Pin", "Unpin", "CreateBuffer"}) any |= u.find_str(target).valid();
  if (any) Buffers(m, error).run();
}

}  // namespace hlo
