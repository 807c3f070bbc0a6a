#include "replay/judge/arguments/inputs.h"

#include <algorithm>

#include "ir/base/hash.h"
#include "ir/base/memory.h"
#include "ir/eval/evaluator.h"
#include "ir/program/buffer.h"
#include "parser/parser.h"
#include "replay/judge/arguments/fit.h"
#include "replay/judge/arguments/memory.h"
#include "replay/judge/arguments/own_constants.h"

namespace hlo {

std::vector<Value> literal_arguments(const Module& m, const std::string& text, const std::string& path) {
  // To the parser each literal stands where it stands in the file.
  Universe& u = m.u();
  std::vector<Value> out;
  size_t at = 0;
  for (InstId p : m.comp(m.entry()).params) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string::npos)
      fail(FailureKind::kUsage, "{}: {} literals for {} parameters", path, out.size(), m.comp(m.entry()).params.size());
    // To the end of the line outside of braces and parentheses.
    size_t end = at;
    int depth = 0;
    for (; end < text.size() && (depth || text[end] != '\n'); ++end) {
      if (text[end] == '{' || text[end] == '(') ++depth;
      if (text[end] == '}' || text[end] == ')') --depth;
    }
    std::string_view one = std::string_view(text).substr(at, end - at);
    // A shape in front is allowed: `f32[2] {1, 2}`.
    ShapeId shape = m.shape_id(p);
    if (size_t bracket = one.find(']');
        isalpha(static_cast<unsigned char>(one[0])) && bracket < one.find_first_of("{(") && one.find('[') < bracket)
      one.remove_prefix(std::min(one.find(' ', bracket), one.size()));
    try {
      ParseOptions where;
      where.file = path;
      where.first_line =
          static_cast<size_t>(std::count(text.cbegin(), text.cbegin() + (one.data() - text.data()), '\n'));
      out.push_back(value_of_literal(u, parse_literal(one, shape, u, where)));
    } catch (const Failure& e) {
      fail(e.kind(), "{}\nit is the value of parameter {} ({}), a {}", e.what(), out.size(), m.inst_name(p),
           u.shape_text_plain(shape));
    }
    at = end;
  }
  return out;
}

void check_memory(const Module& m) {
  double bytes = memory_need(m, true, false).parameters;
  AvailableMemory there = available_memory();
  if (bytes > static_cast<double>(there.bytes))
    fail(FailureKind::kUsage, "the parameters take {}, and {} is {}", human_bytes(static_cast<int64_t>(bytes)),
         human_bytes(there.bytes), there.limit);
}

namespace {

std::function<void(const ElidedTold&)>& elided_listener() {
  static std::function<void(const ElidedTold&)> listener;
  return listener;
}

}  // namespace

void hear_elided(std::function<void(const ElidedTold&)> listener) { elided_listener() = std::move(listener); }

void settle_elided(Module& m, const InputOptions& o) {
  Universe& u = m.u();
  if (m.elided_constants().empty()) return;
  const std::string own = take_own_values(m, o.place);
  const std::vector<InstId> elided = m.elided_constants();
  if (o.fill_elided == "refuse" && !elided.empty())
    fail(FailureKind::kUnsupported,
         "{}: constant {} of shape {} is elided ({{...}}): its value is unknown, so there is no right answer; made-up "
         "values were not asked for",
         o.label, m.inst_name(elided[0]), u.shape_text_plain(m.shape_id(elided[0])));
  for (InstId i : elided) {
    // Far from the parameters' leaves.
    const uint64_t leaf = (uint64_t{1} << 32) + (hash_bytes(m.inst_name(i)) >> 32);
    Value v = seeded_input(u, m.shape_id(i), o.seed, leaf, o.positive);
    if (o.fill_elided == "zeros" && v.data)
      std::fill(v.data->begin(), v.data->end(), '\0');
    else
      fit_value(m, i, &v);
    m.set_literal(i, u.literal(literal_of_value(u, v)));
  }
  const size_t made = o.fill_elided.empty() ? elided.size() : 0;
  if ((made || !own.empty()) && elided_listener())
    elided_listener()({o.label, made, made ? std::string(m.inst_name(elided[0])) : "", o.seed, own});
}

}  // namespace hlo
