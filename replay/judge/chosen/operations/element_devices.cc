// Elements that several devices have: each device's by the rules that one device goes by, messages by what they are.
#include <algorithm>

#include "ir/base/check.h"
#include "replay/judge/chosen/elements/device_classes.h"
#include "replay/judge/chosen/elements/elements_run.h"

namespace hlo {

int64_t ChosenElements::Run::number_of(ExprId e, int64_t device, int64_t element) {
  if (element < 0 || !options_.devices) return element;
  return options_.devices->first_of(e, device) * count_of(e) + element;
}

std::vector<int64_t> ChosenElements::Run::numbers_here(ExprId e, std::span<const int64_t> elements) {
  std::vector<int64_t> out(elements.begin(), elements.end());
  const int64_t first = number_of(e, device_, 0);
  for (int64_t& i : out)
    if (i >= 0) i += first;
  return out;
}

void ChosenElements::Run::read_here(ExprId e, ElementType type, std::span<const int64_t> elements, char* out) {
  if (number_of(e, device_, 0) == 0) return read_as(e, type, elements, out);
  read_as(e, type, numbers_here(e, elements), out);
}

bool ChosenElements::Run::known_here(ExprId e, std::span<const int64_t> elements) {
  const KnownElements& k = known_[e];
  const int64_t first = number_of(e, device_, 0);
  int64_t near = -1;
  return std::all_of(elements.begin(), elements.end(),
                     [&](int64_t i) { return i < 0 || (near = k.find(i + first, near)) >= 0; });
}

void ChosenElements::Run::plan_step(Step& s) {
  const Expr& x = expressions_[s.e];
  const bool made = x.kind != Expr::kParameter && x.kind != Expr::kFormal && x.kind != Expr::kLoop;
  s.leaf = !made || (options_.cut && options_.cut(s.e));
  if (s.leaf) return;
  if (x.kind == Expr::kOperation) s.operation = std::make_unique<ElementOperation>(x, s.e);
  if (x.kind == Expr::kMessage)
    s.plan = plan_message(x, s.at);
  else
    s.plan = options_.devices && options_.devices->devices() > 1 ? plan_devices(s) : plan_here(s, s.at);
}

ElementPlan ChosenElements::Run::plan_here(Step& s, const Elements& at) {
  const Expr& x = expressions_[s.e];
  if (s.operation) return plan(*s.operation, at);
  return x.kind == Expr::kView ? plan_view(x, at) : x.kind == Expr::kSum ? plan_sum(x, at) : plan_branch(x, at);
}

ElementPlan ChosenElements::Run::plan_devices(Step& s) {
  const int64_t count = std::max<int64_t>(count_of(s.e), 1);
  const std::vector<int64_t>& numbers = *s.at;
  ElementPlan all;
  std::vector<std::function<void(char*)>> parts;
  const auto width =
      static_cast<int64_t>(storage_bytes(s.operation && s.operation->fits ? s.operation->out->type : type_of(s.e)));
  for (size_t from = 0, to = 0; from < numbers.size(); from = to) {
    const int64_t device = numbers[from] / count;
    std::vector<int64_t> own;
    for (; to < numbers.size() && numbers[to] / count == device; ++to) own.push_back(numbers[to] % count);
    const Device here(*this, device);
    ElementPlan p = plan_here(s, element_list(std::move(own)));
    if (!p.why.empty()) return p;
    auto take = [&](std::vector<NeededElements>& list, std::vector<NeededElements>* into) {
      for (NeededElements& n : list)
        into->push_back({n.operand, element_list(numbers_here(expressions_[s.e].operands[n.operand], *n.elements))});
    };
    take(p.first, &all.first), take(p.needs, &all.needs);
    parts.push_back([this, device, at = static_cast<int64_t>(from) * width, values = std::move(p.values)](char* out) {
      const Device now(*this, device);
      values(out + at);
    });
  }
  all.values = [parts = std::move(parts)](char* out) {
    for (const auto& part : parts) part(out);
  };
  return all;
}

ElementPlan ChosenElements::Run::plan_message(const Expr& x, const Elements& numbers) {
  const DeviceMessage& m = *x.message;
  const ElementType type = universe()[x.shape].type;
  const int64_t count = std::max<int64_t>(universe()[x.shape].elements_count(), 1);
  const auto width = static_cast<size_t>(storage_bytes(type));
  ElementPlan p;
  // Nobody asks that: if somebody does, the value is not compared.
  if (options_.devices && !numbers->empty() && numbers->back() / count >= options_.devices->devices())
    return no_plan("an element that no device has");
  if (m.kind == DeviceMessage::kNumber) {
    p.values = [&m, numbers, type, count](char* out) {
      for (int64_t n : *numbers)
        store_int(type, out, m.numbers[static_cast<size_t>(n / count)]), out += storage_bytes(type);
    };
    return p;
  }
  if (m.kind == DeviceMessage::kReduce) {
    // Elements of groups of one size together: [members, elements].
    std::map<size_t, std::vector<size_t>> by_size;
    for (size_t k = 0; k < numbers->size(); ++k) by_size[m.group((*numbers)[k] / count).size()].push_back(k);
    for (const auto& [size, places] : by_size) {
      std::vector<int64_t> list;
      for (size_t s = 0; s < size; ++s)
        for (size_t k : places) {
          const int64_t n = (*numbers)[k];
          list.push_back(number_of(x.operands[0], m.group(n / count)[s], n % count));
        }
      p.needs.push_back({0, element_list(std::move(list))});
    }
    p.values = [this, &x, &m, by_size, needs = p.needs, type, width](char* out) {
      size_t next = 0;
      for (const auto& [size, places] : by_size) {
        const std::vector<int64_t>& list = *needs[next++].elements;
        std::vector<char> slices(list.size() * width);
        read_as(x.operands[0], type, list, slices.data());
        slices = reduced_by_halves(m.by, type, static_cast<int64_t>(size), static_cast<int64_t>(places.size()),
                                   std::move(slices));
        for (size_t k = 0; k < places.size(); ++k)
          std::memcpy(out + places[k] * width, slices.data() + k * width, width);
      }
    };
    return p;
  }
  std::map<size_t, std::pair<std::vector<size_t>, std::vector<int64_t>>> by_operand;
  for (size_t k = 0; k < numbers->size(); ++k) {
    const DeviceMessage::Element from = m.element((*numbers)[k] / count, (*numbers)[k] % count);
    auto& [places, list] = by_operand[from.operand];
    places.push_back(k), list.push_back(number_of(x.operands[from.operand], from.device, from.element));
  }
  std::vector<std::vector<size_t>> places;
  for (auto& [operand, both] : by_operand) {
    p.needs.push_back({operand, element_list(std::move(both.second))});
    places.push_back(std::move(both.first));
  }
  p.values = [this, &x, needs = p.needs, places, type, width](char* out) {
    for (size_t part = 0; part < needs.size(); ++part) {
      const std::vector<int64_t>& list = *needs[part].elements;
      std::vector<char> values(list.size() * width);
      read_as(x.operands[needs[part].operand], type, list, values.data());
      for (size_t k = 0; k < list.size(); ++k)
        std::memcpy(out + places[part][k] * width, values.data() + k * width, width);
    }
  };
  return p;
}

}  // namespace hlo
