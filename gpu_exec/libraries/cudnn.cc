#include "gpu_exec/libraries/cudnn.h"

#include <algorithm>
#include <optional>

#include "gpu_exec/driver/kernel_cache.h"
#include "ir/base/check.h"

namespace hlo {

using namespace cuda;

namespace {

// cudnnBackendDescriptorType_t.
enum DescriptorType {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kExecutionPlan = 5,
  kForwardOperation = 10,
  kFilterOperation = 11,
  kInputOperation = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};
// cudnnBackendAttributeType_t.
enum AttributeType {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicsMode = 8,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
};
// cudnnBackendAttributeName_t.
enum AttributeName {
  kPointwiseModeOf = 0,
  kPointwisePrecision = 1,
  kComputeType = 100,
  kMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPostPaddings = 104,
  kPrePaddings = 105,
  kSpatialDims = 106,
  kHeuristicsModeOf = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,  // and beta, convolution, w, x, y behind it
  kInputAlpha = 706,    // and beta, convolution, w, dx, dy
  kFilterAlpha = 712,   // and beta, convolution, dw, x, dy
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseAlpha1 = 754,
  kPointwiseAlpha2 = 755,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDims = 902,
  kTensorSteps = 903,
  kTensorId = 906,
  kTensorVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
};
constexpr int32_t kCrossCorrelation = 1, kAdd = 0, kRelu = 100, kHeuristicsA = 3, kFallback = 2;
constexpr int32_t kTensorCores = 0, kRoundsInputs = 1, kRoundsSums = 2;
constexpr size_t kMostEngines = 8;                      // engines that are looked at
constexpr int64_t kMostWorkspace = int64_t{512} << 20;  // bytes
// Of tensors, in the graph and when it runs.
enum TensorId : int64_t { kIdX = 1, kIdW, kIdY, kIdSide, kIdBias, kIdVirtual };

// cudnnDataType_t.
std::optional<int32_t> cudnn_type(ElementType t) {
  switch (t) {
    case ElementType::F32:
      return 0;
    case ElementType::F64:
      return 1;
    case ElementType::F16:
      return 2;
    case ElementType::BF16:
      return 9;
    default:
      return std::nullopt;
  }
}

// The form in one of the two layouts that the documentation names for all three arrays (features last: NHWC and KRSC,
// features first: NCHW and KCRS; doubles have features first), with the steps of that layout also where a size of one
// leaves them open. None where the arrays lie otherwise: some engine takes such a filter and reads it as KRSC or KCRS
// all the same (an H200, cuDNN 9.19).
std::optional<ConvolutionForm> documented(const ConvolutionForm& form) {
  auto laid = [](Dims dims, bool last) {
    Dims steps(dims.size());
    int64_t step = 1;
    if (last) steps[1] = 1, step = dims[1];
    for (size_t k = dims.size(); k-- > 0;)
      if (k != 1 || !last) steps[k] = step, step *= dims[k];
    return steps;
  };
  for (bool last : {true, false}) {
    if (last && form.type == ElementType::F64) continue;
    ConvolutionForm f = form;
    bool same = true;
    for (auto [dims, steps] : {std::pair(&f.x, &f.x_steps), std::pair(&f.w, &f.w_steps), std::pair(&f.y, &f.y_steps)}) {
      Dims want = laid(*dims, last);
      for (size_t k = 0; k < dims->size(); ++k) same = same && ((*dims)[k] == 1 || (*steps)[k] == want[k]);
      *steps = std::move(want);
    }
    if (same) return f;
  }
  return std::nullopt;
}

}  // namespace

// A descriptor with its attributes; the first refusal is kept in `good`.
struct DnnConvolutions::Descriptor {
  Descriptor(const Dnn& library, DescriptorType type) : dnn(&library) { good = dnn->create_descriptor(type, &at) == 0; }
  ~Descriptor() {
    if (at) dnn->destroy_descriptor(at);
  }
  Descriptor(Descriptor&& other) noexcept : dnn(other.dnn), at(std::exchange(other.at, nullptr)), good(other.good) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(dnn, other.dnn), std::swap(at, other.at), std::swap(good, other.good);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Descriptor& set(int name, AttributeType type, int64_t count, const void* values) {
    good = good && dnn->set_attribute(at, name, type, count, values) == 0;
    return *this;
  }
  Descriptor& number(int name, int64_t value) { return set(name, kInt64, 1, &value); }
  Descriptor& word(int name, AttributeType type, int32_t value) { return set(name, type, 1, &value); }
  Descriptor& dims(int name, const Dims& values) {
    return set(name, kInt64, static_cast<int64_t>(values.size()), values.data());
  }
  // A factor in the type that the sums are of.
  Descriptor& factor(int name, double value, bool wide) {
    auto narrow = static_cast<float>(value);
    return wide ? set(name, kDouble, 1, &value) : set(name, kFloat, 1, &narrow);
  }
  Descriptor& other(int name, const Descriptor& d) {
    good = good && d.good;
    return set(name, kDescriptor, 1, &d.at);
  }
  bool done() { return good = good && dnn->finalize(at) == 0; }

  const Dnn* dnn;
  void* at = nullptr;
  bool good = false;
};

struct DnnConvolutions::Plan {
  ConvolutionForm form;
  std::string key;
  std::vector<Descriptor> parts;             // what the graph is made of
  std::vector<Descriptor> configs, engines;  // execution plans of their configurations, the library's best first
  std::optional<size_t> chosen;
};

std::unique_ptr<DnnConvolutions> DnnConvolutions::make(const Driver& driver, StreamHandle* stream, std::string card) {
  const Dnn* library = dnn();
  if (!library) return nullptr;
  std::unique_ptr<DnnConvolutions> out(new DnnConvolutions(*library, driver, stream, std::move(card)));
  if (library->create(&out->handle_) != 0) {
    out->handle_ = nullptr;
    return nullptr;
  }
  return library->set_stream(out->handle_, stream) == 0 ? std::move(out) : nullptr;
}

DnnConvolutions::DnnConvolutions(const Dnn& dnn, const Driver& driver, StreamHandle* stream, std::string card)
    : dnn_(dnn), driver_(driver), stream_(stream), card_(std::move(card)) {}

DnnConvolutions::~DnnConvolutions() {
  plans_.clear();
  if (workspace_) driver_.cuMemFree(workspace_);
  if (handle_) dnn_.destroy(handle_);
}

std::string DnnConvolutions::version() const {
  size_t v = dnn_.version();
  return fmt::format("cuDNN {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

bool DnnConvolutions::takes(const ConvolutionForm& form) { return plan(form) != nullptr; }

DnnConvolutions::Plan* DnnConvolutions::plan(const ConvolutionForm& f) {
  auto list = [](const Dims& dims) { return fmt::format("{}", fmt::join(dims, ",")); };
  std::string key =
      fmt::format("convolution {} {} x {}:{} w {}:{} y {}:{} pad {}:{} strides {} dilations {}",
                  static_cast<int>(f.kind), type_name(f.type), list(f.x), list(f.x_steps), list(f.w), list(f.w_steps),
                  list(f.y), list(f.y_steps), list(f.low), list(f.high), list(f.strides), list(f.dilations));
  key += fmt::format(" scale {} side {} {} bias {} {} relu {}", f.scale, f.side, f.side_scale, f.bias,
                     type_name(f.bias_type), f.relu);
  if (f.tf32) key += " tf32";
  auto [at, fresh] = plans_.try_emplace(key);
  if (!fresh) return at->second.get();
  std::optional<ConvolutionForm> asked = documented(f);
  if (!asked) return nullptr;
  auto plan = std::make_unique<Plan>();
  plan->form = std::move(*asked), plan->key = std::move(key);
  if (!build(plan->form, *plan)) return nullptr;
  // What every engine may need, before memory is shared out.
  int64_t most = 1;
  for (const Descriptor& e : plan->engines) {
    int64_t bytes = 0, count = 0;
    if (dnn_.get_attribute(e.at, kPlanWorkspace, kInt64, 1, &count, &bytes) == 0) most = std::max(most, bytes);
  }
  if (most > workspace_bytes_) {
    Pointer more = 0;
    if (driver_.cuMemAlloc(&more, static_cast<size_t>(most)) != 0) return nullptr;
    if (workspace_) driver_.cuMemFree(workspace_);
    workspace_ = more, workspace_bytes_ = most;
  }
  return (plans_[plan->key] = std::move(plan)).get();
}

// What an engine does not say of its numbers may be anything: it is left out, too.
bool DnnConvolutions::keeps_numbers(const ConvolutionForm& form, const Descriptor& config) {
  Descriptor engine(dnn_, kEngine);
  int64_t one = 0, notes = 0;
  std::vector<int32_t> said(16);
  if (dnn_.get_attribute(config.at, kConfigEngine, kDescriptor, 1, &one, &engine.at) != 0 ||
      dnn_.get_attribute(engine.at, kEngineNotes, kNumericalNote, 16, &notes, said.data()) != 0)
    return false;
  said.resize(static_cast<size_t>(std::clamp<int64_t>(notes, 0, 16)));
  auto has = [&](int32_t note) { return std::find(said.begin(), said.end(), note) != said.end(); };
  return !has(kRoundsSums) &&
         (form.type != ElementType::F32 || form.tf32 || (!has(kTensorCores) && !has(kRoundsInputs)));
}

// The operations of a plan, and the descriptors that they are made of.
class DnnConvolutions::Graph {
 public:
  Graph(const Dnn& dnn, const ConvolutionForm& f, int32_t type, int32_t bias_type)
      : dnn_(dnn), f_(f), type_(type), wide_(f.type == ElementType::F64), steps_(f.side + f.bias + f.relu) {
    // What is held by its address stays where it is.
    parts_.reserve(16);
    add_convolution();
    Dims flat(f.y.size(), 1), flat_steps(f.y.size(), 1);
    flat[1] = f.y[1], flat_steps[0] = f.y[1];
    if (f.side) add_pointwise(kAdd, &tensor(kIdSide, type, f.y, f.y_steps), f.side_scale);
    if (f.bias) add_pointwise(kAdd, &tensor(kIdBias, bias_type, flat, flat_steps), 1);
    if (f.relu) add_pointwise(kRelu, nullptr, 0);
  }

  // The graph of them; its parts go into the plan.
  Descriptor finished(void** handle, Plan& plan) {
    Descriptor graph(dnn_, kOperationGraph);
    std::vector<void*> list;
    for (const Descriptor& d : operations_) {
      graph.good = graph.good && d.good;
      list.push_back(d.at);
    }
    graph.set(kGraphHandle, kHandle, 1, handle);
    graph.set(kGraphOperations, kDescriptor, static_cast<int64_t>(list.size()), list.data());
    graph.done();
    for (auto* all : {&parts_, &operations_})
      for (Descriptor& d : *all) plan.parts.push_back(std::move(d));
    return graph;
  }

 private:
  const Descriptor& kept(Descriptor d) {
    parts_.push_back(std::move(d));
    return parts_.back();
  }
  // Alignment in bytes: memory of the pool is aligned to 256.
  const Descriptor& tensor(TensorId id, int32_t of, const Dims& dims, const Dims& steps, bool is_virtual = false) {
    Descriptor d(dnn_, kTensor);
    d.word(kTensorType, kDataType, of).dims(kTensorDims, dims).dims(kTensorSteps, steps);
    d.number(kTensorId, id).number(kTensorAlignment, 16);
    bool yes = true;
    if (is_virtual) d.set(kTensorVirtual, kBoolean, 1, &yes);
    d.done();
    return kept(std::move(d));
  }
  int32_t sums() const { return wide_ ? 1 : 0; }
  // What the next step writes: y after the last, a value that is never stored before.
  const Descriptor& target() {
    if (step_ == steps_) return *y_;
    return tensor(static_cast<TensorId>(kIdVirtual + step_), sums(), f_.y, f_.y_steps, true);
  }
  void add_convolution() {
    using Kind = ConvolutionForm::Kind;
    const Descriptor &x = tensor(kIdX, type_, f_.x, f_.x_steps), &w = tensor(kIdW, type_, f_.w, f_.w_steps);
    y_ = &tensor(kIdY, type_, f_.y, f_.y_steps);
    Descriptor how(dnn_, kConvolution);
    how.word(kComputeType, kDataType, sums()).word(kMode, kConvolutionMode, kCrossCorrelation);
    how.number(kSpatialDims, static_cast<int64_t>(f_.strides.size())).dims(kDilations, f_.dilations);
    how.dims(kStrides, f_.strides).dims(kPrePaddings, f_.low).dims(kPostPaddings, f_.high).done();
    const bool forward = f_.kind == Kind::kForward, input = f_.kind == Kind::kInput;
    const int first = forward ? kForwardAlpha : input ? kInputAlpha : kFilterAlpha;
    Descriptor main(dnn_, forward ? kForwardOperation : input ? kInputOperation : kFilterOperation);
    main.factor(first, f_.scale, wide_).factor(first + 1, 0, wide_).other(first + 2, kept(std::move(how)));
    last_ = &target();
    main.other(first + 3, w).other(first + 4, x).other(first + 5, forward ? *last_ : *y_).done();
    operations_.push_back(std::move(main));
  }
  // What stands behind the convolution: it reads what the step before wrote.
  void add_pointwise(int32_t mode, const Descriptor* with, double factor) {
    ++step_;
    Descriptor how(dnn_, kPointwise);
    how.word(kPointwiseModeOf, kPointwiseMode, mode).word(kPointwisePrecision, kDataType, sums()).done();
    const Descriptor& to = target();
    Descriptor op(dnn_, kPointwiseOperation);
    op.other(kPointwiseDescriptor, kept(std::move(how))).other(kPointwiseX, *last_).other(kPointwiseY, to);
    if (with) op.other(kPointwiseB, *with).factor(kPointwiseAlpha1, 1, wide_).factor(kPointwiseAlpha2, factor, wide_);
    op.done();
    operations_.push_back(std::move(op));
    last_ = &to;
  }

  const Dnn& dnn_;
  const ConvolutionForm& f_;
  const int32_t type_;
  const bool wide_;
  const int steps_;
  int step_ = 0;
  const Descriptor *y_ = nullptr, *last_ = nullptr;
  std::vector<Descriptor> parts_, operations_;
};

bool DnnConvolutions::build(const ConvolutionForm& f, Plan& plan) {
  std::optional<int32_t> type = cudnn_type(f.type), bias_type = cudnn_type(f.bias_type);
  if (!type || !bias_type) return false;
  Descriptor graph = Graph(dnn_, f, *type, *bias_type).finished(&handle_, plan);
  if (!graph.good) return false;
  for (int32_t mode : {kHeuristicsA, kFallback}) {
    find_engines(f, graph, mode, plan);
    if (plan.engines.empty()) continue;
    plan.parts.push_back(std::move(graph));
    return true;
  }
  return false;
}

// What the library thinks best, of that which keeps numbers and needs not too much memory.
void DnnConvolutions::find_engines(const ConvolutionForm& form, const Descriptor& graph, int32_t mode, Plan& plan) {
  Descriptor heuristics(dnn_, kHeuristics);
  if (!heuristics.other(kHeuristicsGraph, graph).word(kHeuristicsModeOf, kHeuristicsMode, mode).done()) return;
  std::vector<Descriptor> configs;
  std::vector<void*> places;
  for (size_t k = 0; k < kMostEngines; ++k)
    configs.emplace_back(dnn_, kEngineConfig), places.push_back(configs.back().at);
  int64_t count = 0;
  if (dnn_.get_attribute(heuristics.at, kHeuristicsResults, kDescriptor, kMostEngines, &count, places.data()) != 0)
    return;
  for (size_t k = 0; k < static_cast<size_t>(std::min<int64_t>(count, kMostEngines)); ++k) {
    if (!keeps_numbers(form, configs[k])) continue;
    int64_t one = 0, bytes = 0;
    Descriptor ready(dnn_, kExecutionPlan);
    if (!ready.set(kPlanHandle, kHandle, 1, &handle_).other(kPlanConfig, configs[k]).done()) continue;
    if (dnn_.get_attribute(ready.at, kPlanWorkspace, kInt64, 1, &one, &bytes) != 0 || bytes > kMostWorkspace) continue;
    plan.engines.push_back(std::move(ready));
    plan.configs.push_back(std::move(configs[k]));
  }
  plan.parts.push_back(std::move(heuristics));
}

Result DnnConvolutions::call(const Plan& plan, size_t engine, const ConvolutionArrays& at) {
  using Kind = ConvolutionForm::Kind;
  const ConvolutionForm& f = plan.form;
  auto* first = const_cast<char*>(at.first);
  auto* second = const_cast<char*>(at.second);
  std::vector<int64_t> ids{kIdX, kIdW, kIdY};
  std::vector<void*> pointers = f.kind == Kind::kForward ? std::vector<void*>{first, second, at.out}
                                : f.kind == Kind::kInput ? std::vector<void*>{at.out, second, first}
                                                         : std::vector<void*>{first, at.out, second};
  if (f.side) ids.push_back(kIdSide), pointers.push_back(const_cast<char*>(at.side));
  if (f.bias) ids.push_back(kIdBias), pointers.push_back(const_cast<char*>(at.bias));
  auto* workspace = reinterpret_cast<void*>(workspace_);
  Descriptor pack(dnn_, kVariantPack);
  pack.dims(kPackIds, ids).set(kPackPointers, kPointer, static_cast<int64_t>(pointers.size()), pointers.data());
  if (!pack.set(kPackWorkspace, kPointer, 1, &workspace).done()) return 1;
  return dnn_.execute(handle_, plan.engines[engine].at, pack.at);
}

size_t DnnConvolutions::fastest(const Plan& plan, const ConvolutionArrays& at) {
  return fastest_of(driver_, stream_, plan.engines.size(), [&](size_t k) { return call(plan, k, at); });
}

void DnnConvolutions::run(const ConvolutionForm& form, const ConvolutionArrays& at) {
  Plan* known = plan(form);
  HLO_CHECK(known, "no plan for a convolution to {}", fmt::join(form.y, ","));
  if (!known->chosen)
    known->chosen = kept_choice(known->key, fmt::format("{} on {}", version(), card_), known->engines.size(),
                                [&] { return fastest(*known, at); });
  if (Result r = call(*known, *known->chosen, at)) fail(FailureKind::kUnsupported, "cudnnBackendExecute: status {}", r);
}

}  // namespace hlo
