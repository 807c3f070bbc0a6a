// A card by the driver's functions: PTX made here, compiled by the driver, launched on its streams.
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <set>

#include "gpu_exec/driver/cuda.h"
#include "gpu_exec/driver/device.h"
#include "gpu_exec/driver/kernel_cache.h"
#include "gpu_exec/emit/codegen.h"
#include "gpu_exec/emit/gpu_code.h"
#include "gpu_exec/emit/kernel.h"
#include "gpu_exec/libraries/cublas_lt.h"
#include "gpu_exec/libraries/cudnn.h"
#include "ir/base/check.h"
#include "ir/base/parallel.h"

namespace hlo {
namespace {

using namespace cuda;

// The newest architecture of ours that code for this card may be made for: newer cards take PTX of older ones.
std::string architecture(int major, int minor) {
  int sm = major * 10 + minor;
  if (sm == 90) return "sm_90a";
  int best = 0;
  for (int known : {75, 80, 86, 87, 89, 90})
    if (known <= sm) best = known;
  if (!best)
    fail(FailureKind::kUnsupported, "the GPU has compute capability {}.{}; code is made from 7.5 on", major, minor);
  return fmt::format("sm_{}", best);
}

// The PTX that a driver takes: CUDA 12.0 knows 8.0, each release one more.
int ptx_version(int driver) {
  if (driver >= 12050) return 85;
  if (driver >= 12000) return 80 + driver % 1000 / 10;
  if (driver >= 11080) return 78;
  fail(FailureKind::kUnsupported, "the CUDA driver is of version {}.{}; 11.8 or newer is needed", driver / 1000,
       driver % 1000 / 10);
}

class Card : public Device {
 public:
  Card(const Driver& driver, bool tf32) : d_(driver), tf32_(tf32), context_(driver) {
    DeviceNumber number = context_.number;
    char name[256] = {};
    check(d_, d_.cuDeviceGetName(name, sizeof name - 1, number), "cuDeviceGetName");
    int major = 0, minor = 0, version = 0;
    check(d_, d_.cuDeviceGetAttribute(&major, kMajor, number), "cuDeviceGetAttribute");
    check(d_, d_.cuDeviceGetAttribute(&minor, kMinor, number), "cuDeviceGetAttribute");
    check(d_, d_.cuDriverGetVersion(&version), "cuDriverGetVersion");
    name_ = name, sm_ = architecture(major, minor), ptx_ = ptx_version(version);
    use_stream(0);
  }

  std::string name() const override { return fmt::format("{} ({})", name_, sm_); }
  std::string library() const override {
    std::vector<std::string> names;
    const Stream& first = *streams_[0];
    if (first.blas) {
      int v = 0;
      blas()->version(first.blas, &v);
      names.push_back(fmt::format("cuBLAS {}.{}.{}", v / 10000, v / 100 % 100, v % 100));
    }
    if (used_lt_) names.push_back(first.lt->version());
    if (used_dnn_) names.push_back(first.dnn->version());
    return fmt::format("{}", fmt::join(names, " and "));
  }

  void use_stream(size_t number) override {
    while (streams_.size() <= number) streams_.emplace_back();
    if (!streams_[number]) streams_[number] = std::make_unique<Stream>(d_, name());
    stream_ = number;
  }
  void order(size_t before, size_t after) override {
    if (before == after) return;
    size_t now = stream_;
    use_stream(before), use_stream(after), use_stream(now);
    // A wait is for what the event stood for when it was asked for: one event does for all.
    if (!events_.event) check(d_, d_.cuEventCreate(&events_.event, 2), "cuEventCreate");  // without times
    checked(d_.cuEventRecord(events_.event, streams_[before]->stream), "cuEventRecord");
    checked(d_.cuStreamWaitEvent(streams_[after]->stream, events_.event, 0), "cuStreamWaitEvent");
  }
  void enter() override { check(d_, d_.cuCtxSetCurrent(context_.handle), "cuCtxSetCurrent"); }

  std::vector<Kernel> load(const Module& m, const std::vector<std::vector<InstId>>& kinds,
                           std::vector<std::pair<size_t, std::string>>* without) override {
    struct Part {
      std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
      std::unique_ptr<llvm::TargetMachine> machine;
      std::unique_ptr<llvm::Module> module;
      std::string ptx;
    };
    std::vector<Part> parts(std::clamp<size_t>(kinds.size(), 1, static_cast<size_t>(std::max(worker_count(), 1))));
    for (Part& p : parts) {
      p.machine = nvptx_machine(sm_, ptx_);
      p.module = std::make_unique<llvm::Module>("cuda", *p.context);
      prepare(*p.module, *p.machine);
    }
    std::vector<Kernel> kernels;
    for (const std::vector<InstId>& same : kinds) {
      try {
        size_t k = kernels_.size() + kernels.size();
        std::string name = kernel_name(m.inst_name(same[0]), names_);
        kernels.push_back(build_gpu_kernel(m, same[0], *parts[k % parts.size()].module, name));
      } catch (const Failure& e) {
        if (e.kind() != FailureKind::kUnsupported) throw;
        without->push_back({kernels.size(), e.what()});
        kernels.push_back({same[0], {}, {}, {}});
      }
    }
    parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t k) {
      Part& p = parts[static_cast<size_t>(k)];
      if (p.module->empty()) return;
      check_ir(*p.module);
      p.ptx = cached_code(ir_text(*p.module), fmt::format("{} ptx{}", sm_, ptx_), [&] {
        link_libdevice(*p.module);
        optimise(*p.module, *p.machine);
        return assembly(*p.module, *p.machine);
      });
      p.module.reset();
    });
    std::vector<ModuleHandle*> fresh;
    for (Part& p : parts) fresh.push_back(p.ptx.empty() ? nullptr : compiled(p.ptx));
    for (size_t k = 0; k < kernels.size(); ++k) {
      ModuleHandle* module = fresh[kernels_.size() % parts.size()];
      std::vector<Function> functions;
      for (const KernelPart& p : kernels[k].parts) {
        Function f;
        f.part = p, f.label = fmt::format("{} of {}", p.function, m.inst_name(kinds[k][0]));
        ModuleHandle* from = module;
        if (auto said = replaced_.find(p.function); said != replaced_.end()) {
          from = compiled(ptx_of(said->second, p.function), said->second.file);
          used_replacements_.insert(p.function);
        }
        check(d_, d_.cuModuleGetFunction(&f.handle, from, p.function.c_str()), "cuModuleGetFunction");
        functions.push_back(std::move(f));
      }
      kernels_.push_back(std::move(functions));
    }
    return kernels;
  }

  void replace(const std::map<std::string, EvalOptions::Replacement>& replaced) override { replaced_ = replaced; }
  std::vector<std::string> unused_replacements() const override {
    std::vector<std::string> out;
    for (const auto& [name, code] : replaced_)
      if (!used_replacements_.contains(name)) out.push_back(name);
    return out;
  }
  std::vector<std::string> functions() const override {
    std::vector<std::string> out;
    for (const std::vector<Function>& list : kernels_)
      for (const Function& f : list) out.push_back(f.part.function);
    return out;
  }

  size_t load_foreign(const std::string& ptx, const ForeignKernel& kernel) override {
    auto at = foreign_modules_.find(ptx);
    if (at == foreign_modules_.end()) at = foreign_modules_.emplace(ptx, compiled(ptx, kernel.file)).first;
    Foreign f{nullptr, kernel};
    check(d_, d_.cuModuleGetFunction(&f.handle, at->second, kernel.function.c_str()), "cuModuleGetFunction");
    constexpr int64_t kWithoutAsking = 48 << 10;
    if (kernel.shared_bytes > kWithoutAsking)
      check(d_, d_.cuFuncSetAttribute(f.handle, kDynamicShared, static_cast<int>(kernel.shared_bytes)),
            "cuFuncSetAttribute");
    foreign_.push_back(std::move(f));
    return foreign_.size() - 1;
  }
  void launch_foreign(size_t number, std::span<const std::vector<char>> given) override {
    const Foreign& f = foreign_[number];
    std::vector<void*> arguments;
    for (const std::vector<char>& bytes : given) arguments.push_back(const_cast<char*>(bytes.data()));
    last_ = f.kernel.function;
    auto narrow = [](int64_t n) { return static_cast<unsigned>(n); };
    const auto &g = f.kernel.grid, &t = f.kernel.threads;
    checked(d_.cuLaunchKernel(f.handle, narrow(g[0]), narrow(g[1]), narrow(g[2]), narrow(t[0]), narrow(t[1]),
                              narrow(t[2]), narrow(f.kernel.shared_bytes), stream(), arguments.data(), nullptr),
            "cuLaunchKernel");
  }

  char* allocate(int64_t bytes) override {
    Pointer p = 0;
    Result r = d_.cuMemAlloc(&p, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (r == 2) return nullptr;  // CUDA_ERROR_OUT_OF_MEMORY
    check(d_, r, "cuMemAlloc");
    return reinterpret_cast<char*>(p);
  }
  void release(char* memory) override { d_.cuMemFree(address(memory)); }
  int64_t free_bytes() const override {
    size_t free = 0, total = 0;
    check(d_, d_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
    return static_cast<int64_t>(free);
  }
  void write(char* to, const char* from, int64_t bytes) override {
    if (bytes) check(d_, d_.cuMemcpyHtoDAsync(address(to), from, size(bytes), stream()), "cuMemcpyHtoDAsync");
    // What is pageable has been read when the call returns; the order of the stream does the rest.
  }
  void read(char* to, const char* from, int64_t bytes) override {
    if (bytes) checked(d_.cuMemcpyDtoHAsync(to, address(from), size(bytes), stream()), "cuMemcpyDtoHAsync");
    wait();
  }
  void copy(char* to, const char* from, int64_t bytes) override {
    if (bytes) checked(d_.cuMemcpyDtoDAsync(address(to), address(from), size(bytes), stream()), "cuMemcpyDtoDAsync");
  }

  void fill(char* to, uint32_t pattern, int width, int64_t count) override {
    if (!count) return;
    if (width == 1)
      checked(d_.cuMemsetD8Async(address(to), static_cast<unsigned char>(pattern), size(count), stream()),
              "cuMemsetD8Async");
    else if (width == 2)
      checked(d_.cuMemsetD16Async(address(to), static_cast<unsigned short>(pattern), size(count), stream()),
              "cuMemsetD16Async");
    else
      checked(d_.cuMemsetD32Async(address(to), pattern, size(count), stream()), "cuMemsetD32Async");
  }

  void launch(size_t kernel, size_t part, std::span<char* const> pointers, std::span<const int32_t> numbers) override {
    const Function& f = kernels_[kernel][part];
    std::vector<Pointer> values;
    for (char* p : pointers) values.push_back(address(p));
    std::vector<int32_t> more(numbers.begin(), numbers.end());
    std::vector<void*> arguments;
    for (Pointer& v : values) arguments.push_back(&v);
    for (int32_t& v : more) arguments.push_back(&v);
    last_ = f.label;
    checked(d_.cuLaunchKernel(f.handle, static_cast<unsigned>(f.part.blocks), 1, 1,
                              static_cast<unsigned>(f.part.threads), 1, 1, 0, stream(), arguments.data(), nullptr),
            "cuLaunchKernel");
  }
  void wait() override {
    for (const auto& it : streams_)
      if (it) checked(d_.cuStreamSynchronize(it->stream), "cuStreamSynchronize");
  }

  bool multiplies(const MatrixProduct& p) override {
    if (by_blas(p)) return true;
    if (!streams_[0]->lt || !streams_[0]->lt->takes(asked(p))) return false;
    used_lt_ = true;
    return true;
  }

  // cublasGemmStridedBatchedEx is column-major: it makes the transposed product of the operands in turn.
  void multiply(const MatrixProduct& p, const ProductArrays& at) override {
    if (!by_blas(p)) {
      last_ = "a product by cuBLASLt";
      return streams_[stream_]->lt->run(asked(p), at);
    }
    // What is added stands in the result before.
    if (at.matrix && at.matrix != at.out && p.beta != 0)
      copy(at.out, at.matrix, p.batch * p.m * p.n * storage_bytes(p.type));
    constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77, kDefault = -1;
    int type = blas_type(p.type), compute = p.type == ElementType::F64 ? kCompute64
                                            : asked(p).tf32            ? kComputeTf32
                                                                       : kCompute32;
    const auto alpha32 = static_cast<float>(p.alpha), beta32 = static_cast<float>(p.beta);
    const void *alpha = &alpha32, *beta = &beta32;
    if (compute == kCompute64) alpha = &p.alpha, beta = &p.beta;
    auto narrow = [](int64_t n) { return static_cast<int>(n); };
    int left_step = narrow(p.transpose_left ? p.m : p.k), right_step = narrow(p.transpose_right ? p.k : p.n);
    Result r = blas()->gemm_strided_batched(
        streams_[stream_]->blas, p.transpose_right ? 1 : 0, p.transpose_left ? 1 : 0, narrow(p.n), narrow(p.m),
        narrow(p.k), alpha, at.right, type, right_step, p.k * p.n, at.left, type, left_step, p.m * p.k, beta, at.out,
        type, narrow(p.n), p.m * p.n, narrow(p.batch), compute, kDefault);
    if (r) fail(FailureKind::kUnsupported, "cublasGemmStridedBatchedEx: status {}", r);
    last_ = "a product by cuBLAS";
  }

  bool convolves(const ConvolutionForm& form) override {
    if (!streams_[0]->dnn || !streams_[0]->dnn->takes(asked(form))) return false;
    used_dnn_ = true;
    return true;
  }
  void convolve(const ConvolutionForm& form, const ConvolutionArrays& at) override {
    last_ = "a convolution by cuDNN";
    streams_[stream_]->dnn->run(asked(form), at);
  }

  size_t mark() override {
    if (used_ == events_.made.size()) {
      EventHandle* e = nullptr;
      check(d_, d_.cuEventCreate(&e, 0), "cuEventCreate");
      events_.made.push_back(e);
    }
    check(d_, d_.cuEventRecord(events_.made[used_], stream()), "cuEventRecord");
    return used_++;
  }
  int64_t nanoseconds(size_t from, size_t to) override {
    float ms = 0;
    check(d_, d_.cuEventElapsedTime(&ms, events_.made[from], events_.made[to]), "cuEventElapsedTime");
    return static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  }
  void forget_marks() override { used_ = 0; }

  bool begin_graph() override {
    check(d_, d_.cuStreamBeginCapture(stream(), 2), "cuStreamBeginCapture");  // relaxed
    return true;
  }
  std::optional<size_t> end_graph() override {
    GraphHandle* graph = nullptr;
    if (d_.cuStreamEndCapture(stream(), &graph) != 0 || !graph) return std::nullopt;
    GraphExecHandle* made = nullptr;
    Result r = d_.cuGraphInstantiateWithFlags(&made, graph, 0);
    d_.cuGraphDestroy(graph);
    if (r) return std::nullopt;
    graphs_.made.push_back(made);
    return graphs_.made.size() - 1;
  }
  void replay_graph(size_t number) override {
    last_ = "a graph of kernels";
    checked(d_.cuGraphLaunch(graphs_.made[number], stream()), "cuGraphLaunch");
  }

 private:
  struct Function {
    FunctionHandle* handle = nullptr;
    KernelPart part;
    std::string label;
  };
  // cudaDataType_t; -1: none that cuBLAS multiplies.
  static int blas_type(ElementType t) {
    return t == ElementType::F32    ? 0
           : t == ElementType::F64  ? 1
           : t == ElementType::F16  ? 2
           : t == ElementType::BF16 ? 14
                                    : -1;
  }
  bool by_blas(const MatrixProduct& p) const {
    return streams_[0]->blas && p.plain() && blas_type(p.type) >= 0 && std::max({p.m, p.n, p.k, p.batch}) <= INT32_MAX;
  }
  static Pointer address(const char* p) { return reinterpret_cast<Pointer>(p); }
  static size_t size(int64_t n) { return static_cast<size_t>(n); }
  // Faults of a kernel show up in what is called after it.
  void checked(Result r, const char* call) {
    if (r == 0) return;
    try {
      check(d_, r, call);
    } catch (const Failure& e) {
      fail(e.kind(), "{}; the last work begun was {}", e.what(), last_.empty() ? "none" : last_);
    }
  }
  // PTX of what the caller brought for a function, which must be in it.
  std::string ptx_of(const EvalOptions::Replacement& r, const std::string& function) {
    if (r.ptx) return r.text;
    llvm::LLVMContext context;
    auto machine = nvptx_machine(sm_, ptx_);
    std::unique_ptr<llvm::Module> m = parsed_ir(r.text, r.file, context);
    llvm::Function* f = m->getFunction(function);
    if (!f || f->isDeclaration()) fail(FailureKind::kUsage, "{} defines no function {}", r.file, function);
    prepare(*m, *machine);
    check_ir(*m);
    link_libdevice(*m);
    optimise(*m, *machine);
    return assembly(*m, *machine);
  }
  ModuleHandle* compiled(const std::string& ptx, const std::string& file = {}) {
    char log[4096] = {};
    int options[] = {kErrorLog, kErrorLogBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    ModuleHandle* module = nullptr;
    Result r = d_.cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values);
    if (r) {
      try {
        check(d_, r, "cuModuleLoadDataEx");
      } catch (const Failure& e) {
        fail(e.kind(), "{}{}: {}", file.empty() ? "" : file + ": ", e.what(), log);
      }
    }
    modules_.made.push_back(module);
    return module;
  }

  // Rounding that the module would allow is asked for here alone.
  template <class Form>
  Form asked(Form form) const {
    form.tf32 &= tf32_;
    return form;
  }
  const Driver& d_;
  const bool tf32_;
  // The device's own context, held as long as the card is.
  struct Context {
    explicit Context(const Driver& driver) : d(driver) {
      check(d, d.cuDeviceGet(&number, 0), "cuDeviceGet");
      check(d, d.cuDevicePrimaryCtxRetain(&handle, number), "cuDevicePrimaryCtxRetain");
      if (Result r = d.cuCtxSetCurrent(handle); r != 0) {
        d.cuDevicePrimaryCtxRelease(number);
        check(d, r, "cuCtxSetCurrent");
      }
    }
    ~Context() { d.cuDevicePrimaryCtxRelease(number); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    const Driver& d;
    DeviceNumber number = 0;
    ContextHandle* handle = nullptr;
  } context_;
  // A stream, and libraries that work on it. What may fail comes before the stream, which would be left behind.
  struct Stream {
    Stream(const Driver& driver, const std::string& card) : d(driver) {
      hlo::cuda::blas(), blas_lt(), hlo::cuda::dnn();  // libraries that are named and not there
      check(d, d.cuStreamCreate(&stream, 1), "cuStreamCreate");
      if (const Blas* library = hlo::cuda::blas()) {
        if (library->create(&blas) != 0)
          blas = nullptr;
        else
          library->set_stream(blas, stream);
      }
      lt = LtProducts::make(d, stream, card);
      dnn = DnnConvolutions::make(d, stream, card);
    }
    // Errors have nobody to tell.
    ~Stream() {
      d.cuStreamSynchronize(stream);
      if (blas) hlo::cuda::blas()->destroy(blas);
      lt.reset(), dnn.reset();
      d.cuStreamDestroy(stream);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    const Driver& d;
    StreamHandle* stream = nullptr;
    Blas::Handle blas = nullptr;
    std::unique_ptr<LtProducts> lt;
    std::unique_ptr<DnnConvolutions> dnn;
  };
  StreamHandle* stream() const { return streams_[stream_]->stream; }
  std::string name_, sm_, last_;
  int ptx_ = 85;
  bool used_lt_ = false, used_dnn_ = false;
  std::set<std::string> names_, used_replacements_;
  std::map<std::string, EvalOptions::Replacement> replaced_;
  // Whatever happened before, the device is left as it was found: members go in turn, streams first.
  struct Modules {
    ~Modules() {
      for (ModuleHandle* m : made) d.cuModuleUnload(m);
    }
    const Driver& d;
    std::vector<ModuleHandle*> made;
  } modules_{d_, {}};
  struct Events {
    ~Events() {
      for (EventHandle* e : made) d.cuEventDestroy(e);
      if (event) d.cuEventDestroy(event);
    }
    const Driver& d;
    std::vector<EventHandle*> made;
    EventHandle* event = nullptr;
  } events_{d_, {}};
  struct Graphs {
    ~Graphs() {
      for (GraphExecHandle* g : made) d.cuGraphExecDestroy(g);
    }
    const Driver& d;
    std::vector<GraphExecHandle*> made;
  } graphs_{d_, {}};
  std::vector<std::vector<Function>> kernels_;
  struct Foreign {
    FunctionHandle* handle = nullptr;
    ForeignKernel kernel;
  };
  std::vector<Foreign> foreign_;
  std::map<std::string, ModuleHandle*> foreign_modules_;  // by PTX
  size_t used_ = 0, stream_ = 0;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace

std::string cuda_unavailable() {
  std::string why;
  driver(&why);
  return why;
}

std::unique_ptr<Device> cuda_device(bool tf32) {
  std::string why;
  const Driver* d = driver(&why);
  if (!d) fail(FailureKind::kUnsupported, "{}", why);
  return std::make_unique<Card>(*d, tf32);
}

}  // namespace hlo
