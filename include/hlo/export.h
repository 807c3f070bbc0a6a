// How the public names are declared. Users write hlo::Module: `api` is an inline namespace. The library's own sources
// have classes of the same names below it, and say api::Module there.
#pragma once

#define HLO_EXPORT __attribute__((visibility("default")))
#ifdef HLO_LIBRARY_SOURCE
#define HLO_API_BEGIN namespace hlo::api {
#else
#define HLO_API_BEGIN namespace hlo::inline api {
#endif
#define HLO_API_END }

HLO_API_BEGIN
struct Access;  // of the library's own sources
HLO_API_END
