// What commands read: a file, `-`, a stage of a folder (DIR:STAGE, DIR:MODULE:STAGE: replay/record/files/run.h), one of
// several modules (FILE@2), protos.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/module.h"
#include "parser/excerpt/excerpt.h"
#include "parser/proto/proto_reader.h"

namespace hlo {

struct Input {
  std::string label;                      // for messages
  std::string text;                       // bytes of the file, log prefixes taken off
  std::vector<std::string_view> modules;  // parts of `text`, one a module
  bool log = false;                       // had log prefixes: what stands behind a module is not of it
  size_t chosen = 0;                      // FILE@N: N, counted from 1; 0 when none was chosen
  bool permissive = false;  // excerpts are read (parser/excerpt/excerpt.h); several headers are several modules
};

// Tolerant reading, for all that a process reads (`--permissive`): whatever LoadOptions say.
void read_permissively();
bool reads_permissively();
// Who is told of each excerpt that is read; nobody at first. `label`: the file, as it was named.
using HearExcerpt = std::function<void(const std::string& label, const Excerpt& excerpt)>;
void hear_excerpts(HearExcerpt hear);
// A text of which the caller knows that it is one module: tolerantly where read_permissively() was said.
std::unique_ptr<Module> parse_text(std::string_view text, const std::shared_ptr<Universe>& universe,
                                   const ParseOptions& options);

// Throws Failure(kIo, kUsage).
Input read_input(const std::string& spec);
// The same of bytes that are there already; `label`: for messages, its ending tells protos as text.
Input input_of(std::string label, std::string bytes, bool permissive = false);

struct LoadOptions {
  bool permissive = false;  // unknown attributes and header fields are kept as they stand, excerpts read
  std::shared_ptr<Universe> universe;
  int max_errors = 20;
  UserOrder users = UserOrder::kMemory;  // of protos
};

// What a snapshot held beside its module.
struct Loaded {
  std::unique_ptr<Module> module;
  bool of_2019 = false;  // a text of that time (parser/excerpt/source_text.h)
  std::vector<LitId> arguments;
  LitId result;
  bool in_memory_order = false;  // ProtoContents
  Excerpt excerpt;               // what tolerant reading tells; nothing where the text is whole
};

// Finds the modules in the text of an input, which must stay where it is from now on; their number.
size_t read_parts(Input* input);

// The one module of an input. Throws when the file has several and none is chosen.
Loaded load_all(const std::string& spec, const LoadOptions& options = {});
std::unique_ptr<Module> load(const std::string& spec, const LoadOptions& options = {});
// Module number `which` of an input that has been read.
Loaded load_part(const Input& input, size_t which, const LoadOptions& options = {});

}  // namespace hlo
