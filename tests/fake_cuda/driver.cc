// A CUDA driver without a card: what gpu_exec/driver/cuda.h asks for, over host memory and the interpreter of PTX. It
// is as strict as a card is: accesses outside of allocations, misaligned ones, lanes that are missing at a shuffle or a
// barrier are errors. HLO_FAKE_CUDA_FAIL=cuLaunchKernel:3 makes the third such call fail, HLO_FAKE_CUDA_MEMORY sets the
// bytes there are, HLO_FAKE_CUDA_LOG names a file that tells what was done. The same library stands for cuBLAS (and, by
// cublas_lt.cc, for cuBLASLt).
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/fake_cuda/number.h"
#include "tests/fake_cuda/ptx.h"
#include "tests/fake_cuda/state.h"

namespace {

using Clock = std::chrono::steady_clock;

using Work = std::function<int()>;
struct Stream {
  bool first = false;
  std::deque<Work> waiting;
  uint64_t submitted = 0, done = 0;
  // Of a capture: is it a part of it, and has it work that nobody has waited for?
  bool captured = false, loose = false;
  uint64_t recorded = 0;
};
struct Event {
  Clock::time_point at;
  Stream* stream = nullptr;
  uint64_t until = 0;  // of the stream's work
  bool captured = false;
};
struct Graph {
  std::vector<Work> work;
  Stream* origin = nullptr;
};
struct Handle {
  std::shared_ptr<fake::Module> module;
  const fake::Function* function;
  unsigned most_shared = 0;  // dynamic shared memory, as cuFuncSetAttribute said
};

struct State {
  std::map<uint64_t, size_t> memory;
  size_t used = 0, contexts = 0, modules = 0, streams = 0, events = 0, graphs = 0, launches = 0, most = 0,
         descriptors = 0;
  std::map<std::string, int> calls, undocumented;
  std::unique_ptr<Graph> capture;
  std::set<Stream*> alive;
  int broken = 0;  // an error that sticks, as a card's does
  std::vector<std::unique_ptr<Handle>> handles;
  std::string words;

  ~State() {
    const char* file = std::getenv("HLO_FAKE_CUDA_LOG");
    if (!file) return;
    std::ofstream out(file);
    out << "launches " << launches << "\nmost bytes " << most << "\nleft behind: " << memory.size() << " allocations, "
        << contexts << " contexts, " << modules << " modules, " << streams << " streams, " << events << " events, "
        << graphs << " graphs\n";
    if (descriptors) out << "and " << descriptors << " descriptors\n";
    for (const auto& [what, n] : undocumented) out << "undocumented: " << what << ", " << n << " times\n";
    for (const auto& [name, n] : calls) out << name << ' ' << n << '\n';
  }
} state;

size_t capacity() {
  const char* said = std::getenv("HLO_FAKE_CUDA_MEMORY");
  return said ? strtoull(said, nullptr, 10) : size_t{8} << 30;
}

}  // namespace

namespace fake {

int begin(const char* name) {
  int n = ++state.calls[name];
  if (const char* wish = std::getenv("HLO_FAKE_CUDA_FAIL")) {
    std::string w = wish;
    size_t colon = w.find(':');
    if (w.substr(0, colon) == name && (colon == std::string::npos || atoi(w.c_str() + colon + 1) == n)) return 719;
  }
  return state.broken;
}
bool inside(uint64_t at, int64_t bytes) {
  auto next = state.memory.upper_bound(at);
  if (next == state.memory.begin()) return false;
  auto& [start, size] = *std::prev(next);
  return at + static_cast<uint64_t>(bytes) <= start + size;
}

static int perform(const Work& work) {
  int r = state.broken ? state.broken : work();
  if (r) state.broken = r;
  return r;
}

// All of a stream's work up to a point.
static int drain(Stream* s, uint64_t until) {
  if (!state.alive.contains(s)) return 0;
  while (s->done < until && !s->waiting.empty()) {
    Work work = std::move(s->waiting.front());
    s->waiting.pop_front();
    ++s->done;
    perform(work);
  }
  return state.broken;
}

int submit(Work work, void* stream) {
  auto* s = static_cast<Stream*>(stream);
  if (!s || !state.alive.contains(s)) return 400;  // CUDA_ERROR_INVALID_HANDLE
  if (state.capture && s->captured) {
    s->loose = s != state.capture->origin, ++s->recorded;
    state.capture->work.push_back(std::move(work));
    return 0;
  }
  ++s->submitted;
  if (s->first) {
    ++s->done;
    return perform(work);
  }
  s->waiting.push_back(std::move(work));
  return 0;
}

size_t& descriptors() { return state.descriptors; }
void undocumented(const char* what) { ++state.undocumented[what]; }

}  // namespace fake

using fake::begin, fake::drain, fake::inside, fake::submit;
#define BEGIN() \
  if (int r = begin(__func__)) return r

extern "C" {

int cuInit(unsigned) {
  BEGIN();
  return 0;
}
int cuDriverGetVersion(int* v) {
  *v = 12080;
  return 0;
}
int cuDeviceGetCount(int* n) {
  BEGIN();
  *n = 1;
  return 0;
}
int cuDeviceGet(int* d, int) {
  BEGIN();
  *d = 0;
  return 0;
}
int cuDeviceGetName(char* s, int n, int) {
  strncpy(s, "PTX interpreter", static_cast<size_t>(n));
  return 0;
}
int cuDeviceGetAttribute(int* v, int what, int) {
  *v = what == 75 ? 9 : what == 76 ? 0 : what == 16 ? 1 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int) {
  BEGIN();
  ++state.contexts;
  *c = &state;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  if (--state.contexts == 0) state.broken = 0, state.words.clear();
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuModuleLoadDataEx(void** module, const void* text, unsigned n, int* options, void** values) {
  BEGIN();
  try {
    *module = new std::shared_ptr<fake::Module>(std::make_shared<fake::Module>(static_cast<const char*>(text)));
    ++state.modules;
    return 0;
  } catch (const std::exception& e) {
    char* log = nullptr;
    size_t bytes = 0;
    for (unsigned k = 0; k < n; ++k) {
      if (options[k] == 5) log = static_cast<char*>(values[k]);
      if (options[k] == 6) bytes = reinterpret_cast<size_t>(values[k]);
    }
    if (log && bytes) strncpy(log, e.what(), bytes - 1);
    return 218;
  }
}
int cuModuleUnload(void* m) {
  delete static_cast<std::shared_ptr<fake::Module>*>(m);
  --state.modules;
  return 0;
}
int cuModuleGetFunction(void** f, void* m, const char* name) {
  BEGIN();
  auto& module = *static_cast<std::shared_ptr<fake::Module>*>(m);
  const fake::Function* found = module->function(name);
  if (!found || !found->entry) return 500;
  state.handles.push_back(std::make_unique<Handle>(Handle{module, found, 0}));
  *f = state.handles.back().get();
  return 0;
}
int cuFuncSetAttribute(void* f, int what, int value) {
  BEGIN();
  if (what != 8 || value < 0 || value > 227 << 10) return 1;
  static_cast<Handle*>(f)->most_shared = static_cast<unsigned>(value);
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = capacity();
  *free = *total - state.used;
  return 0;
}
int cuMemAlloc_v2(unsigned long long* p, size_t n) {
  BEGIN();
  if (state.capture) return 901;  // not while a graph is captured
  if (state.used + n > capacity()) return 2;
  void* at = std::aligned_alloc(256, (n + 255) / 256 * 256);
  if (!at) return 2;
  std::memset(at, 0xa5, n);  // no zeros by chance
  *p = reinterpret_cast<unsigned long long>(at);
  state.memory[*p] = n, state.used += n, state.most = std::max(state.most, state.used);
  return 0;
}
int cuMemFree_v2(unsigned long long p) {
  auto at = state.memory.find(p);
  if (at == state.memory.end()) return 1;
  for (Stream* s : state.alive) drain(s, s->submitted);
  state.used -= at->second;
  state.memory.erase(at);
  std::free(reinterpret_cast<void*>(p));
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t n, void* stream) {
  BEGIN();
  if (!inside(to, static_cast<int64_t>(n))) return 1;
  // What is pageable has been read when the call returns.
  return submit(
      [to, bytes = std::string(static_cast<const char*>(from), n)] {
        std::memcpy(reinterpret_cast<void*>(to), bytes.data(), bytes.size());
        return 0;
      },
      stream);
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void* stream) {
  BEGIN();
  if (!inside(from, static_cast<int64_t>(n))) return 1;
  return submit(
      [=] {
        std::memcpy(to, reinterpret_cast<void*>(from), n);
        return 0;
      },
      stream);
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, void* stream) {
  BEGIN();
  if (!inside(to, static_cast<int64_t>(n)) || !inside(from, static_cast<int64_t>(n))) return 1;
  return submit(
      [=] {
        std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
        return 0;
      },
      stream);
}

}  // extern "C"

namespace {

template <typename T>
int fill(unsigned long long to, T value, size_t n, void* stream) {
  if (!inside(to, static_cast<int64_t>(n * sizeof(T)))) return 1;
  if (to % sizeof(T)) return 1;
  return submit(
      [=] {
        std::fill_n(reinterpret_cast<T*>(to), n, value);
        return 0;
      },
      stream);
}

}  // namespace

extern "C" {

int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t n, void* stream) {
  BEGIN();
  return fill(to, value, n, stream);
}
int cuMemsetD16Async(unsigned long long to, unsigned short value, size_t n, void* stream) {
  BEGIN();
  return fill(to, value, n, stream);
}
int cuMemsetD32Async(unsigned long long to, unsigned value, size_t n, void* stream) {
  BEGIN();
  return fill(to, value, n, stream);
}
int cuStreamCreate(void** s, unsigned) {
  BEGIN();
  auto* made = new Stream;
  made->first = state.alive.empty();
  state.alive.insert(made);
  *s = made;
  ++state.streams;
  return 0;
}
int cuStreamDestroy_v2(void* s) {
  auto* stream = static_cast<Stream*>(s);
  drain(stream, stream->submitted);
  state.alive.erase(stream);
  delete stream;
  --state.streams;
  return 0;
}
int cuStreamSynchronize(void* s) {
  BEGIN();
  auto* stream = static_cast<Stream*>(s);
  if (state.capture && stream->captured) return 900;
  return drain(stream, stream->submitted);
}
int cuStreamWaitEvent(void* s, void* e, unsigned) {
  BEGIN();
  auto *stream = static_cast<Stream*>(s), *from = static_cast<Event*>(e)->stream;
  if (state.capture && static_cast<Event*>(e)->captured) {
    if (from != state.capture->origin && static_cast<Event*>(e)->until == from->recorded) from->loose = false;
    // Whoever waits for something captured is captured, too.
    stream->captured = true;
    return 0;
  }
  return submit([from, until = static_cast<Event*>(e)->until] { return drain(from, until); }, s);
}
int cuEventCreate(void** e, unsigned) {
  BEGIN();
  *e = new Event;
  ++state.events;
  return 0;
}
int cuEventDestroy_v2(void* e) {
  delete static_cast<Event*>(e);
  --state.events;
  return 0;
}
int cuEventRecord(void* e, void* s) {
  BEGIN();
  auto* event = static_cast<Event*>(e);
  auto* stream = static_cast<Stream*>(s);
  event->stream = stream, event->captured = state.capture && stream->captured;
  if (event->captured) {
    event->until = stream->recorded;
    return 0;
  }
  int r = submit(
      [=] {
        event->at = Clock::now();
        return 0;
      },
      stream);
  event->until = stream->submitted;
  return r;
}
int cuEventSynchronize(void* e) {
  auto* event = static_cast<Event*>(e);
  return event->stream ? drain(event->stream, event->until) : 0;
}
int cuEventElapsedTime(float* ms, void* a, void* b) {
  cuEventSynchronize(a), cuEventSynchronize(b);
  *ms = std::chrono::duration<float, std::milli>(static_cast<Event*>(b)->at - static_cast<Event*>(a)->at).count();
  return 0;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void**) {
  BEGIN();
  auto* handle = static_cast<Handle*>(f);
  fake::Grid g{handle->module.get(), handle->function, {gx, gy, gz}, {bx, by, bz}, {}, shared, inside};
  if (shared > (48u << 10) && shared > handle->most_shared) return 1;
  g.params.resize(static_cast<size_t>(handle->function->param_bytes));
  size_t k = 0;
  for (const fake::Variable& v : handle->function->params)
    std::memcpy(g.params.data() + v.offset, arguments[k++], static_cast<size_t>(v.size));
  if (gx == 0 || gy == 0 || gz == 0) return 1;
  return submit(
      [g, module = handle->module]() -> int {
        try {
          ++state.launches;
          fake::run(g);
          return 0;
        } catch (const fake::Fault& e) {
          state.words = e.what();
          return e.code;
        }
      },
      stream);
}
int cuStreamBeginCapture_v2(void* s, int) {
  BEGIN();
  if (state.capture) return 900;
  state.capture = std::make_unique<Graph>();
  state.capture->origin = static_cast<Stream*>(s);
  static_cast<Stream*>(s)->captured = true;
  return 0;
}
int cuStreamEndCapture(void* s, void** g) {
  BEGIN();
  *g = nullptr;
  std::unique_ptr<Graph> made = std::move(state.capture);
  if (!made || made->origin != s) return 901;
  bool loose = false;
  for (Stream* one : state.alive) {
    loose |= one->loose;
    one->captured = one->loose = false;
  }
  if (loose) return 904;  // work on a stream that nobody waited for
  *g = made.release();
  ++state.graphs;
  return 0;
}
int cuGraphInstantiateWithFlags(void** e, void* g, unsigned long long) {
  BEGIN();
  *e = new Graph(*static_cast<Graph*>(g));
  ++state.graphs;
  return 0;
}
int cuGraphLaunch(void* e, void* stream) {
  BEGIN();
  return submit(
      [work = static_cast<Graph*>(e)->work] {
        for (const Work& w : work)
          if (int r = w()) return r;
        return 0;
      },
      stream);
}
int cuGraphExecDestroy(void* e) {
  delete static_cast<Graph*>(e);
  --state.graphs;
  return 0;
}
int cuGraphDestroy(void* g) {
  delete static_cast<Graph*>(g);
  --state.graphs;
  return 0;
}
int cuGetErrorName(int r, const char** s) {
  static const std::map<int, const char*> kNames = {{1, "CUDA_ERROR_INVALID_VALUE"},
                                                    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                    {218, "CUDA_ERROR_INVALID_PTX"},
                                                    {500, "CUDA_ERROR_NOT_FOUND"},
                                                    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                    {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
                                                    {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                                                    {719, "CUDA_ERROR_LAUNCH_FAILED"},
                                                    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
                                                    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"}};
  auto at = kNames.find(r);
  *s = at == kNames.end() ? "CUDA_ERROR_UNKNOWN" : at->second;
  return 0;
}
int cuGetErrorString(int, const char** s) {
  *s = state.words.empty() ? "the fake driver has no words for it" : state.words.c_str();
  return 0;
}

// --- cuBLAS ---

int cublasCreate_v2(void** h) {
  *h = new fake::Handle;
  return 0;
}
int cublasDestroy_v2(void* h) {
  delete static_cast<fake::Handle*>(h);
  return 0;
}
int cublasSetStream_v2(void* h, void* stream) {
  static_cast<fake::Handle*>(h)->stream = stream;
  return 0;
}
int cublasGetVersion_v2(void*, int* v) {
  *v = 120000;
  return 0;
}
int cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                               int type_a, int lda, long long step_a, const void* b, int type_b, int ldb,
                               long long step_b, const void* beta, void* c, int type_c, int ldc, long long step_c,
                               int batch, int compute, int) {
  BEGIN();
  if (type_a != type_b || type_a != type_c || (compute == 70) != (type_a == 1)) return 15;
  if (compute == 77 && type_a != fake::kF32) return 15;
  if (type_a != fake::kF32 && type_a != fake::kF64 && type_a != fake::kF16 && type_a != fake::kBf16) return 15;
  const size_t width = fake::width(type_a);
  // Leading dimensions and extents as cuBLAS checks them, memory as a card does.
  if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;
  auto extent = [&](const void* p, long long ld, int columns, long long step) {
    return inside(reinterpret_cast<uint64_t>(p), static_cast<int64_t>(width) * (step * (batch - 1) + ld * columns));
  };
  if (!extent(a, lda, ta ? m : k, step_a) || !extent(b, ldb, tb ? k : n, step_b) || !extent(c, ldc, n, step_c))
    return 14;
  double x =
      compute == 70 ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha));
  double y = compute == 70 ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
  auto get = [=](const void* p, long long at) {
    const double v = fake::load(type_a, p, at);
    return compute == 77 ? fake::as_tf32(v) : v;
  };
  auto product = [=] {
    for (int s = 0; s < batch; ++s)
      for (int j = 0; j < n; ++j)
        for (int i = 0; i < m; ++i) {
          double sum = 0;
          for (int l = 0; l < k; ++l)
            sum +=
                get(a, s * step_a + (ta ? i * static_cast<long long>(lda) + l : l * static_cast<long long>(lda) + i)) *
                get(b, s * step_b + (tb ? l * static_cast<long long>(ldb) + j : j * static_cast<long long>(ldb) + l));
          long long at = s * step_c + j * static_cast<long long>(ldc) + i;
          sum = x * sum + (y != 0 ? y * get(c, at) : 0);
          fake::store(type_a, c, at, sum);
        }
    return 0;
  };
  return submit(product, static_cast<fake::Handle*>(handle)->stream);
}

}  // extern "C"
