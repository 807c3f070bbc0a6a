#include "ir/library/tuning_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/base/farm_hash.h"
#include "ir/print/print.h"

namespace hlo {

std::string tuning_text(const Module& m, InstId instruction) {
  PrintOptions o = PrintOptions::Fingerprint();
  o.backend_config = o.names_within = true;
  return print_instruction(m, instruction, o);
}

namespace {

std::string digits(const std::string& text) {
  const Hash128 h = farm_fingerprint128(text);
  return fmt::format("{:016x}{:016x}", h.high, h.low);
}

}  // namespace

std::string tuning_key(const Module& m, InstId instruction) { return digits(tuning_text(m, instruction)); }

std::vector<std::string> tuning_keys(const Module& m, InstId instruction) {
  const std::string text = tuning_text(m, instruction);
  std::vector<std::string> out = {digits(text)};
  const std::string_view own = m.u().text(m.attrs(instruction).text(Attr::backend_config));
  const size_t at = own.empty() ? std::string::npos : text.rfind(own);
  nlohmann::json config = nlohmann::json::parse(own, nullptr, false);
  if (at == std::string::npos || !config.is_object()) return out;
  // Keys that came in 2025 and 2026, with what XLA prints where nobody set them; sorted, as it does there.
  auto add = [&] {
    std::string other = text;
    const std::string key = digits(other.replace(at, own.size(), config.dump()));
    if (std::find(out.begin(), out.end(), key) == out.end()) out.push_back(key);
  };
  add();
  const std::pair<const char*, nlohmann::json> defaults[] = {{"operation_queue_id", "0"},
                                                             {"force_earliest_schedule", false},
                                                             {"reification_cost", nlohmann::json::array()},
                                                             {"device_type", "DEVICE_TYPE_INVALID"}};
  for (const auto& [name, value] : defaults) {
    if (config.contains(name)) continue;
    config[name] = value;
    add();
  }
  return out;
}

std::string kernel_content_key(const Module& m, InstId instruction) {
  PrintOptions o = PrintOptions::Fingerprint();
  o.names_within = true;
  std::string text = print_instruction(m, instruction, o);
  // Of the fusion itself, in front of what it calls.
  const size_t kind = text.find(", kind=");
  if (m.op(instruction) == Opcode::Fusion && kind < text.find(", calls="))
    text.erase(kind, text.find(',', kind + 1) - kind);
  return digits(text);
}

}  // namespace hlo
