// Convolutions by cuDNN's graphs. Not for threads.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "gpu_exec/driver/cuda.h"
#include "gpu_exec/driver/device.h"

namespace hlo {

class DnnConvolutions {
 public:
  // Null where the library is not there or does not start. `driver` and `stream` outlive it; `card` names the device
  // that choices are kept for (kernel_cache.h).
  static std::unique_ptr<DnnConvolutions> make(const cuda::Driver& driver, cuda::StreamHandle* stream,
                                               std::string card);
  ~DnnConvolutions();
  DnnConvolutions(const DnnConvolutions&) = delete;
  DnnConvolutions& operator=(const DnnConvolutions&) = delete;

  // Has the library an engine for it on this card? Asked only for layouts that its documentation names: all arrays with
  // features last or all with features first, of doubles the latter. f32 stays f32 but where form.tf32 lets it be
  // rounded: engines that round inputs to fewer bits are left out, and those that do not say.
  bool takes(const ConvolutionForm& form);
  // One that takes() said yes to. The first call of each times the engines that the library thinks best, so it must not
  // be recorded into a graph. Throws Failure(kUnsupported).
  void run(const ConvolutionForm& form, const ConvolutionArrays& at);
  std::string version() const;  // "cuDNN 9.28.1"

 private:
  struct Plan;
  struct Descriptor;
  class Graph;
  DnnConvolutions(const cuda::Dnn& dnn, const cuda::Driver& driver, cuda::StreamHandle* stream, std::string card);
  bool keeps_numbers(const ConvolutionForm& form, const Descriptor& config);
  Plan* plan(const ConvolutionForm& form);
  bool build(const ConvolutionForm& form, Plan& plan);
  void find_engines(const ConvolutionForm& form, const Descriptor& graph, int32_t mode, Plan& plan);
  cuda::Result call(const Plan& plan, size_t engine, const ConvolutionArrays& at);
  size_t fastest(const Plan& plan, const ConvolutionArrays& at);

  const cuda::Dnn& dnn_;
  const cuda::Driver& driver_;
  cuda::StreamHandle* stream_;
  std::string card_;
  void* handle_ = nullptr;
  cuda::Pointer workspace_ = 0;
  int64_t workspace_bytes_ = 0;
  std::map<std::string, std::unique_ptr<Plan>> plans_;  // by all that a convolution is; null: the library has none
};

}  // namespace hlo
