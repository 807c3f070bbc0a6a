#include "ir/attribute.h"

#include <algorithm>
#include <cstring>

#include "ir/base/check.h"

namespace hlo {

const Dims& AttrSet::ints(Attr key) const {
  static const Dims kNone;
  const Dims* v = get<Dims>(key);
  return v ? *v : kNone;
}

void AttrSet::set(Attr key, AttrValue value) {
  int position = attr_position(op, key);
  HLO_CHECK(position >= 0, "{} takes no attribute {}", op_text(op), attr_text(key));
  auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& e) { return attr_position(op, e.first) >= position; });
  if (at != list.end() && at->first == key)
    at->second = std::move(value);
  else
    list.insert(at, {key, std::move(value)});
}

void AttrSet::erase(Attr key) {
  std::erase_if(list, [&](const auto& e) { return e.first == key; });
}

void AttrSet::finish() {
  called.clear();
  for (const auto& [key, value] : list) {
    if (const CompId* one = std::get_if<CompId>(&value)) called.push_back(*one);
    if (const auto* many = std::get_if<std::vector<CompId>>(&value))
      called.insert(called.end(), many->begin(), many->end());
  }
  // XLA keeps a while's body before its condition though it prints the condition first.
  if (op == Opcode::While && called.size() == 2) std::swap(called[0], called[1]);
}

namespace {
struct KeyWriter {
  std::string out;
  void raw(const void* data, size_t size) { out.append(static_cast<const char*>(data), size); }
  void num(int64_t v) { raw(&v, sizeof v); }
  void list(const Dims& d) {
    num(static_cast<int64_t>(d.size()));
    raw(d.data(), d.size() * sizeof(int64_t));
  }
  void operator()(bool v) { num(v); }
  void operator()(int64_t v) { num(v); }
  void operator()(double v) { raw(&v, sizeof v); }
  void operator()(StrId v) { num(v.value); }
  void operator()(const Dims& v) { list(v); }
  void operator()(CompId v) { num(v.value); }
  void operator()(const std::vector<CompId>& v) {
    num(static_cast<int64_t>(v.size()));
    for (CompId c : v) num(c.value);
  }
  void operator()(const Window& w) {
    num(static_cast<int64_t>(w.dims.size()));
    for (const WindowDim& d : w.dims)
      for (int64_t v : {d.size, d.stride, d.pad_low, d.pad_high, d.lhs_dilate, d.rhs_dilate, int64_t{d.reversal}})
        num(v);
  }
  void operator()(const Boxed<DimLabels>& boxed) {
    const DimLabels& d = *boxed;
    for (int64_t v : {int64_t{d.lhs_rank}, int64_t{d.rhs_rank}, int64_t{d.out_rank}, d.input_batch, d.input_feature,
                      d.kernel_input, d.kernel_output, d.output_batch, d.output_feature})
      num(v);
    list(d.input_spatial), list(d.kernel_spatial), list(d.output_spatial);
  }
  void operator()(const std::vector<PaddingDim>& v) {
    num(static_cast<int64_t>(v.size()));
    for (const PaddingDim& p : v) num(p.low), num(p.high), num(p.interior);
  }
  void operator()(const std::vector<SliceDim>& v) {
    num(static_cast<int64_t>(v.size()));
    for (const SliceDim& s : v) num(s.start), num(s.limit), num(s.stride);
  }
  void operator()(ShapeId v) { num(v.value); }
  void operator()(const std::vector<ShapeId>& v) {
    num(static_cast<int64_t>(v.size()));
    for (ShapeId s : v) num(s.value);
  }
};
}  // namespace

std::string attr_key(const AttrSet& set) {
  KeyWriter writer;
  writer.out.push_back(static_cast<char>(set.op));
  for (const auto& [key, value] : set.list) {
    writer.out.push_back(static_cast<char>(key));
    writer.out.push_back(static_cast<char>(value.index()));
    std::visit(writer, value);
  }
  return std::move(writer.out);
}

}  // namespace hlo
