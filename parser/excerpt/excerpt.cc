#include "parser/excerpt/excerpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/check.h"
#include "parser/excerpt/excerpt_parts.h"
#include "parser/excerpt/excerpt_shapes.h"
#include "parser/excerpt/pieces.h"

namespace hlo {
namespace {

constexpr int kRounds = 16;            // each one gives up something more
constexpr size_t kMostMissing = 4096;  // parameters that only their numbers tell of
constexpr int kDeepest = 100;          // computations that are read in front of their callers
constexpr std::string_view kUnknownShape = "opaque[]";

// How a piece is written anew.
enum Level : uint8_t {
  kAsIs,
  kAsCall,   // an instruction as a custom call with its attributes; a header by its name alone; a begin unsigned
  kAsShape,  // a custom call without attributes
  kLeftOut,
};

std::string_view plain_name(std::string_view name) {
  if (name.starts_with('%')) name.remove_prefix(1);
  return name;
}

// The field of a header, `, key={…}`, and what is left without it.
std::string without_field(std::string_view header, std::string_view key) {
  const std::string sign = fmt::format(", {}=", key);
  const size_t at = header.find(sign);
  if (at == std::string_view::npos) return std::string(header);
  const std::string_view first = parts_between_commas(header.substr(at + 2))[0];
  return std::string(header.substr(0, at)) + std::string(header.substr(at + 2 + first.size()));
}

class ExcerptReader : ExcerptParts {
 public:
  ExcerptReader(std::string_view text, const ParseOptions& options)
      : ExcerptParts(text, options.first_line), options_(options), level_(pieces_.size(), kAsIs), why_(pieces_.size()) {
    options_.permissive = true, options_.text_behind = false, options_.max_errors = 200;
  }

  // Nothing where even so the text cannot be read.
  std::unique_ptr<Module> read(const std::shared_ptr<Universe>& universe, Excerpt* out) {
    const size_t structure = notes_.size();
    const bool broken = incomplete_;
    for (int round = 0; round < kRounds; ++round) {
      notes_.resize(structure), incomplete_ = broken;
      counts_ = {};
      if (!write()) return nullptr;
      try {
        ParseOptions options = options_;
        options.first_line = 0;
        auto m = parse_module(out_, universe, options);
        finish(out);
        return m;
      } catch (const SyntaxFailure& e) {
        if (!give_up(e)) return nullptr;
      }
    }
    return nullptr;
  }

 private:
  // --- writing it anew ---

  void line(std::string_view text, size_t piece) {
    out_ += text, out_ += '\n';
    for (auto n = 1 + std::count(text.begin(), text.end(), '\n'); n > 0; --n) piece_of_line_.push_back(piece);
  }

  bool write() {
    out_.clear(), piece_of_line_.clear(), known_comps_.clear(), parameters_.clear();
    known_names_.clear();
    for (const TextComputation& c : comps_)
      if (!c.left_out) known_names_.insert(c.name);
    for (TextComputation& c : comps_) c.emitted = false;
    std::string body;
    std::vector<size_t> lines;
    for (TextComputation& c : comps_)
      if (!c.left_out && !emit(c, 0)) return false;
    body.swap(out_), lines.swap(piece_of_line_);
    write_header();
    out_ += body;
    piece_of_line_.insert(piece_of_line_.end(), lines.begin(), lines.end());
    return !known_comps_.empty();
  }

  void write_header() {
    bool tables = false;
    for (size_t t : tables_) {
      tables |= level_[t] == kAsIs;
      if (level_[t] != kAsIs) note(pieces_[t].line, fmt::format("a table of source lines, left out: {}", why_[t]));
    }
    if (header_ == kNoPiece) {
      note(pieces_.empty() ? 1 : pieces_[0].line,
           "no HloModule line: the module's name and configuration are not known");
      if (tables) line("HloModule excerpt", kNoPiece);
    } else if (level_[header_] == kAsIs) {
      std::string header(pieces_[header_].text);
      if (!entry_whole_)
        for (std::string_view key : {"entry_computation_layout", "input_output_alias", "buffer_donor"})
          header = without_field(header, key);
      line(header, header_);
    } else {
      std::string_view name = trimmed(pieces_[header_].text.substr(9));
      name = name.substr(0, name.find_first_of(", \t\r"));
      lack(pieces_[header_].line, fmt::format("of the HloModule line only the name is read: {}", why_[header_]));
      line(level_[header_] == kAsCall && !name.empty() ? fmt::format("HloModule {}", name) : "HloModule excerpt",
           kNoPiece);
    }
    for (size_t t : tables_)
      if (level_[t] == kAsIs) line(pieces_[t].text, t);
  }

  // Names of computations that an instruction calls, each with the attribute that names it.
  std::vector<std::pair<std::string_view, std::string_view>> callees(const Piece& p) const {
    std::vector<std::pair<std::string_view, std::string_view>> out;
    static constexpr std::string_view kKeys[] = {"to_apply",
                                                 "calls",
                                                 "condition",
                                                 "body",
                                                 "select",
                                                 "scatter",
                                                 "true_computation",
                                                 "false_computation",
                                                 "branch_computations",
                                                 "called_computations"};
    for (std::string_view part : parts_between_commas(p.attributes)) {
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = part.substr(0, equals);
      std::string_view value = part.substr(equals + 1);
      if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) continue;
      if (value.starts_with('{') && value.ends_with('}')) value = value.substr(1, value.size() - 2);
      if (value.find('=') != std::string_view::npos) continue;  // a body in place
      for (std::string_view name : parts_between_commas(value)) out.emplace_back(key, plain_name(name));
    }
    return out;
  }

  struct Plan {
    std::unordered_map<std::string_view, std::string> shapes;  // of names that are defined so far, or stand in
    std::unordered_map<std::string_view, size_t> first;        // pieces
    std::vector<std::pair<std::string_view, size_t>> wanted;   // names that nobody defines, with a reader
    std::map<uint64_t, std::string> parameters;                // by number
    std::unordered_set<std::string_view> unknown;              // stand-ins whose shape nobody knows
    std::unordered_map<size_t, std::string> renamed;           // by piece
    std::unordered_map<std::string_view, size_t> again;        // how often a name was given anew
    std::set<size_t> repeated;                                 // pieces
    std::vector<std::string> lines;                            // stand-ins
    bool whole = true;
  };

  bool emit(TextComputation& c, int depth) {
    if (c.emitted) return true;
    c.emitted = true;
    for (size_t k : c.body)
      if (depth < kDeepest && level_[k] < kAsShape)
        for (const auto& [key, name] : callees(pieces_[k]))
          for (TextComputation& other : comps_)
            if (!other.emitted && !other.left_out && other.name == name && !emit(other, depth + 1)) return false;
    Plan plan;
    look_at(c, plan);
    if (!stand_in(c, plan)) return false;
    plan.whole &= !c.gap && (c.closed || c.has_root);
    if (c.entry) entry_whole_ = plan.whole;
    if (c.open != kNoPiece && level_[c.open] >= kAsShape) {
      counts_.left_out += c.body.size();
      lack(line_of(c), fmt::format("computation '{}' with {}, left out: {}", c.name,
                                   count_of(c.body.size(), "instruction", "instructions"), why_[c.open]));
      return true;
    }
    emit_body(c, plan);
    return true;
  }

  // Names that are defined, twice, or not at all.
  void look_at(const TextComputation& c, Plan& plan) {
    std::unordered_set<std::string_view> wanted;
    for (size_t k : c.body) {
      const Piece& p = pieces_[k];
      if (level_[k] == kLeftOut) continue;
      for (const WrittenOperand& o : p.operands)
        if (!o.name.empty() && !plan.first.contains(o.name) && wanted.insert(o.name).second)
          plan.wanted.emplace_back(o.name, k);
      const bool again = !plan.first.try_emplace(p.name, k).second;
      if (again && pieces_[plan.first[p.name]].text == p.text) {
        plan.repeated.insert(k);
      } else if (again || wanted.contains(p.name)) {
        plan.renamed[k] = fmt::format("{}.again", p.name);
      } else {
        plan.shapes[p.name] = p.shape;
      }
      uint64_t number = 0;
      if (p.opcode != "parameter" || level_[k] != kAsIs || plan.repeated.contains(k)) continue;
      const bool told = std::from_chars(p.inside.data(), p.inside.data() + p.inside.size(), number).ec == std::errc();
      if (told && !plan.parameters.try_emplace(number, p.name).second)
        level_[k] = kAsCall, why_[k] = fmt::format("parameter {} is given twice", number);
    }
    // What was written of them anywhere.
    for (auto& [name, reader] : plan.wanted) {
      std::string& shape = plan.shapes[name];
      for (const WrittenOperand& o : pieces_[reader].operands)
        if (o.name == name && shape.empty()) shape = o.shape;
    }
    std::unordered_set<std::string_view> open;
    for (auto& [name, reader] : plan.wanted)
      if (plan.shapes[name].empty()) open.insert(name);
    for (size_t k : c.body) {
      const Piece& p = pieces_[k];
      if (open.contains(p.name) && !p.shape.empty() && plan.shapes[p.name].empty()) plan.shapes[p.name] = p.shape;
      for (const WrittenOperand& o : p.operands)
        if (!o.shape.empty() && open.contains(o.name) && plan.shapes[o.name].empty()) plan.shapes[o.name] = o.shape;
    }
  }

  // Shapes of names that the text does not define, by their readers; twice, since one may tell of another.
  void infer(const TextComputation& c, Plan& plan) {
    ShapeOfName shape_of = [&](std::string_view name) {
      auto found = plan.shapes.find(name);
      return found == plan.shapes.end() ? std::string() : found->second;
    };
    ShapeOfParameter parameter_of = [&](std::string_view computation, size_t number) {
      auto found = parameters_.find(std::string(computation));
      return found == parameters_.end() || number >= found->second.size() ? std::string() : found->second[number];
    };
    std::unordered_set<std::string_view> open;
    for (auto& [name, reader] : plan.wanted)
      if (plan.shapes[name].empty()) open.insert(name);
    for (int turn = 0; turn < 2 && !open.empty(); ++turn)
      for (size_t k : c.body)
        for (size_t which = 0; which < pieces_[k].operands.size(); ++which)
          if (std::string_view name = pieces_[k].operands[which].name; open.contains(name) && level_[k] == kAsIs)
            if (std::string shape = operand_shape(pieces_[k], which, shape_of, parameter_of); !shape.empty())
              plan.shapes[name] = shape, open.erase(name);
  }

  // Parameters for what is not defined: those that the signature or the header names by number, then the others.
  bool stand_in(const TextComputation& c, Plan& plan) {
    std::vector<std::pair<std::string_view, std::string_view>> listed;  // name, shape
    if (c.open != kNoPiece)
      for (const WrittenOperand& o : pieces_[c.open].parameters) listed.emplace_back(o.name, o.shape);
    std::vector<std::string_view> layout = c.entry ? entry_layout() : std::vector<std::string_view>();
    auto shape_at = [&](uint64_t number) {
      std::string_view shape;
      if (number < layout.size()) shape = layout[number];
      if (shape.empty() && number < listed.size()) shape = listed[number].second;
      return shape;
    };
    std::map<std::string_view, uint64_t> number_of;
    for (uint64_t k = 0; k < listed.size(); ++k)
      if (!listed[k].first.empty() && !plan.parameters.contains(k)) number_of.try_emplace(listed[k].first, k);
    for (auto& [name, reader] : plan.wanted)
      if (auto at = number_of.find(name); at != number_of.end() && plan.shapes[name].empty())
        plan.shapes[name] = shape_at(at->second);
    infer(c, plan);
    if (!plan.parameters.empty() && plan.parameters.rbegin()->first > plan.parameters.size() + kMostMissing)
      return false;
    auto add = [&](uint64_t number, std::string_view name, std::string shape) {
      if (shape.empty()) shape = kUnknownShape;
      plan.lines.push_back(fmt::format("  {} = {} parameter({})", name, shape, number));
      plan.parameters[number] = name;
      plan.whole = false, incomplete_ = true;
      ++counts_.stand_ins;
    };
    uint64_t next = 0;
    for (auto& [name, reader] : plan.wanted) {
      auto at = number_of.find(name);
      uint64_t number = 0;
      if (at != number_of.end()) {
        number = at->second;
      } else {
        // The numbers of the signature are kept for its own names.
        while (plan.parameters.contains(next) || next < listed.size()) ++next;
        number = next;
      }
      const std::string& shape = plan.shapes[name];
      if (shape.empty()) plan.unknown.insert(name);
      note(pieces_[reader].line,
           shape.empty()
               ? fmt::format("'{}' is not defined in the text, nor is its shape: replaced by a parameter", name)
               : fmt::format("'{}' is not defined in the text: replaced by a parameter of {}", name, shape));
      add(number, name, shape);
    }
    const uint64_t last = std::max<uint64_t>(plan.parameters.empty() ? 0 : plan.parameters.rbegin()->first + 1,
                                             std::min<uint64_t>(std::max(listed.size(), layout.size()), kMostMissing));
    for (uint64_t k = 0; k < last; ++k) {
      if (plan.parameters.contains(k)) continue;
      const bool named = k < listed.size() && !listed[k].first.empty() && !plan.first.contains(listed[k].first);
      names_.push_back(named ? std::string(listed[k].first) : fmt::format("{}.parameter.{}", c.name, k));
      std::string shape(shape_at(k));
      note(line_of(c), fmt::format("parameter {} of computation '{}' is not in the text: {} in its place", k, c.name,
                                   shape.empty() ? "one without a known shape" : "one of " + shape));
      add(k, names_.back(), shape);
    }
    return true;
  }

  // The parameters' shapes in the header's entry_computation_layout.
  std::vector<std::string_view> entry_layout() const {
    if (header_ == kNoPiece) return {};
    const std::string_view header = pieces_[header_].text;
    const size_t comma = header.find(',');
    if (comma == std::string_view::npos) return {};
    std::string_view layout = attribute_in(header.substr(comma + 1), "entry_computation_layout");
    if (!layout.starts_with("{(")) return {};
    const size_t arrow = layout.rfind(")->");
    if (arrow == std::string_view::npos || arrow < 2) return {};
    std::vector<std::string_view> out;
    for (std::string_view part : parts_between_commas(layout.substr(2, arrow - 2))) {
      if (part.starts_with("/*"))
        if (size_t end = part.find("*/"); end != std::string_view::npos) part = trimmed(part.substr(end + 2));
      out.push_back(part);
    }
    return out;
  }

  void stubs(size_t k, const Plan& plan) {
    ShapeOfName shape_of = [&](std::string_view name) {
      auto found = plan.shapes.find(name);
      return found == plan.shapes.end() || plan.unknown.contains(name) ? std::string() : found->second;
    };
    for (const auto& [key, name] : callees(pieces_[k])) {
      if (known_names_.contains(std::string(name))) continue;
      std::optional<std::string> text = stub_computation(pieces_[k], key, name, shape_of);
      if (!text) continue;
      known_names_.insert(std::string(name));
      lack(pieces_[k].line,
           fmt::format("computation '{}' is not in the text: an empty one of its shapes in its place", name));
      line(*text, k);
    }
  }

  void emit_body(TextComputation& c, Plan& plan) {
    for (size_t k : c.body)
      if (level_[k] == kAsIs) stubs(k, plan);
    const Piece* open = c.open == kNoPiece ? nullptr : &pieces_[c.open];
    std::string begin = fmt::format("{}{} {{", c.entry ? "ENTRY " : "", c.name);
    if (open && plan.whole && level_[c.open] == kAsIs && !open->cut && c.name == open->name && c.entry == open->entry)
      begin = open->text;
    else if (open && level_[c.open] == kAsCall)
      lack(open->line, fmt::format("the signature of computation '{}' is not taken: {}", c.name, why_[c.open]));
    line(begin, open ? c.open : c.body[0]);
    for (const std::string& l : plan.lines) line(l, open ? c.open : c.body[0]);
    bool root = false, any = !plan.lines.empty();
    for (size_t k : c.body) any |= emit_instruction(k, plan, &root);
    if (!any) line("  ROOT nothing = () tuple()", c.open);
    if (!root && (c.gap || !c.closed || c.has_root))
      lack(pieces_[c.body.empty() ? c.open : c.body.back()].line,
           fmt::format("the ROOT of computation '{}' is not in the text: its last instruction is used as the ROOT",
                       c.name));
    // An instruction that lacks its end is refused at the brace.
    size_t last = open ? c.open : c.body[0];
    for (size_t k : c.body)
      if (level_[k] != kLeftOut) last = k;
    line("}" + std::string(c.behind), last);
    known_comps_.push_back(c.name);
    std::vector<std::string>& shapes = parameters_[c.name];
    for (const auto& [number, name] : plan.parameters)
      if (number == shapes.size()) shapes.push_back(plan.shapes.contains(name) ? plan.shapes[name] : "");
  }

  // What every operation takes stays; the operation's own attributes become the text of a backend_config.
  static std::string call_attributes(const Piece& p) {
    std::string kept, own;
    for (std::string_view part : parts_between_commas(p.attributes)) {
      const std::string_view key = part.substr(0, part.find('='));
      if (part.empty())
        continue;
      else if (!p.cut && (key == "metadata" || key == "sharding" || key == "frontend_attributes"))
        kept += fmt::format(", {}", part);
      else
        own += (own.empty() ? "" : ", ") + std::string(part);
    }
    if (own.empty()) return kept;
    std::string quoted;
    for (char c : own) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c == '\n' || c == '\r' ? ' ' : c;
    }
    return fmt::format(", backend_config=\"{}\"{}", quoted, kept);
  }

  // False where nothing is written.
  bool emit_instruction(size_t k, Plan& plan, bool* root) {
    const Piece& p = pieces_[k];
    if (plan.repeated.contains(k)) {
      note(p.line, fmt::format("'{}' is given twice (line {} has it first), left out", p.name,
                               pieces_[plan.first[p.name]].line + first_line_));
      return false;
    }
    Level level = level_[k];
    std::string why = why_[k];
    for (const WrittenOperand& o : p.operands)
      if (level == kAsIs && plan.unknown.contains(o.name))
        level = kAsCall, why = fmt::format("the shape of '{}' is not known", o.name);
    if (level == kAsIs && p.cut) level = kAsCall, why = "it is cut off";
    const bool callable = !p.shape.empty() && !p.opcode.empty() && p.plain_operands;
    if (level == kLeftOut || (level != kAsIs && !callable)) {
      level_[k] = kLeftOut;
      ++counts_.left_out;
      lack(p.line, fmt::format("instruction '{}' is not read: {}", p.name, why));
      return false;
    }
    std::string_view text = p.text;
    bool is_root = p.root;
    if (is_root && *root) {
      lack(p.line, fmt::format("a second ROOT, '{}': the first stays", p.name));
      is_root = false;
    }
    *root |= is_root;
    std::string name(p.name);
    if (auto again = plan.renamed.find(k); again != plan.renamed.end()) {
      name = again->second;
      for (size_t& n = plan.again[p.name]; plan.first.contains(name); ++n)
        name = fmt::format("{}.again{}", p.name, n ? fmt::format(".{}", n) : "");
      names_.push_back(name);
      plan.first[names_.back()] = k;
      lack(p.line, fmt::format("a second '{}', read as '{}'; readers keep the other", p.name, name));
    }
    ++counts_.instructions;
    if (level == kAsIs) {
      // From the name's end on, as it stands.
      const auto behind = static_cast<size_t>(p.name.data() + p.name.size() - text.data());
      line(fmt::format("  {}%{}{}", is_root ? "ROOT " : "", name, text.substr(behind)), k);
      return true;
    }
    ++counts_.custom_calls;
    std::string operands;
    for (const WrittenOperand& o : p.operands) operands += (operands.empty() ? "%" : ", %") + std::string(o.name);
    lack(p.line, fmt::format("'{}' is kept as a custom call of '{}'{}: {}", p.name, p.opcode,
                             level == kAsCall || p.attributes.empty() ? "" : " without its attributes", why));
    line(fmt::format("  {}%{} = {} custom-call({}), custom_call_target=\"{}\"{}", is_root ? "ROOT " : "", name, p.shape,
                     operands, p.opcode, level == kAsCall ? call_attributes(p) : ""),
         k);
    return true;
  }

  // --- errors ---

  // What the errors stand in is given up a step further; false where that changes nothing.
  bool give_up(const SyntaxFailure& e) {
    bool any = false;
    std::set<size_t> raised;
    for (const SyntaxFailure::Entry& entry : e.entries()) {
      if (entry.line == 0 || entry.line > piece_of_line_.size()) continue;
      const size_t k = piece_of_line_[entry.line - 1];
      if (k == kNoPiece || level_[k] == kLeftOut || !raised.insert(k).second) continue;
      if (why_[k].empty()) why_[k] = pieces_[k].cut ? "it is cut off" : entry.message;
      level_[k] = static_cast<Level>(level_[k] + 1);
      any = true;
    }
    return any;
  }

  void finish(Excerpt* out) {
    std::stable_sort(notes_.begin(), notes_.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
    *out = counts_;
    out->gaps = gaps_, out->incomplete = incomplete_;
    out->more_notes = notes_.size() - std::min(notes_.size(), Excerpt::kMostNotes);
    notes_.resize(notes_.size() - out->more_notes);
    out->notes = std::move(notes_);
  }

  ParseOptions options_;
  std::vector<Level> level_;
  std::vector<std::string> why_;  // by piece: what the grammar said first
  bool entry_whole_ = true;
  Excerpt counts_;

  std::string out_;
  std::vector<size_t> piece_of_line_;
  std::vector<std::string> known_comps_;
  std::unordered_set<std::string> known_names_;
  std::unordered_map<std::string, std::vector<std::string>> parameters_;  // shapes, by computation
  std::deque<std::string> names_;                                         // made here, looked at by views
};

}  // namespace

std::string Excerpt::in_words() const {
  std::string out = count_of(instructions, "instruction", "instructions") + " read";
  if (custom_calls) out += fmt::format(", {} of them as custom calls", custom_calls);
  if (left_out) out += fmt::format(", {} not read", left_out);
  if (stand_ins) out += ", " + count_of(stand_ins, "parameter", "parameters") + " in place of what is not defined";
  if (gaps) out += ", " + count_of(gaps, "gap", "gaps");
  return out + (incomplete ? "" : "; nothing of the module is missing");
}

std::unique_ptr<Module> parse_excerpt(std::string_view text, const std::shared_ptr<Universe>& universe,
                                      const ParseOptions& options, Excerpt* out) {
  *out = {};
  ParseOptions strict = options;
  strict.permissive = true, strict.text_behind = false;
  try {
    return parse_module(text, universe, strict);
  } catch (const SyntaxFailure&) {
    // A NUL byte, another language: nothing that an excerpt of HLO has.
    if (text.find('\0') != std::string_view::npos || !recognise_foreign(text).empty()) throw;
    ExcerptReader reader(text, options);
    if (auto m = reader.read(universe, out)) return m;
    throw;
  }
}

bool looks_like_excerpt(std::string_view text) {
  bool open = false, other = false;
  size_t instructions = 0;
  for (const Piece& p : pieces_of(text)) {
    if (p.kind == Piece::kGap) return true;
    if (p.kind == Piece::kOther) other = true;
    if (p.kind == Piece::kInstruction && (!open || p.cut)) return true;
    instructions += p.kind == Piece::kInstruction;
    if (p.kind == Piece::kOpen) open = true;
    if (p.kind == Piece::kClose) open = false;
  }
  return open || (other && instructions > 0);
}

}  // namespace hlo
