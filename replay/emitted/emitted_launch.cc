#include "replay/emitted/emitted_launch.h"

#include <cstring>

#include "ir/base/check.h"

namespace hlo {

size_t load_emitted(Device& device, const EmittedProgram& program, const EmittedThunk& thunk) {
  for (size_t k = 0; k < thunk.parameters.size(); ++k)
    if (!thunk.parameters[k].pointer)
      fail(
          FailureKind::kUnsupported,
          "parameter {} of {} is no pointer but {} bytes: a tensor map, which the host makes (cuTensorMapEncodeTiled); "
          "they are not made here",
          k, thunk.kernel, thunk.parameters[k].bytes);
  return device.load_foreign(program.ptx.at(thunk.file),
                             {thunk.kernel, thunk.file, thunk.grid, thunk.threads, thunk.shared_bytes});
}

void launch_emitted(Device& device, size_t number, const EmittedThunk& thunk,
                    const std::function<char*(const XlaSlice&)>& place) {
  std::vector<std::vector<char>> arguments;
  for (const EmittedArgument& a : thunk.arguments) {
    const auto address = reinterpret_cast<uint64_t>(place(a.slice));
    std::vector<char>& bytes = arguments.emplace_back(sizeof address);
    std::memcpy(bytes.data(), &address, sizeof address);
  }
  device.launch_foreign(number, arguments);
}

}  // namespace hlo
