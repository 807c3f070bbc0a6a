#include "replay/judge/chosen/walk/expression_walk.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "ir/backend_config.h"
#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/library/gemm_call.h"
#include "replay/judge/chosen/elements/elements_run.h"
#include "replay/judge/chosen/walk/loop_reads.h"

namespace hlo {

ExpressionWalk::ExpressionWalk(Expressions& all, std::shared_ptr<const Module> wide, Met met, WholeStage* whole)
    : all_(all), keep_(std::move(wide)), m_(*keep_), canonical_(m_), met_(std::move(met)), whole_(whole) {}

ExprStage ExpressionWalk::run() {
  out_.wide = keep_;
  std::vector<ExprTree> arguments;
  uint32_t next = 0;
  for (InstId p : m_.comp(m_.entry()).params)
    arguments.push_back(tree(
        m_.shape_id(p), [&](uint32_t leaf, ShapeId shape) { return parameter(p, leaf, shape); }, &next));
  out_.result = computation(m_.entry(), arguments);
  return std::move(out_);
}

ExprTree ExpressionWalk::tree(ShapeId shape, const std::function<ExprId(uint32_t, ShapeId)>& leaf,
                              uint32_t* next) const {
  ExprTree t;
  t.shape = shape;
  const Shape& s = m_.u()[shape];
  for (ShapeId e : s.elements) t.elements.push_back(tree(e, leaf, next));
  if (s.is_array()) t.id = leaf((*next)++, shape);
  return t;
}

uint64_t ExpressionWalk::hash(const ExprTree& t) const {
  if (t.id != kNoExpr) return Canonical::operand_of(m_.u(), t.id, t.shape);
  uint64_t h = 0x51ED;
  for (const ExprTree& e : t.elements) h = hash_combine(h, hash(e));
  return h;
}

ExprId ExpressionWalk::add(uint64_t key, Expr e, InstId by, const Expr::View* order) {
  ExprId own = kNoExpr;
  const ExprId id = all_.find_or_add(key, std::move(e), &own);
  out_.made.push_back(own);
  if (trips_)
    if (const std::optional<int64_t> number = trips_->number(id)) return trips_->of_number(id, *number);
  if (id != own) return id;
  if (const ExprId value = all_.folded(id); value != id) return value;
  return met_ ? met_(id, by, order) : id;
}

ExprTree ExpressionWalk::computation(CompId c, const std::vector<ExprTree>& parameters) {
  check_stack("calls of computations are nested");
  const std::vector<InstId> order = m_.post_order(c);
  std::unordered_set<InstId> live{m_.comp(c).root};
  for (size_t k = order.size(); k-- > 0;)
    if (live.contains(order[k]))
      for (InstId o : m_.operands(order[k])) live.insert(o);
  std::unordered_map<InstId, ExprTree> known;
  for (InstId i : order) {
    if (!live.contains(i)) continue;
    std::vector<ExprTree> operands;
    for (InstId o : m_.operands(i)) operands.push_back(known.at(o));
    const auto forced = forced_.find(i);
    ExprTree t = forced == forced_.end()
                     ? instruction(i, operands, parameters)
                     : forced->second.values[std::min(forced->second.next++, forced->second.values.size() - 1)];
    out_.visits.push_back({i, t});
    known[i] = std::move(t);
  }
  return known.at(m_.comp(c).root);
}

ExprTree ExpressionWalk::called(CompId c, const std::vector<ExprTree>& parameters) {
  uint64_t key = c.value;
  for (const ExprTree& t : parameters) key = hash_combine(key, hash(t));
  if (auto known = calls_.find(key); known != calls_.end()) return known->second;
  ExprTree t = computation(c, parameters);
  calls_[key] = t;
  return t;
}

ExprTree ExpressionWalk::instruction(InstId i, const std::vector<ExprTree>& operands,
                                     const std::vector<ExprTree>& parameters) {
  const ShapeId shape = m_.shape_id(i);
  auto in_shape = [&](ExprTree t) {
    t.shape = shape;
    return t;
  };
  auto pair = [&](ExprTree first, ExprTree second) {
    ExprTree t;
    t.shape = shape;
    t.elements.push_back(std::move(first)), t.elements.push_back(std::move(second));
    return t;
  };
  const Role role = role_of(m_, i);
  switch (role) {
    case Role::kParameter:
      return in_shape(parameters[static_cast<size_t>(m_.parameter_number(i))]);
    case Role::kSame:
      return in_shape(operands[0]);
    case Role::kTuple: {
      ExprTree t;
      t.shape = shape, t.elements = operands;
      return t;
    }
    case Role::kElement:
    case Role::kAsyncDone:
    case Role::kCopyDone: {
      const size_t k = role == Role::kElement ? static_cast<size_t>(m_.attrs(i).integer(Attr::index))
                                              : (role == Role::kAsyncDone ? 1 : 0);
      if (k >= operands[0].elements.size()) break;
      return in_shape(operands[0].elements[k]);
    }
    case Role::kCall:
      return in_shape(called(m_.called(i)[0], operands));
    case Role::kAsyncStart: {
      ExprTree given;
      given.elements = operands;
      return pair(std::move(given), called(m_.called(i)[0], operands));
    }
    case Role::kCopyStart:
      return pair(operands[0], operands[0]);
    case Role::kWhile:
      return loop(i, operands);
    case Role::kConditional:
      return conditional(i, operands);
    case Role::kDraw:
      return operation(i, operands, hash_bytes(m_.inst_name(i)));
    case Role::kOperation:
      break;
  }
  // Rounding is not looked at, here neither.
  if (m_.op(i) == Opcode::ReducePrecision) return in_shape(operands[0]);
  const bool marked = m_.op(i) == Opcode::CustomCall && operands.size() == 1 &&
                      is_mark(m_.u().text(m_.attrs(i).text(Attr::custom_call_target)));
  if (marked && m_.u().compatible(m_.shape_id(m_.operand(i, 0)), shape)) return in_shape(operands[0]);
  return operation(i, operands);
}

namespace {

// A solver's operation and the library's call that XLA makes of it (xla/service/gpu/transforms/cusolver_rewriter.cc,
// triangular_solve_rewriter.cc) are one thing.
std::optional<uint64_t> solver_key(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  const auto flags = [](uint64_t h, std::initializer_list<bool> list) {
    for (bool f : list) h = hash_combine(h, f);
    return h;
  };
  if (m.op(i) == Opcode::Cholesky) return flags(0xC401, {a.flag(Attr::lower)});
  if (m.op(i) == Opcode::TriangularSolve)
    return hash_combine(flags(0x7215, {a.flag(Attr::left_side), a.flag(Attr::lower), a.flag(Attr::unit_diagonal)}),
                        hash_bytes(m.u().text(a.text(Attr::transpose_a))));
  if (m.op(i) != Opcode::CustomCall) return {};
  const std::string_view target = m.u().text(a.text(Attr::custom_call_target)),
                         text = m.u().text(a.text(Attr::backend_config));
  if (target == "__cusolver$cholesky") return flags(0xC401, {flag(backend_config(text, "cholesky_options"), "lower")});
  if (target != "__cublas$triangularSolve") return {};
  const BackendConfig c = backend_config(text, "triangular_solve_options");
  return hash_combine(flags(0x7215, {flag(c, "left_side"), flag(c, "lower"), flag(c, "unit_diagonal")}),
                      hash_bytes(word(c, "transpose_a", "NO_TRANSPOSE")));
}

// A scatter of one array by what lands where: windows of one element in a dimension are written as such, or the
// dimension is left out; and how many dimensions the updates lie in does not count (xla/service/scatter_simplifier.cc).
// None where windows do not lie behind one another, each index in one piece.
std::optional<uint64_t> scatter_key(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Scatter || m.operand_count(i) != 3) return {};
  const AttrSet& a = m.attrs(i);
  const Shape &in = m.shape(i), &index = m.shape(m.operand(i, 1)), &update = m.shape(m.operand(i, 2));
  const Dims &window = a.ints(Attr::update_window_dims), &inserted = a.ints(Attr::inserted_window_dims);
  if (!a.ints(Attr::input_batching_dims).empty() || a.integer(Attr::index_vector_dim) < index.rank() - 1) return {};
  if (static_cast<int64_t>(window.size() + inserted.size()) != in.rank()) return {};
  int64_t last = -1;
  for (int64_t d = 0; d < update.rank(); ++d)
    if (update.dims[static_cast<size_t>(d)] != 1 && std::find(window.begin(), window.end(), d) == window.end())
      last = d;
  for (int64_t d : window) {
    if (update.dims[static_cast<size_t>(d)] == 1) continue;
    if (d < last) return {};
    last = d;
  }
  uint64_t key = hash_combine(0x5CA7, static_cast<uint64_t>(update.elements_count()));
  size_t next = 0;
  for (int64_t d = 0; d < in.rank(); ++d) {
    const bool left_out = std::find(inserted.begin(), inserted.end(), d) != inserted.end();
    const int64_t size = left_out ? 1 : update.dims[static_cast<size_t>(window[next++])];
    key = hash_combine(hash_combine(key, static_cast<uint64_t>(in.dims[static_cast<size_t>(d)])),
                       static_cast<uint64_t>(size));
  }
  for (int64_t d : a.ints(Attr::scatter_dims_to_operand_dims)) key = hash_combine(key, static_cast<uint64_t>(d));
  return hash_combine(hash_combine(key, static_cast<uint64_t>(in.type)), static_cast<uint64_t>(index.type));
}

// The operand that is the result whatever the others are: starts of slices are clamped to where these fit, so that a
// slice of all, and an update of all, begin at 0.
std::optional<size_t> handed_operand(const Module& m, InstId i) {
  const auto fits = [&](size_t k) {
    return m.u().compatible(m.shape_id(m.operand(i, k)), m.shape_id(i)) ? std::optional(k) : std::nullopt;
  };
  if (m.op(i) == Opcode::DynamicSlice) return fits(0);
  if (m.op(i) == Opcode::DynamicUpdateSlice) return fits(1);
  return {};
}

}  // namespace

ExprTree ExpressionWalk::operation(InstId i, const std::vector<ExprTree>& operands, uint64_t salt) {
  const OpClass kind = op_info(m_.op(i)).cls;
  const Opcode op = m_.op(i);
  const bool number = op == Opcode::PartitionId || op == Opcode::ReplicaId;
  if ((kind == OpClass::Collective || number) && op != Opcode::RaggedAllToAll) return message(i, operands);
  if (kind == OpClass::Io || m_.shape(i).is_dynamic())
    fail(FailureKind::kUnsupported, "{}: {} cannot be compared at chosen elements", m_.inst_name(i), op_text(m_.op(i)));
  if (const std::optional<size_t> k = handed_operand(m_, i)) {
    ExprTree t = operands[*k];
    t.shape = m_.shape_id(i);
    return t;
  }
  if (op == Opcode::Select && operands[1].id != kNoExpr && operands[1].id == operands[2].id) {
    ExprTree t = operands[1];
    t.shape = m_.shape_id(i);
    return t;
  }
  const bool one = m_.shape(i).is_array() && operands.size() >= 1 && operands[0].id != kNoExpr;
  if (one && kind == OpClass::Move)
    if (ExprId v = all_.moved(m_, i, operands[0].id); v != kNoExpr) {
      const std::optional<SumForm> part = part_form(all_, m_, i, v);
      ExprTree t;
      t.id = part ? sum(i, *part) : all_.same(v), t.shape = m_.shape_id(i);
      return t;
    }
  const std::optional<SumForm> form = sum_form(i, operands);
  if (form && m_.shape(i).is_array()) {
    ExprTree t;
    t.id = sum(i, *form), t.shape = m_.shape_id(i);
    return t;
  }
  std::vector<uint64_t> numbers;
  std::vector<ExprId> leaves;
  bool arrays = true;
  for (const ExprTree& t : operands) numbers.push_back(t.id), t.leaves(&leaves), arrays &= t.id != kNoExpr;
  if (const auto each = arrays && !salt ? elementwise_form(all_, m_, i, leaves) : std::nullopt) {
    ExprTree t;
    t.id = elementwise(i, *each), t.shape = m_.shape_id(i);
    return t;
  }
  if (const auto form = arrays ? turned_form(all_, m_, i, leaves) : std::nullopt) {
    ExprTree t;
    t.id = turned(i, *form), t.shape = m_.shape_id(i);
    return t;
  }
  uint64_t key = 0;
  const std::optional<uint64_t> solver = solver_key(m_, i);
  if (const std::optional<uint64_t> scatter = arrays ? scatter_key(m_, i) : std::nullopt) {
    key = hash_combine(*scatter, canonical_.computation(m_.called(i)[0]));
    for (uint64_t n : numbers) key = hash_combine(key, n);
  } else if (!arrays || !by_elements(i, numbers, m_.shape(i).elements_count(), &key)) {
    numbers.clear();
    for (const ExprTree& t : operands) numbers.push_back(hash(t));
    // A library's scratch is no value: what a call gives besides does not count, its own arrays do, below.
    key = m_.op(i) == Opcode::CustomCall ? canonical_.library_call(i) : canonical_.combined(i, numbers);
    if (solver) key = *solver;
    for (uint64_t n : numbers) key = hash_combine(key, n);
    for (CompId c : m_.called(i)) key = hash_combine(key, canonical_.computation(c));
  }
  if (salt) key = hash_combine(key, salt);
  uint32_t next = 0;
  return tree(
      m_.shape_id(i),
      [&](uint32_t leaf, ShapeId shape) {
        if (form && leaf == 0) return sum(i, *form);
        Expr e;
        e.leaf = leaf, e.m = &m_, e.inst = i, e.shape = shape, e.operands = leaves;
        uint64_t own = leaf ? hash_combine(key, leaf) : key;
        if (m_.op(i) == Opcode::CustomCall || solver) own = Canonical::operand_of(m_.u(), own, shape);
        return add(own, std::move(e), i);
      },
      &next);
}

std::optional<SumForm> ExpressionWalk::sum_form(InstId i, const std::vector<ExprTree>& operands) const {
  if (operands.size() < 2 || operands[0].id == kNoExpr || operands[1].id == kNoExpr) return {};
  const ExprId first = operands[0].id, second = operands[1].id;
  const Opcode op = m_.op(i);
  if (op == Opcode::Reduce && operands.size() == 2) return reduction_form(all_, m_, i, first, second);
  const bool call = op == Opcode::CustomCall && is_gemm_call(m_.u().text(m_.attrs(i).text(Attr::custom_call_target)));
  if (op == Opcode::Dot || call) return product_form(all_, m_, i, first, second);
  return {};
}

ExprId ExpressionWalk::sum(InstId i, const SumForm& f) {
  // What has the instruction's name is the negative, not what that is of.
  Met met = f.negated ? std::exchange(met_, nullptr) : met_;
  ExprId of = f.expr.kind == Expr::kView ? f.expr.operands[0] : add(f.key, f.expr, i, &f.order);
  met_ = std::move(met);
  if (f.negated) of = negative(i, of, f.order);
  return all_.same(ordered(all_, of, f.order, m_.shape(i).is_tuple() ? m_.shape(i).elements[0] : m_.shape_id(i)));
}

ExprId ExpressionWalk::negative(InstId i, ExprId of, const Expr::View& order) {
  Expr e;
  e.shape = all_[of].shape, e.operands = {of};
  e.inst = all_.made(m_.universe(), Opcode::Negate, e.shape, {e.shape}, AttrSet(), &e.m);
  const uint64_t key = Canonical(*e.m).elementwise(e.inst, {of}, m_.u()[e.shape].elements_count());
  return add(key, std::move(e), i, &order);
}

bool ExpressionWalk::by_elements(InstId i, const std::vector<uint64_t>& numbers, int64_t count, uint64_t* key) {
  if (!canonical_.by_elements(i, numbers, key)) return false;
  if (!op_info(m_.op(i)).elementwise) return true;
  *key = canonical_.elementwise(i, numbers, count);
  if (m_.op(i) == Opcode::Multiply && m_.shape(m_.operand(i, 0)).rank() && m_.shape(m_.operand(i, 1)).rank())
    *key = multiplied_key(m_.shape(i).type, count, static_cast<ExprId>(numbers[0]), static_cast<ExprId>(numbers[1]));
  return true;
}

ExprId ExpressionWalk::elementwise(InstId i, const ElementwiseForm& f) {
  uint64_t key = 0;
  int64_t count = 1;
  for (int64_t d : f.dims) count *= d;
  const bool known = by_elements(i, {f.operands.begin(), f.operands.end()}, count, &key);
  HLO_CHECK(known, "{} is not element by element", m_.inst_name(i));
  Expr e;
  e.m = &m_, e.inst = i, e.shape = m_.u().array(m_.shape(i).type, f.dims), e.operands = f.operands;
  return all_.same(ordered(all_, add(key, std::move(e), i, &f.order), f.order, m_.shape_id(i)));
}

// By what it would be were it written so.
ExprId ExpressionWalk::turned(InstId i, const TurnedForm& f) {
  std::vector<uint64_t> numbers;
  for (size_t k = 0; k < f.operands.size(); ++k)
    numbers.push_back(Canonical::operand_of(m_.u(), f.operands[k], f.m->shape_id(f.m->operand(f.inst, k))));
  Expr e;
  e.m = f.m, e.inst = f.inst, e.shape = f.m->shape_id(f.inst), e.operands = f.operands;
  uint64_t key = Canonical(*f.m).combined(f.inst, numbers);
  for (uint64_t n : numbers) key = hash_combine(key, n);
  return all_.same(ordered(all_, add(key, std::move(e), i, &f.order), f.order, m_.shape_id(i)));
}

ExprTree ExpressionWalk::conditional(InstId i, const std::vector<ExprTree>& operands) {
  ++out_.branches;
  const std::vector<CompId>& branches = m_.called(i);
  std::vector<std::vector<ExprId>> results(branches.size());
  for (size_t k = 0; k < branches.size(); ++k) called(branches[k], {operands[k + 1]}).leaves(&results[k]);
  uint32_t next = 0;
  return tree(
      m_.shape_id(i),
      [&](uint32_t leaf, ShapeId shape) {
        Expr e;
        e.kind = Expr::kBranch, e.leaf = leaf, e.m = &m_, e.inst = i, e.shape = shape;
        e.operands.push_back(operands[0].id);
        uint64_t key = hash_combine(0xB4A2C4, operands[0].id);
        bool alike = true;
        for (const std::vector<ExprId>& r : results) {
          e.operands.push_back(r[leaf]);
          key = hash_combine(key, r[leaf]), alike &= r[leaf] == results[0][leaf];
        }
        return alike ? results[0][leaf] : add(key, std::move(e), i);
      },
      &next);
}

// Arrays of the state that each trip hands on as they came, by what is written there alone.
std::vector<bool> ExpressionWalk::handed_on(CompId body) const {
  const InstId root = m_.comp(body).root, state = m_.comp(body).params[0];
  std::vector<bool> out;
  const std::vector<ShapeId>& elements = m_.shape(root).elements;
  for (size_t k = 0; k < elements.size(); ++k) {
    bool on = m_.op(root) == Opcode::Tuple;
    if (on) {
      InstId from = m_.operand(root, k);
      while (m_.op(from) == Opcode::Copy || m_.op(from) == Opcode::OptBarrier) from = m_.operand(from, 0);
      on = m_.op(from) == Opcode::GetTupleElement && m_.operand(from, 0) == state &&
           m_.attrs(from).integer(Attr::index) == static_cast<int64_t>(k);
    }
    std::vector<ShapeId> leaves;
    add_leaf_shapes(m_.u(), elements[k], &leaves);
    out.insert(out.end(), leaves.size(), on);
  }
  return out;
}

// What an element of the state is in some trip is told by what it is in the first, and by which of those that begin so
// it is: its place in the tuple does not count.
ExprTree ExpressionWalk::formals(const ExprTree& init, const LoopState& s, size_t* leaf) const {
  if (init.id != kNoExpr) {
    const size_t place = (*leaf)++;
    if (s.constant[place]) return init;
    if (!s.instead.empty() && s.instead[place] != kNoExpr) {
      ExprTree out = init;
      out.id = s.instead[place];
      return out;
    }
    std::vector<uint32_t> before;  // numbers of others that begin with the same
    for (size_t k = 0; k < s.begin.size() && s.like[k] != s.like[place]; ++k)
      if (s.begin[k] == init.id && !s.constant[k] && std::find(before.begin(), before.end(), s.like[k]) == before.end())
        before.push_back(s.like[k]);
    Expr e = all_[init.id];
    e.kind = Expr::kFormal, e.shape = init.shape, e.operands.clear(), e.view = {}, e.sum = nullptr;
    e.message = nullptr, e.devices = s.devices[place];
    uint64_t key = hash_combine(hash_combine(hash_combine(0xF04A1, init.id), before.size()), depth_);
    key = hash_combine(key, e.devices);
    ExprTree out = init;
    out.id = all_.find_or_add(key, std::move(e));
    return out;
  }
  ExprTree out;
  out.shape = init.shape;
  for (const ExprTree& e : init.elements) out.elements.push_back(formals(e, s, leaf));
  return out;
}

void ExpressionWalk::trip(InstId loop, const ExprTree& init, LoopState* s) {
  size_t leaf = 0;
  ++depth_;
  const ExprTree state = formals(init, *s, &leaf);
  const ExprTree next = called(m_.attrs(loop).comp(Attr::body), {state});
  s->goes_on = called(m_.attrs(loop).comp(Attr::condition), {state});
  --depth_;
  s->formal.clear(), s->then.clear();
  state.leaves(&s->formal), next.leaves(&s->then);
  if (s->begin.size() != s->formal.size() || s->begin.size() != s->then.size() || s->goes_on.id == kNoExpr)
    fail(FailureKind::kUnsupported, "{}: the loop's state has another form after an iteration", m_.inst_name(loop));
}

// Counters that begin and go on alike are one. At first all are taken for one that begin with the same, and those that
// a trip makes different are told apart, until no more are. Nothing is compared meanwhile, for most of it is not so.
void ExpressionWalk::find_like(InstId loop, const ExprTree& init, LoopState* s) {
  s->like.assign(s->begin.size(), 0);
  std::map<std::pair<uint32_t, ExprId>, uint32_t> numbers;
  auto tell_apart = [&](const std::vector<ExprId>& by) {
    numbers.clear();
    for (size_t k = 0; k < by.size(); ++k)
      s->like[k] =
          numbers.try_emplace({s->like[k], s->constant[k] ? s->begin[k] : by[k]}, static_cast<uint32_t>(numbers.size()))
              .first->second;
    return numbers.size();
  };
  size_t count = tell_apart(s->begin);
  aside([&] {
    for (size_t before = 0; count < s->begin.size() && before != count;) {
      trip(loop, init, s);
      before = count, count = tell_apart(s->then);
    }
  });
}

void ExpressionWalk::aside(const std::function<void()>& walk) {
  std::unordered_map<uint64_t, ExprTree> calls;
  ExprStage out;
  std::swap(calls, calls_), std::swap(out, out_);
  Met met = std::exchange(met_, nullptr);
  auto forced = std::exchange(forced_, {});
  walk();
  std::swap(calls, calls_), std::swap(out, out_);
  met_ = std::move(met), forced_ = std::move(forced);
}

// Devices that begin with the same have the same in all trips where these make nothing else of it.
void ExpressionWalk::find_devices(InstId loop, const ExprTree& init, LoopState* s) {
  DeviceClasses& devices = all_.devices();
  for (ExprId e : s->begin) s->devices.push_back(devices.of(e));
  if (devices.devices() == 1) return;
  aside([&] {
    for (bool found = true; found;) {
      found = false;
      trip(loop, init, s);
      for (size_t k = 0; k < s->begin.size(); ++k) {
        const uint32_t own =
            devices.both(devices.both(s->devices[k], devices.of(s->then[k])), devices.of(s->goes_on.id));
        if (!s->constant[k] && own != s->devices[k]) s->devices[k] = own, found = true;
      }
    }
  });
}

// Each element of the last state is what it reads of the state, each by what it begins with and what a trip makes of
// it, and the condition.
ExprTree ExpressionWalk::loop(InstId i, const std::vector<ExprTree>& operands) {
  ++out_.loops;
  const CompId body = m_.attrs(i).comp(Attr::body);
  const ExprTree& init = operands[0];
  if (trips_)
    if (std::optional<ExprTree> state = followed(i, init)) return *std::move(state);
  if (const LoopVisit* whole = whole_ ? whole_->loop(i) : nullptr)
    if (std::optional<ExprTree> parts = loop_of_parts(i, init, *whole)) return *std::move(parts);
  LoopState s;
  init.leaves(&s.begin);
  s.constant = handed_on(body);
  s.constant.resize(s.begin.size(), false);
  s.like.assign(s.begin.size(), 0);
  find_devices(i, init, &s);
  find_like(i, init, &s);
  // What a trip is found to hand on as it came is what it begins with, for all that reads it.
  for (bool found = true; found;) {
    found = false;
    trip(i, init, &s);
    for (size_t k = 0; k < s.begin.size(); ++k)
      if (!s.constant[k] && s.then[k] == s.formal[k]) s.constant[k] = found = true;
  }
  return result_of(i, s);
}

ExprTree ExpressionWalk::result_of(InstId i, const LoopState& s) {
  const std::vector<ExprId>&begin = s.begin, &formal = s.formal, &then = s.then;
  const ExprTree& goes_on = s.goes_on;
  LoopReads reads(all_, formal, then, goes_on.id);
  uint32_t next = 0;
  LoopVisit visit{i, begin, formal, then, {}, goes_on.id};
  ExprTree out = tree(
      m_.shape_id(i),
      [&](uint32_t leaf, ShapeId shape) {
        if (then[leaf] == formal[leaf] || formal[leaf] == begin[leaf]) return begin[leaf];
        std::vector<uint64_t> parts;
        for (size_t k : reads.counted(leaf))
          if (formal[k] != begin[k]) parts.push_back(hash_combine(hash_combine(formal[k], begin[k]), then[k]));
        std::sort(parts.begin(), parts.end());
        parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
        uint64_t key = hash_combine(hash_combine(0x100B, goes_on.id), formal[leaf]);
        for (uint64_t p : parts) key = hash_combine(key, p);
        Expr e;
        e.kind = Expr::kLoop, e.leaf = leaf, e.m = &m_, e.inst = i, e.shape = shape, e.devices = s.devices[leaf];
        e.operands = begin;
        e.operands.insert(e.operands.end(), then.begin(), then.end()), e.operands.push_back(goes_on.id);
        return add(key, std::move(e), i);
      },
      &next);
  out.leaves(&visit.result);
  out_.loops_met.push_back(std::move(visit));
  return out;
}

}  // namespace hlo
