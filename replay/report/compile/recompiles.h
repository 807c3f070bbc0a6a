// Modules that are one function compiled several times, and what differs between them: a size, a type, a weak type, a
// sharding, a donated argument, a constant that is baked in, a flag, or the program itself.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/module.h"
#include "replay/record/logs/jax_log.h"

namespace hlo {

struct CompiledArgument {
  std::string name;                   // the program's own for it; empty: unknown
  std::string type;                   // `f32`; of what is no array its whole shape
  std::vector<int64_t> dims;          // of the whole array, where a device holds a part of it
  std::string layout;                 // `{1,0}`; empty: not told
  std::string sharding;               // empty: none
  std::optional<bool> weak, donated;  // nothing: not told
};

struct CompiledConstant {
  std::string name, shape, source;  // source: the line that reads it
  std::string value;                // short; empty: the text elides it
  uint64_t hash = 0;                // of all of it; 0 where it is elided
};

// One compilation, as a dump, an entry of a cache or a log tells of it.
struct Compiled {
  std::string where;     // `DIR:0012`, a file, `LOG:line 12`
  std::string function;  // `step`
  std::string key;       // of jax's persistent cache; empty: not told
  double seconds = -1;   // that it took; -1: unknown
  std::string seconds_from;
  bool whole_seconds = false;  // `seconds` is rounded down to one
  bool from_cache = false;     // nothing was compiled
  std::vector<CompiledArgument> arguments;
  int64_t partitions = 1, replicas = 1;
  std::set<std::string> lines;  // of the function's own code; empty: the module does not tell
  // The program without names, metadata and values of constants: line by line; empty: only a log tells of it.
  std::vector<std::string> program;
  std::vector<CompiledConstant> constants;
  std::map<std::string, std::string> flags;  // as a dump's .debug_options has them, but for those on dumping
  bool flags_told = false;
  const JaxCompile* said = nullptr;  // what jax printed of it; it must live as long
};

// `function` and `lines` alone, by which same_functions goes.
void describe_function(const Module& m, Compiled* out);
// Places in `all` that are one function: of one name, and where frames tell, of lines that they share. Those that came
// from a cache are in none.
std::vector<std::vector<size_t>> same_functions(const std::vector<Compiled>& all);
// Of a module as it is in front of the passes, or optimised (then for one device of several).
void describe_compiled(const Module& m, Compiled* out);
// Of what jax printed alone.
Compiled compiled_of_log(const JaxCompile& said, const std::string& label);
// Lines `name: value` of a dump's .debug_options.
std::map<std::string, std::string> flags_of(std::string_view debug_options);

// Why one was compiled though another was there.
struct RecompileReason {
  // dimension, type, weak-type, arguments, sharding, devices, donation, layout, constant, elided-constant, flag,
  // static, program, function, unknown
  std::string kind;
  std::string where;                // `dimension 0 of argument 1, x`
  std::vector<std::string> values;  // that were seen, in order
  std::string source;               // a line; empty: none
  size_t compilations = 0;          // that it makes, alone or with `with`
  double seconds = 0;               // of these, as far as known
  size_t seconds_known = 0;
  std::vector<std::string> with;  // reasons of the same compilations, in words
};

struct RecompiledFunction {
  std::string function, place;  // place: of its code, the first line; empty: unknown
  std::vector<size_t> which;    // of the list, in order
  double seconds = 0;           // of all but the first, as far as known
  size_t seconds_known = 0;
  bool whole_seconds = false;
  std::vector<RecompileReason> reasons;  // those that make the most first
  size_t again() const { return which.size() - 1; }
};

// Functions that were compiled more than once, those that cost the most first. Each compilation behind the first is
// held against the earlier one that differs least. Compilations that came from a cache are left out.
std::vector<RecompiledFunction> recompiled(const std::vector<Compiled>& all);
// How two differ: all reasons, with the values of the first and of the second.
std::vector<RecompileReason> differences(const Compiled& a, const Compiled& b);
// What can be done, a sentence.
std::string recompile_advice(const std::string& kind);

}  // namespace hlo
