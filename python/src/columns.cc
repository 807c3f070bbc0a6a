// Modules as columns, and arrays that go in and come out.
#include <nanobind/ndarray.h>

#include <unordered_map>

#include "bind.h"

namespace hlo::python {
namespace {

template <class T>
nb::object numpy_column(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// Of n texts, by number; `text(k)` gives a new or a shared one.
template <class F>
nb::object object_column(size_t n, F text) {
  nb::list all = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(n)));
  if (!all.is_valid()) throw nb::python_error();
  for (size_t k = 0; k < n; ++k) {
    nb::object one = text(k);
    if (PyList_SetItem(all.ptr(), static_cast<Py_ssize_t>(k), one.release().ptr())) throw nb::python_error();
  }
  return nb::module_::import_("numpy").attr("array")(all, "dtype"_a = "object");
}

std::vector<nb::str> words(const std::vector<std::string_view>& all) {
  std::vector<nb::str> out;
  for (std::string_view word : all) out.push_back(text_of(word));
  return out;
}

// Of each instruction how many others have it as an operand.
std::vector<uint32_t> user_counts(const Columns& c) {
  uint32_t most = 0;
  for (uint32_t id : c.id) most = std::max(most, id);
  std::vector<uint32_t> count(c.size() ? size_t{most} + 1 : 0), last(count.size(), UINT32_MAX);
  for (uint32_t k = 0; k < c.size(); ++k)
    for (uint64_t at = c.operand_offsets[k]; at < c.operand_offsets[k + 1]; ++at) {
      uint32_t operand = c.operands[at];
      if (operand < count.size() && last[operand] != k) ++count[operand], last[operand] = k;
    }
  std::vector<uint32_t> out;
  out.reserve(c.size());
  for (uint32_t id : c.id) out.push_back(count[id]);
  return out;
}

}  // namespace

nb::dict columns_of(const Module& m) {
  Columns c = m.columns();
  const size_t n = c.size();
  std::vector<uint32_t> operand_count(n);
  for (size_t k = 0; k < n; ++k)
    operand_count[k] = static_cast<uint32_t>(c.operand_offsets[k + 1] - c.operand_offsets[k]);
  const std::vector<nb::str> opcode = words(opcodes()), type = words(element_types());
  std::unordered_map<uint32_t, nb::str> computation;
  for (const Computation& comp : m.computations()) computation.emplace(comp.id(), text_of(comp.name()));
  std::string_view names = c.names;
  nb::dict out;
  out["name"] = object_column(
      n, [&](size_t k) { return text_of(names.substr(c.name_offsets[k], c.name_offsets[k + 1] - c.name_offsets[k])); });
  out["opcode"] = object_column(n, [&](size_t k) { return opcode.at(c.opcode[k]); });
  out["element_type"] = object_column(n, [&](size_t k) { return type.at(c.element_type[k]); });
  out["computation"] = object_column(n, [&](size_t k) { return computation.at(c.computation[k]); });
  out["user_count"] = numpy_column(user_counts(c));
  out["operand_count"] = numpy_column(std::move(operand_count));
  out["rank"] = numpy_column(std::move(c.rank));
  out["bytes"] = numpy_column(std::move(c.bytes));
  out["is_root"] = numpy_column(std::move(c.root)).attr("view")("bool");
  out["id"] = numpy_column(std::move(c.id));
  return out;
}

nb::dict edges_of(const Module& m) {
  Columns c = m.columns();
  std::vector<uint32_t> user(c.operands.size()), index(c.operands.size());
  for (size_t k = 0; k < c.size(); ++k)
    for (uint64_t at = c.operand_offsets[k]; at < c.operand_offsets[k + 1]; ++at)
      user[at] = c.id[k], index[at] = static_cast<uint32_t>(at - c.operand_offsets[k]);
  nb::dict out;
  out["user"] = numpy_column(std::move(user));
  out["index"] = numpy_column(std::move(index));
  out["operand"] = numpy_column(std::move(c.operands));
  return out;
}

nb::object numpy_of(const Array& array) {
  auto* kept = new Array(array);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array*>(p); });
  nb::object bytes = nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(
      static_cast<const uint8_t*>(kept->data()), {kept->size_bytes()}, owner));
  return nb::module_::import_("hlo_replay._arrays")
      .attr("array")(bytes, kept->element_type(), nb::tuple(nb::cast(kept->dims())));
}

Array array_of(nb::handle value, const std::optional<Shape>& shape, const std::string& what) {
  nb::object arrays = nb::module_::import_("hlo_replay._arrays");
  std::string type = shape ? shape->element_type : nb::cast<std::string>(arrays.attr("element_type")(value, what));
  nb::object dims = shape ? nb::object(nb::tuple(nb::cast(shape->dims))) : nb::object(value.attr("shape"));
  nb::object bytes = arrays.attr("storage")(value, type, dims, what);
  auto view = nb::cast<nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(bytes);
  return Array(type, nb::cast<std::vector<int64_t>>(dims), view.data(), view.size());
}

}  // namespace hlo::python
