// Reductions, windows, top-k; and computations on scalars run over whole arrays ("lifted").
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ir/base/parallel.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/eval/operations/plain_reduction.h"
#include "ir/eval/operations/window_walk.h"
#include "ir/library/library_calls.h"
#include "ir/query/reducer.h"

namespace hlo {

std::vector<Value> Evaluator::run_elements(CompId comp, const std::vector<Value>& arguments, int64_t n) {
  return lifted(comp, arguments, n);
}

std::vector<Value> Evaluator::lifted(CompId comp, const std::vector<Value>& arguments, int64_t n, InstId result) {
  const Plan& p = plan(comp);
  if (!result.valid()) result = m_.comp(comp).root;
  std::unordered_map<InstId, std::vector<Value>> values;  // tuples as lists
  auto width = [&](ShapeId s) { return static_cast<size_t>(storage_bytes(u_[s].type)); };
  for (InstId i : p.order) {
    if (values.contains(result)) break;
    ShapeId s = m_.shape_id(i);
    if (!u_[s].is_tuple() && u_[s].rank() != 0)
      refuse(i, "an array inside a computation that is applied to each element");
    auto fresh = [&] {
      Value v;
      v.shape = s;
      v.data = std::make_shared<std::vector<char>>(static_cast<size_t>(n) * width(s));
      return v;
    };
    switch (m_.op(i)) {
      case Opcode::Parameter:
        values[i] = {arguments[static_cast<size_t>(m_.parameter_number(i))]};
        break;
      case Opcode::Constant: {
        Value v = fresh();
        const Literal& lit = m_.literal(i);
        if (lit.elided) refuse(i, "its value is elided");
        copy_nd({n}, lit.bytes.data(), {0}, v.data->data(), {1}, static_cast<int>(width(s)));
        values[i] = {v};
        break;
      }
      case Opcode::Tuple: {
        std::vector<Value> list;
        for (InstId o : m_.operands(i)) list.push_back(values.at(o)[0]);
        values[i] = std::move(list);
        break;
      }
      case Opcode::GetTupleElement:
        values[i] = {values.at(m_.operand(i, 0))[static_cast<size_t>(m_.attrs(i).integer(Attr::index))]};
        break;
      case Opcode::Broadcast:
      case Opcode::Reshape:
      case Opcode::Bitcast:
        values[i] = {values.at(m_.operand(i, 0))[0]};
        break;
      case Opcode::BitcastConvert: {
        Value v = values.at(m_.operand(i, 0))[0];
        v.shape = s;
        values[i] = {v};
        break;
      }
      case Opcode::Call: {
        std::vector<Value> args;
        for (InstId o : m_.operands(i)) args.push_back(values.at(o)[0]);
        values[i] = lifted(m_.called(i)[0], args, n);
        break;
      }
      default: {
        if (!op_info(m_.op(i)).elementwise) refuse(i, "inside a computation that is applied to each element");
        Value v = fresh();
        EwArgs e;
        e.op = m_.op(i);
        auto ops = m_.operands(i);
        e.in = m_.shape(ops[e.op == Opcode::Select || e.op == Opcode::Clamp ? 1 : 0]).type;
        e.out = u_[s].type;
        e.n = n;
        e.a = values.at(ops[0])[0].bytes();
        if (ops.size() > 1) e.b = values.at(ops[1])[0].bytes();
        if (ops.size() > 2) e.c = values.at(ops[2])[0].bytes();
        const AttrSet& a = m_.attrs(i);
        e.direction = u_.text(a.text(Attr::direction));
        e.compare_type = u_.text(a.text(Attr::type));
        e.exponent_bits = static_cast<int>(a.integer(Attr::exponent_bits));
        e.mantissa_bits = static_cast<int>(a.integer(Attr::mantissa_bits));
        e.result = v.data->data();
        if (!elementwise_kernel(e)) refuse(i, fmt::format("no meaning for {}", type_name(e.in)));
        values[i] = {v};
      }
    }
  }
  return values.at(result);
}

Value Evaluator::reduce(InstId inst, std::vector<Value>& ops) {
  // What is left of dynamic dimensions stays dynamic in every output.
  Dims left;
  const Dims& dims = m_.attrs(inst).ints(Attr::dimensions);
  for (size_t i = 0; i < ops[0].sizes.size(); ++i)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end()) left.push_back(ops[0].sizes[i]);
  Value out = reduced(inst, ops);
  for (Value& v : out.elements) v.sizes = left;
  if (out.elements.empty()) out.sizes = left;
  return out;
}

namespace {

// How a reduction runs through its inputs.
struct ReducedDims {
  Dims kept, kept_strides, over, over_strides;
  int64_t outer = 1, inner = 1;      // elements of the result; of what each of them is made
  bool rows = true, columns = true;  // reduced dimensions are the innermost ones, or the outermost
};

// `sizes`: of dynamic dimensions, or none.
ReducedDims reduced_dims(const Shape& in, const Dims& sizes, const Dims& dims) {
  ReducedDims r;
  Dims strides = row_major_strides(in.dims);
  for (int64_t i = 0, seen = 0; i < in.rank(); ++i) {
    bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
    // Only what is there of a dynamic dimension counts.
    bool cut = reduced && !sizes.empty();
    (reduced ? r.over : r.kept).push_back(cut ? sizes[static_cast<size_t>(i)] : in.dims[static_cast<size_t>(i)]);
    (reduced ? r.over_strides : r.kept_strides).push_back(strides[static_cast<size_t>(i)]);
    seen += reduced;
    if (seen && !reduced) r.rows = false;
    if (reduced && seen != i + 1) r.columns = false;
  }
  for (int64_t d : r.kept) r.outer *= d;
  for (int64_t d : r.over) r.inner *= d;
  return r;
}

// The inputs with their reduced dimensions first: slice k holds element k of every reduction.
std::vector<std::vector<char>> reduced_first(const Universe& u, const std::vector<Value>& ops, const ReducedDims& r) {
  Dims order_dims = r.over, order_strides = r.over_strides;
  order_dims.insert(order_dims.end(), r.kept.begin(), r.kept.end());
  order_strides.insert(order_strides.end(), r.kept_strides.begin(), r.kept_strides.end());
  std::vector<std::vector<char>> moved(ops.size() / 2);
  for (size_t i = 0; i < moved.size(); ++i) {
    int width = storage_bytes(u[ops[i].shape].type);
    moved[i].resize(static_cast<size_t>(r.outer * r.inner * width));
    copy_nd(order_dims, ops[i].bytes(), order_strides, moved[i].data(), row_major_strides(order_dims), width);
  }
  return moved;
}

// Sums in f64 from `init` on.
void sum_slices(ElementType type, const ReducedDims& r, const char* at, const char* init, char* out) {
  std::vector<double> sum(static_cast<size_t>(r.outer), load_double(type, init));
  int width = storage_bytes(type);
  if (type == ElementType::F32) {
    const float* v = reinterpret_cast<const float*>(at);
    for (int64_t k = 0; k < r.inner; ++k)
      for (int64_t j = 0; j < r.outer; ++j) sum[static_cast<size_t>(j)] += static_cast<double>(*v++);
  } else {
    for (int64_t k = 0; k < r.inner; ++k)
      for (int64_t j = 0; j < r.outer; ++j, at += width) sum[static_cast<size_t>(j)] += load_double(type, at);
  }
  for (int64_t j = 0; j < r.outer; ++j) store_double(type, out + j * width, sum[static_cast<size_t>(j)]);
}

}  // namespace

Value Evaluator::reduced(InstId inst, std::vector<Value>& ops) {
  size_t count = ops.size() / 2;
  const Dims& dims = m_.attrs(inst).ints(Attr::dimensions);
  CompId function = m_.called(inst)[0];
  const Shape& in = u_[ops[0].shape];
  const ReducedDims r = reduced_dims(in, ops[0].sizes, dims);
  ShapeId out_id = m_.shape_id(inst);
  // The usual kinds on f32 and f64, without moving the array: rows that lie together, or columns.
  std::optional<Opcode> op;
  if (count == 1) op = reducer_operation(m_, function);
  bool usual = in.type == ElementType::F32 || in.type == ElementType::F64;
  if (usual && u_[out_id].type == in.type && ops[0].sizes.empty() && (r.rows || r.columns) && r.outer * r.inner > 0 &&
      (op == Opcode::Add || op == Opcode::Maximum || op == Opcode::Minimum)) {
    Value out = make(out_id);
    reduce_in_place({*op, in.type, r.rows, r.outer, r.inner}, ops[1].bytes(), ops[0].bytes(), out.data->data());
    return out;
  }
  const std::vector<std::vector<char>> moved = reduced_first(u_, ops, r);
  ElementType type = in.type;
  if (op == Opcode::Add && u_[out_id].type == type && is_float(type)) {
    Value out = make(out_id);
    sum_slices(type, r, moved[0].data(), ops[1].bytes(), out.data->data());
    return out;
  }
  return reduce_slices(inst, ops, moved, r.outer, r.inner);
}

Value Evaluator::reduce_slices(InstId inst, const std::vector<Value>& ops, const std::vector<std::vector<char>>& slices,
                               int64_t outer, int64_t inner) {
  const size_t count = slices.size();
  const CompId function = m_.called(inst)[0];
  const ShapeId out_id = m_.shape_id(inst);
  std::optional<Opcode> op;
  if (count == 1) op = reducer_operation(m_, function);
  std::vector<Value> acc;
  for (size_t i = 0; i < count; ++i) {
    Value v;
    ElementType t = u_[ops[count + i].shape].type;
    v.shape = u_.scalar(t);
    v.data = std::make_shared<std::vector<char>>(static_cast<size_t>(outer * storage_bytes(t)));
    copy_nd({outer}, ops[count + i].bytes(), {0}, v.data->data(), {1}, storage_bytes(t));
    acc.push_back(std::move(v));
  }
  for (int64_t k = 0; k < inner && outer > 0; ++k) {
    std::vector<Value> args = acc;
    for (size_t i = 0; i < count; ++i) {
      int width = storage_bytes(u_[ops[i].shape].type);
      Value v;
      v.shape = u_.scalar(u_[ops[i].shape].type);
      auto first = slices[i].begin() + k * outer * width;
      v.data = std::make_shared<std::vector<char>>(first, first + outer * width);
      args.push_back(std::move(v));
    }
    if (op) {
      EwArgs e;
      e.op = *op, e.in = e.out = u_[ops[0].shape].type, e.n = outer;
      e.a = args[0].bytes(), e.b = args[1].bytes();
      Value v = args[0];
      e.result = v.mutable_bytes();
      if (!elementwise_kernel(e)) refuse(inst, "reducer of this type");
      acc[0] = std::move(v);
    } else {
      acc = lifted(function, args, outer);
    }
  }
  Value out;
  out.shape = out_id;
  if (!u_[out_id].is_tuple()) {
    acc[0].shape = out_id;
    return acc[0];
  }
  for (size_t i = 0; i < count; ++i) {
    acc[i].shape = u_[out_id].elements[i];
    out.elements.push_back(acc[i]);
  }
  return out;
}

Value Evaluator::reduce_window(InstId inst, std::vector<Value>& ops) {
  size_t count = ops.size() / 2;
  CompId function = m_.called(inst)[0];
  ShapeId out_id = m_.shape_id(inst);
  const Shape& first_out = u_[out_id].is_tuple() ? u_[u_[out_id].elements[0]] : u_[out_id];
  const Shape& in = u_[ops[0].shape];
  WindowWalk walk(*m_.attrs(inst).get<Window>(Attr::window), in.dims, first_out.dims);
  std::optional<Opcode> op;
  if (count == 1) op = reducer_operation(m_, function);
  if (is_float(in.type) && (op == Opcode::Add || op == Opcode::Maximum || op == Opcode::Minimum)) {
    Value out = make(out_id);
    int width = storage_bytes(in.type);
    std::vector<double> wide(static_cast<size_t>(in.elements_count()));
    for (size_t i = 0; i < wide.size(); ++i)
      wide[i] = load_double(in.type, ops[0].bytes() + i * static_cast<size_t>(width));
    double init = load_double(in.type, ops[1].bytes());
    parallel_ranges(walk.outputs, 1 << 12, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        double acc = init;
        for (int64_t t = 0; t < walk.positions; ++t) {
          int64_t from = walk.source(t, o);
          if (from < 0) continue;
          double v = wide[static_cast<size_t>(from)];
          if (op == Opcode::Add)
            acc += v;
          else if (std::isnan(v) || std::isnan(acc))
            acc = std::isnan(acc) ? acc : v;
          else
            acc = op == Opcode::Maximum ? std::max(acc, v) : std::min(acc, v);
        }
        store_double(first_out.type, out.data->data() + o * width, acc);
      }
    });
    return out;
  }
  int64_t n = walk.outputs;
  std::vector<Value> acc;
  for (size_t i = 0; i < count; ++i) {
    ElementType t = u_[ops[count + i].shape].type;
    Value v;
    v.shape = u_.scalar(t);
    v.data = std::make_shared<std::vector<char>>(static_cast<size_t>(n * storage_bytes(t)));
    copy_nd({n}, ops[count + i].bytes(), {0}, v.data->data(), {1}, storage_bytes(t));
    acc.push_back(std::move(v));
  }
  for (int64_t t = 0; t < walk.positions && n; ++t) {
    std::vector<int64_t> from(static_cast<size_t>(n));
    for (int64_t o = 0; o < n; ++o) from[static_cast<size_t>(o)] = walk.source(t, o);
    std::vector<Value> args = acc;
    for (size_t i = 0; i < count; ++i) {
      ElementType et = u_[ops[i].shape].type;
      size_t width = static_cast<size_t>(storage_bytes(et));
      Value v;
      v.shape = u_.scalar(et);
      v.data = std::make_shared<std::vector<char>>(static_cast<size_t>(n) * width);
      for (size_t o = 0; o < from.size(); ++o)
        if (from[o] >= 0)
          std::memcpy(v.data->data() + o * width, ops[i].bytes() + static_cast<size_t>(from[o]) * width, width);
      args.push_back(std::move(v));
    }
    std::vector<Value> next = lifted(function, args, n);
    for (size_t i = 0; i < count; ++i) {
      size_t width = static_cast<size_t>(storage_bytes(u_[next[i].shape].type));
      char* to = acc[i].mutable_bytes();
      for (size_t o = 0; o < from.size(); ++o)
        if (from[o] >= 0) std::memcpy(to + o * width, next[i].bytes() + o * width, width);
    }
  }
  Value out;
  out.shape = out_id;
  if (!u_[out_id].is_tuple()) {
    acc[0].shape = out_id;
    return acc[0];
  }
  for (size_t i = 0; i < count; ++i) acc[i].shape = u_[out_id].elements[i], out.elements.push_back(acc[i]);
  return out;
}

Value Evaluator::select_and_scatter(InstId inst, std::vector<Value>& ops) {
  const AttrSet& attrs = m_.attrs(inst);
  const Shape &in = u_[ops[0].shape], &source = u_[ops[1].shape];
  WindowWalk walk(*attrs.get<Window>(Attr::window), in.dims, source.dims);
  CompId select = attrs.comp(Attr::select), scatter = attrs.comp(Attr::scatter);
  size_t width = static_cast<size_t>(storage_bytes(in.type));
  Value out = make(m_.shape_id(inst));
  copy_nd(in.dims, ops[2].bytes(), Dims(in.dims.size(), 0), out.data->data(), row_major_strides(in.dims),
          static_cast<int>(width));
  auto scalar = [&](const char* at) {
    Value v;
    v.shape = u_.scalar(in.type);
    v.data = std::make_shared<std::vector<char>>(at, at + width);
    return v;
  };
  // The gradient of a maximum or minimum over windows: one comparison selects, sums are scattered.
  InstId choice = m_.comp(select).root;
  if (is_float(in.type) && adds_its_parameters(m_, scatter) && m_.op(choice) == Opcode::Compare &&
      m_.operand(choice, 0) == m_.comp(select).params[0] && m_.operand(choice, 1) == m_.comp(select).params[1] &&
      !m_.attrs(choice).has(Attr::type)) {
    std::string_view d = u_.text(m_.attrs(choice).text(Attr::direction));
    auto keeps = [&](double x, double y) {
      return d == "GE"   ? x >= y
             : d == "GT" ? x > y
             : d == "LE" ? x <= y
             : d == "LT" ? x < y
             : d == "EQ" ? x == y
                         : x != y;
    };
    std::vector<double> wide(static_cast<size_t>(in.elements_count())), sums(wide.size());
    for (size_t i = 0; i < wide.size(); ++i)
      wide[i] = load_double(in.type, ops[0].bytes() + i * width),
      sums[i] = load_double(in.type, out.bytes() + i * width);
    std::vector<int64_t> chosen(static_cast<size_t>(walk.outputs), -1);
    parallel_ranges(walk.outputs, 1 << 12, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        for (int64_t t = 0; t < walk.positions; ++t) {
          int64_t from = walk.source(t, o), &best = chosen[static_cast<size_t>(o)];
          if (from >= 0 && (best < 0 || !keeps(wide[static_cast<size_t>(best)], wide[static_cast<size_t>(from)])))
            best = from;
        }
    });
    for (int64_t o = 0; o < walk.outputs; ++o)
      if (int64_t best = chosen[static_cast<size_t>(o)]; best >= 0)
        sums[static_cast<size_t>(best)] += load_double(in.type, ops[1].bytes() + static_cast<size_t>(o) * width);
    for (size_t i = 0; i < sums.size(); ++i) store_double(in.type, out.data->data() + i * width, sums[i]);
    return out;
  }
  for (int64_t o = 0; o < walk.outputs; ++o) {
    int64_t best = -1;
    for (int64_t t = 0; t < walk.positions; ++t) {
      int64_t from = walk.source(t, o);
      if (from < 0) continue;
      if (best < 0) {
        best = from;
        continue;
      }
      // select(selected so far, candidate): false takes the candidate.
      std::vector<Value> r = lifted(select,
                                    {scalar(ops[0].bytes() + static_cast<size_t>(best) * width),
                                     scalar(ops[0].bytes() + static_cast<size_t>(from) * width)},
                                    1);
      if (!r[0].bytes()[0]) best = from;
    }
    if (best < 0) continue;
    char* to = out.data->data() + static_cast<size_t>(best) * width;
    std::vector<Value> r = lifted(scatter, {scalar(ops[1].bytes() + static_cast<size_t>(o) * width), scalar(to)}, 1);
    std::memcpy(to, r[0].bytes(), width);
  }
  return out;
}

Value Evaluator::topk(InstId inst, const Value& in, int64_t k, bool largest) {
  const Shape& s = u_[in.shape];
  int64_t n = s.dims.back(), lines = n ? s.elements_count() / n : 0;
  ShapeId out_id = m_.shape_id(inst);
  Value out = make(out_id);
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    // XLA compares in the total order, whatever comparator a custom call names (xla/backends/cpu/runtime/topk.cc).
    std::vector<int64_t> keys(order.size());
    for (size_t i = 0; i < keys.size(); ++i)
      keys[i] = total_order_rank(s.type, in.bytes() + (static_cast<size_t>(line * n) + i) * width);
    std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
      const int64_t p = keys[static_cast<size_t>(x)], q = keys[static_cast<size_t>(y)];
      return largest ? p > q : p < q;
    });
    for (int64_t i = 0; i < k; ++i) {
      size_t to = static_cast<size_t>(line * k + i);
      std::memcpy(out.elements[0].data->data() + to * width,
                  in.bytes() + static_cast<size_t>(line * n + order[static_cast<size_t>(i)]) * width, width);
      ElementType t = u_[out.elements[1].shape].type;
      store_int(t, out.elements[1].data->data() + to * static_cast<size_t>(storage_bytes(t)),
                order[static_cast<size_t>(i)]);
    }
  }
  return out;
}

Value Evaluator::scan(InstId inst, std::vector<Value>& ops) {
  // Operands: inputs, then initial carries; the function takes a slice of each input and the carries, and gives a slice
  // of each output and the carries.
  const AttrSet& a = m_.attrs(inst);
  size_t carries = static_cast<size_t>(a.integer(Attr::num_carries)), inputs = ops.size() - carries;
  size_t d = static_cast<size_t>(a.ints(Attr::dimensions)[0]);
  bool reverse = a.flag(Attr::is_reverse);
  CompId function = a.comp(Attr::to_apply);
  ShapeId out_id = m_.shape_id(inst);
  if (!inputs) refuse(inst, "without an input");
  int64_t steps = u_[ops[0].shape].dims[d];
  Value out = make(out_id);
  bool tuple = u_[out_id].is_tuple();
  size_t results = tuple ? out.elements.size() : 1, outputs = results - carries;
  auto result = [&](size_t k) -> Value& { return tuple ? out.elements[k] : out; };
  std::vector<Value> state(ops.begin() + static_cast<ptrdiff_t>(inputs), ops.end());
  auto slice_dims = [&](const Shape& s) {
    Dims dims = s.dims;
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(d));
    return dims;
  };
  // A slice of the scanned dimension to or from an array of one dimension less.
  auto move = [&](const Value& whole, Value& part, int64_t step, bool in) {
    const Shape s = u_[whole.shape];
    Dims strides = row_major_strides(s.dims), dims = s.dims;
    dims[d] = 1;
    int width = storage_bytes(s.type);
    char* at = const_cast<char*>(whole.bytes()) + step * strides[d] * width;
    if (in)
      copy_nd(dims, at, strides, part.mutable_bytes(), row_major_strides(dims), width);
    else
      copy_nd(dims, part.bytes(), row_major_strides(dims), at, strides, width);
  };
  for (int64_t k = 0; k < steps; ++k) {
    int64_t step = reverse ? steps - 1 - k : k;
    std::vector<Value> args;
    for (size_t i = 0; i < inputs; ++i) {
      const Shape s = u_[ops[i].shape];
      Value part = make(u_.array(s.type, slice_dims(s)));
      move(ops[i], part, step, true);
      args.push_back(std::move(part));
    }
    args.insert(args.end(), state.begin(), state.end());
    Value r = run_computation(function, std::move(args));
    std::vector<Value> got = u_[r.shape].is_tuple() ? r.elements : std::vector<Value>{r};
    if (got.size() != results) refuse(inst, "a function with another number of results");
    for (size_t o = 0; o < outputs; ++o) move(result(o), got[o], step, false);
    for (size_t c = 0; c < carries; ++c) state[c] = got[outputs + c];
  }
  for (size_t c = 0; c < carries; ++c) {
    ShapeId shape = result(outputs + c).shape;
    result(outputs + c) = state[c];
    result(outputs + c).shape = shape;
  }
  return out;
}

// The bits of the elements in a row, cut into elements of another width, one of the two less than a byte.
Value Evaluator::regrouped_bits(const Value& in, ShapeId shape) {
  const ElementType from = u_[in.shape].type, to = u_[shape].type;
  const int from_bits = type_bits(from), to_bits = type_bits(to), from_bytes = storage_bytes(from);
  auto mask = [](int bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; };
  Value out = make(shape);
  for (int64_t i = 0, n = u_[shape].elements_count(); i < n; ++i) {
    uint64_t value = 0;
    for (int got = 0; got < to_bits;) {
      int64_t bit = i * to_bits + got, element = bit / from_bits;
      auto inside = static_cast<int>(bit % from_bits);
      uint64_t raw = 0;
      std::memcpy(&raw, in.bytes() + element * from_bytes, static_cast<size_t>(from_bytes));
      int part = std::min(from_bits - inside, to_bits - got);
      value |= ((raw & mask(from_bits)) >> inside & mask(part)) << got;
      got += part;
    }
    if (is_signed_int(to) && to_bits < 8 && value >> (to_bits - 1)) value |= ~mask(to_bits);
    std::memcpy(out.data->data() + i * storage_bytes(to), &value, static_cast<size_t>(storage_bytes(to)));
  }
  return out;
}

Value Evaluator::stochastic_convert(InstId inst, std::vector<Value>& ops) {
  // The fraction, as a number of the random operand's bits, is the chance to round away from zero
  // (xla/hlo/evaluator/hlo_evaluator.cc, StochasticConvertOp).
  const Shape &from = u_[ops[0].shape], &random = u_[ops[1].shape];
  Value out = make(m_.shape_id(inst));
  ElementType type = u_[out.shape].type;
  if (!is_float(from.type) || !is_signed_int(type)) refuse(inst, "other than floats to signed integers");
  int bits = type_bits(type), random_bits = type_bits(random.type);
  int64_t most = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1, least = -most - 1;
  for (int64_t i = 0; i < from.elements_count(); ++i) {
    double v = load_double(from.type, ops[0].bytes() + i * storage_bytes(from.type));
    auto chance = static_cast<uint64_t>(load_int(random.type, ops[1].bytes() + i * storage_bytes(random.type)));
    if (random_bits < 64) chance &= (uint64_t{1} << random_bits) - 1;
    int64_t result = 0;
    if (std::isnan(v)) {
      result = 0;
    } else if (v >= static_cast<double>(most)) {
      result = most;
    } else if (v <= static_cast<double>(least)) {
      result = least;
    } else {
      double size = std::fabs(v), whole = std::trunc(size), fraction = size - whole;
      result = static_cast<int64_t>(whole);
      if (fraction != 0) {
        double fixed = std::ldexp(fraction, random_bits);
        auto limit = fixed >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(fixed);
        if (chance < limit) result = result == most ? least : result + 1;
      }
      if (std::signbit(v)) result = -result;
    }
    store_int(type, out.data->data() + i * storage_bytes(type), result);
  }
  return out;
}

// CUB's running sums along the minor dimension, of floats as they are stored after each step, each row by itself.
Value Evaluator::library_scan(InstId inst, std::vector<Value>& ops) {
  const CubScan how = cub_scan(m_, inst);
  Value out = make(m_.shape_id(inst));
  const Shape& s = u_[ops[0].shape];
  const Dims strides = row_major_strides(s.dims);
  const int64_t length = how.dimension < 0 ? 1 : s.dims[static_cast<size_t>(how.dimension)],
                step = how.dimension < 0 ? 1 : strides[static_cast<size_t>(how.dimension)],
                width = storage_bytes(s.type);
  const int64_t rows = length ? s.elements_count() / length : 0;
  char* to = out.elements[0].data->data();
  parallel_for(rows, [&](int64_t row) {
    const int64_t begin = row / step * step * length + row % step;
    double sum = 0;
    uint64_t whole = 0;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = (begin + (how.reverse ? length - 1 - k : k) * step) * width;
      if (is_float(s.type)) {
        sum += load_double(s.type, ops[0].bytes() + at);
        store_double(s.type, to + at, sum);
        sum = load_double(s.type, to + at);
      } else {
        whole += static_cast<uint64_t>(load_int(s.type, ops[0].bytes() + at));
        store_int(s.type, to + at, static_cast<int64_t>(whole));
      }
    }
  });
  return out;
}

}  // namespace hlo
