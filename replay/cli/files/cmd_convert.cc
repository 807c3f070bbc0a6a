// convert: a module from one format to another, by the files' endings.
#include "dump/graph.h"
#include "dump/json.h"
#include "dump/proto_writer.h"
#include "gpu_exec/emit/gpu_code.h"
#include "ir/print/print.h"
#include "parser/proto/proto_reader.h"
#include "replay/cli/command.h"
#include "replay/cli/engine.h"
#include "replay/cli/json_output.h"
#include "replay/cli/other_files.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"

namespace hlo {
namespace {

// Kinds of files that are written, the longer endings first.
constexpr const char* kEndings[] = {".pb.gz", ".pbtxt", ".pb",  ".hlo", ".txt", ".json",
                                    ".dot",   ".svg",   ".png", ".ll",  ".ptx"};

std::string ending_of(const std::string& file) {
  if (file == "-") return ".hlo";
  for (const char* ending : kEndings)
    if (file.ends_with(ending)) return ending;
  fail(FailureKind::kUsage,
       "{}: the ending decides the format: .hlo, .txt, .pb, .pb.gz, .pbtxt, .json, .dot, .svg, .png, .ll, .ptx", file);
}

// A module, as the ending wants it. `told`: module, instructions, warnings.
void write_module(const ConvertArgs& a, const std::string& ending, Json& told) {
  const bool proto = ending.starts_with(".pb"), code = ending == ".ll" || ending == ".ptx";
  // Kernels are made of what the verifier has passed; the other formats show any module.
  TemporaryFolder scratch;
  const std::string from = a.engine.installed() ? hlo_of_stablehlo(a.engine, a.in, scratch.path()) : a.in;
  auto m = code ? load_verified(from, true) : load(from);
  const size_t elided = m->elided_constants().size();
  told["module"] = m->name(), told["instructions"] = m->instruction_count(), told["elided_constants"] = elided;
  Progress progress("converting " + a.in);
  if (proto) {
    write_file(a.out, module_to_proto_bytes(*m, ending));
    if (elided)
      told["warnings"].push_back(
          fmt::format("{}: {} elided constant(s) have no values: XLA refuses such a proto", a.out, elided));
  } else if (code) {
    GpuCode kernels = gpu_code(*m, a.sm);
    for (const auto& item : kernels.without) told["warnings"].push_back(item.second);
    write_file(a.out, ending == ".ptx" ? kernels.ptx : kernels.ir);
  } else if (ending == ".json") {
    write_file(a.out, module_json(*m, true));
  } else if (ending == ".hlo" || ending == ".txt") {
    write_file(a.out, lossless_text(*m));
  } else {
    Graph graph(*m, {});
    write_file(a.out, ending == ".dot" ? graph.dot() : graph.render(ending.substr(1)));
  }
}

}  // namespace

int cmd_convert(const ConvertArgs& a) {
  if (a.json && a.out == "-")
    fail(FailureKind::kUsage, "--json and the module cannot both go to standard output: name a file");
  Json told{{"in", a.in},
            {"out", a.out},
            {"format", Json()},
            {"module", Json()},
            {"instructions", Json()},
            {"elided_constants", 0},
            {"warnings", Json::array()}};
  check_output_file(a.out, true, {a.in});
  if (convert_graph(a.in, a.out)) {
    told["format"] = a.out.substr(a.out.rfind('.') + 1);
  } else {
    const std::string ending = ending_of(a.out);
    told["format"] = ending.substr(1);
    // Proto to proto keeps what we do not know.
    bool kept = false;
    if (ending.starts_with(".pb") && !a.engine.installed()) {
      Input from = read_input(a.in);
      kept = looks_like_proto(from.text) || a.in.ends_with(".pbtxt");
      if (kept) write_file(a.out, reencode_proto(from.text, a.in, ending));
    }
    if (!kept) write_module(a, ending, told);
  }
  if (a.json) {
    print_json(told);
    return kYes;
  }
  for (const Json& w : told["warnings"]) fmt::print(stderr, "warning: {}\n", w.get<std::string>());
  return kYes;
}

}  // namespace hlo
