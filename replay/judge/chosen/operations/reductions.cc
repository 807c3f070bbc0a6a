// Operations that compute: element by element, over dimensions, over windows, along lines.
#include <algorithm>

#include "ir/eval/operations/window_walk.h"
#include "ir/query/reducer.h"
#include "ir/types/literal.h"
#include "replay/judge/chosen/elements/rules.h"

namespace hlo {
namespace {

// To elements of another width, both of whole bytes: their bytes in a row.
ElementPlan plan_other_width(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const int64_t from = storage_bytes(o.in[0]->type), to = storage_bytes(o.out->type);
  if (std::min(type_bits(o.in[0]->type), type_bits(o.out->type)) < 8)
    return no_plan("a bitcast between elements of less than a byte and larger ones");
  std::vector<int64_t> list;
  for (int64_t i : *at)
    for (int64_t byte = i * to; byte < (i + 1) * to; byte += std::min(from, to)) list.push_back(byte / from);
  const ElementList needed = element_list(std::move(list));
  ElementPlan p;
  p.needs.push_back({0, needed});
  p.values = [&o, &source, at, needed, from, to](char* out) {
    const std::vector<char> values = source.read(o, 0, *needed);
    const auto width = static_cast<size_t>(to);
    for (size_t k = 0; k < at->size(); ++k) {
      const int64_t inside =
          from > to ? (*at)[k] * to % from + static_cast<int64_t>(k) * from : static_cast<int64_t>(k) * to;
      std::memcpy(out + k * width, values.data() + inside, width);
    }
  };
  return p;
}

// One reduction's arrays: [steps, n] of each operand, step by step.
using Slices = std::vector<std::vector<char>>;

// n values of each of the operands' initial ones.
std::vector<Value> initial_values(const ElementOperation& o, size_t n, ElementSource& source) {
  const size_t count = o.in.size() / 2;
  std::vector<Value> out;
  const std::vector<int64_t> zeros(n, 0);
  for (size_t k = 0; k < count; ++k)
    out.push_back(element_values(const_cast<Universe&>(o.u), o.in[count + k]->type, source.read(o, count + k, zeros)));
  return out;
}

bool combine(Opcode op, ElementType type, int64_t n, const char* a, const char* b, char* to) {
  EwArgs e;
  e.op = op, e.in = e.out = type, e.n = n, e.a = a, e.b = b, e.result = to;
  return elementwise_kernel(e);
}

// Reductions of no more steps are made as they are written, one after the other.
constexpr int64_t kShort = 64;

std::vector<char> reduced_in_order(const ElementOperation& o, int64_t steps, size_t n, const Slices& slices,
                                   std::vector<Value> acc) {
  Universe& u = const_cast<Universe&>(o.u);
  Evaluator evaluator(o.m);
  for (int64_t k = 0; k < steps; ++k) {
    std::vector<Value> arguments = acc;
    for (size_t i = 0; i < slices.size(); ++i) {
      const auto row = static_cast<ptrdiff_t>(n) * storage_bytes(o.in[i]->type);
      const auto first = slices[i].begin() + k * row;
      arguments.push_back(element_values(u, o.in[i]->type, {first, first + row}));
    }
    acc = evaluator.run_elements(o.m.called(o.x.inst)[0], arguments, static_cast<int64_t>(n));
  }
  return *acc[o.x.leaf].data;
}

// Neighbours are taken together, again and again: reducers are associative, and their order is kept.
std::vector<char> reduced_by_neighbours(const ElementOperation& o, int64_t steps, size_t n, Slices slices,
                                        std::vector<Value> acc) {
  Universe& u = const_cast<Universe&>(o.u);
  Evaluator evaluator(o.m);
  auto taken = [&](const std::vector<Value>& arguments, int64_t count) {
    Slices out;
    for (const Value& v : evaluator.run_elements(o.m.called(o.x.inst)[0], arguments, count * static_cast<int64_t>(n)))
      out.push_back(*v.data);
    return out;
  };
  for (; steps > 1; steps = (steps + 1) / 2) {
    std::vector<Value> sides[2];
    Slices last;
    for (size_t i = 0; i < slices.size(); ++i) {
      const auto row = static_cast<ptrdiff_t>(n) * storage_bytes(o.in[i]->type);
      auto row_at = [&](int64_t k) { return slices[i].begin() + k * row; };
      std::vector<char> half[2];
      for (int64_t k = 0; k < steps / 2 * 2; ++k) half[k % 2].insert(half[k % 2].end(), row_at(k), row_at(k + 1));
      for (int side = 0; side < 2; ++side)
        sides[side].push_back(element_values(u, o.in[i]->type, std::move(half[side])));
      last.emplace_back(row_at(steps - 1), row_at(steps));
    }
    std::move(sides[1].begin(), sides[1].end(), std::back_inserter(sides[0]));
    slices = taken(sides[0], steps / 2);
    for (size_t i = 0; steps % 2 && i < slices.size(); ++i)
      slices[i].insert(slices[i].end(), last[i].begin(), last[i].end());
  }
  for (size_t i = 0; i < slices.size(); ++i) acc.push_back(element_values(u, o.in[i]->type, std::move(slices[i])));
  return taken(acc, 1)[o.x.leaf];
}

// What n reductions over that many steps give.
std::vector<char> reduced_slices(const ElementOperation& o, int64_t steps, size_t n, Slices slices,
                                 ElementSource& source) {
  const CompId function = o.m.called(o.x.inst)[0];
  std::vector<Value> acc = initial_values(o, n, source);
  if (const auto by = reducer_operation(o.m, function); by && slices.size() == 1 && o.out->type == o.in[0]->type) {
    const Opcode op = *by;
    const auto count = static_cast<int64_t>(n);
    if (steps == 0) return *acc[0].data;
    const std::vector<char> sums = reduced_by_halves(op, o.out->type, steps, count, std::move(slices[0]));
    combine(op, o.out->type, count, acc[0].bytes(), sums.data(), acc[0].mutable_bytes());
    return *acc[0].data;
  }
  if (steps <= kShort) return reduced_in_order(o, steps, n, slices, std::move(acc));
  return reduced_by_neighbours(o, steps, n, std::move(slices), std::move(acc));
}

void need_initial_values(const ElementOperation& o, ElementPlan* p) {
  const ElementList one = element_list({0});
  for (size_t k = o.in.size() / 2; k < o.in.size(); ++k) p->needs.push_back({k, one});
}

// Elements of so many results, whose lists are long, at once.
size_t results_at_once(int64_t steps) {
  return static_cast<size_t>(std::clamp<int64_t>((1 << 20) / std::max<int64_t>(steps, 1), 1, 1 << 20));
}

}  // namespace

std::vector<char> reduced_by_halves(Opcode op, ElementType type, int64_t steps, int64_t n, std::vector<char> slices) {
  const auto row = static_cast<size_t>(n * storage_bytes(type));
  while (steps > 1) {
    const int64_t half = steps / 2, rest = steps - half;
    if (!combine(op, type, half * n, slices.data(), slices.data() + static_cast<size_t>(rest) * row, slices.data()))
      fail(FailureKind::kUnsupported, "no {} of {}", op_text(op), type_name(type));
    steps = rest;
  }
  slices.resize(row);
  return slices;
}

ElementPlan plan_elementwise(const ElementOperation& o, const Elements& at, ElementSource& source) {
  ElementPlan p;
  if (o.op == Opcode::BitcastConvert) {
    if (type_bits(o.in[0]->type) == type_bits(o.out->type)) return plan_same(o, 0, at, source);
    return plan_other_width(o, at, source);
  }
  const ElementList one = element_list({0});
  auto scalar = [&o](size_t k) { return o.in[k]->rank() == 0 && o.out->rank() != 0; };
  for (size_t k = 0; k < o.in.size(); ++k) p.needs.push_back({k, scalar(k) ? one : at});
  p.values = [&o, &source, at, scalar, one](char* out) {
    const size_t typed = o.op == Opcode::Select || o.op == Opcode::Clamp ? 1 : 0;
    std::vector<char> values[3];
    for (size_t k = 0; k < o.in.size() && k < 3; ++k) values[k] = source.read(o, k, scalar(k) ? *one : *at);
    EwArgs e;
    e.op = o.op, e.in = o.in[typed]->type, e.out = o.out->type, e.n = static_cast<int64_t>(at->size());
    e.a = values[0].data(), e.a_scalar = scalar(0);
    if (o.in.size() > 1) e.b = values[1].data(), e.b_scalar = scalar(1);
    if (o.in.size() > 2) e.c = values[2].data(), e.c_scalar = scalar(2);
    e.direction = o.u.text(o.a.text(Attr::direction)), e.compare_type = o.u.text(o.a.text(Attr::type));
    e.exponent_bits = static_cast<int>(o.a.integer(Attr::exponent_bits));
    e.mantissa_bits = static_cast<int>(o.a.integer(Attr::mantissa_bits));
    e.result = out;
    if (!elementwise_kernel(e))
      fail(FailureKind::kUnsupported, "{} has no meaning for {}", op_text(o.op), type_name(e.in));
  };
  return p;
}

ElementPlan plan_map(const ElementOperation& o, const Elements& at, ElementSource& source) {
  ElementPlan p;
  for (size_t k = 0; k < o.in.size(); ++k) p.needs.push_back({k, at});
  p.values = [&o, &source, at](char* out) {
    std::vector<Value> arguments;
    for (size_t k = 0; k < o.in.size(); ++k)
      arguments.push_back(element_values(const_cast<Universe&>(o.u), o.in[k]->type, source.read(o, k, *at)));
    const std::vector<Value> got =
        Evaluator(o.m).run_elements(o.m.called(o.x.inst)[0], arguments, static_cast<int64_t>(at->size()));
    std::memcpy(out, got[0].bytes(), got[0].data->size());
  };
  return p;
}

ElementPlan plan_reduce(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const Dims& dims = o.a.ints(Attr::dimensions);
  const Dims strides = row_major_strides(o.in[0]->dims);
  Dims kept, kept_strides, over, over_strides;
  for (int64_t d = 0; d < o.in[0]->rank(); ++d) {
    const bool gone = contains(dims, d);
    (gone ? over : kept).push_back(o.in[0]->dims[static_cast<size_t>(d)]);
    (gone ? over_strides : kept_strides).push_back(strides[static_cast<size_t>(d)]);
  }
  auto place = [](int64_t n, const Dims& sizes, const Dims& steps) {
    int64_t to = 0;
    for (size_t d = sizes.size(); d-- > 0;) to += n % sizes[d] * steps[d], n /= sizes[d];
    return to;
  };
  int64_t steps = 1;
  for (int64_t d : over) steps *= d;
  const size_t count = o.in.size() / 2, n = at->size();
  source.afford((Checked(steps) * static_cast<int64_t>(n) * static_cast<int64_t>(count)).capped());
  std::vector<int64_t> step_places, list;
  for (int64_t k = 0; k < steps; ++k) step_places.push_back(place(k, over, over_strides));
  list.reserve(n * step_places.size());
  for (int64_t i : *at) {
    const int64_t first = place(i, kept, kept_strides);
    for (int64_t step : step_places) list.push_back(first + step);
  }
  const ElementList needed = element_list(std::move(list));
  ElementPlan p;
  for (size_t k = 0; k < count; ++k) p.needs.push_back({k, needed});
  need_initial_values(o, &p);
  p.values = [&o, &source, needed, n, steps, count](char* out) {
    const size_t chunk = results_at_once(steps), length = static_cast<size_t>(steps);
    std::vector<int64_t> turned;
    for (size_t first = 0; first < n; first += chunk) {
      const size_t some = std::min(chunk, n - first);
      turned.resize(some * length);
      for (size_t r = 0; r < some; ++r)
        for (size_t k = 0; k < length; ++k) turned[k * some + r] = (*needed)[(first + r) * length + k];
      Slices slices;
      for (size_t k = 0; k < count; ++k) slices.push_back(source.read(o, k, turned));
      const std::vector<char> values = reduced_slices(o, steps, some, std::move(slices), source);
      std::memcpy(out, values.data(), values.size());
      out += values.size();
    }
  };
  return p;
}

ElementPlan plan_reduce_window(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const WindowWalk walk(*o.a.get<Window>(Attr::window), o.in[0]->dims, o.out->dims);
  const size_t count = o.in.size() / 2, n = at->size();
  source.afford((Checked(walk.positions) * static_cast<int64_t>(n) * static_cast<int64_t>(count)).capped());
  std::vector<int64_t> list;
  list.reserve(n * static_cast<size_t>(walk.positions));
  for (int64_t t = 0; t < walk.positions; ++t)
    for (int64_t i : *at) list.push_back(walk.source(t, i));
  const ElementList needed = element_list(std::move(list));
  ElementPlan p;
  for (size_t k = 0; k < count; ++k) p.needs.push_back({k, needed});
  need_initial_values(o, &p);
  p.values = [&o, &source, needed, n, count, positions = walk.positions](char* out) {
    Universe& u = const_cast<Universe&>(o.u);
    const CompId function = o.m.called(o.x.inst)[0];
    Evaluator evaluator(o.m);
    std::vector<Value> acc = initial_values(o, n, source);
    const std::optional<Opcode> by = reducer_operation(o.m, function);
    const bool simple = by && count == 1;
    for (int64_t t = 0; t < positions; ++t) {
      const auto from = std::span<const int64_t>(*needed).subspan(static_cast<size_t>(t) * n, n);
      std::vector<Value> arguments = acc, next = acc;
      for (size_t k = 0; k < count; ++k) arguments.push_back(element_values(u, o.in[k]->type, source.read(o, k, from)));
      if (simple && o.out->type == o.in[0]->type) {
        if (!combine(*by, o.out->type, static_cast<int64_t>(n), arguments[0].bytes(), arguments[1].bytes(),
                     next[0].mutable_bytes()))
          fail(FailureKind::kUnsupported, "no {} of {}", op_text(*by), type_name(o.out->type));
      } else {
        next = evaluator.run_elements(function, arguments, static_cast<int64_t>(n));
      }
      for (size_t k = 0; k < count; ++k) {
        const auto width = static_cast<size_t>(storage_bytes(u[next[k].shape].type));
        char* to = acc[k].mutable_bytes();
        for (size_t i = 0; i < n; ++i)
          if (from[i] >= 0) std::memcpy(to + i * width, next[k].bytes() + i * width, width);
      }
    }
    std::memcpy(out, acc[o.x.leaf].bytes(), acc[o.x.leaf].data->size());
  };
  return p;
}

ElementPlan plan_lines(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const Shape& in = *o.in[0];
  if (in.dims.empty()) return plan_same(o, o.x.leaf, at, source);
  const bool sort = o.op == Opcode::Sort;
  const size_t dim = sort ? static_cast<size_t>(o.a.ints(Attr::dimensions)[0]) : in.dims.size() - 1;
  // By number of the line: its place among those that are taken.
  const SortLines lines(in, static_cast<int64_t>(dim));
  const int64_t out_length = o.out->dims[dim], stride = sort ? lines.stride : 1;
  auto line_of = [=](int64_t i) { return i / stride / out_length * stride + i % stride; };
  std::unordered_map<int64_t, int64_t> place;
  std::vector<int64_t> taken, list;
  for (int64_t i : *at)
    if (place.try_emplace(line_of(i), static_cast<int64_t>(taken.size())).second) taken.push_back(line_of(i));
  const auto count = static_cast<int64_t>(taken.size());
  if (count > 1 && in.rank() == 1) return no_plan("a line of an array that has more");
  source.afford((Checked(count) * lines.n * static_cast<int64_t>(o.in.size())).capped());
  // The lines side by side along another dimension: [lines, n] or [n, lines].
  const size_t across = in.rank() == 1 ? 0 : dim == 0 ? 1 : 0;
  const bool lines_first = across < dim || in.rank() == 1;
  Dims dims(in.dims.size(), 1);
  dims[across] = count, dims[dim] = lines.n;
  for (int64_t x = 0; x < count * lines.n; ++x) {
    const int64_t line = lines_first ? x / lines.n : x % count, k = lines_first ? x % lines.n : x / count;
    list.push_back(lines.base(taken[static_cast<size_t>(line)]) + k * lines.stride);
  }
  const ElementList needed = element_list(std::move(list));
  ElementPlan p;
  for (size_t k = 0; k < o.in.size(); ++k) p.needs.push_back({k, needed});
  p.values = [=, &o, &source, place = std::move(place)](char* out) {
    Universe& u = const_cast<Universe&>(o.u);
    std::vector<Value> operands, results;
    for (size_t k = 0; k < o.in.size(); ++k) {
      operands.push_back(element_values(u, o.in[k]->type, source.read(o, k, *needed)));
      operands.back().shape = u.array(o.in[k]->type, dims);
    }
    EvalOptions how;
    how.stop = source.options().stop;
    flatten(u, Evaluator(o.m, how).run_instruction(o.x.inst, std::move(operands)), &results);
    const auto width = static_cast<size_t>(storage_bytes(o.out->type));
    for (int64_t i : *at) {
      const int64_t line = place.at(line_of(i)), k = i / stride % out_length;
      const int64_t from = lines_first ? line * out_length + k : k * count + line;
      std::memcpy(out, results[o.x.leaf].bytes() + static_cast<size_t>(from) * width, width), out += width;
    }
  };
  return p;
}

}  // namespace hlo
