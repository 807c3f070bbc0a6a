// Search within a state: words that must all hold.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/print/print.h"
#include "ir/query/source_lines.h"
#include "replay/os/terminal.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// `part` is in lower case.
bool holds_text(std::string_view text, std::string_view part) {
  auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

struct SearchWord {
  enum Key { kAny, kName, kOpcode, kKind, kShape, kScope, kAttribute, kComputation, kId, kBytes, kFlops, kUsers } key;
  bool negated = false;
  std::string text;  // lower case
  std::string compare;
  double number = 0;
};

// 1.5M, 3, 2G: thousands.
double search_number(std::string_view text, std::string_view word) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  constexpr std::string_view kUnits = "kmgt";
  if (error == std::errc() && rest.size() == 1)
    if (size_t unit = kUnits.find(lower(rest)[0]); unit != std::string_view::npos)
      return value * std::pow(1000.0, static_cast<double>(unit + 1));
  if (error != std::errc() || !rest.empty())
    fail(FailureKind::kUsage, "'{}' holds no number: it is written bytes>1M, flops>=2.5G, user>3", printable(word));
  return value;
}

SearchWord search_word(std::string_view word) {
  static constexpr std::pair<std::string_view, SearchWord::Key> kTexts[] = {
      {"name", SearchWord::kName},      {"op", SearchWord::kOpcode},   {"kind", SearchWord::kKind},
      {"shape", SearchWord::kShape},    {"scope", SearchWord::kScope}, {"attr", SearchWord::kAttribute},
      {"in", SearchWord::kComputation}, {"id", SearchWord::kId}};
  static constexpr std::pair<std::string_view, SearchWord::Key> kNumbers[] = {
      {"bytes", SearchWord::kBytes}, {"flops", SearchWord::kFlops}, {"user", SearchWord::kUsers}};
  SearchWord out{};
  std::string_view rest = word;
  if (rest.starts_with('-') && rest.size() > 1) out.negated = true, rest.remove_prefix(1);
  size_t end = 0;
  while (end < rest.size() && rest[end] >= 'a' && rest[end] <= 'z') ++end;
  const std::string_view key = rest.substr(0, end), behind = rest.substr(end);
  for (const auto& [name, which] : kNumbers)
    if (key == name && !behind.empty() && std::string_view("<>=").find(behind[0]) != std::string_view::npos) {
      out.key = which;
      out.compare = behind.substr(0, behind.size() > 1 && behind[1] == '=' ? 2 : 1);
      out.number = search_number(behind.substr(out.compare.size()), word);
      return out;
    }
  for (const auto& [name, which] : kTexts)
    if (key == name && behind.starts_with(':')) {
      out.key = which, out.text = lower(behind.substr(1));
      return out;
    }
  out.key = SearchWord::kAny, out.text = lower(rest);
  if (out.text.starts_with('%')) out.text.erase(0, 1);
  return out;
}

// Words between blanks; what stands in quotes is one.
std::vector<SearchWord> search_words(std::string_view query) {
  std::vector<SearchWord> out;
  std::string word;
  bool quoted = false;
  auto end = [&] {
    if (!word.empty()) out.push_back(search_word(word));
    word.clear();
  };
  for (char c : query) {
    if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == ' ' || c == '\t' || c == '\n'))
      end();
    else
      word += c;
  }
  end();
  constexpr size_t kMostWords = 32;
  if (out.size() > kMostWords) fail(FailureKind::kUsage, "a search has at most {} words", kMostWords);
  return out;
}

class Searcher {
 public:
  explicit Searcher(const Module& m) : m_(m), u_(m.u()), cost_(m) {}

  bool fits(InstId i, const std::vector<SearchWord>& words) {
    return std::all_of(words.begin(), words.end(), [&](const SearchWord& w) { return holds(i, w) != w.negated; });
  }
  std::string_view op_name(InstId i) const { return u_.text(StrId(u_[m_[i].meta].op_name)); }

 private:
  static bool compared(double value, const SearchWord& w) {
    if (w.compare == ">") return value > w.number;
    if (w.compare == "<") return value < w.number;
    if (w.compare == ">=") return value >= w.number;
    if (w.compare == "<=") return value <= w.number;
    return value == w.number;
  }

  // What many instructions share is looked at once.
  template <class Id, class F>
  static bool once(std::unordered_map<Id, bool>& known, Id id, const F& ask) {
    auto found = known.find(id);
    if (found == known.end()) found = known.emplace(id, ask()).first;
    return found->second;
  }

  bool holds(InstId i, const SearchWord& w) {
    switch (w.key) {
      case SearchWord::kName:
        return holds_text(m_.inst_name(i), w.text);
      case SearchWord::kOpcode:
        return op_text(m_.op(i)) == w.text;
      case SearchWord::kKind:
        return lower(u_.text(m_.attrs(i).text(Attr::kind))) == w.text;
      case SearchWord::kShape:
        return holds_text(u_.shape_text(m_.shape_id(i)), w.text);
      case SearchWord::kScope:
        return holds_text(op_name(i), w.text);
      case SearchWord::kAttribute:
        return m_[i].attrs.valid() &&
               once(attributes_[&w], m_[i].attrs, [&] { return holds_text(print_attributes(m_, i, {}), w.text); });
      case SearchWord::kComputation:
        return holds_text(m_.comp_name(m_.parent(i)), w.text);
      case SearchWord::kId:
        return std::to_string(i.value) == w.text;
      case SearchWord::kBytes: {
        const Checked bytes = u_.bytes(m_.shape_id(i));
        return compared(static_cast<double>(bytes.capped()), w);
      }
      case SearchWord::kFlops:
        return compared(cost_.of(i).flops, w);
      case SearchWord::kUsers:
        return compared(static_cast<double>(m_.user_count(i)), w);
      case SearchWord::kAny:
        break;
    }
    return holds_text(m_.inst_name(i), w.text) || holds_text(op_name(i), w.text) || op_text(m_.op(i)) == w.text;
  }

  const Module& m_;
  const Universe& u_;
  CostAnalysis cost_;
  std::unordered_map<const SearchWord*, std::unordered_map<AttrsId, bool>> attributes_;
};

Json q_search(PageSession& session, const Question& q) {
  q.only({"at", "query", "limit"});
  const StateRef at = q.state("at");
  const std::string query = q.text("query");
  const auto limit = static_cast<size_t>(q.number_or("limit", 0, 100000, 200));
  constexpr size_t kLongest = 2000;
  if (query.size() > kLongest) fail(FailureKind::kUsage, "the search is longer than {} bytes", kLongest);
  const std::vector<SearchWord> words = search_words(query);
  std::shared_ptr<OpenState> s = session.state(at);
  const Module& m = s->m;
  Searcher searcher(m);
  Json hits = Json::array();
  size_t total = 0;
  if (!words.empty())
    for (InstId i : s->in_order()) {
      if (!searcher.fits(i, words)) continue;
      if (total++ >= limit) continue;
      hits.push_back({{"id", i.value},
                      {"name", m.inst_name(i)},
                      {"opcode", op_text(m.op(i))},
                      {"shape", m.u().shape_text(m.shape_id(i))},
                      {"computation", m.comp_name(m.parent(i))},
                      {"op_name", searcher.op_name(i)},
                      {"line", s->line_of(i)}});
    }
  return {{"hits", std::move(hits)}, {"total", total}};
}

}  // namespace

std::vector<NamedMethod> search_methods() { return {{"search", q_search}}; }

}  // namespace hlo
