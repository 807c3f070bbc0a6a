// multi_output_fusion of 2019 (xla/service/multi_output_fusion.cc and gpu/multi_output_fusion.cc of that time): fusions
// that read the same arrays become one with several results, and so do reductions and what they reduce.
#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "passes/rewrite.h"

namespace hlo {
namespace {

constexpr size_t kMaxOperandsAndResults = 64;
constexpr size_t kReach = 20'000;   // how far apart in the order of the computation two instructions may stand
constexpr size_t kUsersTried = 64;  // of one array

class Joiner {
 public:
  Joiner(Module& m, PassContext& ctx, CompId comp)
      : m_(m), u_(m.u()), ctx_(ctx), comp_(comp), order_(m.post_order(comp)) {
    for (size_t k = 0; k < order_.size(); ++k) place_[order_[k]] = k;
  }

  bool run() {
    bool changed = siblings();
    return producers() || changed;
  }

 private:
  bool is_fusion(InstId i, std::string_view kind) const {
    return m_.op(i) == Opcode::Fusion && u_.text(m_.attrs(i).text(Attr::kind)) == kind;
  }
  // Instructions whose values the fusion (or the instruction alone) gives.
  std::vector<InstId> results(InstId i) const {
    if (m_.op(i) != Opcode::Fusion) return {i};
    InstId root = m_.comp(m_.called(i)[0]).root;
    if (m_.op(root) != Opcode::Tuple) return {root};
    return {m_.operands(root).begin(), m_.operands(root).end()};
  }
  // Rows or columns of neighbours in memory: the kept dimensions lie side by side, and so do those reduced.
  bool tiled_reduction(InstId i) const {
    if (m_.op(i) != Opcode::Reduce || m_.operand_count(i) != 2) return false;
    const Dims& gone = m_.attrs(i).ints(Attr::dimensions);
    const Shape& s = m_.shape(m_.operand(i, 0));
    int runs = 0;
    bool before = false, first = true;
    for (int64_t d : s.layout.minor_to_major) {
      if (s.dims[static_cast<size_t>(d)] == 1) continue;
      bool reduced = contains(gone, d);
      if (first || reduced != before) ++runs;
      before = reduced, first = false;
    }
    return runs <= 3;
  }
  bool reduces(InstId i) const {
    if (m_.op(i) == Opcode::Fusion && !is_fusion(i, "kInput")) return false;
    std::vector<InstId> all = results(i);
    return std::any_of(all.begin(), all.end(), [&](InstId r) { return tiled_reduction(r); });
  }
  // Its results may become results of a larger fusion.
  bool fusible(InstId i) const {
    if (m_.has_control(i) || m_.has_side_effect(i) || m_.users(i).empty()) return false;
    if (m_.shape(i).is_tuple()) {
      if (m_.op(i) != Opcode::Fusion || m_.is_root(i)) return false;
      auto users = m_.users(i);
      if (!std::all_of(users.begin(), users.end(), [&](InstId u) { return m_.op(u) == Opcode::GetTupleElement; }))
        return false;
    }
    if (reduces(i) || is_fusion(i, "kLoop")) return true;
    return m_.shape(i).is_array() && op_info(m_.op(i)).elementwise && m_.op(i) != Opcode::Copy &&
           m_.operand_count(i) > 0;
  }
  // The result whose demands on the kernel are the greatest.
  InstId hero(InstId i) const {
    std::vector<InstId> all = results(i);
    for (InstId r : all)
      if (tiled_reduction(r)) return r;
    return all[0];
  }
  bool alike(ShapeId a, ShapeId b) const {
    const Shape &x = u_[a], &y = u_[b];
    return x.is_array() && y.is_array() && x.dims == y.dims && x.layout.minor_to_major == y.layout.minor_to_major &&
           (x.type == y.type || (is_float(x.type) && is_float(y.type)));
  }
  bool same_loop(InstId a, InstId b) const {
    InstId x = hero(a), y = hero(b);
    bool rx = tiled_reduction(x), ry = tiled_reduction(y);
    if (rx && ry &&
        (!alike(m_.shape_id(x), m_.shape_id(y)) ||
         m_.attrs(x).ints(Attr::dimensions) != m_.attrs(y).ints(Attr::dimensions)))
      return false;
    return alike(m_.shape_id(rx ? m_.operand(x, 0) : x), m_.shape_id(ry ? m_.operand(y, 0) : y));
  }
  size_t size(InstId i) const { return m_.operand_count(i) + results(i).size(); }
  int64_t profit(InstId a, InstId b) const {
    int64_t bytes = 0;
    std::vector<InstId> seen;
    for (InstId o : m_.operands(a)) {
      if (!m_.shape(o).is_array() || m_.shape(o).is_effective_scalar()) continue;
      auto ops = m_.operands(b);
      if (std::find(ops.begin(), ops.end(), o) == ops.end() || std::find(seen.begin(), seen.end(), o) != seen.end())
        continue;
      seen.push_back(o);
      bytes += u_.leaf_bytes(m_.shape_id(o));
    }
    return bytes;
  }
  // Empty where the two may become one; `a` is a fusion.
  std::string refuse(InstId a, InstId b) const {
    if (m_.op(b) == Opcode::Fusion && u_.text(m_.attrs(a).text(Attr::kind)) != u_.text(m_.attrs(b).text(Attr::kind)))
      return "fusions of two kinds";
    if (m_.op(b) != Opcode::Fusion && tiled_reduction(b) && is_fusion(a, "kLoop"))
      return "a reduction and a loop fusion";
    if (!same_loop(a, b)) return "results of different shapes";
    if (size(a) + size(b) > kMaxOperandsAndResults) return "more than 64 operands and results";
    return "";
  }

  // --- order ---

  // Descendants of the earlier one that stand in front of the later one; nullopt where the later one is among them.
  std::optional<std::vector<InstId>> between(InstId early, InstId late) const {
    const size_t end = place_.at(late);
    if (end - place_.at(early) > kReach) return {};
    std::vector<InstId> found, stack{early};
    std::unordered_set<InstId> seen{early};
    while (!stack.empty()) {
      InstId i = stack.back();
      stack.pop_back();
      for (InstId user : m_.users(i)) {
        if (user == late) return {};
        if (place_.at(user) > end || !seen.insert(user).second) continue;
        found.push_back(user), stack.push_back(user);
      }
    }
    return found;
  }
  // The order of the computation when `joined` stands for both: what does not depend on the earlier one goes in front.
  void reorder(InstId early, InstId late, const std::vector<InstId>& dependent, InstId joined,
               const std::vector<InstId>& elements) {
    const size_t from = place_.at(early), to = place_.at(late);
    std::unordered_set<InstId> behind(dependent.begin(), dependent.end());
    std::vector<InstId> front, back;
    for (size_t k = from; k <= to; ++k) {
      InstId i = order_[k];
      if (!i.valid() || i == early || i == late) continue;
      (behind.contains(i) ? back : front).push_back(i);
    }
    size_t k = from;
    auto put = [&](InstId i) {
      // Elements of what was joined before have no entry of their own: they go where it goes.
      if (m_.shape(i).is_tuple())
        for (InstId user : m_.users(i))
          if (floating_.contains(user)) place_[user] = k;
      order_[k] = i, place_[i] = k++;
    };
    for (InstId i : front) put(i);
    place_[joined] = k;
    for (InstId e : elements) place_[e] = k, floating_.insert(e);
    order_[k++] = joined;
    for (InstId i : back) put(i);
    while (k <= to) order_[k++] = InstId();
    place_.erase(early), place_.erase(late);
  }

  // --- joining ---

  //   fusion(A, B), fusion(A, C)      →      get-tuple-element(fusion(A, B, C)), twice
  // Where `b` is an operand of `a`, what is inside `b` is computed inside once.
  InstId join(InstId a, InstId b) {
    CompId body = m_.add_computation("fused_computation");
    std::vector<InstId> operands;
    std::unordered_map<InstId, InstId> params, outside;  // operand → parameter; value → instruction inside
    auto inside = [&](InstId operand) {
      if (auto known = outside.find(operand); known != outside.end()) return known->second;
      InstId& p = params[operand];
      if (!p.valid()) {
        p = m_.parameter(body, static_cast<int64_t>(operands.size()), m_.shape_id(operand),
                         fmt::format("param_{}", operands.size()));
        operands.push_back(operand);
      }
      return p;
    };
    auto copy = [&](InstId i) {
      std::vector<InstId> out;
      if (m_.op(i) != Opcode::Fusion) {
        std::vector<InstId> ops;
        for (size_t k = 0; k < m_.operand_count(i); ++k) ops.push_back(inside(m_.operand(i, k)));
        out.push_back(m_.clone_inst(i, body, ops));
        return out;
      }
      CompId inner = m_.called(i)[0];
      std::unordered_map<InstId, InstId> map;
      for (InstId x : m_.post_order(inner)) {
        if (m_.op(x) == Opcode::Parameter) {
          map[x] = inside(m_.operand(i, static_cast<size_t>(m_.parameter_number(x))));
          continue;
        }
        if (m_.is_root(x) && m_.op(x) == Opcode::Tuple) continue;
        std::vector<InstId> ops;
        for (InstId o : m_.operands(x)) ops.push_back(map.at(o));
        map[x] = m_.clone_inst(x, body, ops);
      }
      for (InstId r : results(i)) out.push_back(map.at(r));
      return out;
    };
    std::vector<InstId> second;
    const auto read = m_.operands(a);
    const bool producer = std::find(read.begin(), read.end(), b) != read.end();
    if (producer) {
      second = copy(b);
      outside[b] = second[0];
    }
    std::vector<InstId> all = copy(a);
    const size_t first = all.size();
    if (!producer) second = copy(b);
    all.insert(all.end(), second.begin(), second.end());
    std::vector<ShapeId> shapes;
    for (InstId r : all) shapes.push_back(m_.shape_id(r));
    const ShapeId shape = u_.tuple(shapes);
    m_.set_root(body, make(m_, body, Opcode::Tuple, all, {}, shape));
    const bool input = reduces(a) || reduces(b);
    AttrsId attrs =
        attrs_of(u_, Opcode::Fusion, {{Attr::kind, u_.str(input ? "kInput" : "kLoop")}, {Attr::calls, body}});
    InstId joined =
        m_.add(comp_, {.op = Opcode::Fusion, .shape = shape, .operands = operands, .attrs = attrs, .meta = m_[a].meta});
    std::vector<InstId> elements;
    auto element = [&](size_t k) {
      InstId e = make_element(m_, joined, static_cast<int64_t>(k));
      elements.push_back(e);
      return e;
    };
    auto give = [&](InstId i, size_t offset) {
      if (m_.shape(i).is_tuple()) {
        for (InstId user : m_.users_copy(i)) {
          InstId e = element(offset + static_cast<size_t>(m_.attrs(user).integer(Attr::index)));
          m_.replace_all_uses(user, e);
          m_.remove(user);
        }
      } else {
        m_.replace_all_uses(i, element(offset));
      }
    };
    give(a, 0);
    give(b, first);
    elements_ = elements;
    return joined;
  }
  InstId fuse(InstId a, InstId b, const std::vector<InstId>& dependent) {
    const bool earlier = place_.at(a) < place_.at(b);
    InstId joined = join(a, b);
    // Elements of a former tuple are gone.
    std::vector<InstId> still;
    for (InstId i : dependent)
      if (m_.alive(i)) still.push_back(i);
    for (size_t k = place_.at(earlier ? a : b); k <= place_.at(earlier ? b : a); ++k)
      if (order_[k].valid() && !m_.alive(order_[k])) order_[k] = InstId();
    reorder(earlier ? a : b, earlier ? b : a, still, joined, elements_);
    m_.remove(a);
    m_.remove(b);
    return joined;
  }

  // --- who joins whom ---

  bool siblings() {
    // Most bytes first, then as they stand.
    using Entry = std::tuple<int64_t, uint32_t, InstId, InstId>;
    auto later = [](const Entry& x, const Entry& y) {
      return std::get<0>(x) != std::get<0>(y) ? std::get<0>(x) < std::get<0>(y) : std::get<1>(x) > std::get<1>(y);
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
    std::unordered_map<InstId, InstId> became;
    auto now = [&](InstId i) {
      for (auto at = became.find(i); at != became.end(); at = became.find(i)) i = at->second;
      return i;
    };
    uint32_t number = 0;
    std::vector<InstId> list = order_;
    for (InstId i : list) {
      if (!fusible(i)) continue;
      std::unordered_set<InstId> tried{i};
      for (InstId o : m_.operands(i)) {
        if (!m_.shape(o).is_array() || m_.shape(o).is_effective_scalar()) continue;
        auto users = m_.users(o);
        for (size_t k = 0; k < std::min(users.size(), kUsersTried); ++k) {
          InstId other = users[k];
          if (place_.at(other) >= place_.at(i) || !tried.insert(other).second || !fusible(other)) continue;
          if (m_.op(i) != Opcode::Fusion && m_.op(other) != Opcode::Fusion) continue;
          if (int64_t bytes = profit(i, other); bytes > 0) queue.emplace(bytes, number++, i, other);
        }
      }
    }
    bool changed = false;
    while (!queue.empty()) {
      auto [bytes, n, x, y] = queue.top();
      queue.pop();
      InstId a = now(x), b = now(y);
      if (a == b) continue;
      if (a != x || b != y) {  // as it is now
        if (int64_t again = profit(a, b); again > 0) queue.emplace(again, n, a, b);
        continue;
      }
      if (m_.op(a) != Opcode::Fusion) std::swap(a, b);
      if (std::string why = refuse(a, b); !why.empty()) {
        ctx_.note(m_, "not joined", {a, b}, why);
        continue;
      }
      const bool earlier = place_.at(a) < place_.at(b);
      std::optional<std::vector<InstId>> dependent = between(earlier ? a : b, earlier ? b : a);
      if (!dependent) {
        ctx_.note(m_, "not joined", {a, b}, "one needs the other, or they are far apart");
        continue;
      }
      if (!ctx_.spend(m_, "siblings", {a, b}, fmt::format("{} bytes are read once", bytes))) return changed;
      InstId joined = fuse(a, b, *dependent);
      became[a] = became[b] = joined;
      changed = true;
    }
    return changed;
  }

  // A reduction and the array that it reduces, which others read, too.
  bool producers() {
    std::vector<std::pair<InstId, InstId>> pairs;
    std::unordered_set<InstId> taken;
    for (InstId consumer : order_) {
      if (!consumer.valid() || !m_.alive(consumer) || m_.users(consumer).empty() || !reduces(consumer) ||
          m_.has_control(consumer) || (m_.shape(consumer).is_tuple() && !fusible(consumer)))
        continue;
      for (InstId producer : m_.operands(consumer)) {
        const bool loop = is_fusion(producer, "kLoop") && m_.shape(producer).is_array();
        if ((!loop && !op_info(m_.op(producer)).elementwise) || m_.op(producer) == Opcode::Copy || !fusible(producer) ||
            m_.user_count(producer) < 2 || taken.contains(producer) || !same_loop(producer, consumer))
          continue;
        bool circle = false;
        for (InstId o : m_.operands(consumer))
          if (o != producer && place_.at(o) > place_.at(producer)) circle = circle || !between(producer, o);
        if (circle || size(producer) + size(consumer) > kMaxOperandsAndResults) break;
        taken.insert(producer);
        pairs.emplace_back(producer, consumer);
        break;
      }
    }
    bool changed = false;
    for (auto [producer, consumer] : pairs) {
      if (taken.contains(consumer)) continue;  // it is itself the producer of another
      std::vector<InstId> dependent;
      // What else reads the producer and stands in front of the consumer goes behind both.
      std::unordered_set<InstId> seen;
      std::vector<InstId> stack{producer};
      const size_t end = place_.at(consumer);
      bool fits = end - place_.at(producer) <= kReach;
      while (fits && !stack.empty()) {
        InstId i = stack.back();
        stack.pop_back();
        for (InstId user : m_.users(i)) {
          if (user == consumer) {
            fits = fits && i == producer;
            continue;
          }
          if (place_.at(user) > end || !seen.insert(user).second) continue;
          dependent.push_back(user), stack.push_back(user);
        }
      }
      if (!fits) continue;
      if (!ctx_.spend(m_, "producer and reduction", {producer, consumer})) return changed;
      fuse(consumer, producer, dependent);
      changed = true;
    }
    return changed;
  }

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  CompId comp_;
  std::vector<InstId> order_;  // topological; holes where instructions were
  std::unordered_map<InstId, size_t> place_;
  std::vector<InstId> elements_;
  std::unordered_set<InstId> floating_;  // elements of what was joined here: at its place in the order
};

}  // namespace

bool run_multi_output_fusion_2019(Module& m, PassContext& ctx) {
  bool changed = false;
  std::vector<std::vector<InstId>> callers = m.callers();
  for (CompId c : m.nonfusion_computations()) {
    // Functions that are applied element by element have no buffers of their own.
    bool applied = false;
    if (c.value < callers.size())
      for (InstId i : callers[c.value])
        applied |= m.op(i) != Opcode::While && m.op(i) != Opcode::Conditional && m.op(i) != Opcode::Call;
    if (!applied) changed |= Joiner(m, ctx, c).run();
  }
  return changed;
}

}  // namespace hlo
