// Behind priority-fusion a module does not tell in which order XLA holds the users of a value, on which the results of
// multi_output_fusion hang. What was made before it does: each instruction, fused or not, keeps the name that it had,
// and names are numbered as they are made. So the users as they were are put in that order, and fused one after the
// other: a fusion comes to the end of the list, and the last of it into the hole of what is gone
// (HloInstruction::RemoveUser).
#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "replay/made_order.h"

namespace hlo {
namespace {

// `add.5.0` is what rename-instructions made of `add.5`, `add.5.3` a copy of it.
struct Original {
  std::string_view root;
  uint64_t number = 0;
  bool operator==(const Original&) const = default;
  // Not <=>, which strings of the page's compiler lack.
  bool operator<(const Original& o) const { return root != o.root ? root < o.root : number < o.number; }
};

class Users {
 public:
  Users(Module& m, CompId comp) : m_(m), comp_(comp) {}

  void order() {
    find_places();
    std::vector<InstId> all = m_.live_order(comp_);
    const bool fused = std::any_of(all.begin(), all.end(), [&](InstId i) { return is_made(i); });
    if (!fused) return;
    for (InstId i : all)
      if (m_.user_count(i) > 1) order_of(i);
  }

 private:
  // A fusion of priority-fusion: others were there before.
  bool is_made(InstId i) const {
    if (m_.op(i) != Opcode::Fusion) return false;
    const std::string_view kind = m_.u().text(m_.attrs(i).text(Attr::kind));
    return kind == "kLoop" || kind == "kInput";
  }
  static std::pair<std::string_view, uint64_t> numbered(std::string_view name) { return numbered_name(name); }
  bool renamed(Opcode op) const {
    switch (op) {
      case Opcode::Parameter:
      case Opcode::CustomCall:
      case Opcode::Fusion:
      case Opcode::Domain:
      case Opcode::While:
      case Opcode::Conditional:
      case Opcode::Call:
        return false;
      default:
        return true;
    }
  }
  Original original(InstId i) const {
    std::string_view name = m_.inst_name(i);
    if (renamed(m_.op(i))) name = numbered(name).first;
    const auto [root, number] = numbered(name);
    return {root, number};
  }

  // The program as it was, in the order in which XLA prints it: what a pass makes takes the place among the users of
  // what it replaces, so that users stand as the program has them, whenever each was made.
  void find_places() {
    double place = 0;
    for (InstId i : m_.live_order(comp_)) made_at_[i] = ++place;
    for (InstId i : m_.post_order(comp_)) {
      if (!is_made(i)) {
        places_.try_emplace(original(i), static_cast<double>(places_.size()));
        continue;
      }
      for (InstId inside : m_.post_order(m_.called(i)[0]))
        if (m_.op(inside) != Opcode::Parameter)
          places_.try_emplace(original(inside), static_cast<double>(places_.size()));
    }
  }

  struct Event {
    double fusion = 0;  // its place
    size_t step = 0;    // within the body
    size_t reader = 0;  // of `readers`
    InstId holder;
  };
  struct Reader {
    Original name;
    double place = 0;
    int copies = 0;
    InstId alone;  // itself, where it is not fused
  };

  void order_of(InstId value) {
    std::vector<Reader> readers;
    std::map<Original, size_t> by_name;
    std::vector<Event> events;
    auto reader = [&](InstId i) {
      const Original name = original(i);
      auto [at, fresh] = by_name.emplace(name, readers.size());
      if (fresh) readers.push_back({name, places_.at(name), 0, InstId()});
      return at->second;
    };
    for (InstId user : m_.users(value)) {
      if (!is_made(user)) {
        const size_t r = reader(user);
        if (readers[r].alone.valid()) return;  // two of one name: nothing can be told
        readers[r].alone = user;
        continue;
      }
      const CompId body = m_.called(user)[0];
      std::unordered_map<InstId, size_t> steps;
      for (InstId i : m_.live_order(body)) steps.emplace(i, steps.size());
      for (size_t n = 0; n < m_.operand_count(user); ++n) {
        if (m_.operand(user, n) != value) continue;
        for (InstId i : m_.users(m_.comp(body).params[n])) {
          const size_t r = reader(i);
          ++readers[r].copies;
          events.push_back({made_at_.at(user), steps.at(i), r, user});
        }
      }
    }
    std::vector<size_t> first(readers.size());
    for (size_t k = 0; k < first.size(); ++k) first[k] = k;
    std::stable_sort(first.begin(), first.end(), [&](size_t a, size_t b) {
      const Reader &x = readers[a], &y = readers[b];
      return x.place != y.place ? x.place < y.place : x.name < y.name;
    });
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.fusion != b.fusion ? a.fusion < b.fusion : a.step < b.step;
    });
    replay(value, readers, first, events);
  }

  void replay(InstId value, std::vector<Reader>& readers, const std::vector<size_t>& first,
              const std::vector<Event>& events) {
    struct Entry {
      InstId user;  // invalid: a reader that is fused later
      size_t reader;
    };
    std::vector<Entry> list;
    std::unordered_set<InstId> there;
    std::vector<size_t> slot(readers.size());
    for (size_t r : first) slot[r] = list.size(), list.push_back({readers[r].alone, r});
    for (const Event& e : events) {
      if (there.insert(e.holder).second) list.push_back({e.holder, SIZE_MAX});
      if (--readers[e.reader].copies > 0 || readers[e.reader].alone.valid()) continue;
      const size_t hole = slot[e.reader];
      list[hole] = list.back();
      if (list[hole].reader != SIZE_MAX) slot[list[hole].reader] = hole;
      list.pop_back();
    }
    std::vector<InstId> order;
    for (const Entry& entry : list) order.push_back(entry.user);
    set_order(value, order);
  }

  // Taken off, and given back one by one.
  void set_order(InstId value, const std::vector<InstId>& order) {
    const std::vector<InstId> now = m_.users_copy(value);
    if (now == order || !std::is_permutation(now.begin(), now.end(), order.begin(), order.end())) return;
    const InstId meanwhile = m_.comp(comp_).root;
    if (meanwhile == value) return;
    std::vector<std::vector<size_t>> places(order.size());
    for (size_t k = 0; k < order.size(); ++k)
      for (size_t n = 0; n < m_.operand_count(order[k]); ++n)
        if (m_.operand(order[k], n) == value) places[k].push_back(n);
    for (InstId to : {meanwhile, value})
      for (size_t k = 0; k < order.size(); ++k)
        for (size_t n : places[k]) m_.set_operand(order[k], n, to);
  }

  Module& m_;
  CompId comp_;
  std::map<Original, double> places_;
  std::unordered_map<InstId, double> made_at_;
};

}  // namespace

void put_users_in_order_made(Module& m) {
  for (CompId c : m.nonfusion_computations()) Users(m, c).order();
}

}  // namespace hlo
