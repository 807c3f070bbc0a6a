// Where in a program an instruction comes from. Modules of today keep it in tables of their header (FileNames,
// FunctionNames, FileLocations, StackFrames), which the metadata's stack_frame_id refers to; older ones in the metadata
// itself, source_file and source_line.
#pragma once
#include <string>
#include <vector>

#include "ir/module.h"

namespace hlo {

struct SourceLine {
  std::string file;      // as the compiler was told; empty: unknown
  std::string function;  // empty where the module does not say it
  int32_t line = 0, column = 0;
  bool known() const { return !file.empty(); }
  // `model.py:12`, the whole path; empty where it is unknown.
  std::string text() const;
  // The same with the last two parts of a long path, for tables.
  std::string brief() const;
  bool operator==(const SourceLine&) const = default;
};

// The innermost frame. Unknown where the tables or the metadata do not say.
SourceLine source_line(const Module& m, InstId inst);
// All frames, innermost first; one where only the metadata tells, none where nothing does. Tables whose frames call
// each other end where a frame comes again.
std::vector<SourceLine> source_stack(const Module& m, InstId inst);
// Of what runs as one kernel: its own line, or that of the operation of its body which stands nearest to the result.
SourceLine kernel_source_line(const Module& m, InstId inst);

// op_name of the metadata; empty where there is none.
std::string op_name_of(const Module& m, InstId inst);
// The same as kernel_source_line for op_name.
std::string kernel_op_name(const Module& m, InstId inst);
// `jit(f)/decoder/mlp` of `jit(f)/decoder/mlp/dot_general`: where the operation stands, without the operation.
std::string scope_of(std::string_view op_name);

}  // namespace hlo
