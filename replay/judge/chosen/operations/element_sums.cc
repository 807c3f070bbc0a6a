// Elements of sums (Expr::kSum): their terms, line by line.
#include <algorithm>
#include <unordered_map>

#include "ir/eval/kernels.h"
#include "replay/judge/chosen/elements/elements_run.h"
#include "replay/judge/chosen/elements/products.h"

namespace hlo {
namespace {

// Elements of one factor: the terms of each result that begin elsewhere, one line behind the other.
struct FactorLines {
  std::vector<int64_t> of_result;  // which line
  ElementList elements;
};

FactorLines lines_of(const Expr& x, size_t factor, const Elements& at, ElementSource& source) {
  const Expr::View& v = x.sum->of(factor, x.view);
  const auto kept = static_cast<ptrdiff_t>(x.sum->kept);
  const Dims sizes(x.view.sizes.begin(), x.view.sizes.begin() + kept),
      over(x.view.sizes.begin() + kept, x.view.sizes.end());
  std::vector<int64_t> steps{0};
  for (size_t d = 0; d < over.size(); ++d) {
    std::vector<int64_t> all;
    all.reserve(steps.size() * static_cast<size_t>(over[d]));
    for (int64_t s : steps)
      for (int64_t k = 0; k < over[d]; ++k) all.push_back(s + k * v.steps[x.sum->kept + d]);
    steps = std::move(all);
  }
  FactorLines out;
  ElementLines lines(static_cast<int64_t>(steps.size()), source);
  for_coordinates(*at, sizes, [&](size_t, const Dims& c) {
    int64_t first = v.offset;
    for (size_t d = 0; d < c.size(); ++d) first += c[d] * v.steps[d];
    out.of_result.push_back(lines.line(first, [&](std::vector<int64_t>& list) {
      for (int64_t s : steps) list.push_back(first + s);
    }));
  });
  out.elements = lines.take();
  return out;
}

// Each result's terms, multiplied where they have several factors, and taken together, some results at a time.
std::vector<char> together(const Expr& x, ElementType type, int64_t terms, const std::vector<FactorLines>& lines,
                           const std::vector<std::vector<char>>& values) {
  const size_t n = lines[0].of_result.size(), length = static_cast<size_t>(terms);
  const auto width = static_cast<size_t>(storage_bytes(type));
  const auto chunk = static_cast<size_t>(std::clamp<int64_t>((1 << 20) / std::max<int64_t>(terms, 1), 1, 1 << 20));
  std::vector<char> out;
  for (size_t first = 0; first < n; first += chunk) {
    const size_t some = std::min(chunk, n - first);
    auto slices_of = [&](size_t factor) {
      std::vector<char> slices(some * length * width);
      for (size_t r = 0; r < some; ++r) {
        const char* line =
            values[factor].data() + static_cast<size_t>(lines[factor].of_result[first + r]) * length * width;
        for (size_t k = 0; k < length; ++k)
          std::memcpy(slices.data() + (k * some + r) * width, line + k * width, width);
      }
      return slices;
    };
    std::vector<char> slices = slices_of(0);
    for (size_t f = 1; f < values.size(); ++f) {
      const std::vector<char> by = slices_of(f);
      EwArgs e;
      e.op = Opcode::Multiply, e.in = e.out = type, e.n = static_cast<int64_t>(some * length);
      e.a = slices.data(), e.b = by.data(), e.result = slices.data();
      if (!elementwise_kernel(e)) fail(FailureKind::kUnsupported, "no products of {}", type_name(type));
    }
    slices = reduced_by_halves(x.sum->by, type, terms, static_cast<int64_t>(some), std::move(slices));
    out.insert(out.end(), slices.begin(), slices.end());
  }
  return out;
}

}  // namespace

ElementPlan ChosenElements::Run::plan_sum(const Expr& x, const Elements& at) {
  Checked count = 1;
  for (size_t k = x.sum->kept; k < x.view.sizes.size(); ++k) count *= x.view.sizes[k];
  afford(count.capped());
  const int64_t terms = count.capped();
  auto lines = std::make_shared<std::vector<FactorLines>>();
  ElementPlan p;
  for (size_t f = 0; f < x.operands.size(); ++f) {
    lines->push_back(lines_of(x, f, at, *this));
    p.needs.push_back({f, lines->back().elements});
  }
  p.values = [this, &x, at, lines, terms](char* out) {
    const ElementType type = universe()[x.shape].type;
    std::vector<std::vector<char>> values;
    for (size_t f = 0; f < x.operands.size(); ++f) {
      const std::vector<int64_t>& list = *(*lines)[f].elements;
      values.emplace_back(list.size() * static_cast<size_t>(storage_bytes(type)));
      read_here(x.operands[f], type, list, values.back().data());
    }
    std::vector<char> sums;
    if (values.size() == 2 && x.sum->by == Opcode::Add && x.sum->kept < x.view.sizes.size()) {
      // As matrices where many results share their lines: of one batch, along which both go on.
      ProductPlan plan;
      plan.sums = type, plan.length = terms;
      const Dims sizes(x.view.sizes.begin(), x.view.sizes.begin() + static_cast<ptrdiff_t>(x.sum->kept));
      for_coordinates(*at, sizes, [&](size_t k, const Dims& c) {
        int64_t batch = 0;
        for (size_t d = 0; d < c.size(); ++d)
          if (x.view.steps[d] && x.sum->more[0].steps[d]) batch = batch * sizes[d] + c[d];
        plan.sums_of.push_back({batch, (*lines)[0].of_result[k], (*lines)[1].of_result[k]});
      });
      sums = summed(plan, {type, terms, std::move(values[0])}, {type, terms, std::move(values[1])});
    } else {
      sums = together(x, type, terms, *lines, values);
    }
    std::memcpy(out, sums.data(), sums.size());
  };
  return p;
}

}  // namespace hlo
