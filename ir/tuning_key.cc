#include "ir/tuning_key.h"

#include <fmt/format.h>

#include "ir/base/farm_hash.h"
#include "ir/print.h"

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
