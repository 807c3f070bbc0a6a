#include "replay/judge/contract/check_runs.h"

#include <algorithm>
#include <cmath>

#include "ir/eval/compare.h"
#include "ir/types/literal.h"
#include "replay/judge/contract/noise.h"
#include "replay/os/interrupt.h"

namespace hlo {
namespace {

double least_normal(ElementType t) {
  if (t == ElementType::F64 || t == ElementType::C128) return std::ldexp(1.0, -1022);
  const FloatFormat* f = float_format(t);
  return f ? std::ldexp(1.0, 1 - f->bias) : std::ldexp(1.0, -126);
}

double rounded_to(ElementType t, double x) {
  char at[8];
  store_double(t, at, x);
  return load_double(t, at);
}

bool narrower(ElementType to, ElementType from) {
  return is_float(to) && is_float(from) && type_bits(to) < type_bits(from);
}

// Each float of a value, of complex ones both parts.
template <class F>
void each_number(const Universe& u, Value& v, const F& f) {
  const Shape& s = u[v.shape];
  if (!s.is_array() || !v.data || !(is_float(s.type) || is_complex(s.type))) return;
  ElementType t = component_type(s.type);
  int64_t n = s.elements_count() * (is_complex(s.type) ? 2 : 1);
  int width = storage_bytes(t);
  char* bytes = nullptr;
  for (int64_t k = 0; k < n; ++k) {
    double x = load_double(t, v.bytes() + k * width), y = f(x);
    if (x == y || std::isnan(x)) continue;
    if (!bytes) bytes = v.mutable_bytes();
    store_double(t, bytes + k * width, y);
  }
}

}  // namespace

Leaves numbers_of(const Universe& u, const Value& v) {
  std::vector<Value> leaves;
  flatten(u, v, &leaves);
  Leaves out;
  for (const Value& leaf : leaves) {
    const Shape& s = u[leaf.shape];
    Numbers n;
    if (s.is_array()) {
      n.floats = is_float(s.type) || is_complex(s.type);
      n.parts = is_complex(s.type) ? 2 : 1;
      n.type = component_type(s.type);
      int64_t count = s.elements_count() * n.parts;
      int width = storage_bytes(n.type);
      for (int64_t k = 0; k < count; ++k)
        if (n.floats)
          n.real.push_back(load_double(n.type, leaf.bytes() + k * width));
        else
          n.whole.push_back(load_int(n.type, leaf.bytes() + k * width));
    }
    out.push_back(std::move(n));
  }
  return out;
}

Leaves CheckRuns::run(std::function<void(InstId, std::span<const Value>, Value&)> change, bool high) const {
  if (interrupted()) fail(FailureKind::kUsage, "interrupted");
  EvalOptions options = options_;
  options.change = std::move(change);
  return numbers_of(m_.u(), session_.run(m_, *find_executor("evaluator"), options, 1, high));
}

Leaves CheckRuns::as_written(std::vector<ContractSite>* sites) {
  ContractWatch watch(m_);
  Leaves out = run([&](InstId i, std::span<const Value> ops, Value& v) { watch.see(i, ops, v); }, false);
  *sites = watch.sites();
  return out;
}

Leaves CheckRuns::exact() { return run(nullptr, true); }

Leaves CheckRuns::noisy(uint32_t seed) {
  NoiseOptions o;
  o.seed = seed;
  return run(rounding_noise(m_, o), false);
}

Leaves CheckRuns::open(Contract c, int which, InstId only) {
  return run(
      [&](InstId i, std::span<const Value> ops, Value& v) {
        if (only.valid() && i != only) return;
        if (auto other = contract_value(m_, i, ops, v, c, which, nullptr)) v = std::move(*other);
      },
      false);
}

Leaves CheckRuns::bounded(Contract c, int which, InstId only, std::map<InstId, int64_t>* sites) {
  if (c == Contract::kAccuracy) return loud(static_cast<uint32_t>(which + 1), only, sites);
  if (c == Contract::kDenormal) return flushed(only, sites);
  Loose loose;
  if (c == Contract::kRange)
    loose.over = loose.under = true;
  else
    (which == 0 ? loose.converts : loose.wide) = true;
  return loosened(loose, only, InstId(), sites);
}

int CheckRuns::together_choices(const std::vector<Contract>& kinds) { return kinds.size() == 3 ? 4 : 2; }

//   exp(100) * exp(-200) in f32, flushed at last or each time      →      0, and not inf * 0
Leaves CheckRuns::together(const std::vector<Contract>& kinds, int which, InstId without,
                           std::map<InstId, int64_t>* sites) {
  auto has = [&](Contract c) { return std::find(kinds.begin(), kinds.end(), c) != kinds.end(); };
  const bool range = has(Contract::kRange), excess = has(Contract::kExcess), denormal = has(Contract::kDenormal);
  // Two ways to leave rounding out, and two ways to flush: each time, or only what comes out at last.
  const bool converts = which % 2 == 0, at_last = denormal && (excess && range ? which / 2 : which) % 2 == 1;
  Loose loose;
  loose.over = range, loose.under = range && (!denormal || at_last);
  loose.converts = excess && (converts || !range), loose.wide = excess && (!converts || !range);
  loose.flush = denormal && !at_last;
  Leaves out = loosened(loose, InstId(), without, sites);
  if (!at_last) return out;
  for (Numbers& n : out)
    for (double& x : n.real)
      if (std::fabs(x) < least_normal(n.type)) x = std::copysign(0.0, x);
  return out;
}

// In f64, rounded to the types of the module but where that is left out.
Leaves CheckRuns::loosened(const Loose& loose, InstId only, InstId without, std::map<InstId, int64_t>* sites) const {
  return run(
      [&](InstId i, std::span<const Value>, Value& v) {
        if (i.value < m_.inst_slots() && m_.alive(i))
          narrow(i, v, loose, (!only.valid() || i == only) && i != without, sites);
      },
      true);
}

Leaves CheckRuns::shaken(const std::function<bool(InstId)>& at, uint32_t seed) {
  NoiseOptions o;
  o.seed = seed;
  auto noise = rounding_noise(m_, o);
  return run(
      [&](InstId i, std::span<const Value> ops, Value& v) {
        if (i.value < m_.inst_slots() && m_.alive(i) && at(i)) noise(i, ops, v);
      },
      false);
}

// Functions without an accuracy, moved by sixteen times what rounding_noise moves them.
Leaves CheckRuns::loud(uint32_t seed, InstId only, std::map<InstId, int64_t>* sites) const {
  NoiseOptions quiet, much;
  quiet.seed = much.seed = seed;
  much.transcendental *= 16;
  auto little = rounding_noise(m_, quiet), more = rounding_noise(m_, much);
  return run(
      [&](InstId i, std::span<const Value> ops, Value& v) {
        bool here = op_info(m_.op(i)).transcendental && (!only.valid() || i == only);
        if (here) (*sites)[i] += m_.shape(i).elements_count();
        (here ? more : little)(i, ops, v);
      },
      false);
}

Leaves CheckRuns::flushed(InstId only, std::map<InstId, int64_t>* sites) const {
  return run(
      [&](InstId i, std::span<const Value>, Value& v) {
        if (only.valid() && i != only) return;
        double least = least_normal(component_type(m_.shape(i).is_array() ? m_.shape(i).type : ElementType::F32));
        int64_t n = 0;
        each_number(m_.u(), v, [&](double x) {
          if (x == 0 || !(std::fabs(x) < least)) return x;
          ++n;
          return std::copysign(0.0, x);
        });
        if (n) (*sites)[i] += n;
      },
      false);
}

void CheckRuns::narrow(InstId i, Value& v, const Loose& loose, bool here, std::map<InstId, int64_t>* sites) const {
  const Universe& u = m_.u();
  if (!rounds(m_, i)) return;  // what it holds is rounded, or is not to be
  int64_t kept = 0;
  auto part = [&](auto&& self, Value& value, ShapeId own) -> void {
    const Shape& s = u[own];
    for (size_t k = 0; k < value.elements.size(); ++k) self(self, value.elements[k], s.elements[k]);
    if (!s.is_array() || value.shape == own || u[value.shape].type == s.type) return;
    ElementType t = component_type(s.type);
    bool convert = m_.op(i) == Opcode::Convert && narrower(t, m_.shape(m_.operand(i, 0)).type);
    double least = least_normal(t);
    each_number(u, value, [&](double x) {
      if (std::isnan(x)) return x;
      double r = rounded_to(t, x), other = r;
      const bool over = std::isfinite(x) && !std::isfinite(r), under = x != 0 && std::fabs(r) < least;
      if ((over && loose.over) || (under && loose.under))
        other = x;
      else if (under && loose.flush)
        other = std::copysign(0.0, x);
      else if (convert && loose.converts)
        other = x;
      else if (loose.wide && is_narrow_float(t))
        other = rounded_to(ElementType::F32, x);
      if (!here || other == r) return r;
      ++kept;
      return other;
    });
  };
  part(part, v, m_.shape_id(i));
  if (kept) (*sites)[i] += kept;
}

Leaves CheckRuns::by_host() {
  const ExecutorInfo* host = find_executor("host");
  if (!host || !host->unavailable().empty()) fail(FailureKind::kUnsupported, "no executor host");
  return numbers_of(m_.u(), session_.run(m_, *host, options_, 1, false));
}

}  // namespace hlo
