// Pages that open from the file system, without a network: one a stage, and the index that steps through them.
#pragma once
#include <string>
#include <vector>

#include "replay/recording.h"

namespace hlo {

std::string stage_page(const StageRow& row, const std::string& svg, const std::vector<std::string>& removed,
                       bool partial);
std::string index_page(const Recording& r);

// Texts of viewer/assets, put into the program by the build.
extern const char* const kIndexTemplate;
extern const char* const kStageTemplate;

}  // namespace hlo
