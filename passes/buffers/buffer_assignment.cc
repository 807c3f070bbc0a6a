// Schedule and buffer assignment of our executors. Values that must share memory are one; parameters, constants and
// results have allocations of their own; the rest shares one block, largest first, best fit.
#include <algorithm>

#include "passes/buffers/buffer_values.h"

namespace hlo {

void schedule_module(Module& m) {
  for (CompId c : m.computations()) {
    m.set_order(c, m.post_order(c));
  }
  m.set_scheduled(true);
}

namespace {

class BufferAssigner : BufferValues {
 public:
  BufferAssigner(const Module& m, const BufferRules& rules) : BufferValues(m, rules) {}

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
    std::unordered_map<int, Alive> alive;
    each_life([&](int v, int64_t from, int64_t to, InstId by, size_t) {
      Alive& a = alive[v];
      a.add(from, to);
      a.read_only |= m_.op(by) == Opcode::Constant || (m_.op(by) == Opcode::Parameter && m_.parent(by) == m_.entry());
    });
    for (CompId c : computations()) {
      if (under_.contains(c)) continue;
      for (InstId i : m_.live_order(c)) {
        if (is_given(i) || m_.operand_count(i) == 0) continue;
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
    const int number = static_cast<int>(out_.allocations.size());
    std::vector<HeapBlock> blocks(out_.values.size());
    for (int v : rest) {
      const BufferValue& value = out_.values[static_cast<size_t>(v)];
      blocks[static_cast<size_t>(v)] = {value.size, 0, {{value.first, value.last}}};
    }
    heap.size = best_fit(blocks, rest);
    for (int v : rest) {
      BufferValue& value = out_.values[static_cast<size_t>(v)];
      value.allocation = number, value.offset = blocks[static_cast<size_t>(v)].offset;
    }
    std::vector<int> done = rest;
    std::sort(done.begin(), done.end());
    heap.values = done;
    out_.allocations.push_back(std::move(heap));
    drop_shadows();
  }

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
};

}  // namespace

BufferAssignment assign_buffers(const Module& m, const BufferRules& rules) { return BufferAssigner(m, rules).run(); }

}  // namespace hlo
