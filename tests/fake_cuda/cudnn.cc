// cuDNN's graphs without a card: convolutions and what is added behind them, over the fake driver's memory. What the
// documentation asks is asked here: types and numbers of attributes, finalised parts, sizes that fit, engines of the
// library's own making (of four the first rounds f32 to tf32, as tensor cores do and as it says of itself, the last
// rounds and says nothing; HLO_FAKE_CUDNN_ENGINES: of fewer, so that none is chosen by time). Arrays are read where the
// descriptors say, but for one thing that a card does: a filter that lies neither as KRSC nor as KCRS is taken and read
// as one of them (H200, cuDNN 9.19), and told in the log.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/fake_cuda/number.h"
#include "tests/fake_cuda/state.h"

namespace {

enum { kSuccess = 0, kBadParameter = 2000, kNotSupported = 3000, kNotFinalized = 2008, kFailed = 5000 };

struct Descriptor {
  int kind;
  bool final = false;
  struct Value {
    int type;
    int64_t count;
    std::vector<char> bytes;
  };
  std::map<int, Value> attributes;
  uint64_t engine = 0;             // of engines, their configurations and plans
  const Descriptor* of = nullptr;  // the graph of an engine's configuration, or of a plan

  bool has(int name) const { return attributes.count(name) != 0; }
  template <class T>
  std::vector<T> list(int name) const {
    auto at = attributes.find(name);
    if (at == attributes.end()) return {};
    std::vector<T> out(static_cast<size_t>(at->second.count));
    std::memcpy(out.data(), at->second.bytes.data(), at->second.bytes.size());
    return out;
  }
  template <class T>
  T one(int name, T otherwise = {}) const {
    std::vector<T> all = list<T>(name);
    return all.empty() ? otherwise : all[0];
  }
  const Descriptor* part(int name) const { return one<const Descriptor*>(name); }
  // A factor, float or double.
  double factor(int name, double otherwise) const {
    auto at = attributes.find(name);
    if (at == attributes.end()) return otherwise;
    return at->second.type == 5 ? one<double>(name) : static_cast<double>(one<float>(name));
  }
};

size_t size_of(int type) {
  switch (type) {
    case 2:
      return 1;
    case 0:
    case 3:
    case 5:
    case 6:
    case 15:
      return 8;
    default:
      return 4;
  }
}

// cudnnDataType_t to what number.h knows.
int number_type(int32_t type) { return type == 9 ? fake::kBf16 : type; }

// What each descriptor must have, with the type of each.
const std::map<int, std::map<int, int>>& needed() {
  static const std::map<int, std::map<int, int>> kNeeded = {
      {0, {{0, 14}, {1, 1}}},
      {1, {{100, 1}, {101, 7}, {102, 3}, {103, 3}, {104, 3}, {105, 3}, {106, 3}}},
      {4, {{200, 8}, {201, 15}}},
      {5, {{400, 0}, {401, 15}}},
      {10, {{700, 4}, {701, 4}, {702, 15}, {703, 15}, {704, 15}, {705, 15}}},
      {11, {{712, 4}, {713, 4}, {714, 15}, {715, 15}, {716, 15}, {717, 15}}},
      {12, {{706, 4}, {707, 4}, {708, 15}, {709, 15}, {710, 15}, {711, 15}}},
      {13, {{750, 15}, {751, 15}, {753, 15}}},
      {15, {{800, 0}, {801, 15}}},
      {16, {{1000, 3}, {1001, 6}, {1003, 6}}},
      {17, {{900, 3}, {901, 1}, {902, 3}, {903, 3}, {906, 3}}}};
  return kNeeded;
}

using Dims = std::vector<int64_t>;
Dims dims(const Descriptor* t) { return t->list<int64_t>(902); }
Dims steps(const Descriptor* t) { return t->list<int64_t>(903); }

struct Sides {
  const Descriptor *convolution, *w, *x, *y;
};
Sides sides(const Descriptor* op) {
  int first = op->kind == 10 ? 702 : op->kind == 12 ? 708 : 714;
  return {op->part(first), op->part(first + 1), op->part(first + 2), op->part(first + 3)};
}

// Do the sizes of a convolution fit each other?
bool fits(const Descriptor* op) {
  Sides s = sides(op);
  Dims x = dims(s.x), w = dims(s.w), y = dims(s.y), low = s.convolution->list<int64_t>(105),
       high = s.convolution->list<int64_t>(104), strides = s.convolution->list<int64_t>(103),
       dilations = s.convolution->list<int64_t>(102);
  size_t spatial = static_cast<size_t>(s.convolution->one<int64_t>(106));
  if (x.size() != spatial + 2 || w.size() != x.size() || y.size() != x.size() || low.size() != spatial ||
      high.size() != spatial || strides.size() != spatial || dilations.size() != spatial || spatial < 2)
    return false;
  if (x[0] != y[0] || w[0] != y[1] || w[1] <= 0 || x[1] % w[1] || y[1] % (x[1] / w[1])) return false;
  for (size_t k = 0; k < spatial; ++k)
    if (low[k] < 0 || high[k] < 0 ||
        (x[k + 2] + low[k] + high[k] - (w[k + 2] - 1) * dilations[k] - 1) / strides[k] + 1 != y[k + 2])
      return false;
  return true;
}

// Which layouts an array may have: 1, features first; 2, features last.
int way(const Descriptor* t) {
  Dims d = dims(t), step = steps(t), first(d.size()), last(d.size());
  int64_t a = 1, b = d[1];
  for (size_t k = d.size(); k-- > 0;) first[k] = a, a *= d[k];
  last[1] = 1;
  for (size_t k = d.size(); k-- > 0;)
    if (k != 1) last[k] = b, b *= d[k];
  auto same = [&](const Dims& want) {
    for (size_t k = 0; k < d.size(); ++k)
      if (d[k] != 1 && step[k] != want[k]) return false;
    return true;
  };
  return (same(first) ? 1 : 0) | (same(last) ? 2 : 0);
}

// Where an engine looks for the elements of a filter.
Dims filter_steps(const Sides& s) {
  int data = way(s.x) & way(s.y);
  if (way(s.w) & data) return steps(s.w);
  Dims d = dims(s.w), out(d.size());
  bool last = data & 2;
  int64_t step = last ? d[1] : 1;
  if (last) out[1] = 1;
  for (size_t k = d.size(); k-- > 0;)
    if (k != 1 || !last) out[k] = step, step *= d[k];
  return out;
}

int64_t count(const Dims& d) {
  int64_t n = 1;
  for (int64_t v : d) n *= v;
  return n;
}
// Where an element lies by its number in row-major order; dimensions of one element have no step.
int64_t offset(const Dims& d, const Dims& step, int64_t index) {
  int64_t at = 0;
  for (size_t k = d.size(); k-- > 0;) at += index % d[k] * (d[k] == 1 ? 0 : step[k]), index /= d[k];
  return at;
}

// The operations of a graph, one after the other. `rounds`: f32 goes in as tf32.
class GraphRun {
 public:
  GraphRun(bool rounds, const std::map<int64_t, char*>& places) : rounds_(rounds), places_(places) {}
  void run(const Descriptor* graph) {
    for (const Descriptor* op : graph->list<const Descriptor*>(801)) op->kind == 13 ? pointwise(op) : convolve(op);
  }

 private:
  using Numbers = std::vector<double>;
  Numbers read(const Descriptor* t, const Dims& step) {
    const int64_t id = t->one<int64_t>(906);
    if (t->one<char>(907)) return between_[id];
    const Dims d = dims(t);
    Numbers out(static_cast<size_t>(count(d)));
    for (int64_t k = 0; k < count(d); ++k)
      out[static_cast<size_t>(k)] = fake::load(number_type(t->one<int32_t>(901)), places_.at(id), offset(d, step, k));
    return out;
  }
  void write(const Descriptor* t, const Dims& step, Numbers values) {
    const int64_t id = t->one<int64_t>(906);
    if (t->one<char>(907)) {
      between_[id] = std::move(values);
      return;
    }
    const Dims d = dims(t);
    for (int64_t k = 0; k < count(d); ++k)
      fake::store(number_type(t->one<int32_t>(901)), places_.at(id), offset(d, step, k),
                  values[static_cast<size_t>(k)]);
  }

  void pointwise(const Descriptor* op) {
    const Descriptor *x = op->part(751), *b = op->part(752), *y = op->part(753);
    Numbers v = read(x, steps(x)), added = b ? read(b, steps(b)) : Numbers();
    const Dims d = dims(x), bd = b ? dims(b) : Dims();
    const bool relu = op->part(750)->one<int32_t>(0) == 100;
    for (int64_t k = 0; k < count(d); ++k) {
      double& value = v[static_cast<size_t>(k)];
      if (relu) {
        value = std::isnan(value) ? value : std::max(value, 0.0);
        continue;
      }
      int64_t at = 0, rest = k, step = 1;
      for (size_t n = d.size(); n-- > 0;) {
        at += bd[n] == 1 ? 0 : rest % d[n] * step;
        step *= bd[n], rest /= d[n];
      }
      value = op->factor(754, 1) * value + op->factor(755, 1) * added[static_cast<size_t>(at)];
    }
    write(y, steps(y), std::move(v));
  }

  void convolve(const Descriptor* op) {
    const Sides s = sides(op);
    const Descriptor* made = op->kind == 10 ? s.y : op->kind == 12 ? s.x : s.w;
    auto given = [&](const Descriptor* t, const Dims& step) {
      return made == t ? Numbers(static_cast<size_t>(count(dims(t)))) : read(t, step);
    };
    Numbers a = given(s.x, steps(s.x)), b = given(s.w, filter_steps(s)), c = given(s.y, steps(s.y));
    if (rounds_ && s.x->one<int32_t>(901) == 0)
      for (Numbers* all : {&a, &b, &c})
        for (double& v : *all) v = fake::as_tf32(v);
    // Numbers of elements of x, w and y.
    each_pair(s, [&](size_t xi, size_t wi, size_t yi) {
      if (made == s.y)
        c[yi] += a[xi] * b[wi];
      else if (made == s.x)
        a[xi] += b[wi] * c[yi];
      else
        b[wi] += a[xi] * c[yi];
    });
    const double alpha = op->factor(op->kind == 10 ? 700 : op->kind == 12 ? 706 : 712, 1);
    Numbers& out = made == s.y ? c : made == s.x ? a : b;
    for (double& v : out) v *= alpha;
    write(made, made == s.w ? filter_steps(s) : steps(made), std::move(out));
  }

  // Every pair of an output and a tap that meets the input, and every feature of the input.
  template <class F>
  static void each_pair(const Sides& s, F multiply) {
    const Dims x = dims(s.x), w = dims(s.w), y = dims(s.y), low = s.convolution->list<int64_t>(105),
               strides = s.convolution->list<int64_t>(103), dilations = s.convolution->list<int64_t>(102);
    const int64_t groups = x[1] / w[1], outs = y[1] / groups, taps = count(w) / (w[0] * w[1]);
    const int64_t points = count(y) / (y[0] * y[1]);
    for (int64_t n = 0; n < y[0]; ++n)
      for (int64_t o = 0; o < y[1]; ++o)
        for (int64_t p = 0; p < points; ++p)
          for (int64_t t = 0; t < taps; ++t) {
            int64_t point = p, tap = t, spot = 0, scale = 1;
            bool inside = true;
            for (size_t k = y.size(); k-- > 2;) {
              int64_t at = point % y[k] * strides[k - 2] - low[k - 2] + tap % w[k] * dilations[k - 2];
              inside = inside && at >= 0 && at < x[k];
              spot += at * scale, scale *= x[k];
              point /= y[k], tap /= w[k];
            }
            for (int64_t f = 0; f < w[1] && inside; ++f)
              multiply(static_cast<size_t>((n * x[1] + o / outs * w[1] + f) * scale + spot),
                       static_cast<size_t>((o * w[1] + f) * taps + t),
                       static_cast<size_t>((n * y[1] + o) * points + p));
          }
  }

  const bool rounds_;
  const std::map<int64_t, char*>& places_;
  std::map<int64_t, Numbers> between_;  // values that are never stored, by their number
};

Descriptor* as(void* d) { return static_cast<Descriptor*>(d); }

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 90100; }
int cudnnCreate(void** h) {
  *h = new fake::Handle;
  return kSuccess;
}
int cudnnDestroy(void* h) {
  delete static_cast<fake::Handle*>(h);
  return kSuccess;
}
int cudnnSetStream(void* h, void* stream) {
  static_cast<fake::Handle*>(h)->stream = stream;
  return kSuccess;
}
int cudnnBackendCreateDescriptor(int kind, void** d) {
  *d = new Descriptor{kind, false, {}};
  ++fake::descriptors();
  return kSuccess;
}
int cudnnBackendDestroyDescriptor(void* d) {
  delete as(d);
  --fake::descriptors();
  return kSuccess;
}
int cudnnBackendSetAttribute(void* d, int name, int type, int64_t count, const void* values) {
  Descriptor* to = as(d);
  if (to->final || count < 1 || !values) return kBadParameter;
  auto known = needed().find(to->kind);
  if (known == needed().end()) return kBadParameter;
  auto at = known->second.find(name);
  bool more = (to->kind == 17 && name == 907 && type == 2) || (to->kind == 13 && name == 752 && type == 15) ||
              (to->kind == 13 && (name == 754 || name == 755) && (type == 4 || type == 5));
  if (!more && (at == known->second.end() || (at->second != type && !(at->second == 4 && type == 5))))
    return kBadParameter;
  if (type == 15)
    for (int64_t k = 0; k < count; ++k)
      if (!static_cast<Descriptor* const*>(values)[k]->final) return kNotFinalized;
  const char* bytes = static_cast<const char*>(values);
  to->attributes[name] = {type, count, {bytes, bytes + static_cast<size_t>(count) * size_of(type)}};
  return kSuccess;
}
int cudnnBackendFinalize(void* d) {
  Descriptor* to = as(d);
  auto known = needed().find(to->kind);
  if (known == needed().end() || to->final) return kBadParameter;
  for (const auto& [name, type] : known->second)
    if (!to->has(name)) return kBadParameter;
  if (to->kind == 17 && (dims(to).size() != steps(to).size() || dims(to).size() < 4)) return kBadParameter;
  if (to->kind >= 10 && to->kind <= 12 && !fits(to)) return kBadParameter;
  if (to->kind == 16 && to->attributes.at(1000).count != to->attributes.at(1001).count) return kBadParameter;
  if (to->kind == 5) {
    const Descriptor* config = to->part(401);
    // Engines for data with features last, or first, alike.
    const std::vector<const Descriptor*> ops = config->of->list<const Descriptor*>(801);
    const bool more = std::any_of(ops.begin(), ops.end(), [](const Descriptor* op) { return op->kind == 13; });
    for (const Descriptor* op : ops) {
      if (op->kind == 13) continue;
      Sides s = sides(op);
      if ((way(s.x) & way(s.y)) == 0) return kNotSupported;
      // An H200 with cuDNN 9.19 has no engine that keeps f32 for another array and a bias added (`all` of
      // convolutions.hlo), nor with features last for a bias and few features (diffusion_sample).
      if (more && s.x->one<int32_t>(901) == 0 &&
          (ops.size() > 3 || ((way(s.x) & way(s.y) & 1) == 0 && dims(s.y)[1] % 8)))
        return kNotSupported;
      if (s.x->one<int32_t>(901) == 1 && (way(s.x) & way(s.y) & 1) == 0)
        fake::undocumented("doubles with features last");
      if ((way(s.x) & way(s.w) & way(s.y)) == 0) fake::undocumented("a filter that is neither KRSC nor KCRS");
    }
    to->engine = config->engine, to->of = config->of;
  }
  to->final = true;
  return kSuccess;
}
int cudnnBackendGetAttribute(void* d, int name, int type, int64_t wanted, int64_t* count, void* values) {
  Descriptor* from = as(d);
  if (!from->final || wanted < 1) return kNotFinalized;
  if (from->kind == 4 && name == 202 && type == 15) {
    *count = 0;
    if (from->one<int32_t>(200) != 3) return kSuccess;  // the fallback has none here
    const char* said = std::getenv("HLO_FAKE_CUDNN_ENGINES");
    const int64_t engines = said ? std::atoi(said) : 4;
    for (int64_t k = 0; k < std::min(wanted, engines); ++k) {
      Descriptor* config = static_cast<Descriptor**>(values)[k];
      if (config->kind != 3) return kBadParameter;
      config->engine = static_cast<uint64_t>(k), config->of = from->part(201), config->final = true;
      ++*count;
    }
    return kSuccess;
  }
  if (from->kind == 3 && name == 300 && type == 15) {
    Descriptor* engine = *static_cast<Descriptor**>(values);
    if (engine->kind != 2) return kBadParameter;
    engine->engine = from->engine, engine->final = true;
    *count = 1;
    return kSuccess;
  }
  if (from->kind == 2 && name == 1303 && type == 11) {
    if (from->engine == 3) return kNotSupported;
    *count = from->engine == 0;
    if (*count) *static_cast<int32_t*>(values) = 0;  // tensor cores
    return kSuccess;
  }
  if (from->kind == 5 && name == 402 && type == 3) {
    *count = 1;
    *static_cast<int64_t*>(values) = static_cast<int64_t>(from->engine) * 4096;
    return kSuccess;
  }
  return kBadParameter;
}
int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  if (int r = fake::begin("cudnnBackendExecute")) return r == 0 ? 0 : kFailed;
  const Descriptor *p = as(plan), *v = as(pack);
  if (!p->final || !v->final || p->kind != 5 || v->kind != 16) return kBadParameter;
  std::vector<int64_t> ids = v->list<int64_t>(1000);
  std::vector<char*> pointers = v->list<char*>(1001);
  std::map<int64_t, char*> places;
  for (size_t k = 0; k < ids.size(); ++k) places[ids[k]] = pointers[k];
  // Every tensor that is stored lies in memory of the card's.
  auto good = [&](const Descriptor* t) {
    if (!t || t->one<char>(907)) return true;
    auto at = places.find(t->one<int64_t>(906));
    if (at == places.end()) return false;
    int64_t last = 1;
    Dims d = dims(t), step = steps(t);
    for (size_t k = 0; k < d.size(); ++k) last += (d[k] - 1) * step[k];
    auto width = static_cast<int64_t>(fake::width(number_type(t->one<int32_t>(901))));
    auto place = reinterpret_cast<uint64_t>(at->second);
    return place % static_cast<uint64_t>(t->one<int64_t>(900)) == 0 && fake::inside(place, last * width);
  };
  const Descriptor* graph = p->of;
  for (const Descriptor* op : graph->list<const Descriptor*>(801)) {
    if (op->kind == 13) {
      if (!good(op->part(751)) || !good(op->part(752)) || !good(op->part(753))) return kBadParameter;
    } else {
      Sides s = sides(op);
      if (!good(s.w) || !good(s.x) || !good(s.y)) return kBadParameter;
    }
  }
  auto workspace = reinterpret_cast<uint64_t>(v->one<char*>(1003));
  if (p->engine && !fake::inside(workspace, static_cast<int64_t>(p->engine) * 4096)) return kBadParameter;
  return fake::submit(
      [graph, rounds = p->engine % 3 == 0, places] {
        GraphRun(rounds, places).run(graph);
        return 0;
      },
      static_cast<fake::Handle*>(handle)->stream);
}

}  // extern "C"
