#include "ir/analysis/schedule/messages.h"

#include <nlohmann/json.hpp>

namespace hlo {
namespace {

using Json = nlohmann::ordered_json;

// Of the protos' fields (xla/service/gpu/backend_configs.proto) those that XLA writes though they were never set.
const Json& unset_config() {
  static const Json config = {{"operation_queue_id", "0"},
                              {"collective_backend_config", Json::object()},
                              {"force_earliest_schedule", false},
                              {"reification_cost", Json::array()},
                              {"device_type", "DEVICE_TYPE_INVALID"}};
  return config;
}
const Json& unset_part() {
  static const Json config = {{"is_sync", false},
                              {"is_pipelined", false},
                              {"backend", "DEFAULT"},
                              {"collectives_mode", "COLLECTIVES_MODE_INVALID"},
                              {"kernel_strategy", "KERNEL_STRATEGY_DEFAULT"}};
  return config;
}

StrId with_field(const Module& m, InstId start, const char* field, Json value) {
  const StrId had = m.attrs(start).text(Attr::backend_config);
  const Json given = Json::parse(had.valid() ? m.u().text(had) : "{}", nullptr, false);
  if (!given.is_object()) return {};
  Json part = unset_part(), whole = unset_config();
  if (const auto it = given.find("collective_backend_config"); it != given.end()) {
    if (!it->is_object()) return {};
    part.update(*it);
  }
  part[field] = std::move(value);
  whole.update(given);
  whole["collective_backend_config"] = std::move(part);
  return m.u().str(whole.dump());
}

}  // namespace

bool starts_message(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::AllGatherStart:
    case Opcode::AllReduceStart:
    case Opcode::CollectivePermuteStart:
      return true;
    case Opcode::AsyncStart:
      return op_info(m.op(m.comp(m.called(i)[0]).root)).cls == OpClass::Collective;
    default:
      return false;
  }
}

bool ends_message(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::AllGatherDone:
    case Opcode::AllReduceDone:
    case Opcode::CollectivePermuteDone:
      return true;
    case Opcode::AsyncDone:
      return starts_message(m, m.operand(i, 0));
    default:
      return false;
  }
}

bool waits_at_once(const Module& m, InstId start) {
  const StrId text = m.attrs(start).text(Attr::backend_config);
  if (!text.valid() || m.u().text(text).find("is_sync") == std::string_view::npos) return false;
  const Json config = Json::parse(m.u().text(text), nullptr, false);
  const auto part = config.is_object() ? config.find("collective_backend_config") : config.end();
  if (!config.is_object() || part == config.end() || !part->is_object()) return false;
  const auto sync = part->find("is_sync");
  return sync != part->end() && sync->is_boolean() && sync->get<bool>();
}

StrId config_with_sync(const Module& m, InstId start, bool is_sync) { return with_field(m, start, "is_sync", is_sync); }
StrId config_with_strategy(const Module& m, InstId message, std::string_view strategy) {
  return with_field(m, message, "kernel_strategy", std::string(strategy));
}

}  // namespace hlo
