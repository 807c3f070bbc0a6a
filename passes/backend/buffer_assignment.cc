// Schedule and buffer assignment. Values that must share memory (a loop's state with what flows in and what a trip
// leaves, branches' results, callees' parameters) are one; parameters, constants and results have allocations of their
// own; the rest shares one block, largest first, best fit (XLA's GlobalDecreasingSizeBestFit, spatial order).
#include <algorithm>
#include <functional>

#include "passes/backend/backend.h"

namespace hlo {

void schedule_module(Module& m) {
  for (CompId c : m.computations()) {
    std::vector<InstId> order = m.post_order(c);
    m.comp(c).order = order;
  }
  m.config.is_scheduled = true;
}

namespace {

constexpr int64_t kAlign = 256;
int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

class Assigner {
 public:
  explicit Assigner(const Module& m) : m_(m), u_(m.u()) {}

  BufferAssignment run() {
    flatten(m_.entry());
    flow(m_.entry());
    merge_classes();
    live_ranges();
    allocate();
    return std::move(out_);
  }

 private:
  // The flattened schedule: position of every instruction, callees inlined at their caller.
  void flatten(CompId c) {
    for (InstId i : m_.live_order(c)) {
      Opcode op = m_.op(i);
      start_[i] = clock_;
      if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call)
        for (CompId callee : m_.called(i)) flatten(callee);
      end_[i] = clock_++;
    }
    comp_end_[c] = clock_;
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
    v.inst = i, v.index = index, v.shape = s, v.size = u_.byte_size(s);
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
          list.assign(all.begin() + skip, all.begin() + skip + leaves(s.elements[index]));
          break;
        }
        case Opcode::Bitcast:
        case Opcode::OptBarrier:
        case Opcode::AddDependency:
        case Opcode::Domain:
          list = of(ops[0]);
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
          Dims index;
          define(i, m_.shape_id(i), index, list);
        }
      }
      out_.by_inst[i] = std::move(list);
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
    std::vector<int> done;
    for (int v : rest) {
      BufferValue& value = out_.values[static_cast<size_t>(v)];
      // Gaps between what is there at the same time: the smallest that fits, the lowest of equals.
      std::vector<std::pair<int64_t, int64_t>> taken;
      for (int w : done) {
        const BufferValue& other = out_.values[static_cast<size_t>(w)];
        if (other.first <= value.last && value.first <= other.last)
          taken.push_back({other.offset, other.offset + aligned(std::max<int64_t>(other.size, 1))});
      }
      std::sort(taken.begin(), taken.end());
      int64_t need = aligned(std::max<int64_t>(value.size, 1)), best = -1, best_gap = INT64_MAX, at = 0;
      for (const auto& [from, to] : taken) {
        if (from - at >= need && from - at < best_gap) best = at, best_gap = from - at;
        at = std::max(at, to);
      }
      value.offset = best >= 0 ? best : at;
      value.allocation = number;
      heap.size = std::max(heap.size, value.offset + value.size);
      done.push_back(v);
    }
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

  const Module& m_;
  const Universe& u_;
  BufferAssignment out_;
  std::vector<int> class_;
  std::unordered_map<InstId, int64_t> start_, end_;
  std::unordered_map<CompId, int64_t> comp_end_;
  std::unordered_set<InstId> given_;
  int64_t clock_ = 0;
};

}  // namespace

BufferAssignment assign_buffers(const Module& m) { return Assigner(m).run(); }

}  // namespace hlo
