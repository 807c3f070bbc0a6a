// Schedule and buffer assignment. Values that must share memory (a loop's state with what flows in and what a trip
// leaves, branches' results, callees' parameters) are one; parameters, constants and results have allocations of their
// own; the rest shares one block, largest first, best fit (XLA's GlobalDecreasingSizeBestFit, spatial order).
#include <algorithm>
#include <functional>
#include <map>

#include "ir/base/stack_guard.h"
#include "passes/backend/backend.h"

namespace hlo {

void schedule_module(Module& m) {
  for (CompId c : m.computations()) {
    m.set_order(c, m.post_order(c));
  }
  m.set_scheduled(true);
}

namespace {

constexpr int64_t kAlign = 256;
constexpr int64_t kMostSteps = int64_t{1} << 24;  // of the flattened schedule
int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

class BufferAssigner {
 public:
  BufferAssigner(const Module& m, const BufferRules& rules) : m_(m), u_(m.u()), rules_(rules) {}

  BufferAssignment run() {
    flatten(m_.entry(), InstId());
    flow(m_.entry());
    if (rules_.in_place) share_in_place();
    merge_classes();
    live_ranges();
    allocate();
    return std::move(out_);
  }

 private:
  // The flattened schedule: position of every instruction, callees inlined at their caller. `done`: the end of the
  // asynchronous call that the computation is a part of.
  void flatten(CompId c, InstId done) {
    check_stack("calls of computations are nested");
    comp_start_[c] = clock_;
    if (done.valid()) under_[c] = done;
    for (InstId i : m_.live_order(c)) {
      Opcode op = m_.op(i);
      start_[i] = clock_;
      if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call)
        for (CompId callee : m_.called(i)) flatten(callee, done);
      if (op == Opcode::AsyncStart)
        for (CompId callee : m_.called(i)) flatten(callee, done_of(i));
      end_[i] = clock_++;
      if (clock_ > kMostSteps)  // two calls of what has two calls, and so on
        fail(FailureKind::kUnsupported, "{}: with what is called in its caller's place it is more than {} steps",
             m_.comp_name(m_.entry()), kMostSteps);
    }
    comp_end_[c] = clock_;
  }
  InstId done_of(InstId start) const {
    InstId at = start;
    while (m_.op(at) != Opcode::AsyncDone) {
      auto users = m_.users(at);
      auto next = std::find_if(users.begin(), users.end(), [&](InstId u) {
        return m_.op(u) == Opcode::AsyncUpdate || m_.op(u) == Opcode::AsyncDone;
      });
      if (next == users.end()) return start;
      at = *next;
    }
    return at;
  }
  bool alias(InstId i) const {
    if (rules_.alias) return rules_.alias(i);
    Opcode op = m_.op(i);
    return op == Opcode::Bitcast || op == Opcode::OptBarrier || op == Opcode::AddDependency || op == Opcode::Domain;
  }

  int leaves(ShapeId s) const {
    const Shape& shape = u_[s];
    if (!shape.is_tuple()) return 1;
    int n = 0;
    for (ShapeId e : shape.elements) n += leaves(e);
    return n;
  }
  int new_value(InstId i, const Dims& index, ShapeId s) {
    BufferValue v;
    v.inst = i, v.index = index, v.shape = s, v.size = rules_.bytes ? rules_.bytes(s) : u_.byte_size(s);
    // Offsets and totals are sums of these, so none of them overflows where all together do not.
    sum_ += Checked(v.size) + kAlign;
    sum_.value("what the module's buffers hold together");
    out_.values.push_back(v);
    class_.push_back(static_cast<int>(class_.size()));
    return static_cast<int>(out_.values.size()) - 1;
  }
  void define(InstId i, ShapeId s, Dims& index, std::vector<int>& list) {
    const Shape& shape = u_[s];
    if (!shape.is_tuple()) {
      list.push_back(new_value(i, index, s));
      return;
    }
    for (size_t k = 0; k < shape.elements.size(); ++k) {
      index.push_back(static_cast<int64_t>(k));
      define(i, shape.elements[k], index, list);
      index.pop_back();
    }
  }
  int find(int v) {
    while (class_[static_cast<size_t>(v)] != v)
      v = class_[static_cast<size_t>(v)] = class_[static_cast<size_t>(class_[static_cast<size_t>(v)])];
    return v;
  }
  void join(int a, int b) {
    a = find(a), b = find(b);
    if (a != b) class_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  void join(const std::vector<int>& a, const std::vector<int>& b) {
    for (size_t k = 0; k < a.size() && k < b.size(); ++k) join(a[k], b[k]);
  }

  void flow(CompId c) {
    check_stack("calls of computations are nested");
    for (InstId i : m_.live_order(c)) {
      auto ops = m_.operands(i);
      std::vector<int> list;
      auto of = [&](InstId o) -> const std::vector<int>& { return out_.by_inst[o]; };
      switch (m_.op(i)) {
        case Opcode::Tuple:
          for (InstId o : ops) list.insert(list.end(), of(o).begin(), of(o).end());
          break;
        case Opcode::GetTupleElement: {
          const Shape& s = m_.shape(ops[0]);
          int skip = 0;
          size_t index = static_cast<size_t>(m_.attrs(i).integer(Attr::index));
          for (size_t k = 0; k < index; ++k) skip += leaves(s.elements[k]);
          const std::vector<int>& all = of(ops[0]);
          HLO_CHECK(all.size() == static_cast<size_t>(leaves(m_.shape_id(ops[0]))), "{} comes before its operand {}",
                    m_.inst_name(i), m_.inst_name(ops[0]));
          list.assign(all.begin() + skip, all.begin() + skip + leaves(s.elements[index]));
          break;
        }
        case Opcode::AsyncStart: {
          // Arguments, result and what else the shape has.
          const auto& params = m_.comp(m_.called(i)[0]).params;
          const std::vector<ShapeId> whole = m_.shape(i).elements;
          if (params.size() != ops.size() || leaves(whole[1]) != leaves(m_.shape_id(m_.comp(m_.called(i)[0]).root)))
            fail(FailureKind::kUnsupported, "{}: buffers for operands or results that are bound later",
                 m_.inst_name(i));
          for (size_t p = 0; p < params.size(); ++p) {
            out_.by_inst[params[p]] = of(ops[p]);
            given_.insert(params[p]);
            list.insert(list.end(), of(ops[p]).begin(), of(ops[p]).end());
          }
          flow(m_.called(i)[0]);
          const std::vector<int>& result = of(m_.comp(m_.called(i)[0]).root);
          list.insert(list.end(), result.begin(), result.end());
          const std::vector<ShapeId> parts = m_.shape(i).elements;
          for (size_t k = 2; k < parts.size(); ++k) {
            Dims index{static_cast<int64_t>(k)};
            define(i, parts[k], index, list);
          }
          break;
        }
        case Opcode::AsyncUpdate:
          list = of(ops[0]);
          break;
        case Opcode::AsyncDone: {
          const std::vector<int>& all = of(ops[0]);
          int skip = leaves(m_.shape(ops[0]).elements[0]);
          list.assign(all.begin() + skip, all.begin() + skip + leaves(m_.shape_id(i)));
          break;
        }
        case Opcode::CopyStart: {
          Dims index{0};
          const std::vector<ShapeId> parts = m_.shape(i).elements;
          define(i, parts[0], index, list);
          list.push_back(of(ops[0])[0]);
          for (size_t k = 2; k < parts.size(); ++k) {
            Dims at{static_cast<int64_t>(k)};
            define(i, parts[k], at, list);
          }
          break;
        }
        case Opcode::CopyDone:
          list = {of(ops[0])[0]};
          break;
        case Opcode::While: {
          CompId body = m_.attrs(i).comp(Attr::body), condition = m_.attrs(i).comp(Attr::condition);
          list = of(ops[0]);
          out_.by_inst[m_.comp(condition).params[0]] = list;
          out_.by_inst[m_.comp(body).params[0]] = list;
          given_.insert(m_.comp(condition).params[0]), given_.insert(m_.comp(body).params[0]);
          flow(condition);
          flow(body);
          join(list, of(m_.comp(body).root));
          break;
        }
        case Opcode::Conditional:
        case Opcode::Call: {
          size_t first = m_.op(i) == Opcode::Conditional ? 1 : 0;
          const auto called = m_.called(i);
          for (size_t n = 0; n < called.size(); ++n) {
            const auto& params = m_.comp(called[n]).params;
            for (size_t p = 0; p < params.size(); ++p) {
              out_.by_inst[params[p]] = of(ops[m_.op(i) == Opcode::Conditional ? first + n : p]);
              given_.insert(params[p]);
            }
            flow(called[n]);
            const std::vector<int>& result = of(m_.comp(called[n]).root);
            if (n == 0)
              list = result;
            else
              join(list, result);
          }
          break;
        }
        default: {
          if (given_.contains(i)) continue;
          if (alias(i)) {
            list = of(ops[0]);
            break;
          }
          Dims index;
          define(i, m_.shape_id(i), index, list);
        }
      }
      out_.by_inst[i] = std::move(list);
    }
  }

  // --- a result in its operand's place ---

  // Until when each leaf of an instruction is read, by whatever name.
  using Ends = std::unordered_map<InstId, std::vector<int64_t>>;
  void last_reads(CompId c, Ends& ends) {
    std::vector<InstId> order = m_.live_order(c);
    int64_t least = 0;
    if (auto done = under_.find(c); done != under_.end()) least = end_[done->second];
    for (InstId i : order) ends[i].assign(out_.by_inst[i].size(), std::max(end_[i], least));
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      InstId i = *at;
      if (m_.is_root(i))
        for (int64_t& e : ends[i]) e = std::max(e, comp_end_[c]);
      auto ops = m_.operands(i);
      auto reach = [&](InstId o, size_t leaf, int64_t when) {
        int64_t& e = ends[o][leaf];
        e = std::max(e, when);
      };
      auto reach_all = [&](int64_t when) {
        for (InstId o : ops)
          for (size_t k = 0; k < ends[o].size(); ++k) reach(o, k, when);
      };
      const std::vector<int64_t> until = ends[i];
      Opcode op = m_.op(i);
      if (op == Opcode::Tuple || op == Opcode::AsyncStart) {
        size_t k = 0;
        for (InstId o : ops)
          for (size_t leaf = 0; leaf < ends[o].size(); ++leaf) reach(o, leaf, until[k++]);
      } else if (op == Opcode::GetTupleElement || op == Opcode::AsyncDone) {
        size_t skip = 0;
        const Shape& s = m_.shape(ops[0]);
        size_t index = op == Opcode::AsyncDone ? 1 : static_cast<size_t>(m_.attrs(i).integer(Attr::index));
        for (size_t k = 0; k < index; ++k) skip += static_cast<size_t>(leaves(s.elements[k]));
        if (op == Opcode::AsyncDone) reach_all(end_[i]);
        for (size_t k = 0; k < until.size(); ++k) reach(ops[0], skip + k, until[k]);
      } else if (op == Opcode::CopyStart) {
        reach(ops[0], 0, until[1]);
      } else if (op == Opcode::CopyDone) {
        reach_all(end_[i]);
        reach(ops[0], 0, until[0]);
      } else if (op == Opcode::AsyncUpdate || (!given_.contains(i) && op != Opcode::Parameter && alias(i))) {
        for (size_t k = 0; k < until.size(); ++k) reach(ops[0], k, until[k]);
        for (size_t n = 1; n < ops.size(); ++n)
          for (size_t k = 0; k < ends[ops[n]].size(); ++k) reach(ops[n], k, end_[i]);
      } else {
        // A callee has the values under names of its own from its start on.
        reach_all(op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call ? start_[i] : end_[i]);
      }
    }
  }

  // When the values of a class are alive: intervals that do not touch, by their starts.
  struct Alive {
    std::map<int64_t, int64_t> spans;
    bool read_only = false;  // a parameter of the entry or a constant
    void add(int64_t from, int64_t to) {
      auto at = spans.upper_bound(to);
      while (at != spans.begin()) {
        auto before = std::prev(at);
        if (before->second < from) break;
        from = std::min(from, before->first), to = std::max(to, before->second);
        at = spans.erase(before);
      }
      spans.emplace(from, to);
    }
  };
  // Is a value of `x` alive while one of `y` is? At `at` one of x may end where one of y begins.
  static bool collide(const Alive& x, const Alive& y, int64_t at) {
    bool turned = y.spans.size() < x.spans.size();
    const Alive &few = turned ? y : x, &many = turned ? x : y;
    for (const auto& [from, to] : few.spans) {
      auto next = many.spans.upper_bound(to);
      while (next != many.spans.begin()) {
        --next;
        if (next->second < from) break;
        bool allowed = turned ? next->second == at && from == at : to == at && next->first == at;
        if (!allowed) return true;
      }
    }
    return false;
  }

  // What changes an array that nobody reads any more changes it where it is:
  //   y = dynamic-update-slice(x, …), x dead behind it: y lies where x lay.
  void share_in_place() {
    Ends ends;
    std::vector<CompId> comps;
    for (const auto& [c, at] : comp_start_) comps.push_back(c);
    std::sort(comps.begin(), comps.end(), [&](CompId a, CompId b) { return comp_start_[a] < comp_start_[b]; });
    for (CompId c : comps) last_reads(c, ends);
    std::unordered_map<int, Alive> alive;
    std::unordered_set<CompId> conditions;
    for (CompId c : comps)
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::While) conditions.insert(m_.attrs(i).comp(Attr::condition));
    for (CompId c : comps)
      for (InstId i : m_.live_order(c)) {
        Opcode op = m_.op(i);
        bool passes = op == Opcode::Tuple || op == Opcode::GetTupleElement || op == Opcode::AsyncUpdate ||
                      op == Opcode::AsyncDone || op == Opcode::CopyDone || (op != Opcode::Parameter && alias(i));
        if (passes) continue;
        const std::vector<int>& list = out_.by_inst[i];
        for (size_t k = 0; k < list.size(); ++k) {
          Alive& a = alive[find(list[k])];
          // A loop's state is there while its condition looks, whether it looks at all of it or not.
          if (op == Opcode::Parameter)
            a.add(comp_start_[c], conditions.contains(c) ? comp_end_[c] : ends[i][k]);
          else
            a.add(end_[i], ends[i][k]);
          a.read_only |= op == Opcode::Constant || (op == Opcode::Parameter && c == m_.entry());
        }
      }
    for (CompId c : comps) {
      if (under_.contains(c)) continue;
      for (InstId i : m_.live_order(c)) {
        if (given_.contains(i) || m_.operand_count(i) == 0) continue;
        const std::vector<int> list = out_.by_inst[i];
        for (size_t k = 0; k < list.size(); ++k) {
          int operand = rules_.in_place(i, k);
          if (operand < 0) continue;
          int from = find(out_.by_inst[m_.operand(i, static_cast<size_t>(operand))][0]), to = find(list[k]);
          Alive &x = alive[from], &y = alive[to];
          if (from == to || x.read_only || y.read_only ||
              out_.values[static_cast<size_t>(from)].size != out_.values[static_cast<size_t>(to)].size ||
              collide(x, y, end_[i]))
            continue;
          join(from, to);
          Alive &kept = find(from) == from ? x : y, &other = find(from) == from ? y : x;
          if (kept.spans.size() < other.spans.size()) kept.spans.swap(other.spans);
          for (const auto& [a, b] : other.spans) kept.add(a, b);
          other.spans.clear();
        }
      }
    }
  }

  void merge_classes() {
    for (auto& [inst, list] : out_.by_inst)
      for (int& v : list) v = find(v);
  }

  void live_ranges() {
    for (size_t v = 0; v < out_.values.size(); ++v) out_.values[v].first = INT64_MAX, out_.values[v].last = -1;
    auto touch = [&](int v, int64_t from, int64_t to) {
      BufferValue& value = out_.values[static_cast<size_t>(find(v))];
      value.first = std::min(value.first, from), value.last = std::max(value.last, to);
    };
    for (const auto& [i, list] : out_.by_inst) {
      int64_t last = end_[i];
      for (InstId user : m_.users(i)) last = std::max(last, end_[user]);
      if (auto done = under_.find(m_.parent(i)); done != under_.end()) last = std::max(last, end_[done->second]);
      // A root lives to the end of its computation, where the caller takes it.
      if (m_.is_root(i)) last = std::max(last, comp_end_[m_.parent(i)]);
      for (int v : list) touch(v, start_[i], last);
      // What flows into a loop is needed as long as the loop runs.
      if (m_.op(i) == Opcode::While || m_.op(i) == Opcode::Conditional || m_.op(i) == Opcode::Call)
        for (InstId o : m_.operands(i))
          for (int v : out_.by_inst[o]) touch(v, start_[i], end_[i]);
    }
  }

  void allocate() {
    std::vector<bool> placed(out_.values.size(), false), live_out(out_.values.size(), false);
    const Computation& entry = m_.comp(m_.entry());
    for (int v : out_.by_inst[entry.root]) live_out[static_cast<size_t>(v)] = true;
    auto own = [&](int v, Allocation a) {
      BufferValue& value = out_.values[static_cast<size_t>(v)];
      value.allocation = static_cast<int>(out_.allocations.size());
      placed[static_cast<size_t>(v)] = true;
      a.size = value.size;
      a.values.push_back(v);
      a.live_out = live_out[static_cast<size_t>(v)];
      out_.allocations.push_back(std::move(a));
    };
    for (InstId p : entry.params) {
      for (int v : out_.by_inst[p]) {
        if (placed[static_cast<size_t>(v)]) continue;
        Allocation a;
        a.kind = Allocation::kParameter;
        a.parameter = m_.parameter_number(p);
        a.parameter_index = out_.values[static_cast<size_t>(v)].index;
        a.parameter_shape = out_.values[static_cast<size_t>(v)].shape;
        own(v, a);
      }
    }
    bool root_given = false;
    for (size_t v = 0; v < out_.values.size(); ++v) {
      if (placed[v] || find(static_cast<int>(v)) != static_cast<int>(v)) continue;
      const BufferValue& value = out_.values[v];
      if (m_.op(value.inst) == Opcode::Constant) {
        Allocation a;
        a.kind = Allocation::kConstant;
        own(static_cast<int>(v), a);
      } else if (live_out[v]) {
        Allocation a;
        a.kind = Allocation::kOutput;
        if (!m_.shape(entry.root).is_tuple() && !root_given)
          a.output_shape = m_.shape_id(entry.root), root_given = true;
        own(static_cast<int>(v), a);
      }
    }
    if (m_.shape(entry.root).is_tuple()) {
      Allocation a;
      a.kind = Allocation::kTuple;
      a.size = u_.byte_size(m_.shape_id(entry.root));
      a.output_shape = m_.shape_id(entry.root);
      a.live_out = true;
      out_.allocations.push_back(a);
    }
    std::vector<int> rest;
    for (size_t v = 0; v < out_.values.size(); ++v)
      if (!placed[v] && find(static_cast<int>(v)) == static_cast<int>(v) && out_.values[v].last >= 0)
        rest.push_back(static_cast<int>(v));
    std::stable_sort(rest.begin(), rest.end(), [&](int a, int b) {
      const BufferValue &x = out_.values[static_cast<size_t>(a)], &y = out_.values[static_cast<size_t>(b)];
      if (x.size != y.size) return x.size > y.size;
      return x.last - x.first > y.last - y.first;
    });
    if (rest.empty()) return drop_shadows();
    Allocation heap;
    int number = static_cast<int>(out_.allocations.size());
    Placed placed_before(out_.values, rest);
    for (int v : rest) {
      BufferValue& value = out_.values[static_cast<size_t>(v)];
      // Gaps between what is there at the same time: the smallest that fits, the lowest of equals.
      std::vector<std::pair<int64_t, int64_t>> taken;
      placed_before.overlapping(value.first, value.last, [&](int w) {
        const BufferValue& other = out_.values[static_cast<size_t>(w)];
        taken.push_back({other.offset, other.offset + aligned(std::max<int64_t>(other.size, 1))});
      });
      std::sort(taken.begin(), taken.end());
      int64_t need = aligned(std::max<int64_t>(value.size, 1)), best = -1, best_gap = INT64_MAX, at = 0;
      for (const auto& [from, to] : taken) {
        if (from - at >= need && from - at < best_gap) best = at, best_gap = from - at;
        at = std::max(at, to);
      }
      value.offset = best >= 0 ? best : at;
      value.allocation = number;
      heap.size = std::max(heap.size, value.offset + value.size);
      placed_before.add(v);
    }
    std::vector<int> done = rest;
    std::sort(done.begin(), done.end());
    heap.values = done;
    out_.allocations.push_back(std::move(heap));
    drop_shadows();
  }

  // Values that have a place, to be asked for those alive between two positions: the largest end over ranges of them in
  // the order of their starts.
  class Placed {
   public:
    Placed(const std::vector<BufferValue>& values, std::vector<int> list)
        : values_(values), by_start_(std::move(list)) {
      std::sort(by_start_.begin(), by_start_.end(), [&](int a, int b) {
        return std::pair(values[static_cast<size_t>(a)].first, a) < std::pair(values[static_cast<size_t>(b)].first, b);
      });
      while (size_ < by_start_.size()) size_ *= 2;
      ends_.assign(2 * size_, -1);
      for (size_t k = 0; k < by_start_.size(); ++k) place_[by_start_[k]] = k;
    }
    void add(int v) {
      size_t at = size_ + place_.at(v);
      for (ends_[at] = values_[static_cast<size_t>(v)].last; at > 1; at /= 2)
        ends_[at / 2] = std::max(ends_[at / 2], ends_[at]);
    }
    template <typename F>
    void overlapping(int64_t first, int64_t last, F found) const {
      visit(1, 0, size_, first, last, found);
    }

   private:
    template <typename F>
    void visit(size_t node, size_t from, size_t count, int64_t first, int64_t last, F& found) const {
      if (ends_[node] < first || from >= by_start_.size() || values_[static_cast<size_t>(by_start_[from])].first > last)
        return;
      if (count == 1) return found(by_start_[from]);
      visit(2 * node, from, count / 2, first, last, found);
      visit(2 * node + 1, from + count / 2, count / 2, first, last, found);
    }
    const std::vector<BufferValue>& values_;
    std::vector<int> by_start_;
    size_t size_ = 1;
    std::vector<int64_t> ends_;
    std::unordered_map<int, size_t> place_;
  };

  // Values that were joined into others: they are found through them.
  void drop_shadows() {
    for (size_t v = 0; v < out_.values.size(); ++v) {
      int r = find(static_cast<int>(v));
      if (r == static_cast<int>(v)) continue;
      const BufferValue& main = out_.values[static_cast<size_t>(r)];
      out_.values[v].allocation = main.allocation, out_.values[v].offset = main.offset;
      out_.values[v].first = main.first, out_.values[v].last = main.last;
      if (main.allocation >= 0) {
        auto& list = out_.allocations[static_cast<size_t>(main.allocation)].values;
        list.insert(std::upper_bound(list.begin(), list.end(), static_cast<int>(v)), static_cast<int>(v));
      }
    }
  }

  const Module& m_;
  const Universe& u_;
  const BufferRules& rules_;
  BufferAssignment out_;
  Checked sum_ = 0;  // bytes of all values
  std::vector<int> class_;
  std::unordered_map<InstId, int64_t> start_, end_;
  std::unordered_map<CompId, int64_t> comp_start_, comp_end_;
  std::unordered_map<CompId, InstId> under_;  // computations of asynchronous calls, and what ends them
  std::unordered_set<InstId> given_;
  int64_t clock_ = 0;
};

}  // namespace

BufferAssignment assign_buffers(const Module& m, const BufferRules& rules) { return BufferAssigner(m, rules).run(); }

}  // namespace hlo
