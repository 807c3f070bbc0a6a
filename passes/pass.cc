#include "passes/pass.h"

#include <algorithm>
#include <charconv>

#include "ir/opcode.h"
#include "passes/passes.h"

namespace hlo {

namespace {
constexpr PassInfo kPasses[] = {
#define HLO_PASS(function, name, aliases, options, atomic, summary) {name, aliases, summary, options, atomic, function},
#define HLO_PASS_BY_USERS(function, name, aliases, options, atomic, summary) \
  {name, aliases, summary, options, atomic, function, true},
#define HLO_NO_PASS(name, aliases, summary) {name, aliases, summary, "", "", nullptr},
#include "passes/passes.def"
#undef HLO_PASS
#undef HLO_PASS_BY_USERS
#undef HLO_NO_PASS
};

template <class F>
void each_word(std::string_view text, F f) {
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    if (end) f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}
}  // namespace

namespace {
bool is_number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}
}  // namespace

std::vector<PassOption> options_of(const PassInfo& pass) {
  std::vector<PassOption> out;
  each_word(pass.options, [&](std::string_view word) {
    size_t eq = word.find('=');
    PassOption o{PassOption::kWord, word.substr(0, eq), word.substr(eq + 1)};
    if (o.absent == "true" || o.absent == "false") o.type = PassOption::kFlag;
    if (is_number(o.absent)) o.type = PassOption::kNumber;
    out.push_back(o);
  });
  return out;
}

std::string checked_option(const PassInfo& pass, const std::string& name, const std::string& value) {
  for (const PassOption& o : options_of(pass)) {
    if (o.name != name) continue;
    if (o.type == PassOption::kFlag) {
      if (value.empty() || value == "1" || value == "true") return "true";
      if (value == "0" || value == "false") return "false";
      fail(FailureKind::kUsage, "option {} of pass '{}' is true or false, not '{}'", name, pass.name, value);
    }
    if (o.type == PassOption::kNumber && !is_number(value))
      fail(FailureKind::kUsage, "option {} of pass '{}' takes a number, not '{}'", name, pass.name, value);
    return value;
  }
  fail(FailureKind::kUsage, "pass '{}' has no option '{}'; it has: {}", pass.name, name,
       pass.options.empty() ? "none" : pass.options);
}

void take_options(const PassInfo& pass, const std::map<std::string, std::string>& given,
                  std::map<std::string, std::string>* options) {
  for (const PassOption& o : options_of(pass))
    if (auto at = given.find(std::string(o.name)); at != given.end()) (*options)[at->first] = at->second;
}

void complete_options(const PassInfo& pass, std::map<std::string, std::string>* options) {
  for (auto& [name, value] : *options) value = checked_option(pass, name, value);
  for (const PassOption& o : options_of(pass)) options->try_emplace(std::string(o.name), o.absent);
}

const std::string& PassContext::word(std::string_view key) const {
  auto found = options.find(std::string(key));
  HLO_CHECK(found != options.end(), "the pass's row has no option {}", key);
  return found->second;
}

int64_t PassContext::number(std::string_view key) const {
  const std::string& text = word(key);
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void PassContext::note(const Module& m, std::string_view rule, std::initializer_list<InstId> insts,
                       std::string_view text) {
  if (keep_notes && notes.size() < max_notes) notes.add(m, rule, insts, text, 0);
}

bool PassContext::spend(const Module& m, std::string_view rule, std::initializer_list<InstId> insts,
                        std::string_view text) {
  if (fuel <= 0) return false;
  --fuel;
  ++rewrites;
  last_rewrite_ = rule;
  last_instruction_ = insts.size() ? *insts.begin() : InstId();
  if (keep_notes && notes.size() < max_notes) notes.add(m, rule, insts, text, rewrites);
  return true;
}

void NoteLog::add(const Module& m, std::string_view rule, std::initializer_list<InstId> insts, std::string_view text,
                  int64_t rewrite) {
  Entry e{};
  // A pass has few rules, and mostly the one that it had.
  if (!entries_.empty() && part(entries_.back().rule_at, entries_.back().rule_size) == rule) {
    e.rule_at = entries_.back().rule_at;
  } else {
    e.rule_at = static_cast<uint32_t>(texts_.size());
    texts_ += rule;
  }
  e.rule_size = static_cast<uint32_t>(rule.size());
  e.text_at = static_cast<uint32_t>(texts_.size()), e.text_size = static_cast<uint32_t>(text.size());
  texts_ += text;
  e.first = static_cast<uint32_t>(named_.size());
  for (InstId i : insts)
    if (i.valid()) named_.emplace_back(i, m[i].name);
  e.count = static_cast<uint32_t>(named_.size()) - e.first;
  e.rewrite = rewrite;
  entries_.push_back(e);
}

void NoteLog::append(const NoteLog& inner, int64_t rewrites) {
  const uint32_t texts = static_cast<uint32_t>(texts_.size()), named = static_cast<uint32_t>(named_.size());
  for (Entry e : inner.entries_) {
    e.rule_at += texts, e.text_at += texts, e.first += named;
    if (e.rewrite) e.rewrite += rewrites;
    entries_.push_back(e);
  }
  named_.insert(named_.end(), inner.named_.begin(), inner.named_.end());
  texts_ += inner.texts_;
}

void NoteLog::end_at(int64_t rewrite) {
  for (Entry& e : entries_) e.rewrite = std::min(e.rewrite, rewrite);
}

std::vector<Note> NoteLog::notes(const Universe& u) const {
  std::vector<Note> out;
  out.reserve(entries_.size());
  for (const Entry& e : entries_) {
    Note& n = out.emplace_back();
    n.rule = part(e.rule_at, e.rule_size), n.text = part(e.text_at, e.text_size), n.rewrite = e.rewrite;
    n.names.reserve(e.count), n.insts.reserve(e.count);
    for (uint32_t k = e.first; k < e.first + e.count; ++k)
      n.insts.push_back(named_[k].first), n.names.emplace_back(u.text(named_[k].second));
  }
  return out;
}

std::span<const PassInfo> all_passes() { return kPasses; }

namespace {
const PassInfo* override_pass = nullptr;
}

void override_pass_for_test(const PassInfo* pass) { override_pass = pass; }

const PassInfo* find_pass(std::string_view name) {
  if (override_pass && override_pass->name == name) return override_pass;
  for (const PassInfo& p : kPasses) {
    if (p.name == name) return &p;
    bool hit = false;
    each_word(p.aliases, [&](std::string_view alias) { hit |= alias == name; });
    if (hit) return &p;
  }
  return nullptr;
}

std::string_view nearest_pass(std::string_view name) {
  std::string_view best;
  int distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  auto consider = [&](std::string_view candidate) {
    if (int d = edit_distance(name, candidate); d < distance) distance = d, best = candidate;
  };
  for (const PassInfo& p : kPasses) {
    consider(p.name);
    each_word(p.aliases, consider);
  }
  return best;
}

}  // namespace hlo
