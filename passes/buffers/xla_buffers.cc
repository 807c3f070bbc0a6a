// Buffer assignment as XLA does it for a scheduled module (xla/service/buffer_assignment.cc): the largest first, each
// into an allocation of its operands or one that is free meanwhile, if it fits; else the program's results get
// allocations of their own and all other values share one heap.
#include <algorithm>

#include "ir/analysis/dataflow/alias_info.h"
#include "ir/sharding/aliasing.h"
#include "ir/types/tiling.h"
#include "passes/buffers/buffer_values.h"
#include "passes/buffers/xla_heap.h"

namespace hlo {
namespace {

const BufferRules kXlaRules;

// When something is there: pieces of time that at most touch, each with the class of values that is there then.
class Times {
 public:
  struct Piece {
    int64_t end;
    int value;
  };
  void add(int64_t from, int64_t to, int value) {
    // Of one class pieces become one where they meet.
    auto at = pieces_.upper_bound(to);
    while (at != pieces_.begin()) {
      auto before = std::prev(at);
      if (before->second.end < from) break;
      if (before->second.value != value) {
        at = before;
        continue;
      }
      from = std::min(from, before->first), to = std::max(to, before->second.end);
      at = pieces_.erase(before);
    }
    pieces_.insert_or_assign(from, Piece{to, value});
  }
  const std::map<int64_t, Piece>& pieces() const { return pieces_; }
  bool empty() const { return pieces_.empty(); }
  int64_t first() const { return pieces_.begin()->first; }
  int64_t last() const { return std::prev(pieces_.end())->second.end; }
  // Is something of it there while something of `other` is? Where one ends in the instruction that makes the other,
  // `touch(at, ends, begins)` says whether it may.
  template <typename F>
  bool clashes(const Times& other, const F& touch) const {
    for (const auto& [from, piece] : other.pieces_) {
      auto next = pieces_.upper_bound(piece.end);
      while (next != pieces_.begin()) {
        --next;
        if (next->second.end < from) break;
        if (next->second.end == from && next->first < from) {
          if (!touch(from, next->second.value, piece.value)) return true;
        } else if (next->first == piece.end && from < next->first) {
          if (!touch(piece.end, piece.value, next->second.value)) return true;
        } else {
          return true;
        }
      }
    }
    return false;
  }

 private:
  std::map<int64_t, Piece> pieces_;
};

class XlaBufferAssigner : BufferValues {
 public:
  XlaBufferAssigner(const Module& m, const GpuTarget& gpu) : BufferValues(m, kXlaRules), aliases_(m, gpu) {
    // Where a computation is called from two places it is not told whose values it holds: nothing is shared then.
    if (!called_twice(m).valid()) flow_.emplace(m);
  }

  BufferAssignment run() {
    flatten(m_.entry(), InstId());
    flow(m_.entry());
    for (const auto& [i, t] : end_) at_[t] = i;
    tables_of_tuples();
    for (size_t v = 0; v < class_.size(); ++v) room(find(static_cast<int>(v)), out_.values[v].size);
    each_life([&](int v, int64_t from, int64_t to, InstId by, size_t leaf) {
      times_[v].add(from, std::max(from, to), v);
      lives_.push_back({v, from, std::max(from, to), by, static_cast<int64_t>(leaf)});
      fixed_[v] |= m_.op(by) == Opcode::Constant || (m_.op(by) == Opcode::Parameter && m_.parent(by) == m_.entry());
    });
    alias_with_results();
    overwrite_in_place();
    merge_classes();
    own_allocations();
    into_allocations();
    into_heap();
    combine();
    spread_to_members();
    return std::move(out_);
  }

 private:
  // What each_life tells, and which of its instruction's arrays it is.
  struct Life {
    int value;
    int64_t from, to;
    InstId by;
    int64_t leaf;
  };
  BufferValue& value(int v) { return out_.values[static_cast<size_t>(v)]; }
  void room(int v, int64_t size) { value(v).size = std::max(value(v).size, size); }

  // A result of several arrays comes with a table of where they are.
  void tables_of_tuples() {
    std::unordered_map<InstId, int> table;
    auto of = [&](InstId i) {
      auto at = table.find(i);
      return at == table.end() ? -1 : at->second;
    };
    auto both = [&](int a, int b) {
      if (a >= 0 && b >= 0) join(a, b);
    };
    std::vector<CompId> comps = computations();
    for (CompId c : comps)
      for (InstId i : m_.live_order(c)) {
        if (!m_.shape(i).is_tuple()) continue;
        switch (m_.op(i)) {
          case Opcode::Tuple:
          case Opcode::Fusion:
          case Opcode::CustomCall:
          case Opcode::Sort:
          case Opcode::Reduce:
          case Opcode::AllReduce:
          case Opcode::RngBitGenerator:
          case Opcode::AllGatherStart:
          case Opcode::CollectivePermuteStart:
          case Opcode::Conditional: {
            const int v = new_value(i, {}, m_.shape_id(i));
            table[i] = v;
            tables_.push_back(v);
            break;
          }
          case Opcode::While:
            if (of(m_.operand(i, 0)) >= 0) table[i] = of(m_.operand(i, 0));
            break;
          case Opcode::OptBarrier:
            if (of(m_.operand(i, 0)) >= 0) table[i] = of(m_.operand(i, 0));
            break;
          default:
            break;
        }
      }
    // A loop's state has one for all trips.
    for (CompId c : comps)
      for (InstId i : m_.live_order(c)) {
        if (m_.op(i) == Opcode::While) both(of(m_.operand(i, 0)), of(m_.comp(m_.attrs(i).comp(Attr::body)).root));
        if (m_.op(i) == Opcode::Conditional)
          for (CompId branch : m_.called(i)) both(of(i), of(m_.comp(branch).root));
      }
    root_table_ = of(m_.comp(m_.entry()).root);
  }

  // --- what is one place from the start on ---

  void unite(int a, int b) {
    a = find(a), b = find(b);
    if (a == b) return;
    join(a, b);
    const int kept = find(a), gone = kept == a ? b : a;
    Times both;
    for (int v : {kept, gone})
      for (const auto& [from, piece] : times_[v].pieces()) both.add(from, piece.end, kept);
    times_[kept] = std::move(both);
    times_.erase(gone);
    fixed_[kept] |= fixed_[gone];
    room(kept, value(gone).size);
  }
  // Arguments that the program's results may lie in.
  void alias_with_results() {
    const Computation& entry = m_.comp(m_.entry());
    for (const AliasEntry& e : parse_aliases(m_.config().input_output_alias)) {
      if (e.number < 0 || static_cast<size_t>(e.number) >= entry.params.size()) continue;
      const int from = leaf_of(entry.params[static_cast<size_t>(e.number)], e.index),
                to = leaf_of(entry.root, e.output);
      if (from < 0 || to < 0) continue;
      const int a = find(from), b = find(to);
      if (a != b) {
        if (fixed_[b] || value(a).size != value(b).size ||
            times_[a].clashes(times_[b], [&](int64_t t, int x, int y) { return may_touch(t, x, y); }))
          continue;
        unite(a, b);
      }
      donated_.insert(find(a));
    }
    for (int v : donated_) fixed_[v] = false;
  }
  int leaf_of(InstId i, const Dims& index) {
    const uint32_t node = nodes_.at(m_.shape_id(i), index);
    return node < nodes_.count(m_.shape_id(i)) ? leaf_at(i, node) : -1;
  }
  void overwrite_in_place() {
    for (CompId c : computations()) {
      if (under_.contains(c)) continue;
      for (InstId i : m_.live_order(c))
        for (const InPlacePair& p : aliases_.in_place(i)) {
          const int from = leaf_at(m_.operand(i, p.operand), p.operand_node), to = leaf_at(i, p.result_node);
          if (from < 0 || to < 0) continue;
          const int a = find(from), b = find(to);
          if (a == b || fixed_[a] || fixed_[b] || value(a).size != value(b).size ||
              times_[a].clashes(times_[b], [&](int64_t t, int x, int y) { return may_touch(t, x, y); }))
            continue;
          unite(a, b);
        }
    }
  }

  // At position t a value of class x is read for the last time and one of y made.
  bool may_touch(int64_t t, int x, int y) {
    auto found = at_.find(t);
    if (found == at_.end()) return false;
    const InstId i = found->second;
    if (m_.op(i) == Opcode::Copy || m_.op(i) == Opcode::Parameter || is_given(i)) return false;
    if (!flow_) return false;
    const std::vector<int>& made = out_.by_inst[i];
    const std::vector<uint32_t> results = leaf_nodes(i);
    for (size_t k = 0; k < made.size(); ++k) {
      if (find(made[k]) != y) continue;
      for (size_t n = 0; n < m_.operand_count(i); ++n) {
        const InstId o = m_.operand(i, n);
        const std::vector<int>& read = out_.by_inst[o];
        const std::vector<uint32_t> parts = leaf_nodes(o);
        for (size_t j = 0; j < read.size(); ++j)
          if (find(read[j]) == x && aliases_.can_share(*flow_, {i, static_cast<uint32_t>(n), parts[j]}, i, results[k]))
            return true;
      }
    }
    return false;
  }
  // Parts of an instruction's result that are arrays, by number.
  std::vector<uint32_t> leaf_nodes(InstId i) {
    const std::vector<ShapeId> shapes = nodes_.shapes(m_.shape_id(i));
    std::vector<uint32_t> out;
    for (uint32_t k = 0; k < shapes.size(); ++k)
      if (!u_[shapes[k]].is_tuple()) out.push_back(k);
    return out;
  }
  int leaf_at(InstId i, uint32_t node) {
    const std::vector<int>& list = out_.by_inst[i];
    const uint32_t leaf = nodes_.leaf(m_.shape_id(i), node);
    return leaf < list.size() ? list[leaf] : -1;
  }

  // --- allocations ---

  int give(int v, Allocation a) {
    const int number = static_cast<int>(out_.allocations.size());
    value(v).allocation = number;
    if (a.size == 0) a.size = value(v).size;
    a.values.push_back(v);
    a.live_out |= live_out_[v];
    out_.allocations.push_back(std::move(a));
    busy_.push_back(times_[v]);
    return number;
  }
  // Of what is assigned here: the place in the computations' post orders, one behind the other.
  std::unordered_map<InstId, int64_t> places(const std::vector<CompId>& comps) {
    std::unordered_map<InstId, int64_t> place;
    int64_t next = 0;
    for (CompId c : comps)
      if (comp_start_.contains(c))
        for (InstId i : m_.post_order(c)) place[i] = next++;
    return place;
  }
  // In XLA's order: by size, results first, then where they are made, the entry's first.
  std::vector<int> by_size() {
    std::vector<CompId> comps = m_.computation_post_order();
    std::reverse(comps.begin(), comps.end());
    std::unordered_map<InstId, int64_t> place = places(comps);
    std::vector<int64_t> first(out_.values.size(), INT64_MAX);
    for (size_t v = 0; v < out_.values.size(); ++v) {
      int64_t& f = first[static_cast<size_t>(find(static_cast<int>(v)))];
      f = std::min(f, place[out_.values[v].inst]);
    }
    std::vector<int> order;
    for (size_t v = 0; v < out_.values.size(); ++v)
      if (find(static_cast<int>(v)) == static_cast<int>(v)) order.push_back(static_cast<int>(v));
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      if (value(a).size != value(b).size) return value(a).size > value(b).size;
      if (live_out_[a] != live_out_[b]) return static_cast<bool>(live_out_[a]);
      return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)];
    });
    return order;
  }
  void own_allocations() {
    const Computation& entry = m_.comp(m_.entry());
    for (int v : out_.by_inst[entry.root]) live_out_[v] = true;
    if (root_table_ >= 0) live_out_[find(root_table_)] = true;
    for (InstId p : entry.params)
      for (size_t k = 0; k < out_.by_inst[p].size(); ++k) parameters_.try_emplace(out_.by_inst[p][k], p, k);
    for (int v : tables_) is_table_.insert(find(v));
  }
  void into_allocations() {
    for (int v : by_size()) {
      const InstId by = value(v).inst;
      if (auto p = parameters_.find(v); p != parameters_.end()) {
        const auto [inst, leaf] = p->second;
        std::vector<Dims>& paths = paths_[inst];
        if (paths.empty()) paths = leaf_indices(u_, m_.shape_id(inst));
        Allocation a;
        a.kind = Allocation::kParameter;
        a.parameter = m_.parameter_number(inst);
        a.parameter_index = paths[leaf];
        a.parameter_shape = value(v).shape;
        const int number = give(v, std::move(a));
        if (donated_.contains(v)) reusable_.push_back(number);
      } else if (m_.op(by) == Opcode::Constant) {
        Allocation a;
        a.kind = Allocation::kConstant;
        give(v, std::move(a));
      } else if (is_table_.contains(v)) {
        Allocation a;
        a.kind = live_out_[v] ? Allocation::kTuple : Allocation::kTemp;
        if (live_out_[v]) a.output_shape = m_.shape_id(m_.comp(m_.entry()).root);
        give(v, std::move(a));
      } else if (times_[v].empty() || into_operands(v) || into_free(v)) {
        continue;
      } else if (live_out_[v]) {
        Allocation a;
        a.kind = Allocation::kOutput;
        if (!m_.shape(m_.comp(m_.entry()).root).is_tuple()) a.output_shape = m_.shape_id(m_.comp(m_.entry()).root);
        reusable_.push_back(give(v, std::move(a)));
      } else {
        rest_.push_back(v);
      }
    }
  }
  bool into_operands(int v) {
    const InstId by = value(v).inst;
    if (!m_.shape(by).is_array() || m_.op(by) == Opcode::Parameter) return false;
    for (InstId o : m_.operands(by)) {
      const std::vector<int>& list = out_.by_inst[o];
      if (m_.shape(o).is_array() && list.size() == 1 && value(list[0]).allocation >= 0 &&
          into(value(list[0]).allocation, v))
        return true;
    }
    return false;
  }
  bool into_free(int v) {
    // Of a hundred thousand results each, the latest alone are tried: XLA tries them all.
    size_t few = kFewTries;
    for (auto a = reusable_.rbegin(); a != reusable_.rend() && (tries_left_ > 0 || few > 0); ++a) {
      --(tries_left_ > 0 ? tries_left_ : few);
      if (into(*a, v)) return true;
    }
    return false;
  }
  bool into(int number, int v) {
    Allocation& a = out_.allocations[static_cast<size_t>(number)];
    if (in_host(v) != in_host(a.values[0])) return false;
    if (value(v).size > a.size || a.kind == Allocation::kConstant || a.kind == Allocation::kTuple ||
        a.kind == Allocation::kTemp || (a.kind == Allocation::kParameter && !donated_.contains(a.values[0])))
      return false;
    if (live_out_[v] && value(v).size != a.size) return false;
    Times& busy = busy_[static_cast<size_t>(number)];
    if (busy.clashes(times_[v], [&](int64_t t, int x, int y) { return may_touch(t, x, y); })) return false;
    for (const auto& [from, piece] : times_[v].pieces()) busy.add(from, piece.end, v);
    value(v).allocation = number;
    a.values.push_back(v);
    a.live_out |= live_out_[v];
    return true;
  }

  // The host's memory is another one than the device's.
  bool in_host(int v) { return is_in_host_memory(u_[value(v).shape]); }

  // Values that nothing had room for, each memory's by themselves.
  void into_heap() {
    std::vector<int> device, host;
    for (int v : rest_) (in_host(v) ? host : device).push_back(v);
    into_heap(device);
    into_heap(host);
  }
  void into_heap(const std::vector<int>& rest) {
    if (rest.empty()) return;
    const std::unordered_set<int> waiting(rest.begin(), rest.end());
    const std::unordered_map<InstId, int64_t> place = places(m_.computation_post_order());
    std::vector<HeapValue> values;
    for (const Life& life : lives_) {
      const int v = find(life.value);
      if (!waiting.contains(v)) continue;
      HeapValue h{v, value(v).size, life.from, life.to, place.at(life.by) << kLeafBits | life.leaf, {}};
      if (flow_ && m_.op(life.by) != Opcode::Copy && m_.op(life.by) != Opcode::Parameter && !is_given(life.by))
        h.operands = gives_way(life, waiting);
      values.push_back(std::move(h));
    }
    const Heap heap = simulate_heap(std::move(values));
    const int number = static_cast<int>(out_.allocations.size());
    for (int v : rest) value(v).offset = heap.offsets.at(v), value(v).allocation = number;
    Allocation a;
    a.size = heap.size, a.values = rest;
    out_.allocations.push_back(std::move(a));
  }
  // The operands of what makes it that it may lie in the place of, where they wait for one, too.
  std::vector<int> gives_way(const Life& life, const std::unordered_set<int>& waiting) {
    std::vector<int> out;
    const std::span<const InstId> operands = m_.operands(life.by);
    const uint32_t result = leaf_nodes(life.by)[static_cast<size_t>(life.leaf)];
    for (InstId o : operands) {
      if (!m_.shape(o).is_array()) continue;
      const DataflowValue& read = (*flow_)[flow_->at(o)];
      const auto slot = std::find(operands.begin(), operands.end(), read.inst);
      const int x = find(out_.by_inst[o][0]);
      if (slot == operands.end() || x == find(life.value) || !waiting.contains(x)) continue;
      const ValueUse use{life.by, static_cast<uint32_t>(slot - operands.begin()), read.node};
      if (aliases_.can_share(*flow_, use, life.by, result)) out.push_back(x);
    }
    return out;
  }

  size_t reducers_values() const {
    size_t n = 0;
    for (CompId c : m_.nonfusion_computations())
      if (!comp_start_.contains(c))
        for (InstId i : m_.live_order(c)) n += !alias(i) && m_.op(i) != Opcode::GetTupleElement;
    return n;
  }
  // Temporary allocations become one, behind all others.
  void combine() {
    std::vector<Allocation> kept, temps;
    std::vector<std::pair<bool, size_t>> where;  // by old number: is it temporary, and which one
    // Behind them XLA has those of reducers and the like, one a value, which are not told here: it takes those that are
    // temporary out by exchanging them with what stands at the end.
    const size_t count = out_.allocations.size();
    std::vector<size_t> order(count + reducers_values());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    size_t front = 0, back = order.size();
    auto on_device = [&](const Allocation& a) {
      return a.kind == Allocation::kTemp && (a.values.empty() || !in_host(a.values[0]));
    };
    auto temporary = [&](size_t k) { return order[k] < count && on_device(out_.allocations[order[k]]); };
    while (true) {
      while (front < back && !temporary(front)) ++front;
      while (front < back && temporary(back - 1)) --back;
      if (front >= back) break;
      std::swap(order[front], order[back - 1]);
    }
    std::vector<int> number(order.size(), -1);
    std::vector<int64_t> base(order.size(), 0);
    Allocation all;
    std::erase_if(order, [&](size_t k) { return k >= count; });
    for (size_t k : order) {
      Allocation& a = out_.allocations[k];
      if (!on_device(a)) {
        number[k] = static_cast<int>(kept.size());
        kept.push_back(std::move(a));
        continue;
      }
      base[k] = (all.size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
      all.size = base[k] + a.size;
      all.values.insert(all.values.end(), a.values.begin(), a.values.end());
    }
    for (size_t k = 0; k < order.size(); ++k)
      if (number[k] < 0) number[k] = static_cast<int>(kept.size());
    for (BufferValue& v : out_.values)
      if (v.allocation >= 0)
        v.offset += base[static_cast<size_t>(v.allocation)], v.allocation = number[static_cast<size_t>(v.allocation)];
    if (!all.values.empty()) kept.push_back(std::move(all));
    out_.allocations = std::move(kept);
  }

  // Values that were joined into others: they are found through them.
  void spread_to_members() {
    for (Allocation& a : out_.allocations) a.values.clear();
    for (size_t k = 0; k < out_.values.size(); ++k) {
      const int v = static_cast<int>(k), r = find(v);
      BufferValue& member = out_.values[k];
      if (r != v) member.allocation = value(r).allocation, member.offset = value(r).offset;
      if (times_[r].empty()) {
        member.first = start_[member.inst], member.last = is_table_.contains(r) ? member.first : -1;
      } else {
        member.first = times_[r].first(), member.last = times_[r].last();
      }
      if (member.allocation >= 0) out_.allocations[static_cast<size_t>(member.allocation)].values.push_back(v);
    }
  }

  const AliasInfo aliases_;
  static constexpr size_t kFewTries = 16;
  static constexpr int kLeafBits = 24;
  size_t tries_left_ = size_t{1} << 24;
  std::optional<Dataflow> flow_;
  std::unordered_map<int64_t, InstId> at_;  // by position
  std::unordered_map<int, Times> times_;    // by class
  std::unordered_map<int, bool> fixed_, live_out_;
  std::unordered_map<int, std::pair<InstId, size_t>> parameters_;
  std::unordered_map<InstId, std::vector<Dims>> paths_;  // of the parameters' arrays
  std::unordered_set<int> donated_, is_table_;
  std::vector<Life> lives_;
  std::vector<int> tables_, reusable_, rest_;
  std::vector<Times> busy_;  // by allocation
  int root_table_ = -1;
};

}  // namespace

BufferAssignment assign_buffers(const Module& m, const GpuTarget& gpu) { return XlaBufferAssigner(m, gpu).run(); }
BufferAssignment assign_buffers(const Module& m) { return assign_buffers(m, default_gpu_target()); }

}  // namespace hlo
