#include "tests/common/random_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <vector>

namespace hlo {
namespace {

using Dims = std::vector<int64_t>;

struct Val {
  std::string name, type;
  Dims dims;
  // Computed without rounding: comparing it, or cutting it to an integer, cannot come out otherwise in another order of
  // the same arithmetic.
  bool exact = true;
};

bool is_float(const std::string& t) { return t == "f32" || t == "f64" || t == "bf16" || t == "f16"; }
bool is_int(const std::string& t) { return t[0] == 's' || t[0] == 'u'; }

class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed) {}
  // From 0 to n - 1; spelled out so that it is the same with every library.
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Shared {
  Chance chance;
  std::string computations;  // finished ones
  int names = 0, depth = 0;
  bool small = false;   // integers of less than a byte as well
  bool nested = false;  // tuples of tuples, fusions
  bool fused = false;   // what is written is the body of a fusion
};

std::string shape(const std::string& type, const Dims& dims) {
  return fmt::format("{}[{}]", type, fmt::join(dims, ","));
}
std::string braces(const Dims& d) { return fmt::format("{{{}}}", fmt::join(d, ",")); }
int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// A tuple whose arrays lie in tuples of it: one of (a, b, c) is ((a, b), (), c).
struct Nest {
  std::string shape;
  std::vector<Dims> paths;  // of each array
  std::vector<Nest> parts;  // empty: the array `array`, or an empty tuple where that is -1
  int array = -1;
};

class Writer {
 public:
  explicit Writer(Shared& shared) : s_(shared), c_(shared.chance) {}

  std::string line(const std::string& shape_text, const std::string& rest) {
    std::string name = fmt::format("v{}", s_.names++);
    text_ += fmt::format("  {} = {} {}\n", name, shape_text, rest);
    return name;
  }
  const Val& put(Val v, const std::string& rest) {
    v.name = line(shape(v.type, v.dims), rest);
    vals_.push_back(std::move(v));
    return vals_.back();
  }
  void adopt(Val v) { vals_.push_back(std::move(v)); }
  const std::vector<Val>& vals() const { return vals_; }

  void grow(int steps) {
    for (int k = 0; k < steps; ++k) step();
  }
  // A value of that shape, new or old.
  std::string like(const std::string& type, const Dims& dims) {
    std::vector<std::string> fit;
    for (const Val& v : vals_)
      if (v.type == type && v.dims == dims) fit.push_back(v.name);
    if (!fit.empty() && !c_.one_in(4))
      return fit[fit.size() - 1 - static_cast<size_t>(c_.below(static_cast<int64_t>(std::min<size_t>(fit.size(), 4))))];
    return constant(type, dims);
  }
  std::string constant(const std::string& type, const Dims& dims) {
    std::string value = type == "pred"  ? (c_.one_in(2) ? "true" : "false")
                        : type == "c64" ? fmt::format("({}, {})", c_.below(4), c_.below(4))
                        : type[0] == 'u' || type[0] == 's'
                            ? fmt::format("{}", c_.below(type == "u2" ? 4 : 6))
                            : fmt::format("{}", static_cast<double>(c_.below(9) - 2) * 0.5);
    std::string scalar = line(type + "[]", fmt::format("constant({})", value));
    if (dims.empty()) return scalar;
    return line(shape(type, dims), fmt::format("broadcast({}), dimensions={{}}", scalar));
  }
  std::string finish(const std::string& header, const std::string& root_shape, const std::string& root) {
    std::string t = header + " {\n" + text_;
    t += fmt::format("  ROOT r{} = {} {}\n}}\n\n", s_.names++, root_shape, root);
    return t;
  }
  // How arrays of these shapes are held by one tuple; flat but in nested modules.
  Nest nest(const std::vector<std::string>& shapes) {
    Nest out;
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (s_.nested && c_.one_in(5)) out.parts.push_back({"()", {}, {}, -1});
      Nest one{shapes[k], {{}}, {}, static_cast<int>(k)};
      const bool pair = s_.nested && k + 1 < shapes.size() && c_.one_in(2);
      if (pair) {
        Nest next{shapes[k + 1], {{}}, {}, static_cast<int>(k + 1)};
        one = joined({std::move(one), std::move(next)}), ++k;
      }
      while (s_.nested && c_.one_in(4)) one = joined({std::move(one)});
      out.parts.push_back(std::move(one));
    }
    return joined(std::move(out.parts));
  }
  // The text of the instruction that makes it; inner tuples are lines in front of it.
  std::string packed(const Nest& n, const std::vector<std::string>& names) {
    std::vector<std::string> parts;
    for (const Nest& p : n.parts)
      parts.push_back(p.parts.empty() && p.array >= 0 ? names[static_cast<size_t>(p.array)]
                                                      : line(p.shape, packed(p, names)));
    return fmt::format("tuple({})", fmt::join(parts, ", "));
  }
  // Array `k` of such a tuple.
  std::string unpacked(const Nest& n, const std::string& tuple, size_t k) {
    std::string at = tuple;
    const Nest* in = &n;
    for (int64_t step : n.paths[k]) {
      in = &in->parts[static_cast<size_t>(step)];
      at = line(in->shape, fmt::format("get-tuple-element({}), index={}", at, step));
    }
    return at;
  }
  // The last values as a tuple.
  std::pair<std::string, std::string> tuple_of(size_t most) {
    size_t n = std::min(most, vals_.size());
    std::vector<std::string> shapes, names;
    for (size_t k = vals_.size() - n; k < vals_.size(); ++k)
      shapes.push_back(shape(vals_[k].type, vals_[k].dims)), names.push_back(vals_[k].name);
    if (s_.nested) {
      Nest all = nest(shapes);
      std::string root = packed(all, names);
      return {all.shape, root};
    }
    return {fmt::format("({})", fmt::join(shapes, ", ")), fmt::format("tuple({})", fmt::join(names, ", "))};
  }

 private:
  const Val& any() {
    return vals_[vals_.size() - 1 -
                 static_cast<size_t>(c_.below(static_cast<int64_t>(std::min<size_t>(vals_.size(), 8))))];
  }
  const Val* find(const std::function<bool(const Val&)>& f) {
    std::vector<const Val*> fit;
    for (const Val& v : vals_)
      if (f(v)) fit.push_back(&v);
    return fit.empty() ? nullptr : fit[static_cast<size_t>(c_.below(static_cast<int64_t>(fit.size())))];
  }
  // Where a slice of `size` of `dim` elements starts. Beyond the end only where all indices are known: XLA takes others
  // to be in range when it joins slices of slices.
  std::string index(bool known, int64_t dim, int64_t size) {
    if (known) return constant("s32", {});
    std::string zero = line("s32[]", "constant(0)"), most = line("s32[]", fmt::format("constant({})", dim - size));
    return line("s32[]", fmt::format("clamp({}, {}, {})", zero, like("s32", {}), most));
  }
  // XLA takes initial values to be the operation's identity: how often one is taken is nobody's promise.
  std::string identity(const std::string& op, const std::string& type) {
    static const std::map<std::string, std::pair<std::string, std::string>> ends{
        {"s4", {"-8", "7"}},
        {"u4", {"0", "15"}},
        {"u2", {"0", "3"}},
        {"s8", {"-128", "127"}},
        {"s32", {"-2147483648", "2147483647"}},
        {"s64", {"-9223372036854775808", "9223372036854775807"}},
        {"u8", {"0", "255"}},
        {"u32", {"0", "4294967295"}}};
    std::string value = op == "add" ? "0" : op == "and" ? "true" : op == "or" ? "false" : "";
    if (value.empty()) {
      auto at = ends.find(type);
      bool max = op == "maximum";
      value = at == ends.end() ? (max ? "-inf" : "inf") : max ? at->second.first : at->second.second;
    }
    return line(type + "[]", fmt::format("constant({})", value));
  }
  std::string reducer(const std::string& op, const std::string& type) {
    std::string name = fmt::format("fn{}", s_.names++);
    s_.computations += fmt::format(
        "{0} {{\n  a{1} = {2}[] parameter(0)\n  b{1} = {2}[] parameter(1)\n  ROOT o{1} = {2}[] {3}(a{1}, b{1})\n}}\n\n",
        name, s_.names++, type, op);
    return name;
  }

  static Nest joined(std::vector<Nest> parts) {
    Nest out;
    std::vector<std::string> shapes;
    size_t arrays = 0;
    for (const Nest& p : parts) shapes.push_back(p.shape), arrays += p.paths.size();
    out.shape = fmt::format("({})", fmt::join(shapes, ", "));
    out.paths.reserve(arrays);  // in the order of the arrays' numbers, which is that of the parts
    for (size_t k = 0; k < parts.size(); ++k)
      for (Dims path : parts[k].paths) {
        path.insert(path.begin(), static_cast<int64_t>(k));
        out.paths.push_back(std::move(path));
      }
    out.parts = std::move(parts);
    return out;
  }

  // A fusion of few operations on two values, whose result is a tuple of tuples: a reduction of two values often one
  // of its parts.
  void fusion(const Val& a, const Val& b) {
    if (s_.fused) return;
    s_.fused = true;
    Writer w(s_);
    Val x = a, y = b;
    x.exact = !is_float(a.type), y.exact = !is_float(b.type);
    x.name = w.line(shape(a.type, a.dims), "parameter(0)"), y.name = w.line(shape(b.type, b.dims), "parameter(1)");
    w.adopt(x), w.adopt(y);
    w.grow(static_cast<int>(1 + c_.below(4)));
    std::vector<Val> results{w.vals().back()};
    if (c_.one_in(2)) results.push_back(w.vals()[w.vals().size() / 2]);
    if (c_.one_in(3)) results.push_back(y);
    std::vector<std::string> shapes, names;
    for (const Val& v : results) shapes.push_back(shape(v.type, v.dims)), names.push_back(v.name);
    Nest n = w.nest(shapes);
    const bool pair = !a.dims.empty() && a.type != "c64" && a.type != "pred";
    if (pair) {
      // The largest element, and how many there are.
      std::string f = fmt::format("fn{}", s_.names++);
      s_.computations += fmt::format(
          "{0} {{\n  a{1} = {2}[] parameter(0)\n  b{1} = s32[] parameter(1)\n  x{1} = {2}[] parameter(2)\n  y{1} = "
          "s32[] "
          "parameter(3)\n  m{1} = {2}[] maximum(a{1}, x{1})\n  n{1} = s32[] add(b{1}, y{1})\n  ROOT o{1} = ({2}[], "
          "s32[]) tuple(m{1}, n{1})\n}}\n\n",
          f, s_.names++, a.type);
      Dims kept(a.dims.begin(), a.dims.end() - 1);
      std::string low = w.identity("maximum", a.type), zero = w.line("s32[]", "constant(0)"),
                  one = w.line("s32[]", "constant(1)"),
                  ones = w.line(shape("s32", a.dims), fmt::format("broadcast({}), dimensions={{}}", one));
      Nest both{fmt::format("({}, {})", shape(a.type, kept), shape("s32", kept)),
                {{0}, {1}},
                {},
                static_cast<int>(names.size())};
      names.push_back(w.line(both.shape, fmt::format("reduce({}, {}, {}, {}), dimensions={{{}}}, to_apply={}", x.name,
                                                     ones, low, zero, kept.size(), f)));
      std::vector<Nest> parts = std::move(n.parts);
      // Behind the others, so that arrays keep their numbers.
      parts.push_back(std::move(both));
      n = joined(std::move(parts));
      results.push_back({"", a.type, kept, x.exact}), results.push_back({"", "s32", kept, true});
    }
    std::string root = w.packed(n, names), name = fmt::format("fused{}", s_.names++);
    s_.computations += w.finish(name, n.shape, root);
    s_.fused = false;
    std::string out = line(
        n.shape, fmt::format("fusion({}, {}), kind={}, calls={}", a.name, b.name, pair ? "kInput" : "kLoop", name));
    for (size_t k = 0; k < results.size(); ++k) {
      Val v = results[k];
      if (is_float(v.type)) v.exact = false;
      const Dims& path = n.paths[k];
      std::string at = out;
      const Nest* in = &n;
      for (int64_t step : path) {
        const bool leaf = in->parts.empty();  // of the reduction's own tuple
        std::string s = leaf ? shape(v.type, v.dims) : in->parts[static_cast<size_t>(step)].shape;
        at = line(s, fmt::format("get-tuple-element({}), index={}", at, step));
        if (!leaf) in = &in->parts[static_cast<size_t>(step)];
      }
      v.name = at;
      vals_.push_back(v);
    }
  }

  // Kinds of steps that fusions hold.
  int64_t kind() {
    static const std::vector<int64_t> fused{0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 23};
    if (s_.fused) return c_.of(fused);
    // Not in branches: simplify-conditional copies what they call.
    return s_.nested && s_.depth == 0 && c_.one_in(6) ? 32 : c_.below(32);
  }

  void step() {
    const Val a = any();
    auto rank = static_cast<int64_t>(a.dims.size());
    switch (kind()) {
      case 0:
      case 1: {  // one operand
        static const std::vector<std::string> floats{"sine", "cosine", "tanh", "negate", "abs", "logistic", "copy"},
            exact{"floor", "ceil", "sign", "round-nearest-even", "negate", "abs"},
            ints{"negate", "abs", "not", "sign", "popcnt", "count-leading-zeros", "copy"};
        if (is_float(a.type)) {
          bool keep = a.exact && c_.one_in(2);
          const std::string& op = keep ? c_.of(exact) : c_.of(floats);
          put({"", a.type, a.dims, keep || op == "negate" || op == "abs" || op == "copy" ? a.exact : false},
              fmt::format("{}({})", op, a.name));
        } else if (is_int(a.type)) {
          std::string op = c_.of(ints);
          if (a.type[0] == 'u' && (op == "abs" || op == "negate" || op == "sign")) op = "not";
          put(a, fmt::format("{}({})", op, a.name));
        } else if (a.type == "pred") {
          put(a, fmt::format("not({})", a.name));
        } else {
          put(a, fmt::format("negate({})", a.name));
        }
        return;
      }
      case 2:
      case 3:
      case 4: {  // two operands
        static const std::vector<std::string> floats{"add", "subtract", "multiply", "maximum", "minimum"},
            ints{"add",
                 "subtract",
                 "multiply",
                 "maximum",
                 "minimum",
                 "and",
                 "or",
                 "xor",
                 "divide",
                 "remainder",
                 "shift-left",
                 "shift-right-logical",
                 "shift-right-arithmetic"},
            preds{"and", "or", "xor"}, complexes{"add", "subtract", "multiply"};
        std::string b = like(a.type, a.dims);
        std::string op = c_.of(is_float(a.type)   ? floats
                               : is_int(a.type)   ? ints
                               : a.type == "pred" ? preds
                                                  : complexes);
        bool choice = op == "maximum" || op == "minimum";
        bool exact = !is_float(a.type) ? true : choice && a.exact && exact_of(b);
        if (a.type == "c64") exact = false;
        if (c_.one_in(2))
          put({"", a.type, a.dims, exact}, fmt::format("{}({}, {})", op, a.name, b));
        else
          put({"", a.type, a.dims, exact}, fmt::format("{}({}, {})", op, b, a.name));
        return;
      }
      case 5: {  // compare and select
        if (a.type == "c64" || (is_float(a.type) && !a.exact)) return;
        std::string b = like(a.type, a.dims);
        if (is_float(a.type) && !exact_of(b)) return;
        static const std::vector<std::string> how{"EQ", "NE", "LT", "GT", "LE", "GE"};
        const Val p =
            put({"", "pred", a.dims, true}, fmt::format("compare({}, {}), direction={}", a.name, b, c_.of(how)));
        std::string y = like(a.type, a.dims);
        put({"", a.type, a.dims, a.exact && exact_of(y)}, fmt::format("select({}, {}, {})", p.name, a.name, y));
        return;
      }
      case 6: {  // broadcast
        if (rank > 2) return;
        Dims dims, map;
        for (int64_t d = 0; d <= rank; ++d) {
          if (c_.one_in(2) && dims.size() < 4) dims.push_back(c_.below(4));
          if (d < rank)
            map.push_back(static_cast<int64_t>(dims.size())), dims.push_back(a.dims[static_cast<size_t>(d)]);
        }
        put({"", a.type, dims, a.exact}, fmt::format("broadcast({}), dimensions={}", a.name, braces(map)));
        return;
      }
      case 7: {  // reshape
        Dims dims;
        int64_t n = count(a.dims);
        if (n == 0) {
          dims = a.dims;
          dims.push_back(1);
        } else {
          for (int64_t f : {2, 3, 2, 5})
            if (n % f == 0 && c_.one_in(2)) dims.push_back(f), n /= f;
          dims.push_back(n);
          if (c_.one_in(3)) dims.insert(dims.begin() + c_.below(static_cast<int64_t>(dims.size()) + 1), 1);
        }
        if (dims.size() > 5) return;
        put({"", a.type, dims, a.exact}, fmt::format("reshape({})", a.name));
        return;
      }
      case 8: {  // transpose
        if (rank < 2) return;
        Dims p(static_cast<size_t>(rank)), dims;
        for (int64_t d = 0; d < rank; ++d) p[static_cast<size_t>(d)] = d;
        for (int64_t d = rank - 1; d > 0; --d)
          std::swap(p[static_cast<size_t>(d)], p[static_cast<size_t>(c_.below(d + 1))]);
        for (int64_t d : p) dims.push_back(a.dims[static_cast<size_t>(d)]);
        put({"", a.type, dims, a.exact}, fmt::format("transpose({}), dimensions={}", a.name, braces(p)));
        return;
      }
      case 9: {  // slice
        if (!rank) return;
        Dims dims;
        std::string cut;
        for (int64_t d : a.dims) {
          int64_t from = c_.one_in(2) ? 0 : c_.below(d + 1), to = c_.one_in(2) ? d : from + c_.below(d - from + 1);
          int64_t by = c_.one_in(4) ? 2 : 1;
          if (to < from) to = from;
          dims.push_back((to - from + by - 1) / by);
          cut += fmt::format("{}[{}:{}:{}]", cut.empty() ? "" : ", ", from, to, by);
        }
        put({"", a.type, dims, a.exact}, fmt::format("slice({}), slice={{{}}}", a.name, cut));
        return;
      }
      case 10: {  // pad
        if (!rank || count(a.dims) > 200) return;
        Dims dims;
        std::string by;
        for (int64_t d : a.dims) {
          int64_t low = c_.below(3) - (c_.one_in(4) && d > 2 ? 1 : 0), high = c_.below(3),
                  inside = c_.one_in(4) ? 1 : 0;
          dims.push_back(d + low + high + (d > 0 ? d - 1 : 0) * inside);
          by += fmt::format("{}{}_{}_{}", by.empty() ? "" : "x", low, high, inside);
          if (dims.back() < 0) return;
        }
        std::string v = like(a.type, {});
        put({"", a.type, dims, a.exact && exact_of(v)}, fmt::format("pad({}, {}), padding={}", a.name, v, by));
        return;
      }
      case 11: {  // concatenate
        if (!rank || count(a.dims) > 200) return;
        int64_t d = c_.below(rank);
        Dims dims = a.dims;
        std::string b = like(a.type, a.dims);
        dims[static_cast<size_t>(d)] *= 2;
        put({"", a.type, dims, a.exact && exact_of(b)},
            fmt::format("concatenate({}, {}), dimensions={{{}}}", a.name, b, d));
        return;
      }
      case 12:
        if (rank) put(a, fmt::format("reverse({}), dimensions={{{}}}", a.name, c_.below(rank)));
        return;
      case 13: {  // dynamic-slice
        if (!rank || count(a.dims) == 0) return;
        Dims sizes;
        std::string idx;
        bool known = c_.one_in(2);
        for (int64_t d : a.dims) sizes.push_back(1 + c_.below(d)), idx += ", " + index(known, d, sizes.back());
        put({"", a.type, sizes, a.exact},
            fmt::format("dynamic-slice({}{}), dynamic_slice_sizes={}", a.name, idx, braces(sizes)));
        return;
      }
      case 14: {  // dynamic-update-slice
        if (!rank || count(a.dims) == 0) return;
        Dims sizes;
        std::string idx;
        bool known = c_.one_in(2);
        for (int64_t d : a.dims) sizes.push_back(1 + c_.below(d)), idx += ", " + index(known, d, sizes.back());
        std::string update = like(a.type, sizes);
        put({"", a.type, a.dims, a.exact && exact_of(update)},
            fmt::format("dynamic-update-slice({}, {}{})", a.name, update, idx));
        return;
      }
      case 15:
      case 16: {  // reduce
        if (!rank || a.type == "c64") return;
        static const std::vector<std::string> numbers{"add", "maximum", "minimum"}, truth{"and", "or"};
        std::string op = c_.of(a.type == "pred" ? truth : numbers);
        Dims gone, dims;
        for (int64_t d = 0; d < rank; ++d)
          c_.one_in(2) ? gone.push_back(d) : dims.push_back(a.dims[static_cast<size_t>(d)]);
        std::string f = reducer(op, a.type), init = identity(op, a.type);
        bool exact = a.exact && !(is_float(a.type) && op == "add");
        put({"", a.type, dims, exact},
            fmt::format("reduce({}, {}), dimensions={}, to_apply={}", a.name, init, braces(gone), f));
        return;
      }
      case 17: {  // dot
        if (!rank || rank > 3 || a.type == "pred" || count(a.dims) > 64) return;
        int64_t k = c_.below(rank);
        bool batch = rank > 1 && c_.one_in(2);
        int64_t b = batch ? (k + 1) % rank : -1;
        Dims other, out;
        if (batch) other.push_back(a.dims[static_cast<size_t>(b)]), out.push_back(a.dims[static_cast<size_t>(b)]);
        for (int64_t d = 0; d < rank; ++d)
          if (d != k && d != b) out.push_back(a.dims[static_cast<size_t>(d)]);
        bool wide = c_.one_in(2);
        int64_t columns = 1 + c_.below(3);
        other.push_back(a.dims[static_cast<size_t>(k)]);
        if (wide) other.push_back(columns), out.push_back(columns);
        std::string y = like(a.type, other);
        std::string dims = fmt::format("lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", k, batch ? 1 : 0);
        if (batch) dims += fmt::format(", lhs_batch_dims={{{}}}, rhs_batch_dims={{0}}", b);
        put({"", a.type, out, is_int(a.type)}, fmt::format("dot({}, {}), {}", a.name, y, dims));
        return;
      }
      case 18: {  // convert
        static const std::vector<std::string> to{"f32", "s32", "f64", "u8", "s64", "bf16", "pred", "u32", "s8"};
        static const std::vector<std::string> small{"s4", "u4", "u2"};
        std::string t = s_.small && c_.one_in(3) ? c_.of(small) : c_.of(to);
        if (a.type == "c64" || t == a.type || (is_float(a.type) && !a.exact)) return;
        // Floats to integers of other ranges saturate; keep to those that hold them.
        if (is_float(a.type) && !is_float(t) && t != "s32" && t != "s64" && t != "pred") return;
        put({"", t, a.dims, true}, fmt::format("convert({})", a.name));
        return;
      }
      case 19: {  // iota
        Dims dims{1 + c_.below(4), 1 + c_.below(3)};
        static const std::vector<std::string> types{"s32", "f32", "u32"};
        put({"", c_.of(types), dims, true}, fmt::format("iota(), iota_dimension={}", c_.below(2)));
        return;
      }
      case 20: {  // gather of rows
        if (rank < 1 || count(a.dims) == 0) return;
        Dims sizes = a.dims, out{1 + c_.below(3)}, offsets;
        sizes[0] = 1;
        for (int64_t d = 1; d < rank; ++d) offsets.push_back(d), out.push_back(a.dims[static_cast<size_t>(d)]);
        std::string i = like("s32", {out[0], 1});
        put({"", a.type, out, a.exact}, fmt::format("gather({}, {}), offset_dims={}, collapsed_slice_dims={{0}}, "
                                                    "start_index_map={{0}}, index_vector_dim=1, slice_sizes={}",
                                                    a.name, i, braces(offsets), braces(sizes)));
        return;
      }
      case 21: {  // scatter of rows
        if (rank < 1 || count(a.dims) == 0 || a.type == "c64" || a.type == "pred") return;
        Dims updates{1 + c_.below(3)}, window;
        for (int64_t d = 1; d < rank; ++d) window.push_back(d), updates.push_back(a.dims[static_cast<size_t>(d)]);
        std::string op = c_.one_in(2) ? "add" : "maximum", f = reducer(op, a.type);
        std::string i = like("s32", {updates[0], 1}), u = like(a.type, updates);
        put({"", a.type, a.dims, a.exact && exact_of(u) && !(op == "add" && is_float(a.type))},
            fmt::format("scatter({}, {}, {}), update_window_dims={}, inserted_window_dims={{0}}, "
                        "scatter_dims_to_operand_dims={{0}}, "
                        "index_vector_dim=1, to_apply={}",
                        a.name, i, u, braces(window), f));
        return;
      }
      case 22: {  // sort, of integers or of what was never rounded
        if (!rank || a.type == "c64" || a.type == "pred" || !a.exact) return;
        std::string name = fmt::format("fn{}", s_.names++);
        s_.computations += fmt::format(
            "{0} {{\n  a{1} = {2}[] parameter(0)\n  b{1} = {2}[] parameter(1)\n  ROOT o{1} = pred[] compare(a{1}, "
            "b{1}), direction={3}\n}}\n\n",
            name, s_.names++, a.type, c_.one_in(2) ? "LT" : "GT");
        put(a, fmt::format("sort({}), dimensions={{{}}}, to_apply={}", a.name, c_.below(rank), name));
        return;
      }
      case 23: {  // clamp
        if (a.type == "c64" || a.type == "pred") return;
        // XLA takes the lower bound to be the lower one.
        std::string lo = constant(a.type, a.dims), other = constant(a.type, a.dims);
        std::string hi = line(shape(a.type, a.dims), fmt::format("maximum({}, {})", lo, other));
        put(a, fmt::format("clamp({}, {}, {})", lo, a.name, hi));
        return;
      }
      case 24:
        return control(a);
      case 25: {  // reduce-window
        if (!rank || a.type == "c64" || a.type == "pred" || count(a.dims) > 64) return;
        Dims dims = a.dims;
        auto d = static_cast<size_t>(c_.below(rank));
        bool scan = c_.one_in(2) && dims[d] > 0;
        int64_t size = scan ? dims[d] : 1 + c_.below(3), low = scan ? size - 1 : c_.below(2);
        std::string op = c_.one_in(2) ? "add" : "maximum", f = reducer(op, a.type), w, pads;
        for (size_t k = 0; k < dims.size(); ++k) {
          w += fmt::format("{}{}", k ? "x" : "", k == d ? size : 1);
          pads += fmt::format("{}{}_0", k ? "x" : "", k == d ? low : 0);
        }
        dims[d] = dims[d] + low < size ? 0 : dims[d] + low - size + 1;
        std::string init = identity(op, a.type);
        put({"", a.type, dims, a.exact && !(op == "add" && is_float(a.type))},
            fmt::format("reduce-window({}, {}), window={{size={} pad={}}}, to_apply={}", a.name, init, w, pads, f));
        return;
      }
      case 26: {  // map
        if (a.type == "c64" || a.type == "pred" || is_float(a.type)) return;
        Dims every;
        for (int64_t d = 0; d < rank; ++d) every.push_back(d);
        std::string f = reducer("add", a.type), b = like(a.type, a.dims);
        put({"", a.type, a.dims, a.exact},
            fmt::format("map({}, {}), dimensions={}, to_apply={}", a.name, b, braces(every), f));
        return;
      }
      case 27: {  // bits
        if (a.type == "f32" && a.exact)
          put({"", "s32", a.dims, true}, fmt::format("bitcast-convert({})", a.name));
        else if (a.type == "s32")
          put({"", "u32", a.dims, true}, fmt::format("bitcast-convert({})", a.name));
        return;
      }
      case 28: {  // convolution
        if (a.type != "f32" || rank != 3 || count(a.dims) > 64 || count(a.dims) == 0) return;
        Dims kernel{2, a.dims[2], 2}, out{a.dims[0], a.dims[1], 2};
        std::string f = like("f32", kernel);
        put({"", "f32", out, false},
            fmt::format("convolution({}, {}), window={{size=2 pad=1_0}}, dim_labels=b0f_0io->b0f", a.name, f));
        return;
      }
      case 29: {  // division by what is no zero
        if (!is_float(a.type)) return;
        static const std::vector<std::string> by{"2", "0.5", "4", "3"};
        std::string k = line(a.type + "[]", fmt::format("constant({})", c_.of(by)));
        std::string wide = rank ? line(shape(a.type, a.dims), fmt::format("broadcast({}), dimensions={{}}", k)) : k;
        put({"", a.type, a.dims, false}, fmt::format("divide({}, {})", a.name, wide));
        return;
      }
      case 30: {  // bits by chance
        std::string state = line("u64[2]", fmt::format("constant({{{}, {}}})", c_.below(100), c_.below(100)));
        Dims dims{c_.below(4), 1 + c_.below(3)};
        std::string r = line(
            fmt::format("(u64[2], {})", shape("u32", dims)),
            fmt::format("rng-bit-generator({}), algorithm={}", state, c_.one_in(2) ? "rng_three_fry" : "rng_philox"));
        put({"", "u32", dims, true}, fmt::format("get-tuple-element({}), index=1", r));
        return;
      }
      case 32:
        return fusion(a, any());
      case 31: {  // through a tuple, or a barrier
        std::string b = like(a.type, a.dims), pair = fmt::format("({0}, {0})", shape(a.type, a.dims));
        std::string t = line(pair, fmt::format("tuple({}, {})", a.name, b));
        if (c_.one_in(2)) t = line(pair, fmt::format("opt-barrier({})", t));
        int64_t k = c_.below(2);
        put({"", a.type, a.dims, k ? exact_of(b) : a.exact}, fmt::format("get-tuple-element({}), index={}", t, k));
        return;
      }
    }
  }

  bool exact_of(const std::string& name) {
    for (const Val& v : vals_)
      if (v.name == name) return v.exact;
    return true;  // a constant
  }

  // The same whose states and results are tuples of tuples.
  void nested_control(const Val& a, const Val& b) {
    const bool loop = c_.below(3) == 0;
    std::vector<std::string> shapes{shape(a.type, a.dims), shape(b.type, b.dims)};
    if (loop) shapes.push_back("s32[]");
    const Nest n = nest(shapes), given = loop ? n : nest(shapes);
    auto branch = [&] {
      Writer w(s_);
      std::string p = w.line(given.shape, "parameter(0)");
      Val x{"", a.type, a.dims, !is_float(a.type)}, y{"", b.type, b.dims, !is_float(b.type)};
      x.name = w.unpacked(given, p, 0), y.name = w.unpacked(given, p, 1);
      w.adopt(x), w.adopt(y);
      w.grow(static_cast<int>(1 + c_.below(5)));
      std::string rx = w.like(a.type, a.dims);
      std::vector<std::string> left{rx, c_.one_in(3) ? y.name : w.like(b.type, b.dims)};
      if (loop) {
        std::string i = w.unpacked(given, p, 2), one = w.line("s32[]", "constant(1)");
        left.push_back(w.line("s32[]", fmt::format("add({}, {})", i, one)));
      }
      std::string root = w.packed(n, left), name = fmt::format("body{}", s_.names++);
      s_.computations += w.finish(name, n.shape, root);
      return name;
    };
    std::vector<std::string> names{a.name, b.name};
    if (loop) names.push_back(line("s32[]", "constant(0)"));
    std::string in = line(given.shape, packed(given, names)), out;
    if (loop) {
      std::string body = branch(), cond = fmt::format("body{}", s_.names++);
      Writer w(s_);
      std::string p = w.line(n.shape, "parameter(0)"), i = w.unpacked(n, p, 2),
                  most = w.line("s32[]", fmt::format("constant({})", c_.below(4)));
      s_.computations += w.finish(cond, "pred[]", fmt::format("compare({}, {}), direction=LT", i, most));
      out = line(n.shape, fmt::format("while({}), condition={}, body={}", in, cond, body));
    } else if (c_.one_in(2)) {
      std::string yes = branch(), no = branch(), p = like("pred", {});
      out = line(n.shape,
                 fmt::format("conditional({}, {}, {}), true_computation={}, false_computation={}", p, in, in, yes, no));
    } else {
      out = line(n.shape, fmt::format("call({}), to_apply={}", in, branch()));
    }
    Val x{"", a.type, a.dims, !is_float(a.type)}, y{"", b.type, b.dims, !is_float(b.type)};
    x.name = unpacked(n, out, 0), y.name = unpacked(n, out, 1);
    vals_.push_back(x);
    vals_.push_back(y);
  }

  // while, conditional or call on two values.
  void control(const Val& a) {
    if (s_.depth > 1) return;
    const Val b = any();
    ++s_.depth;
    std::string ta = shape(a.type, a.dims), tb = shape(b.type, b.dims);
    if (s_.nested) {
      nested_control(a, b);
      --s_.depth;
      return;
    }
    auto branch = [&](bool counted) {
      Writer w(s_);
      std::string state = counted ? fmt::format("(s32[], {}, {})", ta, tb) : fmt::format("({}, {})", ta, tb);
      std::string p = w.line(state, "parameter(0)");
      std::string i;
      if (counted) i = w.line("s32[]", fmt::format("get-tuple-element({}), index=0", p));
      // What comes out of a loop or a branch has been rounded, for all that is known here.
      Val x{"", a.type, a.dims, !is_float(a.type)}, y{"", b.type, b.dims, !is_float(b.type)};
      x.name = w.line(ta, fmt::format("get-tuple-element({}), index={}", p, counted ? 1 : 0));
      y.name = w.line(tb, fmt::format("get-tuple-element({}), index={}", p, counted ? 2 : 1));
      w.adopt(x), w.adopt(y);
      w.grow(static_cast<int>(1 + c_.below(5)));
      std::string rx = w.like(a.type, a.dims), ry = c_.one_in(3) ? y.name : w.like(b.type, b.dims);
      std::string name = fmt::format("body{}", s_.names++), root = fmt::format("tuple({}, {})", rx, ry);
      if (counted) {
        std::string one = w.line("s32[]", "constant(1)");
        std::string next = w.line("s32[]", fmt::format("add({}, {})", i, one));
        root = fmt::format("tuple({}, {}, {})", next, rx, ry);
      }
      std::string text = w.finish(name, state, root);
      s_.computations += text;
      return name;
    };
    std::string pair = fmt::format("({}, {})", ta, tb), out;
    int64_t first = 0;
    switch (c_.below(3)) {
      case 0: {
        std::string body = branch(true), state = fmt::format("(s32[], {}, {})", ta, tb);
        std::string cond = fmt::format("body{}", s_.names++);
        s_.computations += fmt::format(
            "{0} {{\n  p{1} = {2} parameter(0)\n  i{1} = s32[] get-tuple-element(p{1}), index=0\n  k{1} = s32[] "
            "constant({3})\n  ROOT o{1} = pred[] compare(i{1}, k{1}), direction=LT\n}}\n\n",
            cond, s_.names++, state, c_.below(4));
        std::string zero = line("s32[]", "constant(0)");
        std::string init = line(state, fmt::format("tuple({}, {}, {})", zero, a.name, b.name));
        out = line(state, fmt::format("while({}), condition={}, body={}", init, cond, body));
        first = 1;
        break;
      }
      case 1: {
        std::string yes = branch(false), no = branch(false), p = like("pred", {});
        std::string t = line(pair, fmt::format("tuple({}, {})", a.name, b.name));
        out = line(pair,
                   fmt::format("conditional({}, {}, {}), true_computation={}, false_computation={}", p, t, t, yes, no));
        break;
      }
      default: {
        std::string f = branch(false);
        std::string t = line(pair, fmt::format("tuple({}, {})", a.name, b.name));
        out = line(pair, fmt::format("call({}), to_apply={}", t, f));
      }
    }
    --s_.depth;
    put({"", a.type, a.dims, !is_float(a.type)}, fmt::format("get-tuple-element({}), index={}", out, first));
    if (!c_.one_in(3))
      put({"", b.type, b.dims, !is_float(b.type)}, fmt::format("get-tuple-element({}), index={}", out, first + 1));
  }

  Shared& s_;
  Chance& c_;
  std::string text_;
  std::vector<Val> vals_;
};

}  // namespace

std::string random_module(uint64_t seed, int size) {
  Shared shared{Chance(seed), "", 0, 0, seed >= kSmallIntegersFrom && seed < kLargeFrom, seed >= kNestedFrom};
  Chance& c = shared.chance;
  Writer w(shared);
  static const std::vector<std::string> types{"f32",  "f32", "f32",  "s32", "f64", "u8",
                                              "pred", "s64", "bf16", "c64", "u32", "f16"};
  int64_t parameters = 1 + c.below(4);
  for (int64_t k = 0; k < parameters; ++k) {
    Dims dims;
    for (int64_t d = c.below(4); d > 0; --d) dims.push_back(c.one_in(12) ? 0 : 1 + c.below(5));
    if (seed >= kLargeFrom && seed < kNestedFrom) {
      static const std::vector<int64_t> sizes{1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 65, 100, 128, 256, 300, 1025, 2048};
      for (int64_t& size : dims) {
        size = 1;
        if (int64_t other = c.of(sizes); count(dims) * other <= 10000) size = other;
      }
    }
    static const std::vector<std::string> small{"s4", "u4", "u2"};
    std::string type = shared.small && c.one_in(3) ? c.of(small) : c.of(types);
    w.put({"", type, dims, true}, fmt::format("parameter({})", k));
  }
  w.grow(size);
  auto [shape_text, root] = w.tuple_of(static_cast<size_t>(1 + c.below(5)));
  std::string entry = w.finish("ENTRY main", shape_text, root);
  return fmt::format("HloModule random_{}\n\n{}{}", seed, shared.computations, entry);
}

}  // namespace hlo
