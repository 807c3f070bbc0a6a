// Where in a program an instruction comes from. Modules of today keep it in tables of their header (FileNames,
// FunctionNames, FileLocations, StackFrames), which the metadata's stack_frame_id refers to; older ones in the metadata
// itself, source_file and source_line.
#pragma once
#include <set>
#include <span>
#include <string>
#include <utility>
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

// Is that a file of a library (site-packages, the sources of jax, flax and torch, Python's own), no program of the
// user's?
bool is_library_file(std::string_view path);

// The innermost frame of the user's own code; where all are a library's, the innermost. Unknown where the tables or the
// metadata do not say.
SourceLine source_line(const Module& m, InstId inst);
// All frames, innermost first; one where only the metadata tells, none where nothing does. Tables whose frames call
// each other end where a frame comes again.
std::vector<SourceLine> source_stack(const Module& m, InstId inst);
// The operation that a kernel is about: the product or convolution of a fusion's body, else the kernel itself.
InstId main_operation(const Module& m, InstId inst);
// Of what runs as one kernel: the line of its product, else its own, else that of the operation of its body which
// stands nearest to the result.
SourceLine kernel_source_line(const Module& m, InstId inst);
// The frames of the operation whose line that is.
std::vector<SourceLine> kernel_source_stack(const Module& m, InstId inst);
// `at model.py:12 layer`: a row of what --frames prints.
std::string frame_text(const SourceLine& line);

// Lines as a table of a whole program shows them: where one line has most of all the weight because many call it, as a
// helper around a convolution, the line that calls it says more.
class UserFrames {
 public:
  explicit UserFrames(const Module& m) : m_(m) {}
  // Weights: of kernels, in any unit; seconds of a cost. The module must live as long.
  UserFrames(const Module& m, std::span<const std::pair<InstId, double>> weights);
  // As kernel_source_line, without the helpers' frames.
  SourceLine kernel(InstId inst) const;
  // The frame of a stack that is shown; unknown where none is the user's own.
  SourceLine of(const std::vector<SourceLine>& stack) const;
  // Lines that are left out, `layers.py:19`.
  const std::set<std::string>& helpers() const { return helpers_; }

 private:
  const Module& m_;
  std::set<std::string> helpers_;  // as SourceLine::text()
};

// op_name of the metadata; empty where there is none.
std::string op_name_of(const Module& m, InstId inst);
// The same as kernel_source_line for op_name.
std::string kernel_op_name(const Module& m, InstId inst);
// `jit(f)/decoder/mlp` of `jit(f)/decoder/mlp/dot_general`: where the operation stands, without the operation.
std::string scope_of(std::string_view op_name);

}  // namespace hlo
