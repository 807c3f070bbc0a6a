// What the autotuner chose, kernel by kernel: of a dump's stages, of a module alone, and of the files of its results;
// and what two of them chose otherwise.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/library/tuning.h"
#include "ir/library/tuning_key.h"
#include "replay/record/recording/recording.h"

namespace hlo {

// What a kernel sums, as far as its operations tell.
struct KernelSum {
  double terms = 0;        // of its longest sum; 0: it sums nothing
  bool exact = true;       // whole numbers, or arithmetic that no order changes
  bool rounds = false;     // it computes with floating point at all
  double unit = 0;         // rounding of one addition, relative: 2^-24 for sums in f32
  double result_unit = 0;  // … of what it writes
  bool may_multiply_in_tf32 = false;
  // Of sums in two orders, relative to the sum of the terms' magnitudes: as errors by chance add up, and at most.
  double usual() const;
  double most() const;
};
KernelSum kernel_sum(const Module& m, InstId kernel);

struct TunedKernel {
  std::string name;     // as the autotuner found it; of a module alone, its instruction
  std::string became;   // the call that stands in its place; empty: itself
  std::string key;      // tuning_key() before the choice; empty where no stage shows that
  std::string content;  // kernel_content_key(): the same work, whatever was chosen
  std::string op_name;
  std::optional<TuningConfig> chosen;    // what the module has after the choice; nothing: not known
  std::optional<TuningConfig> before;    // what it had before, where that says something
  const TuningChoice* result = nullptr;  // of the files
  const TuningResults* file = nullptr;   // which one
  bool agrees = true;                    // `result` says what the module has, as far as both tell
  KernelSum sum;
};

struct TunedModule {
  std::string selector, name;        // of the run; empty of a file
  std::string before_stage, stage;   // where the choice was not made and where it was; before: empty: no stage shows it
  std::vector<TunedKernel> kernels;  // as they stand in the module
  std::string problem;               // why it could not be read; empty
};

// `files` must outlive what is returned.
TunedModule tuned_module(const Module* before, const Module& after, const std::vector<TuningResults>& files);
// The stages in front of and behind the autotuner's pipeline, else the last one, read and joined. Throws Failure.
TunedModule tuned_module(const Recording& recording, const std::vector<TuningResults>& files);

// Does a stage of it show the autotuner's work?
bool shows_tuning(const Recording& recording);
// A kernel that the autotuner chose for, and what it chose: `Triton: 128x256x128, … (config-assigner…, FILE:12)`.
struct TunedInWords {
  std::string name, became, text;  // became: empty: itself
};
// Of all kernels of the modules; `problems`: what could not be read.
std::vector<TunedInWords> choices_in_words(const std::string& folder, const std::vector<Recording>& modules,
                                           std::vector<std::string>* problems);
// Of the kernel that the instruction is, under one of these names, and those that stand there instead: `Triton:
// 128x256x128, … (config-assigner…, FILE:12)`. Nothing where no kernel has such a name or no stage shows the choice.
std::vector<std::string> choice_in_words(const std::string& folder, const std::vector<Recording>& modules,
                                         const std::vector<std::string>& names);

// Files of the autotuner's results that belong to a run: those in its folder with a choice in them, and those beside it
// (…/NAME.pbtxt for …/dump). What cannot be read is told in `problems`.
std::vector<TuningResults> tuning_files(const std::string& folder, const std::vector<Recording>& modules,
                                        std::vector<std::string>* problems);

// What a run's kernels were given, by what they do: for passes of ours (tuning_word()). Of its files where they tell,
// else of its stages; `of` the autotuner's results by themselves are given as they are.
TuningResults tuning_of_run(const std::vector<TunedModule>& modules);

// Entries that no kernel of the modules has the key of.
std::vector<std::pair<const TuningResults*, const TuningChoice*>> unused_choices(
    const std::vector<TuningResults>& files, const std::vector<TunedModule>& modules);

// One content that both have, with what each chose.
struct TuningChange {
  std::string content;
  std::vector<std::string> first_names, second_names;
  std::optional<TuningConfig> first, second;
  KernelSum sum;
  std::vector<std::string> what;  // `back end`, `tiles`, `split-K`, `algorithm`, `settings`; `unknown`
  std::string numbers;            // what that does to results, in words
  double usual = 0, most = 0;     // of that, relative; most 0: nothing. Negative: not known
};
struct TuningComparison {
  size_t same = 0;                                   // contents with the same choice
  std::vector<TuningChange> changes;                 // most of numbers first
  std::vector<std::string> only_first, only_second;  // kernels of which the other has no like
  size_t unknown = 0;                                // of changes: a side does not tell
};
TuningComparison compare_tuned(const TunedModule& first, const TunedModule& second);
// Does what was chosen explain a difference of results, relative to their largest magnitude? In words.
std::string explains_difference(const TuningComparison& c, double difference);

}  // namespace hlo
