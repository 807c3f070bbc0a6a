// The CUDA driver, loaded when it is there: no header of CUDA's, no library to link. Names, values and signatures are
// those of cuda.h 12.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hlo::cuda {

using Result = int;
using DeviceNumber = int;
using Pointer = unsigned long long;
struct ContextHandle;
struct ModuleHandle;
struct FunctionHandle;
struct StreamHandle;
struct EventHandle;
struct GraphHandle;
struct GraphExecHandle;

// Attributes of a device (CU_DEVICE_ATTRIBUTE_…).
constexpr int kMajor = 75, kMinor = 76;
// Options of a module's loading (CU_JIT_…).
constexpr int kErrorLog = 5, kErrorLogBytes = 6;
// Of a function: the dynamic shared memory that a launch may ask for (CU_FUNC_ATTRIBUTE_…).
constexpr int kDynamicShared = 8;

// Entry points, with the version suffix that the name in cuda.h stands for.
#define HLO_CUDA_FUNCTIONS(F)                                                                                      \
  F(cuInit, cuInit, unsigned)                                                                                      \
  F(cuDriverGetVersion, cuDriverGetVersion, int*)                                                                  \
  F(cuDeviceGetCount, cuDeviceGetCount, int*)                                                                      \
  F(cuDeviceGet, cuDeviceGet, DeviceNumber*, int)                                                                  \
  F(cuDeviceGetName, cuDeviceGetName, char*, int, DeviceNumber)                                                    \
  F(cuDeviceGetAttribute, cuDeviceGetAttribute, int*, int, DeviceNumber)                                           \
  F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, ContextHandle**, DeviceNumber)                             \
  F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, DeviceNumber)                                         \
  F(cuCtxSetCurrent, cuCtxSetCurrent, ContextHandle*)                                                              \
  F(cuModuleLoadDataEx, cuModuleLoadDataEx, ModuleHandle**, const void*, unsigned, int*, void**)                   \
  F(cuModuleUnload, cuModuleUnload, ModuleHandle*)                                                                 \
  F(cuModuleGetFunction, cuModuleGetFunction, FunctionHandle**, ModuleHandle*, const char*)                        \
  F(cuFuncSetAttribute, cuFuncSetAttribute, FunctionHandle*, int, int)                                             \
  F(cuMemGetInfo, cuMemGetInfo_v2, size_t*, size_t*)                                                               \
  F(cuMemAlloc, cuMemAlloc_v2, Pointer*, size_t)                                                                   \
  F(cuMemFree, cuMemFree_v2, Pointer)                                                                              \
  F(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, Pointer, const void*, size_t, StreamHandle*)                          \
  F(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void*, Pointer, size_t, StreamHandle*)                                \
  F(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, Pointer, Pointer, size_t, StreamHandle*)                              \
  F(cuMemsetD8Async, cuMemsetD8Async, Pointer, unsigned char, size_t, StreamHandle*)                               \
  F(cuMemsetD16Async, cuMemsetD16Async, Pointer, unsigned short, size_t, StreamHandle*)                            \
  F(cuMemsetD32Async, cuMemsetD32Async, Pointer, unsigned, size_t, StreamHandle*)                                  \
  F(cuStreamCreate, cuStreamCreate, StreamHandle**, unsigned)                                                      \
  F(cuStreamDestroy, cuStreamDestroy_v2, StreamHandle*)                                                            \
  F(cuStreamSynchronize, cuStreamSynchronize, StreamHandle*)                                                       \
  F(cuStreamWaitEvent, cuStreamWaitEvent, StreamHandle*, EventHandle*, unsigned)                                   \
  F(cuEventCreate, cuEventCreate, EventHandle**, unsigned)                                                         \
  F(cuEventDestroy, cuEventDestroy_v2, EventHandle*)                                                               \
  F(cuEventRecord, cuEventRecord, EventHandle*, StreamHandle*)                                                     \
  F(cuEventSynchronize, cuEventSynchronize, EventHandle*)                                                          \
  F(cuEventElapsedTime, cuEventElapsedTime, float*, EventHandle*, EventHandle*)                                    \
  F(cuLaunchKernel, cuLaunchKernel, FunctionHandle*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,   \
    unsigned, StreamHandle*, void**, void**)                                                                       \
  F(cuStreamBeginCapture, cuStreamBeginCapture_v2, StreamHandle*, int)                                             \
  F(cuStreamEndCapture, cuStreamEndCapture, StreamHandle*, GraphHandle**)                                          \
  F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, GraphExecHandle**, GraphHandle*, unsigned long long) \
  F(cuGraphLaunch, cuGraphLaunch, GraphExecHandle*, StreamHandle*)                                                 \
  F(cuGraphExecDestroy, cuGraphExecDestroy, GraphExecHandle*)                                                      \
  F(cuGraphDestroy, cuGraphDestroy, GraphHandle*)                                                                  \
  F(cuGetErrorName, cuGetErrorName, Result, const char**)                                                          \
  F(cuGetErrorString, cuGetErrorString, Result, const char**)

struct Driver {
#define HLO_CUDA_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  HLO_CUDA_FUNCTIONS(HLO_CUDA_MEMBER)
#undef HLO_CUDA_MEMBER
};

// The driver of this process, loaded once: libcuda.so.1, or what HLO_CUDA_DRIVER names. Null where there is none, or no
// device; `why` then says so.
const Driver* driver(std::string* why);
// Throws Failure(kUnsupported) with the call, its error's name and text.
void check(const Driver& d, Result r, const char* call);

// Which of `count` ways to do something on the stream takes least time, by events; those that fail are left out, 0
// where all do.
size_t fastest_of(const Driver& d, StreamHandle* stream, size_t count, const std::function<Result(size_t)>& call);

// cuBLAS, where it is found (HLO_CUBLAS names another file); none of it where a function is missing.
struct Blas {
  using Handle = void*;
  Result (*create)(Handle*) = nullptr;
  Result (*destroy)(Handle) = nullptr;
  Result (*set_stream)(Handle, StreamHandle*) = nullptr;
  Result (*version)(Handle, int*) = nullptr;
  Result (*gemm_strided_batched)(Handle, int, int, int, int, int, const void*, const void*, int, int, long long,
                                 const void*, int, int, long long, const void*, void*, int, int, long long, int, int,
                                 int) = nullptr;
};
const Blas* blas();

// cuBLASLt: products with what stands around them. Where it is found (HLO_CUBLASLT names another file), all of it.
// Names, values and signatures are those of cublasLt.h 12 and 13.
struct LtAlgorithm {
  uint64_t data[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
#define HLO_CUBLASLT_FUNCTIONS(F)                                                                                \
  F(cublasLtCreate, void**)                                                                                      \
  F(cublasLtDestroy, void*)                                                                                      \
  F(cublasLtMatmulDescCreate, void**, int, int)                                                                  \
  F(cublasLtMatmulDescDestroy, void*)                                                                            \
  F(cublasLtMatmulDescSetAttribute, void*, int, const void*, size_t)                                             \
  F(cublasLtMatrixLayoutCreate, void**, int, uint64_t, uint64_t, int64_t)                                        \
  F(cublasLtMatrixLayoutDestroy, void*)                                                                          \
  F(cublasLtMatrixLayoutSetAttribute, void*, int, const void*, size_t)                                           \
  F(cublasLtMatmulPreferenceCreate, void**)                                                                      \
  F(cublasLtMatmulPreferenceDestroy, void*)                                                                      \
  F(cublasLtMatmulPreferenceSetAttribute, void*, int, const void*, size_t)                                       \
  F(cublasLtMatmulAlgoGetHeuristic, void*, void*, void*, void*, void*, void*, void*, int, LtHeuristic*, int*)    \
  F(cublasLtMatmul, void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, \
    void*, void*, void*, const LtAlgorithm*, void*, size_t, StreamHandle*)
struct BlasLt {
#define HLO_CUBLASLT_MEMBER(name, ...) Result (*name)(__VA_ARGS__) = nullptr;
  HLO_CUBLASLT_FUNCTIONS(HLO_CUBLASLT_MEMBER)
#undef HLO_CUBLASLT_MEMBER
  size_t (*version)() = nullptr;
};
const BlasLt* blas_lt();

// cuDNN's graphs. Where it is found (HLO_CUDNN names another file), all of it. Names, values and signatures are those
// of cudnn_graph.h 9.
struct Dnn {
  Result (*create)(void**) = nullptr;
  Result (*destroy)(void*) = nullptr;
  Result (*set_stream)(void*, StreamHandle*) = nullptr;
  size_t (*version)() = nullptr;
  Result (*create_descriptor)(int, void**) = nullptr;
  Result (*destroy_descriptor)(void*) = nullptr;
  Result (*finalize)(void*) = nullptr;
  Result (*set_attribute)(void*, int, int, int64_t, const void*) = nullptr;
  Result (*get_attribute)(void*, int, int, int64_t, int64_t*, void*) = nullptr;
  Result (*execute)(void*, void*, void*) = nullptr;
};
const Dnn* dnn();

}  // namespace hlo::cuda

namespace hlo {

class Device;

// The first card that the driver knows (or the one that CUDA_VISIBLE_DEVICES leaves). `tf32`: f32 products and
// convolutions in TF32 where the module leaves that open. Throws Failure(kUnsupported).
std::unique_ptr<Device> cuda_device(bool tf32 = false);
// Why there is none; empty where there is one.
std::string cuda_unavailable();

}  // namespace hlo
