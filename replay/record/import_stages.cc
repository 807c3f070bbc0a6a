#include "ir/base/check.h"
#include "parser/parser.h"
#include "replay/confined_path.h"
#include "replay/files.h"
#include "replay/progress.h"
#include "replay/record/import.h"
#include "replay/record/match.h"

namespace hlo {

std::shared_ptr<Lineage> import_stages(Recording& r) {
  auto universe = std::make_shared<Universe>();
  auto lineage = std::make_shared<Lineage>(universe);
  Progress progress("matching the stages of " + r.folder);
  size_t seen = 0;
  std::string last_text;
  for (StageRow& row : r.rows) {
    if (interrupted()) fail(FailureKind::kUsage, "interrupted");
    progress.at(seen++, r.rows.size(), row.file);
    bool first = lineage->size() == 0;
    if (!first) row.stage = static_cast<int>(lineage->size() - 1);
    row.before = row.after = first ? 0 : lineage->stage(lineage->size() - 1).instruction_count();
    row.added = row.removed = row.modified = 0;
    if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
    try {
      std::string text = read_confined(r.folder, row.file);
      if (!first && text == last_text) continue;
      ParseOptions parse;
      parse.file = r.folder + "/" + row.file;
      auto m = parse_module(text, universe, parse);
      size_t k =
          first ? lineage->add(*m, {}) : lineage->add(*m, match_stages(*lineage->module(lineage->size() - 1), *m));
      last_text = std::move(text);
      StageDiff d = lineage->changes(k);
      row.stage = static_cast<int>(k);
      row.after = lineage->stage(k).instruction_count();
      if (first) row.before = row.after;
      row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
    } catch (const Failure& e) {
      if (e.kind() == FailureKind::kInternal) throw;
      std::string what = e.what();
      r.problems.push_back(row.file + ": " + what.substr(0, what.find('\n')));
      row.stage = -1;
    }
  }
  if (lineage->size() == 0) fail(FailureKind::kIo, "no stage of {} can be read", r.folder);
  return lineage;
}

}  // namespace hlo
