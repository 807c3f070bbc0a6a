// Products with epilogues, factors and mixed types by cuBLASLt. Not for threads.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "gpu_exec/driver/cuda.h"
#include "gpu_exec/driver/device.h"

namespace hlo {

class LtProducts {
 public:
  // Null where the library is not there or does not start. `driver` and `stream` outlive it; `card` names the device
  // that choices are kept for (kernel_cache.h).
  static std::unique_ptr<LtProducts> make(const cuda::Driver& driver, cuda::StreamHandle* stream, std::string card);
  ~LtProducts();
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  // Has the library an algorithm for it on this card? Of eight-bit types only what its documentation names, and what a
  // call on memory of its own did not refuse.
  bool takes(const MatrixProduct& p);
  // One that takes() said yes to. The first call of each times the algorithms that the library thinks best and keeps
  // the fastest, so it must not be recorded into a graph. Throws Failure(kUnsupported).
  void run(const MatrixProduct& p, const ProductArrays& at);
  std::string version() const;  // "cuBLASLt 13.0.0"

 private:
  struct Plan;
  LtProducts(const cuda::BlasLt& lt, const cuda::Driver& driver, cuda::StreamHandle* stream, std::string card);
  Plan* plan(const MatrixProduct& p);
  bool try_out(Plan& plan);
  cuda::Result call(Plan& plan, const ProductArrays& at, const cuda::LtAlgorithm& algorithm);
  size_t fastest(Plan& plan, const ProductArrays& at);

  const cuda::BlasLt& lt_;
  const cuda::Driver& driver_;
  cuda::StreamHandle* stream_;
  std::string card_;
  void* handle_ = nullptr;
  cuda::Pointer workspace_ = 0;
  std::map<std::string, std::unique_ptr<Plan>> plans_;  // by all that a product is; null: the library has none
};

}  // namespace hlo
