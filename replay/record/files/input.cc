#include "replay/record/files/input.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "dump/json.h"
#include "parser/excerpt/source_text.h"
#include "parser/parser.h"
#include "parser/proto/proto_reader.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/record/files/file_kind.h"
#include "replay/record/files/held_modules.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

std::atomic<bool> g_permissive{false};
HearExcerpt g_hear;

bool all_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return isdigit(static_cast<unsigned char>(c)); });
}

// Views into the text are taken once it rests in its final place.
void split(Input& in) {
  in.modules = looks_like_proto(in.text) ? std::vector<std::string_view>{in.text}
                                         : split_modules(in.text, in.permissive || in.log);
}

// Of torch_xla's graphs the one whose hash begins so, or whose module is called so.
std::optional<Input> graph_of(const std::string& file, const std::string& text, const std::string& wanted) {
  Input in = input_of(file, text);
  split(in);
  for (size_t k = 0; k < in.modules.size(); ++k)
    if (in.modules[k].find("// Graph Hash: " + wanted) != std::string_view::npos ||
        in.modules[k].find("HloModule " + wanted + ",") != std::string_view::npos)
      in.chosen = k + 1;
  if (!in.chosen) return {};
  in.modules.clear();  // views of a text that moves
  return in;
}

// FILE, or FILE:MODULE, where FILE holds modules among other things.
Input held_input(const std::string& file, std::string text, const std::string& wanted) {
  std::optional<HeldModules> held = held_modules(file, text);
  if (!held && wanted.empty()) return input_of(file, std::move(text));
  if (!held && text.find("\nGraph Hash:") != std::string::npos)
    if (std::optional<Input> graph = graph_of(file, text, wanted)) return std::move(*graph);
  if (!held) held = program_modules(text);
  const HeldModule& m = one_held_module(*held, file, wanted);
  Input in;
  in.label = file + ":" + m.label(), in.text = m.bytes;
  return in;
}

// Of bytes that are no message with a module: a compiled program has one inside. Nothing where none is there.
std::optional<Input> from_program(const Input& input) {
  HeldModules held = program_modules(input.text);
  if (held.modules.empty()) return {};
  const HeldModule& m = one_held_module(held, input.label, "");
  Input in;
  in.label = input.label + ":" + m.label(), in.text = m.bytes;
  return in;
}

// `-`, and pipes by name (`<(…)`, /dev/stdin): what is asked for twice can be read but once. Kept by programs of ours
// alone: elsewhere the same name may have something else to say later.
const std::string& text_of_pipe(const std::string& spec) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard<std::mutex> lock(mutex);
  auto at = known.find(spec);
  if (at == known.end() || !may_fork()) at = known.insert_or_assign(spec, read_file(spec)).first;
  return at->second;
}

Input read(const std::string& spec) {
  std::error_code error;
  if (spec == "-" || fs::is_fifo(spec, error) || fs::is_socket(spec, error))
    return held_input(spec, text_of_pipe(spec), "");
  if (fs::is_regular_file(spec, error)) return held_input(spec, read_file(spec), "");
  size_t at = spec.rfind('@');
  if (at != std::string::npos && all_digits(spec.substr(at + 1)) && fs::is_regular_file(spec.substr(0, at), error)) {
    Input in = input_of(spec, read_file(spec.substr(0, at)));
    in.chosen = std::stoul(spec.substr(at + 1));
    return in;
  }
  if (std::optional<Selector> folder = split_selector(spec)) {
    StageChoice stage = select_stage(*folder);
    return input_of(stage.module.folder + "/" + stage.file, read_confined(stage.module.folder, stage.file));
  }
  if (std::optional<HeldSpec> held = split_held(spec))
    return held_input(held->file, read_file(held->file), held->wanted);
  fail(FailureKind::kIo, "cannot read {}: no such file", spec);
}

// XLA calls snapshots in text form `.txt`.
bool proto_text(const Input& in) {
  std::string_view label = in.label, text = in.text;
  if (label.ends_with(".pbtxt") || label.ends_with(".textproto")) return true;
  return text.starts_with("hlo_module {") || text.starts_with("hlo {");
}

}  // namespace

Input read_input(const std::string& spec) { return read(spec); }

void read_permissively() { g_permissive = true; }
bool reads_permissively() { return g_permissive; }
void hear_excerpts(HearExcerpt hear) { g_hear = std::move(hear); }

std::unique_ptr<Module> parse_text(std::string_view text, const std::shared_ptr<Universe>& universe,
                                   const ParseOptions& options) {
  if (!reads_permissively()) return parse_module(text, universe, options);
  Excerpt excerpt;
  auto m = parse_excerpt(text, universe, options, &excerpt);
  if (excerpt.any() && g_hear) g_hear(options.file, excerpt);
  return m;
}

Input input_of(std::string label, std::string text, bool permissive) {
  Input in;
  in.label = std::move(label);
  in.permissive = permissive || reads_permissively();
  // HLO text, a proto or JSON may stand packed; what is inside tells.
  if (text.starts_with("\x1f\x8b")) text = gunzip(text, in.label);
  std::string plain;
  if (!looks_like_proto(text) && strip_log_prefixes(text, &plain, in.permissive)) {
    in.log = true;
    text = std::move(plain);
  }
  require_module(in.label, text);
  if (std::string graphs; graphs_as_modules(text, &graphs)) text = std::move(graphs);
  in.text = std::move(text);
  return in;
}

size_t read_parts(Input* in) {
  split(*in);
  if (in->chosen > in->modules.size())
    fail(FailureKind::kUsage, "{}: the file holds {} module(s)", in->label, in->modules.size());
  return in->modules.size();
}

Loaded load_part(const Input& input, size_t which, const LoadOptions& options) {
  auto universe = options.universe ? options.universe : std::make_shared<Universe>();
  Progress progress("reading " + input.label);
  Loaded out;
  if (looks_like_proto(input.text) || proto_text(input)) {
    ProtoContents contents;
    try {
      contents = read_proto(input.text, input.label, universe, options.users);
    } catch (const Failure& e) {
      if (e.kind() != FailureKind::kIo) throw;
      if (std::optional<Input> program = from_program(input)) {
        contents = read_proto(program->text, program->label, universe, options.users);
      } else {
        if (is_binary_graphdef(input.text)) refuse_kind(input.label, FileKind::kBinaryGraphDef);
        throw;
      }
    }
    out.module = std::move(contents.module);
    out.arguments = std::move(contents.arguments);
    out.result = contents.result;
    out.in_memory_order = contents.in_memory_order;
    return out;
  }
  ParseOptions parse;
  parse.file = input.label;
  if (looks_like_module_json(input.text)) {
    StackTables stack;
    std::string text = text_of_json(input.text, input.label, &stack);
    parse.file += " (as text)";
    out.module = parse_module(text, universe, parse);
    out.module->edit_stack() = std::move(stack);
    return out;
  }
  parse.permissive = options.permissive || input.permissive;
  parse.max_errors = options.max_errors;
  parse.text_behind = input.log;
  std::string_view part = input.modules[which];
  parse.first_line = static_cast<size_t>(std::count(input.text.data(), part.data(), '\n'));
  if (parse.permissive) {
    out.module = parse_excerpt(part, universe, parse, &out.excerpt);
    if (out.excerpt.any() && g_hear) g_hear(input.label, out.excerpt);
  } else {
    try {
      out.module = parse_module(part, universe, parse);
    } catch (const SyntaxFailure& e) {
      if (!looks_like_excerpt(part)) throw;
      throw SyntaxFailure(
          std::string(e.what()) +
              "\n  hint: an excerpt? --permissive (permissive=True) reads what is there and reports what is "
              "missing",
          e.entries());
    }
  }
  out.of_2019 = is_text_of_2019(part);
  return out;
}

Loaded load_all(const std::string& spec, const LoadOptions& options) {
  Input input = read_input(spec);
  read_parts(&input);
  if (input.modules.size() > 1 && !input.chosen)
    fail(FailureKind::kUsage, "{} holds {} modules; name one as {}@1 … {}@{}", input.label, input.modules.size(),
         input.label, input.label, input.modules.size());
  return load_part(input, input.chosen ? input.chosen - 1 : 0, options);
}

std::unique_ptr<Module> load(const std::string& spec, const LoadOptions& options) {
  return std::move(load_all(spec, options).module);
}

}  // namespace hlo
