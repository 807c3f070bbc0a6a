#include "parser/excerpt/excerpt_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "ir/opcode.h"

namespace hlo {
namespace {

using Numbers = std::vector<int64_t>;

// `2,3`; nothing where it is anything else.
std::optional<Numbers> numbers_in(std::string_view list) {
  Numbers out;
  for (std::string_view part : parts_between_commas(list)) {
    int64_t n = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error != std::errc() || end != part.data() + part.size() || n < 0) return {};
    out.push_back(n);
  }
  return out;
}

// `f32[2,3]{1,0}` in its parts.
struct ArrayText {
  std::string_view type;
  Numbers dims;
};

std::optional<ArrayText> array_in(std::string_view shape) {
  const size_t open = shape.find('['), close = shape.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || shape.starts_with('(')) return {};
  std::optional<Numbers> dims = numbers_in(shape.substr(open + 1, close - open - 1));
  if (!dims) return {};
  return ArrayText{shape.substr(0, open), std::move(*dims)};
}

std::string array_text(std::string_view type, const Numbers& dims) {
  return fmt::format("{}[{}]", type, fmt::join(dims, ","));
}

// `{0,2}` of an attribute.
std::optional<Numbers> numbers_of(const Piece& p, std::string_view key) {
  std::string_view value = attribute_in(p.attributes, key);
  if (!value.starts_with('{') || !value.ends_with('}')) return {};
  return numbers_in(value.substr(1, value.size() - 2));
}

std::vector<std::string_view> elements_of(std::string_view tuple) {
  if (!tuple.starts_with('(') || !tuple.ends_with(')')) return {};
  std::vector<std::string_view> out;
  for (std::string_view part : parts_between_commas(tuple.substr(1, tuple.size() - 2))) {
    if (part.starts_with("/*"))
      if (size_t end = part.find("*/"); end != std::string_view::npos) part = trimmed(part.substr(end + 2));
    out.push_back(part);
  }
  return out;
}

// The other side, batch dimensions, free ones, then what is summed over.
std::string dot_operand(const Piece& p, size_t which, const ShapeOfName& shape_of) {
  if (p.operands.size() != 2) return {};
  const std::string_view mine = which == 0 ? "lhs" : "rhs", others = which == 0 ? "rhs" : "lhs";
  const std::string other_shape = shape_of(p.operands[1 - which].name);
  auto result = array_in(p.shape), other = array_in(other_shape);
  auto numbers = [&](std::string_view side, std::string_view what) {
    return numbers_of(p, fmt::format("{}_{}_dims", side, what)).value_or(Numbers());
  };
  const Numbers batch = numbers(mine, "batch"), other_batch = numbers(others, "batch"),
                summed = numbers(mine, "contracting"), other_summed = numbers(others, "contracting");
  if (!result || !other || batch.size() != other_batch.size() || summed.size() != other_summed.size()) return {};
  const auto at = [](const Numbers& list, int64_t k) {
    return k >= 0 && static_cast<size_t>(k) < list.size() ? list[static_cast<size_t>(k)] : -1;
  };
  const auto free_of_other =
      static_cast<int64_t>(other->dims.size() - std::min(other->dims.size(), batch.size() + summed.size()));
  const auto in_result = static_cast<int64_t>(result->dims.size()), batches = static_cast<int64_t>(batch.size());
  const int64_t free = in_result - batches - free_of_other;
  if (free < 0) return {};
  Numbers dims(batch.size() + summed.size() + static_cast<size_t>(free), -1);
  auto put = [&](int64_t k, int64_t size) {
    if (k < 0 || static_cast<size_t>(k) >= dims.size() || dims[static_cast<size_t>(k)] >= 0) return false;
    dims[static_cast<size_t>(k)] = size;
    return size >= 0;
  };
  for (size_t k = 0; k < batch.size(); ++k)
    if (!put(batch[k], at(result->dims, static_cast<int64_t>(k)))) return {};
  for (size_t k = 0; k < summed.size(); ++k)
    if (!put(summed[k], at(other->dims, other_summed[k]))) return {};
  int64_t next = which == 0 ? batches : batches + free_of_other;
  for (int64_t& d : dims)
    if (d < 0) d = at(result->dims, next++);
  for (int64_t d : dims)
    if (d < 0) return {};
  return array_text(other->type, dims);
}

std::string transposed(const Piece& p) {
  auto result = array_in(p.shape);
  auto order = numbers_of(p, "dimensions");
  if (!result || !order || order->size() != result->dims.size()) return {};
  Numbers dims(order->size(), -1);
  for (size_t k = 0; k < order->size(); ++k) {
    if (static_cast<size_t>((*order)[k]) >= dims.size() || dims[static_cast<size_t>((*order)[k])] >= 0) return {};
    dims[static_cast<size_t>((*order)[k])] = result->dims[k];
  }
  return array_text(result->type, dims);
}

std::string broadcast_operand(const Piece& p) {
  auto result = array_in(p.shape);
  auto at = numbers_of(p, "dimensions");
  if (!result || !at) return {};
  Numbers dims;
  for (int64_t k : *at) {
    if (static_cast<size_t>(k) >= result->dims.size()) return {};
    dims.push_back(result->dims[static_cast<size_t>(k)]);
  }
  return array_text(result->type, dims);
}

// Of elementwise operations: the result's, where no other type is possible.
std::string elementwise_operand(const Piece& p, Opcode op, size_t which, const ShapeOfName& shape_of) {
  auto result = array_in(p.shape);
  switch (op) {
    case Opcode::Select:
      return which == 0 ? (result ? array_text("pred", result->dims) : "") : std::string(p.shape);
    case Opcode::Compare: {
      if (p.operands.size() != 2 || !result) return {};
      const std::string other_shape = shape_of(p.operands[1 - which].name);
      auto other = array_in(other_shape);
      return other ? array_text(other->type, result->dims) : "";
    }
    case Opcode::Clamp:
      return which == 1 ? std::string(p.shape) : "";
    case Opcode::Convert:
    case Opcode::BitcastConvert:
    case Opcode::ReducePrecision:
    case Opcode::StochasticConvert:
    case Opcode::IsFinite:
    case Opcode::Real:
    case Opcode::Imag:
    case Opcode::Complex:
    case Opcode::Map:
      return op == Opcode::ReducePrecision ? std::string(p.shape) : "";
    case Opcode::Abs:  // of complex numbers it is a real one
      return result && (result->type == "f32" || result->type == "f64") ? "" : std::string(p.shape);
    default:
      return std::string(p.shape);
  }
}

}  // namespace

std::string scalar_of(std::string_view shape) {
  auto array = array_in(shape);
  return array ? array_text(array->type, {}) : "";
}

std::string operand_shape(const Piece& p, size_t which, const ShapeOfName& shape_of,
                          const ShapeOfParameter& parameter_of) {
  Opcode op;
  if (p.shape.empty() || !op_from_text(p.opcode, &op)) return {};
  const std::string same(p.shape);
  const bool tuple = p.shape.starts_with('(');
  switch (op) {
    case Opcode::Dot:
      return dot_operand(p, which, shape_of);
    case Opcode::Transpose:
      return transposed(p);
    case Opcode::Broadcast:
      return broadcast_operand(p);
    case Opcode::Copy:
    case Opcode::Reverse:
    case Opcode::OptBarrier:
    case Opcode::CollectivePermute:
    case Opcode::While:
      return p.operands.size() == 1 ? same : "";
    case Opcode::AllReduce:
    case Opcode::Sort: {
      if (!tuple) return p.operands.size() == 1 ? same : "";
      const auto elements = elements_of(p.shape);
      return elements.size() == p.operands.size() ? std::string(elements[which]) : "";
    }
    case Opcode::Tuple: {
      const auto elements = elements_of(p.shape);
      return elements.size() == p.operands.size() ? std::string(elements[which]) : "";
    }
    case Opcode::AddDependency:
    case Opcode::DynamicUpdateSlice:
      return which == 0 ? same : "";
    case Opcode::Reduce:
      return p.operands.size() == 2 && which == 1 && !tuple ? scalar_of(p.shape) : "";
    case Opcode::Pad:
      return which == 1 ? scalar_of(p.shape) : "";
    case Opcode::Fusion:
    case Opcode::Call: {
      std::string_view callee = attribute_in(p.attributes, op == Opcode::Fusion ? "calls" : "to_apply");
      if (callee.starts_with('%')) callee.remove_prefix(1);
      return parameter_of(callee, which);
    }
    default:
      return op_info(op).elementwise ? elementwise_operand(p, op, which, shape_of) : "";
  }
}

std::optional<std::string> stub_computation(const Piece& p, std::string_view key, std::string_view name,
                                            const ShapeOfName& shape_of) {
  std::vector<std::string> parameters;
  std::string result(p.shape);
  const size_t n = p.operands.size();
  auto scalars = [&](size_t from, size_t to) {
    for (size_t k = from; k < to; ++k) parameters.push_back(scalar_of(shape_of(p.operands[k].name)));
  };
  auto scalar_result = [&] {
    if (!p.shape.starts_with('(')) return void(result = scalar_of(p.shape));
    std::string all;
    for (std::string_view e : elements_of(p.shape)) all += (all.empty() ? "" : ", ") + scalar_of(e);
    result = "(" + all + ")";
  };
  if (p.opcode == "fusion" || p.opcode == "call") {
    for (const WrittenOperand& o : p.operands) parameters.push_back(shape_of(o.name));
  } else if (p.opcode == "while") {
    parameters.emplace_back(p.shape);
    if (key == "condition") result = "pred[]";
  } else if (key == "to_apply" && (p.opcode == "reduce" || p.opcode == "reduce-window")) {
    scalars(n / 2, n), scalars(n / 2, n);
    scalar_result();
  } else if (key == "to_apply" && (p.opcode == "all-reduce" || p.opcode == "reduce-scatter") && n == 1) {
    scalars(0, 1), scalars(0, 1);
    scalar_result();
  } else if (key == "to_apply" && p.opcode == "sort") {
    for (size_t k = 0; k < n; ++k) scalars(k, k + 1), scalars(k, k + 1);
    result = "pred[]";
  } else {
    return {};
  }
  std::string text = fmt::format("{} {{", name), operands;
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (parameters[k].empty()) return {};
    text += fmt::format(" {}.p{} = {} parameter({})", name, k, parameters[k], k);
    operands += fmt::format("{}{}.p{}", k ? ", " : "", name, k);
  }
  if (result.empty() || result == "()") return {};
  return text + fmt::format(" ROOT {}.r = {} custom-call({}), custom_call_target=\"{}\" }}", name, result, operands,
                            "not in the text");
}

}  // namespace hlo
