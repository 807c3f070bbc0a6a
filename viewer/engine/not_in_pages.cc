// What a page has no use for, or a browser no means: threads, signals, terminals, Graphviz, protobuf, packed streams.
// What would need one of them to go on is refused by name.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>

#include "dump/graph.h"
#include "ir/base/check.h"
#include "ir/base/memory.h"
#include "ir/base/parallel.h"
#include "ir/eval/blas.h"
#include "parser/proto/executable.h"
#include "parser/proto/proto_reader.h"
#include "parser/proto/unpack.h"
#include "replay/judge/arguments/own_constants.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/record/files/held_modules.h"

// This libc has the other name for it alone.
extern "C" ssize_t getrandom(void* at, size_t bytes, unsigned) {
  return ::getentropy(at, bytes) ? -1 : static_cast<ssize_t>(bytes);
}

namespace hlo {
namespace {

[[noreturn]] void refuse_proto(std::string_view label) {
  fail(FailureKind::kUnsupported,
       "{} is a proto, which the page does not read; `hlo-replay convert` makes a text of it, `hlo-replay view` a page",
       label);
}

}  // namespace

// A page has no files beside the text.
std::string take_own_values(Module&, const std::string&) { return {}; }

// ir/base: one thread, and 4 GiB of addresses of which the heap has taken a part.
AvailableMemory available_memory() {
  constexpr int64_t kAddresses = int64_t{1} << 32;
  int64_t free_inside = mallinfo().fordblks;
  return {kAddresses - static_cast<int64_t>(reinterpret_cast<uintptr_t>(::sbrk(0))) + free_inside,
          "left of a page's memory"};
}
int worker_count() { return 1; }
void work_alone() {}
void parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  for (int64_t i = 0; i < count; ++i) body(i);
}
void parallel_ranges(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  for (int64_t i = 0; i < n; i += grain) body(i, std::min(n, i + grain));
}

// ir/eval: its own loops do the work.
bool has_blas() { return false; }
void* blas_symbol(const char*) { return nullptr; }
void library_gemm(int64_t, int64_t, int64_t, float, MatrixView<float>, MatrixView<float>, float, float*, int64_t) {
  HLO_CHECK(false, "no library of matrix products");
}
void library_gemm(int64_t, int64_t, int64_t, double, MatrixView<double>, MatrixView<double>, double, double*, int64_t) {
  HLO_CHECK(false, "no library of matrix products");
}

// parser: no protobuf, no zlib.
bool looks_like_proto(std::string_view bytes) {
  return looks_packed(bytes) || bytes.substr(0, 4096).find('\0') != std::string_view::npos;
}
ProtoContents read_proto(std::string_view, const std::string& label, const std::shared_ptr<Universe>&, UserOrder) {
  refuse_proto(label);
}
bool looks_packed(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd");
}
std::string gunzip(std::string_view bytes, const std::string& label) { return unpacked(bytes, label); }
std::string unpacked(std::string_view, const std::string& label) {
  fail(FailureKind::kUnsupported, "{} is packed, which the page does not read: unpack it first", label);
}

// replay: who asks for an end ends the worker, and progress shows by the page's own clock.
bool interrupted() { return false; }
void remember_temporary(const std::string&) {}
void forget_temporary(const std::string&) {}
Progress::Progress(std::string what) : what_(std::move(what)) {}
Progress::~Progress() = default;
void Progress::at(size_t, size_t, std::string_view) {}
void Progress::clear() {}

}  // namespace hlo
