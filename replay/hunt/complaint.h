// What somebody complains of, and what a log or the text of a crash tells of it by itself.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/hunt/last_words.h"

namespace hlo {

enum class Complaint {
  kWrong,
  kNan,
  kCrash,
  kHang,
  kMemory,
  kSlow,
  kCompileTime,
  kRanksDiffer,
  kNotReproducible,
};
inline constexpr std::array<std::string_view, 9> kComplaintNames = {
    "wrong", "nan", "crash", "hang", "memory", "slow", "compile-time", "ranks-differ", "not-reproducible"};
std::string_view complaint_name(Complaint c);
std::optional<Complaint> find_complaint(std::string_view name);

// A buffer that XLA lists beside what it has no memory for.
struct NamedBuffer {
  std::string size;                          // in XLA's words: `6.00MiB`
  std::string what, shape, op_name, source;  // what: `fusion.12 = …` or a label; source: `model.py:12`
};

// What the text of a program that died says.
struct Evidence {
  std::optional<Complaint> complaint;  // none: no line is known to tell of a fault
  std::string line;                    // that says so
  LastWords words;
  // `Failed after PASS`: XLA's own check behind a pass refused the module; empty where it says nothing of the kind.
  std::string refused_after;
  std::string refused_why;
  std::string below, below_line;      // what failed below HLO, and the line that says so; empty: none is told
  std::vector<std::string> in_files;  // passes named like the files of failed checks
  std::string instruction, source;    // that a message names; empty where none does
  std::vector<NamedBuffer> buffers;   // in the order of the text, the first 20
};
// `known`: names of passes.
Evidence evidence_of(std::string_view log, const std::vector<std::string>& known);

}  // namespace hlo
