// The rules of single operations, one method a kind: verifier_rules.cc, of gathers and scatters verifier_indexing.cc,
// of devices and asynchronous operations verifier_devices.cc.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "ir/module.h"

namespace hlo {

class OperationRules {
 public:
  OperationRules(const Module& m, InstId i, bool settled, bool mixed,
                 const std::function<void(std::string_view, std::string)>& error)
      : m_(m), u_(m.u()), i_(i), settled_(settled), mixed_(mixed), a_(m.attrs(i)), error_(error) {}

  void run();

 private:
  // --- which rules an opcode has, by kind; each leaves the opcodes of the others alone ---
  void elementwise();
  void typed_and_moved();
  void reduced_and_ordered();
  void paired_and_collective();
  void called();

  // --- words ---
  static bool integral(ElementType t) { return is_signed_int(t) || is_unsigned_int(t); }
  const Shape& in(size_t n) const { return m_.shape(m_.operand(i_, n)); }
  const Shape& out() const { return m_.shape(i_); }
  ElementType type(size_t n) const { return in(n).type; }
  const std::string& text(InstId i) const { return u_.shape_text_plain(m_.shape_id(i)); }
  const std::string& text(size_t n) const { return text(m_.operand(i_, n)); }
  template <class... A>
  void shape(fmt::format_string<A...> f, A&&... args) {
    error_("shapes", fmt::format(f, std::forward<A>(args)...));
  }
  template <class... A>
  void attribute(fmt::format_string<A...> f, A&&... args) {
    error_("attributes", fmt::format(f, std::forward<A>(args)...));
  }
  template <class... A>
  void collective(fmt::format_string<A...> f, A&&... args) {
    error_("collectives", fmt::format(f, std::forward<A>(args)...));
  }
  void result(InstId like) {
    const Shape &mine = out(), &other = m_.shape(like);
    if (mixed_ && m_.op(i_) != Opcode::OptBarrier && mine.is_array() && mine.dims == other.dims &&
        is_float(mine.type) && is_float(other.type))
      return;
    if (!u_.compatible(m_.shape_id(like), m_.shape_id(i_))) shape("gives {} for {}", text(i_), text(like));
  }
  void token(size_t n) {
    if (m_.operand_count(i_) > n && !in(n).is_token()) shape("takes a token as operand {}, not {}", n, text(n));
  }
  bool same_float_or_equal(ElementType a, ElementType b) const { return a == b || (is_float(a) && is_float(b)); }

  // Equal, but for the precision of floats where it may be mixed.
  bool alike_types(ElementType a, ElementType b) const { return mixed_ ? same_float_or_equal(a, b) : a == b; }

  // --- every instruction ---
  void control() {
    for (InstId p : m_.control_preds(i_))
      if (!m_.alive(p) || m_.parent(p) != m_.parent(i_))
        error_("control", "has a control predecessor in another computation");
  }

  void sharding();
  // What is wrong with replica_groups that are an iota or a mesh, if anything.
  static std::string groups_text_error(std::string_view text);

  // `{{0}: (1, {}), …}`: both ends exist and have one shape.
  void aliases();

  void thread(CompId c) {
    StrId mine = m_.comp(m_.parent(i_)).thread, its = m_.comp(c).thread;
    if (mine != its)
      error_("threads", fmt::format("on thread '{}' calls {} on thread '{}'", mine.valid() ? u_.text(mine) : "main",
                                    m_.comp_name(c), its.valid() ? u_.text(its) : "main"));
  }

  // --- operations ---
  void bitcast_convert();
  void rng();
  void indices(size_t first);
  void map();
  void window();

  // f(accumulators…, elements…) → accumulators; `n` of each. Floats may be of other precision.
  void reducer(CompId f, size_t n);
  void select_and_scatter();

  bool sorted_unique(const Dims& d, int64_t limit, std::string_view what) {
    for (size_t k = 0; k < d.size(); ++k) {
      if (d[k] < 0 || d[k] >= limit) return attribute("has {} in {}, which is out of range", d[k], what), false;
      if (k && d[k] <= d[k - 1]) return attribute("has {} that are not sorted or not unique", what), false;
    }
    return true;
  }
  bool unique(const Dims& d, int64_t limit, std::string_view what) {
    for (int64_t v : d)
      if (v < 0 || v >= limit) return attribute("has {} in {}, which is out of range", v, what), false;
    if (std::set<int64_t>(d.begin(), d.end()).size() != d.size())
      return attribute("has {} that are not unique", what), false;
    return true;
  }
  static bool has(const Dims& d, int64_t v) { return std::find(d.begin(), d.end(), v) != d.end(); }
  static bool overlap(const Dims& a, const Dims& b) {
    return std::any_of(a.begin(), a.end(), [&](int64_t v) { return has(b, v); });
  }
  // Elements of an index vector; the dimension behind the last stands for one index.
  int64_t vector_size(const Shape& s, int64_t dim) const {
    return dim == s.rank() ? 1 : s.dims[static_cast<size_t>(dim)];
  }

  bool batching(const Shape& operand, const Shape& idx, const Dims& of_operand, const Dims& of_indices, int64_t ivd,
                const Dims& dropped, const Dims& mapped);

  void gather();
  void scatter();

  void reducer_of_scatter(size_t n) {
    const Computation& c = m_.comp(a_.comp(Attr::to_apply));
    for (size_t k = 0; k < c.params.size() && k < 2 * n; ++k)
      if (!same_float_or_equal(m_.shape(c.params[k]).type, type(k % n)))
        return error_("calls", fmt::format("combines {} by a function of {}", text(k % n), text(c.params[k])));
  }

  bool square(size_t n);
  void triangular_solve();
  void fft();
  void batch_norm();
  // Of one shape, precisions apart where they may be mixed.
  bool alike(ShapeId a, ShapeId b) const;
  void scan();
  // The result has the dimensions of that product of the first two operands.
  bool product_like(Opcode op);
  void scaled_dot();
  void ragged_dot();
  void dynamic_reshape();
  void conditional();
  void custom_call();
  void one_precision();

  // --- pairs ---
  // In a pipelined loop what one round starts ends in the next one: the operand comes out of the loop's state, or out
  // of the loop.
  bool carried();
  void done_of(std::initializer_list<Opcode> starts) {
    for (Opcode s : starts)
      if (m_.op(m_.operand(i_, 0)) == s) return;
    error_("pairs", fmt::format("ends {}, which is no {}", m_.inst_name(m_.operand(i_, 0)), op_text(*starts.begin())));
  }
  // The start has one user, its end (or passes through a tuple, in pipelined loops).
  void single_done(Opcode done);

  void copy_start() {
    const Shape& s = out();
    if (!s.is_tuple() || s.elements.size() < 2 || (settled_ && s.elements.size() != 3) ||
        (s.elements.size() > 2 && u_[s.elements[2]].type != ElementType::U32) ||
        !u_.compatible(s.elements[0], m_.shape_id(m_.operand(i_, 0))) ||
        !u_.compatible(s.elements[1], m_.shape_id(m_.operand(i_, 0))))
      shape("gives (copy, operand, context), not {}", text(i_));
    single_done(Opcode::CopyDone);
  }

  void async_users();

  // What the chain of updates before this one started; invalid where it comes out of a tuple.
  CompId async_callee() const {
    InstId start = m_.operand(i_, 0);
    while (m_.op(start) == Opcode::AsyncUpdate) start = m_.operand(start, 0);
    return m_.op(start) == Opcode::AsyncStart ? m_.attrs(start).comp(Attr::calls) : CompId();
  }
  static bool of_async(const Universe& u, const Shape& s) {
    return s.is_tuple() && s.elements.size() > 1 && u[s.elements[0]].is_tuple();
  }

  // Operands that come late are the next ones of the computation, results that come late the rest of its result.
  void async_update();
  void async_done();
  void async_start();

  // --- collectives ---
  void groups();
  // Texts of modules that run on several devices do not always say on how many: a header without counts tells nothing.
  bool counts_known() const { return m_.config().replica_count != 1 || m_.config().num_partitions != 1; }
  // Members of a group; 0 where the module does not tell.
  size_t group_size() const;
  void gathered(bool scattered);
  void gather_start();
  void ragged_all_to_all();
  // Of those with slice_sizes; false where it has none.
  bool permutes_in_place();
  bool offset_fits(const Shape& buffer, const Shape& offset) const;
  // How often one device may be source, and how often target.
  size_t pairs_a_device() const;
  void permute_start();
  // The end of a start that gives (operand, result, …) gives the result.
  void second_of_start();
  void all_to_all();
  // A tuple that has the shape of each operand; else it is told.
  bool results_as_operands(ShapeId s);
  void permute();

  const Module& m_;
  Universe& u_;
  InstId i_;
  bool settled_, mixed_;
  const AttrSet& a_;
  const std::function<void(std::string_view, std::string)>& error_;
};

}  // namespace hlo
