#include "ir/query/loop_config.h"

#include "ir/backend_config.h"

namespace hlo {

LoopConfig loop_config(const Module& m, InstId loop) {
  LoopConfig out;
  const std::string_view text = m.u().text(m.attrs(loop).text(Attr::backend_config));
  if (text.find("\"known_") == std::string_view::npos) return out;
  const BackendConfig config = BackendConfig::parse(text, nullptr, false);
  if (!config.is_object()) return out;
  // Protobuf leaves out what is zero.
  auto whole = [](const BackendConfig& part, const char* key) { return static_cast<int64_t>(number(part, key, 0)); };
  auto part = [&](const char* key) {
    const auto at = config.find(key);
    return at != config.end() && at->is_object() ? &*at : nullptr;
  };
  if (const BackendConfig* trips = part("known_trip_count"))
    if (const int64_t n = whole(*trips, "n"); n >= 0) out.trips = n;
  if (const BackendConfig* counter = part("known_induction_variable")) out.counter = whole(*counter, "tuple_index");
  if (const BackendConfig* from = part("known_init_step")) out.init_step = {whole(*from, "init"), whole(*from, "step")};
  return out;
}

}  // namespace hlo
