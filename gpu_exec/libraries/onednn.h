// oneDNN's convolutions on the host, where the library is found: loaded when the first one is wanted.
#pragma once
#include <memory>
#include <string>

#include "gpu_exec/driver/device.h"

namespace hlo {

class HostConvolutions {
 public:
  HostConvolutions();
  ~HostConvolutions();
  HostConvolutions(const HostConvolutions&) = delete;
  HostConvolutions& operator=(const HostConvolutions&) = delete;

  // Has the library code for it: forward, of f32, with bias, a sum and relu behind it as post-operations?
  bool takes(const ConvolutionForm& f);
  // Throws Failure(kInternal) with the library's status.
  void run(const ConvolutionForm& f, const ConvolutionArrays& at);
  // "oneDNN 2.6.3"; empty where it is not found.
  std::string library() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hlo
