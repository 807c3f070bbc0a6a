// Attributes in XLA's order and spelling.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/base/stack_guard.h"
#include "ir/print/printer.h"
#include "ir/sharding/sharding.h"

namespace hlo {

void Printer::window(const Window& w) {
  out += '{';
  bool first = true;
  auto field = [&](const char* key, auto&& value, bool show) {
    if (!show) return;
    if (!first) out += ' ';
    first = false;
    out += key;
    for (size_t i = 0; i < w.dims.size(); ++i) {
      if (i) out += 'x';
      value(w.dims[i]);
    }
  };
  auto any = [&](auto&& test) { return std::any_of(w.dims.begin(), w.dims.end(), test); };
  auto num = [&](int64_t v) { out += std::to_string(v); };
  using D = const WindowDim&;
  field(
      "size=", [&](D d) { num(d.size); }, !w.dims.empty());
  field(
      "stride=", [&](D d) { num(d.stride); }, any([](D d) { return d.stride != 1; }));
  field(
      "pad=", [&](D d) { num(d.pad_low), out += '_', num(d.pad_high); },
      any([](D d) { return d.pad_low || d.pad_high; }));
  field(
      "lhs_dilate=", [&](D d) { num(d.lhs_dilate); }, any([](D d) { return d.lhs_dilate != 1; }));
  field(
      "rhs_dilate=", [&](D d) { num(d.rhs_dilate); }, any([](D d) { return d.rhs_dilate != 1; }));
  field(
      "rhs_reversal=", [&](D d) { num(d.reversal); }, any([](D d) { return d.reversal; }));
  out += '}';
}

void Printer::dim_labels(const DimLabels& d) {
  auto part = [&](int rank, int64_t a, char ca, int64_t b, char cb, const Dims& spatial) {
    std::string labels(static_cast<size_t>(rank), '?');
    labels[static_cast<size_t>(a)] = ca;
    labels[static_cast<size_t>(b)] = cb;
    for (size_t i = 0; i < spatial.size(); ++i) labels[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
    out += labels;
  };
  part(d.lhs_rank, d.input_batch, 'b', d.input_feature, 'f', d.input_spatial);
  out += '_';
  part(d.rhs_rank, d.kernel_input, 'i', d.kernel_output, 'o', d.kernel_spatial);
  out += "->";
  part(d.out_rank, d.output_batch, 'b', d.output_feature, 'f', d.output_spatial);
}

void Printer::config(std::string_view text) {
  if (is_dict_text(text) && !o_.dialect_2019 && !(o_.lossless && text.back() != '}')) {
    out += text;
  } else {
    out += '"';
    out += c_escape(text);
    out += '"';
  }
}

void Printer::comp_names(const std::vector<CompId>& comps) {
  out += '{';
  bool first = true;
  for (CompId c : comps) {
    if (!first) out += ", ";
    first = false;
    comp_name(c);
  }
  out += '}';
}

void Printer::padding(const std::vector<PaddingDim>& dims) {
  bool interior = std::any_of(dims.begin(), dims.end(), [](const PaddingDim& d) { return d.interior != 0; });
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += 'x';
    out += fmt::format("{}_{}", dims[i].low, dims[i].high);
    if (interior) out += fmt::format("_{}", dims[i].interior);
  }
}

void Printer::slices(const std::vector<SliceDim>& dims) {
  bool stride = std::any_of(dims.begin(), dims.end(), [](const SliceDim& d) { return d.stride != 1; });
  out += '{';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ", ";
    out += fmt::format("[{}:{}", dims[i].start, dims[i].limit);
    if (stride) out += fmt::format(":{}", dims[i].stride);
    out += ']';
  }
  out += '}';
}

void Printer::shapes(const std::vector<ShapeId>& list) {
  out += '{';
  bool first = true;
  for (ShapeId s : list) {
    if (!first) out += ", ";
    first = false;
    out += u_.shape_text(s);
  }
  out += '}';
}

void Printer::value(Attr key, const AttrValue& v) {
  if (!o_.metadata && (key == Attr::sharding || key == Attr::domain)) {
    out += without_metadata(u_.text(std::get<StrId>(v)));
    return;
  }
  if (o_.fingerprint && key == Attr::replica_groups) {
    // Every form as the plain list.
    std::vector<DeviceDims> groups;
    if (expand_replica_groups(u_.text(std::get<StrId>(v)), &groups)) {
      out += '{';
      for (size_t i = 0; i < groups.size(); ++i)
        out += fmt::format("{}{{{}}}", i ? "," : "", fmt::join(groups[i], ","));
      out += '}';
      return;
    }
  }
  if (const StrId* text = std::get_if<StrId>(&v); text && attr_kind(key) == AttrKind::Ints) {
    out += u_.text(*text);  // slice_sizes of collective-permute: lists of lists
    return;
  }
  switch (attr_kind(key)) {
    case AttrKind::Bool:
      out += std::get<bool>(v) ? "true" : "false";
      return;
    case AttrKind::Int:
      out += std::to_string(std::get<int64_t>(v));
      return;
    case AttrKind::Float:
      out += fmt::format("{:g}", static_cast<float>(std::get<double>(v)));
      return;
    case AttrKind::Enum:
    case AttrKind::Raw:
      out += u_.text(std::get<StrId>(v));
      return;
    case AttrKind::Str:
      out += '"';
      out += c_escape(u_.text(std::get<StrId>(v)));
      out += '"';
      return;
    case AttrKind::Config:
      return config(u_.text(std::get<StrId>(v)));
    case AttrKind::Ints:
      ints(std::get<Dims>(v));
      return;
    case AttrKind::Comp:
      comp_name(std::get<CompId>(v));
      return;
    case AttrKind::Comps:
      return comp_names(std::get<std::vector<CompId>>(v));
    case AttrKind::Window:
      window(std::get<Window>(v));
      return;
    case AttrKind::DimLabels:
      dim_labels(*std::get<Boxed<DimLabels>>(v));
      return;
    case AttrKind::Padding:
      return padding(std::get<std::vector<PaddingDim>>(v));
    case AttrKind::Slices:
      return slices(std::get<std::vector<SliceDim>>(v));
    case AttrKind::Shape:
      out += u_.shape_text(std::get<ShapeId>(v));
      return;
    case AttrKind::Shapes:
      return shapes(std::get<std::vector<ShapeId>>(v));
  }
}

void Printer::attributes(InstId id) {
  Opcode inside;
  if (m_.op(id) == Opcode::AsyncStart && sugar(id, &inside)) {
    sugared(id);
    return;
  }
  const AttrSet& set = m_.attrs(id);
  bool bodies = o_.canonical && op_info(m_.op(id)).cls != OpClass::Async;
  auto preds = m_.control_preds(id);
  // Most sets repeat: their text is kept, by number, unless one instruction is printed alone. What comes behind the
  // control predecessors is rare.
  bool simple = !bodies && o_.backend_config && preds.empty() && m_[id].attrs.valid();
  if (simple && alone_) {
    for (const auto& [key, v] : set.list)
      if (key != Attr::backend_config) attr(key, v, m_.op(id));
  } else if (simple) {
    size_t slot = m_[id].attrs.value;
    if (cache_.size() <= slot) cache_.resize(slot + 1);
    if (!cache_[slot].second) {
      std::string saved;
      saved.swap(out);
      for (const auto& [key, v] : set.list)
        if (key != Attr::backend_config) attr(key, v, m_.op(id));
      cache_[slot] = {std::move(out), true};
      out.swap(saved);
    }
    out += cache_[slot].first;
  } else {
    for (const auto& [key, v] : set.list) {
      if (key == Attr::backend_config || late(key)) continue;
      bool config = key == Attr::infeed_config || key == Attr::outfeed_config;
      if (o_.fingerprint && config) continue;
      if (bodies && (attr_kind(key) == AttrKind::Comp || attr_kind(key) == AttrKind::Comps)) {
        called_bodies(canonical_key(m_.op(id), key), v);
        continue;
      }
      attr(key, v, m_.op(id));
    }
    tail(id);
    return;
  }
  if (o_.metadata && m_[id].meta.valid()) metadata(m_[id].meta);
  if (o_.backend_config)
    if (const AttrValue* config = set.find(Attr::backend_config)) attr(Attr::backend_config, *config);
}

void Printer::sugared(InstId id) {
  const AttrSet& set = m_.attrs(id);
  for (const auto& [key, v] : set.list)
    if (attr_position(Opcode::AsyncStart, key) < attr_position(Opcode::AsyncStart, Attr::calls)) attr(key, v);
  InstId root = m_.comp(set.comp(Attr::calls)).root;
  bool bodies = o_.canonical && op_info(m_.op(root)).cls != OpClass::Async;
  for (const auto& [key, v] : m_.attrs(root).list) {
    if (key == Attr::backend_config || (key == Attr::frontend_attributes && set.has(key))) continue;
    if (bodies && (attr_kind(key) == AttrKind::Comp || attr_kind(key) == AttrKind::Comps))
      called_bodies(canonical_key(m_.op(root), key), v);
    else
      attr(key, v, m_.op(root));
  }
  if (o_.canonical) called_bodies(Attr::calls, *set.find(Attr::calls));
  for (const auto& [key, v] : set.list)
    if (attr_position(Opcode::AsyncStart, key) > attr_position(Opcode::AsyncStart, Attr::calls) &&
        key != Attr::backend_config && !late(key))
      attr(key, v);
  tail(id);
}

void Printer::tail(InstId id) {
  const AttrSet& set = m_.attrs(id);
  auto preds = m_.control_preds(id);
  if (o_.control && !preds.empty()) {
    out += ", control-predecessors={";
    for (size_t i = 0; i < preds.size(); ++i) {
      if (i) out += ", ";
      name(preds[i]);
    }
    out += '}';
  }
  for (const auto& [key, v] : set.list)
    if (late(key)) attr(key, v);
  if (o_.metadata && m_[id].meta.valid()) metadata(m_[id].meta);
  if (o_.backend_config)
    if (const AttrValue* config = set.find(Attr::backend_config)) attr(Attr::backend_config, *config);
}

void Printer::called_bodies(Attr key, const AttrValue& v) {
  // Of an instruction that is printed by itself they start at the margin.
  const int indent = o_.names_within && !within_ ? 0 : indent_ + 2;
  if (const CompId* one = std::get_if<CompId>(&v)) {
    out += ", ";
    out += attr_text(key);
    out += "=\n";
    computation(*one, indent, true);
    return;
  }
  out += ", ";
  out += attr_text(key);
  out += "={\n";
  const auto& list = std::get<std::vector<CompId>>(v);
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ",\n";
    computation(list[i], indent, true);
  }
  out += "\n}";
}

}  // namespace hlo
