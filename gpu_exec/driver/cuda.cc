#include "gpu_exec/driver/cuda.h"

#include <dlfcn.h>

#include <cstdlib>

#include "ir/base/check.h"

namespace hlo::cuda {
namespace {

// What a variable of the environment says; null where it is not set, or empty.
const char* said_by(const char* variable) {
  const char* said = std::getenv(variable);
  return said && *said ? said : nullptr;
}

struct Loaded {
  Driver driver;
  bool good = false;
  std::string why;

  Loaded() {
    const char* said = said_by("HLO_CUDA_DRIVER");
    const char* file = said ? said : "libcuda.so.1";
    void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      why = fmt::format("no CUDA driver here ({} cannot be loaded)", file);
      return;
    }
    bool all = true;
    auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      if (function || !all) return;
      all = false;
      why = fmt::format("the CUDA driver is too old: it has no {}", symbol);
    };
#define HLO_CUDA_FIND(name, symbol, ...) find(driver.name, #symbol);
    HLO_CUDA_FUNCTIONS(HLO_CUDA_FIND)
#undef HLO_CUDA_FIND
    if (!all) return;
    if (Result r = driver.cuInit(0); r != 0) {
      why = fmt::format("cuInit: {}", text(r));
      return;
    }
    int devices = 0;
    if (Result r = driver.cuDeviceGetCount(&devices); r != 0 || devices == 0) {
      why = r ? fmt::format("cuDeviceGetCount: {}", text(r)) : "the CUDA driver knows no device";
      return;
    }
    good = true;
  }
  std::string text(Result r) const {
    const char *name = nullptr, *words = nullptr;
    driver.cuGetErrorName(r, &name), driver.cuGetErrorString(r, &words);
    return fmt::format("{} ({})", name ? name : fmt::format("error {}", r), words ? words : "no words for it");
  }
};

const Loaded& loaded() {
  static const Loaded kLoaded;
  return kLoaded;
}

}  // namespace

const Driver* driver(std::string* why) {
  const Loaded& l = loaded();
  if (!l.good && why) *why = l.why;
  return l.good ? &l.driver : nullptr;
}

void check(const Driver&, Result r, const char* call) {
  if (r) fail(FailureKind::kUnsupported, "{}: {}", call, loaded().text(r));
}

size_t fastest_of(const Driver& d, StreamHandle* stream, size_t count, const std::function<Result(size_t)>& call) {
  EventHandle *from = nullptr, *to = nullptr;
  check(d, d.cuEventCreate(&from, 0), "cuEventCreate");
  if (Result r = d.cuEventCreate(&to, 0); r != 0) {
    d.cuEventDestroy(from);
    check(d, r, "cuEventCreate");
  }
  size_t best = 0;
  float least = 0;
  for (size_t k = 0; k < count; ++k) {
    // Once for its code to be there, then on the clock.
    float ms = 0;
    if (call(k) != 0 || d.cuEventRecord(from, stream) != 0 || call(k) != 0 || d.cuEventRecord(to, stream) != 0 ||
        d.cuEventSynchronize(to) != 0 || d.cuEventElapsedTime(&ms, from, to) != 0)
      continue;
    if (least == 0 || ms < least) best = k, least = ms;
  }
  d.cuEventDestroy(from), d.cuEventDestroy(to);
  return best;
}

namespace {

// A library's functions, of the file that the variable names or of the newest that is there. Who names a driver names
// its libraries, too: others would take its pointers for a card's.
class LoadedLibrary {
 public:
  LoadedLibrary(const char* variable, const std::string& name) : variable_(variable), said_(said_by(variable)) {
    if (said_) {
      handle_ = ::dlopen(said_, RTLD_NOW | RTLD_LOCAL);
      if (!handle_) fail(FailureKind::kUnsupported, "{} names {}, which cannot be loaded", variable, said_);
      return;
    }
    if (said_by("HLO_CUDA_DRIVER")) return;
    for (const char* version : {".13", ".12", ".11", ".9", ""})
      if (!handle_) handle_ = ::dlopen((name + version).c_str(), RTLD_NOW | RTLD_LOCAL);
  }

  template <typename F>
  void find(F& function, const char* symbol) {
    if (handle_) function = reinterpret_cast<F>(::dlsym(handle_, symbol));
    if (handle_ && !function && said_)
      fail(FailureKind::kUnsupported, "{} names {}, which has no {}", variable_, said_, symbol);
    if (!function) complete_ = false;
  }
  // Is it there, with all that was looked for?
  bool complete() const { return complete_; }

 private:
  const char *variable_, *said_;
  void* handle_ = nullptr;
  bool complete_ = true;
};

}  // namespace

const BlasLt* blas_lt() {
  static const std::pair<BlasLt, bool> kFound = [] {
    BlasLt b;
    LoadedLibrary library("HLO_CUBLASLT", "libcublasLt.so");
#define HLO_CUBLASLT_FIND(name, ...) library.find(b.name, #name);
    HLO_CUBLASLT_FUNCTIONS(HLO_CUBLASLT_FIND)
#undef HLO_CUBLASLT_FIND
    library.find(b.version, "cublasLtGetVersion");
    return std::pair(b, library.complete());
  }();
  return kFound.second ? &kFound.first : nullptr;
}

const Dnn* dnn() {
  static const std::pair<Dnn, bool> kFound = [] {
    Dnn d;
    LoadedLibrary library("HLO_CUDNN", "libcudnn.so");
    library.find(d.create, "cudnnCreate"), library.find(d.destroy, "cudnnDestroy");
    library.find(d.set_stream, "cudnnSetStream"), library.find(d.version, "cudnnGetVersion");
    library.find(d.create_descriptor, "cudnnBackendCreateDescriptor");
    library.find(d.destroy_descriptor, "cudnnBackendDestroyDescriptor");
    library.find(d.finalize, "cudnnBackendFinalize"), library.find(d.execute, "cudnnBackendExecute");
    library.find(d.set_attribute, "cudnnBackendSetAttribute");
    library.find(d.get_attribute, "cudnnBackendGetAttribute");
    return std::pair(d, library.complete());
  }();
  return kFound.second ? &kFound.first : nullptr;
}

const Blas* blas() {
  static const std::pair<Blas, bool> kFound = [] {
    Blas b;
    LoadedLibrary library("HLO_CUBLAS", "libcublas.so");
    library.find(b.create, "cublasCreate_v2"), library.find(b.destroy, "cublasDestroy_v2");
    library.find(b.set_stream, "cublasSetStream_v2"), library.find(b.version, "cublasGetVersion_v2");
    library.find(b.gemm_strided_batched, "cublasGemmStridedBatchedEx");
    return std::pair(b, library.complete());
  }();
  return kFound.second ? &kFound.first : nullptr;
}

}  // namespace hlo::cuda
