#include "ir/query/find_instruction.h"

#include "ir/opcode.h"

namespace hlo {

InstId find_instruction(const Module& m, std::string_view name) {
  if (name.starts_with('%')) name.remove_prefix(1);
  const StrId id = m.u().find_str(name);
  if (!id.valid()) return InstId();
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && m[i].name == id) return i;
  return InstId();
}

std::string did_you_mean(std::string_view near) {
  return near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
}

void NearestName::see(std::string_view known) {
  if (const int d = edit_distance(known, wanted_); d < distance_) distance_ = d, nearest_ = known;
}

}  // namespace hlo
