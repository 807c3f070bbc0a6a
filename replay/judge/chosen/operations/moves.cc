// Operations that hand elements on: one element of an operand each.
#include <algorithm>

#include "ir/types/literal.h"
#include "ir/types/tiling.h"
#include "replay/judge/chosen/elements/rules.h"

namespace hlo {
namespace {

// For each element which operand it comes from and which of its elements that is.
class Picks {
 public:
  explicit Picks(const ElementOperation& o) : o_(o), parts_(o.in.size()) {}
  void add(size_t k, size_t operand, int64_t element) {
    parts_[operand].elements.push_back(element);
    parts_[operand].places.push_back(k);
  }
  ElementPlan plan(size_t count, ElementSource& source) && {
    ElementPlan p;
    struct Ready {
      size_t operand;
      ElementList elements;
      std::vector<size_t> places;
    };
    std::vector<Ready> ready;
    for (size_t k = 0; k < parts_.size(); ++k) {
      if (parts_[k].elements.empty()) continue;
      ready.push_back({k, element_list(std::move(parts_[k].elements)), std::move(parts_[k].places)});
      p.needs.push_back({k, ready.back().elements});
    }
    p.values = [&o = o_, &source, ready = std::move(ready), count](char* out) {
      if (ready.size() == 1 && ready[0].places.size() == count)
        return source.read(o, ready[0].operand, *ready[0].elements, out);
      const auto width = static_cast<size_t>(storage_bytes(o.out->type));
      for (const Ready& r : ready) {
        const std::vector<char> values = static_cast<ElementSource&>(source).read(o, r.operand, *r.elements);
        for (size_t i = 0; i < r.places.size(); ++i)
          std::memcpy(out + r.places[i] * width, values.data() + i * width, width);
      }
    };
    return p;
  }

 private:
  struct Part {
    std::vector<int64_t> elements;
    std::vector<size_t> places;
  };
  const ElementOperation& o_;
  std::vector<Part> parts_;
};

// f(coordinates): which element of the only operand.
template <class F>
ElementPlan picked(const ElementOperation& o, const Elements& at, ElementSource& source, F f) {
  std::vector<int64_t> from(at->size());
  for_coordinates(*at, o.out->dims, [&](size_t k, const Dims& c) { from[k] = f(c); });
  return plan_same(o, 0, element_list(std::move(from)), source);
}

int64_t placed(const Dims& c, const Dims& strides) {
  int64_t at = 0;
  for (size_t d = 0; d < c.size(); ++d) at += c[d] * strides[d];
  return at;
}

ElementPlan plan_iota(const ElementOperation& o, const Elements& at) {
  ElementPlan p;
  p.values = [&o, at](char* out) {
    const auto dim = static_cast<size_t>(o.a.integer(Attr::iota_dimension));
    const ElementType type = o.out->type;
    const int64_t size = o.out->dims[dim], stride = row_major_strides(o.out->dims)[dim];
    for (int64_t i : *at) {
      const int64_t n = i / stride % size;
      if (is_complex(type))
        store_complex(type, out, static_cast<double>(n));
      else
        store_int(type, out, n);
      out += storage_bytes(type);
    }
  };
  return p;
}

ElementPlan plan_pad(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const auto& pads = *o.a.get<std::vector<PaddingDim>>(Attr::padding);
  const Dims &dims = o.in[0]->dims, strides = row_major_strides(dims);
  Picks picks(o);
  for_coordinates(*at, o.out->dims, [&](size_t k, const Dims& c) {
    int64_t from = 0;
    for (size_t d = 0; d < c.size() && from >= 0; ++d) {
      const int64_t x = c[d] - pads[d].low, step = pads[d].interior + 1;
      from = x < 0 || x % step || x / step >= dims[d] ? -1 : from + x / step * strides[d];
    }
    picks.add(k, from < 0 ? 1 : 0, std::max<int64_t>(from, 0));
  });
  return std::move(picks).plan(at->size(), source);
}

ElementPlan plan_concatenate(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const auto dim = static_cast<size_t>(o.a.ints(Attr::dimensions)[0]);
  std::vector<int64_t> ends;
  for (const Shape* s : o.in) ends.push_back((ends.empty() ? 0 : ends.back()) + s->dims[dim]);
  int64_t inner = 1;
  for (size_t d = dim + 1; d < o.out->dims.size(); ++d) inner *= o.out->dims[d];
  Picks picks(o);
  for_coordinates(*at, o.out->dims, [&](size_t k, const Dims& c) {
    const auto which = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), c[dim]) - ends.begin());
    const int64_t size = o.in[which]->dims[dim], first = ends[which] - size;
    const int64_t outer = (*at)[k] / inner / o.out->dims[dim], last = (*at)[k] % inner;
    picks.add(k, which, (outer * size + c[dim] - first) * inner + last);
  });
  return std::move(picks).plan(at->size(), source);
}

// By where elements lie in memory; empty layouts are row-major ones.
ElementPlan plan_bitcast(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const Shape &from = *o.in[0], &to = *o.out;
  if (type_bits(from.type) != type_bits(to.type) || storage_bytes(from.type) != storage_bytes(to.type))
    return no_plan("a bitcast to elements of another size");
  if (has_tiles(from) || has_tiles(to)) {
    if (from.layout.rest.starts_with("T(") != to.layout.rest.starts_with("T(") && from.elements_count() > 1)
      return no_plan("a bitcast between an array in tiles and one whose tiles are not recorded");
    const std::optional<TiledOrder> operand = TiledOrder::of(from), result = TiledOrder::of(to);
    if (!operand || !result) return no_plan("a bitcast of a layout whose order in memory is unknown");
    if (operand->same_as(*result)) return plan_same(o, 0, at, source);
    bool filling = false;
    ElementPlan p = picked(o, at, source, [&](const Dims& c) {
      const int64_t place = result->place(c), element = place < operand->places() ? operand->element_at(place) : -1;
      filling = filling || element < 0;
      return element;
    });
    return filling ? no_plan("a bitcast that reads what fills up tiles, which has no value") : std::move(p);
  }
  if (!has_other_layout(from) && !has_other_layout(to)) return plan_same(o, 0, at, source);
  auto order = [](const Shape& s) {
    return s.layout.minor_to_major.size() == s.dims.size() ? s.layout.minor_to_major : default_minor_to_major(s.rank());
  };
  const Dims from_order = order(from), to_order = order(to), strides = row_major_strides(from.dims);
  return picked(o, at, source, [&](const Dims& c) {
    int64_t place = 0, step = 1, element = 0;
    for (int64_t d : to_order) place += c[static_cast<size_t>(d)] * step, step *= to.dims[static_cast<size_t>(d)];
    for (int64_t d : from_order) {
      const int64_t size = from.dims[static_cast<size_t>(d)];
      element += place % size * strides[static_cast<size_t>(d)], place /= size;
    }
    return element;
  });
}

// Where a dynamic slice of these sizes begins; false where that is not known yet, and `p` says what is wanted.
bool start_of(const ElementOperation& o, size_t first, const Dims& sizes, ElementSource& source, ElementPlan* p,
              Dims* start) {
  const Dims& dims = o.in[0]->dims;
  const bool vector = o.in.size() == first + 1 && o.in[first]->rank() == 1;
  const size_t count = vector ? static_cast<size_t>(o.in[first]->dims[0]) : o.in.size() - first;
  for (size_t d = 0; d < count; ++d) {
    const size_t operand = vector ? first : first + d;
    const int64_t element = vector ? static_cast<int64_t>(d) : 0;
    if (!source.known(o, operand, std::span<const int64_t>(&element, 1))) {
      p->first.push_back({operand, element_list({element})});
      continue;
    }
    int64_t v = source.integer(o, operand, element);
    if (o.in[operand]->type == ElementType::U64 && v < 0) v = INT64_MAX;
    start->push_back(std::clamp<int64_t>(v, 0, dims[d] - sizes[d]));
  }
  return p->first.empty();
}

}  // namespace

ElementPlan plan_same(const ElementOperation& o, size_t operand, const Elements& at, ElementSource& source) {
  ElementPlan p;
  p.needs.push_back({operand, at});
  p.values = [&o, operand, at, &source](char* out) { source.read(o, operand, *at, out); };
  return p;
}

ElementPlan plan_move(const ElementOperation& o, const Elements& at, ElementSource& source) {
  if (o.op == Opcode::Iota) return plan_iota(o, at);
  const Dims strides = o.in.empty() ? Dims() : row_major_strides(o.in[0]->dims);
  const size_t rank = o.out->dims.size();
  switch (o.op) {
    case Opcode::Bitcast:
      return plan_bitcast(o, at, source);
    case Opcode::Pad:
      return plan_pad(o, at, source);
    case Opcode::Concatenate:
      return plan_concatenate(o, at, source);
    case Opcode::Broadcast: {
      const Dims& map = o.a.ints(Attr::dimensions);
      Dims steps(rank, 0);
      for (size_t i = 0; i < map.size(); ++i)
        if (o.in[0]->dims[i] != 1) steps[static_cast<size_t>(map[i])] = strides[i];
      return picked(o, at, source, [&](const Dims& c) { return placed(c, steps); });
    }
    case Opcode::Transpose: {
      Dims steps;
      for (int64_t d : o.a.ints(Attr::dimensions)) steps.push_back(strides[static_cast<size_t>(d)]);
      return picked(o, at, source, [&](const Dims& c) { return placed(c, steps); });
    }
    case Opcode::Reverse: {
      Dims steps = strides;
      int64_t first = 0;
      for (int64_t i : o.a.ints(Attr::dimensions)) {
        const auto d = static_cast<size_t>(i);
        first += (o.in[0]->dims[d] - 1) * strides[d], steps[d] = -strides[d];
      }
      return picked(o, at, source, [&](const Dims& c) { return first + placed(c, steps); });
    }
    case Opcode::Slice: {
      const auto& slices = *o.a.get<std::vector<SliceDim>>(Attr::slice);
      Dims steps = strides;
      int64_t first = 0;
      for (size_t d = 0; d < rank; ++d) first += slices[d].start * strides[d], steps[d] *= slices[d].stride;
      return picked(o, at, source, [&](const Dims& c) { return first + placed(c, steps); });
    }
    default:
      return no_plan("no such data movement");
  }
}

ElementPlan plan_dynamic_slice(const ElementOperation& o, const Elements& at, ElementSource& source) {
  ElementPlan p;
  Dims start;
  if (!start_of(o, 1, o.out->dims, source, &p, &start)) return p;
  const Dims strides = row_major_strides(o.in[0]->dims);
  const int64_t first = placed(start, strides);
  return picked(o, at, source, [&](const Dims& c) { return first + placed(c, strides); });
}

ElementPlan plan_dynamic_update(const ElementOperation& o, const Elements& at, ElementSource& source) {
  ElementPlan p;
  Dims start;
  const Dims &sizes = o.in[1]->dims, strides = row_major_strides(sizes);
  if (!start_of(o, 2, sizes, source, &p, &start)) return p;
  Picks picks(o);
  for_coordinates(*at, o.out->dims, [&](size_t k, const Dims& c) {
    int64_t from = 0;
    for (size_t d = 0; d < c.size() && from >= 0; ++d) {
      const int64_t x = c[d] - start[d];
      from = x < 0 || x >= sizes[d] ? -1 : from + x * strides[d];
    }
    picks.add(k, from < 0 ? 0 : 1, from < 0 ? (*at)[k] : from);
  });
  return std::move(picks).plan(at->size(), source);
}

ElementPlan plan_gather(const ElementOperation& o, const Elements& at, ElementSource& source) {
  const Dims &offset = o.a.ints(Attr::offset_dims), &collapsed = o.a.ints(Attr::collapsed_slice_dims),
             &map = o.a.ints(Attr::start_index_map), &batching = o.a.ints(Attr::operand_batching_dims),
             &index_batching = o.a.ints(Attr::start_indices_batching_dims), &sizes = o.a.ints(Attr::slice_sizes);
  const int64_t vector = o.a.integer(Attr::index_vector_dim);
  const Shape &in = *o.in[0], &index = *o.in[1];
  const Dims strides = row_major_strides(in.dims), index_strides = row_major_strides(index.dims);
  Dims window_steps(o.out->dims.size(), 0), index_steps(o.out->dims.size(), 0), batch_steps(o.out->dims.size(), 0);
  Dims batch_out;
  for (int64_t d = 0; d < o.out->rank(); ++d)
    if (!contains(offset, d)) batch_out.push_back(d);
  for (size_t d = 0, next = 0; d < in.dims.size(); ++d)
    if (!contains(collapsed, static_cast<int64_t>(d)) && !contains(batching, static_cast<int64_t>(d)))
      window_steps[static_cast<size_t>(offset[next++])] = strides[d];
  for (int64_t d = 0, next = 0; d < index.rank(); ++d) {
    if (d == vector) continue;
    const auto to = static_cast<size_t>(batch_out[static_cast<size_t>(next++)]);
    index_steps[to] = index_strides[static_cast<size_t>(d)];
    for (size_t k = 0; k < batching.size(); ++k)
      if (index_batching[k] == d) batch_steps[to] += strides[static_cast<size_t>(batching[k])];
  }
  const int64_t step = vector < index.rank() ? index_strides[static_cast<size_t>(vector)] : 0;
  std::vector<int64_t> wanted;
  wanted.reserve(at->size() * map.size());
  for_coordinates(*at, o.out->dims, [&](size_t, const Dims& c) {
    const int64_t first = placed(c, index_steps);
    for (size_t k = 0; k < map.size(); ++k) wanted.push_back(first + static_cast<int64_t>(k) * step);
  });
  if (!source.known(o, 1, wanted)) {
    ElementPlan p;
    p.first.push_back({1, element_list(std::move(wanted))});
    return p;
  }
  const std::vector<char> starts = source.read(o, 1, wanted);
  const auto width = static_cast<size_t>(storage_bytes(index.type));
  size_t next = 0;
  return picked(o, at, source, [&](const Dims& c) {
    int64_t from = placed(c, window_steps) + placed(c, batch_steps);
    for (int64_t i : map) {
      const auto d = static_cast<size_t>(i);
      int64_t start = load_int(index.type, starts.data() + next++ * width);
      if (index.type == ElementType::U64 && start < 0) start = INT64_MAX;
      from += std::clamp<int64_t>(start, 0, in.dims[d] - sizes[d]) * strides[d];
    }
    return from;
  });
}

}  // namespace hlo
