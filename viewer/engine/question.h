// A question's arguments, read strictly: what is missing, of another type or out of range is refused in words.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

using Json = nlohmann::ordered_json;

// Module m of the session, state s of that module.
struct StateRef {
  uint32_t module = 0, state = 0;
  auto operator<=>(const StateRef&) const = default;
};
inline Json json_of(StateRef at) { return {{"module", at.module}, {"state", at.state}}; }

// All functions throw Failure(kUsage). `key` null or absent is "not given".
class Question {
 public:
  explicit Question(std::string_view text);
  const std::string& method() const { return method_; }
  // Refuses arguments whose names are not among these.
  void only(std::initializer_list<std::string_view> names) const;

  bool has(const char* key) const;
  int64_t number(const char* key, int64_t least, int64_t most) const;
  int64_t number_or(const char* key, int64_t least, int64_t most, int64_t absent) const {
    return has(key) ? number(key, least, most) : absent;
  }
  bool flag_or(const char* key, bool absent) const;
  std::string text(const char* key) const;
  std::string text_or(const char* key, std::string absent) const { return has(key) ? text(key) : std::move(absent); }
  StateRef state(const char* key) const;
  std::optional<StateRef> state_if(const char* key) const;
  std::vector<std::string> texts(const char* key) const;            // of those not given none
  std::map<std::string, std::string> words(const char* key) const;  // likewise
  std::map<std::string, int64_t> numbers(const char* key) const;    // each at least 0; likewise

 private:
  const nlohmann::json& value(const char* key) const;
  nlohmann::json all_;
  std::string method_;
};

}  // namespace hlo
