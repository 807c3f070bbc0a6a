#include "gpu_exec/gpu_runtime.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "gpu_exec/cuda.h"
#include "gpu_exec/element_emitter.h"
#include "gpu_exec/host.h"
#include "ir/base/check.h"
#include "ir/cudnn.h"
#include "ir/eval/backend_config.h"
#include "ir/eval/kernels.h"
#include "passes/pass.h"

namespace hlo {
namespace {

using Clock = std::chrono::steady_clock;

int64_t bytes_of(const Shape& s) { return s.is_array() ? s.elements_count() * storage_bytes(s.type) : 0; }

std::string gigabytes(int64_t n) { return fmt::format("{:.2f} GB", static_cast<double>(n) / 1e9); }

// Logical order to the layout's (or back): what a buffer on the GPU holds.
std::vector<char> laid_out(const Shape& s, const char* data, bool back) {
  int width = storage_bytes(s.type);
  std::vector<char> out(static_cast<size_t>(bytes_of(s)));
  Dims strides(s.dims.size());
  int64_t step = 1;
  for (int64_t d : s.layout.minor_to_major)
    strides[static_cast<size_t>(d)] = step, step *= s.dims[static_cast<size_t>(d)];
  if (back)
    copy_nd(s.dims, data, strides, out.data(), row_major_strides(s.dims), width);
  else
    copy_nd(s.dims, data, row_major_strides(s.dims), out.data(), strides, width);
  return out;
}

bool rearranged(const Shape& s) { return s.has_layout && !is_default_layout(s.layout) && s.rank() > 0; }

// Memory of the device by size: what is given back is taken again, so that a module's second run allocates nothing.
class Pool {
 public:
  explicit Pool(Device& device) : device_(device) {}
  ~Pool() { trim(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  char* take(int64_t bytes) {
    int64_t size = std::max<int64_t>((bytes + 255) / 256 * 256, 256);
    auto at = idle_.find(size);
    if (at != idle_.end() && !at->second.empty()) {
      char* p = at->second.back();
      at->second.pop_back();
      return p;
    }
    char* p = device_.allocate(size);
    if (!p) {
      trim();
      p = device_.allocate(size);
    }
    if (!p)
      fail(FailureKind::kUnsupported, "{} has no memory left for {} more; {} are in use", device_.name(),
           gigabytes(size), gigabytes(held_));
    held_ += size;
    return p;
  }
  void give(char* p, int64_t bytes) { idle_[std::max<int64_t>((bytes + 255) / 256 * 256, 256)].push_back(p); }

 private:
  void trim() {
    for (auto& [size, list] : idle_)
      for (char* p : list) device_.release(p), held_ -= size;
    idle_.clear();
  }
  Device& device_;
  std::map<int64_t, std::vector<char*>> idle_;
  int64_t held_ = 0;
};

struct Memory {
  Memory(Pool& p, int64_t n) : pool(p), bytes(n), at(p.take(n)) {}
  ~Memory() { pool.give(at, bytes); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Pool& pool;
  int64_t bytes;
  char* at;
};

struct DeviceValue {
  ShapeId shape;
  std::shared_ptr<Memory> memory;  // of an array
  std::vector<DeviceValue> elements;
  Dims sizes;  // of dynamic dimensions, as Value has them
};

// A library's product, and which operand of the instruction each of its arrays is; -1: none.
struct Product {
  MatrixProduct form;
  int left = 0, right = 1, matrix = -1, bias = -1, left_scale = -1, right_scale = -1, scale = -1;
};

// A dot of one of a library's forms: batch dimensions first in memory, then one group of dimensions behind the other.
std::optional<Product> as_product(const Shape& l, const Shape& r, const Shape& out, const Dims& lb, const Dims& rb,
                                  const Dims& lc, const Dims& rc) {
  if (!out.elements_count() || !l.elements_count()) return std::nullopt;
  auto present = [](const Shape& s, const Dims& dims) {
    Dims kept;
    for (int64_t d : dims)
      if (s.dims[static_cast<size_t>(d)] != 1) kept.push_back(d);
    return kept;
  };
  auto free_of = [&](const Shape& s, const Dims& batch, const Dims& contracted) {
    Dims list;
    for (int64_t d = 0; d < s.rank(); ++d)
      if (!contains(batch, d) && !contains(contracted, d)) list.push_back(d);
    return list;
  };
  Dims lf = free_of(l, lb, lc), rf = free_of(r, rb, rc);
  auto size = [](const Shape& s, const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= s.dims[static_cast<size_t>(d)];
    return n;
  };
  auto joined = [&](const Shape& s, std::initializer_list<Dims> groups) {
    Dims all;
    for (const Dims& g : groups) {
      Dims kept = present(s, g);
      all.insert(all.end(), kept.begin(), kept.end());
    }
    return all == present(s, major_first(s));
  };
  Dims ob, olf, orf;
  int64_t next = 0;
  for (size_t k = 0; k < lb.size(); ++k) ob.push_back(next++);
  for (size_t k = 0; k < lf.size(); ++k) olf.push_back(next++);
  for (size_t k = 0; k < rf.size(); ++k) orf.push_back(next++);
  // Does a side lie as (free, contracted) or the other way round?
  auto turned = [&](const Shape& s, const Dims& batch, const Dims& first, const Dims& second) -> std::optional<bool> {
    if (joined(s, {batch, first, second})) return false;
    if (joined(s, {batch, second, first})) return true;
    return std::nullopt;
  };
  Product p;
  MatrixProduct& f = p.form;
  f.type = out.type, f.batch = size(l, lb), f.k = size(l, lc);
  std::optional<bool> left, right;
  if (joined(out, {ob, olf, orf})) {
    f.left = l.type, f.right = r.type, f.m = size(l, lf), f.n = size(r, rf);
    left = turned(l, lb, lf, lc), right = turned(r, rb, rc, rf);
  } else if (joined(out, {ob, orf, olf})) {
    // The result lies transposed: it is the product of the sides in turn.
    p.left = 1, p.right = 0;
    f.left = r.type, f.right = l.type, f.m = size(r, rf), f.n = size(l, lf);
    left = turned(r, rb, rf, rc), right = turned(l, lb, lc, lf);
  }
  if (!left || !right) return std::nullopt;
  f.transpose_left = *left, f.transpose_right = *right;
  return p;
}

// The product that an instruction is: a dot, or a library call.
std::optional<Product> product_of(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  if (m.op(i) == Opcode::Dot)
    return as_product(m.shape(m.operand(i, 0)), m.shape(m.operand(i, 1)), m.shape(i), a.ints(Attr::lhs_batch_dims),
                      a.ints(Attr::rhs_batch_dims), a.ints(Attr::lhs_contracting_dims),
                      a.ints(Attr::rhs_contracting_dims));
  if (m.op(i) != Opcode::CustomCall) return std::nullopt;
  std::string_view target = m.u().text(a.text(Attr::custom_call_target));
  bool eight_bits = target == "__cublas$lt$matmul$f8", lt = eight_bits || target == "__cublas$lt$matmul";
  if (!lt && target != "__cublas$gemm") return std::nullopt;
  BackendConfig config = backend_config(m.u().text(a.text(Attr::backend_config)), "gemm_backend_config");
  auto dims = config.find("dot_dimension_numbers");
  if (m.operand_count(i) < 2 || dims == config.end() || !dims->is_object() || number(config, "alpha_imag", 0) != 0)
    return std::nullopt;
  const Shape& whole = m.shape(i);
  const Shape& out = whole.is_tuple() ? m.u()[whole.elements[0]] : whole;
  std::optional<Product> p =
      as_product(m.shape(m.operand(i, 0)), m.shape(m.operand(i, 1)), out, list(*dims, "lhs_batch_dimensions"),
                 list(*dims, "rhs_batch_dimensions"), list(*dims, "lhs_contracting_dimensions"),
                 list(*dims, "rhs_contracting_dimensions"));
  if (!p) return std::nullopt;
  MatrixProduct& f = p->form;
  f.alpha = number(config, "alpha_real", 1), f.beta = number(config, "beta", 0);
  int next = 2, count = static_cast<int>(m.operand_count(i));
  auto shape = [&](int k) -> const Shape& { return m.shape(m.operand(i, static_cast<size_t>(k))); };
  if (f.beta != 0) {
    if (next == count || shape(next).type != out.type || shape(next).dims != out.dims ||
        major_first(shape(next)) != major_first(out))
      return std::nullopt;
    p->matrix = next++;
  }
  auto factor = [&](int* to, bool* there) {
    if (next == count || shape(next).type != ElementType::F32 || shape(next).elements_count() != 1) return false;
    *to = next++, *there = true;
    return true;
  };
  bool in_turn = p->left == 1;
  if (eight_bits && (!factor(in_turn ? &p->right_scale : &p->left_scale, in_turn ? &f.right_scale : &f.left_scale) ||
                     !factor(in_turn ? &p->left_scale : &p->right_scale, in_turn ? &f.left_scale : &f.right_scale)))
    return std::nullopt;
  std::string epilogue = word(config, "epilogue", "DEFAULT");
  f.bias = epilogue.starts_with("BIAS"), f.before = epilogue.ends_with("_AUX");
  if (f.bias) {
    // A value for every column of what lies row by row. The factor of an f8 result may stand in front of it.
    if (eight_bits && next < count && shape(next).rank() == 0) factor(&p->scale, &f.scale);
    if (next == count || in_turn || shape(next).rank() != 1 || shape(next).dims[0] != f.n || out.dims.back() != f.n)
      return std::nullopt;
    f.bias_type = shape(next).type, p->bias = next++;
  }
  if (eight_bits && next < count && !factor(&p->scale, &f.scale)) return std::nullopt;
  if (next != count) return std::nullopt;
  if (epilogue == "RELU" || epilogue == "BIAS_RELU")
    f.epilogue = MatrixProduct::Epilogue::kRelu;
  else if (epilogue == "GELU" || epilogue == "BIAS_GELU" || epilogue == "GELU_AUX" || epilogue == "BIAS_GELU_AUX")
    f.epilogue = MatrixProduct::Epilogue::kGelu;
  else if (epilogue != "DEFAULT" && epilogue != "BIAS")
    return std::nullopt;
  if (f.before) {
    if (!whole.is_tuple() || whole.elements.size() < 2) return std::nullopt;
    const Shape& kept = m.u()[whole.elements[1]];
    if (kept.type != out.type || kept.dims != out.dims || major_first(kept) != major_first(out)) return std::nullopt;
  }
  return p;
}

// `f` with the sizes and places of its arrays; none where no library has such a form.
std::optional<ConvolutionForm> with_arrays(ConvolutionForm f, const AttrSet& a, const Shape& x, const Shape& w,
                                           const Shape& y) {
  const DimLabels* d = a.get<DimLabels>(Attr::dim_labels);
  const Window* window = a.get<Window>(Attr::window);
  if (!d || a.integer(Attr::batch_group_count, 1) != 1) return std::nullopt;
  for (const Shape* s : {&x, &w, &y})
    if (s->type != y.type || s->elements_count() == 0 || s->is_dynamic()) return std::nullopt;
  size_t spatial = d->input_spatial.size();
  if (spatial < 1 || spatial > 3 || (window && window->dims.size() != spatial)) return std::nullopt;
  f.type = y.type;
  auto place = [](const Shape& s, std::initializer_list<int64_t> first, const Dims& rest, Dims* dims, Dims* steps) {
    Dims all(static_cast<size_t>(s.rank()));
    int64_t step = 1;
    std::vector<int64_t> order = major_first(s);
    for (auto at = order.rbegin(); at != order.rend(); ++at)
      all[static_cast<size_t>(*at)] = step, step *= s.dims[static_cast<size_t>(*at)];
    auto take = [&](int64_t k) {
      dims->push_back(s.dims[static_cast<size_t>(k)]), steps->push_back(all[static_cast<size_t>(k)]);
    };
    for (int64_t k : first) take(k);
    for (int64_t k : rest) take(k);
  };
  place(x, {d->input_batch, d->input_feature}, d->input_spatial, &f.x, &f.x_steps);
  place(w, {d->kernel_output, d->kernel_input}, d->kernel_spatial, &f.w, &f.w_steps);
  place(y, {d->output_batch, d->output_feature}, d->output_spatial, &f.y, &f.y_steps);
  for (size_t k = 0; k < spatial; ++k) {
    WindowDim one = window ? window->dims[k] : WindowDim{};
    if (one.lhs_dilate != 1 || one.reversal) return std::nullopt;
    // What the output's size says: HLO's high padding may leave a rest that no window reaches.
    int64_t reach = (f.w[k + 2] - 1) * one.rhs_dilate + 1;
    int64_t high = (f.y[k + 2] - 1) * one.stride + reach - f.x[k + 2] - one.pad_low;
    f.low.push_back(one.pad_low), f.high.push_back(std::max<int64_t>(high, 0));
    if (one.pad_low < 0) return std::nullopt;
    f.strides.push_back(one.stride), f.dilations.push_back(one.rhs_dilate);
  }
  // One spatial dimension is two, the first of size one.
  if (spatial == 1) {
    for (auto [dims, steps] : {std::pair(&f.x, &f.x_steps), std::pair(&f.w, &f.w_steps), std::pair(&f.y, &f.y_steps)})
      dims->insert(dims->begin() + 2, 1), steps->insert(steps->begin() + 2, steps->at(2) * dims->at(3));
    f.low.insert(f.low.begin(), 0), f.high.insert(f.high.begin(), 0);
    f.strides.insert(f.strides.begin(), 1), f.dilations.insert(f.dilations.begin(), 1);
  }
  return f;
}

// The convolution that an instruction is, by itself or as a call of cuDNN: its first two operands, then a bias and what
// is added besides.
std::optional<ConvolutionForm> convolution_of(const Module& m, InstId i) {
  using Kind = ConvolutionForm::Kind;
  const AttrSet& a = m.attrs(i);
  ConvolutionForm f;
  const Shape *x = nullptr, *w = nullptr, *y = nullptr;
  if (m.op(i) == Opcode::Convolution) {
    x = &m.shape(m.operand(i, 0)), w = &m.shape(m.operand(i, 1)), y = &m.shape(i);
  } else {
    if (m.op(i) != Opcode::CustomCall) return std::nullopt;
    std::string_view target = m.u().text(a.text(Attr::custom_call_target));
    if (!target.starts_with("__cudnn$conv") || !is_cudnn_convolution_of_fitting_ranks(m, i)) return std::nullopt;
    std::string_view kind = target.substr(std::string_view("__cudnn$conv").size());
    const Shape &p = m.shape(m.operand(i, 0)), &q = m.shape(m.operand(i, 1)), &r = m.u()[m.shape(i).elements[0]];
    bool fused = kind == "BiasActivationForward";
    if (kind == "Forward" || fused)
      x = &p, w = &q, y = &r;
    else if (kind == "BackwardInput")
      f.kind = Kind::kInput, x = &r, w = &q, y = &p;
    else if (kind == "BackwardFilter")
      f.kind = Kind::kFilter, x = &p, w = &r, y = &q;
    else
      return std::nullopt;
    BackendConfig config = backend_config(m.u().text(a.text(Attr::backend_config)), "cudnn_conv_backend_config");
    f.scale = number(config, "conv_result_scale", 1), f.side_scale = number(config, "side_input_scale", 0);
    std::string mode = word(config, "activation_mode", "kNone");
    if (mode != "kNone" && mode != "kRelu") return std::nullopt;
    size_t operands = m.operand_count(i);
    f.relu = mode == "kRelu", f.bias = fused && operands > 2, f.side = fused && operands > 3;
    if (operands > (fused ? 4 : 2) || (!fused && f.relu)) return std::nullopt;
    const DimLabels& labels = *a.get<DimLabels>(Attr::dim_labels);
    if (f.bias) {
      const Shape& b = m.shape(m.operand(i, 2));
      if (b.rank() != 1 || b.dims[0] != y->dims[static_cast<size_t>(labels.output_feature)]) return std::nullopt;
      f.bias_type = b.type;
    }
    if (f.side) {
      const Shape& s = m.shape(m.operand(i, 3));
      if (s.type != y->type || s.dims != y->dims || major_first(s) != major_first(*y)) return std::nullopt;
    }
  }
  return with_arrays(f, a, *x, *w, *y);
}

int64_t known_trips(const Module& m, InstId loop) {
  BackendConfig config = backend_config(m.u().text(m.attrs(loop).text(Attr::backend_config)), "known_trip_count");
  return static_cast<int64_t>(number(config, "n", -1));
}

// A fusion whose product a library does better, between kernels of what stands around it.
bool better_apart(const Module& m, InstId fusion) {
  if (m.op(fusion) != Opcode::Fusion) return false;
  constexpr int64_t kSmall = int64_t{1} << 20;
  for (InstId i : m.post_order(m.called(fusion)[0])) {
    if (m.op(i) != Opcode::Dot) continue;
    int64_t k = 1;
    for (int64_t d : m.attrs(i).ints(Attr::lhs_contracting_dims))
      k *= m.shape(m.operand(i, 0)).dims[static_cast<size_t>(d)];
    if (m.shape(i).elements_count() * k > kSmall) return true;
  }
  return false;
}

bool runs_on_device(const Module& m, InstId i) {
  if (better_apart(m, i)) return false;
  switch (m.op(i)) {
    case Opcode::Sort:
    case Opcode::Scatter:
    case Opcode::Dot:
    case Opcode::Convolution:
    case Opcode::Reshape:
      return true;
    default:
      return runs_as_kernel(m, i);
  }
}

}  // namespace

void Device::replace(const std::map<std::string, EvalOptions::Replacement>& replaced) {
  if (!replaced.empty()) fail(FailureKind::kUnsupported, "{} takes no kernels of others", name());
}

namespace {

class Runtime {
 public:
  Runtime(Device& device, const Module& m, const EvalOptions& options)
      : device_(device), pool_(device), m_(m), u_(m.u()), options_(options), evaluator_(m, options) {
    device_.replace(options_.replaced);
    compile();
    for (const std::string& name : device_.unused_replacements()) {
      std::vector<std::string> there = device_.functions();
      fail(FailureKind::kUsage, "no kernel is called {}; there are {}", name, fmt::join(there, ", "));
    }
    check_memory();
  }

  Execution run(const std::vector<Value>& arguments, int repeat) {
    Execution out;
    std::vector<DeviceValue> inputs;
    for (const Value& v : arguments) inputs.push_back(to_device(v));
    device_.wait();
    out.run_s = 1e300;
    DeviceValue result;
    bool graph = false;
    int rounds = std::max(repeat, 1);
    for (int k = 0; k < rounds; ++k) {
      // What was launched once without surprises is launched as one graph from then on.
      bool capture = k == 1 && straight_ && !options_.timed && !options_.trace && device_.begin_graph();
      if (capture) {
        result = {};
        result = run_computation(m_.entry(), inputs);
        graph = device_.end_graph();
        if (!graph) result = run_computation(m_.entry(), inputs);
      }
      auto start = Clock::now();
      if (graph) {
        device_.replay_graph();
      } else {
        result = {};
        result = run_computation(m_.entry(), inputs);
      }
      device_.wait();
      out.run_s = std::min(out.run_s, std::chrono::duration<double>(Clock::now() - start).count());
      tell_times();
    }
    out.results = {to_host(result)};
    out.compiled = launched_instructions_;
    std::string line =
        fmt::format("{} instructions as {} kernels on {}", launched_instructions_, distinct_, device_.name());
    if (products_) line += fmt::format(", {} by {}", products_, device_.library());
    if (graph) line += ", run as one graph";
    out.notes.push_back(std::move(line));
    for (const std::string& n : left_) out.notes.push_back(n);
    return out;
  }

 private:
  struct Step {
    enum Kind { kKernel, kProduct, kConvolution, kShare, kRegion, kControl, kHost } kind = kHost;
    InstId inst;
    size_t kernel = 0;
    Product product;
    std::optional<ConvolutionForm> convolution;
    std::vector<size_t> operands;  // slots
    std::vector<bool> last;        // is this the operand's last reader?
    size_t slot = 0;
  };
  struct Plan {
    std::vector<Step> steps;
    std::unordered_map<InstId, size_t> slots;
    std::vector<size_t> parameters;
    size_t root = 0;
  };

  // --- before the run ---

  void compile() {
    std::vector<CompId> roots{m_.entry()};
    std::unordered_set<CompId> seen{m_.entry()};
    while (!roots.empty()) {
      std::vector<CompId> reached;
      std::vector<std::vector<InstId>> kinds = distinct_kernels(m_, roots, runs_on_device, &reached);
      // What a library multiplies or only names other bytes needs no kernel.
      std::erase_if(kinds, [&](const std::vector<InstId>& same) { return by_library(same[0]) || shares(same[0]); });
      std::vector<std::pair<size_t, std::string>> without;
      size_t first = kernels_.size();
      std::vector<Kernel> fresh = device_.load(m_, kinds, &without);
      for (size_t k = 0; k < fresh.size(); ++k) {
        if (!fresh[k].parts.empty())
          for (InstId i : kinds[k]) by_inst_[i] = first + k;
        distinct_ += !fresh[k].parts.empty();
        kernels_.push_back(std::move(fresh[k]));
      }
      for (auto& [k, why] : without)
        for (InstId i : kinds[k]) refused_[i] = why;
      // Fusions without a kernel are run part by part.
      roots.clear();
      for (CompId c : reached)
        for (InstId i : m_.post_order(c)) {
          if (m_.op(i) != Opcode::Fusion || by_inst_.contains(i)) continue;
          CompId body = m_.called(i)[0];
          if (seen.insert(body).second) roots.push_back(body);
        }
    }
    const Plan& entry = plan(m_.entry());
    (void)entry;
  }

  bool by_library(InstId i) {
    if (std::optional<Product> p = product_of(m_, i)) return device_.multiplies(p->form);
    std::optional<ConvolutionForm> c = convolution_of(m_, i);
    return c && device_.convolves(*c);
  }

  // The result's bytes are the operand's.
  bool shares(InstId i) const {
    Opcode op = m_.op(i);
    if (op == Opcode::OptBarrier || op == Opcode::AddDependency || op == Opcode::Domain) return true;
    if (op != Opcode::Bitcast && op != Opcode::Reshape) return false;
    const Shape &s = m_.shape(i), &from = m_.shape(m_.operand(i, 0));
    if (!s.is_array() || bytes_of(s) != bytes_of(from)) return false;
    if (op == Opcode::Bitcast) return (type_bits(s.type) >= 8) == (type_bits(from.type) >= 8);
    return !rearranged(s) && !rearranged(from);
  }

  const Plan& plan(CompId c) {
    auto [at, fresh] = plans_.try_emplace(c);
    if (!fresh) return at->second;
    Plan p;
    std::vector<InstId> order = m_.config.is_scheduled ? m_.live_order(c) : m_.post_order(c);
    for (InstId i : order) {
      size_t slot = p.slots.size();
      p.slots[i] = slot;
    }
    std::vector<size_t> reader(p.slots.size(), SIZE_MAX);
    for (InstId i : order) {
      if (m_.op(i) == Opcode::Parameter) continue;
      Step s;
      s.inst = i, s.slot = p.slots[i];
      for (InstId o : m_.operands(i)) s.operands.push_back(p.slots.at(o));
      s.last.assign(s.operands.size(), false);
      for (size_t o : s.operands) reader[o] = p.steps.size();
      choose(s);
      p.steps.push_back(std::move(s));
    }
    p.root = p.slots.at(m_.comp(c).root);
    for (InstId i : m_.comp(c).params) p.parameters.push_back(p.slots.contains(i) ? p.slots[i] : SIZE_MAX);
    for (size_t k = 0; k < p.steps.size(); ++k)
      for (size_t o = 0; o < p.steps[k].operands.size(); ++o) {
        size_t slot = p.steps[k].operands[o];
        // An operand that stands twice dies with its last place.
        bool again = std::find(p.steps[k].operands.begin() + static_cast<ptrdiff_t>(o) + 1, p.steps[k].operands.end(),
                               slot) != p.steps[k].operands.end();
        p.steps[k].last[o] = reader[slot] == k && slot != p.root && !again;
      }
    return plans_[c] = std::move(p);
  }

  void choose(Step& s) {
    InstId i = s.inst;
    Opcode op = m_.op(i);
    if (auto at = by_inst_.find(i); at != by_inst_.end()) {
      s.kind = Step::kKernel, s.kernel = at->second;
      ++launched_instructions_;
      return;
    }
    if (shares(i)) {
      s.kind = Step::kShare;
      return;
    }
    if (by_library(i)) {
      if ((s.convolution = convolution_of(m_, i)))
        s.kind = Step::kConvolution;
      else
        s.kind = Step::kProduct, s.product = *product_of(m_, i);
      ++products_;
      return;
    }
    switch (op) {
      case Opcode::Fusion:
        s.kind = Step::kRegion;
        plan(m_.called(i)[0]);
        return;
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
      case Opcode::Constant:
      case Opcode::Call:
      case Opcode::AsyncStart:
      case Opcode::AsyncUpdate:
      case Opcode::AsyncDone:
      case Opcode::CopyStart:
      case Opcode::CopyDone:
      case Opcode::AfterAll:
        s.kind = Step::kControl;
        for (CompId c : m_.called(i)) plan(c);
        return;
      case Opcode::While:
      case Opcode::Conditional:
        s.kind = Step::kControl;
        straight_ = straight_ && op == Opcode::While && known_trips(m_, i) >= 0;
        for (CompId c : m_.called(i)) plan(c);
        return;
      default:
        break;
    }
    s.kind = Step::kHost;
    straight_ = false;
    auto why = refused_.find(i);
    left_.push_back(why != refused_.end()
                        ? why->second + ": it runs in the evaluator"
                        : fmt::format("{} ({}) runs in the evaluator", m_.inst_name(i),
                                      op == Opcode::CustomCall ? m_.u().text(m_.attrs(i).text(Attr::custom_call_target))
                                                               : op_text(op)));
  }

  // What the run will hold at most, so that it fails before it starts.
  void check_memory() {
    int64_t inputs = 0, constants = 0;
    for (InstId p : m_.comp(m_.entry()).params) inputs += all_bytes(m_.shape_id(p));
    for (const auto& [c, p] : plans_)
      for (const Step& s : p.steps)
        if (m_.op(s.inst) == Opcode::Constant) constants += all_bytes(m_.shape_id(s.inst));
    int64_t most = peak(m_.entry()), sum = inputs + constants + most, there = device_.free_bytes();
    if (sum > there)
      fail(FailureKind::kUnsupported,
           "the module needs {} on the device (parameters {}, constants {}, values {}), and {} has {} free",
           gigabytes(sum), gigabytes(inputs), gigabytes(constants), gigabytes(most), device_.name(), gigabytes(there));
  }
  int64_t all_bytes(ShapeId id) const {
    const Shape& s = u_[id];
    if (!s.is_tuple()) return bytes_of(s);
    int64_t sum = 0;
    for (ShapeId e : s.elements) sum += all_bytes(e);
    return sum;
  }
  int64_t peak(CompId c) {
    if (auto at = peaks_.find(c); at != peaks_.end()) return at->second;
    const Plan& p = plan(c);
    std::vector<int64_t> held(p.slots.size(), 0);
    int64_t now = 0, most = 0;
    for (const Step& s : p.steps) {
      int64_t inner = 0;
      if (s.kind == Step::kRegion || s.kind == Step::kControl)
        for (CompId callee : m_.called(s.inst)) inner = std::max(inner, peak(callee));
      bool makes =
          s.kind == Step::kKernel || s.kind == Step::kProduct || s.kind == Step::kConvolution || s.kind == Step::kHost;
      int64_t own = makes ? all_bytes(m_.shape_id(s.inst)) : inner;
      most = std::max(most, now + own);
      // What only passes on lives as long as what it passes on: kept to the end here.
      if (makes) held[s.slot] = own, now += own;
      for (size_t o = 0; o < s.operands.size(); ++o)
        if (makes && s.last[o]) now -= std::exchange(held[s.operands[o]], 0);
    }
    return peaks_[c] = most;
  }

  // --- values ---

  DeviceValue fresh(ShapeId id) {
    DeviceValue v;
    v.shape = id;
    const Shape& s = u_[id];
    if (s.is_tuple())
      for (ShapeId e : s.elements) v.elements.push_back(fresh(e));
    else if (s.is_array())
      v.memory = std::make_shared<Memory>(pool_, bytes_of(s));
    return v;
  }

  DeviceValue to_device(const Value& v) {
    DeviceValue out;
    out.shape = v.shape, out.sizes = v.sizes;
    const Shape& s = u_[v.shape];
    if (s.is_tuple()) {
      for (const Value& e : v.elements) out.elements.push_back(to_device(e));
      return out;
    }
    if (!s.is_array()) return out;
    out.memory = std::make_shared<Memory>(pool_, bytes_of(s));
    if (rearranged(s))
      device_.write(out.memory->at, laid_out(s, v.bytes(), false).data(), bytes_of(s));
    else
      device_.write(out.memory->at, v.bytes(), bytes_of(s));
    return out;
  }

  Value to_host(const DeviceValue& v) {
    Value out;
    out.shape = v.shape, out.sizes = v.sizes;
    const Shape& s = u_[v.shape];
    if (s.is_tuple()) {
      for (const DeviceValue& e : v.elements) out.elements.push_back(to_host(e));
      return out;
    }
    if (!s.is_array()) {
      out.data = std::make_shared<std::vector<char>>();
      return out;
    }
    std::vector<char> bytes(static_cast<size_t>(bytes_of(s)));
    device_.read(bytes.data(), v.memory->at, bytes_of(s));
    if (rearranged(s)) bytes = laid_out(s, bytes.data(), true);
    out.data = std::make_shared<std::vector<char>>(std::move(bytes));
    return out;
  }

  int64_t integer(const DeviceValue& v) {
    char bytes[8] = {};
    const Shape& s = u_[v.shape];
    device_.read(bytes, v.memory->at, bytes_of(s));
    return load_int(s.type, bytes);
  }

  // --- the run ---

  DeviceValue run_computation(CompId c, std::vector<DeviceValue> arguments) {
    const Plan& p = plans_.at(c);
    std::vector<DeviceValue> slots(p.slots.size());
    for (size_t k = 0; k < arguments.size(); ++k)
      if (p.parameters[k] != SIZE_MAX) slots[p.parameters[k]] = std::move(arguments[k]);
    arguments.clear();
    for (const Step& s : p.steps) {
      std::vector<DeviceValue> ops;
      for (size_t k = 0; k < s.operands.size(); ++k) {
        DeviceValue& from = slots[s.operands[k]];
        if (s.last[k])
          ops.push_back(std::move(from)), from = {};
        else
          ops.push_back(from);
      }
      std::vector<Value> seen;
      if (options_.trace)
        for (const DeviceValue& v : ops) seen.push_back(to_host(v));
      size_t begin = options_.timed ? device_.mark() : 0;
      DeviceValue v = run_step(s, std::move(ops));
      if (options_.timed) marks_.push_back({s.inst, begin, device_.mark()});
      v.shape = m_.shape_id(s.inst);
      if (options_.trace) options_.trace(s.inst, seen, to_host(v));
      slots[s.slot] = std::move(v);
    }
    return std::move(slots[p.root]);
  }

  DeviceValue run_step(const Step& s, std::vector<DeviceValue> ops) {
    // Sizes at run time are the evaluator's.
    bool dynamic = std::any_of(ops.begin(), ops.end(), [](const DeviceValue& v) { return !v.sizes.empty(); });
    if (dynamic && s.kind != Step::kControl) return on_host(s.inst, ops);
    switch (s.kind) {
      case Step::kKernel:
        return launch(s, ops);
      case Step::kProduct: {
        DeviceValue out = fresh(m_.shape_id(s.inst));
        const DeviceValue& matrix = u_[out.shape].is_tuple() ? out.elements[0] : out;
        auto array = [&](int k) { return k < 0 ? nullptr : ops[static_cast<size_t>(k)].memory->at; };
        ProductArrays at{array(s.product.left),  array(s.product.right),      array(s.product.matrix),
                         array(s.product.bias),  array(s.product.left_scale), array(s.product.right_scale),
                         array(s.product.scale), matrix.memory->at,           nullptr};
        if (s.product.form.before) at.before = out.elements[1].memory->at;
        device_.multiply(s.product.form, at);
        return out;
      }
      case Step::kConvolution: {
        DeviceValue out = fresh(m_.shape_id(s.inst));
        const DeviceValue& result = u_[out.shape].is_tuple() ? out.elements[0] : out;
        const ConvolutionForm& f = *s.convolution;
        device_.convolve(f, {ops[0].memory->at, ops[1].memory->at, f.side ? ops[3].memory->at : nullptr,
                             f.bias ? ops[2].memory->at : nullptr, result.memory->at});
        return out;
      }
      case Step::kShare:
        return std::move(ops[0]);
      case Step::kRegion:
        return run_computation(m_.called(s.inst)[0], std::move(ops));
      case Step::kControl:
        return control(s.inst, std::move(ops));
      case Step::kHost:
        break;
    }
    return on_host(s.inst, ops);
  }

  DeviceValue on_host(InstId i, const std::vector<DeviceValue>& ops) {
    std::vector<Value> values;
    for (const DeviceValue& v : ops) values.push_back(to_host(v));
    Value out = evaluator_.run_instruction(i, std::move(values));
    out.shape = m_.shape_id(i);
    return to_device(with_shapes(std::move(out), m_.shape_id(i)));
  }
  // The evaluator's parts of a tuple may have the shapes of what they came from.
  Value with_shapes(Value v, ShapeId id) {
    v.shape = id;
    const Shape& s = u_[id];
    if (s.is_tuple())
      for (size_t k = 0; k < v.elements.size(); ++k)
        v.elements[k] = with_shapes(std::move(v.elements[k]), s.elements[k]);
    return v;
  }

  DeviceValue launch(const Step& s, std::vector<DeviceValue>& ops) {
    const Kernel& kernel = kernels_[s.kernel];
    std::vector<char*> inputs;
    for (const DeviceValue& v : ops) inputs.push_back(v.memory->at);
    for (LitId lit : kernel.constants) inputs.push_back(constant_array(lit)->at);
    DeviceValue out;
    out.shape = m_.shape_id(s.inst);
    const Shape shape = u_[out.shape];
    std::vector<std::shared_ptr<Memory>> leaves;
    std::vector<ShapeId> ids = shape.is_tuple() ? shape.elements : std::vector<ShapeId>{out.shape};
    for (size_t k = 0; k < ids.size(); ++k) {
      int from = kernel.begins(k);
      int64_t bytes = bytes_of(u_[ids[k]]);
      if (from >= 0 && ops[static_cast<size_t>(from)].memory.use_count() == 1) {
        leaves.push_back(ops[static_cast<size_t>(from)].memory);  // nobody else will read it
        continue;
      }
      leaves.push_back(std::make_shared<Memory>(pool_, bytes));
      if (from >= 0) device_.copy(leaves.back()->at, inputs[static_cast<size_t>(from)], bytes);
    }
    for (size_t p = 0; p < kernel.parts.size(); ++p) {
      const KernelPart& part = kernel.parts[p];
      if (part.count == 0) continue;
      std::vector<char*> pointers = inputs;
      for (size_t r : part.results) pointers.push_back(leaves[r]->at);
      if (part.launches.empty()) device_.launch(s.kernel, p, pointers, {});
      for (const std::vector<int32_t>& numbers : part.launches) device_.launch(s.kernel, p, pointers, numbers);
    }
    if (!shape.is_tuple()) {
      out.memory = leaves[0];
      return out;
    }
    for (size_t k = 0; k < ids.size(); ++k) out.elements.push_back({ids[k], leaves[k], {}, {}});
    return out;
  }

  // In logical order, as kernels take them.
  std::shared_ptr<Memory> constant_array(LitId lit) {
    std::shared_ptr<Memory>& at = arrays_[lit];
    if (!at) {
      const Literal& l = u_[lit];
      at = std::make_shared<Memory>(pool_, static_cast<int64_t>(l.bytes.size()));
      device_.write(at->at, l.bytes.data(), static_cast<int64_t>(l.bytes.size()));
    }
    return at;
  }

  DeviceValue control(InstId i, std::vector<DeviceValue> ops) {
    const AttrSet& a = m_.attrs(i);
    ShapeId id = m_.shape_id(i);
    DeviceValue out;
    out.shape = id;
    switch (m_.op(i)) {
      case Opcode::Constant: {
        DeviceValue& kept = constants_[i];
        if (!kept.shape.valid()) kept = to_device(with_shapes(evaluator_.run_instruction(i, {}), id));
        return kept;
      }
      case Opcode::Tuple:
        out.elements = std::move(ops);
        return out;
      case Opcode::GetTupleElement: {
        auto k = static_cast<size_t>(a.integer(Attr::index));
        return std::move(ops[0].elements[k]);
      }
      case Opcode::AfterAll:
        return out;
      case Opcode::Call:
        return run_computation(m_.called(i)[0], std::move(ops));
      case Opcode::CopyStart:
        // To another layout it is work.
        if (major_first(u_[u_[id].elements[0]]) != major_first(u_[u_[id].elements[1]])) return on_host(i, ops);
        out.elements = {ops[0], ops[0], {}};
        out.elements.resize(u_[id].elements.size());
        for (size_t k = 0; k < out.elements.size(); ++k) out.elements[k].shape = u_[id].elements[k];
        for (size_t k = 2; k < out.elements.size(); ++k) out.elements[k] = fresh(u_[id].elements[k]);
        return out;
      case Opcode::CopyDone:
        return std::move(ops[0].elements[0]);
      case Opcode::AsyncStart: {
        DeviceValue arguments;
        arguments.shape = u_[id].elements[0];
        arguments.elements = ops;
        out.elements = {std::move(arguments), run_computation(m_.called(i)[0], std::move(ops))};
        for (size_t k = 2; k < u_[id].elements.size(); ++k) out.elements.push_back(fresh(u_[id].elements[k]));
        return out;
      }
      case Opcode::AsyncUpdate:
        return std::move(ops[0]);
      case Opcode::AsyncDone:
        return std::move(ops[0].elements[1]);
      case Opcode::While: {
        CompId body = a.comp(Attr::body), condition = a.comp(Attr::condition);
        DeviceValue state = std::move(ops[0]);
        ops.clear();
        int64_t trips = known_trips(m_, i);
        for (int64_t step = 0;; ++step) {
          if (trips >= 0 ? step >= trips : !integer(run_computation(condition, {state}))) break;
          if (options_.stop && options_.stop())
            fail(FailureKind::kUnsupported, "{}: interrupted in step {}", m_.inst_name(i), step);
          if (step >= options_.max_while_steps)
            fail(FailureKind::kUnsupported, "{}: it does not end within {} steps", m_.inst_name(i),
                 options_.max_while_steps);
          std::vector<DeviceValue> args;
          args.push_back(std::move(state));
          state = run_computation(body, std::move(args));
        }
        return state;
      }
      case Opcode::Conditional: {
        auto branches = static_cast<int64_t>(m_.called(i).size());
        int64_t which = integer(ops[0]);
        if (u_[ops[0].shape].type == ElementType::Pred)
          which = which ? 0 : 1;
        else if (which < 0 || which >= branches)
          which = branches - 1;
        std::vector<DeviceValue> args{std::move(ops[static_cast<size_t>(which) + 1])};
        ops.clear();
        return run_computation(m_.called(i)[static_cast<size_t>(which)], std::move(args));
      }
      default:
        break;
    }
    HLO_CHECK(false, "{} is no control flow", op_text(m_.op(i)));
  }

  // Marks become times of this process's clock.
  void tell_times() {
    if (!options_.timed || marks_.empty()) return;
    size_t end = device_.mark();
    device_.wait();
    int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
    for (const auto& [inst, from, to] : marks_)
      options_.timed(m_, inst, now - device_.nanoseconds(from, end), now - device_.nanoseconds(to, end));
    marks_.clear();
    device_.forget_marks();
  }

  struct Marked {
    InstId inst;
    size_t from, to;
  };
  Device& device_;
  Pool pool_;
  const Module& m_;
  Universe& u_;
  const EvalOptions& options_;
  Evaluator evaluator_;
  std::vector<Kernel> kernels_;
  std::unordered_map<InstId, size_t> by_inst_;
  std::unordered_map<InstId, std::string> refused_;
  std::unordered_map<CompId, Plan> plans_;
  std::unordered_map<CompId, int64_t> peaks_;
  std::map<LitId, std::shared_ptr<Memory>> arrays_;
  std::unordered_map<InstId, DeviceValue> constants_;
  std::vector<Marked> marks_;
  std::vector<std::string> left_;
  size_t launched_instructions_ = 0, products_ = 0, distinct_ = 0;
  bool straight_ = true;
};

// The library takes features last or features first, each array alike, where the filters of most programs lie
// otherwise:
//   c = convolution(x, w)
// becomes, where that makes it the library's,
//   x' = copy(x), w' = copy(w) in such layouts, c' = convolution(x', w'), c = copy(c')
void lay_out_convolutions(Device& device, Module& m) {
  Universe& u = m.u();
  for (CompId comp : m.nonfusion_computations())
    for (InstId i : m.post_order(comp)) {
      if (m.op(i) != Opcode::Convolution) continue;
      std::optional<ConvolutionForm> as_it_is = convolution_of(m, i);
      if (!as_it_is || device.convolves(*as_it_is)) continue;
      const DimLabels d = *m.attrs(i).get<DimLabels>(Attr::dim_labels);
      for (bool last : {true, false}) {
        auto laid = [&](InstId array, int64_t first, int64_t feature, const Dims& spatial) {
          Dims major{first};
          if (!last) major.push_back(feature);
          major.insert(major.end(), spatial.begin(), spatial.end());
          if (last) major.push_back(feature);
          return u.with_layout(m.shape_id(array), Dims(major.rbegin(), major.rend()));
        };
        InstId x = m.operand(i, 0), w = m.operand(i, 1);
        ShapeId xs = laid(x, d.input_batch, d.input_feature, d.input_spatial),
                ws = laid(w, d.kernel_output, d.kernel_input, d.kernel_spatial),
                ys = laid(i, d.output_batch, d.output_feature, d.output_spatial), before = m.shape_id(i);
        std::optional<ConvolutionForm> f = with_arrays({}, m.attrs(i), u[xs], u[ws], u[ys]);
        if (!f || !device.convolves(*f)) continue;
        auto moved = [&](InstId from, ShapeId to) {
          return m.shape_id(from) == to ? from : m.add_derived(from, {Opcode::Copy, to, {from}, {}, {}, "copy"});
        };
        std::vector<InstId> operands{moved(x, xs), moved(w, ws)};
        InstId made = m.clone_inst(i, comp, operands, ys), result = moved(made, before);
        bool root = m.is_root(i);
        m.replace_all_uses(i, result);
        if (root) m.set_root(comp, result);
        m.remove(i);
        break;
      }
    }
  m.cleanup();
}

// Fusions of our own where the module has none, and sorts that threads can do in any order.
std::unique_ptr<Module> prepared(const Module& m, bool as_it_is) {
  std::unique_ptr<Module> copy = as_it_is ? m.clone() : fused_for_host(m);
  bool sorts = false;
  for (CompId c : copy->computations())
    for (InstId i : copy->live_order(c)) sorts |= copy->op(i) == Opcode::Sort && copy->attrs(i).flag(Attr::is_stable);
  if (sorts && !as_it_is) {
    PassContext context;
    context.keep_notes = false;
    find_pass("stable-sort-expander")->run(*copy, context);
    copy->cleanup();
    copy->config.is_scheduled = false;
  }
  return copy;
}

}  // namespace

Execution run_on_device(Device& device, const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                        const EvalOptions& options) {
  if (arguments.size() != 1)
    fail(FailureKind::kUnsupported, "the module runs on {} devices; this backend runs it on one", arguments.size());
  auto start = Clock::now();
  // Whoever watches values wants those of the module as it is.
  bool as_it_is = options.trace || options.as_it_is;
  std::unique_ptr<Module> module = prepared(m, as_it_is);
  if (!as_it_is) lay_out_convolutions(device, *module);
  Runtime runtime(device, *module, options);
  double compile_s = std::chrono::duration<double>(Clock::now() - start).count();
  Execution out = runtime.run(arguments[0], repeat);
  out.compile_s = compile_s;
  return out;
}

Execution run_emulated(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                       const EvalOptions& options) {
  return run_on_device(*emulated_device(), m, arguments, repeat, options);
}

Execution run_cuda(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options) {
  return run_on_device(*cuda_device(), m, arguments, repeat, options);
}

}  // namespace hlo
