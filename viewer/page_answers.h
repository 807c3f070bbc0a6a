// Answers of the engine that a page without one carries.
#pragma once
#include <string>
#include <vector>

#include "viewer/archive.h"
#include "viewer/page_file.h"

namespace hlo {

// `answers.json`, the questions as a list of texts, and `answers/N.json`, the answer to question N. A question is its
// JSON with members by name and without those that are null. What does not fit into `most` packed bytes is told in
// `notices`. Throws Failure where interrupted.
std::vector<ArchiveFile> carried_answers(const PageContents& contents, size_t most, std::vector<std::string>* notices);

}  // namespace hlo
