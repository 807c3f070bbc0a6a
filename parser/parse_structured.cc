// Attributes whose value has a grammar of its own: replica groups, aliases, accuracies, origins. Each is
// checked and kept in the spelling that XLA prints.
#include <algorithm>
#include <cctype>

#include "ir/base/stack_guard.h"
#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

// `name=` with nothing between; the cursor stands behind the `=`.
std::string_view Parser::field_name(const char* what) {
  skip();
  size_t place = at_;
  std::string_view key = word();
  if (key.empty() || peek() != '=') error_at(place, "expected a field of {}", what);
  ++at_;
  return key;
}

// A word in any case, in lower case.
std::string Parser::lower_word(const char* what) {
  skip();
  std::string_view w = word();
  if (w.empty()) error_here("expected a word as {}", what);
  std::string out(w);
  for (char& c : out) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return out;
}

// --- groups ---

std::string Parser::replica_groups() {
  skip();
  size_t start = at_;
  std::string_view w = peek_word();
  if (begins_mesh(w)) {
    Mesh m = mesh();
    std::vector<AxisRef> taken;
    eat(',');
    Sharding::Dim d;
    d.axes = axis_list(m, taken, nullptr);
    int64_t devices = 1;
    for (const AxisRef& r : d.axes) devices *= r.size ? r.size : m.axes[r.axis].second;
    if (devices <= 1 && !m.maximal) error_at(start, "a group of {} device(s) by mesh axes is not possible", devices);
    Sharding s;
    s.kind = Sharding::Kind::kNamed;
    s.mesh = m;
    s.dims.push_back(d);
    std::string axes = s.text();
    // The one dimension's axes, without the sharding around.
    size_t from = axes.rfind(", [{");
    std::string list = m.maximal ? "{}" : axes.substr(from + 3, axes.size() - from - 5);
    list.erase(std::remove(list.begin(), list.end(), ' '), list.end());
    return m.text() + " " + list;
  }
  if (peek() == '[') {
    TileAssignment tiles;
    tiles.dims = number_list('[', ']', "the dimensions of replica groups");
    if (tiles.dims.size() != 2)
      error_at(start, "replica groups have two dimensions, groups and members, not {}", tiles.dims.size());
    if (!eat("<=")) error_here("expected '<='");
    iota_tiles(tiles, false);
    return tiles.text();
  }
  std::string out = "{";
  for (const Dims& group : nested_ints("replica_groups")) {
    if (out.size() > 1) out += ",";
    out += fmt::format("{{{}}}", fmt::join(group, ","));
  }
  return out + "}";
}

std::vector<Dims> Parser::nested_ints(const char* what) {
  std::vector<Dims> out;
  expect('{', what);
  if (eat('}')) return out;
  do out.push_back(int_list(what));
  while (eat(','));
  expect('}', what);
  return out;
}

std::string Parser::source_target_pairs() {
  skip();
  size_t start = at_;
  std::string out = "{";
  for (const Dims& pair : nested_ints("source_target_pairs")) {
    if (pair.size() != 2) error_at(start, "source_target_pairs is a list of pairs");
    out += fmt::format("{}{{{},{}}}", out.size() > 1 ? "," : "", pair[0], pair[1]);
  }
  return out + "}";
}

// --- aliases ---

std::string Parser::operand_aliases() {
  auto index = [&] { return fmt::format("{{{}}}", fmt::join(int_list("a shape index"), ",")); };
  std::string out = "{";
  expect('{', "before aliases");
  while (!eat('}')) {
    if (out.size() > 1) expect(',', "between aliases"), out += ", ";
    out += index() + ": (";
    expect(':', "after an output's index");
    expect('(', "before an operand's index");
    out += std::to_string(natural("the number of an operand")) + ", ";
    expect(',', "after the number of an operand");
    out += index() + ")";
    expect(')', "after an alias");
  }
  return out.size() == 1 ? "" : out + "}";
}

// --- small records ---

std::string Parser::operand_precision() {
  std::string out = "{";
  bool plain = true;
  expect('{', "before precisions");
  while (!eat('}')) {
    if (out.size() > 1) expect(',', "between precisions"), out += ",";
    skip();
    size_t place = at_;
    std::string w = lower_word("a precision");
    if (w != "default" && w != "high" && w != "highest" && w != "packed_nibble")
      error(place, fmt::format("unknown precision '{}'", w), "it is default, high, highest or packed_nibble");
    plain &= w == "default";
    out += w;
  }
  return plain ? "" : out + "}";
}

std::string Parser::result_accuracy() {
  expect('{', "before an accuracy");
  skip();
  size_t place = at_;
  std::string_view key = field_name("result_accuracy");
  std::string out;
  if (key == "mode") {
    size_t at = at_;
    std::string mode = lower_word("the mode of an accuracy");
    if (mode != "default" && mode != "highest") error_at(at, "unknown accuracy '{}'", mode);
    if (mode != "default") out = "{mode=highest}";
  } else if (key == "tolerance") {
    double atol = 0, rtol = 0;
    int64_t ulps = 0;
    expect('{', "before a tolerance");
    bool first = true;
    while (!eat('}')) {
      if (!first) expect(',', "between the fields of a tolerance");
      first = false;
      skip();
      size_t at = at_;
      std::string_view field = field_name("a tolerance");
      double v = decimal("a tolerance");
      if (v < 0) error_at(at, "a tolerance is not negative");
      if (field == "atol")
        atol = v;
      else if (field == "rtol")
        rtol = v;
      else if (field == "ulps")
        ulps = static_cast<int64_t>(std::min(v, 9e18));
      else
        error_at(at, "unknown field '{}' of a tolerance", field);
    }
    out = fmt::format("{{tolerance={{atol={:g},rtol={:g},ulps={}}}}}", atol, rtol, ulps);
  } else {
    error_at(place, "an accuracy has a mode or a tolerance, not '{}'", key);
  }
  expect('}', "after an accuracy");
  return out;
}

std::string Parser::statistics() {
  std::string out = "{";
  expect('{', "before statistics");
  if (eat('}')) return "";
  field_name("statistics");
  int64_t index = integer("the index of a statistic");
  out += fmt::format("visualizing_index={}", index);
  bool any = false;
  while (!eat('}')) {
    expect(',', "between statistics");
    std::string name(field_name("statistics"));
    out += fmt::format(",{}={:g}", name, decimal("a statistic"));
    any = true;
  }
  return any ? out + "}" : "";
}

// A tree of `{"instruction" {index}}`, tuples in parentheses.
std::string Parser::origin() {
  check_stack("the origin is nested");
  if (++depth_ > 500) error_here("origin is nested too deeply");
  std::string out;
  if (eat('(')) {
    out = "(";
    while (!eat(')')) {
      if (out.size() > 1) out += ", ", eat(',');
      skip();
      if (peek() == ')') {
        out.resize(out.size() - 2);
        continue;
      }
      out += origin();
    }
    out += ")";
  } else {
    expect('{', "before an original array");
    out = "{";
    if (!eat('}')) {
      out += "\"" + quoted("the name of an instruction") + "\"";
      skip();
      if (peek() == '{')
        if (Dims index = int_list("a shape index"); !index.empty())
          out += fmt::format(" {{{}}}", fmt::join(index, ","));
      expect('}', "after an original array");
      out += "}";
    } else {
      out += "}";
    }
  }
  --depth_;
  return out;
}

std::string Parser::origin_attribute() {
  expect('{', "before an origin");
  if (eat('[')) {
    skip();
    size_t place = at_;
    if (word() != "synthetic_call") error_at(place, "expected synthetic_call");
    expect(']', "after synthetic_call");
    expect('}', "after an origin");
    return "{[synthetic_call]}";
  }
  if (eat('}')) return "{()}";
  skip();
  if (peek() != '{' && peek() != '(') error_here("expected a tree of original arrays");
  std::string out = "{" + origin() + "}";
  expect('}', "after an origin");
  return out;
}

// `{old}: {new}` and, where values have to be computed anew, `,` and a module in quotes; one a line.
std::string Parser::origin_recovery_table() {
  expect('{', "before the origin recovery table");
  std::string out;
  while (!eat('}')) {
    std::string from = origin();
    expect(':', "after an original array");
    std::string to = origin();
    out += "  " + from + " : " + to;
    if (eat(',')) {
      skip();
      size_t place = at_;
      std::string text = quoted("a module");
      std::string inner;
      try {
        inner = print_module(*parse_module(text, std::make_shared<Universe>(), options_));
      } catch (const Failure&) {
        error_at(place, "the module of a recovery does not parse");
      }
      out += ",\n  \"\n";
      for (size_t at = 0; at < inner.size();) {
        size_t end = std::min(inner.find('\n', at), inner.size());
        if (end > at) out += "    " + inner.substr(at, end - at);
        out += "\n";
        at = end + 1;
      }
      out += "\n  \"";
    }
    out += "\n";
  }
  return out.empty() ? "" : "{\n" + out + "}\n";
}

std::string Parser::sparsity_config() {
  std::string sides[2];
  expect('{', "before a sparsity");
  while (!eat('}')) {
    skip();
    size_t place = at_;
    std::string_view side = field_name("a sparsity");
    if (side != "lhs" && side != "rhs") error_at(place, "a sparsity is of lhs or rhs, not '{}'", side);
    Dims ratio{0, 0};
    int64_t dimension = 0, stride = 0;
    expect('{', "before a sparsity");
    while (!eat('}')) {
      skip();
      size_t at = at_;
      std::string_view field = field_name("a sparsity");
      if (field == "sparsity") {
        ratio = dxd("a sparsity");
        if (ratio.size() != 2) error_at(at, "a sparsity is written 2x4");
      } else if (field == "dimension") {
        dimension = integer("a dimension");
      } else if (field == "stride") {
        stride = integer("a stride");
      } else {
        error_at(at, "unknown field '{}' of a sparsity", field);
      }
    }
    sides[side == "rhs"] =
        fmt::format("{}={{sparsity={}x{} dimension={} stride={}}}", side, ratio[0], ratio[1], dimension, stride);
  }
  if (sides[0].empty() && sides[1].empty()) return "";
  return "{" + sides[0] + (sides[0].empty() || sides[1].empty() ? "" : " ") + sides[1] + "}";
}

std::string Parser::domain(ShapeId shape) {
  expect('{', "before a domain");
  skip();
  size_t place = at_;
  auto field = [&](std::string_view name) {
    skip();
    size_t at = at_;
    if (word() != name || peek() != '=') error_at(at, "expected {}=", name);
    ++at_;
  };
  field("kind");
  std::string kind = quoted("the kind of a domain");
  if (kind != "sharding") error_at(place, "unknown kind '{}' of a domain", kind);
  expect(',', "after the kind of a domain");
  field("entry");
  StrId entry = sharding_of(shape);
  expect(',', "after the entry of a domain");
  field("exit");
  StrId exit = sharding_of(shape);
  expect('}', "after a domain");
  return fmt::format("{{kind=\"sharding\", entry={}, exit={}}}", u_.text(entry), u_.text(exit));
}

// Of custom-calls: a literal with its shape, or a tuple of such.
std::string Parser::typed_literal() {
  skip();
  if (peek() == '(') {
    ++at_;
    check_stack("the literal is nested");
    if (++depth_ > 200) error_here("literal is nested too deeply");
    std::string out = "( ";
    bool first = true;
    while (!eat(')')) {
      if (!first) expect(',', "between literals"), out += ", ";
      first = false;
      out += typed_literal();
    }
    --depth_;
    return out + " )";
  }
  if (!at_shape()) error_here("expected a literal with its shape");
  ShapeId s = shape();
  LitId lit = literal(s);
  return u_.shape_text(s) + " " + literal_text(u_, lit, true);
}

std::vector<Metadata> Parser::lone_metadata_list() {
  std::vector<Metadata> out;
  size_t save = at_;
  expect('{', "before metadata");
  if (eat('{')) {
    do {
      --at_;  // the brace belongs to the metadata
      out.push_back(u_[metadata()]);
    } while (eat(',') && eat('{'));
  } else {
    at_ = save;
    out.push_back(u_[metadata()]);
  }
  return out;
}

std::vector<Metadata> parse_metadata_list(std::string_view text, Universe& universe) {
  return Parser(text, borrowed(universe), {}).lone_metadata_list();
}

}  // namespace hlo
