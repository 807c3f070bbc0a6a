#include "replay/input.h"

#include <algorithm>
#include <filesystem>

#include "dump/json.h"
#include "parser/parser.h"
#include "parser/proto_reader.h"
#include "parser/source_text.h"
#include "replay/confined_path.h"
#include "replay/file_kind.h"
#include "replay/files.h"
#include "replay/progress.h"
#include "replay/record/run.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

bool all_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return isdigit(static_cast<unsigned char>(c)); });
}

// Views into the text are taken once it rests in its final place.
void split(Input& in) {
  in.modules = looks_like_proto(in.text) ? std::vector<std::string_view>{in.text} : split_modules(in.text);
}

Input read(const std::string& spec) {
  std::error_code error;
  if (spec == "-" || fs::is_regular_file(spec, error)) return input_of(spec, read_file(spec));
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
  fail(FailureKind::kIo, "cannot read {}: no such file", spec);
}

bool proto_text(std::string_view label) { return label.ends_with(".pbtxt") || label.ends_with(".textproto"); }

}  // namespace

Input read_input(const std::string& spec) { return read(spec); }

Input input_of(std::string label, std::string text) {
  Input in;
  in.label = std::move(label);
  // HLO text, a proto or JSON may stand packed; what is inside tells.
  if (text.starts_with("\x1f\x8b")) text = gunzip(text, in.label);
  require_module(in.label, text);
  std::string plain;
  if (!looks_like_proto(text) && strip_log_prefixes(text, &plain)) {
    in.log = true;
    text = std::move(plain);
  }
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
  if (looks_like_proto(input.text) || proto_text(input.label)) {
    ProtoContents contents = read_proto(input.text, input.label, universe);
    out.module = std::move(contents.module);
    out.arguments = std::move(contents.arguments);
    out.result = contents.result;
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
  parse.permissive = options.permissive;
  parse.max_errors = options.max_errors;
  parse.text_behind = options.permissive || input.log;
  std::string_view part = input.modules[which];
  parse.first_line = static_cast<size_t>(std::count(input.text.data(), part.data(), '\n'));
  out.module = parse_module(part, universe, parse);
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
