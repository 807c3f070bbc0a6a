// What jax.lax.scan stacks up for its backward pass, computed again there: jax.checkpoint around the scanned function.
#include <algorithm>
#include <map>
#include <set>

#include "ir/base/stack_guard.h"
#include "ir/query/source_lines.h"
#include "ir/verify/verifier.h"
#include "passes/loops/loops.h"
#include "passes/rewrite.h"
#include "passes/scope.h"
#include "replay/os/interrupt.h"
#include "replay/report/findings/findings_parts.h"
#include "replay/report/levers/memory_levers.h"
#include "replay/report/levers/recompute.h"

namespace hlo {
namespace {

constexpr size_t kMostScanClones = 100000;

// A loop whose state is one tuple, taken apart by elements alone.
struct ScanLoop {
  InstId loop, state, root, init;  // `state`: the body's parameter; `root`, `init`: tuples
  CompId body;
};

std::optional<ScanLoop> scan_loop(const Module& m, InstId loop, const std::vector<std::vector<InstId>>& callers) {
  ScanLoop l{loop, {}, {}, m.operand(loop, 0), m.attrs(loop).comp(Attr::body)};
  if (callers[l.body.value].size() != 1 || m.comp(l.body).params.size() != 1) return {};
  l.state = m.comp(l.body).params[0], l.root = m.comp(l.body).root;
  auto elements_alone = [&](InstId i) {
    const auto users = m.users(i);
    return std::all_of(users.begin(), users.end(), [&](InstId u) { return m.op(u) == Opcode::GetTupleElement; });
  };
  if (m.op(l.init) != Opcode::Tuple || m.op(l.root) != Opcode::Tuple || !elements_alone(l.state) ||
      !elements_alone(loop) || m.users(l.init).size() != 1)
    return {};
  return l;
}

int64_t index_of(const Module& m, InstId i, InstId tuple) {
  return m.op(i) == Opcode::GetTupleElement && m.operand(i, 0) == tuple ? m.attrs(i).integer(Attr::index) : -1;
}

// Values of one step of `forward`, made in the body of `backward` from what that one has.
class ScanPair {
 public:
  ScanPair(Module& m, const ScanLoop& forward, const ScanLoop& backward) : m_(m), f_(forward), b_(backward) {}

  // Bytes of the stacks that are no longer needed; 0: nothing was changed.
  int64_t run(size_t* stacks, size_t* clones) {
    Trips trips;
    if (!trip_count(m_, f_.loop, &trips) || trips.init != 0 || trips.step != 1 || trips.count < 2) return 0;
    counter_ = trips.index, count_ = trips.count;
    find_stacks();
    // A stack that cannot be computed from the others stays, and others may be computed from it then.
    for (bool again = true; again;) {
      again = false, possible_.clear();
      for (auto& [value, s] : stacks_)
        if (!s.kept && !can_make(value, true)) s.kept = again = true, possible_.clear();
    }
    int64_t bytes = 0;
    for (const auto& [value, s] : stacks_) {
      if (s.kept) continue;
      for (InstId read : s.reads) {
        const InstId index = m_.operand(read, 1);
        const InstId now = made(value, index, true);
        const Dims& dims = m_.shape(read).dims;
        m_.replace_all_uses(read, make_reshape(m_, now, Dims(dims.begin(), dims.end())));
      }
      // Nothing is written there any more: what starts as zeros is state that no step needs.
      m_.set_operand(f_.root, s.at, m_.operand(m_.operand(f_.root, s.at), 0));
      bytes += array_size(m_, m_.operand(f_.init, s.at)), ++*stacks;
    }
    *clones += clones_;
    return bytes;
  }

 private:
  struct Stack {
    size_t at = 0;              // element of the forward loop's state
    int64_t there = -1;         // of the backward one's
    std::vector<InstId> reads;  // slices of it in the backward body
    bool kept = false;
  };

  bool stays(const ScanLoop& l, size_t k) const { return index_of(m_, m_.operand(l.root, k), l.state) == (int64_t)k; }
  bool is_zero(InstId i) const { return m_.op(i) == Opcode::Constant && is_all(m_, i, 0); }
  bool at_one_place(InstId i, size_t first_index) const {
    for (size_t k = first_index + 1; k < m_.operand_count(i); ++k)
      if (!is_zero(m_.operand(i, k))) return false;
    return true;
  }
  std::vector<InstId> readers(InstId state, size_t k) const {
    std::vector<InstId> out;
    for (InstId g : m_.users(state))
      if (index_of(m_, g, state) == static_cast<int64_t>(k))
        for (InstId u : m_.users(g)) out.push_back(u);
    return out;
  }
  bool tested(const ScanLoop& l, size_t k) const {
    return !readers(m_.comp(m_.attrs(l.loop).comp(Attr::condition)).params[0], k).empty();
  }
  // Where the backward loop carries what is `outside` there and stays so; -1: nowhere.
  int64_t carried(InstId outside) const {
    for (size_t k = 0; k < m_.operand_count(b_.init); ++k) {
      const InstId o = m_.operand(b_.init, k);
      const bool same =
          o == outside || (m_.op(o) == Opcode::GetTupleElement && m_.op(outside) == Opcode::GetTupleElement &&
                           m_.operand(o, 0) == m_.operand(outside, 0) &&
                           m_.attrs(o).integer(Attr::index) == m_.attrs(outside).integer(Attr::index));
      if (same && stays(b_, k)) return static_cast<int64_t>(k);
    }
    return -1;
  }
  // Where it carries element `k` of the forward loop, which that one leaves as it is.
  int64_t carried_element(int64_t k) const {
    if (const int64_t at = carried(m_.operand(f_.init, static_cast<size_t>(k))); at >= 0) return at;
    for (InstId g : m_.users(f_.loop))
      if (m_.attrs(g).integer(Attr::index) == k)
        if (const int64_t at = carried(g); at >= 0) return at;
    return -1;
  }

  // state[k] = dynamic-update-slice(state[k], reshape(value), counter, 0, …), read by slices in the backward body
  // alone.
  void find_stacks() {
    for (size_t k = 0; k < m_.operand_count(f_.root); ++k) {
      const InstId write = m_.operand(f_.root, k);
      if (m_.op(write) != Opcode::DynamicUpdateSlice || m_.users(write).size() != 1 ||
          index_of(m_, m_.operand(write, 0), f_.state) != static_cast<int64_t>(k) ||
          index_of(m_, m_.operand(write, 2), f_.state) != counter_ || !at_one_place(write, 2) ||
          readers(f_.state, k).size() != 1)
        continue;
      const InstId piece = m_.operand(write, 1);
      if (m_.op(piece) != Opcode::Reshape || m_.shape(write).dims[0] != count_) continue;
      const InstId value = m_.operand(piece, 0);
      Dims whole{1};
      for (int64_t d : m_.shape(value).dims) whole.push_back(d);
      if (!std::equal(whole.begin(), whole.end(), m_.shape(piece).dims.begin(), m_.shape(piece).dims.end()) ||
          stacks_.contains(value))
        continue;
      Stack s{k, -1, {}, false};
      size_t uses = 0;  // of the whole stack, but for the backward loop's own
      for (InstId g : m_.users(f_.loop))
        if (m_.attrs(g).integer(Attr::index) == static_cast<int64_t>(k)) {
          for (InstId u : m_.users(g)) uses += u != b_.init;
          uses += static_cast<size_t>(std::count(m_.operands(b_.init).begin(), m_.operands(b_.init).end(), g));
          if (s.there < 0) s.there = carried(g);
        }
      if (s.there < 0) continue;
      s.kept = uses != 1 || tested(f_, k) || tested(b_, static_cast<size_t>(s.there));
      for (InstId u : readers(b_.state, static_cast<size_t>(s.there))) {
        if (u == b_.root) continue;
        const bool slice = m_.op(u) == Opcode::DynamicSlice && at_one_place(u, 1) &&
                           std::equal(whole.begin(), whole.end(), m_.shape(u).dims.begin(), m_.shape(u).dims.end());
        if (slice)
          s.reads.push_back(u);
        else
          s.kept = true;
      }
      if (s.reads.empty() || index_of(m_, value, f_.state) >= 0) s.kept = true;
      stacks_.emplace(value, std::move(s));
    }
  }

  bool can_make(InstId i, bool itself = false) {
    check_stack("the body of a loop");
    if (auto s = stacks_.find(i); s != stacks_.end() && s->second.kept && !itself) return true;
    if (auto known = possible_.find(i); known != possible_.end()) return known->second;
    bool yes = false;
    if (const int64_t k = index_of(m_, i, f_.state); k >= 0)
      yes = k == counter_ || (stays(f_, static_cast<size_t>(k)) && carried_element(k) >= 0);
    else if (i != f_.state && m_.op(i) != Opcode::Parameter && can_be_computed_again(m_, i))
      yes = std::all_of(m_.operands(i).begin(), m_.operands(i).end(), [&](InstId o) { return can_make(o); });
    return possible_[i] = yes;
  }

  // The value of the step that wrote at `index`.
  InstId made(InstId i, InstId index, bool itself = false) {
    auto& now = made_[{index, i}];
    if (now.valid()) return now;
    InstId out;
    if (auto s = stacks_.find(i); s != stacks_.end() && s->second.kept && !itself) {
      const InstId slice_like = m_.operand(m_.operand(f_.root, s->second.at), 1);
      std::vector<InstId> operands{make_element(m_, b_.state, s->second.there), index};
      const Dims& dims = m_.shape(slice_like).dims;
      while (operands.size() < 1 + dims.size()) operands.push_back(zero_like(index));
      const InstId slice =
          make(m_, b_.body, Opcode::DynamicSlice, operands,
               attrs_of(m_.u(), Opcode::DynamicSlice, {{Attr::dynamic_slice_sizes, Dims(dims.begin(), dims.end())}}),
               m_.shape_id(slice_like));
      const Dims& flat = m_.shape(i).dims;
      out = make_reshape(m_, slice, Dims(flat.begin(), flat.end()));
    } else if (const int64_t k = index_of(m_, i, f_.state); k == counter_) {
      out = index_in_range(index);
    } else if (k >= 0) {
      out = make_element(m_, b_.state, carried_element(k));
    } else {
      std::vector<InstId> operands;
      for (InstId o : m_.operands(i)) operands.push_back(made(o, index));
      if (++clones_ > kMostScanClones) fail(FailureKind::kUnsupported, "too much is computed again");
      out = m_.clone_inst(i, b_.body, operands);
    }
    return made_[{index, i}] = out;
  }
  InstId zero_like(InstId index) { return make_scalar(m_, b_.body, m_.shape(index).type, int64_t{0}); }
  // Where a slice begins is clamped: so is what the step was.
  InstId index_in_range(InstId index) {
    const InstId last = make_scalar(m_, b_.body, m_.shape(index).type, count_ - 1);
    return make(m_, b_.body, Opcode::Clamp, {zero_like(index), index, last});
  }

  Module& m_;
  const ScanLoop f_, b_;
  int64_t counter_ = -1, count_ = 0;
  std::map<InstId, Stack> stacks_;  // by the value of a step
  std::map<InstId, bool> possible_;
  std::map<std::pair<InstId, InstId>, InstId> made_;
  size_t clones_ = 0;
};

}  // namespace

ScanRecomputed recomputed_scans(const Module& first) {
  ScanRecomputed out;
  try {
    auto m = first.clone();
    for (const char* pass : {"call-inliner", "tuple-simplifier", "dce"}) run_quietly(*m, pass);
    m->ensure_users();
    const std::vector<std::vector<InstId>> callers = m->callers();
    for (CompId c : m->nonfusion_computations()) {
      std::vector<ScanLoop> forward, backward;
      for (InstId i : m->live_order(c))
        if (m->op(i) == Opcode::While && !m->has_control(i))
          if (auto l = scan_loop(*m, i, callers)) (is_backward(*m, i) ? backward : forward).push_back(*l);
      for (const ScanLoop& f : forward)
        for (const ScanLoop& b : backward) {
          const int64_t bytes = ScanPair(*m, f, b).run(&out.stacks, &out.instructions);
          if (bytes && out.source.empty()) out.source = source_line(*m, f.loop).text();
          out.bytes += bytes;
        }
    }
    if (!out.stacks) return out;
    // State that is the same is merged first, and taken away by the next run.
    for (const char* pass :
         {"dce", "simplify-while-loops", "simplify-while-loops", "simplify-while-loops", "tuple-simplifier", "dce"})
      run_quietly(*m, pass);
    m->cleanup();
    if (verify_module(*m, 1).empty()) out.module = std::move(m);
  } catch (const Failure&) {
    if (interrupted()) throw;
    out.module = nullptr;
  }
  return out;
}

}  // namespace hlo
