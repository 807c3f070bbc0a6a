#include "viewer/engine/read_modules.h"

#include "replay/record/files/input.h"

namespace hlo {

std::vector<std::unique_ptr<Module>> read_modules(const std::string& label, std::string bytes) {
  Input input = input_of(label, std::move(bytes));
  std::vector<std::unique_ptr<Module>> out;
  const size_t parts = read_parts(&input);
  for (size_t k = 0; k < parts; ++k) out.push_back(load_part(input, k, {}).module);
  return out;
}

}  // namespace hlo
