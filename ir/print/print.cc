#include "ir/print/print.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/base/stack_guard.h"
#include "ir/print/printer.h"
#include "ir/sharding/sharding.h"

namespace hlo {

PrintOptions PrintOptions::Long() {
  PrintOptions o;
  o.operand_shapes = o.large_constants = true;
  return o;
}
PrintOptions PrintOptions::Short() {
  PrintOptions o;
  o.percent = o.signatures = o.metadata = o.control = o.index_comments = o.stack_tables = false;
  o.large_constants = true;
  return o;
}
PrintOptions PrintOptions::Canonical() {
  PrintOptions o;
  o.percent = o.metadata = o.control = o.index_comments = o.stack_tables = o.backend_config = false;
  o.signatures = false;
  o.operand_shapes = true;
  o.canonical = true;
  return o;
}
PrintOptions PrintOptions::Fingerprint() {
  PrintOptions o = Canonical();
  o.fingerprint = true;
  o.large_constants = true;
  return o;
}
bool PrintOptions::by_name(std::string_view style, PrintOptions* out) {
  if (style == "default")
    *out = Default();
  else if (style == "long")
    *out = Long();
  else if (style == "short")
    *out = Short();
  else if (style == "canonical")
    *out = Canonical();
  else if (style == "fingerprint")
    *out = Fingerprint();
  else
    return false;
  return true;
}

// Does XLA print the async operation in its short form? Its computation is one operation over parameters.
bool async_sugar(const Module& m, InstId id, Opcode* inside) {
  while (m.op(id) == Opcode::AsyncUpdate || m.op(id) == Opcode::AsyncDone) id = m.operand(id, 0);
  if (m.op(id) != Opcode::AsyncStart) return false;
  CompId callee = m.attrs(id).comp(Attr::calls);
  if (!callee.valid()) return false;
  const Computation& c = m.comp(callee);
  for (InstId i : c.order)
    if (m.alive(i) && i != c.root && m.op(i) != Opcode::Parameter) return false;
  *inside = m.op(c.root);
  return true;
}

// --- orders ---

std::vector<InstId> print_order(const Module& m, CompId comp) {
  return m.config().is_scheduled ? m.live_order(comp) : m.post_order(comp);
}

std::vector<CompId> print_order(const Module& m, bool stable) {
  // Roots are computations that nobody calls, in stored order; before each, depth first, what it reaches.
  std::vector<bool> called(m.comp_slots(), false);
  std::vector<CompId> all = m.computations();
  std::vector<std::vector<CompId>> callees(m.comp_slots());
  for (CompId c : all) {
    for (InstId i : stable ? print_order(m, c) : m.comp(c).order)
      if (m.alive(i))
        for (CompId callee : m.called(i)) callees[c.value].push_back(callee), called[callee.value] = true;
  }
  std::vector<CompId> out;
  std::vector<uint8_t> state(m.comp_slots(), 0);
  for (CompId root : all) {
    if (called[root.value]) continue;
    std::vector<std::pair<CompId, size_t>> stack{{root, 0}};
    state[root.value] = 1;
    while (!stack.empty()) {
      auto& [c, next] = stack.back();
      if (next < callees[c.value].size()) {
        CompId callee = callees[c.value][next++];
        if (!state[callee.value]) state[callee.value] = 1, stack.push_back({callee, 0});
      } else {
        out.push_back(c);
        stack.pop_back();
      }
    }
  }
  return out;
}

namespace {

void metadata_fields(const Universe& u, const Metadata& d, const std::vector<int32_t>& frame_map, std::string& out) {
  constexpr uint32_t none = StrId::kNone;
  auto has = [&](uint32_t s) { return s != none && !u.text(StrId(s)).empty(); };
  size_t start = out.size();
  auto text = [&](std::string_view key, uint32_t s, bool escape = true) {
    if (!has(s)) return;
    std::string_view t = u.text(StrId(s));
    out.append(key);
    if (!escape || needs_no_escape(t))
      out.append(t);
    else
      out.append(c_escape(t));
    out.append(std::string_view("\" "));
  };
  auto number = [&](std::string_view key, int32_t v) {
    if (!v) return;
    out.append(key);
    append_number(out, v);
    out.push_back(' ');
  };
  text("op_type=\"", d.op_type);
  text("op_name=\"", d.op_name);
  text("source_file=\"", d.source_file);
  number("source_line=", d.source_line);
  number("source_end_line=", d.source_end_line);
  number("source_column=", d.source_column);
  number("source_end_column=", d.source_end_column);
  if (d.profile_type != none && u.text(StrId(d.profile_type)) != "{}")
    out += "profile_type=" + std::string(u.text(StrId(d.profile_type))) + " ";
  text("deduplicated_name=\"", d.deduplicated_name);
  text("scheduling_name=\"", d.scheduling_name, false);
  int32_t frame = d.stack_frame_id;
  if (frame && frame < static_cast<int32_t>(frame_map.size())) frame = frame_map[static_cast<size_t>(frame)];
  number("stack_frame_id=", frame);
  text("metadata_payload=\"", d.payload);
  if (out.size() > start && out.back() == ' ') out.pop_back();
}

}  // namespace

void Printer::metadata(const Metadata& d) {
  // A frame that the module's tables do not have: XLA leaves its number out.
  if (!o_.lossless && d.stack_frame_id &&
      (d.stack_frame_id < 0 || static_cast<size_t>(d.stack_frame_id) > m_.stack().frames.size())) {
    Metadata known = d;
    known.stack_frame_id = 0;
    return metadata(known);
  }
  auto has = [&](uint32_t s) { return s != StrId::kNone && !u_.text(StrId(s)).empty(); };
  if (!has(d.op_type) && !has(d.op_name) && !has(d.source_file) && !has(d.scheduling_name) && !d.stack_frame_id &&
      !has(d.payload))
    return;
  size_t start = out.size();
  out += ", metadata={";
  metadata_fields(u_, d, frame_map_, out);
  out += '}';
  paint(start, Ink::kMetadata);
}

void Printer::instruction(InstId id) {
  if (expected_) room();
  const Inst& inst = m_[id];
  size_t start = out.size();
  const bool named = !o_.names_within || within_;
  if (named) {
    name(id);
    paint(start, Ink::kName);
    out += " = ";
  }
  if (o_.result_shapes) {
    start = out.size();
    out += u_.shape_text(inst.shape);
    paint(start, Ink::kShape);
    out += ' ';
  }
  start = out.size();
  Opcode inside;
  if (op_info(inst.op).cls == OpClass::Async && sugar(id, &inside)) {
    out += op_text(inside);
    out += op_text(inst.op).substr(5);  // `-start` of `async-start`
  } else {
    out += op_text(inst.op);
  }
  paint(start, Ink::kOpcode);
  out += '(';
  if (inst.op == Opcode::Parameter) {
    out += std::to_string(inst.operand[0]);
  } else if (inst.op == Opcode::Constant) {
    constant(inst);
  } else {
    auto list = m_.operands(id);
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) {
        out += ", ";
        if (o_.index_comments && i % 5 == 0) out += fmt::format("/*index={}*/", i);
      }
      if (o_.operand_shapes) {
        out += u_.shape_text(m_.shape_id(list[i]));
        if (named) out += ' ';
      }
      if (named) name(list[i]);
    }
  }
  out += ')';
  attributes(id);
}

namespace {

bool all_elements_are(const Literal& lit, ElementType type, double value) {
  const auto width = static_cast<size_t>(storage_bytes(type));
  // A complex element's parts lie behind each other.
  const ElementType part = component_type(type);
  for (size_t i = 0; i + width <= lit.bytes.size(); i += width) {
    if (load_double(part, lit.bytes.data() + i) != value) return false;
    if (part != type && load_double(part, lit.bytes.data() + i + width / 2) != 0) return false;
  }
  return true;
}

}  // namespace

void Printer::constant(const Inst& inst) {
  const Literal& lit = u_[LitId(inst.operand[0])];
  if (o_.fingerprint && !lit.elided) {
    const Shape& s = u_[inst.shape];
    if (!s.is_array()) return void(out += "{...}");
    if (!s.elements_count()) return void(out += "0");
    // Only values that a fingerprint should tell apart: zeros (of either sign), ones and short integer lists.
    for (double value : {0.0, 1.0})
      if (all_elements_are(lit, s.type, value)) return void(out += value == 0 ? "0" : "1");
    if (is_integral(s.type)) return append_literal(u_, lit, s.elements_count() <= 500000, false, out, true);
    return void(out += "{...}");
  }
  append_literal(u_, lit, o_.large_constants, o_.lossless, out, true);
}

void Printer::computation(CompId c, int indent, bool in_place) {
  const Computation& comp = m_.comp(c);
  // Bodies in place are written once for every call: two calls a level are 2^n of them.
  constexpr size_t kLongestInPlace = size_t{256} << 20;
  if (in_place) {
    check_stack("computations call each other");
    if (out.size() > kLongestInPlace)
      fail(FailureKind::kUnsupported,
           "the text with computations in place is longer than {} MB: {} has too many callers", kLongestInPlace >> 20,
           m_.comp_name(c));
  }
  const int saved = indent_;
  const bool was_within = within_;
  indent_ = indent, within_ = in_place;
  std::string pad(static_cast<size_t>(indent), ' ');
  out += pad;
  if (!o_.canonical || !in_place) {
    if (c == m_.entry()) out += o_.fingerprint ? "ENTRY " : "ENTRY ";
    if (!o_.fingerprint) {
      comp_name(c);
      out += ' ';
    }
  }
  if (o_.signatures) {
    out += '(';
    for (size_t i = 0; i < comp.params.size(); ++i) {
      if (i) out += ", ";
      out += m_.inst_name(comp.params[i]);
      out += ": ";
      out += u_.shape_text_plain(m_.shape_id(comp.params[i]));
    }
    out += ") -> ";
    out += u_.shape_text_plain(m_.shape_id(comp.root));
    out += ' ';
  }
  out += "{\n";
  for (InstId i : print_order(m_, c)) {
    if (folded(i)) continue;
    out += pad;
    out += i == comp.root ? "  ROOT " : "  ";
    instruction(i);
    out += '\n';
  }
  out += pad;
  out += '}';
  if (comp.thread.valid() && !o_.fingerprint) {
    out += ", execution_thread=\"";
    out += c_escape(u_.text(comp.thread));
    out += '"';
  }
  indent_ = saved, within_ = was_within;
}

void Printer::preamble() {
  header();
  if (o_.stack_tables && o_.metadata) stack_tables();
}
void Printer::module() {
  preamble();
  if (o_.metadata && !o_.color) printed_.resize(std::clamp<size_t>(m_.inst_slots() / 4, 1, 4096));
  std::vector<bool> hidden(m_.comp_slots(), false);
  if (!o_.lossless)
    for (CompId c : m_.computations())
      for (InstId i : m_.comp(c).order) {
        Opcode inside;
        if (m_.alive(i) && m_.op(i) == Opcode::AsyncStart && async_sugar(m_, i, &inside))
          hidden[m_.attrs(i).comp(Attr::calls).value] = true;
      }
  // A fingerprint takes them as they are stored.
  for (CompId c : o_.fingerprint ? m_.computations() : print_order(m_, o_.stable_order)) {
    if (hidden[c.value]) continue;
    computation(c);
    out += "\n\n";
  }
}

std::string metadata_text(const Universe& u, const Metadata& m) {
  std::string out = "{";
  metadata_fields(u, m, {}, out);
  return out + "}";
}

std::string print_module(const Module& m, const PrintOptions& options) {
  Printer p(m, options);
  p.expect(m.inst_slots());
  p.module();
  return std::move(p.out);
}
std::string print_header(const Module& m, const PrintOptions& options) {
  Printer p(m, options);
  p.header();
  return std::move(p.out);
}
std::string print_computation(const Module& m, CompId comp, const PrintOptions& options) {
  Printer p(m, options);
  p.computation(comp);
  return std::move(p.out);
}
std::string print_instruction(const Module& m, InstId inst, const PrintOptions& options) {
  Printer p(m, options, true);
  p.instruction(inst);
  return std::move(p.out);
}
std::string print_attributes(const Module& m, InstId inst, const PrintOptions& options) {
  PrintOptions o = options;
  o.metadata = false;
  Printer p(m, o, true);
  p.attributes(inst);
  return std::move(p.out);
}

std::string lossless_text(const Module& m) {
  PrintOptions print;
  print.large_constants = print.stable_order = print.lossless = true;
  return print_module(m, print);
}

}  // namespace hlo
