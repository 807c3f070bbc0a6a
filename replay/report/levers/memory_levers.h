// What may make a program need less memory: changes of the program in front of the passes and of how it is compiled,
// each as something that can be compiled. Nothing is said to help here: who compiles them sees.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "replay/report/explain/evidence.h"
#include "replay/report/memory/memory_orders.h"
#include "replay/report/memory/memory_report.h"
#include "replay/report/overview/overview.h"

namespace hlo {

struct MemoryLever {
  std::string kind;                // donate, rematerialize, leave-out-pass, flag
  std::string words;               // what is changed
  std::string how;                 // what a user writes for it
  std::string source;              // the line that it is about; empty: none
  int64_t foretold = -1;           // bytes that it frees at the peak at most; -1: not foretold
  std::unique_ptr<Module> module;  // the first stage, changed; null: as it is
  std::set<std::string> disabled;  // passes to be left out
  std::string flags;               // XLA_FLAGS; only an installed XLA takes them
  std::string why_not;             // why it cannot be tried; empty: it can
};

// Levers for the module of `o`, whose memory is known, the most foretold first. `first` is its first stage, left alone;
// `stages` what each stage needs; `flags`: those of an installed XLA for `platform`, too. Never throws for what the
// modules hold.
std::vector<MemoryLever> memory_levers(const ModuleOverview& o, const Module& first,
                                       const std::vector<StagePeak>& stages, bool flags);

// The first stage with what these lines compute computed again where the backward pass reads it, behind a barrier that
// ties it to what the backward pass has so far, as jax.checkpoint does. Null where nothing of theirs is read there;
// `recomputed`: instructions that are now there twice. What is the backward pass is told by jax's op_names alone
// (`transpose(`). What is made verifies.
std::unique_ptr<Module> recomputed_backward(const Module& first, const std::set<std::string>& lines,
                                            size_t* recomputed);

}  // namespace hlo
