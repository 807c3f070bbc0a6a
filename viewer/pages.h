// Pages that open from the file system, without a network, made of templates. That of `view` is in page_file.h.
#pragma once
#include <string>
#include <vector>

#include "replay/compare/diff.h"
#include "replay/record/recording/recording.h"
#include "replay/report/measured/profile.h"

namespace hlo {

// `note`: what is to be known about the drawing, empty where it is whole.
std::string stage_page(const StageRow& row, const std::string& svg, const std::vector<std::string>& removed,
                       const std::string& note);
// The page of a stage whose text or graph is `file`.
std::string page_beside(const std::string& file);
// Every kind of difference, with a filter; `verdict` is the line above the table.
std::string diff_page(const std::string& first, const std::string& second, const std::string& verdict,
                      const ModuleDiff& diff);

// The modules of a run and what flows between them; a row: from, result, to, parameter, confidence, why.
std::string link_page(const std::string& title, const std::string& svg,
                      const std::vector<std::vector<std::string>>& rows);

// The stages of a recording of graphs (2018), each with its page beside where they are drawn.
std::string graphs_page(const Recording& r, bool drawn);

// Bars in time and a table by time.
std::string profile_page(const std::string& title, const Profile& profile);

// Texts of viewer/assets, put into the program by the build.
extern const char* const kStageTemplate;
extern const char* const kDiffTemplate;
extern const char* const kLinkTemplate;
extern const char* const kProfileTemplate;
extern const char* const kGraphsTemplate;

}  // namespace hlo
