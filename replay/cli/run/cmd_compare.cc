// compare: are two files of results the same?
#include <algorithm>
#include <cmath>
#include <map>

#include "replay/cli/command.h"
#include "replay/cli/comparison_words.h"
#include "replay/judge/arguments/npz.h"

namespace hlo {

Json to_json(const OutputComparison& o) {
  Json j{{"name", o.name},         {"shape", o.shape},         {"equal", o.equal},        {"why", o.why},
         {"elements", o.elements}, {"different", o.different}, {"tolerance", o.tolerance}};
  j["index"] = j["a"] = j["b"] = j["absolute"] = j["relative"] = j["ulps"] = Json();  // no element differs
  if (o.worst >= 0) {
    j["index"] = o.index, j["a"] = o.value_a, j["b"] = o.value_b;
    if (std::isfinite(o.relative)) j["absolute"] = o.absolute, j["relative"] = o.relative, j["ulps"] = o.ulps;
  }
  j["nan"] = {o.nan_a, o.nan_b}, j["inf"] = {o.inf_a, o.inf_b};
  j["error_against_reference"] = o.error_a < 0 ? Json() : Json{finite_or_null(o.error_a), finite_or_null(o.error_b)};
  return j;
}

std::string in_words(const OutputComparison& o) {
  std::string line = fmt::format("{} {}: {}", o.name, o.shape, o.equal ? "equal" : "DIFFERENT");
  if (o.equal && !o.different) return line + ", every element the same";
  if (!o.why.empty()) line += ", " + o.why;
  if (o.worst >= 0)
    line +=
        fmt::format("; worst at [{}]: {} and {}, {:.3g} ulps, {:.3g} times the largest magnitude, {} of {} elements",
                    fmt::join(o.index, ","), o.value_a, o.value_b, o.ulps, o.relative, o.different, o.elements);
  if (o.error_a >= 0) line += fmt::format("; against the reference {:.3g} and {:.3g}", o.error_a, o.error_b);
  return line;
}

std::string verdict(const Comparison& c) {
  const OutputComparison* first = c.first_difference();
  return first ? fmt::format("different: first in {}", in_words(*first)) : std::string("equal");
}

namespace {

// Of the entry's results, o0, o1 …
std::map<std::string, ShapeId> output_shapes(const Module& m, Universe& u) {
  std::map<std::string, ShapeId> shapes;
  size_t leaf = 0;
  auto walk = [&](auto&& self, ShapeId s) -> void {
    for (ShapeId e : m.u()[s].elements) self(self, e);
    if (m.u()[s].is_tuple()) return;
    shapes[fmt::format("o{}", leaf++)] = m.u()[s].is_array() ? u.array(m.u()[s].type, m.u()[s].dims) : u.token();
  };
  walk(walk, m.shape_id(m.comp(m.entry()).root));
  return shapes;
}

std::map<std::string, Value> read_arrays(Universe& u, const std::string& path,
                                         const std::map<std::string, ShapeId>& shapes) {
  std::map<std::string, Value> out;
  std::vector<NamedArray> arrays = read_npz(path);
  bool outputs = std::any_of(arrays.begin(), arrays.end(), [](const NamedArray& n) { return n.name[0] == 'o'; });
  for (NamedArray& array : arrays) {
    if (outputs && array.name[0] != 'o') continue;  // inputs stand beside
    ShapeId shape;
    if (auto known = shapes.find(array.name); known != shapes.end())
      shape = known->second;
    else
      shape = u.array(array_type(array, path), array.dims);
    Value v = from_array(u, array, shape);
    out.emplace(array.name, std::move(v));
  }
  return out;
}

}  // namespace

int cmd_compare(const CompareArgs& a) {
  Universe u;
  // Types: the module's, the note in either file, else those of numpy.
  std::map<std::string, ShapeId> shapes;
  if (!a.module.empty()) shapes = output_shapes(*load(a.module), u);
  auto x = read_arrays(u, a.a, shapes), y = read_arrays(u, a.b, shapes);
  std::map<std::string, Value> reference;
  if (!a.reference.empty()) reference = read_arrays(u, a.reference, {});  // its floats are f64
  // A note in one of the files serves both: bits alone look like integers.
  for (auto* side : {&x, &y})
    for (auto& [name, v] : *side) {
      auto& others = side == &x ? y : x;
      auto other = others.find(name);
      if (other == others.end()) continue;
      ElementType own = u[v.shape].type, theirs = u[other->second.shape].type;
      if (is_unsigned_int(own) && is_float(theirs) && storage_bytes(own) == storage_bytes(theirs))
        v.shape = other->second.shape;
    }
  Comparison c;
  for (const auto& [name, v] : x) {
    auto other = y.find(name);
    auto ref = reference.find(name);
    if (other == y.end()) {
      OutputComparison missing;
      missing.name = name, missing.equal = false, missing.why = fmt::format("{} has no such array", a.b);
      c.outputs.push_back(std::move(missing));
      continue;
    }
    c.outputs.push_back(
        compare_values(u, name, v, other->second, a.tolerance, ref == reference.end() ? nullptr : &ref->second));
  }
  for (const auto& [name, v] : y)
    if (!x.contains(name)) {
      OutputComparison missing;
      missing.name = name, missing.equal = false, missing.why = fmt::format("{} has no such array", a.a);
      c.outputs.push_back(std::move(missing));
    }
  // o10 stands behind o9.
  std::stable_sort(c.outputs.begin(), c.outputs.end(), [](const OutputComparison& p, const OutputComparison& q) {
    return p.name.size() != q.name.size() ? p.name.size() < q.name.size() : p.name < q.name;
  });
  if (c.outputs.empty()) fail(FailureKind::kUsage, "{} and {} hold no arrays", a.a, a.b);
  c.equal = !c.first_difference();
  if (a.json) {
    Json out{{"equal", c.equal}, {"verdict", verdict(c)}, {"outputs", Json::array()}};
    for (const OutputComparison& o : c.outputs) out["outputs"].push_back(to_json(o));
    print_json(out);
  } else {
    for (const OutputComparison& o : c.outputs) fmt::print("{}\n", in_words(o));
    fmt::print("{}\n", verdict(c));
  }
  return c.equal ? kYes : kNo;
}

}  // namespace hlo
