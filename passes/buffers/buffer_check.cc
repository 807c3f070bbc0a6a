// An abstract run of the schedule, every value a token in its buffer: does each reader find what was written for it?
#include <map>

#include "ir/analysis/dataflow/points_to.h"
#include "passes/backend/backend.h"

namespace hlo {
namespace {

class BufferInterpreter {
 public:
  BufferInterpreter(const Module& m, const BufferAssignment& b, const BufferRules& rules)
      : m_(m), b_(b), rules_(rules), nodes_(m.u()) {}

  std::optional<std::string> run() {
    for (InstId p : m_.comp(m_.entry()).params) define(p);
    sequence(m_.entry());
    InstId root = m_.comp(m_.entry()).root;
    read(root, root, "the caller");
    return std::move(wrong_);
  }

 private:
  using Tokens = std::vector<int>;
  static constexpr int kConsumed = -2;  // of an operand that its asynchronous call has written over
  using Memory = std::map<std::pair<int, int64_t>, std::pair<int64_t, int>>;  // by allocation and offset: end, token

  const std::vector<int>& values_of(InstId i) const { return b_.by_inst.at(i); }
  const BufferValue& value(int v) const { return b_.values[static_cast<size_t>(v)]; }

  void write(int v, int token) {
    const BufferValue& at = value(v);
    if (at.size == 0) return;
    auto next = memory_.lower_bound({at.allocation, at.offset});
    if (next != memory_.begin()) {
      auto before = std::prev(next);
      if (before->first.first == at.allocation && before->second.first > at.offset) memory_.erase(before);
    }
    while (next != memory_.end() && next->first.first == at.allocation && next->first.second < at.offset + at.size)
      next = memory_.erase(next);
    memory_[{at.allocation, at.offset}] = {at.offset + at.size, token};
  }
  void write(InstId i, const Tokens& tokens) {
    const std::vector<int>& list = values_of(i);
    for (size_t k = 0; k < list.size(); ++k) write(list[k], tokens[k]);
  }
  void define(InstId i) {
    // What flowed into a loop twice and is only read there has one buffer.
    Tokens fresh;
    std::unordered_map<int, int> known;
    for (int v : values_of(i)) {
      auto [at, made] = known.try_emplace(v, next_);
      next_ += made;
      fresh.push_back(at->second);
    }
    write(i, fresh);
    tokens_[i] = std::move(fresh);
  }
  void read(InstId i, InstId at, std::string_view reader) {
    const std::vector<int>& list = values_of(i);
    const Tokens& tokens = tokens_[i];
    for (size_t k = 0; k < list.size() && !wrong_; ++k) {
      const BufferValue& v = value(list[k]);
      if (v.size == 0 || tokens[k] == kConsumed) continue;
      auto found = memory_.find({v.allocation, v.offset});
      if (found == memory_.end() || found->second.second != tokens[k])
        wrong_ = fmt::format("{} is overwritten before {} reads it", m_.inst_name(i),
                             reader.empty() ? m_.inst_name(at) : reader);
    }
  }
  void hand_over(CompId callee, const std::vector<const Tokens*>& given) {
    const auto& params = m_.comp(callee).params;
    for (size_t p = 0; p < params.size(); ++p) tokens_[params[p]] = *given[p];
  }
  bool alias(InstId i) const {
    if (rules_.alias) return rules_.alias(i);
    Opcode op = m_.op(i);
    return op == Opcode::Bitcast || op == Opcode::OptBarrier || op == Opcode::AddDependency || op == Opcode::Domain ||
           op == Opcode::AllReduceDone;
  }

  // The k-th of all arrays of the operands; -1: there are not so many.
  int operand_value(InstId i, size_t k) const {
    for (InstId o : m_.operands(i)) {
      const std::vector<int>& list = values_of(o);
      if (k < list.size()) return list[k];
      k -= list.size();
    }
    return -1;
  }

  void sequence(CompId c) {
    for (InstId i : m_.live_order(c)) {
      if (wrong_) return;
      step(i);
    }
  }
  // What is sent lies where it lay.
  void start_message(InstId i) {
    Tokens all, sent;
    for (InstId o : m_.operands(i)) {
      read(o, i, {});
      sent.insert(sent.end(), tokens_[o].begin(), tokens_[o].end());
    }
    for (size_t k = 0; k < values_of(i).size(); ++k) {
      const bool same = values_of(i)[k] == operand_value(i, k);
      all.push_back(same ? sent[k] : next_++);
      if (!same) write(values_of(i)[k], all.back());
    }
    tokens_[i] = std::move(all);
  }
  Tokens part(const Tokens& all, ShapeId tuple, size_t index) {
    return Tokens(all.begin() + nodes_.leaves_before(tuple, index),
                  all.begin() + nodes_.leaves_before(tuple, index + 1));
  }
  // Of all operands.
  Tokens joined(InstId i) {
    Tokens all;
    for (InstId o : m_.operands(i)) all.insert(all.end(), tokens_[o].begin(), tokens_[o].end());
    return all;
  }
  void start_copy(InstId i) {
    auto ops = m_.operands(i);
    read(ops[0], i, {});
    const Tokens source = tokens_[ops[0]];
    Tokens all;
    for (size_t k = 0; k < values_of(i).size(); ++k) {
      const bool kept = k >= source.size() && k < 2 * source.size();
      all.push_back(kept ? source[k - source.size()] : next_++);
      if (!kept) write(values_of(i)[k], all.back());
    }
    tokens_[i] = std::move(all);
  }
  void start_async(InstId i) {
    auto ops = m_.operands(i);
    for (InstId o : ops) read(o, i, {});
    std::vector<const Tokens*> given;
    for (InstId o : ops) given.push_back(&tokens_[o]);
    CompId callee = m_.called(i)[0];
    hand_over(callee, given);
    sequence(callee);
    if (wrong_) return;
    Tokens all = joined(i);
    // What the call itself writes over (an update in place) it needs there no more.
    for (size_t k = 0; k < all.size(); ++k) {
      const BufferValue& v = value(values_of(i)[k]);
      auto found = memory_.find({v.allocation, v.offset});
      if (found == memory_.end() || found->second.second != all[k]) all[k] = kConsumed;
    }
    const Tokens& result = tokens_[m_.comp(callee).root];
    all.insert(all.end(), result.begin(), result.end());
    for (size_t k = all.size(); k < values_of(i).size(); ++k) {
      all.push_back(next_++);
      write(values_of(i)[k], all.back());
    }
    tokens_[i] = std::move(all);
  }
  void run_loop(InstId i) {
    auto ops = m_.operands(i);
    read(ops[0], i, {});
    CompId condition = m_.attrs(i).comp(Attr::condition), body = m_.attrs(i).comp(Attr::body);
    InstId seen = m_.comp(condition).params[0], state = m_.comp(body).params[0], root = m_.comp(body).root;
    define(seen);  // of whatever trip
    sequence(condition);
    read(m_.comp(condition).root, i, {});
    read(seen, i, {});
    tokens_[state] = tokens_[seen];
    sequence(body);
    read(root, i, {});
    if (!wrong_ && values_of(root) != values_of(state))
      wrong_ = fmt::format("{} is not where the next trip of {} looks for it", m_.inst_name(root), m_.inst_name(i));
    if (wrong_) return;
    // What every trip hands on is what flowed in.
    Tokens after;
    for (size_t k = 0; k < values_of(i).size(); ++k)
      after.push_back(tokens_[root][k] == tokens_[state][k] ? tokens_[ops[0]][k] : next_++);
    write(i, after);
    tokens_[i] = std::move(after);
  }
  void run_branches(InstId i) {
    auto ops = m_.operands(i);
    read(ops[0], i, {});
    const auto called = m_.called(i);
    Memory before = memory_, after;
    Tokens given;
    for (size_t k = 0; k < called.size(); ++k) {
      memory_ = before;
      read(ops[k + 1], i, {});
      hand_over(called[k], {&tokens_[ops[k + 1]]});
      sequence(called[k]);
      read(m_.comp(called[k]).root, i, {});
      if (!wrong_ && values_of(m_.comp(called[k]).root) != values_of(i))
        wrong_ = fmt::format("{} leaves its result elsewhere", m_.comp_name(called[k]));
      const Tokens& left = tokens_[m_.comp(called[k]).root];
      if (k == 0)
        after = memory_, given = left;
      else
        std::erase_if(after, [&](const auto& entry) {
          auto found = memory_.find(entry.first);
          return found == memory_.end() || found->second != entry.second;
        });
      for (size_t n = 0; n < given.size(); ++n)
        if (given[n] != left[n]) given[n] = -1;
    }
    memory_ = std::move(after);
    // What every branch hands on is what it was.
    for (int& token : given)
      if (token < 0) token = next_++;
    write(i, given);
    tokens_[i] = std::move(given);
  }
  void run_call(InstId i) {
    auto ops = m_.operands(i);
    for (InstId o : ops) read(o, i, {});
    std::vector<const Tokens*> given;
    for (InstId o : ops) given.push_back(&tokens_[o]);
    hand_over(m_.called(i)[0], given);
    sequence(m_.called(i)[0]);
    tokens_[i] = tokens_[m_.comp(m_.called(i)[0]).root];
  }
  void step(InstId i) {
    auto ops = m_.operands(i);
    switch (m_.op(i)) {
      case Opcode::Parameter:
        return;
      case Opcode::Tuple:
        tokens_[i] = joined(i);
        return;
      case Opcode::GetTupleElement:
        tokens_[i] = part(tokens_[ops[0]], m_.shape_id(ops[0]), static_cast<size_t>(m_.attrs(i).integer(Attr::index)));
        return;
      case Opcode::AsyncUpdate:
        tokens_[i] = tokens_[ops[0]];
        return;
      case Opcode::AllGatherDone:
      case Opcode::CollectivePermuteDone:
      case Opcode::AsyncDone:
        read(ops[0], i, {});
        tokens_[i] = part(tokens_[ops[0]], m_.shape_id(ops[0]), 1);
        return;
      case Opcode::CopyDone:
        read(ops[0], i, {});
        tokens_[i] = part(tokens_[ops[0]], m_.shape_id(ops[0]), 0);
        return;
      case Opcode::AllGatherStart:
      case Opcode::CollectivePermuteStart:
        return start_message(i);
      case Opcode::CopyStart:
        return start_copy(i);
      case Opcode::AsyncStart:
        return start_async(i);
      case Opcode::While:
        return run_loop(i);
      case Opcode::Conditional:
        return run_branches(i);
      case Opcode::Call:
        return run_call(i);
      default:
        if (alias(i)) {
          tokens_[i] = tokens_[ops[0]];
          return;
        }
        for (InstId o : ops) read(o, i, {});
        define(i);
    }
  }

  const Module& m_;
  const BufferAssignment& b_;
  const BufferRules& rules_;
  ShapeNodes nodes_;
  Memory memory_;
  std::unordered_map<InstId, Tokens> tokens_;
  int next_ = 0;
  std::optional<std::string> wrong_;
};

}  // namespace

std::optional<std::string> overwritten_value(const Module& m, const BufferAssignment& assignment,
                                             const BufferRules& rules) {
  return BufferInterpreter(m, assignment, rules).run();
}

}  // namespace hlo
