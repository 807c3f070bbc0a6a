#include "gpu_exec/libraries/cublas_lt.h"

#include <array>
#include <optional>

#include "gpu_exec/driver/kernel_cache.h"
#include "ir/base/check.h"

namespace hlo {

using namespace cuda;

namespace {

// cudaDataType_t.
std::optional<int> cublas_type(ElementType t) {
  switch (t) {
    case ElementType::F32:
      return 0;
    case ElementType::F64:
      return 1;
    case ElementType::F16:
      return 2;
    case ElementType::BF16:
      return 14;
    case ElementType::F8E4M3FN:
      return 28;
    case ElementType::F8E5M2:
      return 29;
    default:
      return std::nullopt;
  }
}

// cublasLtMatmulDescAttributes_t and the other enumerations of cublasLt.h.
enum Attribute {
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAuxPointer = 11,
  kAuxStep = 12,
  kAuxBatchStep = 13,
  kScaleA = 17,
  kScaleB = 18,
  kScaleD = 20,
  kAuxType = 22,
  kBiasType = 26,
};
constexpr int kLayoutBatch = 5, kLayoutBatchStep = 6, kPreferWorkspace = 1;
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr size_t kWorkspace = size_t{32} << 20;
constexpr int kMostAlgorithms = 8;  // algorithms that are looked at

bool eight_bits(ElementType t) { return t == ElementType::F8E4M3FN || t == ElementType::F8E5M2; }

// What is added has 16 bits where the result has eight, even if nothing is: those of the bias.
ElementType added_type(const MatrixProduct& p) {
  if (!eight_bits(p.type)) return p.type;
  return p.bias && p.bias_type == ElementType::F16 ? ElementType::F16 : ElementType::BF16;
}

// Does the documentation of cublasLtMatmul() name this product of eight-bit types? Both sides along what is summed ("TN
// format"), 16 bytes' worth of each leading dimension, its table of types, factors of eight-bit matrices only.
bool documented(const MatrixProduct& p) {
  if (!eight_bits(p.left) || !eight_bits(p.right) || p.transpose_left || !p.transpose_right) return false;
  const bool one_e5m2 = p.left == ElementType::F8E5M2 || p.right == ElementType::F8E5M2;
  if (p.left == ElementType::F8E5M2 && p.right == ElementType::F8E5M2) return false;
  if (p.k % 16 || p.n * storage_bytes(p.type) % 16 || p.before) return false;
  if (eight_bits(p.type)) {
    if (p.beta != 0 || (p.type == ElementType::F8E5M2 && !one_e5m2)) return false;
  } else if (p.scale || (p.type != ElementType::F32 && p.type != ElementType::BF16 && p.type != ElementType::F16)) {
    return false;
  }
  const ElementType bias = added_type(p) == ElementType::F16 ? ElementType::F16 : ElementType::BF16;
  return !p.bias || p.bias_type == bias;
}

}  // namespace

// The descriptors of one kind of product. cuBLASLt is column-major: it makes the transposed product of the operands in
// turn, so its A is our right side and its D our result.
struct LtProducts::Plan {
  explicit Plan(const BlasLt& library) : lt(library) {}
  ~Plan() {
    if (operation) lt.cublasLtMatmulDescDestroy(operation);
    for (void* layout : {a, b, c, d})
      if (layout) lt.cublasLtMatrixLayoutDestroy(layout);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const BlasLt& lt;
  MatrixProduct product;
  std::string key;
  void *operation = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
  std::vector<LtHeuristic> found;  // the library's best first
  std::optional<size_t> chosen;
};

std::unique_ptr<LtProducts> LtProducts::make(const Driver& driver, StreamHandle* stream, std::string card) {
  const BlasLt* lt = blas_lt();
  if (!lt) return nullptr;
  std::unique_ptr<LtProducts> out(new LtProducts(*lt, driver, stream, std::move(card)));
  if (lt->cublasLtCreate(&out->handle_) != 0) return nullptr;
  return out;
}

LtProducts::LtProducts(const BlasLt& lt, const Driver& driver, StreamHandle* stream, std::string card)
    : lt_(lt), driver_(driver), stream_(stream), card_(std::move(card)) {}

LtProducts::~LtProducts() {
  plans_.clear();
  if (workspace_) driver_.cuMemFree(workspace_);
  if (handle_) lt_.cublasLtDestroy(handle_);
}

std::string LtProducts::version() const {
  size_t v = lt_.version();
  return fmt::format("cuBLASLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

bool LtProducts::takes(const MatrixProduct& p) { return plan(p) != nullptr; }

LtProducts::Plan* LtProducts::plan(const MatrixProduct& p) {
  std::string key = fmt::format("{} {} {} {} {} {} {} {}{} {} {} {} {} {} {} {}{}{}", type_name(p.type),
                                type_name(p.left), type_name(p.right), p.batch, p.m, p.n, p.k, p.transpose_left,
                                p.transpose_right, p.alpha, p.beta, static_cast<int>(p.epilogue), p.bias,
                                type_name(p.bias_type), p.before, p.left_scale, p.right_scale, p.scale);
  if (p.tf32) key += " tf32";
  auto [at, fresh] = plans_.try_emplace(key);
  if (!fresh) return at->second.get();
  std::optional<int> left = cublas_type(p.left), right = cublas_type(p.right), out = cublas_type(p.type),
                     bias = cublas_type(p.bias_type);
  if (!left || !right || !out || !bias) return nullptr;
  const bool small = eight_bits(p.left) || eight_bits(p.right) || eight_bits(p.type);
  if (small && !documented(p)) return nullptr;
  auto plan = std::make_unique<Plan>(lt_);
  plan->product = p, plan->key = std::move(key);
  bool wide = p.type == ElementType::F64;
  bool good = lt_.cublasLtMatmulDescCreate(&plan->operation,
                                           wide     ? kCompute64
                                           : p.tf32 ? kComputeTf32
                                                    : kCompute32,
                                           wide ? 1 : 0) == 0;
  auto set = [&](Attribute key, const auto& value) {
    good = good && lt_.cublasLtMatmulDescSetAttribute(plan->operation, key, &value, sizeof value) == 0;
  };
  set(kTransposeA, int32_t{p.transpose_right}), set(kTransposeB, int32_t{p.transpose_left});
  uint32_t epilogue = p.epilogue == MatrixProduct::Epilogue::kRelu   ? 2
                      : p.epilogue == MatrixProduct::Epilogue::kGelu ? 32
                                                                     : 0;
  if (p.bias) epilogue |= 4;
  if (p.before) epilogue |= 128;
  set(kEpilogue, epilogue ? epilogue : uint32_t{1});
  // Only their alignment counts until the call.
  const void* somewhere = reinterpret_cast<const void*>(uintptr_t{256});
  if (p.bias) set(kBiasPointer, somewhere), set(kBiasType, int32_t{*bias});
  if (p.before) {
    set(kAuxPointer, somewhere), set(kAuxStep, p.n), set(kAuxBatchStep, p.m * p.n), set(kAuxType, int32_t{*out});
  }
  if (p.left_scale) set(kScaleB, somewhere);
  if (p.right_scale) set(kScaleA, somewhere);
  if (p.scale) set(kScaleD, somewhere);
  auto layout = [&](void** to, int type, int64_t rows, int64_t columns) {
    good = good && lt_.cublasLtMatrixLayoutCreate(to, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                                  rows) == 0;
    if (p.batch == 1 || !good) return;
    auto count = static_cast<int32_t>(p.batch);
    int64_t step = rows * columns;
    good = lt_.cublasLtMatrixLayoutSetAttribute(*to, kLayoutBatch, &count, sizeof count) == 0 &&
           lt_.cublasLtMatrixLayoutSetAttribute(*to, kLayoutBatchStep, &step, sizeof step) == 0;
  };
  layout(&plan->a, *right, p.transpose_right ? p.k : p.n, p.transpose_right ? p.n : p.k);
  layout(&plan->b, *left, p.transpose_left ? p.m : p.k, p.transpose_left ? p.k : p.m);
  layout(&plan->d, *out, p.n, p.m);
  layout(&plan->c, *cublas_type(added_type(p)), p.n, p.m);
  void* preference = nullptr;
  good = good && lt_.cublasLtMatmulPreferenceCreate(&preference) == 0;
  int count = 0;
  std::array<LtHeuristic, kMostAlgorithms> found{};
  good = good &&
         lt_.cublasLtMatmulPreferenceSetAttribute(preference, kPreferWorkspace, &kWorkspace, sizeof kWorkspace) == 0 &&
         lt_.cublasLtMatmulAlgoGetHeuristic(handle_, plan->operation, plan->a, plan->b, plan->c, plan->d, preference,
                                            kMostAlgorithms, found.data(), &count) == 0;
  if (preference) lt_.cublasLtMatmulPreferenceDestroy(preference);
  for (int k = 0; good && k < count; ++k)
    if (found[static_cast<size_t>(k)].state == 0) plan->found.push_back(found[static_cast<size_t>(k)]);
  if (plan->found.empty()) return nullptr;
  if (!workspace_) {
    if (Result r = driver_.cuMemAlloc(&workspace_, kWorkspace); r != 0) {
      workspace_ = 0;
      return nullptr;
    }
  }
  if (small && !try_out(*plan)) return nullptr;
  at->second = std::move(plan);
  return at->second.get();
}

// Algorithms for eight-bit types are found that then refuse the call (CUBLAS_STATUS_INVALID_VALUE, an H200 with
// cuBLASLt 13): each is called once on memory of its own, and those that refuse go. False where none is left.
bool LtProducts::try_out(Plan& plan) {
  const MatrixProduct& p = plan.product;
  constexpr int64_t kAlign = 256;
  int64_t bytes = 0;
  auto room = [&](int64_t count, ElementType type) {
    int64_t at = bytes;
    bytes += (p.batch * count * storage_bytes(type) + kAlign - 1) / kAlign * kAlign;
    return at;
  };
  const int64_t left = room(p.m * p.k, p.left), right = room(p.k * p.n, p.right), out = room(p.m * p.n, p.type),
                bias = room(p.n, ElementType::F32), factors = room(1, ElementType::F32),
                matrix = p.beta != 0 ? room(p.m * p.n, p.type) : 0;
  Pointer memory = 0;
  if (driver_.cuMemAlloc(&memory, static_cast<size_t>(bytes)) != 0) return false;
  char* base = reinterpret_cast<char*>(memory);
  bool cleared = driver_.cuMemsetD8Async(memory, 0, static_cast<size_t>(bytes), stream_) == 0;
  ProductArrays at;
  at.left = base + left, at.right = base + right, at.out = base + out, at.bias = base + bias;
  at.left_scale = at.right_scale = at.scale = base + factors;
  if (p.beta != 0) at.matrix = base + matrix;
  std::erase_if(plan.found, [&](const LtHeuristic& h) { return call(plan, at, h.algorithm) != 0; });
  bool done = driver_.cuStreamSynchronize(stream_) == 0;
  driver_.cuMemFree(memory);
  return cleared && done && !plan.found.empty();
}

Result LtProducts::call(Plan& plan, const ProductArrays& at, const LtAlgorithm& algorithm) {
  const MatrixProduct& p = plan.product;
  auto pointer = [&](Attribute key, const void* value) {
    lt_.cublasLtMatmulDescSetAttribute(plan.operation, key, &value, sizeof value);
  };
  if (p.bias) pointer(kBiasPointer, at.bias);
  if (p.before) pointer(kAuxPointer, at.before);
  if (p.left_scale) pointer(kScaleB, at.left_scale);
  if (p.right_scale) pointer(kScaleA, at.right_scale);
  if (p.scale) pointer(kScaleD, at.scale);
  const auto alpha32 = static_cast<float>(p.alpha), beta32 = static_cast<float>(p.beta);
  bool wide = p.type == ElementType::F64;
  const void* alpha = wide ? static_cast<const void*>(&p.alpha) : &alpha32;
  const void* beta = wide ? static_cast<const void*>(&p.beta) : &beta32;
  // What is not added lies where the result does only as the very same matrix: of another type it is some other memory,
  // which is not read.
  const void* nothing = added_type(p) == p.type ? at.out : reinterpret_cast<const char*>(workspace_);
  return lt_.cublasLtMatmul(handle_, plan.operation, alpha, at.right, plan.a, at.left, plan.b, beta,
                            at.matrix ? at.matrix : nothing, plan.c, at.out, plan.d, &algorithm,
                            reinterpret_cast<void*>(workspace_), kWorkspace, stream_);
}

size_t LtProducts::fastest(Plan& plan, const ProductArrays& at) {
  // What is added stays as it is while algorithms are tried: their results go elsewhere where it lies in the result.
  const MatrixProduct& p = plan.product;
  ProductArrays aside = at;
  Pointer elsewhere = 0;
  if (at.matrix && at.matrix == at.out) {
    auto bytes = static_cast<size_t>(p.batch * p.m * p.n * storage_bytes(p.type));
    if (driver_.cuMemAlloc(&elsewhere, bytes) != 0) return 0;  // the library's own first choice
    aside.out = reinterpret_cast<char*>(elsewhere);
  }
  size_t best = fastest_of(driver_, stream_, plan.found.size(),
                           [&](size_t k) { return call(plan, aside, plan.found[k].algorithm); });
  if (elsewhere) driver_.cuMemFree(elsewhere);
  return best;
}

void LtProducts::run(const MatrixProduct& p, const ProductArrays& at) {
  Plan* known = plan(p);
  HLO_CHECK(known, "no plan for a product of {} by {} by {}", p.m, p.n, p.k);
  if (!known->chosen)
    known->chosen = kept_choice(known->key, fmt::format("{} on {}", version(), card_), known->found.size(),
                                [&] { return fastest(*known, at); });
  if (Result r = call(*known, at, known->found[*known->chosen].algorithm))
    fail(FailureKind::kUnsupported, "cublasLtMatmul: status {}", r);
}

}  // namespace hlo
