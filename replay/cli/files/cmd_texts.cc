// print, verify, fmt, stats: modules as texts and figures.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "ir/base/source.h"
#include "ir/print/print.h"
#include "ir/program/buffer.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "parser/proto/proto_reader.h"
#include "replay/cli/command.h"
#include "replay/os/files.h"

namespace hlo {
int cmd_print(const PrintArgs& a) {
  PrintOptions style;
  if (!PrintOptions::by_name(a.style, &style))
    fail(FailureKind::kUsage, "unknown style '{}'; there are default, long, short, canonical and fingerprint", a.style);
  if (a.no_metadata) style.metadata = false;
  if (a.large) style.large_constants = true;
  style.compact_gte = a.compact_gte;
  style.color = a.color;
  if (a.dialect == "2019") {
    style.dialect_2019 = style.operand_shapes = style.large_constants = true;
    style.lossless = true;
    style.stack_tables = style.index_comments = false;
  } else if (!a.dialect.empty()) {
    fail(FailureKind::kUsage, "unknown dialect '{}'; there is 2019", a.dialect);
  }
  Input in = read_input(a.file);
  size_t count = read_parts(&in);
  for (size_t i = 0; i < count; ++i) {
    if (in.chosen && in.chosen != i + 1) continue;
    auto m = std::move(load_part(in, i).module);
    if (i && !in.chosen) std::cout << "// -----\n\n";
    std::cout << print_module(*m, style);
  }
  return kYes;
}

namespace {

// Where `name =` stands in a text of HLO, npos where it does not (protos, generated names).
size_t definition_of(std::string_view text, std::string_view name) {
  if (name.empty()) return std::string_view::npos;
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    if (!text.substr(at + name.size()).starts_with(" =")) continue;
    size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
    std::string_view before = text.substr(line, at - line);
    while (before.starts_with(" ") || before.starts_with("\t")) before.remove_prefix(1);
    if (before.starts_with("ROOT ")) before.remove_prefix(5);
    if (before.empty() || before == "%") return at;
  }
  return std::string_view::npos;
}

}  // namespace

int cmd_verify(const std::string& file, bool json, const std::string& layouts, bool mixed) {
  if (layouts != "auto" && layouts != "binding" && layouts != "free")
    fail(FailureKind::kUsage, "--layouts is auto, binding or free, not '{}'", layouts);
  Layouts how = layouts == "auto" ? Layouts::kAuto : layouts == "free" ? Layouts::kFree : Layouts::kBinding;
  Precision precision = mixed ? Precision::kMixed : Precision::kAuto;
  Input in = read_input(file);
  size_t count = read_parts(&in);
  Json list = Json::array();
  size_t instructions = 0, computations = 0;
  try {
    for (size_t i = 0; i < count; ++i) {
      if (in.chosen && in.chosen != i + 1) continue;
      auto m = std::move(load_part(in, i).module);
      instructions += m->instruction_count(), computations += m->computations().size();
      for (const VerifyError& e : verify_module(*m, 20, how, Moment::kSettled, precision)) {
        size_t at = e.inst.valid() ? definition_of(in.modules[i], m->inst_name(e.inst)) : std::string_view::npos;
        const bool placed = at != std::string_view::npos;
        if (placed) at += static_cast<size_t>(in.modules[i].data() - in.text.data());
        const Place place = placed ? place_of(in.text, at) : Place();
        const std::string hint(verify_hint(e.rule));
        list.push_back({{"rule", e.rule},
                        {"line", placed ? Json(place.line) : Json()},
                        {"column", placed ? Json(place.column) : Json()},
                        {"message", e.message},
                        {"hint", hint}});
        if (json) continue;
        std::string message = fmt::format("{} [{}]", e.message, e.rule);
        if (placed)
          std::cerr << render(file, in.text, {at, message, hint, {}});
        else
          fmt::print(stderr, "{}: error: {}\n{}", file, message, hint.empty() ? "" : "  hint: " + hint + "\n");
      }
    }
  } catch (const SyntaxFailure& e) {
    if (!json) throw;
    for (const auto& entry : e.entries())
      list.push_back({{"rule", "syntax"},
                      {"line", entry.line},
                      {"column", entry.column},
                      {"message", entry.message},
                      {"hint", entry.hint}});
    print_json({{"verified", false}, {"instructions", Json()}, {"computations", Json()}, {"errors", list}});
    return kBad;
  }
  if (json)
    print_json(
        {{"verified", list.empty()}, {"instructions", instructions}, {"computations", computations}, {"errors", list}});
  else if (list.empty())
    fmt::print("{}: verified, {} instructions in {} computations\n", file, instructions, computations);
  return list.empty() ? kYes : kNo;
}

namespace {

// The text that `fmt` gives a file: its leading comment, then each module without loss.
std::string formatted(const std::string& file) {
  Input in = read_input(file);
  size_t count = read_parts(&in);
  if (in.log) fail(FailureKind::kUnsupported, "{}: text with log prefixes is not formatted", file);
  // The comment lines that the file begins with stay; others would be lost.
  size_t head = 0;
  while (head < in.text.size()) {
    size_t end = std::min(in.text.find('\n', head), in.text.size());
    std::string_view line = std::string_view(in.text).substr(head, end - head);
    size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos &&
        (line.substr(first, 2) != "//" || line.substr(first).starts_with("// -----")))
      break;
    head = std::min(end + 1, in.text.size());
  }
  std::string_view rest = std::string_view(in.text).substr(head);
  for (size_t at = 0; at < rest.size(); ++at) {
    if (rest[at] == '"' || rest[at] == '\'') {
      size_t stop = at + 1;
      while (stop < rest.size() && rest[stop] != rest[at]) stop += rest[stop] == '\\' ? 2 : 1;
      at = stop;
    } else if (rest.substr(at, 2) == "//" && !rest.substr(at).starts_with("// -----")) {
      fail(FailureKind::kUnsupported, "{}:{}: a comment would be lost", file, place_of(in.text, head + at).line);
    } else if (rest.substr(at, 2) == "/*") {
      size_t stop = rest.find("*/", at);
      if (!rest.substr(at).starts_with("/*index=") && !rest.substr(at).starts_with("/*i"))
        fail(FailureKind::kUnsupported, "{}:{}: a comment would be lost", file, place_of(in.text, head + at).line);
      at = stop == std::string_view::npos ? rest.size() : stop + 1;
    }
  }
  std::string out = in.text.substr(0, head);
  for (size_t i = 0; i < count; ++i) {
    if (i) out += "// -----\n\n";
    out += lossless_text(*load_part(in, i).module);
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace

int cmd_fmt(const std::vector<std::string>& files, bool check, bool write, bool json) {
  if (json && !check && !write) fail(FailureKind::kUsage, "--json goes with --check or --write");
  Json list = Json::array();
  if (check == write && check) fail(FailureKind::kUsage, "--check and --write exclude each other");
  int code = kYes;
  for (const std::string& file : files) {
    std::string text = formatted(file);
    if (check || write) {
      const bool same = text == read_file(file);
      list.push_back({{"file", file}, {"formatted", same}, {"written", write && !same}});
      if (same) continue;
      if (write) write_file(file, text);
      if (!json) fmt::print("{} {}\n", file, write ? "formatted" : "is not formatted");
      if (check) code = kNo;
    } else {
      std::cout << text;
    }
  }
  if (json) print_json({{"formatted", code == kYes}, {"files", list}});
  return code;
}

int cmd_stats(const std::string& file, bool json, bool bench) {
  Input in = read_input(file);
  auto m = load(file);
  const Universe& u = m->u();
  std::map<std::string, size_t> ops, types, calls;
  int64_t parameters = 0, literals = 0;
  size_t elided = 0, collectives = 0;
  for (CompId c : m->computations())
    for (InstId i : m->comp(c).order) {
      if (!m->alive(i)) continue;
      ++ops[std::string(op_text(m->op(i)))];
      ++types[std::string(type_name(m->shape(i).type))];
      if (m->op(i) == Opcode::Parameter && c == m->entry()) parameters += u.leaf_bytes(m->shape_id(i));
      if (m->op(i) == Opcode::Constant) literals += u.leaf_bytes(m->shape_id(i)), elided += m->literal(i).elided;
      collectives += op_info(m->op(i)).cls == OpClass::Collective;
      if (m->op(i) == Opcode::CustomCall) ++calls[std::string(u.text(m->attrs(i).text(Attr::custom_call_target)))];
    }
  Json out{{"module", m->name()},
           {"computations", m->computations().size()},
           {"instructions", m->instruction_count()},
           {"parameter_bytes", parameters},
           {"literal_bytes", literals},
           {"elided_constants", elided},
           {"collectives", collectives},
           {"opcodes", ops},
           {"types", types},
           {"custom_calls", calls},
           {"distinct_shapes", u.shape_count()},
           {"distinct_attributes", u.attrs_count()},
           {"parse_ms", Json()},
           {"print_ms", Json()}};
  if (bench) {
    double parse = 1e300, print = 1e300;
    // A fifth of a second to warm caches, heap and clock, then the best of five.
    auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < 5;) {
      auto t0 = std::chrono::steady_clock::now();
      ParseOptions options;
      options.file = in.label;
      auto again = parse_module(in.text, std::make_shared<Universe>(), options);
      auto t1 = std::chrono::steady_clock::now();
      std::string text = print_module(*again);
      auto t2 = std::chrono::steady_clock::now();
      if (t2 - begin < std::chrono::milliseconds(200)) continue;
      ++k;
      parse = std::min(parse, std::chrono::duration<double>(t1 - t0).count() * 1e3),
      print = std::min(print, std::chrono::duration<double>(t2 - t1).count() * 1e3);
    }
    out["parse_ms"] = parse, out["print_ms"] = print;
  }
  if (json) {
    print_json(out);
    return kYes;
  }
  fmt::print("module {}: {} instructions in {} computations\n", m->name(), m->instruction_count(),
             m->computations().size());
  fmt::print("parameters {}, literals {}{}\n", human_bytes(parameters), human_bytes(literals),
             elided ? fmt::format(", {} constants elided", elided) : "");
  std::vector<std::pair<std::string, size_t>> sorted(ops.begin(), ops.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  for (const auto& [name, n] : sorted) fmt::print("  {:>7} {}\n", n, name);
  for (const auto& [name, n] : calls) fmt::print("custom-call {} × {}\n", name, n);
  if (bench)
    fmt::print("parse_ms {:.3f}  print_ms {:.3f}\n", out["parse_ms"].get<double>(), out["print_ms"].get<double>());
  return kYes;
}

}  // namespace hlo
