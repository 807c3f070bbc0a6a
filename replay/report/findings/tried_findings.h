// What `open --try` said of findings, as JSON: of its answer (docs/schemas/open.json), and tried.json of a page.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/report/findings/findings.h"

namespace hlo {

inline constexpr const char* kTriedFile = "tried.json";
// The advice of a finding whose change was made and is of no use.
inline constexpr const char* kNoAdvice = "no advice: changed so, it gains nothing";

// `tried` of one finding.
nlohmann::ordered_json tried_json(const FindingTried& t);

struct TriedFinding {
  std::string kind, instruction;
  nlohmann::ordered_json tried;  // tried_json's keys
  bool useless = false;          // made, compiled, and it gains nothing
};

// tried.json of module `number`, `name` from what `open --try --json` printed; empty where the answer has no such
// module or tried nothing of it. Throws Failure(kIo) where it is no such answer.
std::string tried_page(const std::string& answer, const std::string& label, int number, const std::string& name);
// Strictly: a page's file may be anybody's. Throws Failure(kIo).
std::vector<TriedFinding> read_tried_page(const std::string& text, const std::string& label);

}  // namespace hlo
