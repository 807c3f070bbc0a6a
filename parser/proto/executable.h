// Compiled programs that somebody serialized (jax's and torch_xla's compilation caches, PjRt executables): the HLO
// modules that they carry beside machine code.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

struct CarriedModule {
  std::string name;
  std::string_view bytes;  // an HloModuleProto, in the bytes that were given
};

// Every module in a message of protobuf's wire format, whatever the message is: which one differs by release and
// device, that a field of it holds an HloModuleProto does not. `bytes` may stand behind a message with its length in
// front (ifrt's own). Empty where there is none, as in programs for TPUs.
std::vector<CarriedModule> carried_modules(std::string_view bytes);

}  // namespace hlo
