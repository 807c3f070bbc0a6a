// What the answers of explain share: names in stages and in other files.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/record/recording/recording.h"

namespace hlo {

std::string stage_label(const StageRow& row);  // `0012 pipeline.after_pass`
// The row that made each stage of the lineage; null where none says so.
std::vector<const StageRow*> rows_of_stages(const Recording& r, const Lineage& lineage);

// An instruction begins to carry a name.
struct Sighting {
  size_t stage;
  InstId id;
};
std::vector<Sighting> sightings(const Lineage& lineage, const std::string& name);  // by stage, then by id
// The nearest name of any stage; empty where none is near.
std::string nearest_name(const Lineage& lineage, const std::string& name);

// Does the line hold the name as a whole word?
bool names_it(std::string_view line, std::string_view name);
// The first lines of the recording's other files that name it. `part_of_name` tells which files, `start` how the lines
// begin.
std::vector<std::string> lines_with(const Recording& r, std::string_view part_of_name, const std::string& name,
                                    std::string_view start = {});

// Every decision in the recording's priority_fusion_dump (XLA's), in order: its file, what it is (fusion,
// producer_ineligible …) and the lines `key: value` that it holds.
void each_dumped_decision(const Recording& r, const std::function<void(const std::string& file, const std::string& kind,
                                                                       const std::vector<std::string>& values)>& see);

// `a` of the first line `key: "a"`; empty where there is none.
std::string dumped_value(const std::vector<std::string>& lines, std::string_view key);
// A number that is not negative; nothing where there is none of that key, or what is there is none.
std::optional<double> dumped_number(const std::vector<std::string>& lines, std::string_view key);

}  // namespace hlo
