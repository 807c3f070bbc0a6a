// What a file is that lies in a dump folder or comes from a profiler, and which command takes it.
#pragma once
#include <string>
#include <string_view>

namespace hlo {

enum class FileKind {
  kUnknown,  // HLO in any form, or nothing that is known here: the parser tells
  kLlvmIr,
  kPtx,
  kMlir,
  kThunks,
  kBuffers,
  kFusionDump,
  kSettings,  // configuration, autotuning, the target: XLA's own
  kMetadata,
  kGraphDef,        // TensorFlow's, as text
  kTrace,           // events, as chrome://tracing and Perfetto read them
  kTable,           // of nsys or nvprof
  kProfile,         // xplane.pb
  kLog,             // of XLA, TensorFlow or jax, without a module in it
  kTorchGraph,      // torch_xla's dump of graphs in which none is HLO
  kBinaryGraphDef,  // TensorFlow's, as a proto
  kArrays,
  kRecording,
  kDot,
  kPage,
  kPicture,
  kMachineCode,
  kEmpty,
};

// Is it TensorFlow's GraphDef in binary form? Asked where it was no proto of XLA: the two begin alike.
bool is_binary_graphdef(std::string_view bytes);
// By name (`label` may be a path) and content; a text that holds a module is kUnknown whatever it is called.
FileKind file_kind(std::string_view label, std::string_view text);
// `LLVM IR of kernels`; empty for kUnknown.
std::string_view kind_in_words(FileKind kind);
// Can two of them be compared line by line?
bool is_text_kind(FileKind kind);
// Throws Failure(kUnsupported), telling what the file is and which command takes it, where it is known to be no module.
void require_module(std::string_view label, std::string_view text);
// The same of what is known not to be one.
[[noreturn]] void refuse_kind(std::string_view label, FileKind kind);

}  // namespace hlo
