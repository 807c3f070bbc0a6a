#include "replay/smaller/rules.h"

#include <algorithm>
#include <numeric>

#include "ir/cost/cost.h"
#include "ir/eval/evaluator.h"
#include "ir/library/library_calls.h"
#include "ir/types/dims.h"
#include "ir/types/literal.h"
#include "parser/parser.h"
#include "replay/smaller/constants.h"

namespace hlo {
namespace {

bool tiled(const Shape& s) { return s.layout.rest.find("T(") != std::string::npos; }

// Sizes in the order of memory, the element's bits behind them.
Dims in_memory(const Shape& s, int64_t bits) {
  Dims out;
  for (int64_t d : major_to_minor(s)) out.push_back(s.dims[static_cast<size_t>(d)]);
  if (bits > 1) out.push_back(bits);
  return out;
}

void each_leaf(const Universe& u, ShapeId shape, std::vector<ShapeId>* out) {
  const Shape& s = u[shape];
  if (s.is_array()) out->push_back(shape);
  for (ShapeId e : s.elements) each_leaf(u, e, out);
}

}  // namespace

class SizeRules::Reader {
 public:
  Reader(SizeRules& to, const Module& m, const std::string& stage) : to_(to), m_(m), u_(m.u()), stage_(stage) {}

  void run() {
    const ModuleConfig& c = m_.config();
    for (int64_t devices : {c.num_partitions, c.replica_count})
      if (devices > 1) {
        // As indices and bounds they are told from sizes by nothing.
        to_.devices_.insert(devices);
        keep(devices, "the module", "is a number of devices"), keep(devices - 1, "the module", "is the last device");
      }
    partitioned_ = !c.spmd_to_parameters.empty() ||
                   m_.has_any({Opcode::PartitionId, Opcode::AllReduce, Opcode::AllGather, Opcode::AllToAll,
                               Opcode::CollectivePermute, Opcode::ReduceScatter, Opcode::AllReduceStart,
                               Opcode::AllGatherStart, Opcode::CollectivePermuteStart});
    for (CompId comp : m_.computations())
      for (InstId i : m_.live_order(comp)) {
        i_ = i;
        count_sizes(m_.shape_id(i));
        sharding_rule();
        rules();
      }
  }

 private:
  std::string where() const {
    return stage_.empty() ? std::string(m_.inst_name(i_)) : fmt::format("{} of {}", m_.inst_name(i_), stage_);
  }
  void keep(int64_t size, const std::string& at, const char* why) {
    if (number_of(size) > 1) to_.keep(size, at, why);
  }
  void sum(Terms terms, const char* why) { to_.add(SizeRule::kSum, std::move(terms), where(), why); }
  void product(Terms terms, const char* why) { to_.add(SizeRule::kProduct, std::move(terms), where(), why); }
  void less(int64_t a, int64_t b, const char* why) {
    if (number_of(a) < number_of(b)) to_.add(SizeRule::kLess, {{a, 1}, {b, 1}}, where(), why);
  }
  void keep_shape(ShapeId shape, const char* why) {
    std::vector<ShapeId> leaves;
    each_leaf(u_, shape, &leaves);
    for (ShapeId leaf : leaves)
      for (int64_t d : u_[leaf].dims) keep(d, where(), why);
  }
  void keep_all(const char* why) {
    for (InstId o : m_.operands(i_)) keep_shape(m_.shape_id(o), why);
    keep_shape(m_.shape_id(i_), why);
  }
  void count_sizes(ShapeId shape) {
    if (!counted_.insert(shape.value).second) return;
    std::vector<ShapeId> leaves;
    each_leaf(u_, shape, &leaves);
    for (ShapeId leaf : leaves) {
      for (int64_t d : u_[leaf].dims)
        if (d > 0) ++to_.sizes_[d];
      if (u_[leaf].is_dynamic()) keep_shape(leaf, "is dynamic");
    }
  }
  const Dims& in(size_t k) const { return m_.shape(m_.operand(i_, k)).dims; }
  const Dims& out() const { return m_.shape(i_).dims; }

  // Of a whole and its equal parts, the last of which may be padded.
  void parts(int64_t whole, int64_t part, const char* why) {
    if (whole == part || part <= 0) return;
    // How many there are is a number of devices, which stays whatever becomes of arrays of that size.
    sum({{whole, 1}, {part, -(whole / part + (whole % part != 0))}}, why);
  }

  void sharding_rule() {
    const StrId text = m_.attrs(i_).text(Attr::sharding);
    // Behind the partitioner shapes are a device's own, and what stands beside them is left over.
    if (!text.valid() || partitioned_ || !m_.shape(i_).is_array()) return;
    const std::string key = fmt::format("{} {}", text.value, m_.shape_id(i_).value);
    if (!shardings_.insert(key).second) return;
    Sharding s;
    try {
      s = parse_sharding(u_.text(text));
    } catch (const Failure&) {
      return keep_shape(m_.shape_id(i_), "has a sharding that is not read");
    }
    for (size_t d = 0; d < out().size(); ++d) {
      int64_t tiles = 1;
      if (s.kind == Sharding::Kind::kTiled && d < s.tiles.dims.size()) tiles = s.tiles.dims[d];
      if (s.kind == Sharding::Kind::kNamed && d < s.dims.size())
        for (const AxisRef& axis : s.dims[d].axes) tiles *= axis.size ? axis.size : s.mesh.axes[axis.axis].second;
      if (tiles > 1 && out()[d] >= tiles) parts(out()[d], out()[d] / tiles + (out()[d] % tiles != 0), "is sharded");
    }
  }

  void rules() {
    switch (m_.op(i_)) {
      case Opcode::Reshape:
        return regroup(in(0), out(), "is reshaped");
      case Opcode::Bitcast:
        return bitcast_rule();
      case Opcode::Concatenate:
        return concatenate_rule();
      case Opcode::Pad:
        return pad_rule();
      case Opcode::Slice:
        return slice_rule();
      case Opcode::DynamicSlice:
      case Opcode::DynamicUpdateSlice:
      case Opcode::Gather:
      case Opcode::Scatter:
        return part_rules();
      case Opcode::ReduceWindow:
      case Opcode::SelectAndScatter:
        return window_rules();
      case Opcode::Convolution:
        return conv_rules(in(0), out());
      case Opcode::CustomCall:
        return call_rules();
      case Opcode::While:
        return loop_rule();
      case Opcode::Fft:
        return fft_rule();
      case Opcode::TopK:
        return less(m_.attrs(i_).integer(Attr::k), in(0).back(), "is a choice of the first");
      case Opcode::Constant:
        return constant_rule();
      case Opcode::RngBitGenerator:
        // How many there are decides which bits are whose.
        return keep_all("is computed from random bits");
      case Opcode::RaggedAllToAll:
        return keep_all("goes where numbers say that are data");
      case Opcode::Divide:
      case Opcode::Remainder:
        folded_rule();
        return division_rule();
      case Opcode::Add:
      case Opcode::Subtract:
      case Opcode::Multiply:
      case Opcode::Minimum:
      case Opcode::Maximum:
      case Opcode::Compare:
        return folded_rule();
      case Opcode::GetDimensionSize:
      case Opcode::SetDimensionSize:
        return keep_all("is a dimension of a size that is asked for");
      case Opcode::Infeed:
      case Opcode::Outfeed:
        return keep_all("comes from outside or goes there");
      default:
        if (op_info(m_.op(i_)).cls == OpClass::Collective) collective_rule();
    }
  }

  void regroup(const Dims& a, const Dims& b, const char* why) {
    if (a == b) return;
    const auto bounds = common_factors(a, b);
    for (size_t k = 1; k < bounds.size(); ++k) {
      Terms terms;
      bool zero = false;
      for (size_t d = bounds[k - 1].first; d < bounds[k].first; ++d)
        if (a[d] != 1) terms.emplace_back(a[d], 1), zero = zero || a[d] == 0;
      for (size_t d = bounds[k - 1].second; d < bounds[k].second; ++d)
        if (b[d] != 1) terms.emplace_back(b[d], -1), zero = zero || b[d] == 0;
      if (!zero) product(std::move(terms), why);
    }
  }

  void bitcast_rule() {
    const Shape &from = m_.shape(m_.operand(i_, 0)), &to = m_.shape(i_);
    if (from.dims == to.dims) return;
    if (tiled(from) || tiled(to)) return keep_all("is a bitcast of tiles");
    const int64_t a = type_bits(from.type), b = type_bits(to.type), common = std::gcd(a, b);
    if (common == 0) return keep_all("is a bitcast of no numbers");
    regroup(in_memory(from, a / common), in_memory(to, b / common), "is a bitcast");
  }

  void concatenate_rule() {
    const auto d = static_cast<size_t>(m_.attrs(i_).ints(Attr::dimensions).at(0));
    Terms terms{{out()[d], -1}};
    for (size_t k = 0; k < m_.operand_count(i_); ++k) terms.emplace_back(in(k)[d], 1);
    sum(std::move(terms), "is concatenated");
  }

  void pad_rule() {
    const auto& padding = *m_.attrs(i_).get<std::vector<PaddingDim>>(Attr::padding);
    for (size_t d = 0; d < out().size(); ++d) {
      const PaddingDim& p = padding[d];
      if (p == PaddingDim()) continue;
      if (in(0)[d] == 0 || out()[d] == 0) keep(in(0)[d], where(), "is padded"), keep(out()[d], where(), "is padded");
      sum({{out()[d], 1}, {in(0)[d], -1 - p.interior}, {place_key(p.low), -1}, {place_key(p.high), -1}}, "is padded");
    }
  }

  void slice_rule() {
    const auto& slice = *m_.attrs(i_).get<std::vector<SliceDim>>(Attr::slice);
    for (size_t d = 0; d < out().size(); ++d) {
      const SliceDim& s = slice[d];
      if (s == SliceDim{0, in(0)[d], 1}) continue;
      const int64_t whole = in(0)[d], start = place_key(s.start);
      const int64_t limit = s.limit == whole ? whole : place_key(s.limit);
      if (out()[d] == 0) {
        keep(start, where(), "is sliced"), keep(limit, where(), "is sliced");
      } else {
        sum({{limit, 1}, {start, -1}, {out()[d], -s.stride}}, "is sliced");
        less(start, limit, "is sliced");
      }
      less(limit, whole, "is sliced");
      if (m_.op(m_.operand(i_, 0)) == Opcode::Pad) keep_slice_of_pad(d, s);
    }
  }
  // Which part of a slice is padding is seen by passes.
  void keep_slice_of_pad(size_t d, const SliceDim& s) {
    const InstId pad = m_.operand(i_, 0);
    const PaddingDim& p = (*m_.attrs(pad).get<std::vector<PaddingDim>>(Attr::padding))[d];
    if (p == PaddingDim()) return;
    const char* why = "is a slice of padding";
    for (int64_t n : {in(0)[d], out()[d], m_.shape(m_.operand(pad, 0)).dims[d], place_key(s.start), place_key(s.limit),
                      place_key(p.low), place_key(p.high)})
      keep(n, where(), why);
  }

  // A part whose place is found when the program runs.
  void part(int64_t size, int64_t whole, const char* why) {
    less(size, whole, why);
    if (size < whole) to_.differences_.try_emplace(whole - size, whole, size);
  }
  void part_rules() {
    const AttrSet& a = m_.attrs(i_);
    switch (m_.op(i_)) {
      case Opcode::DynamicSlice:
        for (size_t d = 0; d < out().size(); ++d) part(out()[d], in(0)[d], "is a part of what it is sliced from");
        return;
      case Opcode::DynamicUpdateSlice:
        for (size_t d = 0; d < out().size(); ++d) part(in(1)[d], out()[d], "is a part of what it is written into");
        return;
      case Opcode::Gather:
        for (size_t d = 0; d < in(0).size(); ++d)
          part(a.ints(Attr::slice_sizes)[d], in(0)[d], "is a part of what it is gathered from");
        return;
      default: {
        const size_t count = (m_.operand_count(i_) - 1) / 2;
        const Dims &into = in(0), &updates = in(count + 1);
        size_t next = 0;
        for (size_t d = 0; d < into.size(); ++d) {
          const auto dim = static_cast<int64_t>(d);
          if (contains(a.ints(Attr::inserted_window_dims), dim) || contains(a.ints(Attr::input_batching_dims), dim))
            part(1, into[d], "is scattered into");
          else
            part(updates[static_cast<size_t>(a.ints(Attr::update_window_dims)[next++])], into[d],
                 "is a part of what it is scattered into");
        }
      }
    }
  }

  void window_rule(const WindowDim& w, int64_t in, int64_t size, int64_t out, const char* why) {
    if (w == WindowDim()) return;
    if (in <= 0 || out <= 0) return keep(in, where(), why), keep(out, where(), why), keep(size, where(), why);
    sum({{in, w.lhs_dilate},
         {place_key(w.pad_low), 1},
         {place_key(w.pad_high), 1},
         {size, -w.rhs_dilate},
         {out, -w.stride}},
        why);
  }
  void window_rules() {
    const auto* window = m_.attrs(i_).get<Window>(Attr::window);
    const bool scatter = m_.op(i_) == Opcode::SelectAndScatter;
    if (!window || (!scatter && m_.shape(i_).is_tuple() && m_.operand_count(i_) < 2)) return keep_all("has a window");
    const Dims& narrow = scatter ? in(1) : m_.shape(i_).is_tuple() ? u_[m_.shape(i_).elements[0]].dims : out();
    for (size_t d = 0; d < window->dims.size(); ++d)
      window_rule(window->dims[d], in(0)[d], window->dims[d].size, narrow[d], "has a window");
  }

  void conv_rules(const Dims& input, const Dims& output) {
    const AttrSet& a = m_.attrs(i_);
    const auto* labels = a.get<DimLabels>(Attr::dim_labels);
    const auto* window = a.get<Window>(Attr::window);
    if (!labels) return keep_all("is convolved in a way that is not recorded");
    auto at = [](const Dims& dims, int64_t d) { return dims[static_cast<size_t>(d)]; };
    for (size_t k = 0; window && k < labels->input_spatial.size(); ++k)
      window_rule(window->dims[k], at(input, labels->input_spatial[k]), window->dims[k].size,
                  at(output, labels->output_spatial[k]), "is convolved over");
    const int64_t groups = a.integer(Attr::feature_group_count, 1), batches = a.integer(Attr::batch_group_count, 1);
    const int64_t features = at(output, labels->output_feature);
    auto grouped = [&](int64_t whole, int64_t count) {
      product({{whole, 1}, {count, -1}, {whole / count, -1}}, "is convolved in groups");
    };
    if (groups > 1) grouped(at(input, labels->input_feature), groups), grouped(features, groups);
    if (batches > 1) grouped(at(input, labels->input_batch), batches), grouped(features, batches);
  }

  void call_rules() {
    const std::string_view target = u_.text(m_.attrs(i_).text(Attr::custom_call_target));
    constexpr std::string_view kConv = "__cudnn$conv";
    if (target.starts_with(kConv) && m_.shape(i_).is_tuple() && m_.operand_count(i_) >= 2) {
      const Dims& result = u_[m_.shape(i_).elements[0]].dims;
      const std::string_view kind = target.substr(kConv.size());
      if (kind == "BackwardInput") return conv_rules(result, in(0));
      if (kind == "BackwardFilter") return conv_rules(in(0), in(1));
      return conv_rules(in(0), result);
    }
    if (is_mark(target)) {
      if (m_.operand_count(i_) == 1 && m_.shape(i_).is_array() && in(0).size() == out().size())
        for (size_t d = 0; d < out().size(); ++d)
          parts(std::max(in(0)[d], out()[d]), std::min(in(0)[d], out()[d]), "is sharded");
      return;
    }
    if ((target == "TopK" || target == "__gpu$TopK") && m_.shape(i_).is_tuple())
      return less(u_[m_.shape(i_).elements[0]].dims.back(), in(0).back(), "is a choice of the first");
    if (!is_library_target(target) || target == "__cublas$lt$matmul$mx" || target == "__cublas$lt$groupedMatmul")
      keep_all("goes through a call of unknown sizes");
  }

  // What two constants come to when they are folded is a number of its own, and nobody would know it again but where
  // one is added.
  void folded_rule() {
    if (m_.operand_count(i_) != 2 || !is_integral(m_.shape(m_.operand(i_, 0)).type)) return;
    const std::optional<int64_t> a = whole_number(m_, m_.operand(i_, 0)), b = whole_number(m_, m_.operand(i_, 1));
    if (!a || !b) return;
    const bool stays_in_order =
        m_.op(i_) != Opcode::Multiply && m_.op(i_) != Opcode::Divide && m_.op(i_) != Opcode::Remainder;
    auto little = [](int64_t n) { return n >= -1 && n <= 1; };
    if (little(*a) && little(*b)) return;
    if (stays_in_order && (little(*a) || little(*b))) return;
    for (int64_t n : {*a, *b})
      if (n != INT64_MIN) keep(n < 0 ? -n : n, where(), "goes with a number that it is folded with");
  }

  // Passes make shifts and masks of it, whose numbers nobody would know again.
  void division_rule() {
    if (!is_integral(m_.shape(i_).type)) return;
    const std::optional<int64_t> by = whole_number(m_, m_.operand(i_, 1));
    if (by && *by > 1 && (*by & (*by - 1)) == 0) keep(*by, where(), "is divided by");
  }

  // An all-gather's and a reduce-scatter's dimension, what all-to-all takes apart.
  void collective_rule() {
    std::vector<ShapeId> leaves, operands;
    each_leaf(u_, m_.shape_id(i_), &leaves);
    for (InstId o : m_.operands(i_)) each_leaf(u_, m_.shape_id(o), &operands);
    const size_t behind = leaves.size() >= 2 * operands.size() ? operands.size() : 0;
    for (size_t k = 0; k < operands.size() && behind + k < leaves.size(); ++k) {
      const Dims &from = u_[operands[k]].dims, &to = u_[leaves[behind + k]].dims;
      for (size_t d = 0; from.size() == to.size() && d < to.size(); ++d)
        parts(std::max(from[d], to[d]), std::min(from[d], to[d]), "is spread over devices");
    }
    if (m_.op(i_) != Opcode::AllToAll || m_.shape(i_).is_tuple()) return;
    std::vector<DeviceDims> groups;
    const Dims& along = m_.attrs(i_).ints(Attr::dimensions);
    if (along.size() != 1 || !expand_replica_groups(u_.text(m_.attrs(i_).text(Attr::replica_groups)), &groups) ||
        groups.empty())
      return keep_all("is spread over devices");
    const int64_t whole = out()[static_cast<size_t>(along[0])], count = static_cast<int64_t>(groups[0].size());
    if (count > 1 && whole % count == 0) parts(whole, whole / count, "is spread over devices");
  }

  void fft_rule() {
    const Dims& length = m_.attrs(i_).ints(Attr::fft_length);
    if (length.empty()) return;
    const int64_t a = in(0).back(), b = out().back();
    if (a != b) sum({{std::max(a, b), 1}, {std::min(a, b), -2}}, "is transformed");
  }

  // A count is cut where what the loop counts up to is a constant that is cut with it.
  void loop_rule() {
    const int64_t trips = CostAnalysis(m_).trip_count(i_);
    const LoopBound bound = loop_bound(m_, i_);
    if (bound.known && bound.begin == 0 && bound.limit > 1) ++to_.sizes_[bound.limit];
    if (bound.known && bound.begin != 0) keep(bound.limit, where(), "is the bound of a loop that does not begin at 0");
    if (trips <= 1) return;
    if (!bound.known) return keep(trips, where(), "is the count of a loop that counts to no constant");
    if (bound.limit == trips && bound.begin == 0) return;
    const int64_t step = (bound.limit - bound.begin) / trips;
    if (bound.begin == 0 && bound.limit == step * trips) {
      keep(step, where(), "is the step of a loop");
      return product({{bound.limit, 1}, {trips, -1}, {step, -1}}, "is the count of a loop");
    }
    keep(trips, where(), "is the count of a loop"), keep(bound.limit, where(), "is the bound of a loop");
    keep(bound.begin, where(), "is where a loop begins");
  }

  // A table has no smaller one that is the same.
  void constant_rule() {
    const Literal& l = m_.literal(i_);
    if (device_table(m_.shape(i_), to_.devices_)) return;
    if (m_.shape(i_).is_array() && !l.elided && table_of(u_, l).kind == TableKind::kOther)
      keep_shape(m_.shape_id(i_), "is a dimension of a table of constants");
  }

  SizeRules& to_;
  const Module& m_;
  Universe& u_;
  const std::string& stage_;
  InstId i_;
  bool partitioned_ = false;
  std::unordered_set<uint32_t> counted_;
  std::unordered_set<std::string> shardings_;
};

void SizeRules::read(const Module& m, const std::string& stage) { Reader(*this, m, stage).run(); }

void SizeRules::keep(int64_t size, const std::string& where, const std::string& why) {
  if (kept_set_.insert(size).second) kept_.push_back({size, where, why});
}

void SizeRules::add(SizeRule::Kind kind, Terms terms, const std::string& where, const char* why) {
  std::map<int64_t, int64_t> factors;
  if (kind == SizeRule::kLess) {
    if (number_of(terms[0].first) >= number_of(terms[1].first)) return;
  } else {
    for (const auto& [size, factor] : terms) {
      // f(-n) = -f(n).
      if (kind == SizeRule::kSum && size < 0)
        factors[-size] -= factor;
      else
        factors[size] += factor;
    }
    terms.clear();
    for (const auto& [size, factor] : factors)
      if (factor && size != (kind == SizeRule::kProduct ? 1 : 0)) terms.emplace_back(size, factor);
    if (terms.empty()) return;
  }
  std::string text(1, static_cast<char>('0' + kind));
  for (const auto& [size, factor] : terms) text += fmt::format(" {}*{}", size, factor);
  if (known_.insert(text).second) rules_.push_back({kind, std::move(terms), where, why});
}

}  // namespace hlo
