#include "replay/judge/values/walk.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "ir/base/hash.h"
#include "ir/base/stack_guard.h"
#include "ir/library/cudnn_epilogue.h"
#include "ir/types/literal.h"

namespace hlo {
namespace {

// More are not remembered for comparison by name; they are numbered all the same.
constexpr size_t kMostVisits = 1 << 21;
// States of loops beyond that are not kept.
constexpr int64_t kLargestProbe = int64_t{256} << 20;

int64_t bytes_of_value(const Value& v) {
  int64_t n = v.data ? static_cast<int64_t>(v.data->size()) : 0;
  for (const Value& e : v.elements) n += bytes_of_value(e);
  return n;
}

// As small as that: loops that run that much work in sum are run again rather than guessed at.
constexpr int64_t kLittleWork = 200'000;
// Of what a loop's condition reads: counters.
constexpr size_t kCounterBytes = 64;
// A loop that has ended in an earlier stage is given up after so many times the trips that it took there.
constexpr int64_t kMoreTrips = 16, kFewTrips = 10'000;

// Copies of what is small in a loop's state, so that the rest may still be changed in place.
Value small_leaves(const Universe& u, const Value& v) {
  Value out;
  out.shape = v.shape;
  for (const Value& e : v.elements) out.elements.push_back(small_leaves(u, e));
  if (v.data && v.data->size() <= kCounterBytes) {
    out.data = new_array(u, v.shape);
    std::copy_n(v.bytes(), v.data->size(), out.mutable_bytes());
  }
  return out;
}

void fill_gaps(Value& v, const Value& with) {
  for (size_t k = 0; k < v.elements.size(); ++k) fill_gaps(v.elements[k], with.elements[k]);
  if (!v.data) v.data = with.data;
}

// By tuple index, what a value that has been looked at lies under: the keys of a loop's record.
enum class LoopKey : uint64_t { kResult = 1, kFirst, kProbe, kBehindProbe, kLast };
uint64_t loop_key(uint64_t init, LoopKey what) {
  return hash_combine(hash_combine(0x100B, init), static_cast<uint64_t>(what));
}

}  // namespace

StageWalk::StageWalk(Numbering& numbers, std::shared_ptr<StageModule> module, bool remember,
                     const std::unordered_map<InstId, Term>* instead)
    : n_(numbers), s_(std::move(module)), m_(s_->m()), remember_(remember), instead_(instead) {}

StageNumbers StageWalk::run_computation(CompId c, const std::vector<Term>& parameters) {
  out_ = StageNumbers();
  out_.module = s_;
  out_.result = n_.settled(computation(c, parameters));
  return std::move(out_);
}

Term StageWalk::value_of(InstId i, const std::vector<Term>& operands) {
  return n_.settled(instruction(i, operands, {}));
}

StageNumbers StageWalk::run(const std::vector<Term>& arguments) {
  out_ = StageNumbers();
  out_.module = s_;
  out_.result = n_.settled(computation(m_.entry(), arguments));
  return std::move(out_);
}

Term StageWalk::tuple(ShapeId shape, std::vector<Term> elements) const {
  Term t;
  t.shape = shape;
  t.elements = std::make_shared<const std::vector<Term>>(std::move(elements));
  return t;
}

uint64_t StageWalk::key_of(InstId i, const std::vector<Term>& operands) {
  std::vector<uint64_t> hashes;
  uint64_t key = 0;
  for (const Term& t : operands) hashes.push_back(t.number);
  if (s_->canonical.by_elements(i, hashes, &key)) return key;
  hashes.clear();
  for (const Term& t : operands) hashes.push_back(Numbering::hash(n_, t));
  return s_->canonical.combined(i, std::move(hashes));
}

Term StageWalk::computation(CompId c, const std::vector<Term>& parameters) {
  check_stack("calls of computations are nested");
  std::vector<InstId> order = m_.post_order(c);
  std::unordered_set<InstId> live{m_.comp(c).root};
  for (size_t k = order.size(); k-- > 0;)
    if (live.contains(order[k]))
      for (InstId o : m_.operands(order[k])) live.insert(o);
  std::unordered_map<InstId, Term> known;
  for (InstId i : order) {
    if (!live.contains(i)) continue;
    std::vector<Term> operands;
    for (InstId o : m_.operands(i)) operands.push_back(known.at(o));
    Term t = instruction(i, operands, parameters);
    if (out_.first_unknown.empty())
      if (const std::string* why = n_.why_unknown(t)) out_.first_unknown = *why;
    if (remember_ && out_.visits.size() < kMostVisits) {
      out_.by_name[m_[i].name].push_back(static_cast<uint32_t>(out_.visits.size()));
      out_.visits.push_back({i, t, std::move(operands)});
    }
    known[i] = std::move(t);
  }
  return known.at(m_.comp(c).root);
}

Term StageWalk::called(CompId c, const std::vector<Term>& parameters) {
  uint64_t key = c.value;
  for (const Term& t : parameters) key = hash_combine(key, Numbering::hash(n_, t));
  auto known = calls_.find(key);
  if (known != calls_.end()) return known->second;
  Term t = computation(c, parameters);
  calls_[key] = t;
  return t;
}

Term StageWalk::instruction(InstId i, std::vector<Term> operands, const std::vector<Term>& parameters) {
  ShapeId shape = m_.shape_id(i);
  if (instead_)
    if (auto at = instead_->find(i); at != instead_->end()) {
      Term t = at->second;
      t.shape = shape;
      return t;
    }
  switch (role_of(m_, i)) {
    case Role::kParameter: {
      Term t = parameters[static_cast<size_t>(m_.parameter_number(i))];
      t.shape = shape;
      return t;
    }
    case Role::kSame: {
      Term t = operands[0];
      t.shape = shape;
      return t;
    }
    case Role::kTuple:
      return tuple(shape, std::move(operands));
    case Role::kElement: {
      auto k = static_cast<size_t>(m_.attrs(i).integer(Attr::index));
      if (!operands[0].elements || k >= operands[0].elements->size()) break;
      Term t = (*operands[0].elements)[k];
      t.shape = shape;
      return t;
    }
    case Role::kCall: {
      Term t = called(m_.called(i)[0], operands);
      t.shape = shape;
      return t;
    }
    case Role::kAsyncStart: {
      const Shape& s = m_.u()[shape];
      std::vector<Term> parts{tuple(s.elements[0], operands), called(m_.called(i)[0], operands)};
      return tuple(shape, std::move(parts));
    }
    case Role::kCopyStart:
      return tuple(shape, {operands[0], operands[0]});
    case Role::kAsyncDone:
    case Role::kCopyDone: {
      size_t k = role_of(m_, i) == Role::kAsyncDone ? 1 : 0;
      if (!operands[0].elements || k >= operands[0].elements->size()) break;
      Term t = (*operands[0].elements)[k];
      t.shape = shape;
      return t;
    }
    case Role::kWhile:
      return loop(i, operands);
    case Role::kConditional:
      return conditional(i, operands);
    case Role::kDraw: {
      out_.draws = true;
      for (Term& t : operands) t = n_.settled(std::move(t));
      bool named = m_.op(i) == Opcode::Rng;
      uint64_t key = hash_combine(key_of(i, operands), named ? hash_bytes(m_.inst_name(i)) : ++draws_);
      return n_.apply(s_, i, operands, key);
    }
    case Role::kOperation:
      break;
  }
  return operation(i, operands);
}

bool StageWalk::is_zero(const Term& t) {
  if (!t.is_array() || !n_[t.number].known || n_[t.number].sketch.elements != 1) return false;
  const std::vector<Value> each = n_.values(t.number);
  const ElementType type = m_.u()[each[0].shape].type;
  return each.size() == 1 && is_float(type) && load_double(type, each[0].bytes()) == 0;
}

// Each operand as that order has it, where all of them have been brought into it already.
bool StageWalk::known_sort(InstId i, const std::vector<Term>& operands, uint64_t order, Term* result) {
  std::vector<Term> sorted;
  for (const Term& t : operands) {
    bool found = false;
    sorted.push_back(n_.find(hash_combine(order, Numbering::hash(n_, t)), &found));
    if (!found) return false;
  }
  const Shape& s = m_.shape(i);
  for (size_t k = 0; k < sorted.size(); ++k) sorted[k].shape = s.is_tuple() ? s.elements[k] : m_.shape_id(i);
  *result = s.is_tuple() ? tuple(m_.shape_id(i), std::move(sorted)) : sorted[0];
  return true;
}

Term StageWalk::sort(InstId i, const std::vector<Term>& operands) {
  uint64_t key = key_of(i, operands);
  bool found = false;
  Term out = n_.find(key, &found);
  bool alone = !found && s_->devices == 1;
  for (const Term& t : operands) alone = alone && !n_.why_unknown(t);
  if (!alone) return n_.apply(s_, i, operands, key);
  std::vector<Value> given;
  const SortOrders::Known* order = nullptr;
  try {
    for (size_t k = 0; k < operands.size(); ++k)
      given.push_back(n_.value(operands[k], m_.shape_id(m_.operand(i, k)), 0));
    order = n_.orders.of(*s_->evaluators[0], m_, i, given);
  } catch (const Failure&) {
    // Evaluated, and its refusal told.
  }
  if (!order) return n_.apply(s_, i, operands, key);
  if (!known_sort(i, operands, order->id, &out)) {
    ++n_.count.operations;
    out = n_.place({s_->evaluators[0]->sorted(i, given, order->order)}, s_, i, operands);
    for (size_t k = 0; k < operands.size(); ++k)
      n_.set(hash_combine(order->id, Numbering::hash(n_, operands[k])), out.elements ? (*out.elements)[k] : out);
  }
  n_.set(key, out);
  return out;
}

// Transposed and padded operands of products are mostly asked for by nobody.
bool StageWalk::may_put_off(InstId i, const std::vector<Term>& operands) {
  const Opcode op = m_.op(i);
  if (!n_.bit_by_bit() || m_.shape(i).is_dynamic() || m_.shape(m_.operand(i, 0)).is_dynamic()) return false;
  if (op == Opcode::Broadcast ? !n_.take_rounded
                              : op != Opcode::Transpose && op != Opcode::Bitcast && op != Opcode::Pad)
    return false;
  for (const Term& t : operands)
    if (!t.is_array() || n_.why_unknown(t)) return false;
  return m_.shape(i).is_array();
}

Term StageWalk::operation(InstId i, std::vector<Term> operands) {
  Term out;
  if (n_.views.undone(m_, i, operands, &out)) return out;
  const uint64_t product = n_.views.product(m_, i, operands);
  if (product && ArrayViews::has_epilogue(m_, i)) return fused_convolution(i, std::move(operands), product);
  if (product)
    return m_.op(i) == Opcode::CustomCall ? library_product(i, std::move(operands), product)
                                          : this->product(i, std::move(operands), product);
  if (summed_product(i, operands, &out) || untransposed(i, operands, &out)) return out;
  if (m_.op(i) == Opcode::Broadcast) operands[0] = n_.settled(std::move(operands[0]));
  if (may_put_off(i, operands)) {
    out = n_.put_off(s_, i, operands, key_of(i, operands));
  } else {
    for (Term& t : operands) t = n_.settled(std::move(t));
    if (m_.op(i) == Opcode::Sort) return sort(i, operands);
    out = n_.apply(s_, i, operands, key_of(i, operands));
  }
  n_.views.note(m_, i, operands, out, m_.op(i) == Opcode::Pad && is_zero(operands[1]));
  return out;
}

// By what its operands are made of, and by what they are: dimensions of a transposed operand that have become one are
// none of the other's.
Term StageWalk::product(InstId i, std::vector<Term> operands, uint64_t viewed) {
  bool found = false;
  Term out = n_.find(viewed, &found);
  if (!found && swapped_product(i, operands, &out)) {
    n_.set(viewed, out);
  } else if (!found && n_.take_rounded && ArrayViews::parts_are_summed(m_, i)) {
    out = n_.put_off(s_, i, operands, viewed);
    n_.views.note_parts(m_, i, operands, out);
  } else if (!found) {
    for (Term& t : operands) t = n_.settled(std::move(t));
    const uint64_t own = n_.views.product(m_, i, operands, false);
    out = n_.apply(s_, i, operands, own ? own : viewed);
    n_.set(viewed, out, n_.rounded());
  }
  out.shape = m_.shape_id(i);
  return out;
}

// dot(y, x) where dot(x, y) is known: that one, transposed, which most often is transposed back. Only where something
// else reads it is it computed.
bool StageWalk::swapped_product(InstId i, const std::vector<Term>& operands, Term* out) {
  Dims from;
  const uint64_t key = n_.bit_by_bit() ? n_.views.swapped(m_, i, operands, &from) : 0;
  const Term* other = key ? n_.find_exact(key) : nullptr;
  if (!other || !other->is_array() || n_.why_unknown(*other)) return false;
  const Term base = *other;
  *out = n_.put_off(s_, i, operands, hash_combine(hash_combine(0x5A9, key), base.number));
  n_.views.note_transposed(*out, m_.shape(i).dims, base, from);
  return true;
}

// The sum of a product's parts, of which each is a dot of its own: but for rounding it is the dot of all of them.
bool StageWalk::summed_product(InstId i, const std::vector<Term>& operands, Term* out) {
  if (!n_.take_rounded || m_.op(i) != Opcode::Reduce || operands.size() != 2 || !is_zero(operands[1])) return false;
  const uint64_t key = n_.views.summed(m_, i, operands[0]);
  const Term* whole = key ? n_.find_exact(key) : nullptr;
  if (!whole || !whole->is_array() || n_.why_unknown(*whole)) return false;
  *out = *whole, out->shape = m_.shape_id(i);
  ++n_.taken;
  return true;
}

// What an elementwise operation gives of transposed operands where it is known what it gives of them as they were:
// that, transposed. Layouts are written so.
bool StageWalk::untransposed(InstId i, const std::vector<Term>& operands, Term* out) {
  std::vector<ArrayViews::Source> sources;
  Dims from;
  if (!n_.bit_by_bit() || !n_.views.untransposed(m_, i, operands, &sources, &from)) return false;
  std::vector<uint64_t> numbers;
  for (const ArrayViews::Source& s : sources) {
    const Term* known = s.key ? n_.find_exact(s.key) : nullptr;
    if (s.key && (!known || !known->is_array())) return false;
    const Number& n = n_[s.key ? known->number : s.number];
    const NumberId own = s.key ? known->number : s.number;
    if (n.put_off && n.settled == kNoNumber) return false;
    numbers.push_back(n.put_off ? n.settled : own);
  }
  uint64_t key = 0;
  if (!s_->canonical.by_elements(i, std::move(numbers), &key)) return false;
  bool found = false;
  const Term base = n_.find(key, &found);
  if (!found || !base.is_array() || n_.why_unknown(base)) return false;
  key = hash_combine(key, base.number);
  for (int64_t d : from) key = hash_combine(key, static_cast<uint64_t>(d));
  for (int64_t d : m_.shape(i).dims) key = hash_combine(key, static_cast<uint64_t>(d));
  *out = n_.put_off(s_, i, operands, hash_combine(0x7A5, key));
  n_.views.note_transposed(*out, m_.shape(i).dims, base, from);
  return true;
}

Term StageWalk::library_product(InstId i, std::vector<Term> operands, uint64_t product) {
  bool found = false;
  Term value = n_.find(product, &found);
  if (!found) {
    for (Term& t : operands) t = n_.settled(std::move(t));
    Term whole = n_.apply(s_, i, operands, key_of(i, operands));
    if (whole.elements) n_.set(product, (*whole.elements)[0], n_.rounded());
    return whole;
  }
  return with_memory(i, std::move(value));
}

// (conv, memory) custom-call(x, w, bias, side)      →      epilogue(convolution(x, w), bias, side)
//
// The convolution is one like any other: most often the stage before has it on its own.
Term StageWalk::fused_convolution(InstId i, std::vector<Term> operands, uint64_t product) {
  for (size_t k = 2; k < operands.size(); ++k) operands[k] = n_.settled(std::move(operands[k]));
  bool found = false;
  Term value = n_.find(product, &found);
  if (!found) {
    for (size_t k = 0; k < 2; ++k) operands[k] = n_.settled(std::move(operands[k]));
    const uint64_t own = n_.views.product(m_, i, operands, false);
    value = n_.apply(s_, i, {operands[0], operands[1]}, own ? own : product, CallPart::kConvolution);
    n_.set(product, value, n_.rounded());
  }
  if (n_.why_unknown(value)) {
    for (size_t k = 0; k < 2; ++k) operands[k] = n_.settled(std::move(operands[k]));
    return n_.apply(s_, i, operands, key_of(i, operands));
  }
  value.shape = m_.shape(i).elements[0];
  std::vector<Term> given{value};
  given.insert(given.end(), operands.begin() + 2, operands.end());
  const CudnnEpilogue e = cudnn_epilogue(m_, i);
  uint64_t key = hash_combine(hash_combine(0xE9110, e.fused ? 1 : 0), hash_bytes(e.activation));
  for (double x : {e.scale, e.side_scale, e.leak}) key = hash_combine(key, std::bit_cast<uint64_t>(x));
  const auto feature = m_.attrs(i).get<DimLabels>(Attr::dim_labels)->output_feature;
  key = hash_combine(key, static_cast<uint64_t>(feature));
  for (const Term& t : given) key = hash_combine(key, Numbering::hash(n_, t));
  return with_memory(i, n_.apply(s_, i, given, key, CallPart::kEpilogue));
}

// A library call's result: its value, and memory that it works in.
Term StageWalk::with_memory(InstId i, Term value) {
  const Shape& s = m_.shape(i);
  value.shape = s.elements[0];
  uint64_t key = hash_combine(0x3088, hash_bytes(m_.u().shape_text(s.elements[1])));
  bool found = false;
  Term memory = n_.find(key, &found);
  if (!found) {
    Value zeros;
    zeros.shape = s.elements[1], zeros.data = new_array(m_.u(), s.elements[1]);
    memory = n_.place({zeros});
    n_.set(key, memory);
  }
  memory.shape = s.elements[1];
  return tuple(m_.shape_id(i), {value, memory});
}

// False where it has no value, or another one on every device.
bool StageWalk::scalar(const Term& t, int64_t* value) {
  if (!t.is_array() || !n_[t.number].known) return false;
  std::vector<Value> each = n_.values(t.number);
  if (each.size() != 1) return false;
  ElementType type = m_.u()[each[0].shape].type;
  *value = type == ElementType::Pred ? each[0].bytes()[0] != 0 : load_int(type, each[0].bytes());
  return true;
}

Term StageWalk::conditional(InstId i, const std::vector<Term>& operands) {
  const std::vector<CompId>& branches = m_.called(i);
  int64_t which = 0;
  if (!scalar(operands[0], &which)) {
    uint64_t key = static_cast<uint64_t>(Opcode::Conditional);
    for (const Term& t : operands) key = hash_combine(key, Numbering::hash(n_, t));
    for (CompId c : branches) key = hash_combine(key, s_->canonical.computation(c));
    return n_.apply(s_, i, operands, key);
  }
  auto count = static_cast<int64_t>(branches.size());
  if (m_.shape(m_.operand(i, 0)).type == ElementType::Pred)
    which = which ? 0 : 1;
  else if (which < 0 || which >= count)
    which = count - 1;
  out_.branches_left += branches.size() - 1;
  Term t = called(branches[static_cast<size_t>(which)], {operands[static_cast<size_t>(which) + 1]});
  t.shape = m_.shape_id(i);
  return t;
}

// What a trip costs, in elements.
int64_t StageWalk::trip_work(CompId c) {
  int64_t work = 0;
  for (InstId i : m_.comp(c).order) {
    if (!i.valid()) continue;
    work += 20 + (m_.shape(i).is_array() ? m_.shape(i).elements_count() : 0);
    if (op_info(m_.op(i)).cls == OpClass::Dot || op_info(m_.op(i)).cls == OpClass::Conv) work += kLittleWork / 16;
    for (CompId inner : m_.called(i)) work += trip_work(inner);
    if (work > kLittleWork) return work;
  }
  return work;
}

// A loop whose body is written in another way gives the same, where its body does from the first state and from one
// that a run of the loop was in later, and where its condition ends it where it ended.
bool StageWalk::same_loop(InstId i, const Term& init, const Term& first, Term* result) {
  uint64_t h = Numbering::hash(n_, init);
  bool found = false;
  Term known_first = n_.find(loop_key(h, LoopKey::kFirst), &found);
  if (!found || Numbering::hash(n_, known_first) != Numbering::hash(n_, first)) return false;
  Term probe = n_.find(loop_key(h, LoopKey::kProbe), &found);
  if (found) {
    Term behind = n_.find(loop_key(h, LoopKey::kBehindProbe), &found);
    Term now = called(m_.attrs(i).comp(Attr::body), {probe});
    if (!found || Numbering::hash(n_, behind) != Numbering::hash(n_, now)) return false;
  }
  *result = n_.find(loop_key(h, LoopKey::kResult), &found);
  if (!found) return false;
  const CompId condition = m_.attrs(i).comp(Attr::condition);
  int64_t more = 1, last = 1;
  if (!scalar(called(condition, {*result}), &more) || more) return false;
  const Term before = n_.find(loop_key(h, LoopKey::kLast), &found);
  return found && scalar(called(condition, {before}), &last) && last;
}

Term StageWalk::loop(InstId i, const std::vector<Term>& given) {
  const std::vector<Term> operands{n_.settled(given[0])};
  CompId body = m_.attrs(i).comp(Attr::body), condition = m_.attrs(i).comp(Attr::condition);
  const Term& init = operands[0];
  ++out_.loops;
  uint64_t key = hash_combine(s_->canonical.computation(body), s_->canonical.computation(condition));
  key = hash_combine(key, Numbering::hash(n_, init));
  // As a whole: two trips that are the same say little of the others where every bit counts.
  if (n_.bit_by_bit()) return n_.apply(s_, i, operands, hash_combine(key, 2));
  // The first trip is looked into.
  Term first;
  int64_t more = 1;
  Term go = called(condition, operands);
  bool looked = scalar(go, &more);
  if (looked && more) first = called(body, operands);
  bool found = false;
  Term result = n_.find(key, &found);
  if (!found && looked && !more) result = init, found = true;
  auto trips = n_.trips.find(Numbering::hash(n_, init));
  const bool little = trips != n_.trips.end() && trips->second * trip_work(body) <= kLittleWork;
  if (!found && looked && !little) found = same_loop(i, init, first, &result);
  if (!found) {
    result = run_loop(i, init, key);
    if (looked) n_.set(loop_key(Numbering::hash(n_, init), LoopKey::kFirst), first);
  }
  n_.set(key, result);
  result.shape = m_.shape_id(i);
  return result;
}

Term StageWalk::run_loop(InstId i, const Term& init, uint64_t key) {
  ++out_.loops_run;
  uint64_t h = Numbering::hash(n_, init);
  const std::string* why = n_.why_unknown(init);
  bool alone = s_->devices == 1;
  if (why || !alone) {
    Term t = n_.apply(s_, i, {init}, hash_combine(key, 1));
    n_.set(loop_key(h, LoopKey::kResult), t);
    return t;
  }
  CompId body = m_.attrs(i).comp(Attr::body), condition = m_.attrs(i).comp(Attr::condition);
  ShapeId shape = m_.shape_id(i);
  try {
    Evaluator& e = *s_->evaluators[0];
    Value state = n_.value(init, shape, 0);
    bool small = bytes_of_value(state) <= kLargestProbe;
    Value probe, behind, last;
    auto known = n_.trips.find(h);
    const int64_t most =
        std::min(s_->options.max_while_steps,
                 known == n_.trips.end() ? INT64_MAX : kMoreTrips * std::max(known->second, kFewTrips));
    int64_t step = 0;
    for (; e.run_computation(condition, {state}).bytes()[0]; ++step) {
      if (s_->options.stop && s_->options.stop()) fail(FailureKind::kUnsupported, "interrupted");
      if (step >= most) fail(FailureKind::kUnsupported, "{} does not end within {} steps", m_.inst_name(i), step);
      if (small) last = small_leaves(m_.u(), state);
      bool keep = small && step > 0 && (step & (step - 1)) == 0;
      if (keep) probe = state;
      std::vector<Value> arguments;
      arguments.push_back(std::move(state));
      state = e.run_computation(body, std::move(arguments));
      state.shape = shape;
      if (keep) behind = state;
    }
    ++n_.count.operations;
    n_.trips.emplace(h, step);
    if (last.shape.valid()) {
      fill_gaps(last, state);
      n_.set(loop_key(h, LoopKey::kLast), n_.place({last}));
    }
    if (probe.shape.valid()) {
      n_.set(loop_key(h, LoopKey::kProbe), n_.place({probe}));
      n_.set(loop_key(h, LoopKey::kBehindProbe), n_.place({behind}));
    }
    Term t = n_.place({state}, s_, i, {init});
    n_.set(loop_key(h, LoopKey::kResult), t);
    return t;
  } catch (const Failure& f) {
    return n_.unknown(shape, key, f.what());
  }
}

}  // namespace hlo
