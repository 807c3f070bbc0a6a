#include "replay/smaller/choice.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace hlo {
namespace {

// Steps of the search over sizes that go together, before one of them is left as it is.
constexpr size_t kMostSteps = 20000;

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The largest of 8, 4, 2, 1 that divides it.
int64_t unit_of(int64_t n) {
  int64_t unit = 8;
  while (n % unit) unit /= 2;
  return unit;
}

// Sizes that rules hold together, and what becomes of them.
class Group {
 public:
  Group(const SolveOptions& options, std::vector<int64_t> sizes, const std::vector<const SizeRule*>& own,
        std::unordered_set<int64_t>& taken)
      : options_(options), sizes_(std::move(sizes)), taken_(taken) {
    for (const SizeRule* r : own)
      for (const auto& [size, factor] : r->terms) of_size_[magnitude(size)].push_back(r);
  }

  // `kept` may grow: what cannot be cut.
  std::map<int64_t, int64_t> solve(const std::set<int64_t>& kept) {
    std::set<int64_t> fixed = kept;
    for (;;) {
      chosen_.clear(), trail_.clear(), steps_ = 0, blame_.clear();
      bool fine = true;
      for (int64_t s : sizes_)
        if (fixed.contains(s)) fine = fine && (chosen_.contains(s) || assign(s, number_of(s)));
      if (fine && search()) break;
      // The one that stood in the way most often stays.
      int64_t worst = 0;
      size_t most = 0;
      for (int64_t s : sizes_)
        if (const size_t n = blame_[s] + 1; !fixed.contains(s) && n >= most) most = n, worst = s;
      if (!worst) break;
      fixed.insert(worst);
    }
    std::map<int64_t, int64_t> out;
    for (int64_t s : sizes_) out[s] = chosen_.contains(s) ? chosen_[s] : number_of(s);
    for (const auto& [size, now] : out)
      if (size < kPlace) taken_.insert(now);
    return out;
  }

 private:
  static int64_t magnitude(int64_t n) { return n < 0 ? -n : n; }
  bool small(int64_t n) const { return magnitude(number_of(n)) <= options_.small; }
  bool known(int64_t size) const { return small(size) || chosen_.contains(magnitude(size)); }
  int64_t value(int64_t size) const {
    if (small(size)) return number_of(size);
    const int64_t v = chosen_.at(magnitude(size));
    return size < 0 ? -v : v;
  }

  // Takes it and what follows from it; false where a rule breaks.
  bool assign(int64_t size, int64_t to) {
    std::vector<std::pair<int64_t, int64_t>> next{{size, to}};
    while (!next.empty()) {
      const auto [s, v] = next.back();
      next.pop_back();
      if (auto at = chosen_.find(s); at != chosen_.end()) {
        if (at->second != v) return blame(s);
        continue;
      }
      if (v < (s < kPlace ? 2 : 1) || v > number_of(s)) return blame(s);
      chosen_[s] = v, trail_.push_back(s);
      for (const SizeRule* r : of_size_[s])
        if (!follow(*r, &next)) return blame(s);
    }
    return true;
  }
  bool blame(int64_t s) {
    ++blame_[s];
    return false;
  }

  // What a rule says where one of its sizes is open; false where it does not hold.
  bool follow(const SizeRule& r, std::vector<std::pair<int64_t, int64_t>>* next) {
    int64_t open = 0, open_factor = 0;
    for (const auto& [size, factor] : r.terms)
      if (!known(size)) {
        if (open && open != magnitude(size)) return true;
        open = magnitude(size), open_factor += size < 0 ? -factor : factor;
      }
    switch (r.kind) {
      case SizeRule::kLess:
        return open || value(r.terms[0].first) < value(r.terms[1].first);
      case SizeRule::kAtMost:
        return open || value(r.terms[0].first) <= value(r.terms[1].first);
      case SizeRule::kSum: {
        __int128 rest = 0;
        for (const auto& [size, factor] : r.terms)
          rest += static_cast<__int128>(factor) * (number_of(size) - (known(size) ? value(size) : 0));
        if (!open) return rest == 0;
        // open_factor·f = rest
        if (!open_factor || rest % open_factor || rest / open_factor < 0 || rest / open_factor > number_of(open))
          return false;
        next->emplace_back(open, static_cast<int64_t>(rest / open_factor));
        return true;
      }
      case SizeRule::kProduct: {
        __int128 over = 1, under = 1;
        for (const auto& [size, factor] : r.terms)
          for (int64_t n = 0; known(size) && n < magnitude(factor); ++n) {
            (factor > 0 ? over : under) *= value(size);
            if (over > INT64_MAX || under > INT64_MAX) return false;
          }
        if (!open) return over == under;
        if (open_factor < 0) std::swap(over, under), open_factor = -open_factor;
        // open^factor · over = under
        if (!over || under % over) return false;
        const auto power = static_cast<int64_t>(under / over);
        if (open_factor == 1) {
          next->emplace_back(open, power);
          return true;
        }
        for (int64_t root = 1; root <= 65536; ++root) {
          __int128 p = 1;
          for (int64_t n = 0; n < open_factor && p <= power; ++n) p *= root;
          if (p == power) {
            next->emplace_back(open, root);
            return true;
          }
          if (p > power) return false;
        }
        return false;
      }
    }
    return false;
  }

  void undo(size_t to) {
    while (trail_.size() > to) chosen_.erase(trail_.back()), trail_.pop_back();
  }

  std::vector<int64_t> candidates(int64_t key) const {
    const int64_t size = number_of(key);
    std::vector<int64_t> nice, out;
    const int64_t unit = unit_of(size);
    if (power_of_two(size))
      for (int64_t v = 4; v < size; v *= 2) nice.push_back(v);
    else
      for (int64_t v = unit; v < size && nice.size() < 24; v += unit)
        if (v >= 3 && unit_of(v) == unit && !power_of_two(v)) nice.push_back(v);
    std::stable_partition(nice.begin(), nice.end(), [this](int64_t v) { return v >= options_.least; });
    if (options_.distinct)
      for (int64_t v : nice)
        if (!taken_.contains(v) &&
            std::none_of(chosen_.begin(), chosen_.end(), [v](const auto& c) { return c.second == v; }))
          out.push_back(v);
    for (int64_t v : nice)
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    for (int64_t v = 2; v < std::min<int64_t>(size, 64); ++v)
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    out.push_back(size);
    return out;
  }

  bool search() {
    for (int64_t s : sizes_) {
      if (chosen_.contains(s)) continue;
      const size_t mark = trail_.size();
      for (int64_t v : candidates(s)) {
        if (++steps_ > kMostSteps) return false;
        if (assign(s, v) && search()) return true;
        undo(mark);
      }
      return false;
    }
    return true;
  }

  const SolveOptions& options_;
  std::vector<int64_t> sizes_;  // ascending
  std::unordered_set<int64_t>& taken_;
  std::unordered_map<int64_t, std::vector<const SizeRule*>> of_size_;
  std::map<int64_t, int64_t> chosen_;
  std::vector<int64_t> trail_;
  size_t steps_ = 0;
  std::unordered_map<int64_t, size_t> blame_;
};

// Sizes that rules hold together, found by union.
class Groups {
 public:
  int64_t find(int64_t s) {
    auto at = up_.emplace(s, s).first;
    while (at->second != at->first) at = up_.find(at->second);
    return at->first;
  }
  void join(int64_t a, int64_t b) {
    a = find(a), b = find(b);
    up_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::unordered_map<int64_t, int64_t> up_;
};

// Places keep their order: a slice that lies within padding does so still.
void add_orders(std::vector<SizeRule>* rules) {
  std::set<int64_t> places;
  for (const SizeRule& r : *rules)
    for (const auto& [size, factor] : r.terms)
      if (const int64_t n = size < 0 ? -size : size; n >= kPlace) places.insert(n);
  for (auto at = places.begin(); at != places.end() && std::next(at) != places.end(); ++at)
    rules->push_back({SizeRule::kAtMost, {{*at, 1}, {*std::next(at), 1}}, "", ""});
}

}  // namespace

int64_t SizeChoice::of(int64_t size) const {
  if (size == INT64_MIN) return size;
  const auto at = becomes.find(size < 0 ? -size : size);
  if (at == becomes.end()) return number_of(size);
  return size < 0 ? -at->second : at->second;
}

bool SizeChoice::cuts_anything() const {
  return std::any_of(becomes.begin(), becomes.end(), [](const auto& s) { return number_of(s.first) != s.second; });
}

std::optional<int64_t> SizeChoice::of_index(int64_t number) const {
  if (number < 0) {
    if (number == INT64_MIN) return std::nullopt;
    if (auto positive = of_index(-number)) return -*positive;
    return std::nullopt;
  }
  if (number <= small || number >= kPlace) return std::nullopt;  // no array is as large
  auto cut = [this](int64_t n) {
    const auto at = becomes.find(n);
    return at != becomes.end();
  };
  if (cut(number)) return of(number);
  if (auto at = differences.find(number); at != differences.end() && (cut(at->second.first) || cut(at->second.second)))
    return of(at->second.first) - of(at->second.second);
  if (cut(number + 1)) return of(number + 1) - 1;
  if (number > 1 && cut(number - 1)) return of(number - 1) + 1;
  if (cut(place_key(number))) return of_place(number);
  return std::nullopt;
}

SizeChoice choose_sizes(const SizeRules& rules, const SolveOptions& options) {
  SizeChoice out;
  out.differences = rules.differences(), out.devices = rules.devices(), out.small = options.small;
  auto open = [&](int64_t n) { return number_of(n) > options.small; };
  std::set<int64_t> all;
  std::unordered_set<int64_t> taken;
  for (const auto& [size, count] : rules.sizes()) {
    if (open(size))
      all.insert(size);
    else
      taken.insert(size);
  }
  std::vector<SizeRule> all_rules = rules.rules();
  add_orders(&all_rules);
  Groups groups;
  for (const SizeRule& r : all_rules) {
    int64_t first = 0;
    for (const auto& [size, factor] : r.terms) {
      const int64_t n = size < 0 ? -size : size;
      if (!open(n)) continue;
      all.insert(n);
      if (first) groups.join(first, n);
      first = n;
    }
  }
  std::map<int64_t, std::pair<std::vector<int64_t>, std::vector<const SizeRule*>>> parts;
  for (int64_t s : all) parts[groups.find(s)].first.push_back(s);
  // Small numbers first: the others follow from them.
  for (auto& [first, part] : parts)
    std::stable_sort(part.first.begin(), part.first.end(),
                     [](int64_t a, int64_t b) { return number_of(a) < number_of(b); });
  for (const SizeRule& r : all_rules)
    for (const auto& [size, factor] : r.terms)
      if (const int64_t n = size < 0 ? -size : size; open(n)) {
        parts[groups.find(n)].second.push_back(&r);
        break;
      }
  for (int64_t s : rules.kept())
    if (open(s)) taken.insert(s);
  for (auto& [first, part] : parts) {
    Group group(options, std::move(part.first), part.second, taken);
    for (const auto& [size, now] : group.solve(rules.kept())) out.becomes[size] = now;
  }
  for (int64_t s : rules.kept()) out.becomes.try_emplace(s, number_of(s));
  return out;
}

}  // namespace hlo
