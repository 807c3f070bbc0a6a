// What jax prints of its compilations: JAX_LOG_COMPILES (jax/_src/interpreters/pxla.py, jax/_src/compiler.py) and
// JAX_EXPLAIN_CACHE_MISSES (jax/_src/pjit.py). Only what a line says.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

struct JaxArgument {
  std::string shape;     // as HLO writes it: `f32[4,16]`; as jax does where its type is none of HLO's
  bool weak = false;     // its type gives way to others
  std::string sharding;  // in jax's words: `spec P('d',)`; empty: not given
};

struct JaxCompile {
  std::string function;  // `step`
  size_t line = 0;       // of the log, counted from 1
  std::vector<JaxArgument> arguments;
  double seconds = -1;  // of XLA; -1: not told
  double tracing = -1, lowering = -1;
  std::string name;     // `jit(step)`, of the line that ends it; empty: none does
  size_t end_line = 0;  // of that line; 0: none
  std::string key;      // of the persistent cache; empty: not told
  bool from_cache = false;
  // Why jax's own cache did not have it, where it says so: the lines as they stand.
  std::vector<std::string> explained;
  std::string place;  // `loop.py:24`, where it was called; empty: not told
};

struct JaxLog {
  std::vector<JaxCompile> compiles;  // in order
  // Whose times alone are told, without the line that names its arguments (jax's log from a level on); in order.
  std::vector<JaxCompile> only_timed;
};
JaxLog read_jax_log(std::string_view text);

}  // namespace hlo
