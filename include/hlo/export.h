// How the public names are declared. Users write hlo::Module: `api` is an inline namespace. The library's own sources
// have classes of the same names below it, and say api::Module there.
#pragma once

#define HLO_EXPORT __attribute__((visibility("default")))
#ifdef HLO_LIBRARY_SOURCE
#define HLO_INLINE_API
#else
#define HLO_INLINE_API inline
#endif

// Inline here is inline wherever it is opened again.
namespace hlo {
HLO_INLINE_API namespace api { struct Access; }  // of the library's own sources
}  // namespace hlo
