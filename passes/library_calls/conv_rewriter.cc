// conv-rewriter (2019: cudnn-conv-rewriter; xla/backends/gpu/transforms/conv_rewriter.cc): convolutions become library
// calls, those of gradients the library's backward forms.
#include <algorithm>
#include <optional>

#include "passes/rewrite.h"

namespace hlo {
namespace {

// A convolution as the library takes it.
struct LibraryConv {
  const char *target, *name;
  Window window;
  DimLabels labels;
  InstId filter;
  int64_t groups = 1;
  bool reshaped = false, turned = false;  // the filter is to get the old one's shape, to be turned round
};

// Padding behind, where any of `strides` amounts gives the same size: like that in front if it is one of them.
int64_t padding_behind(int64_t least, int64_t stride, int64_t in_front) {
  return std::clamp(in_front, least, least + stride - 1);
}

bool all_of(const Window& w, bool (*f)(const WindowDim&)) { return std::all_of(w.dims.begin(), w.dims.end(), f); }

class ConvRewriter {
 public:
  ConvRewriter(Module& m, InstId conv)
      : m_(m),
        conv_(conv),
        window_(m.attrs(conv).has(Attr::window) ? *m.attrs(conv).get<Window>(Attr::window) : Window()),
        labels_(*m.attrs(conv).get<DimLabels>(Attr::dim_labels)),
        batch_groups_(m.attrs(conv).integer(Attr::batch_group_count, 1)),
        feature_groups_(m.attrs(conv).integer(Attr::feature_group_count, 1)) {}

  // A gradient with respect to the input: spread out where the forward convolution strode, the filter turned round.
  std::optional<LibraryConv> backward_input() {
    if (feature_groups_ != 1 || batch_groups_ != 1 || window_.dims.empty()) return {};
    InstId rhs = m_.operand(conv_, 1), filter = turned_filter(rhs);
    const bool spread = !all_of(window_, [](const WindowDim& d) { return d.lhs_dilate == 1; });
    const bool single = all_of(window_, [](const WindowDim& d) { return d.size == 1; });
    const bool constant = m_.op(rhs) == Opcode::Constant;
    if (!filter.valid() && !(spread && (constant || single))) return {};
    if (!all_of(window_, [](const WindowDim& d) { return d.stride == 1 && d.rhs_dilate == 1 && !d.reversal; }))
      return {};
    LibraryConv out{"__cudnn$convBackwardInput", "cudnn-conv-bw-input", window_, labels_, filter};
    for (size_t k = 0; k < window_.dims.size(); ++k) {
      const WindowDim& old = window_.dims[k];
      WindowDim& d = out.window.dims[k];
      const int64_t result = size(conv_, labels_.output_spatial[k]),
                    input = size(m_.operand(conv_, 0), labels_.input_spatial[k]);
      d.stride = old.lhs_dilate, d.lhs_dilate = 1;
      d.pad_low = old.size - 1 - old.pad_low;
      d.pad_high = padding_behind(old.size + d.stride * (input - 1) - result - d.pad_low, d.stride, d.pad_low);
      if (d.pad_low < 0 || d.pad_high < 0) return {};
    }
    std::swap(out.labels.kernel_input, out.labels.kernel_output);
    std::swap(out.labels.input_spatial, out.labels.output_spatial);
    std::swap(out.labels.input_batch, out.labels.output_batch);
    std::swap(out.labels.input_feature, out.labels.output_feature);
    out.reshaped = filter.valid() && m_.op(rhs) == Opcode::Reshape;
    if (!filter.valid()) out.filter = rhs, out.turned = constant;
    return out;
  }

  // A gradient with respect to the filter: the result is as small as a filter, the window as large as a result.
  std::optional<LibraryConv> backward_filter() {
    if (feature_groups_ != 1 || window_.dims.empty()) return {};
    InstId lhs = m_.operand(conv_, 0), rhs = m_.operand(conv_, 1);
    size_t small = 0;
    bool degenerate = false;
    for (size_t k = 0; k < window_.dims.size(); ++k) {
      const int64_t kernel = size(rhs, labels_.kernel_spatial[k]), result = size(conv_, labels_.output_spatial[k]);
      small += kernel <= result;
      degenerate |= kernel == 1 && result == 1;
    }
    if (small == window_.dims.size() && size(lhs, labels_.input_batch) == size(conv_, labels_.output_batch) &&
        size(rhs, labels_.kernel_output) == size(conv_, labels_.output_feature))
      return {};
    if (!all_of(window_,
                [](const WindowDim& d) { return d.stride == 1 && d.lhs_dilate == 1 && d.pad_low >= 0 && !d.reversal; }))
      return {};
    const bool dilated = !all_of(window_, [](const WindowDim& d) { return d.rhs_dilate == 1; });
    const bool as_2d = window_.dims.size() == 2 && degenerate;  // one dimension written as two
    if (!dilated && (small > 1 || (small == 1 && !as_2d))) return {};
    LibraryConv out{"__cudnn$convBackwardFilter", "cudnn-conv-bw-filter", window_, labels_, rhs, batch_groups_};
    for (size_t k = 0; k < window_.dims.size(); ++k) {
      const WindowDim& old = window_.dims[k];
      WindowDim& d = out.window.dims[k];
      d.size = size(conv_, labels_.output_spatial[k]);
      d.stride = old.rhs_dilate, d.rhs_dilate = 1;
      d.pad_high = padding_behind(d.size + (old.size - 1) * d.stride - size(lhs, labels_.input_spatial[k]) - d.pad_low,
                                  d.stride, d.pad_low);
      if (d.pad_high < 0) return {};
    }
    std::swap(out.labels.input_batch, out.labels.input_feature);
    out.labels.output_batch = labels_.kernel_input, out.labels.output_feature = labels_.kernel_output;
    out.labels.output_spatial = labels_.kernel_spatial;
    out.labels.kernel_input = labels_.output_batch, out.labels.kernel_output = labels_.output_feature;
    out.labels.kernel_spatial = labels_.output_spatial;
    return out;
  }

  std::optional<LibraryConv> forward(std::string_view* why) const {
    if (window_.dims.size() > 3) {
      *why = "more than 3 spatial dimensions";
      return {};
    }
    size_t reversed = 0;
    for (const WindowDim& d : window_.dims) reversed += d.reversal;
    if (reversed && (window_.dims.size() != 2 || reversed != 2)) {
      *why = "reversed window";
      return {};
    }
    for (InstId o : m_.operands(conv_))
      if (m_.shape(o).elements_count() == 0) {
        *why = "no elements";
        return {};
      }
    return LibraryConv{"__cudnn$convForward", "cudnn-conv", window_, labels_, m_.operand(conv_, 1), feature_groups_};
  }

  //   convolution(A), batch_group_count=G      →      convolution(A with G in front of its features),
  //   feature_group_count=G
  InstId with_feature_groups() {
    Universe& u = m_.u();
    InstId lhs = m_.operand(conv_, 0);
    const int64_t batch = labels_.input_batch, feature = labels_.input_feature, groups = batch_groups_;
    Dims split = m_.shape(lhs).dims;
    split[static_cast<size_t>(batch)] /= groups;
    split.insert(split.begin() + batch, groups);
    Dims order;
    for (size_t d = 0; d < split.size(); ++d) order.push_back(static_cast<int64_t>(d));
    order.erase(order.begin() + batch);
    order.insert(order.begin() + feature, batch);
    InstId moved = make_transpose(m_, make_reshape(m_, lhs, split), order);
    m_.set_shape(moved, u.with_default_layout(m_.shape_id(moved)));
    Dims joined = m_.shape(moved).dims;
    joined.erase(joined.begin() + feature);
    joined[static_cast<size_t>(feature)] *= groups;
    AttrSet set = m_.attrs(conv_);
    set.erase(Attr::batch_group_count);
    set.set(Attr::feature_group_count, groups);
    AttrsId attrs = u.attrs(std::move(set));
    InstId grouped = make_derived(m_, conv_, Opcode::Convolution,
                                  {make_reshape(m_, moved, joined), m_.operand(conv_, 1)}, attrs, m_.shape_id(conv_));
    return grouped;  // XLA leaves it behind, dead
  }

  //   f32[…] convolution(A, K)      →      get-tuple-element((f32[…], u8[0]) custom-call(A, K)), index=0
  bool become(const LibraryConv& as, InstId replaced) {
    Universe& u = m_.u();
    AttrSet set;
    set.op = Opcode::CustomCall;
    for (Attr key : {Attr::operand_precision, Attr::frontend_attributes})
      if (const AttrValue* v = m_.attrs(conv_).find(key)) set.set(key, *v);
    set.set(Attr::window, as.window), set.set(Attr::dim_labels, as.labels);
    if (as.groups != 1) set.set(Attr::feature_group_count, as.groups);
    set.set(Attr::custom_call_target, u.str(as.target));
    set.set(Attr::backend_config, u.str("{\"operation_queue_id\":\"0\",\"cudnn_conv_backend_config\":{\"activation_"
                                        "mode\":\"kNone\",\"conv_result_scale\":1,\"side_input_scale\":0,"
                                        "\"leakyrelu_alpha\":0},\"force_earliest_schedule\":false,\"reification_"
                                        "cost\":[],\"device_type\":\"DEVICE_TYPE_INVALID\"}"));
    InstId filter = as.filter;
    if (as.reshaped)
      filter = make(m_, m_.parent(conv_), Opcode::Reshape, {filter}, {}, m_.shape_id(m_.operand(conv_, 1)));
    if (as.turned)
      filter =
          make(m_, m_.parent(conv_), Opcode::Reverse, {filter}, dims_attr(u, Opcode::Reverse, labels_.kernel_spatial));
    ShapeId scratch = u.array(ElementType::U8, {0});
    InstId call = m_.add(m_.parent(conv_), {.op = Opcode::CustomCall,
                                            .shape = u.tuple({m_.shape_id(conv_), scratch}),
                                            .operands = {m_.operand(conv_, 0), filter},
                                            .attrs = u.attrs(std::move(set)),
                                            .meta = m_[conv_].meta,
                                            .name = as.name});
    InstId gte = make_element(m_, call, 0);
    return m_.replace(replaced, gte);
  }

 private:
  int64_t size(InstId i, int64_t d) const { return m_.shape(i).dims[static_cast<size_t>(d)]; }

  // What is turned round along all spatial dimensions, directly or below a reshape that adds one of them.
  InstId turned_filter(InstId rhs) {
    Dims spatial(labels_.kernel_spatial.begin(), labels_.kernel_spatial.end());
    std::sort(spatial.begin(), spatial.end());
    auto turned = [&](InstId reverse) {
      Dims d = m_.attrs(reverse).ints(Attr::dimensions);
      std::sort(d.begin(), d.end());
      return d;
    };
    if (m_.op(rhs) == Opcode::Reverse) return turned(rhs) == spatial ? m_.operand(rhs, 0) : InstId();
    if (m_.op(rhs) != Opcode::Reshape || m_.op(m_.operand(rhs, 0)) != Opcode::Reverse || spatial.size() != 2) return {};
    InstId reverse = m_.operand(rhs, 0);
    const Dims from = m_.shape(reverse).dims, to = m_.shape(rhs).dims;
    for (int64_t added : spatial) {
      Dims without = to;
      if (to[static_cast<size_t>(added)] != 1) continue;
      without.erase(without.begin() + added);
      if (without != from) continue;
      Dims expected;
      for (int64_t d : spatial)
        if (d != added) expected.push_back(d > added ? d - 1 : d);
      if (turned(reverse) == expected) return m_.operand(reverse, 0);
    }
    return {};
  }

  Module& m_;
  InstId conv_;
  const Window window_;
  const DimLabels labels_;
  const int64_t batch_groups_, feature_groups_;
};

}  // namespace

bool run_conv_rewriter(Module& m, PassContext& ctx) {
  if (!m.count(Opcode::Convolution)) return false;
  bool changed = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Convolution || m.has_control(i)) continue;
      std::string_view why;
      if (is_complex(m.shape(i).type) || m.shape(i).type == ElementType::Pred) {
        ctx.note(m, "stays a convolution", {i}, "element type");
        continue;
      }
      ConvRewriter r(m, i);
      std::string_view rule = "gradient of an input";
      std::optional<LibraryConv> found = r.backward_input();
      if (!found) rule = "gradient of a filter", found = r.backward_filter();
      if (!found) rule = "forward convolution", found = r.forward(&why);
      if (!found) {
        ctx.note(m, "stays a convolution", {i}, why);
        continue;
      }
      if (!ctx.spend(m, rule, {i})) return changed;
      if (rule == "forward convolution" && m.attrs(i).integer(Attr::batch_group_count, 1) != 1) {
        ConvRewriter grouped(m, r.with_feature_groups());
        changed |= grouped.become(*grouped.forward(&why), i);
      } else {
        changed |= r.become(*found, i);
      }
    }
  return changed;
}

}  // namespace hlo
