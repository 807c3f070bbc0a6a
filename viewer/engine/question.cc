#include "viewer/engine/question.h"

#include <algorithm>
#include <cmath>

#include "ir/base/check.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace {

constexpr size_t kMostDepth = 16;  // of brackets; questions need four

// Before anything is read: what nests deeper is none of ours.
void check_depth(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (quoted) {
      if (c == '\\') ++k;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostDepth) fail(FailureKind::kUsage, "the question is nested too deep");
    } else if ((c == ']' || c == '}') && depth) {
      --depth;
    }
  }
}

std::string shown_value(const nlohmann::json& v) {
  std::string text = v.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return printable(text);
}

int64_t whole_number(const nlohmann::json& v, const std::string& what, int64_t least, int64_t most) {
  bool fits = false;
  int64_t n = 0;
  if (v.is_number_unsigned()) {
    fits = v.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
    if (fits) n = static_cast<int64_t>(v.get<uint64_t>());
  } else if (v.is_number_integer()) {
    fits = true, n = v.get<int64_t>();
  } else {
    fail(FailureKind::kUsage, "{} must be a whole number, not {}", what, shown_value(v));
  }
  if (!fits || n < least || n > most)
    fail(FailureKind::kUsage, "{} must be {} to {}, not {}", what, least, most, shown_value(v));
  return n;
}

std::string whole_text(const nlohmann::json& v, const std::string& what) {
  if (!v.is_string()) fail(FailureKind::kUsage, "{} must be a text, not {}", what, shown_value(v));
  return v.get<std::string>();
}

}  // namespace

Question::Question(std::string_view text) {
  check_depth(text);
  all_ = nlohmann::json::parse(text, nullptr, false);
  if (!all_.is_object()) fail(FailureKind::kUsage, "the question is no JSON object");
  if (!has("method")) fail(FailureKind::kUsage, "the question has no method");
  method_ = whole_text(all_["method"], "method");
}

void Question::only(std::initializer_list<std::string_view> names) const {
  for (const auto& [key, value] : all_.items())
    if (key != "method" && std::find(names.begin(), names.end(), key) == names.end())
      fail(FailureKind::kUsage, "{} takes no argument '{}'{}", method_, printable(key.substr(0, 40)),
           names.size() == 0 ? "" : fmt::format("; it takes {}", fmt::join(names, ", ")));
}

bool Question::has(const char* key) const {
  auto found = all_.find(key);
  return found != all_.end() && !found->is_null();
}

const nlohmann::json& Question::value(const char* key) const {
  if (!has(key)) fail(FailureKind::kUsage, "{} needs the argument '{}'", method_, key);
  return *all_.find(key);
}

int64_t Question::number(const char* key, int64_t least, int64_t most) const {
  return whole_number(value(key), key, least, most);
}

bool Question::flag_or(const char* key, bool absent) const {
  if (!has(key)) return absent;
  const nlohmann::json& v = value(key);
  if (!v.is_boolean()) fail(FailureKind::kUsage, "{} must be true or false, not {}", key, shown_value(v));
  return v.get<bool>();
}

std::string Question::text(const char* key) const { return whole_text(value(key), key); }

StateRef Question::state(const char* key) const {
  const nlohmann::json& v = value(key);
  if (!v.is_object() || !v.contains("module") || !v.contains("state") || v.size() != 2)
    fail(FailureKind::kUsage, "{} must be a state, {{\"module\":M,\"state\":S}}, not {}", key, shown_value(v));
  StateRef out;
  out.module = static_cast<uint32_t>(whole_number(v["module"], fmt::format("{}.module", key), 0, INT32_MAX));
  out.state = static_cast<uint32_t>(whole_number(v["state"], fmt::format("{}.state", key), 0, INT32_MAX));
  return out;
}

std::optional<StateRef> Question::state_if(const char* key) const {
  if (!has(key)) return std::nullopt;
  return state(key);
}

std::vector<std::string> Question::texts(const char* key) const {
  std::vector<std::string> out;
  if (!has(key)) return out;
  const nlohmann::json& v = value(key);
  if (!v.is_array()) fail(FailureKind::kUsage, "{} must be a list of texts, not {}", key, shown_value(v));
  for (const nlohmann::json& one : v) out.push_back(whole_text(one, fmt::format("what {} holds", key)));
  return out;
}

std::map<std::string, std::string> Question::words(const char* key) const {
  std::map<std::string, std::string> out;
  if (!has(key)) return out;
  const nlohmann::json& v = value(key);
  if (!v.is_object()) fail(FailureKind::kUsage, "{} must be an object of texts, not {}", key, shown_value(v));
  for (const auto& [name, one] : v.items()) out[name] = whole_text(one, fmt::format("{}.{}", key, printable(name)));
  return out;
}

std::map<std::string, int64_t> Question::numbers(const char* key) const {
  std::map<std::string, int64_t> out;
  if (!has(key)) return out;
  const nlohmann::json& v = value(key);
  if (!v.is_object()) fail(FailureKind::kUsage, "{} must be an object of numbers, not {}", key, shown_value(v));
  for (const auto& [name, one] : v.items())
    out[name] = whole_number(one, fmt::format("{}.{}", key, printable(name)), 0, INT64_MAX);
  return out;
}

}  // namespace hlo
