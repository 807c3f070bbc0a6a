#include "ir/verifier_rules.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/aliasing.h"
#include "ir/base/checked.h"
#include "ir/shape_inference.h"
#include "ir/sharding.h"

namespace hlo {
namespace {

class Rules {
 public:
  Rules(const Module& m, InstId i, bool settled, bool mixed,
        const std::function<void(std::string_view, std::string)>& error)
      : m_(m), u_(m.u()), i_(i), settled_(settled), mixed_(mixed), a_(m.attrs(i)), error_(error) {}

  void run() {
    control();
    sharding();
    if (m_.attrs(i_).has(Attr::output_to_operand_aliasing)) aliases();
    switch (m_.op(i_)) {
      case Opcode::And:
      case Opcode::Or:
      case Opcode::Xor:
      case Opcode::Not:
        if (!integral(type(0)) && type(0) != ElementType::Pred)
          shape("works on preds and integers, not on {}", text(0));
        return;
      case Opcode::ShiftLeft:
      case Opcode::ShiftRightArithmetic:
      case Opcode::ShiftRightLogical:
        // Floats pass, as in XLA, whose compilers then refuse them.
        if (type(0) == ElementType::Pred) shape("does not shift {}", text(0));
        return;
      case Opcode::Complex:
        if (type(0) != ElementType::F32 && type(0) != ElementType::F64)
          shape("takes parts of type f32 or f64, not {}", text(0));
        return;
      case Opcode::Popcnt:
      case Opcode::CountLeadingZeros:
        if (!integral(type(0))) shape("works on integers, not on {}", text(0));
        return;
      case Opcode::Floor:
      case Opcode::Ceil:
      case Opcode::RoundNearestAfz:
      case Opcode::RoundNearestEven:
      case Opcode::IsFinite:
      case Opcode::Erf:
      case Opcode::ReducePrecision:
        if (!is_float(type(0))) return shape("works on floats, not on {}", text(0));
        if (m_.op(i_) == Opcode::ReducePrecision) {
          if (a_.integer(Attr::exponent_bits) < 1) attribute("needs at least one exponent bit");
          if (a_.integer(Attr::mantissa_bits) < 0) attribute("has a negative number of mantissa bits");
          result(m_.operand(i_, 0));
        }
        return;
      case Opcode::Real:
      case Opcode::Imag:
        if (!is_float(type(0)) && !is_complex(type(0)))
          shape("works on floats and complex numbers, not on {}", text(0));
        return;
      case Opcode::Exp:
      case Opcode::Expm1:
      case Opcode::Log:
      case Opcode::Log1p:
      case Opcode::Logistic:
      case Opcode::Cosine:
      case Opcode::Sine:
      case Opcode::Tan:
      case Opcode::Tanh:
      case Opcode::Sqrt:
      case Opcode::Rsqrt:
      case Opcode::Cbrt:
        if (!is_float(type(0)) && !is_complex(type(0)))
          shape("works on floats and complex numbers, not on {}", text(0));
        return;
      case Opcode::Negate:
      case Opcode::Sign:
      case Opcode::Abs:
        if (type(0) == ElementType::Pred) shape("does not work on {}", text(0));
        if (m_.op(i_) == Opcode::Sign && is_unsigned_int(type(0))) shape("does not work on {}", text(0));
        return;
      case Opcode::Maximum:
      case Opcode::Minimum:
        if (is_complex(type(0))) shape("does not order {}", text(0));
        return;
      case Opcode::Convert:
        if (is_complex(type(0)) && !is_complex(out().type)) shape("turns complex numbers into {}", text(i_));
        return;
      case Opcode::BitcastConvert:
        return bitcast_convert();
      case Opcode::StochasticConvert:
        if (!is_float(type(0))) shape("converts floats, not {}", text(0));
        if (!is_unsigned_int(type(1))) return shape("takes unsigned random bits, not {}", text(1));
        if (type_bits(type(0)) != type_bits(type(1))) shape("takes random bits of the operand's width");
        if (in(0).dims != in(1).dims) shape("takes as many random numbers as elements");
        return;
      case Opcode::Iota:
        if (!out().is_array() || out().rank() == 0)
          return shape("gives an array of at least one dimension, not {}", text(i_));
        if (out().type == ElementType::Pred) shape("does not count in preds");
        return;
      case Opcode::Constant:
        return;
      case Opcode::Rng:
        return rng();
      case Opcode::RngBitGenerator:
        if (!out().is_tuple() || out().elements.size() != 2) return shape("gives a state and bits");
        if (!u_.compatible(out().elements[0], m_.shape_id(m_.operand(i_, 0)))) shape("changes the shape of its state");
        return;
      case Opcode::Pad:
        for (const PaddingDim& p : *a_.get<std::vector<PaddingDim>>(Attr::padding))
          if (p.interior < 0) attribute("has negative interior padding");
        return;
      case Opcode::Copy:
      case Opcode::OptBarrier:
        result(m_.operand(i_, 0));
        return;
      case Opcode::DynamicSlice:
        return indices(1);
      case Opcode::DynamicUpdateSlice:
        return indices(2);
      case Opcode::GetDimensionSize:
      case Opcode::SetDimensionSize: {
        const Dims& d = a_.ints(Attr::dimensions);
        if (d.size() == 1 && (d[0] < 0 || d[0] >= in(0).rank())) attribute("has no dimension {}", d[0]);
        if (m_.op(i_) == Opcode::SetDimensionSize && (in(1).rank() || type(1) != ElementType::S32))
          shape("takes its size as an s32[], not {}", text(1));
        return;
      }
      case Opcode::Map:
        return map();
      case Opcode::Reduce:
        return reducer(a_.comp(Attr::to_apply), m_.operand_count(i_) / 2);
      case Opcode::ReduceWindow:
        window();
        return reducer(a_.comp(Attr::to_apply), m_.operand_count(i_) / 2);
      case Opcode::SelectAndScatter:
        return select_and_scatter();
      case Opcode::Convolution:
        return window();
      case Opcode::Sort: {
        const Dims& d = a_.ints(Attr::dimensions);
        if (d.size() != 1 || d[0] < 0 || d[0] >= in(0).rank())
          attribute("has no dimension {} to sort", d.empty() ? -1 : d[0]);
        return;
      }
      case Opcode::TopK:
        if (in(0).rank() && a_.integer(Attr::k) > in(0).dims.back())
          attribute("takes {} of {} elements", a_.integer(Attr::k), in(0).dims.back());
        return;
      case Opcode::Gather:
        return gather();
      case Opcode::Scatter:
        return scatter();
      case Opcode::Cholesky:
        square(0);
        return;
      case Opcode::TriangularSolve:
        return triangular_solve();
      case Opcode::Fft:
        return fft();
      case Opcode::BatchNormTraining:
      case Opcode::BatchNormInference:
      case Opcode::BatchNormGrad:
        return batch_norm();
      case Opcode::AfterAll:
        for (InstId o : m_.operands(i_))
          if (!m_.shape(o).is_token()) shape("waits for tokens, not for {}", text(o));
        return;
      case Opcode::AddDependency:
        token(1);
        return;
      case Opcode::Infeed:
        token(0);
        return;
      case Opcode::Outfeed:
        if (const ShapeId* s = a_.get<ShapeId>(Attr::outfeed_shape);
            s && !u_.compatible(*s, m_.shape_id(m_.operand(i_, 0))))
          shape("sends {}, outfeed_shape says {}", text(0), u_.shape_text_plain(*s));
        token(1);
        return;
      case Opcode::Send:
        token(1);
        single_done(Opcode::SendDone);
        return;
      case Opcode::Recv:
        token(0);
        single_done(Opcode::RecvDone);
        return;
      case Opcode::SendDone:
        if (carried()) return;
        return done_of({Opcode::Send});
      case Opcode::RecvDone:
        if (carried()) return;
        return done_of({Opcode::Recv});
      case Opcode::CopyStart:
        return copy_start();
      case Opcode::CopyDone:
        done_of({Opcode::CopyStart});
        if (in(0).is_tuple() && !in(0).elements.empty() && !u_.compatible(in(0).elements[0], m_.shape_id(i_)))
          shape("gives {}, its copy-start {}", text(i_), u_.shape_text_plain(in(0).elements[0]));
        return;
      case Opcode::AllReduceStart:
        single_done(Opcode::AllReduceDone);
        groups();
        return reducer(a_.comp(Attr::to_apply), 1);
      case Opcode::AllReduceDone:
        return done_of({Opcode::AllReduceStart});
      case Opcode::AllGatherStart:
        single_done(Opcode::AllGatherDone);
        return groups();
      case Opcode::AllGatherDone:
        return done_of({Opcode::AllGatherStart});
      case Opcode::CollectivePermuteStart:
        single_done(Opcode::CollectivePermuteDone);
        return permute();
      case Opcode::CollectivePermuteDone:
        return done_of({Opcode::CollectivePermuteStart});
      case Opcode::CollectivePermute:
        return permute();
      case Opcode::AsyncStart:
        return async_start();
      case Opcode::AsyncUpdate:
        async_users();
        async_update();
        return done_of({Opcode::AsyncStart, Opcode::AsyncUpdate});
      case Opcode::AsyncDone:
        done_of({Opcode::AsyncStart, Opcode::AsyncUpdate});
        return async_done();
      case Opcode::AllReduce:
        groups();
        return reducer(a_.comp(Attr::to_apply), 1);
      case Opcode::ReduceScatter:
        groups();
        gathered(true);
        return reducer(a_.comp(Attr::to_apply), 1);
      case Opcode::AllGather:
        groups();
        return gathered(false);
      case Opcode::AllToAll:
        groups();
        return all_to_all();
      case Opcode::CollectiveBroadcast:
      case Opcode::RaggedAllToAll:
        return groups();
      case Opcode::Call:
        return thread(a_.comp(Attr::to_apply));
      case Opcode::While:
        thread(a_.comp(Attr::body));
        return thread(a_.comp(Attr::condition));
      case Opcode::Conditional:
        for (CompId c : a_.called) thread(c);
        return;
      case Opcode::Fusion:
        for (InstId inner : m_.comp(a_.comp(Attr::calls)).order)
          if (m_.alive(inner) && m_.op(inner) == Opcode::Fusion &&
              m_.attrs(inner).comp(Attr::calls) == a_.comp(Attr::calls))
            error_("fusion", "contains itself");
        return;
      default:
        return;
    }
  }

 private:
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

  // --- every instruction ---
  void control() {
    for (InstId p : m_.control_preds(i_))
      if (!m_.alive(p) || m_.parent(p) != m_.parent(i_))
        error_("control", "has a control predecessor in another computation");
  }

  void sharding() {
    StrId t = a_.text(Attr::sharding);
    if (!t.valid()) return;
    std::string_view text = u_.text(t);
    size_t leaves = u_.leaf_count(m_.shape_id(i_));
    if (text.starts_with("{{")) {
      size_t count = 0;
      int depth = 0;
      for (char c : text) {
        if (c == '{' && ++depth == 2) ++count;
        if (c == '}') --depth;
      }
      if (!out().is_tuple()) {
        error_("sharding", "has the sharding of a tuple on an array");
      } else if (count != std::max<size_t>(leaves, 1)) {
        error_("sharding", fmt::format("has {} shardings for {} leaves", count, leaves));
      }
      return;
    }
    // Tiles need a dimension for each of the array's.
    size_t at = text.find("devices=[");
    if (at == std::string_view::npos || !out().is_array()) return;
    std::string_view dims = text.substr(at + 9, text.find(']', at) - at - 9);
    size_t rank = static_cast<size_t>(std::count(dims.begin(), dims.end(), ',')) + 1;
    if (text.find("last_tile_dim_replicate") != std::string_view::npos) --rank;
    if (size_t last = text.find("last_tile_dims={"); last != std::string_view::npos) {
      std::string_view kinds = text.substr(last, text.find('}', last) - last);
      rank -= static_cast<size_t>(std::count(kinds.begin(), kinds.end(), ',')) + 1;
    }
    if (static_cast<int>(rank) != out().rank())
      error_("sharding", fmt::format("has a sharding of {} dimensions on {}", rank, this->text(i_)));
  }

  // `{{0}: (1, {}), …}`: both ends exist and have one shape.
  void aliases() {
    std::set<Dims> seen;
    for (const AliasEntry& e : parse_aliases(u_.text(a_.text(Attr::output_to_operand_aliasing)))) {
      if (e.number < 0 || e.number >= static_cast<int64_t>(m_.operand_count(i_))) {
        error_("aliasing", fmt::format("aliases operand {} of {}", e.number, m_.operand_count(i_)));
        continue;
      }
      ShapeId from = u_.subshape(m_.shape_id(i_), e.output),
              to = u_.subshape(m_.shape_id(m_.operand(i_, static_cast<size_t>(e.number))), e.index);
      if (!from.valid() || !to.valid())
        error_("aliasing", "aliases an element that does not exist");
      else if (u_[from].is_buffer == u_[to].is_buffer && !u_.compatible(from, to))
        error_("aliasing", fmt::format("aliases {} with {}", u_.shape_text_plain(from), u_.shape_text_plain(to)));
      if (!seen.insert(e.output).second) error_("aliasing", "aliases one output twice");
    }
  }

  void thread(CompId c) {
    StrId mine = m_.comp(m_.parent(i_)).thread, its = m_.comp(c).thread;
    if (mine != its)
      error_("threads", fmt::format("on thread '{}' calls {} on thread '{}'", mine.valid() ? u_.text(mine) : "main",
                                    m_.comp_name(c), its.valid() ? u_.text(its) : "main"));
  }

  // --- operations ---
  void bitcast_convert() {
    if (!in(0).is_array() || !out().is_array()) return shape("converts arrays");
    if (is_complex(type(0)) != is_complex(out().type)) return shape("does not turn {} into {}", text(0), text(i_));
    int from = type_bits(type(0)), to = type_bits(out().type);
    Dims want = in(0).dims;
    if (from > to) {
      want.push_back(from / to);
    } else if (from < to) {
      if (want.empty() || want.back() != to / from) return shape("takes {} elements to one of {}", to / from, text(i_));
      want.pop_back();
    }
    if (want != out().dims) shape("gives {} for {}", text(i_), text(0));
  }

  void rng() {
    if (m_.operand_count(i_) != 2) return shape("takes two operands, not {}", m_.operand_count(i_));
    for (size_t n = 0; n < 2; ++n)
      if (!in(n).is_scalar()) return shape("takes scalars, operand {} is a {}", n, text(n));
    if (type(0) != type(1)) return shape("takes two operands of one type, not {} and {}", text(0), text(1));
    if (!out().is_array() || out().type != type(0)) return shape("gives {} for operands of type {}", text(i_), text(0));
    bool normal = u_.text(a_.text(Attr::distribution)) == "rng_normal";
    ElementType t = type(0);
    if (normal ? !is_float(t) : !is_float(t) && !integral(t) && t != ElementType::Pred)
      shape("does not draw {}", text(i_));
  }

  void indices(size_t first) {
    for (size_t n = first; n < m_.operand_count(i_); ++n) {
      if (!in(n).is_array() || !integral(type(n))) return shape("takes integers as indices, not {}", text(n));
      if (n > first && type(n) != type(first))
        return shape("takes indices of one type, not {} and {}", text(first), text(n));
      bool vector = m_.operand_count(i_) == first + 1 && in(n).rank() == 1;
      if (!vector && in(n).rank() != 0) return shape("takes scalars as indices, not {}", text(n));
    }
  }

  void map() {
    const Dims& d = a_.ints(Attr::dimensions);
    for (size_t k = 0; k < d.size(); ++k)
      if (d[k] != static_cast<int64_t>(k)) return attribute("maps other dimensions than all of them in order");
    for (size_t n = 1; n < m_.operand_count(i_); ++n)
      if (in(n).dims != in(0).dims) shape("maps arrays of different dimensions: {} and {}", text(0), text(n));
    if (!m_.shape(m_.comp(a_.comp(Attr::to_apply)).root).is_scalar())
      error_("calls", "maps by a function that gives no scalar");
  }

  void window() {
    const Window* w = a_.get<Window>(Attr::window);
    if (!w) return;
    for (const WindowDim& d : w->dims) {
      if (d.size < 1) return attribute("has a window of size {}", d.size);
      if (d.stride < 1) return attribute("has a window of stride {}", d.stride);
      if (d.lhs_dilate < 1 || d.rhs_dilate < 1) return attribute("has a window that is dilated by less than one");
    }
  }

  // f(accumulators…, elements…) → accumulators; `n` of each. Floats may be of other precision.
  void reducer(CompId f, size_t n) {
    const Computation& c = m_.comp(f);
    if (m_.op(i_) != Opcode::Reduce && m_.op(i_) != Opcode::ReduceWindow &&
        c.params.size() == 2 * m_.operand_count(i_) && n == 1)
      n = m_.operand_count(i_);
    if (c.params.size() != 2 * n)
      return error_("calls", fmt::format("reduces by {}, which takes {} parameters, not {}", m_.comp_name(f),
                                         c.params.size(), 2 * n));
    const Shape& root = m_.shape(c.root);
    bool reduction = m_.op(i_) == Opcode::Reduce || m_.op(i_) == Opcode::ReduceWindow;
    // A reducer of one value may return it in a tuple; the result is one then too.
    bool several = n != 1 || (reduction && root.is_tuple());
    if (several ? !root.is_tuple() || root.elements.size() != n : !root.is_scalar())
      return error_("calls", fmt::format("reduces by {}, which returns {}", m_.comp_name(f), text(c.root)));
    for (size_t k = 0; k < 2 * n; ++k)
      if (!m_.shape(c.params[k]).is_scalar())
        return error_("calls", fmt::format("reduces by {}, which takes {}", m_.comp_name(f), text(c.params[k])));
    for (size_t k = 0; k < n; ++k) {
      ElementType accumulator = m_.shape(c.params[k]).type, element = m_.shape(c.params[n + k]).type;
      ElementType returned = several ? u_[root.elements[k]].type : root.type;
      if (!same_float_or_equal(accumulator, returned))
        return error_("calls", fmt::format("reduces by {}, which returns {} for {}", m_.comp_name(f),
                                           type_name(returned), type_name(accumulator)));
      if (reduction && !same_float_or_equal(type(k), element))
        return error_("calls",
                      fmt::format("reduces {} by {}, which takes {}", text(k), m_.comp_name(f), type_name(element)));
      if (reduction && !same_float_or_equal(type(m_.operand_count(i_) / 2 + k), accumulator))
        return error_("calls", fmt::format("starts with {}, {} takes {}", text(m_.operand_count(i_) / 2 + k),
                                           m_.comp_name(f), type_name(accumulator)));
      if (!reduction && k < m_.operand_count(i_) && !same_float_or_equal(type(k), element))
        return error_("calls",
                      fmt::format("reduces {} by {}, which takes {}", text(k), m_.comp_name(f), type_name(element)));
    }
  }

  void select_and_scatter() {
    window();
    const Window* w = a_.get<Window>(Attr::window);
    if (!w || static_cast<int>(w->dims.size()) != in(0).rank())
      return attribute("has a window of other dimensions than its operand");
    Dims source;
    for (size_t d = 0; d < w->dims.size(); ++d) {
      if (w->dims[d].stride < 1) return;
      if (!window_fits(w->dims[d], in(0).dims[d]))
        return attribute("has a window that does not fit into 63 bits in dimension {}", d);
      source.push_back(w->dims[d].output_size(in(0).dims[d]));
    }
    if (in(1).dims != source)
      shape("takes a source of {} elements a dimension, not {}", fmt::join(source, ","), text(1));
    if (in(2).rank()) shape("starts with a scalar, not {}", text(2));
  }

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
                const Dims& dropped, const Dims& mapped) {
    if (!sorted_unique(of_operand, operand.rank(), "the batching dimensions of the operand")) return false;
    if (!unique(of_indices, idx.rank(), "the batching dimensions of the indices")) return false;
    if (of_operand.size() != of_indices.size())
      return attribute("has {} and {} batching dimensions", of_operand.size(), of_indices.size()), false;
    if (overlap(of_operand, dropped) || overlap(of_operand, mapped))
      return attribute("uses a batching dimension otherwise"), false;
    if (has(of_indices, ivd)) return attribute("has index_vector_dim among its batching dimensions"), false;
    for (size_t k = 0; k < of_operand.size(); ++k)
      if (operand.dims[static_cast<size_t>(of_operand[k])] != idx.dims[static_cast<size_t>(of_indices[k])])
        return attribute("has batching dimensions of different sizes"), false;
    return true;
  }

  void gather() {
    const Shape &operand = in(0), &idx = in(1);
    const Dims &offset = a_.ints(Attr::offset_dims), &collapsed = a_.ints(Attr::collapsed_slice_dims),
               &map = a_.ints(Attr::start_index_map), &sizes = a_.ints(Attr::slice_sizes),
               &ob = a_.ints(Attr::operand_batching_dims), &sb = a_.ints(Attr::start_indices_batching_dims);
    int64_t ivd = a_.integer(Attr::index_vector_dim);
    if (!integral(idx.type)) return shape("takes integers as indices, not {}", text(1));
    int64_t rank = static_cast<int64_t>(offset.size()) + idx.rank() - (ivd == idx.rank() ? 0 : 1);
    if (!sorted_unique(offset, rank, "offset_dims") ||
        !sorted_unique(collapsed, operand.rank(), "collapsed_slice_dims"))
      return;
    if (static_cast<int64_t>(map.size()) != vector_size(idx, ivd))
      return attribute("has {} entries in start_index_map for index vectors of {}", map.size(), vector_size(idx, ivd));
    if (!unique(map, operand.rank(), "start_index_map") || !batching(operand, idx, ob, sb, ivd, collapsed, map)) return;
    for (const Dims* d : {&collapsed, &ob})
      for (int64_t v : *d)
        if (sizes[static_cast<size_t>(v)] > 1)
          return attribute("drops dimension {} of slice size {}", v, sizes[static_cast<size_t>(v)]);
  }

  void scatter() {
    size_t n = m_.operand_count(i_) / 2;
    const Shape &operand = in(0), &idx = in(n);
    const Dims &window = a_.ints(Attr::update_window_dims), &inserted = a_.ints(Attr::inserted_window_dims),
               &map = a_.ints(Attr::scatter_dims_to_operand_dims), &ib = a_.ints(Attr::input_batching_dims),
               &sb = a_.ints(Attr::scatter_indices_batching_dims);
    int64_t ivd = a_.integer(Attr::index_vector_dim);
    if (!idx.is_array() || !integral(idx.type)) return shape("takes integers as indices, not {}", text(n));
    if (ivd < 0 || ivd > idx.rank()) return attribute("has no index_vector_dim {}", ivd);
    for (size_t k = 1; k < n; ++k)
      if (in(k).dims != operand.dims) return shape("scatters into arrays of different dimensions");
    for (size_t k = 0; k < n; ++k) {
      const Shape& updates = in(n + 1 + k);
      if (updates.type != in(k).type && !(is_float(updates.type) && is_float(in(k).type)))
        return shape("updates {} by {}", text(k), text(n + 1 + k));
      int64_t rank = static_cast<int64_t>(window.size()) + idx.rank() - (ivd == idx.rank() ? 0 : 1);
      if (updates.rank() != rank) return shape("takes updates of {} dimensions, not {}", rank, text(n + 1 + k));
      // layout_normalization leaves windows in any order; scatter_simplifier, a few passes on, sorts them.
      bool in_order = settled_ ? sorted_unique(window, updates.rank(), "update_window_dims")
                               : unique(window, updates.rank(), "update_window_dims");
      if (!in_order || !sorted_unique(inserted, operand.rank(), "inserted_window_dims")) return;
      if (static_cast<int64_t>(window.size() + inserted.size() + ib.size()) != operand.rank())
        return attribute("has windows of {} dimensions for an operand of {}",
                         window.size() + inserted.size() + ib.size(), operand.rank());
      if (static_cast<int64_t>(map.size()) != vector_size(idx, ivd))
        return attribute("has {} entries in scatter_dims_to_operand_dims for index vectors of {}", map.size(),
                         vector_size(idx, ivd));
      if (!unique(map, operand.rank(), "scatter_dims_to_operand_dims") ||
          !batching(operand, idx, ib, sb, ivd, inserted, map))
        return;
      size_t w = 0;
      for (int64_t d = 0; d < operand.rank(); ++d) {
        if (has(inserted, d) || has(ib, d)) continue;
        int64_t size = updates.dims[static_cast<size_t>(window[w++])];
        if (size > operand.dims[static_cast<size_t>(d)])
          return shape("updates {} elements of dimension {} of {}", size, d, text(size_t{0}));
      }
      size_t s = 0;
      for (int64_t d = 0; d < updates.rank(); ++d) {
        if (has(window, d)) continue;
        if (static_cast<int64_t>(s) == ivd) ++s;
        if (s < idx.dims.size() && updates.dims[static_cast<size_t>(d)] != idx.dims[s])
          return shape("has {} updates for {} indices in dimension {}", updates.dims[static_cast<size_t>(d)],
                       idx.dims[s], d);
        ++s;
      }
    }
    reducer_of_scatter(n);
  }

  void reducer_of_scatter(size_t n) {
    const Computation& c = m_.comp(a_.comp(Attr::to_apply));
    for (size_t k = 0; k < c.params.size() && k < 2 * n; ++k)
      if (!same_float_or_equal(m_.shape(c.params[k]).type, type(k % n)))
        return error_("calls", fmt::format("combines {} by a function of {}", text(k % n), text(c.params[k])));
  }

  bool square(size_t n) {
    const Shape& s = in(n);
    if (!is_float(s.type) && !is_complex(s.type))
      return shape("works on floats and complex numbers, not on {}", text(n)), false;
    if (s.rank() < 2 || s.dims[s.dims.size() - 1] != s.dims[s.dims.size() - 2])
      return shape("takes square matrices, not {}", text(n)), false;
    return true;
  }

  void triangular_solve() {
    if (!square(0)) return;
    const Shape &x = in(0), &y = in(1);
    if (x.type != y.type) return shape("takes operands of one type, not {} and {}", text(size_t{0}), text(size_t{1}));
    if (x.rank() != y.rank())
      return shape("takes operands of one rank, not {} and {}", text(size_t{0}), text(size_t{1}));
    for (int d = 0; d + 2 < x.rank(); ++d)
      if (x.dims[static_cast<size_t>(d)] != y.dims[static_cast<size_t>(d)])
        return shape("takes as many matrices as right sides");
    size_t side = y.dims.size() - (a_.flag(Attr::left_side) ? 2 : 1);
    if (x.dims.back() != y.dims[side]) shape("takes sides of {} elements, not {}", x.dims.back(), text(1));
  }

  void fft() {
    std::string_view kind = u_.text(a_.text(Attr::fft_type));
    const Dims& length = a_.ints(Attr::fft_length);
    if (length.empty() || length.size() > 3)
      return attribute("transforms one to three dimensions, not {}", length.size());
    if (in(0).rank() < static_cast<int>(length.size())) return;
    bool real = kind == "RFFT";
    if (real ? !is_float(type(0)) : !is_complex(type(0))) return shape("{} does not take {}", kind, text(0));
    for (size_t k = 0; k < length.size(); ++k) {
      int64_t have = in(0).dims[in(0).dims.size() - length.size() + k], want = length[k];
      if (kind == "IRFFT" && k + 1 == length.size()) want = want / 2 + 1;
      if (have != want) return shape("of length {} takes {} elements, not {}", length[k], want, have);
    }
  }

  void batch_norm() {
    int64_t f = a_.integer(Attr::feature_index);
    if (f < 0 || f >= in(0).rank()) return attribute("has no feature dimension {}", f);
    if (!is_float(type(0))) return shape("works on floats, not on {}", text(0));
    int64_t count = in(0).dims[static_cast<size_t>(f)];
    size_t per_feature = m_.op(i_) == Opcode::BatchNormTraining ? 3 : m_.op(i_) == Opcode::BatchNormInference ? 5 : 4;
    for (size_t n = 1; n < per_feature; ++n) {
      if (in(n).rank() != 1 || in(n).dims[0] != count)
        shape("takes {} numbers as operand {}, not {}", count, n, text(n));
      if (!same_float_or_equal(type(n), type(0))) shape("takes floats as operand {}, not {}", n, text(n));
    }
    if (m_.op(i_) == Opcode::BatchNormGrad && in(4).dims != in(0).dims)
      shape("takes a gradient of the operand's shape, not {}", text(4));
  }

  // --- pairs ---
  // In a pipelined loop what one round starts ends in the next one: the operand comes out of the loop's state, or out
  // of the loop.
  bool carried() {
    Opcode from = m_.op(m_.operand(i_, 0));
    if (from != Opcode::GetTupleElement && from != Opcode::Parameter) return false;
    const Shape& s = in(0);
    if (!s.is_tuple() || s.elements.size() != 3 || u_[s.elements[1]].type != ElementType::U32 ||
        !u_[s.elements[2]].is_token())
      return false;
    if (m_.op(i_) == Opcode::RecvDone &&
        (!out().is_tuple() || out().elements.empty() || !u_.compatible(out().elements[0], s.elements[0])))
      shape("gives {} for {}", text(i_), text(0));
    return true;
  }
  void done_of(std::initializer_list<Opcode> starts) {
    for (Opcode s : starts)
      if (m_.op(m_.operand(i_, 0)) == s) return;
    error_("pairs", fmt::format("ends {}, which is no {}", m_.inst_name(m_.operand(i_, 0)), op_text(*starts.begin())));
  }
  // The start has one user, its end (or passes through a tuple, in pipelined loops).
  void single_done(Opcode done) {
    size_t count = 0;
    for (InstId user : m_.users(i_)) {
      if (m_.op(user) == Opcode::Tuple || m_.op(user) == Opcode::While || m_.op(user) == Opcode::Call) return;
      if (m_.op(user) != done)
        return error_("pairs", fmt::format("is used by {}, which is no {}", m_.inst_name(user), op_text(done)));
      ++count;
    }
    if (m_.is_root(i_) && m_.parent(i_) != m_.entry()) return;
    if (count != 1) error_("pairs", fmt::format("has {} {}, not one", count, op_text(done)));
  }

  void copy_start() {
    const Shape& s = out();
    if (!s.is_tuple() || s.elements.size() < 2 || !u_.compatible(s.elements[0], m_.shape_id(m_.operand(i_, 0))) ||
        !u_.compatible(s.elements[1], m_.shape_id(m_.operand(i_, 0))))
      shape("gives (copy, operand, context), not {}", text(i_));
    single_done(Opcode::CopyDone);
  }

  void async_users() {
    size_t count = 0;
    for (InstId user : m_.users(i_)) {
      if (m_.op(user) == Opcode::Tuple || m_.op(user) == Opcode::While) return;
      if (m_.op(user) != Opcode::AsyncUpdate && m_.op(user) != Opcode::AsyncDone)
        return error_("pairs",
                      fmt::format("is used by {}, which is no async-update or async-done", m_.inst_name(user)));
      ++count;
    }
    if (m_.is_root(i_) && m_.parent(i_) != m_.entry()) return;
    if (count != 1) error_("pairs", fmt::format("has {} users, not one", count));
  }

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
  void async_update() {
    if (!of_async(u_, in(0)) || !of_async(u_, out()))
      return shape("takes and gives ((operands), results, …), not {}", text(i_));
    const Shape &before = u_[in(0).elements[0]], &now = u_[out().elements[0]];
    size_t fresh = m_.operand_count(i_) - 1;
    if (before.elements.size() + fresh != now.elements.size())
      return shape("has {} new operands, its shape tells {}", fresh,
                   static_cast<int64_t>(now.elements.size()) - static_cast<int64_t>(before.elements.size()));
    for (size_t k = 0; k < now.elements.size(); ++k) {
      bool old = k < before.elements.size();
      ShapeId given = old ? before.elements[k] : m_.shape_id(m_.operand(i_, 1 + k - before.elements.size()));
      if (!u_.compatible(given, now.elements[k]))
        return shape("passes {}, its shape tells {}", u_.shape_text_plain(given), u_.shape_text_plain(now.elements[k]));
    }
    if (!is_prefix_of(u_, in(0).elements[1], out().elements[1])) return shape("gives {} for {}", text(i_), text(0));
    if (CompId c = async_callee(); c.valid() && !is_prefix_of(u_, out().elements[1], m_.shape_id(m_.comp(c).root)))
      shape("gives {}, its computation {}", u_.shape_text_plain(out().elements[1]), text(m_.comp(c).root));
  }

  void async_done() {
    if (!of_async(u_, in(0))) return;
    CompId c = async_callee();
    ShapeId whole = c.valid() ? m_.shape_id(m_.comp(c).root) : in(0).elements[1];
    if (!u_.compatible(whole, m_.shape_id(i_)))
      return shape("gives {}, its async-start {}", text(i_), u_.shape_text_plain(whole));
    size_t bound = u_[in(0).elements[0]].elements.size();
    if (c.valid() && bound != m_.comp(c).params.size())
      error_("calls", fmt::format("ends what has {} operands of {}", bound, m_.comp(c).params.size()));
  }

  void async_start() {
    const Shape& s = out();
    const Computation& c = m_.comp(a_.comp(Attr::calls));
    if (!s.is_tuple() || s.elements.size() < 2 || !u_[s.elements[0]].is_tuple())
      return shape("gives ((operands), results, …), not {}", text(i_));
    const Shape& passed = u_[s.elements[0]];
    if (passed.elements.size() != m_.operand_count(i_))
      shape("has {} operands, its shape tells {}", m_.operand_count(i_), passed.elements.size());
    for (size_t k = 0; k < std::min(passed.elements.size(), m_.operand_count(i_)); ++k)
      if (!u_.compatible(passed.elements[k], m_.shape_id(m_.operand(i_, k))))
        shape("passes {}, its shape tells {}", text(k), u_.shape_text_plain(passed.elements[k]));
    if (c.params.size() < m_.operand_count(i_)) {
      error_("calls", fmt::format("passes {} operands to {} parameters", m_.operand_count(i_), c.params.size()));
    } else {
      for (size_t k = 0; k < m_.operand_count(i_); ++k)
        if (!u_.compatible(m_.shape_id(c.params[k]), m_.shape_id(m_.operand(i_, k))))
          error_("calls", fmt::format("passes {} as a {}", text(k), text(c.params[k])));
    }
    if (!is_prefix_of(u_, s.elements[1], m_.shape_id(c.root)))
      shape("gives {}, its computation {}", u_.shape_text_plain(s.elements[1]), text(c.root));
    StrId thread = a_.text(Attr::async_execution_thread);
    if (thread != c.thread) error_("threads", "runs a computation of another thread");
    async_users();
  }

  // --- collectives ---
  void groups() {
    StrId text = a_.text(Attr::replica_groups);
    std::vector<DeviceDims> list;
    if (!text.valid() || !expand_replica_groups(u_.text(text), &list)) return;
    bool global = a_.flag(Attr::use_global_device_ids), channel = a_.has(Attr::channel_id);
    if (list.empty()) {
      if (global) collective("with use_global_device_ids needs replica_groups");
      return;
    }
    int64_t replicas = m_.config().replica_count, partitions = m_.config().num_partitions;
    bool by_partition = channel && !global &&
                        (m_.op(i_) == Opcode::AllToAll || m_.op(i_) == Opcode::CollectiveBroadcast ||
                         m_.op(i_) == Opcode::RaggedAllToAll);
    int64_t count = global ? (Checked(replicas) * partitions).capped() : by_partition ? partitions : replicas;
    std::set<int64_t> seen;
    for (const DeviceDims& g : list) {
      if (g.empty()) return collective("has an empty replica group");
      for (int64_t d : g)
        if (!seen.insert(d).second) return collective("names {} twice in its replica_groups", d);
    }
    for (int64_t d = 0; d < static_cast<int64_t>(seen.size()); ++d)
      if (!seen.contains(d)) return collective("does not name {} in its replica_groups", d);
    if (static_cast<int64_t>(seen.size()) != count && !global && counts_known())
      return collective("names {} devices in its replica_groups, the module has {}", seen.size(), count);
    bool uneven =
        std::any_of(list.begin(), list.end(), [&](const DeviceDims& g) { return g.size() != list[0].size(); });
    if (uneven && m_.op(i_) != Opcode::AllReduce && m_.op(i_) != Opcode::AllReduceStart &&
        m_.op(i_) != Opcode::CollectiveBroadcast)
      collective("has replica groups of different sizes");
  }
  // Texts of modules that run on several devices do not always say on how many: a header without counts tells nothing.
  bool counts_known() const { return m_.config().replica_count != 1 || m_.config().num_partitions != 1; }
  // Members of a group; 0 where the module does not tell.
  size_t group_size() const {
    std::vector<DeviceDims> list;
    StrId text = a_.text(Attr::replica_groups);
    if (text.valid() && expand_replica_groups(u_.text(text), &list) && !list.empty()) return list[0].size();
    if (!counts_known()) return 0;
    bool all = a_.has(Attr::channel_id) || a_.flag(Attr::use_global_device_ids);
    Checked count = m_.config().replica_count;
    return static_cast<size_t>((all ? count * m_.config().num_partitions : count).capped());
  }

  void gathered(bool scattered) {
    const Dims& d = a_.ints(Attr::dimensions);
    auto check = [&](const Shape& from, const Shape& to, std::string_view what) {
      if (d.size() != 1 || d[0] < 0 || d[0] >= from.rank())
        return attribute("has no dimension {}", d.empty() ? -1 : d[0]);
      const Shape &small = scattered ? to : from, &big = scattered ? from : to;
      if (small.rank() != big.rank()) return shape("gives {} for {}", text(i_), what);
      for (int k = 0; k < small.rank(); ++k) {
        auto at = static_cast<size_t>(k);
        if (k == d[0] && !group_size()) continue;
        int64_t want = (Checked(small.dims[at]) * (k == d[0] ? static_cast<int64_t>(group_size()) : 1)).capped();
        if (big.dims[at] != want) return shape("gives {} for {} in groups of {}", text(i_), what, group_size());
      }
    };
    if (m_.operand_count(i_) == 1 && in(0).is_array() && out().is_array()) {
      check(in(0), out(), text(0));
    } else if (out().is_tuple()) {
      if (out().elements.size() != m_.operand_count(i_))
        return shape("gives {} arrays for {}", out().elements.size(), m_.operand_count(i_));
      for (size_t k = 0; k < m_.operand_count(i_); ++k) check(in(k), u_[out().elements[k]], text(k));
    }
  }

  void all_to_all() {
    const Dims& d = a_.ints(Attr::dimensions);
    if (!d.empty()) {
      if (d[0] < 0 || d[0] >= in(0).rank()) return attribute("has no dimension {}", d[0]);
      if (m_.operand_count(i_) == 1) {
        if (in(0).dims[static_cast<size_t>(d[0])] % static_cast<int64_t>(std::max<size_t>(group_size(), 1)))
          shape("does not split {} in {}", text(0), group_size());
        if (out().is_array()) result(m_.operand(i_, 0));
      }
      return;
    }
    for (size_t k = 1; k < m_.operand_count(i_); ++k)
      if (!u_.compatible(m_.shape_id(m_.operand(i_, k)), m_.shape_id(m_.operand(i_, 0))))
        return shape("exchanges arrays of different shapes: {} and {}", text(size_t{0}), text(k));
    if (group_size() && m_.operand_count(i_) != group_size())
      collective("has {} operands in groups of {}", m_.operand_count(i_), group_size());
    if (!out().is_tuple() || out().elements.size() != m_.operand_count(i_))
      return shape("gives {} for {} operands", text(i_), m_.operand_count(i_));
  }

  void permute() {
    std::set<int64_t> sources, targets;
    StrId text = a_.text(Attr::source_target_pairs);
    if (!text.valid()) return;
    int64_t limit = a_.has(Attr::channel_id) ? m_.config().num_partitions : m_.config().replica_count;
    for (auto [from, to] : expand_pairs(u_.text(text))) {
      if (!sources.insert(from).second) return collective("has source {} twice", from);
      if (!targets.insert(to).second) return collective("has target {} twice", to);
      for (int64_t v : {from, to})
        if (v < 0 || (v >= limit && counts_known())) return collective("names device {} of {}", v, limit);
    }
  }

  const Module& m_;
  Universe& u_;
  InstId i_;
  bool settled_, mixed_;
  const AttrSet& a_;
  const std::function<void(std::string_view, std::string)>& error_;
};

}  // namespace

void verify_operation(const Module& m, InstId inst, bool settled, bool mixed,
                      const std::function<void(std::string_view rule, std::string message)>& error) {
  Rules(m, inst, settled, mixed, error).run();
}

}  // namespace hlo
