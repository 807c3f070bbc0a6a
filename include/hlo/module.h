// Modules, their computations and instructions.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/array.h"
#include "hlo/error.h"
#include "hlo/export.h"
#include "hlo/shape.h"
#include "hlo/universe.h"

HLO_API_BEGIN

class Module;
class Computation;

struct SourceFrame {
  std::string file, function;  // function: empty where the module does not say it
  int32_t line = 0, column = 0;
};

// One instruction of a module: a handle of a few bytes that keeps the module alive. Every call throws Error(usage)
// once the instruction has been removed. Texts that are views live as long as the universe.
class HLO_EXPORT Instruction {
 public:
  // It keeps this number as long as it is the same instruction, through edits and passes; of a recording's modules it
  // is the same in every stage.
  uint32_t id() const { return id_; }
  Module module() const;
  bool alive() const;  // not removed; never throws
  bool operator==(const Instruction& o) const { return body_ == o.body_ && id_ == o.id_; }

  std::string_view name() const;
  std::string_view opcode() const;
  std::string_view shape_text() const;  // `f32[2,3]{1,0}`
  Shape shape() const;
  Computation computation() const;
  bool is_root() const;
  size_t operand_count() const;
  Instruction operand(size_t i) const;
  std::vector<Instruction> operands() const;
  std::vector<Instruction> users() const;  // each once, in XLA's order
  std::vector<Instruction> control_predecessors() const;
  std::vector<Computation> called_computations() const;
  // All that stand behind the operands but metadata and control dependencies, in print order: (`dimensions`,
  // `{0,1}`).
  std::vector<std::pair<std::string, std::string>> attributes() const;
  std::optional<std::string> attribute(std::string_view key) const;
  std::string metadata_text() const;        // `{op_name="…" …}`; empty where there is none
  std::string op_name() const;              // empty where there is none
  std::vector<SourceFrame> source() const;  // innermost first; empty where it is unknown
  std::optional<int64_t> parameter_number() const;
  std::optional<Array> literal() const;  // of a constant of one array that is not elided
  std::string text() const;              // its line

  // --- edits. The module may be wrong between them: verify() tells. ---
  void set_name(std::string_view name);  // throws Error(usage) where another instruction has it
  void set_operand(size_t i, const Instruction& value);
  void replace_all_uses_with(const Instruction& value);  // as an operand and as a root
  void remove();                                         // throws Error(usage) where it has users or is a root
  // `text` as HLO text has it behind `key=`. Throws Error(bad_input) where the opcode does not take it. `metadata`
  // too.
  void set_attribute(std::string_view key, std::string_view text);
  void erase_attribute(std::string_view key);  // nothing happens where it has none
  void make_root();

 private:
  friend struct Access;
  friend class Computation;
  friend class Module;
  Instruction(std::shared_ptr<struct ModuleBody> body, uint32_t id);
  std::shared_ptr<struct ModuleBody> body_;
  uint32_t id_ = 0;
};

class HLO_EXPORT Computation {
 public:
  uint32_t id() const { return id_; }
  Module module() const;
  bool alive() const;
  bool operator==(const Computation& o) const { return body_ == o.body_ && id_ == o.id_; }

  std::string_view name() const;
  bool is_entry() const;
  Instruction root() const;
  std::vector<Instruction> parameters() const;    // by number
  std::vector<Instruction> instructions() const;  // in order of creation; of a scheduled module, the schedule
  std::vector<Instruction> post_order() const;    // operands before users, as HLO text has them
  std::vector<Instruction> callers() const;
  std::string text() const;

  // An instruction of a line of HLO text, `%s.1 = f32[4]{0} add(%a, %b), metadata={…}`: operands are this
  // computation's, called computations the module's. Where the shape is left out (`s.1 = add(a, b)`) it is inferred.
  // The name is made unique; it is not the root unless the line begins with `ROOT`. Throws Error(bad_input) with the
  // place in the line.
  Instruction add(std::string_view line);

 private:
  friend struct Access;
  friend class Instruction;
  friend class Module;
  Computation(std::shared_ptr<struct ModuleBody> body, uint32_t id);
  std::shared_ptr<struct ModuleBody> body_;
  uint32_t id_ = 0;
};

// All instructions of a module as arrays, one entry an instruction, computations in order and instructions in each
// one's order. Plain data of the moment: later edits do not show.
struct Columns {
  std::vector<uint32_t> id, computation;
  std::vector<uint8_t> opcode;            // index into opcodes()
  std::vector<uint8_t> element_type;      // index into element_types()
  std::vector<uint8_t> root;              // 1 for roots
  std::vector<int32_t> rank;              // 0 for tuples and tokens
  std::vector<int64_t> bytes;             // -1 where they do not fit into 63 bits
  std::vector<uint64_t> operand_offsets;  // one more than instructions: where each one's operands begin
  std::vector<uint32_t> operands;         // ids
  std::vector<uint64_t> name_offsets;     // one more than instructions
  std::string names;                      // all names, one behind the other
  size_t size() const { return id.size(); }
};
// Every opcode by its name. Columns::opcode counts in this list.
HLO_EXPORT const std::vector<std::string_view>& opcodes();

struct ParseOptions {
  std::string file = "<text>";  // for messages; its ending tells `.pbtxt`
  bool permissive = false;      // unknown attributes and header fields are kept as they stand
  int max_errors = 20;
};

struct PrintOptions {
  std::string style = "default";  // default, long, short, canonical, fingerprint
  bool metadata = true;
  bool large_constants = false;  // arrays of more than 10 elements in full
  bool compact_gte = false;      // `%t#1` in the place of get-tuple-elements
  bool lossless = false;         // reading it back gives the same module, bit for bit
};

struct Finding {
  std::string rule;          // `shapes`, `operands` …
  std::string message;       // names instruction and computation
  int64_t instruction = -1;  // id; -1: of the module
};

struct VerifyOptions {
  size_t limit = 20;
  std::string layouts = "auto";    // auto, binding, free: do layouts count?
  std::string precision = "auto";  // auto, uniform, mixed: may f32 stand beside bf16?
};

// A handle; copies are the same module, clone() makes another one.
class HLO_EXPORT Module {
 public:
  // HLO text of any year, a binary or text proto (HloModuleProto, HloProto, HloSnapshot), our JSON, each gzipped or
  // not: the content tells. Throws Error(bad_input) with every diagnostic, Error(usage) where there are several
  // modules in it.
  static Module parse(std::string_view bytes, const ParseOptions& options = {}, const Universe& universe = Universe());
  // All modules of a text that holds several (`// -----` between them).
  static std::vector<Module> parse_all(std::string_view bytes, const ParseOptions& options = {},
                                       const Universe& universe = Universe());
  // As the command line names one: a path, FILE@2 of several, DIR:MODULE:STAGE of a recording (of one module DIR:NAME).
  static Module parse_file(const std::string& path, const ParseOptions& options = {},
                           const Universe& universe = Universe());
  static Module from_proto(std::string_view bytes, const Universe& universe = Universe());
  // An empty one, for Builder: it has no entry yet.
  static Module make(std::string_view name, const Universe& universe = Universe());

  Universe universe() const;
  bool operator==(const Module& other) const { return body_ == other.body_; }
  Module clone() const;                             // in the same universe; instructions keep their ids
  Module copied_into(const Universe& other) const;  // by its proto: ids are made anew

  std::string name() const;
  void set_name(std::string_view name);
  bool is_scheduled() const;
  int64_t replica_count() const;
  int64_t num_partitions() const;
  std::string header_text() const;  // the line `HloModule …`

  Computation entry() const;  // throws Error(usage) where there is none
  std::vector<Computation> computations() const;
  Computation computation(std::string_view name) const;  // throws Error(usage) with the nearest one
  std::vector<Instruction> instructions() const;         // of all computations
  Instruction instruction(std::string_view name) const;  // `%` in front or not; throws Error(usage)
  Instruction instruction(uint32_t id) const;            // throws Error(usage)
  size_t instruction_count() const;
  Columns columns() const;
  // Parameters and result of the entry, flattened: what run() takes and gives.
  std::vector<Shape> input_shapes() const;
  std::vector<Shape> output_shapes() const;

  // A computation of HLO text, `%add (x: f32[], y: f32[]) -> f32[] { … }`. Throws Error(bad_input).
  Computation add_computation(std::string_view text);
  void set_entry(const Computation& computation);
  void remove_unused_computations();

  std::string text(const PrintOptions& options = {}) const;
  std::string json() const;
  // `format`: pb, pb.gz or pbtxt.
  std::string to_proto(std::string_view format = "pb") const;
  std::vector<Finding> verify(const VerifyOptions& options = {}) const;  // empty: all is well
  void require_valid(const VerifyOptions& options = {}) const;           // throws Error(bad_input) with the findings

 private:
  friend struct Access;
  friend class Instruction;
  friend class Computation;
  explicit Module(std::shared_ptr<struct ModuleBody> body);
  std::shared_ptr<struct ModuleBody> body_;
};

HLO_API_END
