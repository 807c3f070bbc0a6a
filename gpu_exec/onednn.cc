#include "gpu_exec/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <cstring>
#include <map>
#include <tuple>
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
  F(dnnl_primitive_execute) F(dnnl_memory_create) F(dnnl_memory_destroy) F(dnnl_version)
// clang-format on

struct Library {
#define HLO_DNNL_MEMBER(name) decltype(&::name) name = nullptr;
  HLO_DNNL_FUNCTIONS(HLO_DNNL_MEMBER)
#undef HLO_DNNL_MEMBER
  dnnl_engine_t engine = nullptr;
  bool good = false;

  Library() {
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
const Library& dnnl() {
  static const Library kLibrary;
  return kLibrary;
}

void check(dnnl_status_t s, const char* call) {
  if (s != dnnl_success) fail(FailureKind::kInternal, "{}: status {}", call, static_cast<int>(s));
}

// A convolution ready to run, with reorders of its operands where the library wants them otherwise.
struct Ready {
  dnnl_memory_desc_t in, weights, out;              // as they lie here
  dnnl_memory_desc_t own_in, own_weights, own_out;  // as the library wants them
  dnnl_primitive_t convolution = nullptr, reorder_in = nullptr, reorder_weights = nullptr, reorder_out = nullptr;
  Ready() = default;
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  ~Ready() {
    for (dnnl_primitive_t p : {convolution, reorder_in, reorder_weights, reorder_out})
      if (p) dnnl().dnnl_primitive_destroy(p);
  }
};

}  // namespace

struct HostConvolutions::Impl {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, std::unique_ptr<Ready>> ready;  // null: not taken
  std::vector<char> in, weights, out;                                                          // reordered

  const Ready* of(const Module& m, InstId i) {
    InstId x = m.operand(i, 0), w = m.operand(i, 1);
    std::tuple key{m[i].attrs.value, m.shape_id(x).value, m.shape_id(w).value, m.shape_id(i).value};
    auto [at, fresh] = ready.try_emplace(key);
    if (fresh) at->second = make(m, i);
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
    const Library& l = dnnl();
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

  std::unique_ptr<Ready> make(const Module& m, InstId i) {
    const Library& l = dnnl();
    if (!l.good || m.op(i) != Opcode::Convolution) return nullptr;
    const AttrSet& a = m.attrs(i);
    const Shape &in = m.shape(m.operand(i, 0)), &kernel = m.shape(m.operand(i, 1)), &out = m.shape(i);
    for (const Shape* s : {&in, &kernel, &out})
      if (s->type != ElementType::F32 || s->elements_count() == 0) return nullptr;
    if (a.integer(Attr::batch_group_count, 1) != 1) return nullptr;
    const DimLabels& d = *a.get<DimLabels>(Attr::dim_labels);
    const Window* window = a.get<Window>(Attr::window);
    size_t spatial = d.input_spatial.size();
    if (!window || spatial < 1 || spatial > 3) return nullptr;
    for (const WindowDim& w : window->dims)
      if (w.lhs_dilate != 1 || w.reversal || w.pad_low < 0) return nullptr;
    int64_t groups = a.integer(Attr::feature_group_count, 1);
    Dims in_strides = row_major_strides(in.dims), kernel_strides = row_major_strides(kernel.dims),
         out_strides = row_major_strides(out.dims);
    auto pick = [](const Dims& from, int64_t which) { return from[static_cast<size_t>(which)]; };
    Dims x{pick(in.dims, d.input_batch), pick(in.dims, d.input_feature)},
        xs{pick(in_strides, d.input_batch), pick(in_strides, d.input_feature)},
        y{pick(out.dims, d.output_batch), pick(out.dims, d.output_feature)},
        ys{pick(out_strides, d.output_batch), pick(out_strides, d.output_feature)};
    int64_t outs = pick(kernel.dims, d.kernel_output), per_group = outs / groups;
    int64_t out_stride = pick(kernel_strides, d.kernel_output);
    Dims w, ws;
    if (groups > 1) w = {groups}, ws = {per_group * out_stride};
    w.push_back(per_group), ws.push_back(out_stride);
    w.push_back(pick(kernel.dims, d.kernel_input)), ws.push_back(pick(kernel_strides, d.kernel_input));
    Dims strides, dilates, low, high;
    for (size_t k = 0; k < spatial; ++k) {
      const WindowDim& dim = window->dims[k];
      x.push_back(pick(in.dims, d.input_spatial[k])), xs.push_back(pick(in_strides, d.input_spatial[k]));
      y.push_back(pick(out.dims, d.output_spatial[k])), ys.push_back(pick(out_strides, d.output_spatial[k]));
      w.push_back(pick(kernel.dims, d.kernel_spatial[k])), ws.push_back(pick(kernel_strides, d.kernel_spatial[k]));
      strides.push_back(dim.stride), dilates.push_back(dim.rhs_dilate - 1), low.push_back(dim.pad_low);
      // What the output's size says: HLO's high padding may leave a rest that no window reaches.
      int64_t reach = (w.back() - 1) * dim.rhs_dilate + 1;
      high.push_back((y.back() - 1) * dim.stride + reach - x.back() - dim.pad_low);
    }
    auto out_of = std::make_unique<Ready>();
    out_of->in = described(x, xs), out_of->weights = described(w, ws), out_of->out = described(y, ys);
    // First with the activations as they lie; where only the reference code takes that, as the library likes.
    for (bool as_it_is : {true, false}) {
      dnnl_memory_desc_t src = as_it_is ? out_of->in : anyhow(out_of->in), weights = anyhow(out_of->weights),
                         dst = as_it_is ? out_of->out : anyhow(out_of->out);
      dnnl_convolution_desc_t desc;
      if (l.dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, &src,
                                                       &weights, nullptr, &dst, strides.data(), dilates.data(),
                                                       low.data(), high.data()) != dnnl_success)
        return nullptr;
      dnnl_primitive_desc_t pd = nullptr;
      if (l.dnnl_primitive_desc_create(&pd, &desc, nullptr, l.engine, nullptr) != dnnl_success) continue;
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
      return out_of;
    }
    return nullptr;
  }
};

HostConvolutions::HostConvolutions() : impl_(std::make_unique<Impl>()) {}
HostConvolutions::~HostConvolutions() = default;

bool HostConvolutions::takes(const Module& m, InstId i) { return impl_->of(m, i) != nullptr; }

std::string HostConvolutions::library() const {
  if (!dnnl().good) return {};
  const dnnl_version_t* v = dnnl().dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

void HostConvolutions::run(const Module& m, InstId i, const char* input, const char* kernel, char* result) {
  const Ready* r = impl_->of(m, i);
  HLO_CHECK(r, "{} is none that the library takes", m.inst_name(i));
  const Library& l = dnnl();
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
  execute(r->convolution, {{DNNL_ARG_SRC, own_x.at}, {DNNL_ARG_WEIGHTS, own_w.at}, {DNNL_ARG_DST, own_y.at}});
  if (r->reorder_out) execute(r->reorder_out, {{DNNL_ARG_FROM, own_y.at}, {DNNL_ARG_TO, y.at}});
  check(l.dnnl_stream_wait(stream.at), "dnnl_stream_wait");
}

}  // namespace hlo
