#include "replay/judge/arguments/elided.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/eval/evaluator.h"
#include "ir/query/source_lines.h"
#include "ir/types/literal.h"
#include "replay/compare/match.h"
#include "replay/judge/arguments/fit.h"
#include "replay/judge/arguments/own_constants.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"

namespace hlo {

struct KnownConstant {
  Value value;
  std::vector<size_t> bases;  // made-up constants that it was computed from, in the order of the expression
};
using KnownConstants = std::map<std::string, KnownConstant, std::less<>>;

namespace {

// What is evaluated to learn a constant's value has no larger array than this.
constexpr int64_t kLargestFolded = int64_t{256} << 20;

// The elided constants of a text, one a line, without their layouts: where this is the same in two stages, so are they.
std::vector<std::string> elided_lines(const std::string& text) {
  constexpr std::string_view kSign = " constant({...}";
  std::vector<std::string> out;
  for (size_t at = text.find(kSign); at != std::string::npos; at = text.find(kSign, at + 1)) {
    size_t begin = text.rfind('\n', at) + 1;
    std::string line;
    int depth = 0;
    for (char c : text.substr(begin, at - begin)) {
      if (c == '{') ++depth;
      if (!depth && c != ' ') line += c;
      if (c == '}') --depth;
    }
    out.push_back(std::move(line));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool same_array(const Shape& a, const Shape& b) {
  return a.is_array() && b.is_array() && a.type == b.type && a.dims == b.dims;
}

bool same_bytes(const Value& a, const Value& b) { return a.data && b.data && *a.data == *b.data; }

// Values of a stage's instructions that depend on constants alone.
class ConstantValues {
 public:
  ConstantValues(const Module& m, const KnownConstants& names)
      : m_(m), names_(names), evaluator_(m), callers_(m.callers()) {}

  std::optional<KnownConstant> of(InstId i, int depth = 0) {
    if (depth > 200 || !m_.shape(i).is_array()) return std::nullopt;
    if (auto at = seen_.find(i); at != seen_.end()) return at->second;
    seen_[i] = std::nullopt;
    std::optional<KnownConstant> out = compute(i, depth);
    seen_[i] = out;
    return out;
  }

  // Can it rest on an elided constant? Asked before of(), which may fill arrays of gigabytes.
  bool may_be_made_up(InstId i, int depth = 0) {
    if (depth > 200) return true;
    if (auto at = made_up_.find(i); at != made_up_.end()) return at->second;
    made_up_[i] = false;
    bool out = false;
    if (m_.op(i) == Opcode::Constant) {
      const auto at = names_.find(m_.inst_name(i));
      out = at != names_.end() && !at->second.bases.empty();
    } else if (m_.op(i) == Opcode::Parameter || m_.op(i) == Opcode::GetTupleElement) {
      const InstId source = source_of(i, depth);
      out = source.valid() && source != i && may_be_made_up(source, depth + 1);
    } else {
      for (InstId o : m_.operands(i)) out = out || may_be_made_up(o, depth + 1);
    }
    return made_up_[i] = out;
  }

 private:
  std::optional<KnownConstant> compute(InstId i, int depth) {
    switch (m_.op(i)) {
      case Opcode::Constant: {
        if (auto at = names_.find(m_.inst_name(i)); at != names_.end()) return at->second;
        if (m_.literal(i).elided) return std::nullopt;
        return KnownConstant{value_of_literal(m_.u(), m_.literal_id(i)), {}};
      }
      case Opcode::Parameter:
      case Opcode::GetTupleElement: {
        const InstId source = source_of(i, depth);
        return source.valid() && source != i ? of(source, depth + 1) : std::nullopt;
      }
      default:
        break;
    }
    if (!m_.called(i).empty() || m_.has_side_effect(i) || m_.shape(i).elements_count() > kLargestFolded)
      return std::nullopt;
    if (m_.operand_count(i) == 0 && m_.op(i) != Opcode::Iota) return std::nullopt;
    KnownConstant out;
    std::vector<Value> operands;
    for (InstId o : m_.operands(i)) {
      std::optional<KnownConstant> one = of(o, depth + 1);
      if (!one) return std::nullopt;
      operands.push_back(one->value);
      out.bases.insert(out.bases.end(), one->bases.begin(), one->bases.end());
      if (out.bases.size() > 64) return std::nullopt;
    }
    try {
      out.value = evaluator_.run_instruction(i, std::move(operands));
    } catch (const Failure&) {  // what cannot be evaluated is not folded here
      return std::nullopt;
    }
    return out;
  }

  // What a parameter or an element of a tuple is, outside of the computation; invalid where that is not one value.
  InstId source_of(InstId i, int depth) {
    if (m_.op(i) == Opcode::GetTupleElement) return element(m_.operand(i, 0), m_.attrs(i).integer(Attr::index), depth);
    const InstId caller = only_caller(i);
    if (!caller.valid() || (m_.op(caller) != Opcode::Fusion && m_.op(caller) != Opcode::Call)) return InstId();
    const std::vector<InstId>& params = m_.comp(m_.parent(i)).params;
    const auto number = std::find(params.begin(), params.end(), i) - params.begin();
    return m_.operand(caller, static_cast<size_t>(number));
  }
  InstId only_caller(InstId parameter) const {
    const std::vector<InstId>& callers = callers_[m_.parent(parameter).value];
    return callers.size() == 1 ? callers[0] : InstId();
  }
  InstId element(InstId tuple, int64_t index, int depth) {
    if (depth > 200) return InstId();
    if (m_.op(tuple) == Opcode::Tuple) return m_.operand(tuple, static_cast<size_t>(index));
    if (m_.op(tuple) != Opcode::Parameter) return InstId();
    const InstId caller = only_caller(tuple);
    if (!caller.valid() || m_.op(caller) != Opcode::While) return InstId();
    // Only what the loop hands on as it is has one value.
    const CompId body = m_.attrs(caller).comp(Attr::body);
    const InstId root = m_.comp(body).root;
    if (m_.op(root) != Opcode::Tuple) return InstId();
    const InstId next = m_.operand(root, static_cast<size_t>(index));
    if (m_.op(next) != Opcode::GetTupleElement || m_.operand(next, 0) != m_.comp(body).params[0] ||
        m_.attrs(next).integer(Attr::index) != index)
      return InstId();
    return element(m_.operand(caller, 0), index, depth + 1);
  }

  const Module& m_;
  const KnownConstants& names_;
  Evaluator evaluator_;
  std::vector<std::vector<InstId>> callers_;
  std::map<InstId, std::optional<KnownConstant>> seen_;
  std::unordered_map<InstId, bool> made_up_;
};

}  // namespace

class ElidedConstants::Follower {
 public:
  Follower(std::vector<std::string> paths, Load load, const InputOptions& inputs)
      : paths_(std::move(paths)), load_(std::move(load)), inputs_(inputs) {}

  // What is held against each other are no files.
  void read_no_texts() { texts_ = false; }

  void settle(size_t stage, Module& m) {
    const std::vector<InstId> elided = m.elided_constants();
    if (elided.empty()) return;
    follow();
    for (InstId i : elided) {
      auto at = known_[stage]->find(m.inst_name(i));
      if (at == known_[stage]->end() || !same_array(m.u()[at->second.value.shape], m.shape(i)))
        fail(FailureKind::kUnsupported, "{}: nothing records the value of constant {}, which is elided ({{...}})",
             paths_[stage], m.inst_name(i));
      fill(m, i, at->second.value);
    }
  }

  const std::vector<Anew>& anew() {
    follow();
    return anew_;
  }

  bool folds_made_up(size_t good, size_t bad) {
    follow();
    const std::unique_ptr<Module> before = readable(good), now = readable(bad);
    if (!before || !now) return false;
    const Users users(*before, *now);
    ConstantValues values(*before, *known_[good]);
    for (CompId c : now->computations())
      for (InstId i : now->live_order(c)) {
        if (counts_or_repeats(*now, i)) {
          for (InstId was : users.read_before(i)) {
            if (!values.may_be_made_up(was)) continue;
            const std::optional<KnownConstant> read = values.of(was);
            if (!read || read->bases.empty() || before->op(was) == now->op(i)) continue;
            begin_anew(bad, fmt::format("{} is in the place of {}, which an elided constant makes and whose values "
                                        "are made up here",
                                        now->inst_name(i), before->inst_name(was)));
            return true;
          }
          continue;
        }
        if (now->op(i) != Opcode::Constant) continue;
        if (now->literal(i).elided) {
          auto at = known_[bad]->find(now->inst_name(i));
          if (at == known_[bad]->end() || at->second.bases.empty() || users.named(now->inst_name(i)).valid() ||
              users.surely_read(i))
            continue;
          begin_anew(bad, fmt::format("constant {}, which is elided ({{...}}), is new, and what its readers had in its "
                                      "place is unknown: made-up values may have been folded into it",
                                      now->inst_name(i)));
          return true;
        }
        for (InstId was : users.read_before(i)) {
          if (!values.may_be_made_up(was)) continue;
          const std::optional<KnownConstant> read = values.of(was);
          if (!read || read->bases.empty()) continue;
          if (same_bytes(read->value, value_of_literal(now->u(), now->literal_id(i)))) continue;
          begin_anew(bad, fmt::format("constant {} is what the pass computed from elided constants, as {} of the stage "
                                      "before, whose values are made up here",
                                      now->inst_name(i), before->inst_name(was)));
          return true;
        }
      }
    return false;
  }

  // What algsimp makes of a constant whose elements it has seen.
  static bool counts_or_repeats(const Module& m, InstId i) {
    return m.op(i) == Opcode::Iota || (m.op(i) == Opcode::Broadcast && m.op(m.operand(i, 0)) == Opcode::Constant &&
                                       !m.literal(m.operand(i, 0)).elided);
  }

  std::string told() const {
    if (!followed_ || (!count_ && !later_)) return "";
    std::string out;
    if (count_) {
      out = fmt::format("{} constant{} of the first stage {} elided ({{...}}) in the dump: ", count_,
                        count_ == 1 ? "" : "s", count_ == 1 ? "is" : "are");
      if (own_)
        out += fmt::format("{} its own value, from {}", own_ == 1 ? "one has" : fmt::format("{} have each", own_),
                           fmt::join(files_, ", "));
      const size_t made = count_ - own_;
      if (own_ && made) out += "; of the others ";
      if (made) out += made == 1 ? "its value is made up by the seed" : "their values are made up by the seed";
    } else {
      out = "constants that later stages elide ({...}) have the values that earlier ones have";
    }
    for (const std::string& p : problems_) out += "; " + p;
    if (!merged_.empty())
      out += fmt::format("; treated as equal, for one takes the other's place: {}", fmt::join(merged_, ", "));
    if (!inverse_.empty()) out += fmt::format("; treated as {}", fmt::join(inverse_, ", "));
    for (const Anew& a : anew_) out += fmt::format("; {}: {}", name_of(a.stage), a.why);
    return own_ < count_ || !anew_.empty() ? out + "; whole ones are dumped with --xla_dump_large_constants=true" : out;
  }

 private:
  static void fill(Module& m, InstId i, Value v) {
    v.shape = m.shape_id(i);
    m.set_literal(i, m.u().literal(literal_of_value(m.u(), v)));
  }

  std::string name_of(size_t stage) const { return paths_[stage].substr(paths_[stage].rfind('/') + 1); }

  void begin_anew(size_t stage, std::string why) {
    auto at = std::lower_bound(anew_.begin(), anew_.end(), stage,
                               [](const Anew& a, size_t number) { return a.stage < number; });
    if (at == anew_.end() || at->stage != stage) anew_.insert(at, {stage, std::move(why)});
  }

  void follow() {
    if (followed_) return;
    followed_ = true;
    // Each round takes two made-up constants for one; then all is followed anew.
    for (;;) {
      known_.clear(), anew_.clear(), again_ = false;
      std::vector<std::string> before;
      for (size_t k = 0; k < paths_.size() && !again_; ++k) {
        std::vector<std::string> lines = texts_ ? elided_lines(read_file(paths_[k])) : std::vector<std::string>();
        if (k == 0)
          begin();
        else if (texts_ && lines == before)
          known_.push_back(known_[last_]);
        else if (!step(k))
          continue;  // the next one is held against what was read before
        last_ = k, before = std::move(lines);
      }
      if (!again_) return;
    }
  }

  void begin() {
    std::unique_ptr<Module> first = load_(0);
    const std::vector<InstId> elided = first->elided_constants();
    count_ = elided.size(), own_ = 0, last_ = 0;
    if (texts_ && count_ && !own_constants_) read_own(*first);
    auto out = std::make_shared<KnownConstants>();
    for (InstId i : elided) {
      const Value* own = own_constants_ ? own_constants_->find(*first, i) : nullptr;
      own_ += own != nullptr;
      (*out)[std::string(first->inst_name(i))] = own ? KnownConstant{*own, {}} : made_up(0, *first, i);
    }
    if (own_constants_) files_ = own_constants_->files(), problems_ = own_constants_->problems();
    known_.push_back(std::move(out));
  }

  std::string folder() const {
    const size_t slash = paths_[0].rfind('/');
    return slash == std::string::npos ? "." : paths_[0].substr(0, slash);
  }

  void read_own(const Module& first) {
    own_constants_ = std::make_unique<OwnConstants>(first.universe());
    std::vector<std::string> names;
    for (size_t k = 0; k < paths_.size(); ++k) names.push_back(name_of(k));
    own_constants_->read_dump(folder(), names, first);
  }

  const Value* own_value(size_t k, const Module& m, InstId i) {
    if (!texts_) return nullptr;
    if (!own_constants_) own_constants_ = std::make_unique<OwnConstants>(m.universe());
    own_constants_->read_dump(folder(), {name_of(k)}, m);
    const Value* out = own_constants_->find(m, i);
    files_ = own_constants_->files(), problems_ = own_constants_->problems();
    return out;
  }

  KnownConstant made_up(size_t stage, const Module& m, InstId i) {
    const auto [at, fresh] = numbers_.try_emplace({stage, std::string(m.inst_name(i))}, names_.size());
    const size_t n = at->second;
    if (fresh)
      names_.emplace_back(m.inst_name(i)), shapes_.push_back(m.shape(i)), one_of_.push_back(n), of_.push_back({});
    const size_t as = one_of(n);
    // Drawn once, for the one whose place the others take. Far from the parameters' leaves.
    if (!of_[as].data) {
      of_[as] = seeded_input(m.u(), m.shape_id(i), inputs_.seed, (uint64_t{1} << 32) + as, inputs_.positive);
      fit_value(m, i, &of_[as]);
    }
    return {of_[as], {n}};
  }

  size_t one_of(size_t n) const {
    while (one_of_[n] != n) n = one_of_[n];
    return n;
  }

  std::unique_ptr<Module> readable(size_t k) {
    try {
      return load_(k);
    } catch (const Failure&) {
      if (interrupted()) throw;
      return nullptr;
    }
  }

  // False where the stage cannot be read, which whoever judges it tells.
  bool step(size_t k) {
    const std::unique_ptr<Module> now = readable(k);
    if (!now) {
      known_.push_back(std::make_shared<KnownConstants>());
      return false;
    }
    // A stage whose constants are those before it was not read yet.
    std::unique_ptr<Module> before = readable(last_);
    while (!before && last_ > 0) before = readable(--last_);
    if (!before) {
      known_.push_back(std::make_shared<KnownConstants>());
      return false;
    }
    const Users users(*before, *now);
    ConstantValues values(*before, *known_[last_]);
    auto out = std::make_shared<KnownConstants>();
    std::set<std::string, std::less<>> present;
    for (InstId i : now->elided_constants()) present.emplace(now->inst_name(i));
    for (InstId i : now->elided_constants()) {
      std::optional<KnownConstant> value = value_of(*before, *now, i, users, values, present);
      if (again_) return true;
      if (!value || value->bases.empty()) {
        // By the stage's own file where that is not what made-up values lead to.
        if (const Value* own = own_value(k, *now, i)) value = KnownConstant{*own, {}};
      }
      if (!value) {
        begin_anew(k, fmt::format("nothing records the value of constant {}, which is elided ({{...}}): it was folded, "
                                  "or taken from elsewhere, out of values that are not known",
                                  now->inst_name(i)));
        value = made_up(k, *now, i);
      }
      later_ = true;
      (*out)[std::string(now->inst_name(i))] = std::move(*value);
    }
    known_.push_back(std::move(out));
    return true;
  }

  // Which operands of the stage before stand where a constant of the next stage does, user by user.
  class Users {
   public:
    Users(const Module& before, Module& now) : before_(before), now_(now), pairs_(before, now) {
      for (CompId c : before.computations())
        for (InstId i : before.live_order(c)) by_name_[before.inst_name(i)] = i;
      now.ensure_users();
    }
    std::vector<InstId> read_before(InstId i) const {
      std::vector<InstId> out;
      for (InstId user : now_.users_copy(i)) {
        const InstId was = before(user);
        if (!was.valid() || before_.op(was) != now_.op(user) || before_.operand_count(was) != now_.operand_count(user))
          continue;
        for (size_t o = 0; o < now_.operand_count(user); ++o)
          if (now_.operand(user, o) == i && same_array(before_.shape(before_.operand(was, o)), now_.shape(i)))
            out.push_back(before_.operand(was, o));
      }
      return out;
    }
    // Is there a reader that has all other operands as before?
    bool surely_read(InstId i) const {
      const std::vector<InstId> users = now_.users_copy(i);
      return std::any_of(users.begin(), users.end(), [&](InstId user) {
        const InstId was = before(user);
        if (!was.valid() || before_.op(was) != now_.op(user) || before_.operand_count(was) != now_.operand_count(user))
          return false;
        for (size_t o = 0; o < now_.operand_count(user); ++o)
          if (now_.operand(user, o) != i && before(now_.operand(user, o)) != before_.operand(was, o)) return false;
        return true;
      });
    }
    InstId named(std::string_view name) const {
      auto at = by_name_.find(name);
      return at == by_name_.end() ? InstId() : at->second;
    }

   private:
    InstId before(InstId user) const {
      const InstId was = pairs_.first(user);
      return was.valid() ? was : named(now_.inst_name(user));
    }
    const Module& before_;
    const Module& now_;
    Matching pairs_;
    std::map<std::string_view, InstId> by_name_;
  };

  std::optional<KnownConstant> value_of(const Module& before, const Module& now, InstId i, const Users& users,
                                        ConstantValues& values, const std::set<std::string, std::less<>>& present) {
    std::optional<KnownConstant> out;
    const InstId same_name = users.named(now.inst_name(i));
    if (same_name.valid() && before.op(same_name) == Opcode::Constant &&
        same_array(before.shape(same_name), now.shape(i)))
      out = values.of(same_name);
    const bool named = out.has_value();
    for (InstId other : users.read_before(i)) {
      std::optional<KnownConstant> read = values.of(other);
      if (!read || (out && same_bytes(out->value, read->value))) continue;
      if (!out) {
        out = std::move(read);
        continue;
      }
      // What still stands was exchanged, which is for the judge to find; what is gone was taken for the other.
      if (named && before.op(other) == Opcode::Constant && present.count(before.inst_name(other))) continue;
      if (take_for_one(out->bases, read->bases)) return std::nullopt;
      if (!named) return std::nullopt;
    }
    return out ? out : reciprocal(before, now, i, values);
  }

  // algsimp makes `divide(x, c)` `multiply(x, 1 / c)`: of the constant that is gone, if there is one alone that i may
  // be of, by what stands at both.
  std::optional<KnownConstant> reciprocal(const Module& before, const Module& now, InstId i, ConstantValues& values) {
    if (!is_float(now.shape(i).type) && !is_complex(now.shape(i).type)) return std::nullopt;
    for (InstId user : now.users_copy(i))
      if (now.op(user) != Opcode::Multiply) return std::nullopt;
    InstId of;
    for (InstId c : before.elided_constants()) {
      if (!same_array(before.shape(c), now.shape(i)) || op_name_of(before, c) != op_name_of(now, i)) continue;
      const std::vector<InstId> users = before.users_copy(c);
      const bool divides = std::any_of(users.begin(), users.end(), [&](InstId user) {
        return before.op(user) == Opcode::Divide && before.operand(user, 1) == c;
      });
      if (!divides) continue;
      if (of.valid()) return std::nullopt;
      of = c;
    }
    std::optional<KnownConstant> known = of.valid() ? values.of(of) : std::nullopt;
    if (!known) return std::nullopt;
    Value& v = known->value;
    const Shape& s = now.shape(i);
    const int width = storage_bytes(s.type);
    for (int64_t k = 0, n = s.elements_count(); k < n; ++k) {
      char* at = v.mutable_bytes() + k * width;
      if (is_complex(s.type)) {
        store_complex(s.type, at, 1.0 / load_complex(s.type, at));
      } else {
        store_double(s.type, at, 1 / load_double(s.type, at));
      }
    }
    const std::string which = fmt::format("{} the reciprocal of {}", now.inst_name(i), before.inst_name(of));
    if (std::find(inverse_.begin(), inverse_.end(), which) == inverse_.end()) inverse_.push_back(which);
    return known;
  }

  // True where something new was learnt.
  bool take_for_one(const std::vector<size_t>& a, const std::vector<size_t>& b) {
    if (a.size() != b.size()) return false;
    for (size_t n = 0; n < a.size(); ++n) {
      const size_t x = one_of(a[n]), y = one_of(b[n]);
      if (x == y || !same_array(shapes_[x], shapes_[y])) continue;
      one_of_[std::max(x, y)] = std::min(x, y);
      merged_.push_back(fmt::format("{} and {}", names_[std::min(x, y)], names_[std::max(x, y)]));
      again_ = true;
    }
    return again_;
  }

  std::vector<std::string> paths_;
  Load load_;
  InputOptions inputs_;
  bool followed_ = false, again_ = false, texts_ = true;
  bool later_ = false;          // stages behind the first have elided constants of their own
  size_t count_ = 0, own_ = 0;  // elided constants of the first stage; those of them that files have whole
  size_t last_ = 0;             // the last stage that was read
  std::map<std::pair<size_t, std::string>, size_t> numbers_;  // of made-up constants, by stage and name
  std::vector<std::string> names_;                            // of them, by number
  std::vector<Shape> shapes_;                                 // the same
  std::vector<Value> of_;                                     // the same; those that others are taken for have none
  std::vector<size_t> one_of_;                                // by number: the one that it is taken for
  std::vector<std::string> merged_, inverse_, files_, problems_;
  std::unique_ptr<OwnConstants> own_constants_;
  std::vector<std::shared_ptr<KnownConstants>> known_;  // by stage
  std::vector<Anew> anew_;                              // by stage
};

ElidedConstants::ElidedConstants(std::vector<std::string> paths, Load load, const InputOptions& inputs)
    : follower_(std::make_unique<Follower>(std::move(paths), std::move(load), inputs)) {}
ElidedConstants::~ElidedConstants() = default;
void ElidedConstants::settle(size_t stage, Module& m) { follower_->settle(stage, m); }
const std::vector<ElidedConstants::Anew>& ElidedConstants::anew() { return follower_->anew(); }
bool ElidedConstants::folds_made_up(size_t good, size_t bad) { return follower_->folds_made_up(good, bad); }
void ElidedConstants::settle_pair(Module& first, Module& second, const InputOptions& inputs,
                                  const std::string& second_spec, std::string* told) {
  if (first.elided_constants().empty() && second.elided_constants().empty()) return;
  for (const std::string& own : {take_own_values(first, inputs.place), take_own_values(second, second_spec)})
    if (!own.empty()) *told += (told->empty() ? "" : "; ") + own;
  if (first.elided_constants().empty() && second.elided_constants().empty()) return;
  if (!inputs.fill_elided.empty()) {
    settle_elided(first, inputs), settle_elided(second, inputs);
    return;
  }
  const std::unique_ptr<Module> kept[2] = {first.clone(), second.clone()};
  auto load = [&](size_t k) { return kept[k]->clone(); };
  ElidedConstants both({first.name(), second.name()}, load, inputs);
  both.follower_->read_no_texts();
  if (!both.anew().empty()) fail(FailureKind::kUnsupported, "{}: {}", second.name(), both.anew()[0].why);
  both.settle(0, first), both.settle(1, second);
  if (std::string more = both.told(); !more.empty()) *told += (told->empty() ? "" : "; ") + more;
}
std::string ElidedConstants::told() const { return follower_->told(); }

}  // namespace hlo
