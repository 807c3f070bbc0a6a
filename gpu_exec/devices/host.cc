#include "gpu_exec/devices/host.h"

#include <algorithm>
#include <cstring>

#include "gpu_exec/devices/host_memory.h"
#include "gpu_exec/devices/jit.h"
#include "gpu_exec/emit/kernel.h"
#include "gpu_exec/libraries/onednn.h"
#include "ir/base/check.h"
#include "ir/base/parallel.h"
#include "ir/eval/blas.h"
#include "ir/eval/kernels.h"

namespace hlo {
namespace {

using HostFunction = void (*)(char* const*, char* const*, int64_t, int64_t);

// Work below which another thread costs more than it brings.
constexpr int64_t kGrain = 1 << 16;

// A thread an element, as the emitter would have them, products take far longer than the evaluator's.
Kernel host_kernel(const Module& m, InstId i, llvm::Module& into, const std::string& name) {
  if (m.op(i) == Opcode::Dot || m.op(i) == Opcode::Convolution)
    fail(FailureKind::kUnsupported, "no kernel for {} ({}): no library here takes it", m.inst_name(i),
         op_text(m.op(i)));
  return build_host_kernel(m, i, into, name);
}

class Host : public HostMemoryDevice {
 public:
  explicit Host(bool exact) : exact_(exact) {}
  std::string name() const override { return "the host"; }
  bool on_host() const override { return true; }

  std::vector<Kernel> load(const Module& m, const std::vector<std::vector<InstId>>& kinds,
                           std::vector<std::pair<size_t, std::string>>* without) override {
    JitModules code;
    std::vector<Kernel> kernels = code.build(m, kinds, host_kernel, without);
    jits_.push_back(code.finish(nullptr));
    for (Kernel& k : kernels) {
      kernels_.emplace_back();
      for (KernelPart& p : k.parts)
        kernels_.back().push_back({reinterpret_cast<HostFunction>(jit_function(*jits_.back(), p.function)),
                                   p.results.size(), p.count,
                                   std::max<int64_t>(kGrain / std::max<int64_t>(p.work, 1), 1)});
    }
    return kernels;
  }

  void copy(char* to, const char* from, int64_t bytes) override {
    parallel_ranges(bytes, kGrain * 8, [&](int64_t first, int64_t last) {
      std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
    });
  }
  void fill(char* to, uint32_t pattern, int width, int64_t count) override {
    auto all = [&](auto value) {
      parallel_ranges(count, kGrain * 8, [&](int64_t first, int64_t last) {
        auto* at = reinterpret_cast<decltype(value)*>(to);
        std::fill(at + first, at + last, value);
      });
    };
    width == 1 ? all(static_cast<uint8_t>(pattern)) : width == 2 ? all(static_cast<uint16_t>(pattern)) : all(pattern);
  }

  void launch(size_t kernel, size_t part, std::span<char* const> pointers, std::span<const int32_t>) override {
    const Part& p = kernels_[kernel][part];
    char* const* results = pointers.data() + (pointers.size() - p.results);
    parallel_ranges(p.count, p.grain,
                    [&](int64_t first, int64_t last) { p.function(pointers.data(), results, first, last); });
  }

  bool multiplies(const MatrixProduct& p) override {
    return !exact_ && p.plain() && (p.type == ElementType::F32 || p.type == ElementType::F64) &&
           p.m * p.n * p.k > 4096 && std::max({p.m, p.n, p.k}) <= INT32_MAX && has_blas();
  }
  void multiply(const MatrixProduct& p, const ProductArrays& at) override {
    blas_product({p.type, p.batch, p.m, p.n, p.k, p.transpose_left, p.transpose_right, p.alpha, p.beta}, at.left,
                 at.right, at.out);
  }
  bool performs(const Module& m, InstId i) override {
    if (m.op(i) != Opcode::Dot) return false;
    for (const Shape* s : {&m.shape(i), &m.shape(m.operand(i, 0)), &m.shape(m.operand(i, 1))})
      if (s->is_dynamic() || s->type == ElementType::Pred) return false;
    return true;
  }
  void perform(const Module& m, InstId i, std::span<char* const> in, std::span<char* const> out) override {
    const AttrSet& a = m.attrs(i);
    dot_arrays({a.ints(Attr::lhs_batch_dims), a.ints(Attr::lhs_contracting_dims), a.ints(Attr::rhs_batch_dims),
                a.ints(Attr::rhs_contracting_dims)},
               exact_, m.shape(m.operand(i, 0)), in[0], m.shape(m.operand(i, 1)), in[1], m.shape(i), out[0]);
  }
  bool convolves(const ConvolutionForm& f) override { return !exact_ && convolutions_.takes(f); }
  void convolve(const ConvolutionForm& f, const ConvolutionArrays& at) override { convolutions_.run(f, at); }
  std::string library() const override {
    std::string dnn = convolutions_.library();
    return dnn.empty() ? "OpenBLAS" : has_blas() ? "OpenBLAS and " + dnn : dnn;
  }

 private:
  struct Part {
    HostFunction function;
    size_t results;
    int64_t count, grain;
  };
  bool exact_;
  HostConvolutions convolutions_;
  std::vector<std::unique_ptr<llvm::orc::LLJIT>> jits_;
  std::vector<std::vector<Part>> kernels_;
};

}  // namespace

std::unique_ptr<Device> host_device(bool exact) { return std::make_unique<Host>(exact); }

}  // namespace hlo
