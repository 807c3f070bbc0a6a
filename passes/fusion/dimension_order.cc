#include "passes/fusion/dimension_order.h"

#include <array>

#include "passes/layout/physical.h"

namespace hlo {

DimensionOrder dimension_order_of(const Shape& s) {
  DimensionOrder out;
  Dims order = major_to_minor(s);
  std::reverse(order.begin(), order.end());
  for (int64_t d : order) {
    const int dim = static_cast<int>(d);
    out.by_dim[dim].push_back(static_cast<int>(out.fragments.size()));
    out.fragments.emplace_back(dim, s.dims[static_cast<size_t>(d)]);
  }
  return out;
}

DimensionOrder::Spec DimensionOrder::spec() const {
  // Of each piece: stride, elements, first and number of those read, then the parts that it was joined of.
  Spec out;
  int64_t stride = 1;
  int last = -1;
  for (const Fragment& f : fragments) {
    std::vector<std::vector<int64_t>>& pieces = out[f.dim];
    if (last == f.dim) {
      std::vector<int64_t>& piece = pieces.back();
      if (piece.size() > 4 && piece.back() == 1) piece.pop_back();
      if (f.count > 1) {
        piece[2] = f.start * piece[1], piece[3] = f.sliced * piece[1];
        piece[1] *= f.count;
        piece.push_back(f.sliced);
      }
    } else {
      pieces.push_back({stride, f.count, f.start, f.sliced, f.sliced});
    }
    stride *= f.count;
    last = f.dim;
  }
  for (auto& [dim, pieces] : out)
    if (pieces.size() > 1) std::erase_if(pieces, [](const std::vector<int64_t>& p) { return p[1] == 1; });
  std::erase_if(out, [](const auto& entry) { return entry.second.empty(); });
  return out;
}

std::optional<int64_t> combined_split(int64_t a, int64_t b) {
  if (a == b || b == kNoSplit) return a;
  if (a == kNoSplit) return b;
  return std::nullopt;
}

namespace {

// What an order asks for; nothing, and why, where no kernel takes it.
std::optional<int64_t> split_of(const DimensionOrder& order, const DotSide& side, std::string* why) {
  int64_t split = kNoSplit;
  for (const auto& [dim, places] : order.by_dim) {
    for (size_t k = 0; k + 1 < places.size(); ++k)
      if (order.fragments[static_cast<size_t>(places[k])].is_sliced()) {
        *why = "a slice of a piece that is not the major one";
        return std::nullopt;
      }
    int groups = 0, last = -1;
    for (size_t k = 0; k < places.size(); ++k) {
      int64_t size = order.fragments[static_cast<size_t>(places[k])].count;
      for (; k + 1 < places.size() && places[k + 1] == places[k] + 1; ++k)
        size *= order.fragments[static_cast<size_t>(places[k + 1])].count;
      if (size == 1) continue;
      if (last > places[k]) {
        *why = "pieces of a dimension in another order";
        return std::nullopt;
      }
      if (++groups > 1) {
        if (dim != side.splittable || groups > 2) {
          *why = "a dimension in pieces";
          return std::nullopt;
        }
        split = size;
      }
      last = places[k];
    }
  }
  return split;
}

class Propagation {
 public:
  Propagation(const Module& m, InstId i, const DimensionOrder& order, Towards direction, const DotSide& side)
      : m_(m), i_(i), order_(order), direction_(direction), side_(side) {}

  PropagatedOrders run() {
    orders();
    if (!out_.refused.empty()) return std::move(out_);
    for (const auto& [inst, order] : out_.orders) {
      const auto split = split_of(order, side_, &out_.refused);
      const auto both = split ? combined_split(out_.split, *split) : std::nullopt;
      if (split && !both) out_.refused = "two splits of one dimension";
      if (!both) return std::move(out_);
      out_.split = *both;
    }
    return std::move(out_);
  }

 private:
  bool upwards() const { return direction_ == Towards::kOperands; }
  void refuse(std::string_view why) {
    if (out_.refused.empty()) out_.refused = why;
  }

  void orders() {
    const Opcode op = m_.op(i_);
    if (op != Opcode::Parameter && upwards())
      for (InstId user : m_.users(i_))
        if (m_.op(user) == Opcode::Concatenate || m_.op(user) == Opcode::DynamicSlice)
          return refuse("read by a concatenate or a dynamic slice");
    if (op == Opcode::Parameter || (op == Opcode::Constant && m_.shape(i_).is_scalar())) return;
    if (op == Opcode::Transpose || op == Opcode::Copy) return altering();
    if (op == Opcode::Broadcast || op == Opcode::Slice)
      return upwards() ? altering() : refuse("a broadcast or slice of the result");
    if (m_.operand_count(i_) > 0 && triton_elementwise(op, m_.shape(m_.operand(i_, 0)).type)) return elementwise();
    if (op == Opcode::Bitcast) return bitcast();
    if (op == Opcode::Reshape)
      return reshape_is_bitcast(m_.u(), m_.shape_id(m_.operand(i_, 0)), m_.shape_id(i_))
                 ? bitcast()
                 : refuse("a reshape that moves elements");
    if (op == Opcode::Concatenate && upwards()) return concatenate();
    refuse("an operation that is not followed");
  }

  void elementwise() {
    if (!upwards()) return void(out_.orders.try_emplace(i_, order_));
    for (InstId o : m_.operands(i_)) out_.orders.try_emplace(o, order_);
  }

  // In parallel over the pieces and the dimensions on the other side, minor first, by groups of equal size.
  void bitcast() {
    const InstId to = upwards() ? m_.operand(i_, 0) : i_;
    const Shape& s = m_.shape(to);
    Dims dims = in_order(s.dims, major_to_minor(s));
    std::reverse(dims.begin(), dims.end());
    DimensionOrder& made = out_.orders.try_emplace(to).first->second;
    std::vector<std::vector<int>> heirs(order_.fragments.size());
    auto add = [&](size_t from, const Fragment& f) {
      made.fragments.push_back(f);
      heirs[from].push_back(static_cast<int>(made.fragments.size()) - 1);
    };
    int64_t open = 1;  // of the other side's dimension, not yet covered
    size_t next = 0;
    for (size_t k = 0; k < order_.fragments.size(); ++k) {
      const Fragment& f = order_.fragments[k];
      if (open >= f.count) {
        if (open % f.count) return refuse("a bitcast across dimensions");
        add(k, f);
        open /= f.count;
        continue;
      }
      int64_t rest = f.count;
      if (open > 1) {
        if (rest % open || f.is_sliced()) return refuse("a bitcast across dimensions");
        add(k, Fragment(f.dim, open));
        rest /= std::exchange(open, 1);
      }
      while (rest > 1) {
        if (next == dims.size() || dims[next] == 0) return refuse("a bitcast of another size");
        int64_t size = dims[next++];
        if (size > rest) {
          if (size % rest) return refuse("a bitcast across dimensions");
          open = size / rest;
          size = rest;
        } else if (rest % size) {
          return refuse("a bitcast across dimensions");
        }
        if (f.is_sliced()) return refuse("a bitcast of a slice");
        add(k, Fragment(f.dim, size));
        rest /= size;
      }
    }
    for (; next < dims.size(); ++next) {
      if (dims[next] != 1) return refuse("a bitcast of another size");
      if (!made.fragments.empty()) add(order_.fragments.size() - 1, Fragment(made.fragments.back().dim, 1));
    }
    if (open != 1) return refuse("a bitcast of another size");
    for (const auto& [dim, places] : order_.by_dim)
      for (int from : places)
        for (int at : heirs[static_cast<size_t>(from)]) made.by_dim[dim].push_back(at);
  }

  void concatenate() {
    const int64_t dim = m_.attrs(i_).ints(Attr::dimensions)[0];
    if (auto kept = order_.by_dim.find(side_.kept); kept != order_.by_dim.end() && kept->second.size() > 1)
      return refuse("a concatenate of a dimension in pieces");
    for (InstId o : m_.operands(i_))
      if (m_.shape(o).dims[static_cast<size_t>(dim)] % 64) return refuse("a concatenate of parts that no tile fits");
    if (std::optional<int64_t> at = logical(side_.kept); !at || *at != dim)
      return refuse("a concatenate of a dimension that is summed");
    altering();
  }
  // The dimension of i's shape in which pieces of that one of the dot's lie.
  std::optional<int64_t> logical(int dot_dim) const {
    const Shape& s = m_.shape(i_);
    Dims order = major_to_minor(s);
    std::reverse(order.begin(), order.end());
    size_t k = 0;
    for (int64_t d : order)
      for (int64_t size = 1; size < s.dims[static_cast<size_t>(d)] && k < order_.fragments.size(); ++k) {
        size *= order_.fragments[k].count;
        if (order_.fragments[k].dim == dot_dim) return d;
      }
    return std::nullopt;
  }

  // Copies, transposes, broadcasts, slices, concatenates: pieces go by the dimension that they are of. A piece keeps
  // the number of the one that it came from; -1: made here.
  using Piece = std::pair<Fragment, int>;
  void altering() {
    const InstId from = upwards() ? i_ : m_.operand(i_, 0);
    if (m_.op(i_) == Opcode::Slice && m_.shape(i_).is_effective_scalar()) return refuse("a slice of one element");
    const Shape& s = m_.shape(from);
    if (order_.fragments.size() < s.dims.size()) return refuse("dimensions of no size");
    std::vector<std::vector<Piece>> source(s.dims.size());
    size_t next = 0;
    Dims order = major_to_minor(s);
    std::reverse(order.begin(), order.end());
    for (int64_t d : order) {
      const int64_t size = s.dims[static_cast<size_t>(d)];
      int64_t covered = 1;
      do {
        if (next == order_.fragments.size()) return refuse("dimensions of another size");
        source[static_cast<size_t>(d)].push_back({order_.fragments[next], static_cast<int>(next)});
        covered *= order_.fragments[next++].count;
      } while (covered < size);
      if (covered != size) return refuse("dimensions of another size");
    }
    int64_t offset = 0;  // of an operand in a concatenate
    if (!upwards()) return finish(i_, moved(i_, source, &offset));
    const std::vector<InstId> operands(m_.operands(i_).begin(), m_.operands(i_).end());
    for (InstId o : operands) finish(o, moved(o, source, &offset));
  }

  std::vector<std::vector<Piece>> moved(InstId to, const std::vector<std::vector<Piece>>& source, int64_t* offset) {
    const AttrSet& a = m_.attrs(i_);
    std::vector<std::vector<Piece>> out = source;
    switch (m_.op(i_)) {
      case Opcode::Transpose: {
        Dims p = a.ints(Attr::dimensions);
        if (!upwards()) p = inverse_permutation(p);
        for (size_t k = 0; k < p.size(); ++k) out[static_cast<size_t>(p[k])] = source[k];
        break;
      }
      case Opcode::Broadcast:
        out = in_order(source, a.ints(Attr::dimensions));
        break;
      case Opcode::Slice: {
        const auto& slices = *a.get<std::vector<SliceDim>>(Attr::slice);
        const Dims& dims = m_.shape(to).dims;
        for (size_t d = 0; d < slices.size(); ++d) {
          if (slices[d].limit - slices[d].start == dims[d]) continue;
          if (out[d].size() > 1) return refuse("a slice of a dimension in pieces"), out;
          Fragment& f = out[d][0].first;
          f.count = dims[d];
          f.start += slices[d].start;
        }
        break;
      }
      case Opcode::Concatenate: {
        const auto d = static_cast<size_t>(a.ints(Attr::dimensions)[0]);
        if (out[d].size() != 1 || out[d][0].first.is_sliced()) return refuse("a concatenate of pieces"), out;
        Fragment made(out[d][0].first.dim, m_.shape(to).dims[d]);
        made.start = -*offset;
        *offset += made.count;
        out[d] = {{made, -1}};
        break;
      }
      default:
        break;
    }
    return out;
  }

  void finish(InstId to, const std::vector<std::vector<Piece>>& logical) {
    if (!out_.refused.empty() || out_.orders.contains(to)) return;
    DimensionOrder& made = out_.orders[to];
    std::map<int, int> place;   // by the piece that it came from
    std::map<int, bool> there;  // dimensions of more than one element
    Dims order = major_to_minor(m_.shape(to));
    std::reverse(order.begin(), order.end());
    for (int64_t d : order)
      for (const auto& [fragment, from] : logical[static_cast<size_t>(d)]) {
        place[from] = static_cast<int>(made.fragments.size());
        made.fragments.push_back(fragment);
        if (fragment.count > 1) there[fragment.dim] = true;
      }
    for (const auto& [dim, places] : order_.by_dim)
      for (int from : places) {
        if (auto at = place.find(from); at != place.end())
          made.by_dim[dim].push_back(at->second);
        else if (m_.op(i_) == Opcode::Broadcast && there[dim] && order_.fragments[static_cast<size_t>(from)].count > 1)
          return refuse("a broadcast of a part of a dimension");
      }
  }

  const Module& m_;
  const InstId i_;
  const DimensionOrder& order_;
  const Towards direction_;
  const DotSide side_;
  PropagatedOrders out_;
};

bool dot_type(ElementType t) {
  using enum ElementType;
  return t == F16 || t == F32 || t == BF16 || t == S32 || t == F8E5M2 || t == F8E4M3FN;
}
bool data_type(ElementType t) {
  using enum ElementType;
  return dot_type(t) || t == Pred || t == S8 || t == S16;
}

std::string refuses_dot(const Module& m, InstId i) {
  const AttrSet& a = m.attrs(i);
  const Shape &lhs = m.shape(m.operand(i, 0)), &rhs = m.shape(m.operand(i, 1));
  const size_t batch = a.ints(Attr::lhs_batch_dims).size();
  if (batch + a.ints(Attr::lhs_contracting_dims).size() == lhs.dims.size() ||
      batch + a.ints(Attr::rhs_contracting_dims).size() == rhs.dims.size())
    return "nothing but the sum and the batch";
  if (const StrId algorithm = a.text(Attr::algorithm); algorithm.valid()) {
    static constexpr std::array<std::string_view, 6> kThere = {"dot_tf32_tf32_f32",    "dot_tf32_tf32_f32_x3",
                                                               "dot_f32_f32_f32",      "dot_bf16_bf16_f32",
                                                               "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6"};
    if (std::find(kThere.begin(), kThere.end(), m.u().text(algorithm)) == kThere.end()) return "its algorithm";
  }
  // A product may be of f64 (what makes or reads it then stays outside), whatever precision is asked for.
  auto taken = [](ElementType t, bool other) { return t == ElementType::F64 || other; };
  if (!taken(m.shape(i).type, dot_type(m.shape(i).type))) return "its type";
  for (ElementType t : {lhs.type, rhs.type})
    if (!taken(t, data_type(t))) return "the type of an operand";
  auto byte = [](ElementType t) { return is_float(t) && type_bits(t) == 8; };
  if (lhs.type != rhs.type && !(byte(lhs.type) && byte(rhs.type))) return "operands of two types";
  if ((m.shape(i).type == ElementType::S32) != (lhs.type == ElementType::S8)) return "a sum of wide integers";
  return "";
}

}  // namespace

PropagatedOrders propagate_orders(const Module& m, InstId i, const DimensionOrder& order, Towards direction,
                                  const DotSide& side) {
  return Propagation(m, i, order, direction, side).run();
}

bool triton_elementwise(Opcode op, ElementType operand) {
  using enum Opcode;
  const bool floats = operand == ElementType::F32 || operand == ElementType::BF16 || operand == ElementType::F16 ||
                      operand == ElementType::F64;
  switch (op) {
    case Convert:
    case Select:
    case Clamp:
    case Compare:
      return true;
    case Not:
    case And:
    case Or:
    case Xor:
      return operand == ElementType::Pred;
    case Abs:
    case Negate:
    case Add:
    case Maximum:
    case Minimum:
    case Multiply:
    case Subtract:
      return operand != ElementType::Pred;
    case Cosine:
    case Exp:
    case Expm1:
    case Floor:
    case Ceil:
    case Log:
    case Log1p:
    case Rsqrt:
    case Sine:
    case Sqrt:
    case Cbrt:
    case Tan:
    case Tanh:
    case Erf:
    case Atan2:
    case Power:
      return floats;
    case Divide:
      return floats && operand != ElementType::F16;
    default:
      return false;
  }
}

std::string triton_refuses(const Module& m, InstId i) {
  const Opcode op = m.op(i);
  switch (op) {
    case Opcode::Dot:
      return refuses_dot(m, i);
    case Opcode::Bitcast:
      return m.shape(i).type == m.shape(m.operand(i, 0)).type ? "" : "a bitcast to another type";
    case Opcode::Transpose:
    case Opcode::Slice:
    case Opcode::Reshape:
    case Opcode::Concatenate:
    case Opcode::Parameter:
    case Opcode::Broadcast:
      return "";
    default:
      break;
  }
  if (op != Opcode::Constant && !(op_info(op).elementwise && m.operand_count(i) > 0)) return "its operation";
  if (!m.shape(i).is_array() || !data_type(m.shape(i).type)) return "its type";
  for (InstId o : m.operands(i)) {
    const ElementType t = m.shape(o).type;
    if (!data_type(t) && !(op == Opcode::Convert && t == ElementType::S4)) return "the type of an operand";
  }
  return op == Opcode::Constant || triton_elementwise(op, m.shape(m.operand(i, 0)).type) ? "" : "its operation";
}

}  // namespace hlo
