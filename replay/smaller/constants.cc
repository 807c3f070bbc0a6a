#include "replay/smaller/constants.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace hlo {
namespace {

constexpr int kDeepestUse = 24;
// Tables of offsets, a number a device or so.
constexpr int64_t kLargestOffsets = 64;

bool whole(ElementType type) { return is_integral(type); }

size_t width_of(const Universe& u, const Literal& l) { return static_cast<size_t>(storage_bytes(u[l.shape].type)); }

}  // namespace

Table table_of(const Universe& u, const Literal& l) {
  const Shape& s = u[l.shape];
  const size_t width = width_of(u, l), count = static_cast<size_t>(s.elements_count());
  Table t;
  if (count == 0 || l.bytes.size() != count * width) {
    t.kind = count == 0 ? TableKind::kUniform : TableKind::kOther;
    return t;
  }
  if (std::memcmp(l.bytes.data(), l.bytes.data() + width, l.bytes.size() - width) == 0) {
    t.kind = TableKind::kUniform;
    return t;
  }
  if (!whole(s.type)) return t;
  // Along the one dimension where the second element differs from the first.
  auto at = [&](size_t n) { return load_int(s.type, l.bytes.data() + n * width); };
  for (int64_t d = s.rank(), stride = 1; d-- > 0; stride *= s.dims[static_cast<size_t>(d)]) {
    const int64_t size = s.dims[static_cast<size_t>(d)];
    if (size < 2 || at(static_cast<size_t>(stride)) == at(0)) continue;
    t.dim = d, t.begin = at(0),
    t.step =
        static_cast<int64_t>(static_cast<uint64_t>(at(static_cast<size_t>(stride))) - static_cast<uint64_t>(t.begin));
    for (size_t n = 0; n < count; ++n) {
      const int64_t k = static_cast<int64_t>(n) / stride % size;
      int64_t expected = 0;
      if (__builtin_mul_overflow(t.step, k, &expected) || __builtin_add_overflow(expected, t.begin, &expected) ||
          at(n) != expected)
        return t;
    }
    t.kind = TableKind::kCount;
    return t;
  }
  return t;
}

Literal table_like(const Universe& u, const Literal& l, const Table& table, ShapeId shape) {
  Literal out = l;
  out.shape = shape;
  if (l.elided) return out;
  const Shape& s = u[shape];
  const size_t width = width_of(u, l), count = static_cast<size_t>(s.elements_count());
  out.bytes.assign(count * width, '\0');
  int64_t stride = 1;
  for (size_t d = static_cast<size_t>(table.dim) + 1; d < s.dims.size(); ++d) stride *= s.dims[d];
  for (size_t n = 0; n < count; ++n) {
    char* to = out.bytes.data() + n * width;
    if (table.kind == TableKind::kUniform)
      std::memcpy(to, l.bytes.data(), width);
    else
      store_int(s.type, to,
                table.begin + table.step * (static_cast<int64_t>(n) / stride % s.dims[static_cast<size_t>(table.dim)]));
  }
  return out;
}

std::optional<int64_t> whole_number(const Module& m, InstId i) {
  while (m.op(i) == Opcode::Broadcast || m.op(i) == Opcode::Copy || m.op(i) == Opcode::Reshape ||
         m.op(i) == Opcode::Bitcast)
    i = m.operand(i, 0);
  if (m.op(i) != Opcode::Constant || !m.shape(i).is_array() || !whole(m.shape(i).type)) return std::nullopt;
  const Literal& l = m.literal(i);
  if (l.elided || l.bytes.empty() || table_of(m.u(), l).kind != TableKind::kUniform) return std::nullopt;
  return load_int(m.shape(i).type, l.bytes.data());
}

namespace {

// What a value of a condition stands for: an element of the state, or a constant.
struct Counted {
  std::optional<int64_t> element, constant;
};
Counted counted(const Module& m, InstId i, const std::vector<InstId>& passed) {
  Counted c;
  if (m.op(i) == Opcode::Parameter && !passed.empty()) i = passed[static_cast<size_t>(m.parameter_number(i))];
  while (m.op(i) == Opcode::Copy || m.op(i) == Opcode::Bitcast || m.op(i) == Opcode::Reshape) i = m.operand(i, 0);
  if (m.op(i) == Opcode::GetTupleElement && m.op(m.operand(i, 0)) == Opcode::Parameter)
    c.element = m.attrs(i).integer(Attr::index);
  else
    c.constant = whole_number(m, i);
  return c;
}

InstId through_copies(const Module& m, InstId i) {
  while (m.op(i) == Opcode::Copy || m.op(i) == Opcode::OptBarrier) i = m.operand(i, 0);
  return i;
}

// An element of what a loop begins with, where it is a constant.
std::optional<int64_t> begins_with(const Module& m, InstId loop, int64_t element) {
  const InstId init = through_copies(m, m.operand(loop, 0));
  if (m.op(init) != Opcode::Tuple) return std::nullopt;
  return whole_number(m, through_copies(m, m.operand(init, static_cast<size_t>(element))));
}

// Does the body hand the element on as it got it?
bool handed_on(const Module& m, InstId loop, int64_t element) {
  const InstId root = m.comp(m.attrs(loop).comp(Attr::body)).root;
  if (m.op(root) != Opcode::Tuple) return false;
  const InstId e = through_copies(m, m.operand(root, static_cast<size_t>(element)));
  return m.op(e) == Opcode::GetTupleElement && m.op(m.operand(e, 0)) == Opcode::Parameter &&
         m.attrs(e).integer(Attr::index) == element;
}

}  // namespace

LoopBound loop_bound(const Module& m, InstId loop) {
  LoopBound out;
  InstId root = m.comp(m.attrs(loop).comp(Attr::condition)).root;
  std::vector<InstId> passed;
  if (m.op(root) == Opcode::Fusion || m.op(root) == Opcode::Call) {
    passed.assign(m.operands(root).begin(), m.operands(root).end());
    root = m.comp(m.called(root)[0]).root;
  }
  if (m.op(root) != Opcode::Compare) return out;
  const std::string_view direction = m.u().text(m.attrs(root).text(Attr::direction));
  const bool turned = direction == "GT";
  if (direction != "LT" && !turned && direction != "NE") return out;
  const Counted index = counted(m, m.operand(root, turned ? 1 : 0), passed);
  const Counted limit = counted(m, m.operand(root, turned ? 0 : 1), passed);
  if (!index.element) return out;
  const std::optional<int64_t> begin = begins_with(m, loop, *index.element);
  std::optional<int64_t> end = limit.constant;
  if (!end && limit.element && handed_on(m, loop, *limit.element)) end = begins_with(m, loop, *limit.element);
  if (!begin || !end) return out;
  return {true, *begin, *end};
}

IndexUses::IndexUses(const Module& m) : m_(m), callers_(m.callers()) {}

// Of an element of a loop's state: where body and condition take it out.
bool IndexUses::element(InstId tuple, int64_t index, int depth) {
  for (InstId loop : m_.users(tuple)) {
    if (m_.op(loop) != Opcode::While) continue;
    for (CompId c : m_.called(loop))
      for (InstId e : m_.users(m_.comp(c).params[0]))
        if (m_.op(e) == Opcode::GetTupleElement && m_.attrs(e).integer(Attr::index) == index && any(e, depth + 1))
          return true;
  }
  return false;
}

bool IndexUses::any(InstId value, int depth) {
  if (depth > kDeepestUse) return false;
  if (auto at = known_.find(value); at != known_.end()) return at->second;
  known_[value] = false;
  bool counted = false;
  for (InstId user : m_.users_copy(value))
    for (size_t k = 0; k < m_.operand_count(user) && !counted; ++k)
      counted = m_.operand(user, k) == value && counts(user, k, depth + 1);
  return known_[value] = counted;
}

bool IndexUses::counts(InstId user, size_t k, int depth) {
  if (depth > kDeepestUse) return false;
  switch (m_.op(user)) {
    case Opcode::Compare:
    case Opcode::Clamp:
    case Opcode::Minimum:
    case Opcode::Maximum:
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Remainder:
    case Opcode::Divide:
    case Opcode::Multiply:
      return true;
    case Opcode::Select:
      return k > 0 && any(user, depth);
    case Opcode::DynamicSlice:
      return k >= 1 || any(user, depth);
    case Opcode::DynamicUpdateSlice:
      return k >= 2 || (k < 2 && any(user, depth));
    case Opcode::Gather:
      return k == 1 || any(user, depth);
    case Opcode::Scatter:
      return k == (m_.operand_count(user) - 1) / 2;
    case Opcode::Convert:
      return is_integral(m_.shape(user).type) && any(user, depth);
    case Opcode::Negate:
    case Opcode::Broadcast:
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Copy:
    case Opcode::Transpose:
    case Opcode::Slice:
    case Opcode::Concatenate:
    case Opcode::Reverse:
    case Opcode::OptBarrier:
      return any(user, depth);
    case Opcode::Tuple:
      // What is handed out is so in all stages, wherever it comes from.
      return m_.is_root(user) || element(user, static_cast<int64_t>(k), depth);
    case Opcode::Fusion:
    case Opcode::Call:
    case Opcode::Map:
      return any(m_.comp(m_.called(user)[0]).params[k], depth);
    default:
      return false;
  }
}

namespace {

// The literal with other numbers; nothing where all stay.
std::optional<Literal> with_numbers(const Universe& u, const Literal& l,
                                    const std::function<std::optional<int64_t>(int64_t)>& becomes) {
  const Shape& s = u[l.shape];
  if (l.elided || !s.is_array() || !whole(s.type) || type_bits(s.type) < 32) return std::nullopt;
  const size_t width = width_of(u, l), count = l.bytes.size() / width;
  if (count == 0) return std::nullopt;
  auto at = [&](size_t n) { return load_int(s.type, l.bytes.data() + n * width); };
  const bool uniform = table_of(u, l).kind == TableKind::kUniform;
  if (!uniform && s.elements_count() > kLargestOffsets) return std::nullopt;
  // Offsets: so many times a size.
  int64_t unit = at(0);
  for (size_t n = 0; n < count && !uniform; ++n) unit = std::gcd(unit, at(n));
  const std::optional<int64_t> now = unit ? becomes(unit) : std::nullopt;
  if (!now || *now == unit) return std::nullopt;
  Literal out = l;
  for (size_t n = 0; n < count; ++n) store_int(s.type, out.bytes.data() + n * width, at(n) / unit * *now);
  return out;
}

}  // namespace

size_t change_indices(Module& m, const std::function<std::optional<int64_t>(int64_t)>& becomes) {
  size_t changed = 0;
  IndexUses uses(m);
  struct Use {
    InstId user;
    size_t operand;
  };
  struct Edit {
    InstId constant;
    LitId now;
    std::vector<Use> counting;
    bool all, root;
  };
  std::vector<Edit> edits;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Constant) continue;
      std::optional<Literal> now = with_numbers(m.u(), m.literal(i), becomes);
      if (!now) continue;
      Edit e{i, m.u().literal(std::move(*now)), {}, true, m.is_root(i)};
      for (InstId user : m.users_copy(i))
        for (size_t k = 0; k < m.operand_count(user); ++k) {
          if (m.operand(user, k) != i) continue;
          if (uses.counts(user, k))
            e.counting.push_back({user, k});
          else
            e.all = false;
        }
      if (!e.counting.empty() || e.root) edits.push_back(std::move(e));
    }
  for (const Edit& e : edits) {
    ++changed;
    if (e.all) {
      m.set_literal(e.constant, e.now);
      continue;
    }
    const CompId comp = m.parent(e.constant);
    const InstId copy = m.add(comp, {.op = Opcode::Constant,
                                     .shape = m.shape_id(e.constant),
                                     .meta = m[e.constant].meta,
                                     .name = m.inst_name(e.constant),
                                     .payload = e.now.value});
    for (const Use& use : e.counting) m.set_operand(use.user, use.operand, copy);
    if (e.root) m.set_root(comp, copy);
  }
  return changed;
}

}  // namespace hlo
