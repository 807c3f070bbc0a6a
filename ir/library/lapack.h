// Calls of LAPACK and of the GPU's libraries in its place, as jax makes them (jaxlib's typed FFI: `lapack_sgesdd_ffi`,
// `cusolver_gesvdj_ffi`): which routine is meant, and what its operands, results and configuration must be.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace hlo {

// What a routine is called for, one vocabulary for both kinds of library.
struct LapackOptions {
  char job = 'V';             // singular and Schur vectors: A (all), S (the first ones), V (yes) or N (none)
  bool lower = true;          // which triangle is read
  bool left = true;           // a product's or solution's side; left eigenvectors
  bool right = true;          // right eigenvectors
  char trans = 'N';           // N, T or C
  bool unit = false;          // is the diagonal 1?
  bool turned = false;        // cusolver_gesvd of a wide matrix: the library is given its transpose
  int64_t low = 1, high = 0;  // gehrd's rows, from 1
};

struct LapackCall {
  std::string_view routine;  // without the type's letter, by its real name: "orgqr" also for ungqr
  std::string_view library;  // "lapack", "cusolver", "cuhybrid", "cusparse" or "cu"
  char letter = 0;           // lapack's: s, d, c, z
  LapackOptions options;
};

// The routine that such a target names, with empty options; none for other targets.
std::optional<LapackCall> lapack_call(std::string_view target);

// The same of a custom-call, with its options. `why` (if not null) gets what is wrong with its operands, results or
// configuration: names what is there and what was expected; empty where it can be run.
std::optional<LapackCall> lapack_call(const Module& m, InstId call, std::string* why);

}  // namespace hlo
