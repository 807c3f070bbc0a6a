#include "replay/hunt/reduce.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "ir/base/hash.h"
#include "ir/print/print.h"
#include "ir/verify/verifier.h"
#include "parser/parser.h"
#include "passes/rewrite.h"
#include "replay/hunt/extract.h"
#include "replay/judge/judge.h"
#include "replay/os/process/ahead.h"

namespace hlo {
namespace {

class Reducer {
 public:
  Reducer(const Module& m, const std::function<bool(const Module&)>& faulty, const ReduceOptions& options)
      : best_(m.clone()),
        faulty_(faulty),
        options_(options),
        ahead_(options.jobs),
        size_(size_of(m, lossless_text(m).size())) {}

  Reduction run() {
    try {
      search();
    } catch (...) {
      ahead_.leave();
      throw;
    }
    ahead_.leave();
    Reduction out;
    out.module = std::move(best_);
    out.candidates = candidates_, out.accepted = accepted_, out.finished = !over();
    return out;
  }

 private:
  void search() {
    for (bool changed = true; changed && !over();) {
      changed = false;
      changed |= fewer_outputs();
      changed |= cut();
      changed |= unnest();
      changed |= forward();
      if (!options_.keep_shapes) changed |= shrink();
      changed |= plain();
    }
  }
  bool over() const { return candidates_ >= options_.most_candidates || (options_.stop && options_.stop()); }

  // What gets smaller with every step, so that there is an end: work, then numbers of elements, then text.
  using Size = std::tuple<size_t, int64_t, size_t>;
  static Size size_of(const Module& m, size_t text) {
    size_t work = 0;
    int64_t elements = 0;
    for (CompId c : m.computations())
      for (InstId i : m.live_order(c)) {
        Opcode op = m.op(i);
        bool plain = op == Opcode::Constant || (op == Opcode::Broadcast && m.op(m.operand(i, 0)) == Opcode::Constant);
        work += plain ? 1 : op == Opcode::Parameter ? 3 : 4;
        if (m.shape(i).is_array()) elements += m.shape(i).elements_count();
      }
    return {work, elements, text};
  }

  // Takes the candidate if it is smaller and the fault is still in it. Two alike are asked once.
  bool attempt(std::unique_ptr<Module> c) {
    std::string text = lossless_text(*c);
    const uint64_t question = hash_bytes(text);
    if (over() || !seen_.insert(question).second) return false;
    Size size = size_of(*c, text.size());
    if (size >= size_) return false;
    if (!options_.keep_invalid && !verify_module(*c, 1).empty()) return false;
    ++candidates_;
    if (options_.progress && !ahead_.in_child()) options_.progress(candidates_, best_->instruction_count());
    if (!ahead_.ask(question, [&] { return faulty_(*c); })) return false;
    ++accepted_;
    best_ = std::move(c), size_ = size;
    return true;
  }
  // An edit of a copy; false from it: not applicable.
  bool attempt(const std::function<bool(Module&)>& edit) {
    auto c = best_->clone();
    if (!edit(*c)) return false;
    tidy_entry(*c);
    return attempt(std::move(c));
  }

  // ddmin: leaves out ever smaller parts of n things while `without(first, last)` succeeds. The number of things may
  // shrink by each success: `count` is asked again.
  bool by_parts(const std::function<size_t()>& count, const std::function<bool(size_t, size_t)>& without) {
    bool changed = false;
    for (size_t size = count(); size >= 1 && !over(); size /= 2) {
      for (size_t at = 0; at < count() && !over();) {
        if (without(at, std::min(at + size, count())))
          changed = true;
        else
          at += size;
      }
    }
    return changed;
  }

  bool fewer_outputs() {
    bool changed = false;
    auto root = [&] { return best_->comp(best_->entry()).root; };
    if (best_->op(root()) == Opcode::Tuple) {
      changed |= by_parts([&] { return best_->op(root()) == Opcode::Tuple ? best_->operand_count(root()) : 0; },
                          [&](size_t a, size_t b) {
                            std::vector<InstId> kept;
                            for (size_t k = 0; k < best_->operand_count(root()); ++k)
                              if (k < a || k >= b) kept.push_back(best_->operand(root(), k));
                            return !kept.empty() && attempt(extracted(*best_, kept));
                          });
    }
    // An operand in the place of the result, as long as one will do; then anything before it, the earliest first.
    for (bool more = true; more && !over();) {
      more = false;
      std::vector<InstId> ops(best_->operands(root()).begin(), best_->operands(root()).end());
      for (InstId o : ops)
        if (best_->op(o) != Opcode::Parameter && best_->op(o) != Opcode::Constant && attempt(extracted(*best_, {o}))) {
          more = changed = true;
          break;
        }
    }
    return changed;
  }

  std::vector<InstId> work() const {
    std::vector<InstId> out;
    InstId root = best_->comp(best_->entry()).root;
    for (InstId i : best_->post_order(best_->entry()))
      if (i != root && best_->op(i) != Opcode::Parameter && best_->op(i) != Opcode::Constant) out.push_back(i);
    return out;
  }

  // Instructions become parameters; what only they needed goes.
  bool cut() {
    return by_parts([&] { return work().size(); },
                    [&](size_t a, size_t b) {
                      std::vector<InstId> list = work();
                      b = std::min(b, list.size());
                      if (a >= b) return false;
                      std::vector<InstId> cuts(list.begin() + static_cast<ptrdiff_t>(a),
                                               list.begin() + static_cast<ptrdiff_t>(b));
                      return attempt(extracted(*best_, {best_->comp(best_->entry()).root}, cuts));
                    });
  }

  template <class F>
  bool each_instruction(F f) {
    bool changed = false;
    for (CompId c : best_->computations()) {
      if (c.value >= best_->comp_slots() || !best_->comp(c).alive) continue;
      for (InstId i : best_->live_order(c)) {
        if (over()) return changed;
        if (best_->comp(c).alive && best_->alive(i) && best_->parent(i) == c) changed |= f(i);
      }
    }
    return changed;
  }

  // Bodies in the place of what calls them: calls and fusions, one step of a loop, one branch.
  bool unnest() {
    return each_instruction([&](InstId i) {
      Opcode op = best_->op(i);
      auto inlined = [&](CompId callee, size_t first, size_t count) {
        return attempt([&](Module& m) {
          std::vector<InstId> args(m.operands(i).begin() + static_cast<ptrdiff_t>(first),
                                   m.operands(i).begin() + static_cast<ptrdiff_t>(first + count));
          return inline_computation(m, i, callee, args, false);
        });
      };
      if (op == Opcode::Call || op == Opcode::Fusion) return inlined(best_->called(i)[0], 0, best_->operand_count(i));
      if (op == Opcode::While)
        return attempt([&](Module& m) { return m.replace(i, m.operand(i, 0)); }) ||
               inlined(best_->attrs(i).comp(Attr::body), 0, 1);
      if (op == Opcode::Conditional)
        for (size_t b = 0; b < best_->called(i).size(); ++b)
          if (inlined(best_->called(i)[b], b + 1, 1)) return true;
      return false;
    });
  }

  // An operand of the same shape, or zeros, in the place of an instruction or a parameter.
  bool forward() {
    return each_instruction([&](InstId i) {
      if (best_->op(i) == Opcode::Constant || best_->op(i) == Opcode::Tuple) return false;
      for (size_t k = 0; k < best_->operand_count(i); ++k)
        if (best_->shape_id(best_->operand(i, k)) == best_->shape_id(i) &&
            attempt([&](Module& m) { return m.replace(i, m.operand(i, k)); }))
          return true;
      const Shape& s = best_->shape(i);
      bool entry = best_->parent(i) == best_->entry();
      if (!s.is_array() || s.is_dynamic() || best_->is_root(i) || (best_->op(i) == Opcode::Parameter && !entry))
        return false;
      if (best_->op(i) == Opcode::Broadcast && best_->op(best_->operand(i, 0)) == Opcode::Constant) return false;
      for (double v : {0.0, 1.0})
        if (attempt([&](Module& m) {
              InstId zero = make_scalar(m, m.parent(i), m.shape(i).type, v);
              if (m.shape(i).rank()) zero = make_broadcast(m, m.parent(i), zero, {}, m.shape_id(i));
              m.replace_all_uses(i, zero);
              return true;
            }))
          return true;
      return false;
    });
  }

  // Everywhere one number for another: dimensions, bounds of slices, counts in constants. What no longer fits together
  // is refused by the parser or the verifier.
  bool shrink() {
    bool changed = false;
    std::unordered_set<int64_t> sizes;
    for (CompId c : best_->computations())
      for (InstId i : best_->live_order(c)) {
        const Shape& s = best_->shape(i);
        if (s.is_array())
          for (int64_t d : s.dims)
            if (d > 1) sizes.insert(d);
        if (best_->op(i) == Opcode::Constant && s.is_array() && s.rank() == 0 && is_integral(s.type)) {
          int64_t v = load_int(s.type, best_->literal(i).bytes.data());
          if (v > 2 && v < (1 << 30)) sizes.insert(v);
        }
      }
    std::vector<int64_t> list(sizes.begin(), sizes.end());
    std::sort(list.rbegin(), list.rend());
    for (int64_t d : list)
      for (int64_t to : {int64_t{1}, int64_t{2}, d / 2, d - 1}) {
        if (over()) return changed;
        if (to < 1 || to >= d) continue;
        if (replaced(d, to)) {
          changed = true;
          break;
        }
      }
    return changed;
  }

  bool replaced(int64_t from, int64_t to) {
    std::string text = lossless_text(*best_), out, old = std::to_string(from), fresh = std::to_string(to);
    // Whole numbers within brackets of shapes and slices, and alone in constants.
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    bool quoted = false;
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '"') quoted = !quoted;
      size_t stop = at + old.size();
      bool whole =
          !quoted && text.compare(at, old.size(), old) == 0 && stop < text.size() && !digit(text[stop]) && at > 0;
      char before = at ? text[at - 1] : ' ', after = stop < text.size() ? text[stop] : ' ';
      bool size = whole && (before == '[' || before == ',' || before == '=' || before == ':' || before == '{') &&
                  (after == ']' || after == ',' || after == '}');
      bool constant = whole && before == '(' && after == ')' && at >= 9 && text.compare(at - 9, 9, "constant(") == 0;
      if (size || constant)
        out += fresh, at = stop;
      else
        out += text[at++];
    }
    try {
      return attempt(parse_module(out, best_->universe()));
    } catch (const Failure&) {
      return false;  // it no longer is a module
    }
  }

  // Without what says nothing about values.
  bool plain() {
    bool changed = false;
    auto all = [&](auto edit) {
      return attempt([&](Module& m) {
        for (CompId c : m.computations())
          for (InstId i : m.live_order(c)) edit(m, i);
        return true;
      });
    };
    changed |= all([](Module& m, InstId i) { m.set_meta(i, MetaId()); });
    for (Attr key : {Attr::sharding, Attr::frontend_attributes, Attr::backend_config})
      changed |= all([key](Module& m, InstId i) {
        if (m.attrs(i).has(key)) m.erase_attr(i, key);
      });
    changed |= attempt([](Module& m) {
      ModuleConfig& config = m.edit_config();
      config.frontend_attributes.clear(), config.debug_attributes.clear();
      config.replica_count = config.num_partitions = 1;
      m.edit_stack() = {};
      return true;
    });
    return changed;
  }

  std::unique_ptr<Module> best_;
  const std::function<bool(const Module&)>& faulty_;
  const ReduceOptions& options_;
  Ahead ahead_;
  Size size_;
  std::unordered_set<uint64_t> seen_;
  size_t candidates_ = 0, accepted_ = 0;
};

}  // namespace

Reduction reduce(const Module& m, const std::function<bool(const Module&)>& faulty, const ReduceOptions& options) {
  return Reducer(m, faulty, options).run();
}

void scrub(Module& m) {
  Universe& u = m.u();
  m.set_module_name("reduced");
  m.edit_stack() = {};
  ModuleConfig& config = m.edit_config();
  config.frontend_attributes.clear(), config.debug_attributes.clear(), config.kept_verbatim.clear();
  size_t comp_number = 0, number = 0;
  // First out of the way, so that no new name meets an old one.
  for (const char* prefix : {"scrubbing", ""}) {
    comp_number = number = 0;
    for (CompId c : m.computations()) {
      std::string name = c == m.entry() ? "main" : fmt::format("computation.{}", ++comp_number);
      m.set_computation_name(c, u.str(prefix + name));
      for (InstId i : m.live_order(c)) {
        m.set_meta(i, MetaId());
        if (m.attrs(i).has(Attr::frontend_attributes)) m.erase_attr(i, Attr::frontend_attributes);
        bool parameter = m.op(i) == Opcode::Parameter && c == m.entry();
        m.set_name(i, u.str(prefix + (parameter ? fmt::format("p{}", m.parameter_number(i))
                                                : fmt::format("{}.{}", op_text(m.op(i)), ++number))));
      }
    }
  }
}

}  // namespace hlo
