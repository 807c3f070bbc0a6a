#include "passes/buffers/buffer_values.h"

#include <algorithm>

#include "ir/base/stack_guard.h"

namespace hlo {
namespace {
constexpr int64_t kMostSteps = int64_t{1} << 24;  // of the flattened schedule
}

void BufferValues::flatten(CompId c, InstId done) {
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
InstId BufferValues::done_of(InstId start) const {
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
bool BufferValues::alias(InstId i) const {
  if (rules_.alias) return rules_.alias(i);
  Opcode op = m_.op(i);
  return op == Opcode::Bitcast || op == Opcode::OptBarrier || op == Opcode::AddDependency || op == Opcode::Domain ||
         op == Opcode::AllReduceDone;
}

bool BufferValues::sends_operands(InstId i) const {
  if (m_.op(i) != Opcode::AllGatherStart && m_.op(i) != Opcode::CollectivePermuteStart) return false;
  const Shape& s = m_.shape(i);
  int sent = 0;
  for (InstId o : m_.operands(i)) sent += leaves(m_.shape_id(o));
  return s.is_tuple() && s.elements.size() > 1 && leaves(s.elements[0]) == sent;
}

int BufferValues::new_value(InstId i, const Dims& index, ShapeId s) {
  BufferValue v;
  v.inst = i, v.index = index, v.shape = s, v.size = rules_.bytes ? rules_.bytes(s) : u_.byte_size(s);
  // Offsets and totals are sums of these, so none of them overflows where all together do not.
  sum_ += Checked(v.size) + kBufferAlignment;
  sum_.value("what the module's buffers hold together");
  out_.values.push_back(v);
  class_.push_back(static_cast<int>(class_.size()));
  return static_cast<int>(out_.values.size()) - 1;
}
void BufferValues::define(InstId i, ShapeId s, Dims& index, std::vector<int>& list) {
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
// What is sent lies where it lay, all else is new.
void BufferValues::start_message(InstId i, std::vector<int>& list) {
  Dims index;
  if (!sends_operands(i)) return define(i, m_.shape_id(i), index, list);
  for (InstId o : m_.operands(i)) list.insert(list.end(), out_.by_inst[o].begin(), out_.by_inst[o].end());
  const std::vector<ShapeId> parts = m_.shape(i).elements;
  for (size_t k = 1; k < parts.size(); ++k) {
    index = {static_cast<int64_t>(k)};
    define(i, parts[k], index, list);
  }
}
int BufferValues::find(int v) {
  while (class_[static_cast<size_t>(v)] != v)
    v = class_[static_cast<size_t>(v)] = class_[static_cast<size_t>(class_[static_cast<size_t>(v)])];
  return v;
}
void BufferValues::join(int a, int b) {
  a = find(a), b = find(b);
  if (a != b) class_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
}
void BufferValues::join(const std::vector<int>& a, const std::vector<int>& b) {
  for (size_t k = 0; k < a.size() && k < b.size(); ++k) join(a[k], b[k]);
}

void BufferValues::flow_async(InstId i, std::vector<int>& list) {
  auto ops = m_.operands(i);
  auto of = [&](InstId o) -> const std::vector<int>& { return out_.by_inst[o]; };
  // Arguments, result and what else the shape has.
  const auto& params = m_.comp(m_.called(i)[0]).params;
  const std::vector<ShapeId> whole = m_.shape(i).elements;
  if (params.size() != ops.size() || leaves(whole[1]) != leaves(m_.shape_id(m_.comp(m_.called(i)[0]).root)))
    fail(FailureKind::kUnsupported, "{}: buffers for operands or results that are bound later", m_.inst_name(i));
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
}

void BufferValues::flow_copy(InstId i, std::vector<int>& list) {
  auto ops = m_.operands(i);
  auto of = [&](InstId o) -> const std::vector<int>& { return out_.by_inst[o]; };
  Dims index{0};
  const std::vector<ShapeId> parts = m_.shape(i).elements;
  define(i, parts[0], index, list);
  list.insert(list.end(), of(ops[0]).begin(), of(ops[0]).end());
  for (size_t k = 2; k < parts.size(); ++k) {
    Dims at{static_cast<int64_t>(k)};
    define(i, parts[k], at, list);
  }
}

void BufferValues::flow_loop(InstId i, std::vector<int>& list) {
  auto ops = m_.operands(i);
  auto of = [&](InstId o) -> const std::vector<int>& { return out_.by_inst[o]; };
  CompId body = m_.attrs(i).comp(Attr::body), condition = m_.attrs(i).comp(Attr::condition);
  list = of(ops[0]);
  out_.by_inst[m_.comp(condition).params[0]] = list;
  out_.by_inst[m_.comp(body).params[0]] = list;
  given_.insert(m_.comp(condition).params[0]), given_.insert(m_.comp(body).params[0]);
  flow(condition);
  flow(body);
  join(list, of(m_.comp(body).root));
}

void BufferValues::flow_calls(InstId i, std::vector<int>& list) {
  auto ops = m_.operands(i);
  auto of = [&](InstId o) -> const std::vector<int>& { return out_.by_inst[o]; };
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
}

void BufferValues::flow(CompId c) {
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
        const size_t index = static_cast<size_t>(m_.attrs(i).integer(Attr::index));
        const int skip = leaves_before(m_.shape_id(ops[0]), index);
        const std::vector<int>& all = of(ops[0]);
        HLO_CHECK(all.size() == static_cast<size_t>(leaves(m_.shape_id(ops[0]))), "{} comes before its operand {}",
                  m_.inst_name(i), m_.inst_name(ops[0]));
        list.assign(all.begin() + skip, all.begin() + skip + leaves(m_.shape_id(i)));
        break;
      }
      case Opcode::AsyncStart:
        flow_async(i, list);
        break;
      case Opcode::AsyncUpdate:
        list = of(ops[0]);
        break;
      case Opcode::AllGatherStart:
      case Opcode::CollectivePermuteStart:
        start_message(i, list);
        break;
      case Opcode::AllGatherDone:
      case Opcode::CollectivePermuteDone:
      case Opcode::AsyncDone: {
        const std::vector<int>& all = of(ops[0]);
        int skip = leaves(m_.shape(ops[0]).elements[0]);
        list.assign(all.begin() + skip, all.begin() + skip + leaves(m_.shape_id(i)));
        break;
      }
      case Opcode::CopyStart:
        flow_copy(i, list);
        break;
      case Opcode::CopyDone:
        list.assign(of(ops[0]).begin(), of(ops[0]).begin() + leaves(m_.shape_id(i)));
        break;
      case Opcode::While:
        flow_loop(i, list);
        break;
      case Opcode::Conditional:
      case Opcode::Call:
        flow_calls(i, list);
        break;
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

std::vector<CompId> BufferValues::computations() const {
  std::vector<CompId> comps;
  for (const auto& [c, at] : comp_start_) comps.push_back(c);
  std::sort(comps.begin(), comps.end(), [&](CompId a, CompId b) { return comp_start_.at(a) < comp_start_.at(b); });
  return comps;
}

void BufferValues::last_reads(CompId c, Ends& ends) {
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
    if (op == Opcode::Tuple || op == Opcode::AsyncStart || sends_operands(i)) {
      size_t k = 0;
      for (InstId o : ops)
        for (size_t leaf = 0; leaf < ends[o].size(); ++leaf) reach(o, leaf, until[k++]);
    } else if (op == Opcode::GetTupleElement || is_message_done(op)) {
      const size_t index = is_message_done(op) ? 1 : static_cast<size_t>(m_.attrs(i).integer(Attr::index));
      const size_t skip = static_cast<size_t>(leaves_before(m_.shape_id(ops[0]), index));
      if (is_message_done(op)) reach_all(end_[i]);
      for (size_t k = 0; k < until.size(); ++k) reach(ops[0], skip + k, until[k]);
    } else if (op == Opcode::CopyStart) {
      const size_t copies = ends[ops[0]].size();
      for (size_t k = 0; k < copies; ++k) reach(ops[0], k, until[copies + k]);
    } else if (op == Opcode::CopyDone) {
      reach_all(end_[i]);
      for (size_t k = 0; k < until.size(); ++k) reach(ops[0], k, until[k]);
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

namespace {

int64_t aligned(int64_t n) { return (n + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

// Pieces of time of blocks that have a place, to be asked for those at one time with another: the largest end over
// ranges of them in the order of their starts.
class Placed {
 public:
  Placed(const std::vector<HeapBlock>& blocks, const std::vector<int>& list) : pieces_of_(blocks.size()) {
    for (int b : list)
      for (const auto& [from, to] : blocks[static_cast<size_t>(b)].times) pieces_.push_back({from, to, b});
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return std::pair(a.from, a.block) < std::pair(b.from, b.block); });
    while (size_ < pieces_.size()) size_ *= 2;
    ends_.assign(2 * size_, -1);
    for (size_t k = 0; k < pieces_.size(); ++k) pieces_of_[static_cast<size_t>(pieces_[k].block)].push_back(k);
  }
  void add(int b) {
    for (size_t k : pieces_of_[static_cast<size_t>(b)]) {
      size_t at = size_ + k;
      for (ends_[at] = pieces_[k].to; at > 1; at /= 2) ends_[at / 2] = std::max(ends_[at / 2], ends_[at]);
    }
  }
  template <typename F>
  void overlapping(int64_t from, int64_t to, F found) const {
    visit(1, 0, size_, from, to, found);
  }

 private:
  struct Piece {
    int64_t from, to;
    int block;
  };
  template <typename F>
  void visit(size_t node, size_t begin, size_t count, int64_t from, int64_t to, F& found) const {
    if (ends_[node] < from || begin >= pieces_.size() || pieces_[begin].from > to) return;
    if (count == 1) return found(pieces_[begin].block);
    visit(2 * node, begin, count / 2, from, to, found);
    visit(2 * node + 1, begin + count / 2, count / 2, from, to, found);
  }
  std::vector<Piece> pieces_;
  std::vector<std::vector<size_t>> pieces_of_;  // pieces of each block
  size_t size_ = 1;
  std::vector<int64_t> ends_;
};

}  // namespace

int64_t best_fit(std::vector<HeapBlock>& blocks, const std::vector<int>& order) {
  Placed placed(blocks, order);
  int64_t size = 0;
  for (int b : order) {
    HeapBlock& block = blocks[static_cast<size_t>(b)];
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const auto& [from, to] : block.times)
      placed.overlapping(from, to, [&](int other) {
        const HeapBlock& o = blocks[static_cast<size_t>(other)];
        taken.push_back({o.offset, o.offset + aligned(std::max<int64_t>(o.size, 1))});
      });
    std::sort(taken.begin(), taken.end());
    int64_t need = aligned(std::max<int64_t>(block.size, 1)), best = -1, best_gap = INT64_MAX, at = 0;
    for (const auto& [from, to] : taken) {
      if (from - at >= need && from - at < best_gap) best = at, best_gap = from - at;
      at = std::max(at, to);
    }
    block.offset = best >= 0 ? best : at;
    size = std::max(size, block.offset + block.size);
    placed.add(b);
  }
  return size;
}

}  // namespace hlo
