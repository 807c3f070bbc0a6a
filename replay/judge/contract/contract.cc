#include "replay/judge/contract/contract.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/types/literal.h"
#include "replay/judge/contract/contract_parts.h"

namespace hlo {
namespace {

struct ContractRow {
  Contract kind;
  std::string_view name, words;
  int choices;
};

constexpr ContractRow kContractRows[] = {
    {Contract::kConvert, "convert-range", "converts floats that the integer type does not hold", 5},
    {Contract::kDivide, "integer-division", "divides integers by zero, or the least one by -1", 5},
    {Contract::kShift, "shift-amount", "shifts by a negative amount, or by the width and more", 4},
    {Contract::kSortTies, "sort-ties", "sorts equal keys, and is_stable=false leaves their order open", 24},
    {Contract::kSortNan, "sort-nan", "sorts NaN with a comparator that does not order them", 24},
    {Contract::kUniqueIndices, "unique-indices", "claims unique_indices=true, and indices come twice", 4},
    {Contract::kSortedIndices, "sorted-indices", "claims indices_are_sorted=true, and they are not", 3},
    {Contract::kScatterOrder, "scatter-order", "writes elements several times, in an order that is left open", 6},
    {Contract::kReduceOrder, "reduce-order", "reduces with what is not associative, in an order that is left open", 6},
    {Contract::kReduceInit, "reduce-init", "reduces from an initial value that counts each time it is used", 2},
    {Contract::kRandom, "random", "draws random numbers by an algorithm that is left open", 3},
    {Contract::kUninitialised, "uninitialised", "is memory that nothing was written to", 3},
    {Contract::kRange, "range", "leaves the range of its type, which a value kept in a wider one does not", 1},
    {Contract::kExcess, "excess-precision", "rounds to a narrow type, which XLA may leave out", 2},
    {Contract::kDenormal, "denormals", "has numbers below the least normal one, which may be flushed to zero", 1},
    {Contract::kAccuracy, "accuracy", "is a function of which HLO names no accuracy", 1},
};

const ContractRow& row_of(Contract c) { return kContractRows[static_cast<size_t>(c)]; }

// The number of element k of an operand that may be a scalar.
const char* element(const Universe& u, const Value& v, int64_t k) {
  const Shape& s = u[v.shape];
  return v.bytes() + (s.rank() == 0 ? 0 : k * storage_bytes(s.type));
}

int64_t least(ElementType t) { return is_signed_int(t) ? static_cast<int64_t>(~uint64_t{0} << (type_bits(t) - 1)) : 0; }
// Of u64 all bits, as load_int has it.
int64_t greatest(ElementType t) {
  return is_signed_int(t) ? ~least(t) : static_cast<int64_t>(~uint64_t{0} >> (64 - type_bits(t)));
}

// Below or above what the type holds when the fraction is cut off?
bool out_of_range(ElementType t, double x) {
  if (std::isnan(x)) return true;
  double cut = std::trunc(x), low = is_signed_int(t) ? -std::ldexp(1.0, type_bits(t) - 1) : 0;
  return cut < low || cut >= std::ldexp(1.0, type_bits(t) - (is_signed_int(t) ? 1 : 0));
}

int64_t other_integer(ElementType t, double x, int which) {
  if (which == 0) return least(t);
  if (which == 1) return greatest(t);
  if (which == 2) return 0;
  if (which == 3) return -1;
  return std::isfinite(x) ? static_cast<int64_t>(std::fmod(std::trunc(x), std::ldexp(1.0, 62))) : 1;  // cut to the bits
}

std::optional<Value> other_elements(const Module& m, InstId i, std::span<const Value> ops, const Value& v, Contract c,
                                    int which, int64_t* open) {
  const Universe& u = m.u();
  const Shape& s = u[v.shape];
  ElementType to = s.type, from = u[ops[0].shape].type;
  int width = storage_bytes(to);
  Value out = v;
  int64_t n = 0;
  for (int64_t k = 0; k < s.elements_count(); ++k) {
    const char* x = element(u, ops[0], k);
    int64_t other = 0;
    if (c == Contract::kConvert) {
      double value = load_double(from, x);
      if (!out_of_range(to, value)) continue;
      other = other_integer(to, value, which);
    } else {
      int64_t a = load_int(from, x), b = load_int(from, element(u, ops[1], k));
      if (c == Contract::kDivide) {
        bool both = is_signed_int(from) && b == -1 && a == least(from);
        if (b != 0 && !both) continue;
        const int64_t values[] = {0, -1, a, least(from), greatest(from)};
        other = values[which];
      } else {
        int bits = type_bits(from);
        if (b >= 0 && b < bits) continue;
        int by = static_cast<int>(b & (bits - 1));
        uint64_t mask = ~uint64_t{0} >> (64 - bits), left = static_cast<uint64_t>(a) & mask;
        uint64_t masked = m.op(i) == Opcode::ShiftLeft ? left << by : left >> by;
        if (m.op(i) == Opcode::ShiftRightArithmetic) masked = static_cast<uint64_t>(a >> by);
        const int64_t values[] = {static_cast<int64_t>(masked), 0, -1, a};
        other = values[which];
      }
    }
    if (!n++) out.mutable_bytes();
    store_int(to, out.data->data() + k * width, other);
  }
  if (!n) return std::nullopt;
  if (open) *open = n;
  return out;
}

// Every array of it in other bits: numbers of the same kind, in another order and of another draw.
Value drawn_again(const Module& m, InstId i, std::span<const Value> ops, int which) {
  EvalOptions options;
  options.rng_seed = 0x9e3779b9u + static_cast<uint64_t>(which);
  Evaluator evaluator(m, options);
  Value v = evaluator.run_instruction(i, std::vector<Value>(ops.begin(), ops.end()));
  if (m.op(i) == Opcode::Rng) return v;
  auto mix = [&](auto&& self, Value& part) -> void {
    for (Value& e : part.elements) self(self, e);
    if (!part.data) return;
    char* bytes = part.mutable_bytes();
    for (size_t k = 0; k < part.data->size(); ++k) {
      auto b = static_cast<uint32_t>(k) * 2654435761u + static_cast<uint32_t>(which + 1) * 40503u;
      bytes[k] = static_cast<char>(bytes[k] ^ static_cast<char>(b >> 13));
    }
  };
  mix(mix, v);
  return v;
}

Value filled(const Universe& u, const Value& v, int which) {
  Value out = v;
  for (Value& e : out.elements) e = filled(u, e, which);
  if (out.data) std::memset(out.mutable_bytes(), which == 0 ? 0x3f : which == 1 ? 1 : 0x7f, out.data->size());
  return out;
}

}  // namespace

std::string_view contract_name(Contract c) { return row_of(c).name; }
std::string_view contract_words(Contract c) { return row_of(c).words; }
int contract_choices(Contract c) { return row_of(c).choices; }

bool contract_concerns(const Module& m, InstId i, Contract c) {
  Opcode op = m.op(i);
  const AttrSet& a = m.attrs(i);
  auto type = [&](size_t k) { return m.shape(m.operand(i, k)).type; };
  switch (c) {
    case Contract::kConvert:
      return op == Opcode::Convert && is_float(type(0)) && is_integral(m.shape(i).type);
    case Contract::kDivide:
      return (op == Opcode::Divide || op == Opcode::Remainder) && is_integral(type(0));
    case Contract::kShift:
      return op == Opcode::ShiftLeft || op == Opcode::ShiftRightArithmetic || op == Opcode::ShiftRightLogical;
    case Contract::kSortTies:
      return op == Opcode::Sort && !a.flag(Attr::is_stable);
    case Contract::kSortNan:
      return op == Opcode::Sort;
    case Contract::kUniqueIndices:
      return op == Opcode::Scatter && a.flag(Attr::unique_indices);
    case Contract::kSortedIndices:
      return (op == Opcode::Scatter || op == Opcode::Gather) && a.flag(Attr::indices_are_sorted);
    case Contract::kScatterOrder:
      return op == Opcode::Scatter && !a.flag(Attr::unique_indices);
    case Contract::kReduceOrder:
    case Contract::kReduceInit:
      return op == Opcode::Reduce;
    case Contract::kRandom:
      return op == Opcode::Rng || op == Opcode::RngGetAndUpdateState ||
             (op == Opcode::RngBitGenerator && m.u().text(a.text(Attr::algorithm)) == "rng_default");
    case Contract::kUninitialised:
      return op == Opcode::CustomCall && m.u().text(a.text(Attr::custom_call_target)) == "AllocateBuffer";
    default:
      return false;
  }
}

std::optional<Value> contract_value(const Module& m, InstId i, std::span<const Value> ops, const Value& v, Contract c,
                                    int which, int64_t* open) {
  if (!contract_concerns(m, i, c)) return std::nullopt;
  for (const Value& o : ops)
    if (!o.sizes.empty()) return std::nullopt;  // dynamic dimensions: not told here
  switch (c) {
    case Contract::kConvert:
    case Contract::kDivide:
    case Contract::kShift:
      return other_elements(m, i, ops, v, c, which, open);
    case Contract::kSortTies:
    case Contract::kSortNan:
      return other_order_of_sort(m, i, ops, v, c, which, open);
    case Contract::kUniqueIndices:
    case Contract::kSortedIndices:
    case Contract::kScatterOrder:
      return other_indices(m, i, ops, v, c, which, open);
    case Contract::kReduceOrder:
    case Contract::kReduceInit:
      return other_reduction(m, i, ops, v, c, which, open);
    case Contract::kRandom:
    case Contract::kUninitialised: {
      Value out = c == Contract::kRandom ? drawn_again(m, i, ops, which) : filled(m.u(), v, which);
      if (open) *open = differing(m.u(), out, v, true);
      return out;
    }
    default:
      return std::nullopt;
  }
}

void ContractWatch::see(InstId i, std::span<const Value> operands, const Value& v) {
  for (Contract c : kOpenContracts) {
    int64_t open = 0;
    if (!contract_concerns(m_, i, c) || !contract_value(m_, i, operands, v, c, 0, &open)) continue;
    auto known =
        std::find_if(sites_.begin(), sites_.end(), [&](const ContractSite& s) { return s.inst == i && s.kind == c; });
    if (known == sites_.end()) known = sites_.insert(sites_.end(), {i, c, 0});
    known->elements += open;
  }
}

}  // namespace hlo
