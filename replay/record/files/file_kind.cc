#include "replay/record/files/file_kind.h"

#include <algorithm>

#include "dump/json.h"
#include "ir/base/check.h"
#include "replay/record/logs/log_file.h"

namespace hlo {
namespace {

struct KindRow {
  FileKind kind;
  std::string_view words, hint;  // FILE in the hint stands for the label
  bool text;
};

constexpr KindRow kKindRows[] = {
    {FileKind::kLlvmIr, "LLVM IR of kernels",
     "`hlo-replay diff FILE OTHER.ll` compares two; the module that it was compiled from is the .txt next to it", true},
    {FileKind::kPtx, "PTX, kernels of a GPU",
     "`hlo-replay occupancy FILE` shows what they need, `hlo-replay diff FILE OTHER.ptx` compares two", true},
    {FileKind::kMlir, "MLIR (StableHLO, MHLO or another dialect)",
     "MLIR is not read here, but a jaxlib that is installed takes it: `hlo-replay convert FILE OUT.hlo "
     "--engine=installed`, `hlo-replay replay FILE --engine=installed`. Or XLA_FLAGS='--xla_dump_to=DIR "
     "--xla_dump_hlo_as_text' dumps it, `hlo-replay "
     "capture -- PROGRAM` does so, and in jax jit(f).lower(x).as_text(dialect=\"hlo\") is it",
     true},
    {FileKind::kThunks, "the order in which XLA's thunks run",
     "`hlo-replay explain DIR INSTRUCTION` finds an instruction's thunks in it, `hlo-replay diff FILE OTHER` compares "
     "two",
     true},
    {FileKind::kBuffers, "XLA's account of buffers and memory",
     "`hlo-replay explain DIR INSTRUCTION` finds an instruction's buffers in it, `hlo-replay diff FILE OTHER` compares "
     "two",
     true},
    {FileKind::kFusionDump, "XLA's decisions of fusion", "`hlo-replay explain DIR --why-not A B` reads it", true},
    {FileKind::kSettings, "XLA's own settings (configuration, target or autotuning)",
     "`hlo-replay diff FILE OTHER` compares two; the module is the .txt next to it", true},
    {FileKind::kMetadata, "XLA's account of the passes that ran", "`hlo-replay DIR` reads it with the folder", true},
    {FileKind::kGraphDef, "a TensorFlow GraphDef",
     "`hlo-replay convert FILE graph.png` draws it, `hlo-replay diff FILE OTHER.pbtxt` compares two, `hlo-replay link "
     "--graph=FILE` takes it for edges between clusters",
     true},
    {FileKind::kTrace, "a trace of events (chrome://tracing, Perfetto)",
     "`hlo-replay profile FILE DIR` joins it to modules, `hlo-replay explain DIR INSTRUCTION --trace=FILE` shows an "
     "instruction's time, `hlo-replay diff --profile FILE OTHER.json` compares two",
     true},
    {FileKind::kTable, "a table of a profiler",
     "`hlo-replay explain DIR INSTRUCTION --trace=FILE` shows an instruction's time, `hlo-replay diff --profile FILE "
     "OTHER` compares two",
     true},
    {FileKind::kProfile, "a profile of TensorBoard (XSpace)",
     "`hlo-replay profile FILE` shows where the time went, FILE:MODULE is a module of it", false},
    {FileKind::kLog, "a log of XLA", "`hlo-replay open FILE` lists the passes and failures that it has", true},
    {FileKind::kTorchGraph, "graphs of torch_xla in its own notation",
     "XLA_SAVE_TENSORS_FMT=hlo writes HLO in its place, which every command takes", true},
    {FileKind::kBinaryGraphDef, "a TensorFlow GraphDef in binary form",
     "TF_DUMP_GRAPH_FMT=TXT writes .pbtxt, which `hlo-replay DIR`, convert, diff and link take", false},
    {FileKind::kArrays, "numpy arrays",
     "`hlo-replay exec MODULE --inputs=FILE` takes them, `hlo-replay compare FILE OTHER` compares two", false},
    {FileKind::kRecording, "the table of contents of a recording", "`hlo-replay DIR` opens the folder that it is in",
     true},
    {FileKind::kDot, "a graph for Graphviz",
     "`hlo-replay convert FILE graph.png` draws it; a folder of hlo_graph_N.dot opens with `hlo-replay DIR`", true},
    {FileKind::kPage, "a page for a browser", "the module is the .txt or .hlo.pb next to it", true},
    {FileKind::kPicture, "a picture", "the module is the .txt or .hlo.pb next to it", false},
    {FileKind::kMachineCode, "machine code", "the module that it was compiled from is the .txt next to it", false},
    {FileKind::kEmpty, "empty", "nothing was written into it", true},
};

const KindRow* row_of(FileKind kind) {
  for (const KindRow& r : kKindRows)
    if (r.kind == kind) return &r;
  return nullptr;
}

std::string_view base_of(std::string_view label) {
  size_t slash = label.rfind('/');
  return slash == std::string_view::npos ? label : label.substr(slash + 1);
}

FileKind kind_by_name(std::string_view name) {
  struct Ending {
    std::string_view text;
    FileKind kind;
  };
  static constexpr Ending kEndings[] = {
      {".ll", FileKind::kLlvmIr},
      {".ptx", FileKind::kPtx},
      {".mlir", FileKind::kMlir},
      {".thunk_schedule", FileKind::kThunks},
      {"thunk_sequence.txt", FileKind::kThunks},
      {"thunk_sequence_after_thunk_passes.txt", FileKind::kThunks},
      {"thunk_metadata.txt", FileKind::kThunks},
      {"thunk_sequence.pb", FileKind::kThunks},
      {"buffer-assignment.txt", FileKind::kBuffers},
      {"buffer-assignment-values.txt", FileKind::kBuffers},
      {"live-range.txt", FileKind::kBuffers},
      {"memory-usage-report.txt", FileKind::kBuffers},
      {"memory-usage-report.pb", FileKind::kBuffers},
      {"fusion_dump.txt", FileKind::kFusionDump},
      {"config.pbtxt", FileKind::kSettings},
      {"autotune_results.pbtxt", FileKind::kSettings},
      {"debug_options", FileKind::kSettings},
      {".metadata.textproto", FileKind::kMetadata},
      {".csv", FileKind::kTable},
      {".xplane.pb", FileKind::kProfile},
      {".npz", FileKind::kArrays},
      {".npy", FileKind::kArrays},
      {"recording.json", FileKind::kRecording},
      {".dot", FileKind::kDot},
      {".html", FileKind::kPage},
      {".svg", FileKind::kPicture},
      {".png", FileKind::kPicture},
      {".cubin", FileKind::kMachineCode},
      {".fatbin", FileKind::kMachineCode},
      {".hsaco", FileKind::kMachineCode},
      {".o", FileKind::kMachineCode},
      {".so", FileKind::kMachineCode},
  };
  for (const Ending& e : kEndings)
    if (name.ends_with(e.text)) return e.kind;
  return FileKind::kUnknown;
}

// The text without leading blanks and lines of remarks.
std::string_view begin_of(std::string_view text) {
  while (true) {
    size_t first = text.find_first_not_of(" \t\r\n\f");
    if (first == std::string_view::npos) return {};
    text.remove_prefix(first);
    if (!text.starts_with("//") && text[0] != '#') return text;
    size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end);
  }
}

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

// Is there a word `node`, then a brace, then op: "…" before long?
bool begins_a_graphdef(std::string_view text) {
  std::string_view begin = begin_of(text).substr(0, 20000);
  if (!begin.starts_with("node") || begin.substr(4).find_first_not_of(" \t\r\n:") == std::string_view::npos)
    return false;
  return begin[4 + begin.substr(4).find_first_not_of(" \t\r\n:")] == '{' && has(begin, "op:");
}

FileKind kind_by_content(std::string_view text) {
  std::string_view begin = begin_of(text), head = text.substr(0, 4096);
  if (text.starts_with("\x7f"
                       "ELF"))
    return FileKind::kMachineCode;
  if (text.starts_with("\x89PNG")) return FileKind::kPicture;
  if (text.starts_with("\x93NUMPY") || text.starts_with("PK\x03\x04")) return FileKind::kArrays;
  if (head.starts_with("; ModuleID") || has(head, "\ntarget datalayout = \"")) return FileKind::kLlvmIr;
  if (begin.starts_with(".version") && has(head, ".target sm_")) return FileKind::kPtx;
  if (begin.starts_with("module @") || begin.starts_with("module {") || begin.starts_with("module attributes") ||
      begin.starts_with("builtin.module") || begin.starts_with("func.func"))
    return FileKind::kMlir;
  if (begins_a_graphdef(text)) return FileKind::kGraphDef;
  if (begin.starts_with("digraph")) return FileKind::kDot;
  if (begin.starts_with("<!DOCTYPE") || begin.starts_with("<!doctype") || begin.starts_with("<html"))
    return FileKind::kPage;
  if (begin.starts_with("<svg") || begin.starts_with("<?xml")) return FileKind::kPicture;
  bool object = begin.starts_with("{"), list = begin.starts_with("[");
  if (object && has(text, "\"traceEvents\"")) return FileKind::kTrace;
  if (list && has(begin.substr(0, 4096), "\"ph\"")) return FileKind::kTrace;
  if (text.starts_with("BufferAssignment:")) return FileKind::kBuffers;
  if (is_log(text) && !has(text, "HloModule ")) return FileKind::kLog;
  if (has(text, "## BEGIN_GRAPH") && !has(text, "\nHloModule ")) return FileKind::kTorchGraph;
  return FileKind::kUnknown;
}

[[noreturn]] void refuse(std::string_view label, const KindRow& r) {
  std::string hint(r.hint), file(label);
  for (size_t at = 0; (at = hint.find("FILE", at)) != std::string::npos; at += file.size()) hint.replace(at, 4, file);
  if (size_t slash = file.rfind('/'); slash != std::string::npos && slash > 0)
    if (size_t at = hint.find("DIR"); at != std::string::npos && r.kind != FileKind::kMlir)
      hint.replace(at, 3, file.substr(0, slash));
  if (r.kind == FileKind::kEmpty) fail(FailureKind::kUnsupported, "{} is empty", label);
  fail(FailureKind::kUnsupported, "{} is {}, no HLO module: {}", label, r.words, hint);
}

}  // namespace

bool is_binary_graphdef(std::string_view b) {
  // node { name op …: two lengths that are texts, the second called as TensorFlow calls its operations.
  auto field = [&](char tag, std::string_view* out) {
    if (b.size() < 2 || b[0] != tag) return false;
    auto n = static_cast<unsigned char>(b[1]);
    if (n >= 0x80 || b.size() < 2U + n) return false;
    *out = b.substr(2, n), b.remove_prefix(2U + n);
    return true;
  };
  if (b.empty() || b[0] != '\n') return false;
  b.remove_prefix(1);
  size_t length = 0;
  while (length < 4 && length < b.size() && (static_cast<unsigned char>(b[length]) & 0x80)) ++length;
  if (length + 1 >= b.size()) return false;
  b.remove_prefix(length + 1);
  std::string_view name, op;
  if (!field('\n', &name) || !field('\x12', &op) || name.empty() || op.size() < 3) return false;
  if (op.starts_with('_')) op.remove_prefix(1);
  return op[0] >= 'A' && op[0] <= 'Z' &&
         std::all_of(op.begin(), op.end(), [](char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

FileKind file_kind(std::string_view label, std::string_view text) {
  if (label.ends_with(".gz")) label.remove_suffix(3);
  std::string_view name = base_of(label);
  if (text.empty()) return FileKind::kEmpty;
  // HLO text may be called anything, and stand behind log lines.
  if (begin_of(text).starts_with("HloModule") || looks_like_module_json(text)) return FileKind::kUnknown;
  if (FileKind known = kind_by_content(text); known != FileKind::kUnknown) return known;
  FileKind named = kind_by_name(name);
  if (named != FileKind::kUnknown && has(text, "\nHloModule ")) return FileKind::kUnknown;
  return named;
}

std::string_view kind_in_words(FileKind kind) {
  const KindRow* r = row_of(kind);
  return r ? r->words : std::string_view();
}

bool is_text_kind(FileKind kind) {
  const KindRow* r = row_of(kind);
  return r && r->text;
}

void require_module(std::string_view label, std::string_view text) {
  if (const KindRow* r = row_of(file_kind(label, text))) refuse(label, *r);
}

void refuse_kind(std::string_view label, FileKind kind) { refuse(label, *row_of(kind)); }

}  // namespace hlo
