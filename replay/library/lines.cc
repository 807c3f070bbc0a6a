// Pieces of HLO text put into a module that is there. The parser reads whole modules: the piece is set into one that
// has, in the same universe, what the piece speaks of (operands as parameters, called computations as they are), and
// what it became is carried over.
#include <algorithm>
#include <set>

#include "ir/print/print.h"
#include "ir/print/printer.h"
#include "parser/parser.h"
#include "replay/library/access.h"

namespace hlo::api {

std::vector<std::pair<std::string, std::string>> attribute_texts(const hlo::Module& m, InstId inst) {
  std::vector<std::pair<std::string, std::string>> out;
  const hlo::PrintOptions options;
  for (const auto& [key, value] : m.attrs(inst).list) {
    hlo::Printer printer(m, options);
    printer.attr(key, value, m.op(inst));
    std::string_view text = printer.out;
    if (text.starts_with(", ")) text.remove_prefix(2);
    if (key == Attr::kept_verbatim || text.find('=') == std::string_view::npos) {
      if (!text.empty()) out.emplace_back(attr_text(key), text);
      continue;
    }
    out.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  return out;
}

InstId find_instruction(ModuleBody& body, std::string_view name) {
  const hlo::Module& m = *body.m;
  const StrId id = m.u().find_str(name);
  if (!id.valid()) return InstId();
  if (body.by_name_at != m.edits()) {
    body.by_name.clear();
    for (CompId c : m.computations())
      for (InstId i : m.comp(c).order)
        if (m.alive(i)) body.by_name[m[i].name] = i;
    body.by_name_at = m.edits();
  }
  auto found = body.by_name.find(id);
  return found == body.by_name.end() ? InstId() : found->second;
}

namespace {

// Carries what was parsed into `to`. Both share the universe.
class Carrier {
 public:
  Carrier(hlo::Module& to, const hlo::Module& from) : to_(to), from_(from) {}

  void stands_for(InstId from, InstId to) { insts_[from] = to; }
  void stands_for(CompId from, CompId to) { comps_[from] = to; }

  CompId computation(CompId c) {
    if (auto known = comps_.find(c); known != comps_.end()) return known->second;
    std::vector<CompId> called;
    const CompId made = to_.add_computation(from_.comp_name(c));
    comps_[c] = made;
    if (from_.comp(c).thread.valid()) to_.set_thread(made, from_.comp(c).thread);
    for (InstId i : from_.comp(c).order)
      if (from_.alive(i)) instruction(i, made);
    to_.set_root(made, insts_.at(from_.comp(c).root));
    return made;
  }

  AttrsId attributes(InstId i) {
    AttrSet set = from_.attrs(i);
    for (auto& [key, value] : set.list) {
      if (auto* one = std::get_if<CompId>(&value)) *one = computation(*one);
      if (auto* list = std::get_if<std::vector<CompId>>(&value))
        for (CompId& c : *list) c = computation(c);
    }
    set.op = from_.op(i);
    set.finish();
    return to_.u().attrs(std::move(set));
  }

  InstId instruction(InstId i, CompId into) {
    if (auto known = insts_.find(i); known != insts_.end()) return known->second;
    hlo::Module::NewInst n{.op = from_.op(i), .shape = from_.shape_id(i)};
    n.attrs = attributes(i), n.meta = from_[i].meta, n.name = from_.inst_name(i);
    if (n.op == Opcode::Parameter || n.op == Opcode::Constant)
      n.payload = from_[i].operand[0];
    else
      for (InstId o : from_.operands(i)) n.operands.push_back(insts_.at(o));
    const InstId made = to_.add(into, n);
    insts_[i] = made;
    for (InstId before : from_.control_preds(i)) to_.add_control(insts_.at(before), made);
    return made;
  }

 private:
  hlo::Module& to_;
  const hlo::Module& from_;
  std::unordered_map<InstId, InstId> insts_;
  std::unordered_map<CompId, CompId> comps_;
};

bool in_names(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-'; }

// What a piece may speak of.
std::set<std::string_view> words_of(std::string_view text) {
  std::set<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    if (!in_names(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && in_names(text[end])) ++end;
    out.insert(text.substr(at, end - at));
    at = end;
  }
  return out;
}

hlo::PrintOptions exact_options() {
  hlo::PrintOptions out;
  out.large_constants = out.lossless = true;
  out.index_comments = false;
  return out;
}

// The computations of those names and all that they call, callees first.
std::string called_text(const hlo::Module& m, const std::set<std::string_view>& words, std::vector<CompId>* named) {
  std::set<CompId> wanted;
  std::vector<CompId> open;
  for (CompId c : m.computations())
    if (c != m.entry() && words.contains(m.comp_name(c)) && m.comp(c).root.valid()) open.push_back(c);
  while (!open.empty()) {
    const CompId c = open.back();
    open.pop_back();
    if (!wanted.insert(c).second) continue;
    for (InstId i : m.comp(c).order)
      if (m.alive(i))
        for (CompId called : m.called(i)) open.push_back(called);
  }
  std::string out;
  if (wanted.empty()) return out;
  for (CompId c : m.computation_post_order())
    if (wanted.contains(c)) {
      named->push_back(c);
      out += print_computation(m, c, exact_options()) + "\n\n";
    }
  return out;
}

constexpr const char* kScratch = "HloModule piece\n\n";

// Parses `text`, in whose first `before` bytes the caller's piece has not begun: places count from the piece.
std::unique_ptr<hlo::Module> parse_piece(const std::string& text, size_t before, const char* label,
                                         const ModuleBody& body) {
  hlo::ParseOptions options;
  options.file = label;
  options.first_line =
      size_t{0} - static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(before), '\n'));
  return parse_module(text, body.universe->u, options);
}

CompId named_computation(const hlo::Module& m, std::string_view name) {
  for (CompId c : m.computations())
    if (m.comp_name(c) == name) return c;
  return CompId();
}

struct Piece {
  std::unique_ptr<hlo::Module> module;
  InstId inst;             // what the line became
  int64_t parameter = -1;  // its number, of a parameter
  std::vector<std::pair<InstId, InstId>> operands;
  std::vector<std::pair<CompId, CompId>> computations;
  Carrier carrier(hlo::Module& to) const {
    Carrier out(to, *module);
    for (const auto& [from, there] : operands) out.stands_for(from, there);
    for (const auto& [from, there] : computations) out.stands_for(from, there);
    return out;
  }
};

// A line that makes a parameter: its number is kept apart, since the piece has no others.
bool take_number(std::string* line, int64_t* number) {
  constexpr std::string_view kWord = " parameter(";
  const size_t at = line->find(kWord), start = at + kWord.size();
  if (at == std::string::npos) return false;
  size_t end = start;
  while (end < line->size() && isdigit(static_cast<unsigned char>((*line)[end]))) ++end;
  if (end == start || end - start > 9 || end >= line->size() || (*line)[end] != ')') return false;
  *number = std::stoll(line->substr(start, end - start));
  line->replace(start, end - start, "0");
  return true;
}

// `a = negate(a)` defines another `a`.
void settle_name(std::string* line, const std::set<std::string_view>& words) {
  size_t start = line->find_first_not_of(" \t");
  if (line->compare(start, 5, "ROOT ") == 0) start = line->find_first_not_of(" \t", start + 5);
  if (start < line->size() && (*line)[start] == '%') ++start;
  size_t end = start;
  while (end < line->size() && in_names((*line)[end])) ++end;
  const std::string_view name = std::string_view(*line).substr(start, end - start);
  if (!words.contains(name)) return;
  std::string other(name);
  do other += ".1";
  while (words.contains(other));
  line->replace(start, end - start, other);
}

Piece parse_line(ModuleBody& body, CompId into, std::string_view line) {
  const hlo::Module& m = *body.m;
  while (!line.empty() && isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  if (line.find('\n') != std::string_view::npos) fail(FailureKind::kUsage, "an instruction is one line");
  if (line.find('=') == std::string_view::npos)
    fail(FailureKind::kSyntax, "<line>:1:1: error: expected 'name = shape opcode(operands)'");
  Piece out;
  std::string own(line);
  const bool parameter = take_number(&own, &out.parameter);
  const std::set<std::string_view> words =
      parameter ? std::set<std::string_view>() : words_of(line.substr(line.find('=')));
  settle_name(&own, words);
  std::vector<CompId> named;
  std::string text = kScratch + called_text(m, words, &named) + "ENTRY %piece.of.it {\n";
  std::vector<InstId> operands;
  for (std::string_view word : words) {
    const InstId i = find_instruction(body, word);
    if (!i.valid() || m.parent(i) != into) continue;
    text += fmt::format("  %{} = {} parameter({})\n", word, m.u().shape_text(m.shape_id(i)), operands.size());
    operands.push_back(i);
  }
  const size_t before = text.size();
  text += own;
  text += "\n}\n";
  out.module = parse_piece(text, before, "<line>", body);
  const hlo::Module& piece = *out.module;
  const std::vector<InstId>& params = piece.comp(piece.entry()).params;
  std::vector<InstId> order = piece.live_order(piece.entry());
  out.inst = order.back();
  for (size_t k = 0; k < operands.size(); ++k) out.operands.emplace_back(params.at(k), operands[k]);
  for (CompId c : named)
    if (CompId there = named_computation(piece, m.comp_name(c)); there.valid()) out.computations.emplace_back(there, c);
  return out;
}

}  // namespace

InstId add_line(ModuleBody& body, CompId into, std::string_view line) {
  size_t start = line.find_first_not_of(" \t");
  const bool root = start != std::string_view::npos && line.substr(start).starts_with("ROOT ");
  Piece piece = parse_line(body, into, line);
  hlo::Module& m = *body.m;
  if (piece.module->op(piece.inst) == Opcode::Parameter) {
    const auto next = static_cast<int64_t>(m.comp(into).params.size());
    if (piece.parameter != next)
      fail(FailureKind::kUsage, "the next parameter of {} is number {}, not {}", m.comp_name(into), next,
           piece.parameter);
    piece.module->set_parameter_number(piece.inst, next);
  }
  Carrier carrier = piece.carrier(m);
  const bool known = body.by_name_at == m.edits();
  const InstId made = carrier.instruction(piece.inst, into);
  if (root || !m.comp(into).root.valid()) m.set_root(into, made);
  if (known) body.by_name[m[made].name] = made, body.by_name_at = m.edits();
  return made;
}

CompId add_computation_text(ModuleBody& body, std::string_view text) {
  hlo::Module& m = *body.m;
  size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) fail(FailureKind::kUsage, "the text is empty");
  const bool entry = text.substr(start).starts_with("ENTRY ");
  std::vector<CompId> named;
  std::string whole = kScratch + called_text(m, words_of(text.substr(std::min(text.find('{'), text.size()))), &named);
  const size_t before = whole.size();
  if (!entry) whole += "ENTRY ";
  whole += text;
  Piece piece;
  piece.module = parse_piece(whole, before, "<computation>", body);
  for (CompId c : named)
    if (CompId there = named_computation(*piece.module, m.comp_name(c)); there.valid())
      piece.computations.emplace_back(there, c);
  Carrier carrier = piece.carrier(m);
  const CompId made = carrier.computation(piece.module->entry());
  if (entry || !m.entry().valid()) m.set_entry(made);
  return made;
}

void set_attribute_text(ModuleBody& body, InstId inst, std::string_view key, std::string_view text) {
  hlo::Module& m = *body.m;
  // The instruction's own line with that attribute, in the place of one that it has.
  std::string line =
      fmt::format("{} = {} {}(", m.inst_name(inst), m.u().shape_text(m.shape_id(inst)), op_text(m.op(inst)));
  if (m.op(inst) == Opcode::Constant)
    line += literal_text(m.u(), m.literal_id(inst), true, true);
  else if (m.op(inst) == Opcode::Parameter)
    line += "0";
  for (size_t k = 0; k < m.operand_count(inst); ++k)
    line += fmt::format("{}%{}", k ? ", " : "", m.inst_name(m.operand(inst, k)));
  line += ")";
  for (const auto& [name, value] : attribute_texts(m, inst))
    if (name != key) line += name == "kept_verbatim" ? value : fmt::format(", {}={}", name, value);
  if (key != "metadata" && m[inst].meta.valid()) line += ", metadata=" + hlo::metadata_text(m.u(), m.u()[m[inst].meta]);
  line += fmt::format(", {}={}", key, text);
  if (std::any_of(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }))
    fail(FailureKind::kUsage, "the text of an attribute is one line");
  Piece piece = parse_line(body, m.parent(inst), line);
  if (piece.module->op(piece.inst) != m.op(inst))
    fail(FailureKind::kUsage, "'{}' is no attribute of {}", text, op_text(m.op(inst)));
  Carrier carrier = piece.carrier(m);
  m.set_attrs(inst, carrier.attributes(piece.inst));
  m.set_meta(inst, piece.module->operator[](piece.inst).meta);
}

}  // namespace hlo::api
