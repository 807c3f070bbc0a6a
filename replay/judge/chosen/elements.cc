#include "replay/judge/chosen/elements.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/eval/attention_call.h"
#include "ir/eval/gemm_call.h"
#include "ir/library_calls.h"
#include "ir/literal.h"
#include "replay/judge/chosen/rules.h"

namespace hlo {

ElementPlan no_plan(std::string why) {
  ElementPlan p;
  p.why = std::move(why);
  return p;
}

namespace {
void add_leaf_shapes(const Universe& u, ShapeId id, std::vector<ShapeId>* to) {
  const Shape& s = u[id];
  if (s.is_array()) to->push_back(id);
  for (ShapeId e : s.elements) add_leaf_shapes(u, e, to);
}

// The value of that shape whose arrays are the next of a list.
Value assembled(const Universe& u, ShapeId id, std::vector<Value>& arrays, size_t& next) {
  const Shape& s = u[id];
  Value v;
  v.shape = id;
  if (s.is_array()) {
    v = std::move(arrays[next++]);
    v.shape = id;
  }
  for (ShapeId e : s.elements) v.elements.push_back(assembled(u, e, arrays, next));
  return v;
}

// In ascending order, each once.
void sort_once(std::vector<int64_t>& list) {
  const auto [low, high] = std::minmax_element(list.begin(), list.end());
  const int64_t first = *low;
  const auto range = static_cast<uint64_t>(*high - first) + 1;
  if (list.size() < 64 || range / 64 > list.size()) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return;
  }
  // Close together: by a bit for each that there may be.
  std::vector<uint64_t> bits(static_cast<size_t>(range / 64 + 1), 0);
  for (int64_t i : list)
    bits[static_cast<size_t>(i - first) / 64] |= uint64_t{1} << (static_cast<uint64_t>(i - first) % 64);
  size_t next = 0;
  for (size_t w = 0; w < bits.size(); ++w)
    for (uint64_t rest = bits[w]; rest; rest &= rest - 1)
      list[next++] = first + static_cast<int64_t>(w * 64) + std::countr_zero(rest);
  list.resize(next);
}

std::string_view target_of(const ElementOperation& o) { return o.u.text(o.a.text(Attr::custom_call_target)); }

// What gives another value each time, or one that other devices or the host have a part in.
bool is_beyond_operands(const ElementOperation& o) {
  switch (op_info(o.op).cls) {
    case OpClass::Io:
    case OpClass::Collective:
    case OpClass::Async:
    case OpClass::Fusion:
      return true;
    case OpClass::Call:
      return o.op != Opcode::Map;
    case OpClass::Rng:
      return o.op != Opcode::RngBitGenerator;
    case OpClass::Custom: {
      const std::string_view target = target_of(o);
      return target == "GetRngSeed" || target == "AllocateBuffer" || !is_library_target(target);
    }
    default:
      return o.op == Opcode::PartitionId || o.op == Opcode::ReplicaId;
  }
}
}  // namespace

ElementOperation::ElementOperation(const Expr& expression, ExprId number)
    : x(expression),
      id(number),
      m(*expression.m),
      u(expression.m->u()),
      a(m.attrs(expression.inst)),
      op(m.op(expression.inst)) {
  if (op != Opcode::Constant && op != Opcode::Parameter)
    for (InstId i : m.operands(x.inst)) add_leaf_shapes(u, m.shape_id(i), &in_shapes);
  for (ShapeId s : in_shapes) in.push_back(&u[s]);
  std::vector<ShapeId> results;
  add_leaf_shapes(u, m.shape_id(x.inst), &results);
  fits = in.size() == x.operands.size() && x.leaf < results.size();
  if (fits) out = &u[results[x.leaf]];
}

std::vector<char> ElementSource::read(const ElementOperation& o, size_t operand, std::span<const int64_t> elements) {
  std::vector<char> out(elements.size() * static_cast<size_t>(storage_bytes(o.in[operand]->type)));
  read(o, operand, elements, out.data());
  return out;
}

int64_t ElementSource::integer(const ElementOperation& o, size_t operand, int64_t element) {
  char bytes[16];
  read(o, operand, std::span<const int64_t>(&element, 1), bytes);
  return load_int(o.in[operand]->type, bytes);
}

double ElementSource::number(const ElementOperation& o, size_t operand, int64_t element) {
  char bytes[16];
  read(o, operand, std::span<const int64_t>(&element, 1), bytes);
  return load_double(o.in[operand]->type, bytes);
}

Value element_values(Universe& u, ElementType type, std::vector<char> bytes) {
  Value v;
  v.shape = u.scalar(type);
  v.data = std::make_shared<std::vector<char>>(std::move(bytes));
  return v;
}

// Runs go down from readers to operands, collecting what is needed of each, and up again with the values. What must be
// known before needs can be told is a run of its own on top, on a stack of ours.
class ChosenElements::Run : public ElementSource {
 public:
  Run(const std::vector<Expr>& expressions, Leaf leaf, Options options)
      : expressions_(expressions), leaf_(std::move(leaf)), options_(std::move(options)) {}

  std::vector<char> at(ExprId e, std::span<const int64_t> indices);
  void read(const ElementOperation& o, size_t operand, std::span<const int64_t> elements, char* out) override {
    read_as(o.x.operands[operand], o.in[operand]->type, elements, out);
  }
  bool known(const ElementOperation& o, size_t operand, std::span<const int64_t> elements) override {
    const KnownElements& k = known_[o.x.operands[operand]];
    int64_t near = -1;
    return std::all_of(elements.begin(), elements.end(),
                       [&](int64_t i) { return i < 0 || (near = k.find(i, near)) >= 0; });
  }
  void afford(int64_t elements) override;
  const Options& options() const override { return options_; }

  std::unordered_map<ExprId, std::string> uninterpreted;
  int64_t evaluated = 0;

 private:
  struct Step {
    ExprId e;
    ElementList at;
    bool leaf;
    std::unique_ptr<ElementOperation> operation;
    ElementPlan plan;
  };
  struct Frame {
    std::vector<ExprId> heap;  // the largest first
    std::unordered_map<ExprId, std::vector<ElementList>> needs;
    std::vector<Step> steps;
  };
  const Universe& universe();
  ElementType type_of(ExprId e) { return universe()[expressions_[e].shape].type; }
  void read_as(ExprId e, ElementType type, std::span<const int64_t> elements, char* out);
  void need(Frame& f, ExprId e, ElementList list);
  ElementList unknown(ExprId e, const std::vector<ElementList>& lists);
  bool go_down(std::vector<Frame>& frames);  // false: another run must come first
  void go_up(Frame& f);
  void evaluate(Step& s);
  ElementPlan plan(const ElementOperation& o, const Elements& at);
  ElementPlan plan_call(const ElementOperation& o, const Elements& at);
  ElementPlan plan_branch(const Expr& x, const Elements& at);
  ElementPlan plan_view(const Expr& x, const Elements& at);
  ElementPlan plan_constant(const ElementOperation& o, const Elements& at);
  ElementPlan plan_whole(const ElementOperation& o, const Elements& at);
  void check_stop();

  const std::vector<Expr>& expressions_;
  Leaf leaf_;
  Options options_;
  const Universe* universe_ = nullptr;
  std::unordered_map<ExprId, KnownElements> known_;
  int64_t pending_ = 0;  // elements that are asked for
  int64_t steps_ = 0;
  using WholeKey = std::tuple<const Module*, uint32_t, std::vector<ExprId>>;
  std::map<WholeKey, std::vector<Value>> whole_;  // arrays of the results
};

const Universe& ChosenElements::Run::universe() {
  for (size_t k = 0; !universe_ && k < expressions_.size(); ++k)
    if (expressions_[k].m) universe_ = &expressions_[k].m->u();
  HLO_CHECK(universe_, "expressions of no module");
  return *universe_;
}

void ChosenElements::Run::afford(int64_t elements) {
  if (elements > options_.most_elements || evaluated + pending_ > options_.most_elements - elements)
    fail(FailureKind::kUnsupported, "over budget: more than {} elements", options_.most_elements);
}

void ChosenElements::Run::check_stop() {
  if (options_.stop && options_.stop()) fail(FailureKind::kUnsupported, "interrupted");
}

void ChosenElements::Run::read_as(ExprId e, ElementType type, std::span<const int64_t> elements, char* out) {
  const KnownElements& k = known_[e];
  const ElementType own = type_of(e);
  const int width = storage_bytes(own);
  std::vector<char> other;
  char* to = out;
  if (own != type) other.resize(elements.size() * static_cast<size_t>(width)), to = other.data();
  int64_t near = -1;
  auto copy = [&](auto w) {
    for (int64_t i : elements) {
      if (i < 0) {
        std::memset(to, 0, w);
      } else {
        near = k.find(i, near);
        HLO_CHECK(near >= 0, "element {} of expression {} is not known", i, e);
        std::memcpy(to, k.value(near, static_cast<int>(w)), w);
      }
      to += w;
    }
  };
  if (width == 8)
    copy(std::integral_constant<size_t, 8>());
  else if (width == 4)
    copy(std::integral_constant<size_t, 4>());
  else
    copy(static_cast<size_t>(width));
  if (own != type) convert_kernel(own, type, static_cast<int64_t>(elements.size()), other.data(), out);
}

void ChosenElements::Run::need(Frame& f, ExprId e, ElementList list) {
  if (list->empty()) return;
  auto [at, fresh] = f.needs.try_emplace(e);
  if (fresh) {
    f.heap.push_back(e);
    std::push_heap(f.heap.begin(), f.heap.end());
  }
  pending_ += static_cast<int64_t>(list->size());
  at->second.push_back(std::move(list));
}

// What of the lists is not known yet: in ascending order, each once.
ElementList ChosenElements::Run::unknown(ExprId e, const std::vector<ElementList>& lists) {
  auto ascending = [](const std::vector<int64_t>& v) {
    return v[0] >= 0 && std::adjacent_find(v.begin(), v.end(), std::greater_equal<int64_t>()) == v.end();
  };
  const KnownElements& k = known_[e];
  if (lists.size() == 1 && k.empty() && ascending(*lists[0])) return lists[0];
  std::vector<int64_t> all;
  size_t count = 0;
  for (const ElementList& l : lists) count += l->size();
  all.reserve(count);
  for (const ElementList& l : lists) all.insert(all.end(), l->begin(), l->end());
  if (!ascending(all)) sort_once(all);
  int64_t near = -1;
  std::erase_if(all, [&](int64_t i) {
    if (i < 0) return true;
    const int64_t found = k.find(i, near);
    if (found >= 0) near = found;
    return found >= 0;
  });
  return element_list(std::move(all));
}

bool ChosenElements::Run::go_down(std::vector<Frame>& frames) {
  Frame& f = frames.back();
  while (!f.heap.empty()) {
    check_stop();
    const ExprId e = f.heap.front();
    auto needed = f.needs.find(e);
    ElementList at = unknown(e, needed->second);
    for (const ElementList& l : needed->second) pending_ -= static_cast<int64_t>(l->size());
    needed->second = {at};
    pending_ += static_cast<int64_t>(at->size());
    Step s{e, at, false, nullptr, {}};
    if (!at->empty()) {
      const Expr& x = expressions_[e];
      const bool made = x.kind == Expr::kOperation || x.kind == Expr::kBranch || x.kind == Expr::kView;
      s.leaf = !made || (options_.cut && options_.cut(e));
      if (!s.leaf && x.kind == Expr::kOperation) {
        s.operation = std::make_unique<ElementOperation>(x, e);
        s.plan = plan(*s.operation, at);
      } else if (!s.leaf) {
        s.plan = x.kind == Expr::kView ? plan_view(x, at) : plan_branch(x, at);
      }
      if (!s.plan.first.empty()) {
        Frame before;
        for (NeededElements& n : s.plan.first) need(before, x.operands[n.operand], std::move(n.elements));
        frames.push_back(std::move(before));
        return false;
      }
    }
    std::pop_heap(f.heap.begin(), f.heap.end());
    f.heap.pop_back();
    f.needs.erase(e);
    pending_ -= static_cast<int64_t>(at->size());
    if (at->empty()) continue;
    afford(static_cast<int64_t>(at->size()));
    evaluated += static_cast<int64_t>(at->size());
    if (!s.plan.why.empty()) uninterpreted.try_emplace(e, s.plan.why), s.leaf = true, s.plan = {};
    for (NeededElements& n : s.plan.needs) need(f, expressions_[e].operands[n.operand], std::move(n.elements));
    s.plan.needs.clear();
    f.steps.push_back(std::move(s));
  }
  return true;
}

void ChosenElements::Run::evaluate(Step& s) {
  const ElementType type = type_of(s.e);
  const int width = storage_bytes(type);
  std::vector<char> values;
  if (!s.leaf) try {
      const ElementType own = s.operation ? s.operation->out->type : type;
      values.resize(s.at->size() * static_cast<size_t>(storage_bytes(own)));
      s.plan.values(values.data());
      if (own != type) {
        std::vector<char> other(s.at->size() * static_cast<size_t>(width));
        convert_kernel(own, type, static_cast<int64_t>(s.at->size()), values.data(), other.data());
        values = std::move(other);
      }
    } catch (const Failure& failure) {
      if (failure.kind() != FailureKind::kUnsupported) throw;
      check_stop();
      uninterpreted.try_emplace(s.e, failure.what());
      s.leaf = true;
    }
  if (s.leaf) {
    values.assign(s.at->size() * static_cast<size_t>(width), 0);
    leaf_(s.e, *s.at, values.data());
  }
  known_[s.e].add(*s.at, values.data(), width);
}

void ChosenElements::Run::go_up(Frame& f) {
  // Operands have smaller numbers than their readers, and steps were taken from the largest one down.
  while (!f.steps.empty()) {
    check_stop();
    evaluate(f.steps.back());
    f.steps.pop_back();
  }
}

std::vector<char> ChosenElements::Run::at(ExprId e, std::span<const int64_t> indices) {
  HLO_CHECK(e < expressions_.size(), "no expression {}", e);
  pending_ = 0;
  afford(static_cast<int64_t>(indices.size()));
  std::vector<Frame> frames(1);
  need(frames[0], e, element_list({indices.begin(), indices.end()}));
  while (!frames.empty()) {
    if (!go_down(frames)) continue;
    go_up(frames.back());
    frames.pop_back();
  }
  std::vector<char> out(indices.size() * static_cast<size_t>(storage_bytes(type_of(e))));
  read_as(e, type_of(e), indices, out.data());
  return out;
}

ElementPlan ChosenElements::Run::plan_branch(const Expr& x, const Elements& at) {
  const ElementType type = type_of(x.operands[0]);
  const int64_t zero = 0;
  if (known_[x.operands[0]].find(0) < 0) {
    ElementPlan p;
    p.first.push_back({0, element_list({0})});
    return p;
  }
  char bytes[16];
  read_as(x.operands[0], type, std::span<const int64_t>(&zero, 1), bytes);
  int64_t which = load_int(type, bytes);
  const auto branches = static_cast<int64_t>(x.operands.size()) - 1;
  if (type == ElementType::Pred)
    which = which ? 0 : 1;
  else if (which < 0 || which >= branches)
    which = branches - 1;
  const auto operand = static_cast<size_t>(which) + 1;
  ElementPlan p;
  p.needs.push_back({operand, at});
  p.values = [this, &x, operand, at](char* out) { read_as(x.operands[operand], universe()[x.shape].type, *at, out); };
  return p;
}

ElementPlan ChosenElements::Run::plan_view(const Expr& x, const Elements& at) {
  std::vector<int64_t> from;
  from.reserve(at->size());
  for_coordinates(*at, x.view.sizes, [&](size_t, const Dims& c) {
    int64_t i = x.view.offset;
    for (size_t d = 0; d < c.size(); ++d) i += c[d] * x.view.steps[d];
    from.push_back(i);
  });
  ElementPlan p;
  const ElementList list = element_list(std::move(from));
  p.needs.push_back({0, list});
  p.values = [this, &x, list](char* out) { read_as(x.operands[0], universe()[x.shape].type, *list, out); };
  return p;
}

ElementPlan ChosenElements::Run::plan_constant(const ElementOperation& o, const Elements& at) {
  LitId id = o.m.literal_id(o.x.inst);
  // The leaf of that number.
  std::vector<LitId> left{id}, arrays;
  while (!left.empty()) {
    const LitId one = left.back();
    left.pop_back();
    const Literal& l = o.u[one];
    if (o.u[l.shape].is_array()) arrays.push_back(one);
    left.insert(left.end(), l.elements.rbegin(), l.elements.rend());
  }
  if (o.x.leaf >= arrays.size()) return no_plan("a constant of another shape");
  const Literal& l = o.u[arrays[o.x.leaf]];
  if (l.elided) return no_plan("its value is elided ({...}) and unknown");
  ElementPlan p;
  p.values = [&l, at, width = static_cast<size_t>(storage_bytes(o.u[l.shape].type))](char* out) {
    for (int64_t i : *at) std::memcpy(out, l.bytes.data() + static_cast<size_t>(i) * width, width), out += width;
  };
  return p;
}

ElementPlan ChosenElements::Run::plan_whole(const ElementOperation& o, const Elements& at) {
  if (is_beyond_operands(o))
    return no_plan(o.op == Opcode::CustomCall ? fmt::format("custom-call target \"{}\"", target_of(o))
                                              : std::string(op_text(o.op)));
  const WholeKey key{&o.m, o.x.inst.value, o.x.operands};
  ElementPlan p;
  auto pick = [&o, at](const std::vector<Value>& arrays, char* out) {
    const auto width = static_cast<size_t>(storage_bytes(o.out->type));
    for (int64_t i : *at)
      std::memcpy(out, arrays[o.x.leaf].bytes() + static_cast<size_t>(i) * width, width), out += width;
  };
  if (auto done = whole_.find(key); done != whole_.end()) {
    p.values = [&arrays = done->second, pick](char* out) { pick(arrays, out); };
    return p;
  }
  Checked sum = 0, results = 0;
  for (const Shape* s : o.in) sum += s->elements_count();
  std::vector<ShapeId> made;
  add_leaf_shapes(o.u, o.m.shape_id(o.x.inst), &made);
  for (ShapeId s : made) results += o.u[s].elements_count();
  if (std::max(sum.capped(), results.capped()) > options_.most_whole)
    return no_plan(fmt::format("{} has no rule for single elements, and more than {} elements", op_text(o.op),
                               options_.most_whole));
  afford(sum.capped());
  std::vector<ElementList> all;
  for (size_t k = 0; k < o.in.size(); ++k) {
    std::vector<int64_t> list(static_cast<size_t>(o.in[k]->elements_count()));
    for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int64_t>(i);
    all.push_back(element_list(std::move(list)));
    p.needs.push_back({k, all.back()});
  }
  p.values = [this, &o, key, pick, all](char* out) {
    auto done = whole_.find(key);
    if (done == whole_.end()) {
      std::vector<Value> arrays, operands, results;
      for (size_t k = 0; k < o.in.size(); ++k)
        arrays.push_back(element_values(const_cast<Universe&>(o.u), o.in[k]->type, ElementSource::read(o, k, *all[k])));
      size_t next = 0;
      for (InstId i : o.m.operands(o.x.inst)) operands.push_back(assembled(o.u, o.m.shape_id(i), arrays, next));
      EvalOptions how;
      how.stop = options_.stop;
      flatten(o.u, Evaluator(o.m, how).run_instruction(o.x.inst, std::move(operands)), &results);
      std::erase_if(results, [&](const Value& v) { return !o.u[v.shape].is_array(); });
      done = whole_.emplace(key, std::move(results)).first;
    }
    pick(done->second, out);
  };
  return p;
}

ElementPlan ChosenElements::Run::plan_call(const ElementOperation& o, const Elements& at) {
  const std::string_view target = target_of(o);
  constexpr std::string_view kConvolution = "__cudnn$conv";
  if (is_mark(target) && o.in.size() == 1) return plan_same(o, 0, at, *this);
  const std::string why = library_call_error(o.m, o.x.inst);
  if (!why.empty()) return no_plan(fmt::format("{}: {}", target, why));
  if (is_gemm_call(target)) {
    ElementPlan p = plan_gemm(o, at, *this);
    return p.why.empty() ? std::move(p) : plan_whole(o, at);
  }
  if ((target == "TopK" || target == "__gpu$TopK") && o.in.size() == 1) return plan_lines(o, at, *this);
  if (target.starts_with(kConvolution) && o.x.leaf == 0) {
    const std::string_view kind = target.substr(kConvolution.size());
    if (kind == "Forward" || kind == "BackwardInput" || kind == "BackwardFilter" || kind == "BiasActivationForward")
      return plan_cudnn_convolution(o, kind, at, *this);
  }
  ElementPlan p = is_attention_call(target) ? plan_attention(o, at, *this) : no_plan("no rule");
  return p.why.empty() ? std::move(p) : plan_whole(o, at);
}

ElementPlan ChosenElements::Run::plan(const ElementOperation& o, const Elements& at) {
  if (!o.fits || std::find(o.x.operands.begin(), o.x.operands.end(), kNoExpr) != o.x.operands.end())
    return no_plan(fmt::format("{} of operands that are no arrays", op_text(o.op)));
  for (const Shape* s : o.in)
    if (s->is_dynamic()) return no_plan("a dynamic dimension");
  if (o.out->is_dynamic()) return no_plan("a dynamic dimension");
  ElementPlan p;
  switch (o.op) {
    case Opcode::Constant:
      return plan_constant(o, at);
    case Opcode::Reshape:
    case Opcode::Copy:
    case Opcode::Domain:
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
      return plan_same(o, o.op == Opcode::OptBarrier || o.op == Opcode::Copy ? o.x.leaf : 0, at, *this);
    case Opcode::Dot:
      p = plan_dot(o, at, *this);
      break;
    case Opcode::Convolution:
      p = plan_convolution(o, at, *this);
      break;
    case Opcode::DynamicSlice:
      return plan_dynamic_slice(o, at, *this);
    case Opcode::DynamicUpdateSlice:
      return plan_dynamic_update(o, at, *this);
    case Opcode::Gather:
      return plan_gather(o, at, *this);
    case Opcode::Scatter:
      p = plan_scatter(o, at, *this);
      break;
    case Opcode::Reduce:
      return plan_reduce(o, at, *this);
    case Opcode::ReduceWindow:
      return plan_reduce_window(o, at, *this);
    case Opcode::Map:
      return plan_map(o, at, *this);
    case Opcode::Sort:
    case Opcode::TopK:
      return plan_lines(o, at, *this);
    case Opcode::CustomCall:
      return plan_call(o, at);
    case Opcode::StochasticConvert:
    case Opcode::DynamicReshape:
    case Opcode::SetDimensionSize:
      return plan_whole(o, at);
    case Opcode::GetDimensionSize:  // none is dynamic here
      p.values = [&o](char* out) {
        store_int(o.out->type, out, o.in[0]->dims[static_cast<size_t>(o.a.ints(Attr::dimensions)[0])]);
      };
      return p;
    default:
      if (o.op == Opcode::Iota || op_info(o.op).cls == OpClass::Move)
        p = plan_move(o, at, *this);
      else if (op_info(o.op).elementwise)
        p = plan_elementwise(o, at, *this);
      else
        return plan_whole(o, at);
  }
  return p.why.empty() ? std::move(p) : plan_whole(o, at);
}

ChosenElements::ChosenElements(const std::vector<Expr>& expressions, Leaf leaf, Options options)
    : run_(std::make_unique<Run>(expressions, std::move(leaf), std::move(options))) {}
ChosenElements::~ChosenElements() = default;
ChosenElements::ChosenElements(ChosenElements&&) noexcept = default;

std::vector<char> ChosenElements::at(ExprId e, std::span<const int64_t> indices) { return run_->at(e, indices); }
const std::unordered_map<ExprId, std::string>& ChosenElements::uninterpreted() const { return run_->uninterpreted; }
int64_t ChosenElements::evaluated() const { return run_->evaluated; }

}  // namespace hlo
