#include "replay/judge/values/numbering.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ir/base/hash.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/widen.h"
#include "ir/types/literal.h"
#include "replay/judge/arguments/npz.h"

namespace hlo {
namespace {

// Sums in another order, in f64.
constexpr double kOwnRounding = 1e-13;
// Of a constant's last place: what expressions of a few operations make of the error of their constants.
constexpr double kGrains = 16;
// The same for a constant that is folded from such an expression.
constexpr double kFoldedGrains = 2;
// Of what is let go at once, more than has to be.
constexpr int64_t kMostSlack = int64_t{16} << 20;
// What was used last, an operation's operands and its value, stays.
constexpr uint64_t kFresh = 4;

uint64_t value_key(const Sketch& s) { return hash_combine(s.kind, s.exact); }

bool same_bits(const Value& a, const Value& b) {
  if (a.elements.size() != b.elements.size() || a.sizes != b.sizes) return false;
  for (size_t k = 0; k < a.elements.size(); ++k)
    if (!same_bits(a.elements[k], b.elements[k])) return false;
  if (!a.data || !b.data) return a.data == b.data;
  return a.data == b.data || *a.data == *b.data;
}

int64_t bytes_of(const std::vector<Value>& each) {
  int64_t n = 0;
  for (const Value& v : each) n += v.data ? static_cast<int64_t>(v.data->size()) : 0;
  return n;
}

// Half a unit of the last place of the constant's type, as a share of the value; 0 where all its numbers are round
// ones.
double grain_of(const Module& m, InstId i) {
  const Shape& s = m.shape(i);
  const Literal& lit = m.literal(i);
  if (!is_float(s.type) || lit.elided || type_bits(s.type) > 32) return 0;
  const FloatFormat* f = float_format(s.type);
  int digits = s.type == ElementType::F32 ? 23 : f ? f->mantissa_bits : 0;
  int width = storage_bytes(s.type);
  for (int64_t k = 0, n = std::min<int64_t>(s.elements_count(), 1 << 16); k < n; ++k) {
    double v = load_double(s.type, lit.bytes.data() + k * width);
    if (!std::isfinite(v) || v == 0) continue;
    int exponent = 0;
    double scaled = std::ldexp(std::frexp(v, &exponent), digits < 20 ? digits - 2 : digits - 7);
    if (scaled != std::nearbyint(scaled)) return std::ldexp(1.0, -digits - 1);
  }
  return 0;
}

bool cheap_to_compute(const Module& m, InstId i) {
  switch (op_info(m.op(i)).cls) {
    case OpClass::Dot:
    case OpClass::Conv:
    case OpClass::Reduce:
    case OpClass::Window:
    case OpClass::Sort:
    case OpClass::Custom:
    case OpClass::Scatter:
    case OpClass::Collective:
      return false;
    default:
      return m.op(i) != Opcode::While;
  }
}

ShapeId shape_of(const Module& m, InstId i, CallPart part) {
  return part == CallPart::kWhole ? m.shape_id(i) : m.shape(i).elements[0];
}

ShapeId operand_shape(const Module& m, InstId i, CallPart part, size_t k) {
  if (part != CallPart::kEpilogue) return m.shape_id(m.operand(i, k));
  return k == 0 ? shape_of(m, i, part) : m.shape_id(m.operand(i, k + 1));
}

Value evaluated(Evaluator& e, InstId i, CallPart part, std::vector<Value> operands) {
  if (part == CallPart::kConvolution) return e.run_convolution(i, std::move(operands));
  if (part == CallPart::kEpilogue) return e.run_epilogue(i, std::move(operands));
  return e.run_instruction(i, std::move(operands));
}

}  // namespace

InstId StageModule::of_stage(InstId i) const {
  if (i.value < stage_slots || wide->op(i) != Opcode::Convert) return i;
  const InstId from = wide->operand(i, 0);
  const bool behind = from.value < stage_slots && m().shape(i).type != m().shape(from).type &&
                      widened_shape(wide->u(), wide->shape_id(i)) == wide->shape_id(i);
  return behind || wide->users(i).empty() ? from : wide->users(i)[0];
}

StageModule::StageModule(const Module& m, const EvalOptions& o, int64_t count, StageTypes types)
    : wide(types == StageTypes::kWide ? widened_module(m) : m.clone()),
      options(o),
      devices(count),
      grid(m.config().replica_count, m.config().num_partitions),
      canonical(*wide) {
  options.trace = nullptr, options.timed = nullptr;
  for (int64_t d = 0; d < devices; ++d)
    evaluators.push_back(std::make_unique<Evaluator>(*wide, options, devices > 1 ? &grid : nullptr, d));
  talks.assign(wide->comp_slots(), -1);
  stage_slots = m.inst_slots();
  if (types == StageTypes::kOwn) return;
  coarse.assign(m.inst_slots(), false);
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!i.valid()) continue;
      std::vector<ShapeId> leaves;
      leaf_shapes(m.u(), m.shape_id(i), leaves);
      for (ShapeId leaf : leaves) {
        ElementType t = m.u()[leaf].type;
        coarse[i.value] =
            coarse[i.value] || ((is_float(t) || is_complex(t)) && type_bits(t) <= (is_complex(t) ? 64 : 32));
      }
      if (m.op(i) == Opcode::Constant) literals[i] = m.literal_id(i);
      if (m.op(i) == Opcode::Constant)
        if (double g = grain_of(m, i); g > 0) grains[i] = g;
    }
}

bool StageModule::asks_who(InstId i) {
  check_stack("calls of computations are nested");
  Opcode op = wide->op(i);
  OpClass cls = op_info(op).cls;
  if (op == Opcode::PartitionId || op == Opcode::ReplicaId || cls == OpClass::Collective || cls == OpClass::Io)
    return true;
  for (CompId c : wide->called(i)) {
    if (talks[c.value] < 0) {
      talks[c.value] = 0;
      for (InstId inner : wide->comp(c).order)
        if (inner.valid() && asks_who(inner)) talks[c.value] = 1;
    }
    if (talks[c.value]) return true;
  }
  return false;
}

int64_t Numbering::width(const Numbering& n, const Term& t) {
  if (t.is_array()) return n[t.number].known ? static_cast<int64_t>(std::max<size_t>(n[t.number].each.size(), 1)) : 1;
  int64_t w = 1;
  if (t.elements)
    for (const Term& e : *t.elements) w = std::max(w, width(n, e));
  return w;
}

uint64_t Numbering::hash(const Numbering& n, const Term& t) {
  if (t.is_array()) return Canonical::operand_of(n.u_, t.number, t.shape);
  uint64_t h = 0x51ED;
  if (t.elements)
    for (const Term& e : *t.elements) h = hash_combine(h, hash(n, e));
  return h;
}

Term Numbering::find(uint64_t key, bool* found) {
  rounded_ = false;
  *found = true;
  if (auto at = keys_.find(key); at != keys_.end()) return at->second;
  if (take_rounded)
    if (auto at = rounded_keys_.find(key); at != rounded_keys_.end()) {
      ++taken, rounded_ = true;
      return at->second;
    }
  *found = false;
  return Term();
}

const std::string* Numbering::why_unknown(const Term& t) const {
  if (t.is_array()) return numbers_[t.number].known ? nullptr : &numbers_[t.number].why;
  if (t.elements)
    for (const Term& e : *t.elements)
      if (const std::string* why = why_unknown(e)) return why;
  return nullptr;
}

NumberId Numbering::add(Number n) {
  NumberId id = static_cast<NumberId>(numbers_.size());
  n.stage = stage, n.used = ++clock_;
  n.bytes = bytes_of(n.each);
  hold(n, 1);
  if (n.known && !n.put_off) by_value_[value_key(n.sketch)].emplace(n.sketch.first, id);
  if (n.known && !n.put_off && bit_by_bit_) near_.add(u_, n.each, id);
  numbers_.push_back(std::move(n));
  make_room();
  return id;
}

void Numbering::hold(const Number& n, int64_t times) {
  kept_ += times * n.bytes;
  most_cheap_ = std::max(most_cheap_, std::min(kMostCheapArrays * n.bytes, most_arrays_));
  if (n.cheap && !n.pinned) cheap_ += times * n.bytes;
}

// How much longer than it was used last a value stays, in uses of values: what takes longer to have again stays longer.
int Numbering::worth(const Number& n) { return !n.cheap ? 400 : n.transcends ? 100 : n.repeats ? -20 : 0; }

// A little more goes than has to, so that the next few need not ask.
void Numbering::make_room() {
  if (kept_ <= most_ && cheap_ <= most_cheap_) return;
  const int64_t enough = kept_ > most_ ? most_ - std::min(most_ / 4, kMostSlack) : INT64_MAX;
  const int64_t enough_cheap = most_cheap_ - std::min(most_cheap_ / 4, kMostSlack);
  std::vector<std::pair<int64_t, NumberId>> list;
  for (NumberId k = 0; k < numbers_.size(); ++k) {
    const Number& n = numbers_[k];
    if (n.pinned || n.bytes < 4096 || n.each.empty() || n.used + kFresh > clock_) continue;
    list.emplace_back(static_cast<int64_t>(n.used) + worth(n), k);
  }
  std::sort(list.begin(), list.end());
  for (const auto& [until, k] : list) {
    Number& n = numbers_[k];
    if (kept_ <= enough && (!n.cheap || cheap_ <= enough_cheap)) continue;
    hold(n, -1);
    for (Value& v : n.each) v.data = nullptr;  // how many there were stays known
    n.bytes = 0;
  }
}

std::vector<Value> Numbering::values(NumberId k) {
  check_stack("values that are computed again");
  numbers_[k].used = ++clock_;
  if (!numbers_[k].known) fail(FailureKind::kUnsupported, "{}", numbers_[k].why);
  std::vector<Value> now = numbers_[k].each;
  const Shape& s = u_[now[0].shape];
  if (!s.is_array() || now[0].data) return now;
  std::shared_ptr<StageModule> module = numbers_[k].module;
  std::vector<Term> operands = numbers_[k].operands;
  ++count.again;
  std::vector<Value> each = run(*module, numbers_[k].inst, numbers_[k].part, operands);
  for (Value& v : each)
    for (uint32_t step : numbers_[k].path) {
      Value part = v.elements[step];
      v = std::move(part);
    }
  Number& n = numbers_[k];
  each.resize(std::min(each.size(), n.each.size()));
  n.each = each, n.bytes = bytes_of(each), n.used = ++clock_;
  hold(n, 1);
  make_room();
  return each;
}

Value Numbering::value(const Term& t, ShapeId shape, int64_t device) {
  Value out;
  out.shape = shape;
  if (t.is_array()) {
    std::vector<Value> each = values(t.number);
    out = each[each.size() == 1 ? 0 : static_cast<size_t>(device)];
    out.shape = shape;
    return out;
  }
  if (t.elements)
    for (size_t k = 0; k < t.elements->size(); ++k)
      out.elements.push_back(value((*t.elements)[k], u_[shape].elements[k], device));
  return out;
}

std::vector<Value> Numbering::run_together(StageModule& s, InstId i, const std::vector<Term>& operands) {
  auto count_of = static_cast<size_t>(s.devices);
  std::vector<std::vector<Value>> given(count_of);
  for (size_t d = 0; d < count_of; ++d)
    for (size_t k = 0; k < operands.size(); ++k)
      given[d].push_back(value(operands[k], s.m().shape_id(s.m().operand(i, k)), static_cast<int64_t>(d)));
  DeviceGrid grid(s.m().config().replica_count, s.m().config().num_partitions);
  std::vector<Value> out(count_of);
  grid.run([&](int64_t d) {
    Evaluator one(s.m(), s.options, &grid, d);
    out[static_cast<size_t>(d)] = one.run_instruction(i, std::move(given[static_cast<size_t>(d)]));
  });
  return out;
}

std::vector<Value> Numbering::run(StageModule& s, InstId i, CallPart part, const std::vector<Term>& operands) {
  if (s.options.stop && s.options.stop()) fail(FailureKind::kUnsupported, "interrupted");
  auto begin = std::chrono::steady_clock::now();
  ++count.operations;
  bool asks = s.devices > 1 && s.asks_who(i);
  std::vector<Value> out;
  if (asks) {
    out = run_together(s, i, operands);
  } else {
    int64_t devices = 1;
    for (const Term& t : operands) devices = std::max(devices, width(*this, t));
    for (int64_t d = 0; d < devices; ++d) {
      std::vector<Value> given;
      for (size_t k = 0; k < operands.size(); ++k)
        given.push_back(value(operands[k], operand_shape(s.m(), i, part, k), d));
      out.push_back(evaluated(*s.evaluators[static_cast<size_t>(d)], i, part, std::move(given)));
    }
  }
  if (out.size() > 1 && std::all_of(out.begin() + 1, out.end(), [&](const Value& v) { return same_bits(v, out[0]); }))
    out.resize(1);
  count.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

NumberId Numbering::alike(const Sketch& s) const {
  auto group = by_value_.find(value_key(s));
  if (group == by_value_.end()) return kNoNumber;
  double room = kOwnRounding * s.magnitudes * 2;
  for (auto at = group->second.lower_bound(s.first - room); at != group->second.end() && at->first <= s.first + room;
       ++at)
    if (numbers_[at->second].sketch.same(s, kOwnRounding)) return at->second;
  return kNoNumber;
}

NumberId Numbering::alike(const Sketch& s, std::span<const Value> each, double allowed) {
  auto group = by_value_.find(value_key(s));
  if (group == by_value_.end() || !s.floats) return kNoNumber;
  double room = 2 * allowed * s.magnitudes;
  std::vector<std::pair<double, NumberId>> near;
  for (auto at = group->second.lower_bound(s.first - room); at != group->second.end() && at->first <= s.first + room;
       ++at)
    if (numbers_[at->second].sketch.same(s, 2 * allowed))
      near.push_back(
          {std::fabs(at->first - s.first) + std::fabs(numbers_[at->second].sketch.second - s.second), at->second});
  std::sort(near.begin(), near.end());
  if (near.size() > 4) near.resize(4);
  for (const auto& [distance, k] : near) {
    std::vector<Value> other;
    try {
      other = values(k);
    } catch (const Failure&) {
      continue;
    }
    if (deviation(u_, each, other) > allowed) continue;
    if (s.cut == 0 || deviation_beside_mask(u_, each, other, s.cut) <= allowed) return k;
  }
  return kNoNumber;
}

NumberId Numbering::but_for_rounding(std::span<const Value> each, Rounding how) {
  for (NumberId k : near_.like(u_, each, how)) {
    std::vector<Value> other;
    try {
      other = values(k);
    } catch (const Failure&) {
      continue;
    }
    if (same_but_for_rounding(u_, each, other, how)) return k;
  }
  return kNoNumber;
}

NumberId Numbering::same_sums(double sum, double squares, double magnitudes, int64_t elements,
                              uint32_t of_stage) const {
  for (NumberId k = 0; k < numbers_.size(); ++k) {
    const Number& n = numbers_[k];
    if (!n.known || n.stage > of_stage || !n.sketch.floats || n.sketch.elements != elements) continue;
    double room = 1e-9 * std::max(magnitudes, n.sketch.magnitudes);
    if (std::fabs(n.sketch.sum - sum) <= room && std::fabs(n.sketch.magnitudes - magnitudes) <= room &&
        std::fabs(n.sketch.squares - squares) <= 1e-9 * std::max(squares, n.sketch.squares))
      return k;
  }
  return kNoNumber;
}

Term Numbering::place(std::vector<Value> each) {
  Number n;
  n.pinned = true;
  return wrap(std::move(each), n);
}

Term Numbering::place(std::vector<Value> each, std::shared_ptr<StageModule> s, InstId i, std::vector<Term> operands) {
  Number n;
  n.module = std::move(s), n.inst = i, n.operands = std::move(operands);
  return wrap(std::move(each), n);
}

Term Numbering::wrap(std::vector<Value> each, const Number& recipe) {
  Term out;
  out.shape = each[0].shape;
  const Shape& s = u_[out.shape];
  if (s.is_tuple()) {
    auto list = std::make_shared<std::vector<Term>>();
    for (size_t k = 0; k < s.elements.size(); ++k) {
      std::vector<Value> part;
      for (const Value& v : each) part.push_back(v.elements.at(k));
      Number inner = recipe;
      inner.path.push_back(static_cast<uint32_t>(k));
      list->push_back(wrap(std::move(part), inner));
    }
    out.elements = list;
    return out;
  }
  if (!s.is_array()) return out;
  if (each.size() > 1 &&
      std::all_of(each.begin() + 1, each.end(), [&](const Value& v) { return same_bits(v, each[0]); }))
    each.resize(1);
  Sketch sketch = bit_by_bit_ ? bits_of(u_, each) : sketch_of(u_, each);
  out.number = alike(sketch);
  if (out.number == kNoNumber && !bit_by_bit_)
    out.number = alike(sketch, each, std::max(recipe.noise, recipe.grain * (recipe.folded ? kFoldedGrains : kGrains)));
  if (out.number == kNoNumber && take_rounded) {
    out.number = but_for_rounding(each, recipe.rounding);
    if (out.number != kNoNumber) {
      rounded_ = true;
      return out;
    }
  }
  if (out.number != kNoNumber) {
    Number& old = numbers_[out.number];
    if (!old.each.empty() && !old.each[0].data) {  // to have it again costs nothing now
      old.each = each, old.bytes = bytes_of(each);
      hold(old, 1);
    }
    old.used = ++clock_;
    return out;
  }
  Number n = recipe;
  n.sketch = sketch;
  n.each = std::move(each);
  out.number = add(std::move(n));
  return out;
}

Term Numbering::put_off(const std::shared_ptr<StageModule>& s, InstId i, const std::vector<Term>& operands,
                        uint64_t key) {
  bool found = false;
  Term out = find(key, &found);
  out.shape = s->m().shape_id(i);
  if (found) return out;
  Number n;
  n.module = s, n.inst = i, n.operands = operands, n.put_off = true;
  n.cheap = cheap_to_compute(s->m(), i), n.repeats = s->m().op(i) == Opcode::Broadcast;
  int64_t devices = 1;
  for (const Term& t : operands) devices = std::max(devices, width(*this, t));
  n.each.resize(static_cast<size_t>(devices));
  for (Value& v : n.each) v.shape = out.shape;
  out.number = add(std::move(n));
  set(key, out);
  return out;
}

Term Numbering::settled(Term t) {
  if (t.elements) {
    auto list = std::make_shared<std::vector<Term>>();
    for (const Term& e : *t.elements) list->push_back(settled(e));
    t.elements = list;
  }
  if (!t.is_array() || !numbers_[t.number].put_off) return t;
  if (numbers_[t.number].settled == kNoNumber) {
    const NumberId own = t.number;
    std::vector<Value> each;
    try {
      each = values(own);
    } catch (const Failure& e) {
      return unknown(t.shape, hash_combine(0x0FF, own), e.what());
    }
    const Sketch sketch = bits_of(u_, each);
    const NumberId old = alike(sketch);
    Number& n = numbers_[own];
    n.settled = old == kNoNumber ? own : old;
    if (old == kNoNumber) {
      n.sketch = sketch;
      by_value_[value_key(sketch)].emplace(sketch.first, own);
      near_.add(u_, each, own);
    }
  }
  t.number = numbers_[t.number].settled;
  return t;
}

Term Numbering::unknown(ShapeId shape, uint64_t key, const std::string& why) {
  Term out;
  out.shape = shape;
  const Shape& s = u_[shape];
  if (s.is_tuple()) {
    auto list = std::make_shared<std::vector<Term>>();
    for (size_t k = 0; k < s.elements.size(); ++k)
      list->push_back(unknown(s.elements[k], hash_combine(key, k + 1), why));
    out.elements = list;
    return out;
  }
  if (!s.is_array()) return out;
  auto at = unknown_.find(key);
  if (at == unknown_.end()) {
    Number n;
    n.known = false, n.why = why, n.pinned = true;
    at = unknown_.emplace(key, add(std::move(n))).first;
  }
  out.number = at->second;
  return out;
}

Term Numbering::apply(const std::shared_ptr<StageModule>& s, InstId i, const std::vector<Term>& operands, uint64_t key,
                      CallPart part) {
  bool found = false;
  const ShapeId shape = shape_of(s->m(), i, part);
  if (Term known = find(key, &found); found) {
    known.shape = shape;
    return known;
  }
  Term out;
  const std::string* why = nullptr;
  for (const Term& t : operands)
    if (!why) why = why_unknown(t);
  if (why) {
    out = unknown(shape, key, std::string(*why));
  } else {
    try {
      std::vector<Value> each = run(*s, i, part, operands);
      for (Value& v : each) v.shape = shape;
      Number recipe;
      recipe.module = s, recipe.inst = i, recipe.part = part, recipe.operands = operands;
      recipe.noise = s->noise(i), recipe.folded = s->m().op(i) == Opcode::Constant;
      recipe.cheap = part == CallPart::kEpilogue || cheap_to_compute(s->m(), i);
      recipe.repeats = s->m().op(i) == Opcode::Broadcast;
      recipe.transcends = op_info(s->m().op(i)).transcendental;
      recipe.rounding = rounding_of(s->m(), i);
      for (const Term& t : operands)
        if (t.is_array() && numbers_[t.number].stage == stage)
          recipe.grain = std::max(recipe.grain, numbers_[t.number].grain);
      if (auto own = s->grains.find(i); own != s->grains.end() && stage) recipe.grain = own->second;
      out = wrap(std::move(each), recipe);
    } catch (const Failure& e) {
      out = unknown(shape, key, e.what());
    }
  }
  set(key, out, rounded_);
  taken += rounded_;
  return out;
}

}  // namespace hlo
