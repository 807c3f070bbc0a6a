// XLA's backend_config dictionaries: keys may be missing where they have their defaults, numbers may be written as
// strings (protobuf's JSON).
#pragma once
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "ir/types/shape.h"

namespace hlo {

using BackendConfig = nlohmann::json;

// The part of that name, or the whole where the older form has no such part; an empty object where it is no JSON.
inline BackendConfig backend_config(std::string_view text, const char* part) {
  BackendConfig config = BackendConfig::parse(text, nullptr, false);
  if (config.is_object() && config.contains(part)) config = config[part];
  return config.is_object() ? config : BackendConfig::object();
}

inline double number(const BackendConfig& j, const char* key, double absent) {
  auto at = j.find(key);
  if (at == j.end()) return absent;
  if (at->is_number()) return at->get<double>();
  return at->is_string() ? atof(at->get<std::string>().c_str()) : absent;
}
inline bool flag(const BackendConfig& j, const char* key) {
  auto at = j.find(key);
  return at != j.end() && at->is_boolean() && at->get<bool>();
}
inline std::string word(const BackendConfig& j, const char* key, const char* absent) {
  auto at = j.find(key);
  return at != j.end() && at->is_string() ? at->get<std::string>() : absent;
}
// Whole numbers without a point, as protobuf's JSON has them.
inline void put_number(nlohmann::ordered_json& j, const char* key, double value) {
  if (value == static_cast<double>(static_cast<int64_t>(value)))
    j[key] = static_cast<int64_t>(value);
  else
    j[key] = value;
}
inline Dims list(const BackendConfig& j, const char* key) {
  Dims out;
  auto at = j.find(key);
  if (at == j.end() || !at->is_array()) return out;
  for (const BackendConfig& e : *at)
    out.push_back(e.is_string() ? atoll(e.get<std::string>().c_str()) : e.is_number() ? e.get<int64_t>() : 0);
  return out;
}

}  // namespace hlo
