// A module with other sizes.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ir/backend_config.h"
#include "ir/verify/verifier.h"
#include "replay/smaller/constants.h"
#include "replay/smaller/smaller.h"

namespace hlo {
namespace {

class Rebuild {
 public:
  Rebuild(Module& m, const SizeChoice& choice) : m_(m), u_(m.u()), choice_(choice) {}

  void run() {
    change_indices(m_, [this](int64_t number) { return choice_.of_index(number); });
    before_.resize(m_.inst_slots());
    ModuleConfig config = m_.config();
    for (ShapeId& s : config.entry_params) s = of(s);
    if (config.entry_result.valid()) config.entry_result = of(config.entry_result);
    if (!(config == m_.config())) m_.edit_config() = config;
    for (CompId c : m_.computations())
      for (InstId i : m_.live_order(c)) {
        const ShapeId old = m_.shape_id(i), now = of(old);
        before_[i.value] = old;
        if (m_.op(i) == Opcode::Constant && old != now) m_.set_literal(i, literal(m_.literal_id(i)));
        m_.set_shape(i, now);
      }
    // Configurations are told by shapes as they are now.
    for (CompId c : m_.computations())
      for (InstId i : m_.live_order(c)) attributes(i);
  }

 private:
  int64_t of(int64_t size) const { return choice_.of(size); }
  ShapeId of(ShapeId id) {
    if (auto known = shapes_.find(id.value); known != shapes_.end()) return known->second;
    Shape s = u_[id];
    if (device_table(s, choice_.devices)) return shapes_[id.value] = id;
    const Shape old = s;
    for (ShapeId& e : s.elements) e = of(e);
    for (int64_t& d : s.dims)
      if (d > 0) d = of(d);
    const bool same = s.dims == old.dims && s.elements == old.elements;
    return shapes_[id.value] = same ? id : s.is_tuple() ? u_.tuple(s.elements) : u_.shape(std::move(s));
  }

  LitId literal(LitId id) {
    Literal l = u_[id];
    const ShapeId now = of(l.shape);
    if (now == l.shape) return id;
    for (LitId& e : l.elements) e = literal(e);
    if (l.elided || !u_[now].is_array()) {
      l.shape = now;
      return u_.literal(std::move(l));
    }
    Table t = table_of(u_, l);
    if (t.kind == TableKind::kOther) fail(FailureKind::kUnsupported, "a table of constants has no smaller one");
    return u_.literal(table_like(u_, l, t, now));
  }

  void attributes(InstId i) {
    AttrSet a = m_.attrs(i);
    bool changed = false;
    for (auto& [key, value] : a.list) {
      const AttrValue before = value;
      attribute(i, key, &value);
      changed = changed || !(before == value);
    }
    if (changed) m_.set_attrs(i, u_.attrs(std::move(a)));
  }

  void attribute(InstId i, Attr key, AttrValue* value) {
    switch (key) {
      case Attr::slice:
        slice(i, std::get<std::vector<SliceDim>>(*value));
        return;
      case Attr::padding:
        for (PaddingDim& d : std::get<std::vector<PaddingDim>>(*value))
          d.low = choice_.of_place(d.low), d.high = choice_.of_place(d.high);
        return;
      case Attr::window:
        for (WindowDim& d : std::get<Window>(*value).dims)
          d.size = of(d.size), d.pad_low = choice_.of_place(d.pad_low), d.pad_high = choice_.of_place(d.pad_high);
        return;
      case Attr::slice_sizes:
      case Attr::dynamic_slice_sizes:
      case Attr::fft_length:
        for (int64_t& n : std::get<Dims>(*value)) n = of(n);
        return;
      case Attr::k:
      case Attr::feature_group_count:
      case Attr::batch_group_count:
        *value = of(std::get<int64_t>(*value));
        return;
      case Attr::backend_config:
        if (const StrId* text = std::get_if<StrId>(value)) *value = config(i, *text);
        return;
      default:
        if (ShapeId* s = std::get_if<ShapeId>(value)) *s = of(*s);
        if (auto* list = std::get_if<std::vector<ShapeId>>(value))
          for (ShapeId& s : *list) s = of(s);
    }
  }

  void slice(InstId i, std::vector<SliceDim>& dims) const {
    const Dims& whole = u_[before_[m_.operand(i, 0).value]].dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      SliceDim& s = dims[d];
      s.start = choice_.of_place(s.start);
      s.limit = s.limit == whole[d] ? of(s.limit) : choice_.of_place(s.limit);
    }
  }

  // Numbers of a configuration that are sizes: the count of a loop, the strides of a product, a softmax's scores.
  StrId config(InstId i, StrId text) {
    using Json = nlohmann::ordered_json;
    const std::string_view old = u_.text(text);
    constexpr std::string_view kKeys[] = {"known_trip_count", "_stride", "intermediate_tensor_shape",
                                          "dynamic_slice_config"};
    if (std::none_of(std::begin(kKeys), std::end(kKeys),
                     [&](std::string_view key) { return old.find(key) != std::string_view::npos; }))
      return text;
    Json j = Json::parse(old, nullptr, false);
    if (!j.is_object()) return text;
    auto number = [](const Json& n) {
      return n.is_string() ? atoll(n.get<std::string>().c_str()) : n.is_number_integer() ? n.get<int64_t>() : -1;
    };
    auto put = [](Json& n, int64_t v) {
      if (n.is_string())
        n = std::to_string(v);
      else
        n = v;
    };
    if (auto at = j.find("known_trip_count"); at != j.end() && at->is_object() && at->contains("n"))
      put((*at)["n"], of(number((*at)["n"])));
    // The steps of a loop's slices in bytes, which nothing but XLA's own thunks read.
    j.erase("dynamic_slice_config");
    if (auto at = j.find("gemm_backend_config"); at != j.end() && at->is_object() && m_.operand_count(i) >= 2) {
      const char* sides[] = {"lhs_stride", "rhs_stride"};
      const char* batches[] = {"lhs_batch_dimensions", "rhs_batch_dimensions"};
      for (size_t k = 0; k < 2; ++k) {
        if (!at->contains(sides[k])) continue;
        const Dims batch = at->contains("dot_dimension_numbers")
                               ? list(BackendConfig::parse((*at)["dot_dimension_numbers"].dump()), batches[k])
                               : Dims();
        int64_t stride = 1;
        const Dims& dims = m_.shape(m_.operand(i, k)).dims;
        for (size_t d = 0; d < dims.size(); ++d)
          if (!contains(batch, static_cast<int64_t>(d))) stride *= dims[d];
        put((*at)[sides[k]], stride);
      }
    }
    for (Json& part : j)
      if (part.is_object() && part.contains("intermediate_tensor_shape") &&
          part["intermediate_tensor_shape"].contains("dimensions"))
        for (Json& d : part["intermediate_tensor_shape"]["dimensions"]) put(d, of(number(d)));
    return u_.str(j.dump());
  }

  Module& m_;
  Universe& u_;
  const SizeChoice& choice_;
  std::unordered_map<uint32_t, ShapeId> shapes_;
  std::vector<ShapeId> before_;  // by instruction
};

}  // namespace

std::unique_ptr<Module> with_sizes(const Module& m, const SizeChoice& choice) {
  std::unique_ptr<Module> out = m.clone();
  Rebuild(*out, choice).run();
  return out;
}

}  // namespace hlo
