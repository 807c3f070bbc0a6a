// A pass is a function plus one row in passes.def. Passes know nothing of stages, dumps or viewers.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
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

class PassContext {
 public:
  std::map<std::string, std::string> options;
  int64_t fuel = INT64_MAX;  // rewrites left
  int64_t rewrites = 0;      // rewrites done
  bool keep_notes = true;
  size_t max_notes = 20000;
  std::vector<Note> notes;
  // Called by passes that show their inner steps (copy-insertion), with the step's name.
  std::function<void(std::string_view)> on_step;

  void step(std::string_view name) const {
    if (on_step) on_step(name);
  }

  bool flag(std::string_view key, bool absent) const {
    auto found = options.find(std::string(key));
    return found == options.end() ? absent : found->second == "true" || found->second == "1" || found->second.empty();
  }
  int64_t number(std::string_view key, int64_t absent) const;

  // Asks for one rewrite. False when the fuel is spent: the rule must leave the module alone.
  bool spend(const Module& m, std::string_view rule, std::initializer_list<InstId> insts, std::string_view text = {});
  // A decision that rewrites nothing.
  void note(const Module& m, std::string_view rule, std::initializer_list<InstId> insts, std::string_view text = {});
};

// Returns whether it changed the module. Throws Failure naming the instruction when it cannot treat one.
using PassFunction = bool (*)(Module&, PassContext&);

struct PassInfo {
  std::string_view name;     // XLA's own name today, or of 2019 where the pass is gone
  std::string_view aliases;  // other names, blank separated
  std::string_view summary;
  std::string_view options;  // `name=default` words
  PassFunction run;          // null: not implemented
};

std::span<const PassInfo> all_passes();
// By name or alias; null where nobody has it.
const PassInfo* find_pass(std::string_view name);
std::string_view nearest_pass(std::string_view name);
// For tests: `find_pass` gives this in the place of the pass of that name, until it is called with null.
void override_pass_for_test(const PassInfo* pass);

// The options that XLA gives the pass where that pipeline calls it (algsimp before and after layouts).
std::map<std::string, std::string> call_site_options(std::string_view pass, std::string_view pipeline);

}  // namespace hlo
