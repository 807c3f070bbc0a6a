#include "replay/report/compile/recompiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/base/hash.h"
#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "ir/sharding/aliasing.h"
#include "ir/types/literal.h"
#include "parser/parser.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {

constexpr size_t kShortValue = 60, kMostShown = 12;

std::string shortened(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text.size() > kShortValue ? text.substr(0, kShortValue) + "…" : text;
}

// `__lambda_` of `<lambda>`: names as jax makes them of functions.
std::string like_a_name(std::string_view function) {
  std::string out;
  for (char c : function)
    if (std::isalnum(static_cast<unsigned char>(c))) out += c;
  return out;
}

// The lines of the function that the module is named after; none where no frame is of it.
std::set<std::string> own_lines(const Module& m, const std::string& function) {
  const StackTables& t = m.stack();
  std::set<std::string> out;
  const std::string wanted = like_a_name(function);
  for (const StackTables::Location& l : t.locations) {
    if (l.function <= 0 || static_cast<size_t>(l.function) > t.functions.size()) continue;
    if (l.file <= 0 || static_cast<size_t>(l.file) > t.files.size()) continue;
    const std::string& name = t.functions[static_cast<size_t>(l.function - 1)];
    const std::string inner = name.substr(name.rfind('.') == std::string::npos ? 0 : name.rfind('.') + 1);
    if (like_a_name(inner) == wanted)
      out.insert(fmt::format("{}:{}", t.files[static_cast<size_t>(l.file - 1)], l.line));
  }
  return out;
}

// How often a sharding cuts each dimension; empty where it does not, or is written in another way.
std::vector<int64_t> cuts_of(const std::string& sharding) {
  if (sharding.empty()) return {};
  try {
    const Sharding s = parse_sharding(sharding);
    return s.kind == Sharding::Kind::kTiled ? s.tiles.dims : std::vector<int64_t>();
  } catch (const Failure&) {
    return {};
  }
}

// A layout's text behind the dimensions of a shape's.
std::string layout_in(const std::string& shape) {
  const size_t at = shape.find("]{");
  return at == std::string::npos ? "" : shape.substr(at + 1);
}

void describe_arguments(const Module& m, bool optimised, Compiled* out) {
  std::set<int64_t> donated;
  for (const std::string* text : {&m.config().input_output_alias, &m.config().buffer_donor})
    for (const AliasEntry& a : parse_aliases(*text)) donated.insert(a.number);
  const std::vector<InstId>& params = m.comp(m.entry()).params;
  for (size_t k = 0; k < params.size(); ++k) {
    const InstId p = params[k];
    CompiledArgument a;
    a.name = op_name_of(m, p);
    const Shape& s = m.shape(p);
    if (const StrId sharding = m[p].attrs.valid() ? m.attrs(p).text(Attr::sharding) : StrId(); sharding.valid())
      a.sharding = without_metadata(m.u().text(sharding));
    // What nobody asked for is replicated behind the partitioner.
    if (optimised && a.sharding == "{replicated}") a.sharding.clear();
    if (s.is_array()) {
      a.type = type_name(s.type);
      a.dims.assign(s.dims.begin(), s.dims.end());
      // What the partitioner leaves holds a device's part.
      const std::vector<int64_t> cuts = optimised ? cuts_of(a.sharding) : std::vector<int64_t>();
      for (size_t d = 0; d < a.dims.size() && d < cuts.size(); ++d) a.dims[d] *= cuts[d];
    } else {
      a.type = m.u().shape_text_plain(m.shape_id(p));
    }
    if (m.config().has_entry_layout && k < m.config().entry_params.size())
      a.layout = layout_in(m.u().shape_text(m.config().entry_params[k]));
    a.donated = donated.contains(static_cast<int64_t>(k));
    out->arguments.push_back(std::move(a));
  }
}

// `{0, 0.841, …}`: the first elements of a constant.
std::string first_elements(const Module& m, InstId i) {
  constexpr size_t kFirst = 6;
  const Literal& lit = m.literal(i);
  const Shape& s = m.shape(i);
  const size_t each = s.is_array() ? storage_bytes(s.type) : 0;
  if (!each || s.rank() == 0 || lit.bytes.size() < each) return shortened(literal_text(m.u(), m.literal_id(i), false));
  std::string out = "{";
  const size_t count = lit.bytes.size() / each;
  for (size_t k = 0; k < count && k < kFirst; ++k) {
    if (k) out += ", ";
    append_element(out, s.type, lit.bytes.data() + k * each);
  }
  return out + (count > kFirst ? ", …}" : "}");
}

// Of all of a constant; never 0.
uint64_t constant_hash(const Module& m, InstId i) {
  const Literal& lit = m.literal(i);
  return hash_bytes(lit.elements.empty() ? lit.bytes : literal_text(m.u(), m.literal_id(i), true, true)) | 1;
}

// The program's text with constants' values cut out of it, and these beside it.
void describe_program(const Module& m, Compiled* out) {
  PrintOptions options = PrintOptions::Canonical();
  options.metadata = options.stack_tables = false, options.large_constants = false;
  const std::string text = print_module(m, options);
  size_t at = text.find('\n');  // the header is told apart
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at + 1), text.size());
    std::string line = text.substr(at + 1, end - at - 1);
    at = end;
    if (const size_t constant = line.find(" constant("); constant != std::string::npos)
      line.erase(constant + std::string_view(" constant").size());
    if (const size_t first = line.find_first_not_of(' '); first != std::string::npos)
      out->program.push_back(line.substr(first));
  }
  const std::vector<InstId> without = m.elided_constants();
  const std::set<InstId> elided(without.begin(), without.end());
  for (CompId c : m.computations())
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::Constant) continue;
      CompiledConstant k;
      k.name = m.inst_name(i), k.shape = m.u().shape_text_plain(m.shape_id(i));
      for (InstId u : m.users_copy(i))
        if (k.source.empty()) k.source = source_line(m, u).text();
      if (!elided.contains(i)) k.value = first_elements(m, i), k.hash = constant_hash(m, i);
      out->constants.push_back(std::move(k));
    }
}

std::string argument_words(const Compiled& c, size_t k) {
  const std::string& name = c.arguments[k].name;
  return name.empty() ? fmt::format("argument {}", k) : fmt::format("argument {}, {}", k, name);
}

std::string shape_words(const CompiledArgument& a) { return fmt::format("{}[{}]", a.type, fmt::join(a.dims, ",")); }

class Comparing {
 public:
  Comparing(const Compiled& a, const Compiled& b) : a_(a), b_(b) {}

  std::vector<RecompileReason> all() {
    if (a_.partitions != b_.partitions)
      add("devices", "partitions", std::to_string(a_.partitions), std::to_string(b_.partitions));
    if (a_.replicas != b_.replicas)
      add("devices", "replicas", std::to_string(a_.replicas), std::to_string(b_.replicas));
    if (a_.arguments.size() != b_.arguments.size())
      add("arguments", "number of arguments", std::to_string(a_.arguments.size()), std::to_string(b_.arguments.size()));
    else
      for (size_t k = 0; k < a_.arguments.size(); ++k) argument(k);
    flags();
    // More devices mean other shardings: those say more.
    if (std::any_of(out_.begin(), out_.end(), [](const auto& r) { return r.kind == "sharding"; }))
      std::erase_if(out_, [](const auto& r) { return r.kind == "devices"; });
    // What the arguments make of the program is no reason of its own.
    if (std::all_of(out_.begin(), out_.end(), [](const auto& r) { return r.kind == "flag" || r.kind == "layout"; }))
      program();
    if (out_.empty()) explained();
    if (out_.empty()) add("unknown", "nothing that is recorded differs", "", "");
    return std::move(out_);
  }

 private:
  void add(std::string kind, std::string where, std::string was, std::string now, std::string source = {}) {
    RecompileReason r;
    r.kind = std::move(kind), r.where = std::move(where), r.source = std::move(source);
    if (!was.empty() || !now.empty()) r.values = {std::move(was), std::move(now)};
    out_.push_back(std::move(r));
  }

  void argument(size_t k) {
    const CompiledArgument &x = a_.arguments[k], &y = b_.arguments[k];
    const std::string who = argument_words(b_, k);
    if (x.type != y.type) add("type", "type of " + who, x.type, y.type);
    if (x.dims.size() != y.dims.size()) {
      add("arguments", "rank of " + who, shape_words(x), shape_words(y));
    } else {
      for (size_t d = 0; d < x.dims.size(); ++d)
        if (x.dims[d] != y.dims[d])
          add("dimension", fmt::format("dimension {} of {}", d, who), std::to_string(x.dims[d]),
              std::to_string(y.dims[d]));
    }
    auto or_none = [](const std::string& text) { return text.empty() ? std::string("none") : text; };
    if (x.sharding != y.sharding) add("sharding", "sharding of " + who, or_none(x.sharding), or_none(y.sharding));
    if (x.weak && y.weak && x.weak != y.weak)
      add("weak-type", "weak type of " + who, *x.weak ? "weak" : "not weak", *y.weak ? "weak" : "not weak");
    if (x.donated && y.donated && x.donated != y.donated)
      add("donation", "donation of " + who, *x.donated ? "donated" : "not donated",
          *y.donated ? "donated" : "not donated");
    if (!x.layout.empty() && !y.layout.empty() && x.layout != y.layout && x.dims.size() == y.dims.size())
      add("layout", "layout of " + who, x.layout, y.layout);
  }

  void flags() {
    if (!a_.flags_told || !b_.flags_told) return;
    std::set<std::string> names;
    for (const auto* flags : {&a_.flags, &b_.flags})
      for (const auto& [name, value] : *flags) names.insert(name);
    auto value = [](const Compiled& c, const std::string& name) {
      const auto at = c.flags.find(name);
      return at == c.flags.end() ? std::string("(default)") : at->second;
    };
    for (const std::string& name : names)
      if (value(a_, name) != value(b_, name)) add("flag", name, value(a_, name), value(b_, name));
  }

  // The text of a line without the names that are made for printing: `f32[16,2] slice`.
  static std::string line_words(const std::string& line) {
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos) return shortened(line);
    const std::string rest = line.substr(equals + 3);
    return shortened(rest.substr(0, rest.find('(') == std::string::npos ? rest.size() : rest.find('(')));
  }

  void program() {
    if (a_.program.empty() || b_.program.empty()) return;
    if (a_.program != b_.program) {
      // jax tells of a static argument; the modules only what it made.
      if (const std::string& told = static_argument(); !told.empty()) {
        add("static", told, "", "");
        return;
      }
      const size_t most = std::min(a_.program.size(), b_.program.size());
      size_t k = 0;
      while (k < most && a_.program[k] == b_.program[k]) ++k;
      auto line = [&](const Compiled& c) { return k < c.program.size() ? line_words(c.program[k]) : "(its end)"; };
      if (line(a_) != line(b_))
        add("program", "same arguments, another program", line(a_), line(b_));
      else
        add("program", "same arguments, another program: the first that differs is " + line(b_), "", "");
      return;
    }
    size_t elided = 0;
    std::string shapes;
    if (a_.constants.size() != b_.constants.size()) return;
    for (size_t k = 0; k < a_.constants.size(); ++k) {
      const CompiledConstant &x = a_.constants[k], &y = b_.constants[k];
      if (!x.hash || !y.hash) {
        if (!elided++) shapes = y.shape + (y.source.empty() ? "" : " at " + y.source);
        continue;
      }
      if (x.hash == y.hash) continue;
      std::string was = x.value, now = y.value;
      if (was == now) was += " (differs further on)";
      add("constant", fmt::format("constant {} of the program", y.shape), was, now, y.source);
    }
    if (elided && out_.empty() && static_argument().empty())
      add("elided-constant",
          fmt::format("constants whose values the texts leave out may differ: {}{} (--xla_dump_large_constants)",
                      shapes, elided > 1 ? fmt::format(" and {} more", elided - 1) : ""),
          "", "");
  }

  // `static argument: now …`; empty where jax says nothing of the kind.
  std::string static_argument() const {
    if (!b_.said) return {};
    for (const std::string& line : b_.said->explained)
      if (line.find("Static(") != std::string::npos || line.find("static arg") != std::string::npos ||
          line.find("static_arg") != std::string::npos) {
        std::string words = line.substr(line.starts_with("* ") ? 2 : 0);
        // `now <class …> with pytree metadata Static(val=3) and before … Static(val=2), …`
        auto value = [&](size_t from) {
          const size_t at = words.find("Static(val=", from);
          return at == std::string::npos ? std::string() : words.substr(at + 11, words.find(')', at) - at - 11);
        };
        const std::string now = value(0), was = value(words.find(" before "));
        return now.empty() || was.empty() ? "static argument: " + shortened(words)
                                          : fmt::format("static argument: {}, before {}", now, was);
      }
    return {};
  }

  void explained() {
    if (const std::string told = static_argument(); !told.empty()) return add("static", told, "", "");
    if (!b_.said) return;
    for (const std::string& line : b_.said->explained)
      if (line.find("another function defined on the same line") != std::string::npos ||
          line.find("never seen function") != std::string::npos)
        return add("function", "a function object that jax had not seen", "", "", b_.said->place);
    for (const std::string& line : b_.said->explained)
      if (line.starts_with("* ")) return add("arguments", shortened(line.substr(2)), "", "");
  }

  const Compiled &a_, &b_;
  std::vector<RecompileReason> out_;
};

std::string key_of(const std::vector<RecompileReason>& reasons) {
  std::string out;
  for (const RecompileReason& r : reasons)
    out += r.kind + "\n" + r.where + "\n" + (r.kind == "constant" ? "" : r.source) + "\n\n";
  return out;
}

void add_values(const std::vector<std::string>& values, std::vector<std::string>* to) {
  for (const std::string& v : values)
    if (std::find(to->begin(), to->end(), v) == to->end() && to->size() < kMostShown) to->push_back(v);
}

// How far apart two are that differ so.
size_t reasons_weight(const std::vector<RecompileReason>& reasons) {
  return reasons[0].kind == "unknown" ? 0 : reasons.size();
}

RecompiledFunction of_function(const std::vector<Compiled>& all, std::vector<size_t> which) {
  RecompiledFunction out;
  out.function = all[which[0]].function;
  for (size_t k : which)
    if (out.place.empty() && !all[k].lines.empty()) out.place = *all[k].lines.begin();
  std::map<std::string, size_t> places;  // of reasons
  for (size_t k = 1; k < which.size(); ++k) {
    const Compiled& now = all[which[k]];
    std::vector<RecompileReason> least;
    for (size_t j = k; j-- > 0;) {
      std::vector<RecompileReason> reasons = differences(all[which[j]], now);
      if (least.empty() || reasons_weight(reasons) < reasons_weight(least)) least = std::move(reasons);
    }
    if (now.seconds >= 0) out.seconds += now.seconds, ++out.seconds_known;
    out.whole_seconds |= now.whole_seconds;
    const auto [at, fresh] = places.emplace(key_of(least), out.reasons.size());
    if (fresh) {
      RecompileReason r = least[0];
      r.compilations = 0;
      for (size_t j = 1; j < least.size(); ++j)
        r.with.push_back(least[j].where +
                         (least[j].values.empty() ? "" : ": " + fmt::format("{}", fmt::join(least[j].values, ", "))));
      out.reasons.push_back(std::move(r));
    } else {
      add_values(least[0].values, &out.reasons[at->second].values);
    }
    RecompileReason& r = out.reasons[at->second];
    ++r.compilations;
    if (now.seconds >= 0) r.seconds += now.seconds, ++r.seconds_known;
  }
  std::stable_sort(out.reasons.begin(), out.reasons.end(),
                   [](const auto& x, const auto& y) { return x.compilations > y.compilations; });
  out.which = std::move(which);
  return out;
}

}  // namespace

std::vector<std::vector<size_t>> same_functions(const std::vector<Compiled>& all) {
  struct Kept {
    std::vector<size_t> which;
    std::set<std::string> lines;
  };
  std::map<std::string, std::vector<Kept>> by_name;
  std::vector<std::pair<std::string, size_t>> order;
  for (size_t k = 0; k < all.size(); ++k) {
    if (all[k].from_cache) continue;
    std::vector<Kept>& same = by_name[all[k].function];
    auto fits = std::find_if(same.begin(), same.end(), [&](const Kept& one) {
      if (one.lines.empty() != all[k].lines.empty()) return false;
      return one.lines.empty() || std::any_of(all[k].lines.begin(), all[k].lines.end(),
                                              [&](const std::string& l) { return one.lines.contains(l); });
    });
    if (fits == same.end()) {
      order.emplace_back(all[k].function, same.size());
      same.push_back({{k}, all[k].lines});
    } else {
      fits->which.push_back(k);
      fits->lines.insert(all[k].lines.begin(), all[k].lines.end());
    }
  }
  std::vector<std::vector<size_t>> out;
  for (const auto& [name, place] : order) out.push_back(by_name[name][place].which);
  return out;
}

void describe_function(const Module& m, Compiled* out) {
  out->function = function_of(m.name());
  out->lines = own_lines(m, out->function);
}

void describe_compiled(const Module& m, Compiled* out) {
  describe_function(m, out);
  out->partitions = m.config().num_partitions, out->replicas = m.config().replica_count;
  describe_arguments(m, m.config().is_scheduled, out);
  describe_program(m, out);
}

Compiled compiled_of_log(const JaxCompile& said, const std::string& label) {
  Compiled out;
  out.where = fmt::format("{}:{}", label, said.line), out.function = said.function, out.key = said.key;
  out.seconds = said.seconds, out.seconds_from = "jax", out.from_cache = said.from_cache, out.said = &said;
  for (const JaxArgument& a : said.arguments) {
    CompiledArgument to;
    to.weak = a.weak, to.sharding = a.sharding;
    const size_t open = a.shape.find('[');
    to.type = a.shape.substr(0, open);
    if (open != std::string::npos) to.dims = integers_in(a.shape.substr(open));
    out.arguments.push_back(std::move(to));
  }
  return out;
}

std::map<std::string, std::string> flags_of(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos || line.starts_with("xla_dump") || !line.starts_with("xla_")) continue;
    std::string& value = out[std::string(line.substr(0, colon))];
    if (!value.empty()) value += ",";
    value += line.substr(colon + 2);
  }
  return out;
}

std::vector<RecompileReason> differences(const Compiled& a, const Compiled& b) { return Comparing(a, b).all(); }

std::vector<RecompiledFunction> recompiled(const std::vector<Compiled>& all) {
  std::vector<RecompiledFunction> out;
  for (std::vector<size_t>& which : same_functions(all))
    if (which.size() > 1) out.push_back(of_function(all, std::move(which)));
  std::stable_sort(out.begin(), out.end(), [](const auto& x, const auto& y) {
    return x.seconds != y.seconds ? x.seconds > y.seconds : x.which.size() > y.which.size();
  });
  return out;
}

std::string recompile_advice(const std::string& kind) {
  static const std::map<std::string, std::string, std::less<>> kAdvice = {
      {"dimension", "pad it to one size, or to a few"},
      {"type", "convert it to one type before the call"},
      {"weak-type", "pass one kind of it: a Python number is weakly typed, jnp.float32(2) is not"},
      {"arguments", "call it with one structure of arguments"},
      {"sharding", "place it in one way before the call (jax.device_put), or say in_shardings"},
      {"devices", "call it on the same devices"},
      {"donation", "jit it once, with one donate_argnums"},
      {"layout", "hand it on in one layout"},
      {"constant", "pass it as an argument: what a function closes over is part of its program"},
      {"elided-constant", "pass arrays as arguments; dump constants, too, to know"},
      {"flag", "compile with one set of flags and options"},
      {"static", "each value of a static argument is a separate program: pass it as an array, or use few values"},
      {"program",
       "a static argument, or a Python value that tracing reads, differs: JAX_EXPLAIN_CACHE_MISSES=1 says which"},
      {"function", "jit it once, outside of the loop or function that makes it"},
      {"unknown", "jit it once; JAX_EXPLAIN_CACHE_MISSES=1 says why jax traced it again"}};
  const auto at = kAdvice.find(kind);
  return at == kAdvice.end() ? "" : at->second;
}

}  // namespace hlo
