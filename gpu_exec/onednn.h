// oneDNN's convolutions on the host, where the library is found: loaded when the first one is wanted.
#pragma once
#include <memory>
#include <string>

#include "ir/module.h"

namespace hlo {

class HostConvolutions {
 public:
  HostConvolutions();
  ~HostConvolutions();
  HostConvolutions(const HostConvolutions&) = delete;
  HostConvolutions& operator=(const HostConvolutions&) = delete;

  // Has the library code for this convolution of f32 (one batch group, no base dilation, not reversed)?
  bool takes(const Module& m, InstId convolution);
  // Row-major arrays by HLO's dimensions, as the evaluator has them. Throws Failure(kInternal) with the library's
  // status.
  void run(const Module& m, InstId convolution, const char* input, const char* kernel, char* result);
  // "oneDNN 2.6.3"; empty where it is not found.
  std::string library() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hlo
