// What libtpu says where a kernel asks for more of the memory on a TPU's chip (vmem) than it may have: who asks, for
// what, and what would fit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

// A part of vmem that a kernel holds, as libtpu lists it.
struct VmemPart {
  std::string what;           // `input 0`, `output 0`, or libtpu's words for what it is
  std::string window, whole;  // shapes of a block and of its array; empty: it is none
  int64_t bytes = 0;          // with all its copies
  int copies = 1;             // levels of buffering
  std::string kernel;         // the instruction's name
};

struct VmemOverflow {
  std::string instruction;              // that asks for it; empty: not told
  std::string opcode, op_name, source;  // of it, as far as the text has them
  bool custom_call = false;             // a kernel of Pallas (tpu_custom_call)
  bool scoped = false;                  // over a limit that a flag sets; else over all that the chip has
  int64_t asked = 0, limit = 0;         // bytes
  std::vector<VmemPart> parts;          // the first 40
};

// Bytes of `96.00M`, `912.0K`, `1.5G` as libtpu writes them; -1 where it is none.
int64_t bytes_in_words(std::string_view text);
// Of all that a program printed; nothing where vmem did not run out.
std::optional<VmemOverflow> vmem_overflow(std::string_view log);
// What would fit, a sentence each, none of it tried.
std::vector<std::string> vmem_advice(const VmemOverflow& v);
// The limit, in KiB, with which it would fit; 0 where no limit helps.
int64_t vmem_limit_kib(const VmemOverflow& v);

}  // namespace hlo
