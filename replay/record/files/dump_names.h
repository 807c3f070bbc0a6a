// The names of the files that XLA dumps, and its record of passes (module_NNNN.*.metadata.textproto).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hlo {

struct DumpName {
  int module = 0, number = -1;
  // `name`: of the module; empty where the file's name does not tell where it ends.
  std::string name, pipeline, pass, next, rest;
  bool stage = false;
  int64_t time = -1;  // microseconds (--xla_dump_include_timestamp); -1: not there
};

// [1690000000000000.]module_0012.jit_f.[extra.]0007.simplification.after_algsimp.before_dce.txt; names may hold dots.
// False where it is no file of a module; `stage`: is it the text of a stage; `rest`: the name behind the number else.
// Texts without a number (before_optimizations, after_spmd_partitioner, before_config_assignment) tell their module.
bool parse_name(const std::string& file, DumpName* out);

// The name of the .hlo.pb that may lie beside the text of a stage; empty where the name is not that of a text.
std::string proto_beside(const std::string& text);

struct PassRun {
  std::string pipeline, pass, file;
  int64_t us = -1;               // without the passes of a pipeline that it is; -1: not told
  int64_t begin = -1, end = -1;  // microseconds since 1970; -1: not told
  bool changed = false;
};

// Blocks of XLA's module_NNNN.*.metadata.textproto.
std::vector<PassRun> read_metadata(const std::string& text);

}  // namespace hlo
