// A pass is a function plus one row in passes.def. Passes know nothing of stages, dumps or viewers.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace hlo {

// What a pass decided, and where: "why fused", "which rule rewrote this" come from these.
struct Note {
  std::string rule;
  std::vector<std::string> names;  // instructions, by the name they had
  std::vector<InstId> insts;       // the same ones
  std::string text;                // numbers behind the decision; may be empty
  int64_t rewrite = 0;             // which one of the run, from 1; 0: a decision that rewrites nothing
};

// Notes as a pass takes them, mostly one a rewrite: without a list and strings for each. Those are made when the run is
// over, after its time.
class NoteLog {
 public:
  size_t size() const { return entries_.size(); }
  void add(const Module& m, std::string_view rule, std::initializer_list<InstId> insts, std::string_view text,
           int64_t rewrite);
  // Of a pass within, after so many rewrites of the one around it.
  void append(const NoteLog& inner, int64_t rewrites);
  // None is of a later rewrite than this.
  void end_at(int64_t rewrite);
  std::vector<Note> notes(const Universe& u) const;

 private:
  struct Entry {
    uint32_t rule_at, rule_size, text_at, text_size;  // in texts_
    uint32_t first, count;                            // in named_
    int64_t rewrite;
  };
  std::string_view part(size_t at, size_t size) const { return std::string_view(texts_).substr(at, size); }
  std::vector<Entry> entries_;
  std::vector<std::pair<InstId, StrId>> named_;  // by the name that it had
  std::string texts_;
};

struct ScopeOptions;
struct PassInfo;

class PassContext {
 public:
  // As the row in passes.def has them; the scope adds those that are not given.
  std::map<std::string, std::string> options;
  int64_t fuel = INT64_MAX;  // rewrites left
  int64_t rewrites = 0;      // rewrites done
  bool keep_notes = true;
  size_t max_notes = 20000;
  NoteLog notes;
  // Called by passes that show their inner steps (copy-insertion), with the step's name.
  std::function<void(std::string_view)> on_step;

  void step(std::string_view name) const {
    if (on_step) on_step(name);
  }

  // Options of the pass's own row.
  bool flag(std::string_view key) const { return word(key) == "true"; }
  int64_t number(std::string_view key) const;
  const std::string& word(std::string_view key) const;

  // What XLA's pass says of a run like this, where that is not whether it changed something: rounds of a pipeline go by
  // it. A pass returns what is true.
  void claim(bool changed) { claimed_ = changed; }
  std::optional<bool> claimed() const { return claimed_; }
  // Of a scheduled module: what the pass has added to the computation runs where the pass put it, not as soon as it
  // can.
  void keep_order(CompId c) { kept_orders_.insert(c); }
  bool keeps_order(CompId c) const { return kept_orders_.contains(c); }
  // Runs another pass inside of this one, on the same fuel and with its notes among this one's: whether it changed
  // something. Its options are those of its row but for `given`.
  bool run(Module& m, std::string_view pass, std::map<std::string, std::string> given = {});

  // Asks for one rewrite. False when the fuel is spent: the rule must leave the module alone.
  bool spend(const Module& m, std::string_view rule, std::initializer_list<InstId> insts, std::string_view text = {});
  // A decision that rewrites nothing.
  void note(const Module& m, std::string_view rule, std::initializer_list<InstId> insts, std::string_view text = {});

  // The rule that the fuel was last spent for, empty before the first, and the instruction.
  const std::string& last_rewrite() const { return last_rewrite_; }
  InstId last_instruction() const { return last_instruction_; }

 private:
  friend bool run_pass(Module&, const PassInfo&, PassContext&, const ScopeOptions&, struct PassEvent*);
  friend bool run_step(Module&, std::string_view, const std::function<bool(Module&, PassContext&)>&,
                       const ScopeOptions&, struct PassEvent*);
  // run_pass, with the notes left in the context.
  static void run_in_context(Module& m, const PassInfo& pass, PassContext& context, const ScopeOptions& options,
                             struct PassEvent* event);
  std::optional<bool> claimed_;
  std::unordered_set<CompId> kept_orders_;
  std::string last_rewrite_;
  InstId last_instruction_;
  const ScopeOptions* inner_ = nullptr;  // of passes inside
};

// Returns whether it changed the module: the scope (passes/scope.h), through which all of them run, holds it to that.
// Throws Failure naming the instruction when it cannot treat one.
using PassFunction = bool (*)(Module&, PassContext&);

struct PassInfo {
  std::string_view name;     // XLA's own name today, or of 2019 where the pass is gone
  std::string_view aliases;  // other names, blank separated
  std::string_view summary;
  std::string_view options;  // `name=default` words, see PassOption
  // Why all that it does counts as one rewrite: what lies between its rewrites is no right module. Empty: each is one.
  std::string_view atomic;
  PassFunction run;              // null: not implemented
  bool asks_user_order = false;  // what it makes hangs on the order of an array's users, which no stage's file tells
};

// Of the type that its default has: `true` or `false`, a number, or a word.
struct PassOption {
  enum Type { kFlag, kNumber, kWord } type = kWord;
  std::string_view name, absent;
};
std::vector<PassOption> options_of(const PassInfo& pass);
// Throws Failure(kUsage), saying what there is, where the pass has no such option or it does not take that value. A
// flag named alone is on; 1 and 0 are true and false: gives the value as the pass reads it.
std::string checked_option(const PassInfo& pass, const std::string& name, const std::string& value);
// Puts into `options` those of `given` that the pass has: what all passes are told of a GPU, say.
void take_options(const PassInfo& pass, const std::map<std::string, std::string>& given,
                  std::map<std::string, std::string>* options);
// Adds the defaults of those that are not there. Throws as above.
void complete_options(const PassInfo& pass, std::map<std::string, std::string>* options);

std::span<const PassInfo> all_passes();
// By name or alias; null where nobody has it.
const PassInfo* find_pass(std::string_view name);
std::string_view nearest_pass(std::string_view name);
// For tests: `find_pass` gives this in the place of the pass of that name, until it is called with null.
void override_pass_for_test(const PassInfo* pass);

}  // namespace hlo
