#include "replay/record/logs/jax_log.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace hlo {
namespace {

constexpr size_t kMostCompiles = 100000, kMostExplained = 12, kMostArguments = 100000;

std::string_view without_blanks(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\r' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Behind the first `mark`; empty where it is not there.
std::string_view text_from(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + mark.size());
}

// Of the bracket that the text begins with what stands in it; nothing is inside where it does not end.
std::string_view in_bracket(std::string_view text, size_t* behind = nullptr) {
  if (text.empty()) return {};
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) {
      if (behind) *behind = k + 1;
      return text.substr(1, k - 1);
    }
  }
  return {};
}

// Parts between commas that stand in no bracket.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t k = 0; k <= text.size() && out.size() < kMostArguments; ++k) {
    const char c = k < text.size() ? text[k] : ',';
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c == '(' || c == '[' || c == '{')) ++depth;
    if (!quoted && (c == ')' || c == ']' || c == '}')) --depth;
    if (c != ',' || depth > 0 || (quoted && k < text.size())) continue;
    if (const std::string_view part = without_blanks(text.substr(begin, k - begin)); !part.empty()) out.push_back(part);
    begin = k + 1;
  }
  return out;
}

// `float32` as HLO calls it; empty for a type that HLO does not have.
std::string hlo_type(std::string_view jax) {
  static const std::map<std::string, std::string, std::less<>> kTypes = {
      {"float64", "f64"},   {"float32", "f32"},    {"float16", "f16"}, {"bfloat16", "bf16"}, {"int64", "s64"},
      {"int32", "s32"},     {"int16", "s16"},      {"int8", "s8"},     {"int4", "s4"},       {"uint64", "u64"},
      {"uint32", "u32"},    {"uint16", "u16"},     {"uint8", "u8"},    {"uint4", "u4"},      {"bool", "pred"},
      {"complex64", "c64"}, {"complex128", "c128"}};
  if (auto at = kTypes.find(jax); at != kTypes.end()) return at->second;
  if (jax.starts_with("float8_")) return "f8" + std::string(jax.substr(7));
  return {};
}

// `ShapedArray(float32[8@d,16], weak_type=True)`.
JaxArgument argument_of(std::string_view text) {
  JaxArgument out;
  std::string_view inside = text;
  if (text.starts_with("ShapedArray")) inside = in_bracket(text.substr(11));
  const std::vector<std::string_view> parts = parts_of(inside);
  if (parts.empty()) return {std::string(text), false, ""};
  for (const std::string_view p : parts) out.weak |= p == "weak_type=True";
  const std::string_view shape = parts[0].substr(0, parts[0].find('('));
  const size_t open = shape.find('[');
  const std::string type = open == std::string_view::npos ? "" : hlo_type(shape.substr(0, open));
  if (type.empty()) {
    out.shape = shape;
    return out;
  }
  out.shape = type;
  // An axis of a mesh behind a size, `8@d`, is no part of it.
  bool axis = false;
  for (char c : shape.substr(open)) {
    if (c == ',' || c == ']') axis = false;
    if (c == '@') axis = true;
    if (!axis && c != ' ') out.shape += c;
  }
  return out;
}

// `NamedSharding(mesh=…, spec=P('d',), memory_kind=device)`: what tells it from others.
std::string sharding_of(std::string_view text) {
  if (text.starts_with("UnspecifiedValue") || text.starts_with("None")) return {};
  if (const size_t at = text.find("spec="); at != std::string_view::npos) {
    std::string_view spec = text.substr(at + 5);
    const size_t open = spec.find('(');
    size_t end = 0;
    if (open != std::string_view::npos) in_bracket(spec.substr(open), &end);
    if (end) return "spec " + std::string(spec.substr(0, open + end));
  }
  return std::string(text.substr(0, 200));
}

double seconds_behind(std::string_view line) {
  const size_t at = line.rfind(" in ");
  if (at == std::string_view::npos) return -1;
  double out = -1;
  const std::string_view rest = line.substr(at + 4);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  return error == std::errc() && out >= 0 && out < 1e9 &&
                 std::string_view(end, static_cast<size_t>(rest.data() + rest.size() - end)).starts_with(" s")
             ? out
             : -1;
}

// `step` of `jit(step)`, `pjit(step)` and `step`.
std::string function_in(std::string_view text) {
  for (std::string_view head : {"jit(", "pjit(", "pmap("})
    if (text.starts_with(head) && text.ends_with(")"))
      return std::string(text.substr(head.size(), text.size() - head.size() - 1));
  return std::string(text);
}

class JaxLogReader {
 public:
  JaxLog read(std::string_view text) {
    size_t number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      see(text.substr(0, end), ++number);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(out_);
  }

 private:
  void see(std::string_view raw, size_t number) {
    const std::string_view line = without_blanks(raw);
    if (const std::string_view miss = text_from(line, "TRACING CACHE MISS at "); !miss.empty()) {
      explained_.clear(), explaining_ = true;
      place_ = miss.substr(0, miss.find(" ("));
      if (const size_t slash = place_.rfind('/'); slash != std::string::npos) place_ = place_.substr(slash + 1);
      return;
    }
    if (const std::string_view what = text_from(line, "Finished tracing "); !what.empty()) {
      explaining_ = false, tracing_ = seconds_behind(line);
      return;
    }
    if (const std::string_view what = text_from(line, "Compiling "); !what.empty() && begin(what, number)) return;
    if (const std::string_view what = text_from(line, "Finished jaxpr to MLIR module conversion "); !what.empty()) {
      const std::string function = function_in(what.substr(0, what.rfind(" in ")));
      if (JaxCompile* c = open(function))
        c->lowering = seconds_behind(line);
      else
        lowering_[function] = {seconds_behind(line), std::exchange(tracing_, -1)};
    } else if (const std::string_view done = text_from(line, "Finished XLA compilation of "); !done.empty()) {
      end(std::string(done.substr(0, done.rfind(" in "))), seconds_behind(line), number);
    } else if (out_.compiles.empty() && !explaining_) {
      return;
    } else if (line.find("ersistent compilation cache hit for") != std::string_view::npos) {
      if (JaxCompile* c = of_key(line)) c->from_cache = true;
    } else if (line.find("PERSISTENT COMPILATION CACHE MISS for") != std::string_view::npos ||
               line.find("to persistent compilation cache with key") != std::string_view::npos) {
      of_key(line);
    } else if (explaining_ && !line.empty() && explained_.size() < kMostExplained) {
      explained_.emplace_back(line.substr(0, 300));
    }
  }

  // `step with global shapes and types (…). Argument mapping: (…).`
  bool begin(std::string_view what, size_t number) {
    const size_t at = what.find(" with global shapes and types ");
    if (at == std::string_view::npos || out_.compiles.size() >= kMostCompiles) return false;
    JaxCompile c;
    c.function = function_in(what.substr(0, at)), c.line = number;
    const std::string_view rest = what.substr(at + 30);
    for (std::string_view part : parts_of(in_bracket(rest))) c.arguments.push_back(argument_of(part));
    if (const std::string_view mapping = text_from(rest, "Argument mapping: "); !mapping.empty()) {
      const std::vector<std::string_view> parts = parts_of(in_bracket(mapping));
      for (size_t k = 0; k < parts.size() && k < c.arguments.size(); ++k)
        c.arguments[k].sharding = sharding_of(parts[k]);
    }
    c.tracing = std::exchange(tracing_, -1);
    // What jax said is of this function where its name stands there.
    explaining_ = false;
    if (std::any_of(explained_.begin(), explained_.end(), [&](const std::string& l) {
          return l.find(c.function + " defined at") != std::string::npos ||
                 l.find(c.function + " id=") != std::string::npos;
        }))
      c.explained = std::exchange(explained_, {}), c.place = place_;
    open_[c.function] = out_.compiles.size();
    out_.compiles.push_back(std::move(c));
    return true;
  }

  void end(const std::string& name, double seconds, size_t number) {
    const std::string function = function_in(name);
    JaxCompile* c = open(function);
    if (!c) {
      if (seconds < 0 || out_.only_timed.size() >= kMostCompiles) return;
      c = &out_.only_timed.emplace_back();
      c->function = function, c->line = number, c->tracing = std::exchange(tracing_, -1);
      if (auto known = lowering_.find(function); known != lowering_.end()) {
        c->lowering = known->second.seconds;
        if (c->tracing < 0) c->tracing = known->second.tracing;
        lowering_.erase(known);
      }
    }
    c->seconds = seconds, c->name = name, c->end_line = number;
    open_.erase(function);
  }

  JaxCompile* open(const std::string& function) {
    const auto at = open_.find(function);
    return at == open_.end() ? nullptr : &out_.compiles[at->second];
  }

  // The compilation that a line on the persistent cache is of, its key noted.
  JaxCompile* of_key(std::string_view line) {
    const std::string_view name = text_from(line, "for '"), key = text_from(line, "key '");
    std::string module(name.substr(0, name.find('\'')));
    const std::string word(key.substr(0, key.find('\'')));
    if (module.empty()) module = word.substr(0, word.rfind('-'));
    for (auto& [function, at] : open_) {
      std::string plain = "jit_";
      for (char c : function) plain += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ? c : '_';
      std::string shorter = plain;
      while (shorter.ends_with('_')) shorter.pop_back();
      if (module != plain && module != shorter) continue;
      JaxCompile& c = out_.compiles[at];
      if (!word.empty()) c.key = word;
      return &c;
    }
    return nullptr;
  }

  JaxLog out_;
  std::map<std::string, size_t> open_;  // by function, that were begun and have not ended
  std::vector<std::string> explained_;
  std::string place_;
  bool explaining_ = false;
  double tracing_ = -1;
  struct Lowered {
    double seconds, tracing;
  };
  std::map<std::string, Lowered> lowering_;  // by function, without a line that began its compilation
};

}  // namespace

JaxLog read_jax_log(std::string_view text) { return JaxLogReader().read(text); }

}  // namespace hlo
