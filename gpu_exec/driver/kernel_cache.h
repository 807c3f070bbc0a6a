// Compiled kernels kept between runs, by what they were compiled from: the LLVM IR, the processor and LLVM's version.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace hlo {

// The folder (made when something is kept in it); empty: nothing is kept. At first what HLO_KERNEL_CACHE says.
void set_kernel_cache(std::string folder);

// What `make` gives for `source` on `target` ("x86-64 znver3 +avx2…", "sm_90a ptx85"), or gave before.
std::string cached_code(std::string_view source, std::string_view target, const std::function<std::string()>& make);

// The number under `count` that `measure` gives for `what` on `target` (a library's version and a card), or gave
// before: kept beside the code. Not measured where there is one to choose from.
size_t kept_choice(std::string_view what, std::string_view target, size_t count,
                   const std::function<size_t()>& measure);

}  // namespace hlo
