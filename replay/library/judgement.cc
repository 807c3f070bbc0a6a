#include "hlo/judgement.h"

#include <cstring>

#include "ir/eval/compare.h"
#include "ir/eval/widen.h"
#include "replay/hunt/reduce.h"
#include "replay/library/running.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"

namespace hlo::api {
namespace {

Value value_of(hlo::Universe& u, const Array& a) {
  hlo::Shape shape;
  type_from_name(a.element_type(), &shape.type);
  Value v;
  v.shape = u.array(shape.type, Dims(a.dims().begin(), a.dims().end()));
  v.data = new_array(u, v.shape);
  if (a.size_bytes()) std::memcpy(v.data->data(), a.data(), a.size_bytes());
  return v;
}

std::string shape_words(const Array& a) { return fmt::format("{}[{}]", a.element_type(), fmt::join(a.dims(), ",")); }

OutputComparison told(const hlo::OutputComparison& o) {
  OutputComparison out;
  out.name = o.name, out.shape = o.shape, out.equal = o.equal, out.why = o.why;
  if (o.worst >= 0) {
    out.index.assign(o.index.begin(), o.index.end());
    out.value_a = o.value_a, out.value_b = o.value_b;
    out.absolute = o.absolute, out.relative = o.relative, out.ulps = o.ulps;
  }
  out.tolerance = o.tolerance, out.different = o.different, out.elements = o.elements;
  out.nan_a = o.nan_a, out.nan_b = o.nan_b, out.inf_a = o.inf_a, out.inf_b = o.inf_b;
  out.error_a = o.error_a, out.error_b = o.error_b;
  return out;
}

}  // namespace

Comparison compare(const std::vector<Array>& a, const std::vector<Array>& b, double tolerance,
                   const std::vector<Array>& reference) {
  return call([&] {
    if (a.size() != b.size()) fail(FailureKind::kUsage, "{} arrays here, {} there", a.size(), b.size());
    if (!reference.empty() && reference.size() != a.size())
      fail(FailureKind::kUsage, "{} arrays, {} of the reference", a.size(), reference.size());
    Comparison out;
    for (size_t k = 0; k < a.size(); ++k) {
      if (a[k].element_type() != b[k].element_type() || a[k].dims() != b[k].dims())
        fail(FailureKind::kUsage, "array {} is a {} here and a {} there", k, shape_words(a[k]), shape_words(b[k]));
      hlo::Universe u;
      const Value x = value_of(u, a[k]), y = value_of(u, b[k]);
      Value high;
      if (!reference.empty()) {
        high = value_of(u, reference[k]);
        if (high.shape != widened_shape(u, x.shape))
          fail(FailureKind::kUsage, "array {} of the reference is a {}: floats of a reference are f64, complex c128", k,
               shape_words(reference[k]));
      }
      out.outputs.push_back(
          told(compare_values(u, fmt::format("o{}", k), x, y, tolerance, reference.empty() ? nullptr : &high)));
      out.equal &= out.outputs.back().equal;
    }
    return out;
  });
}

Reduction reduce(const Module& module, const std::function<bool(const Module&)>& faulty, const ReduceOptions& options) {
  return call([&] {
    ModuleBody& body = *Access::body(module);
    const Working working(*body.universe);
    const Busy busy(body);
    if (!faulty) fail(FailureKind::kUsage, "reduce needs a callback");
    if (!body.m->entry().valid()) fail(FailureKind::kUsage, "the module has no entry yet");
    std::exception_ptr thrown;
    auto ask = [&](const hlo::Module& m) {
      if (thrown) return false;
      try {
        return faulty(shown(body.universe, m));
      } catch (...) {
        thrown = std::current_exception();
        return false;
      }
    };
    const bool wrong = ask(*body.m);
    if (thrown) throw Foreign{thrown};
    if (!wrong) fail(FailureKind::kUsage, "nothing is wrong with the module as it came, so there is nothing to reduce");
    hlo::Progress progress("reducing " + body.m->name());
    hlo::ReduceOptions how;
    how.keep_shapes = options.keep_shapes, how.keep_invalid = options.keep_invalid;
    how.most_candidates = options.most_candidates;
    how.stop = [&] { return thrown || interrupted(); };
    how.progress = [&](size_t candidates, size_t) { progress.at(candidates, 0); };
    hlo::Reduction r = hlo::reduce(*body.m, ask, how);
    if (thrown) throw Foreign{thrown};
    return Reduction{Access::adopt(body.universe, std::move(r.module)), r.candidates, r.accepted, r.finished};
  });
}

}  // namespace hlo::api
