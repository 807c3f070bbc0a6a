#include <algorithm>

#include "ir/base/check.h"
#include "parser/parser.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/progress.h"
#include "replay/record/files/input.h"
#include "replay/record/importer/proto_ids.h"
#include "replay/record/match/match.h"
#include "replay/record/recording/cache.h"
#include "replay/record/recording/import.h"

namespace hlo {
namespace {

// One stage after the other into a lineage.
class StageImport {
 public:
  explicit StageImport(Recording& r)
      : r_(r), universe_(std::make_shared<Universe>()), lineage_(std::make_shared<Lineage>(universe_)) {}

  std::shared_ptr<Lineage> run() {
    Progress progress("matching the stages of " + r_.folder);
    size_t seen = 0;
    for (StageRow& row : r_.rows) {
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
      progress.at(seen++, r_.rows.size(), row.file);
      bool first = lineage_->size() == 0;
      if (!first) row.stage = static_cast<int>(lineage_->size() - 1);
      row.before = row.after = first ? 0 : lineage_->stage(lineage_->size() - 1).instruction_count();
      row.added = row.removed = row.modified = 0;
      if (!row.file.ends_with(".txt") && !row.file.ends_with(".hlo")) continue;
      try {
        std::string text = read_confined(r_.folder, row.file);
        if (!first && text == last_text_) continue;
        add(row, std::move(text));
      } catch (const Failure& e) {
        if (e.kind() == FailureKind::kInternal) throw;
        std::string what = e.what();
        r_.problems.push_back(row.file + ": " + what.substr(0, what.find('\n')));
        row.stage = -1;
      }
    }
    if (lineage_->size() == 0) fail(FailureKind::kIo, "no stage of {} can be read", r_.folder);
    return lineage_;
  }

 private:
  void add(StageRow& row, std::string text) {
    ParseOptions parse;
    parse.file = r_.folder + "/" + row.file;
    auto m = parse_text(text, universe_, parse);
    ProtoIds ids = ids_beside(r_.folder, row.file);
    StageIds after;
    // The order of the text is kept: put into the proto's, most stages would print otherwise than they were dumped.
    if (!ids.empty()) after = ids.of(*m);
    const bool first = lineage_->size() == 0;
    size_t k = 0;
    if (first) {
      k = lineage_->add(*m, {});
    } else {
      auto before = lineage_->module(lineage_->size() - 1);
      StageIds earlier;
      MatchOptions options;
      if (!ids.empty() && !last_ids_.empty()) {
        earlier = last_ids_.of(*before);
        options.before = &earlier, options.after = &after;
      }
      StageMatch match = match_stages(*before, *m, options);
      auto stay =
          static_cast<size_t>(std::count_if(match.same.begin(), match.same.end(), [](InstId i) { return i.valid(); }));
      // No pass makes everything anew: even the partitioner keeps parameters' names.
      if (stay == 0 && match.heirs.empty() && m->instruction_count() > 8)
        r_.problems.push_back(row.file + ": has nothing in common with the stage before: files of two runs?");
      k = lineage_->add(*m, match);
    }
    last_text_ = std::move(text), last_ids_ = std::move(ids);
    StageDiff d = lineage_->changes(k);
    row.stage = static_cast<int>(k);
    row.after = lineage_->stage(k).instruction_count();
    if (first) row.before = row.after;
    row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
  }

  Recording& r_;
  std::shared_ptr<Universe> universe_;
  std::shared_ptr<Lineage> lineage_;
  std::string last_text_;
  ProtoIds last_ids_;
};

}  // namespace

std::shared_ptr<Lineage> import_stages(Recording& r) {
  const std::string key =
      r.keep_import && r.source == "xla" && !import_cache_folder().empty() ? import_key(r) : std::string();
  if (auto kept = cached_import(r, key)) return kept;
  const size_t problems = r.problems.size();
  auto lineage = StageImport(r).run();
  // What went wrong is told each time: only a whole import is kept.
  if (r.problems.size() == problems) keep_import(r, *lineage, key);
  return lineage;
}

}  // namespace hlo
