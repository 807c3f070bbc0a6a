#include "replay/judge/chosen/elements/elements.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/elements_run.h"

namespace hlo {

ElementPlan no_plan(std::string why) {
  ElementPlan p;
  p.why = std::move(why);
  return p;
}

void add_leaf_shapes(const Universe& u, ShapeId id, std::vector<ShapeId>* to) {
  const Shape& s = u[id];
  if (s.is_array()) to->push_back(id);
  for (ShapeId e : s.elements) add_leaf_shapes(u, e, to);
}

namespace {
// By digits of eleven bits, the last one first: what `std::sort` does of millions takes several times as long.
void sort_by_digits(std::vector<int64_t>& list, int64_t first, uint64_t range) {
  constexpr size_t kBits = 11;
  std::vector<int64_t> other(list.size());
  for (size_t shift = 0; shift < std::bit_width(range); shift += kBits) {
    auto digit = [&](int64_t i) { return (static_cast<uint64_t>(i - first) >> shift) & ((1u << kBits) - 1); };
    std::vector<size_t> at((1u << kBits) + 1, 0);
    for (int64_t i : list) ++at[digit(i) + 1];
    std::partial_sum(at.begin(), at.end(), at.begin());
    for (int64_t i : list) other[at[digit(i)]++] = i;
    list.swap(other);
  }
}

// In ascending order, each once.
void sort_once(std::vector<int64_t>& list) {
  constexpr size_t kFew = 64, kMany = 1 << 13;
  constexpr uint64_t kSparse = 8;  // words looked through for one element
  const auto [low, high] = std::minmax_element(list.begin(), list.end());
  const int64_t first = *low;
  const auto range = static_cast<uint64_t>(*high - first) + 1;
  if (list.size() < kFew || range / 64 / kSparse > list.size()) {
    if (list.size() < kMany)
      std::sort(list.begin(), list.end());
    else
      sort_by_digits(list, first, range);
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

const Universe& ChosenElements::Run::universe() {
  for (size_t k = 0; !universe_ && k < expressions_.size(); ++k)
    if (expressions_[k].m) universe_ = &expressions_[k].m->u();
  HLO_CHECK(universe_, "expressions of no module");
  return *universe_;
}

void ChosenElements::Run::afford(int64_t elements) {
  if (elements <= options_.most_elements && evaluated + pending_ <= options_.most_elements - elements) return;
  over_ = true;
  fail(FailureKind::kUnsupported, "over budget: more than {} elements", most_here_);
}

void ChosenElements::Run::count_sides(ExprId e, int64_t* no, int64_t* yes) const {
  const auto at = known_.find(e);
  if (at == known_.end()) return;
  for (int64_t k = 0; k < at->second.size(); ++k) ++*(*at->second.value(k, 1) ? yes : no);
}

void ChosenElements::Run::limit(int64_t more) {
  most_here_ = std::max<int64_t>(more, 0);
  options_.most_elements = (Checked(evaluated) + most_here_).capped();
}

void ChosenElements::Run::check_stop() {
  if (options_.stop && options_.stop()) fail(FailureKind::kUnsupported, "interrupted");
}

void ChosenElements::Run::read_as(ExprId e, ElementType type, std::span<const int64_t> numbers, char* out) {
  const KnownElements& k = known_[e];
  const ElementType own = type_of(e);
  const int width = storage_bytes(own);
  std::vector<char> other;
  char* to = out;
  if (own != type) other.resize(numbers.size() * static_cast<size_t>(width)), to = other.data();
  int64_t near = -1;
  auto copy = [&](auto w) {
    for (int64_t i : numbers) {
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
  if (own != type) convert_kernel(own, type, static_cast<int64_t>(numbers.size()), other.data(), out);
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
      plan_step(s);
      if (!s.plan.first.empty()) {
        Frame before;
        for (NeededElements& n : s.plan.first) need(before, expressions_[e].operands[n.operand], std::move(n.elements));
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
      // What is dear is no other value for that.
      if (over_) throw;
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
  pending_ = 0, over_ = false;
  afford(static_cast<int64_t>(indices.size()));
  std::vector<Frame> frames(1);
  std::vector<int64_t> numbers(indices.begin(), indices.end());
  if (options_.devices)
    for (const int64_t count = std::max<int64_t>(count_of(e), 1); int64_t & n : numbers)
      n = number_of(e, n / count, n % count);
  need(frames[0], e, element_list(numbers));
  while (!frames.empty()) {
    if (!go_down(frames)) continue;
    go_up(frames.back());
    frames.pop_back();
  }
  std::vector<char> out(indices.size() * static_cast<size_t>(storage_bytes(type_of(e))));
  read_as(e, type_of(e), numbers, out.data());
  return out;
}

ChosenElements::ChosenElements(const std::vector<Expr>& expressions, Leaf leaf, Options options)
    : run_(std::make_unique<Run>(expressions, std::move(leaf), std::move(options))) {}
ChosenElements::~ChosenElements() = default;
ChosenElements::ChosenElements(ChosenElements&&) noexcept = default;

std::vector<char> ChosenElements::at(ExprId e, std::span<const int64_t> indices) { return run_->at(e, indices); }
const std::unordered_map<ExprId, std::string>& ChosenElements::uninterpreted() const { return run_->uninterpreted; }
int64_t ChosenElements::evaluated() const { return run_->evaluated; }
void ChosenElements::count_sides(ExprId e, int64_t* no, int64_t* yes) const { run_->count_sides(e, no, yes); }
void ChosenElements::limit(int64_t more) { run_->limit(more); }

}  // namespace hlo
