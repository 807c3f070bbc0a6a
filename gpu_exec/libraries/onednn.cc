#include "gpu_exec/libraries/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <vector>

#include "ir/base/check.h"
#include "ir/eval/kernels.h"

namespace hlo {
namespace {

// clang-format off
#define HLO_DNNL_FUNCTIONS(F) \
  F(dnnl_engine_create) F(dnnl_engine_destroy) F(dnnl_stream_create) F(dnnl_stream_destroy) F(dnnl_stream_wait) \
  F(dnnl_memory_desc_init_by_strides) F(dnnl_memory_desc_init_by_tag) F(dnnl_memory_desc_equal) \
  F(dnnl_memory_desc_get_size) F(dnnl_dilated_convolution_forward_desc_init) F(dnnl_primitive_desc_create) \
  F(dnnl_primitive_desc_destroy) F(dnnl_primitive_desc_query) F(dnnl_primitive_desc_query_md) \
  F(dnnl_reorder_primitive_desc_create) F(dnnl_primitive_create) F(dnnl_primitive_destroy) \
  F(dnnl_primitive_execute) F(dnnl_memory_create) F(dnnl_memory_destroy) F(dnnl_version) \
  F(dnnl_primitive_attr_create) F(dnnl_primitive_attr_destroy) F(dnnl_primitive_attr_set_post_ops) \
  F(dnnl_post_ops_create) F(dnnl_post_ops_destroy) F(dnnl_post_ops_append_sum) F(dnnl_post_ops_append_eltwise)
// clang-format on

struct Dnnl {
#define HLO_DNNL_MEMBER(name) decltype(&::name) name = nullptr;
  HLO_DNNL_FUNCTIONS(HLO_DNNL_MEMBER)
#undef HLO_DNNL_MEMBER
  dnnl_engine_t engine = nullptr;
  bool good = false;

  Dnnl() {
    // The functions that are used are those of version 2; another one has others.
    void* library = ::dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    bool all = true;
#define HLO_DNNL_FIND(name) all = (name = reinterpret_cast<decltype(name)>(::dlsym(library, #name))) && all;
    HLO_DNNL_FUNCTIONS(HLO_DNNL_FIND)
#undef HLO_DNNL_FIND
    good = all && dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success;
  }
};
const Dnnl& dnnl() {
  static const Dnnl kLibrary;
  return kLibrary;
}

void check(dnnl_status_t s, const char* call) {
  if (s != dnnl_success) fail(FailureKind::kInternal, "{}: status {}", call, static_cast<int>(s));
}

}  // namespace

// A convolution ready to run, with reorders of its operands where the library wants them otherwise.
struct PreparedConvolution {
  dnnl_memory_desc_t in, weights, out, bias;        // as they lie here
  dnnl_memory_desc_t own_in, own_weights, own_out;  // as the library wants them
  dnnl_primitive_t convolution = nullptr, reorder_in = nullptr, reorder_weights = nullptr, reorder_out = nullptr,
                   reorder_side = nullptr;
  PreparedConvolution() = default;
  PreparedConvolution(const PreparedConvolution&) = delete;
  PreparedConvolution& operator=(const PreparedConvolution&) = delete;
  ~PreparedConvolution() {
    for (dnnl_primitive_t p : {convolution, reorder_in, reorder_weights, reorder_out, reorder_side})
      if (p) dnnl().dnnl_primitive_destroy(p);
  }
};

struct HostConvolutions::Impl {
  std::map<Dims, std::unique_ptr<PreparedConvolution>> ready;  // null: not taken
  std::vector<char> in, weights, out;                          // reordered

  static Dims key_of(const ConvolutionForm& f) {
    Dims key{static_cast<int64_t>(f.kind),
             static_cast<int64_t>(f.type),
             f.side,
             f.bias,
             f.relu,
             static_cast<int64_t>(f.bias_type),
             std::bit_cast<int64_t>(f.scale),
             std::bit_cast<int64_t>(f.side_scale)};
    for (const Dims* d :
         {&f.x, &f.x_steps, &f.w, &f.w_steps, &f.y, &f.y_steps, &f.low, &f.high, &f.strides, &f.dilations})
      key.insert(key.end(), d->begin(), d->end());
    return key;
  }
  const PreparedConvolution* of(const ConvolutionForm& f) {
    auto [at, fresh] = ready.try_emplace(key_of(f));
    if (fresh) at->second = make(f);
    return at->second.get();
  }

  static dnnl_memory_desc_t described(const Dims& dims, const Dims& strides) {
    dnnl_memory_desc_t d;
    check(dnnl().dnnl_memory_desc_init_by_strides(&d, static_cast<int>(dims.size()), dims.data(), dnnl_f32,
                                                  strides.data()),
          "dnnl_memory_desc_init_by_strides");
    return d;
  }
  static dnnl_memory_desc_t anyhow(const dnnl_memory_desc_t& like) {
    dnnl_memory_desc_t d;
    check(dnnl().dnnl_memory_desc_init_by_tag(&d, like.ndims, like.dims, dnnl_f32, dnnl_format_tag_any),
          "dnnl_memory_desc_init_by_tag");
    return d;
  }
  static dnnl_primitive_t reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to) {
    const Dnnl& l = dnnl();
    if (l.dnnl_memory_desc_equal(&from, &to)) return nullptr;
    dnnl_primitive_desc_t pd = nullptr;
    check(l.dnnl_reorder_primitive_desc_create(&pd, &from, l.engine, &to, l.engine, nullptr),
          "dnnl_reorder_primitive_desc_create");
    dnnl_primitive_t p = nullptr;
    dnnl_status_t s = l.dnnl_primitive_create(&p, pd);
    l.dnnl_primitive_desc_destroy(pd);
    check(s, "dnnl_primitive_create");
    return p;
  }

  // What follows the sum of products: side input, relu.
  struct PostOps {
    explicit PostOps(const ConvolutionForm& f) {
      const Dnnl& l = dnnl();
      check(l.dnnl_primitive_attr_create(&attr), "dnnl_primitive_attr_create");
      dnnl_post_ops_t ops = nullptr;
      check(l.dnnl_post_ops_create(&ops), "dnnl_post_ops_create");
      dnnl_status_t s = dnnl_success;
      if (f.side) s = l.dnnl_post_ops_append_sum(ops, static_cast<float>(f.side_scale));
      if (s == dnnl_success && f.relu) s = l.dnnl_post_ops_append_eltwise(ops, 1.0F, dnnl_eltwise_relu, 0.0F, 0.0F);
      if (s == dnnl_success) s = l.dnnl_primitive_attr_set_post_ops(attr, ops);
      l.dnnl_post_ops_destroy(ops);
      check(s, "dnnl_primitive_attr_set_post_ops");
    }
    ~PostOps() { dnnl().dnnl_primitive_attr_destroy(attr); }
    PostOps(const PostOps&) = delete;
    PostOps& operator=(const PostOps&) = delete;
    dnnl_primitive_attr_t attr = nullptr;
  };

  std::unique_ptr<PreparedConvolution> make(const ConvolutionForm& f) {
    const Dnnl& l = dnnl();
    if (!l.good || f.kind != ConvolutionForm::Kind::kForward || f.type != ElementType::F32 || f.scale != 1 ||
        (f.bias && f.bias_type != ElementType::F32))
      return nullptr;
    const Dims &x = f.x, &xs = f.x_steps, &y = f.y, &ys = f.y_steps;
    const int64_t groups = f.x[1] / std::max<int64_t>(f.w[1], 1), per_group = f.w[0] / std::max<int64_t>(groups, 1);
    Dims w = f.w, ws = f.w_steps;
    if (groups > 1) {
      w[0] = per_group;
      w.insert(w.begin(), groups), ws.insert(ws.begin(), per_group * f.w_steps[0]);
    }
    Dims dilates, high;
    for (size_t k = 0; k < f.strides.size(); ++k) {
      dilates.push_back(f.dilations[k] - 1);
      int64_t reach = (f.w[k + 2] - 1) * f.dilations[k] + 1;
      // What the output's size says: HLO's high padding may leave a rest that no window reaches.
      high.push_back((y[k + 2] - 1) * f.strides[k] + reach - x[k + 2] - f.low[k]);
    }
    const Dims &strides = f.strides, &low = f.low;
    auto out_of = std::make_unique<PreparedConvolution>();
    out_of->in = described(x, xs), out_of->weights = described(w, ws), out_of->out = described(y, ys);
    const dnnl_memory_desc_t* bias = nullptr;
    if (f.bias) out_of->bias = described({f.w[0]}, {1}), bias = &out_of->bias;
    PostOps behind(f);
    // First with the activations as they lie; where only the reference code takes that, as the library likes.
    for (bool as_it_is : {true, false}) {
      dnnl_memory_desc_t src = as_it_is ? out_of->in : anyhow(out_of->in), weights = anyhow(out_of->weights),
                         dst = as_it_is ? out_of->out : anyhow(out_of->out);
      dnnl_convolution_desc_t desc;
      if (l.dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, &src,
                                                       &weights, bias, &dst, strides.data(), dilates.data(), low.data(),
                                                       high.data()) != dnnl_success)
        return nullptr;
      dnnl_primitive_desc_t pd = nullptr;
      if (l.dnnl_primitive_desc_create(&pd, &desc, behind.attr, l.engine, nullptr) != dnnl_success) continue;
      const char* how = nullptr;
      l.dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
      if (how && std::strncmp(how, "ref", 3) == 0) {
        l.dnnl_primitive_desc_destroy(pd);
        continue;
      }
      out_of->own_in = *l.dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
      out_of->own_weights = *l.dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
      out_of->own_out = *l.dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
      dnnl_status_t s = l.dnnl_primitive_create(&out_of->convolution, pd);
      l.dnnl_primitive_desc_destroy(pd);
      check(s, "dnnl_primitive_create");
      out_of->reorder_in = reorder(out_of->in, out_of->own_in);
      out_of->reorder_weights = reorder(out_of->weights, out_of->own_weights);
      out_of->reorder_out = reorder(out_of->own_out, out_of->out);
      if (f.side) out_of->reorder_side = reorder(out_of->out, out_of->own_out);
      return out_of;
    }
    return nullptr;
  }
};

HostConvolutions::HostConvolutions() : impl_(std::make_unique<Impl>()) {}
HostConvolutions::~HostConvolutions() = default;

bool HostConvolutions::takes(const ConvolutionForm& f) { return impl_->of(f) != nullptr; }

std::string HostConvolutions::library() const {
  if (!dnnl().good) return {};
  const dnnl_version_t* v = dnnl().dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

void HostConvolutions::run(const ConvolutionForm& f, const ConvolutionArrays& at) {
  const PreparedConvolution* r = impl_->of(f);
  HLO_CHECK(r, "a convolution that the library does not take");
  const char *input = at.first, *kernel = at.second;
  char* result = at.out;
  const Dnnl& l = dnnl();
  struct Stream {
    Stream() { check(dnnl().dnnl_stream_create(&at, dnnl().engine, dnnl_stream_default_flags), "dnnl_stream_create"); }
    ~Stream() { dnnl().dnnl_stream_destroy(at); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    dnnl_stream_t at = nullptr;
  } stream;
  struct Memory {
    Memory(const dnnl_memory_desc_t& d, const char* p) {
      check(dnnl().dnnl_memory_create(&at, &d, dnnl().engine, const_cast<char*>(p)), "dnnl_memory_create");
    }
    ~Memory() { dnnl().dnnl_memory_destroy(at); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    dnnl_memory_t at = nullptr;
  };
  auto space = [&](std::vector<char>& v, const dnnl_memory_desc_t& d) {
    v.resize(l.dnnl_memory_desc_get_size(&d));
    return v.data();
  };
  auto execute = [&](dnnl_primitive_t p, std::initializer_list<dnnl_exec_arg_t> args) {
    std::vector<dnnl_exec_arg_t> list(args);
    check(l.dnnl_primitive_execute(p, stream.at, static_cast<int>(list.size()), list.data()), "dnnl_primitive_execute");
  };
  Memory x(r->in, input), w(r->weights, kernel), y(r->out, result);
  Memory own_x(r->own_in, r->reorder_in ? space(impl_->in, r->own_in) : input),
      own_w(r->own_weights, r->reorder_weights ? space(impl_->weights, r->own_weights) : kernel),
      own_y(r->own_out, r->reorder_out ? space(impl_->out, r->own_out) : result);
  if (r->reorder_in) execute(r->reorder_in, {{DNNL_ARG_FROM, x.at}, {DNNL_ARG_TO, own_x.at}});
  if (r->reorder_weights) execute(r->reorder_weights, {{DNNL_ARG_FROM, w.at}, {DNNL_ARG_TO, own_w.at}});
  // The sum is added to what lies in the result.
  if (f.side && r->reorder_side) {
    Memory side(r->out, at.side);
    execute(r->reorder_side, {{DNNL_ARG_FROM, side.at}, {DNNL_ARG_TO, own_y.at}});
  } else if (f.side && at.side != result) {
    std::memcpy(result, at.side, l.dnnl_memory_desc_get_size(&r->out));
  }
  if (f.bias) {
    Memory bias(r->bias, at.bias);
    execute(
        r->convolution,
        {{DNNL_ARG_SRC, own_x.at}, {DNNL_ARG_WEIGHTS, own_w.at}, {DNNL_ARG_BIAS, bias.at}, {DNNL_ARG_DST, own_y.at}});
  } else {
    execute(r->convolution, {{DNNL_ARG_SRC, own_x.at}, {DNNL_ARG_WEIGHTS, own_w.at}, {DNNL_ARG_DST, own_y.at}});
  }
  if (r->reorder_out) execute(r->reorder_out, {{DNNL_ARG_FROM, own_y.at}, {DNNL_ARG_TO, y.at}});
  check(l.dnnl_stream_wait(stream.at), "dnnl_stream_wait");
}

}  // namespace hlo
