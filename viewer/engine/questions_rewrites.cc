// Rewrite by rewrite within one run of a pass.
#include "ir/base/check.h"
#include "viewer/engine/session.h"

namespace hlo {
namespace {

// The recording's row; throws where there is none.
const StageRow& asked_row(PageSession& session, const Question& q, size_t* row) {
  PageModule& m = session.module(static_cast<uint32_t>(q.number("module", 0, INT32_MAX)));
  *row = static_cast<size_t>(q.number("row", 0, INT32_MAX));
  if (*row >= m.recording.rows.size())
    fail(FailureKind::kUsage, "the module has no row {}: it has {}", *row, m.recording.rows.size());
  return m.recording.rows[*row];
}

Json q_rewrites(PageSession& session, const Question& q) {
  q.only({"module", "row"});
  size_t row = 0;
  const StageRow& r = asked_row(session, q, &row);
  Json list = Json::array();
  for (const Note& n : r.notes) {
    if (n.rewrite < 1) continue;
    Json ids = Json::array();
    for (size_t k = 0; k < n.names.size(); ++k)
      ids.push_back({{"name", n.names[k]}, {"id", k < n.insts.size() ? json_of(n.insts[k]) : Json()}});
    list.push_back({{"index", n.rewrite}, {"rule", n.rule}, {"text", n.text}, {"ids", std::move(ids)}});
  }
  const PassInfo* pass = find_pass(r.pass);
  return {{"rewrites", std::move(list)}, {"atomic", pass ? pass->atomic : std::string_view()}};
}

Json q_rewrite_state(PageSession& session, const Question& q) {
  q.only({"module", "row", "count"});
  size_t row = 0;
  const StageRow& r = asked_row(session, q, &row);
  const int64_t count = q.number("count", 0, INT32_MAX);
  if (count > r.rewrites)
    fail(FailureKind::kUsage, "{} made {} rewrites in row {}, not {}", r.name(), r.rewrites, row, count);
  const StateRef at{session.rewrites_of(static_cast<uint32_t>(q.number("module", 0, INT32_MAX)), row),
                    static_cast<uint32_t>(count)};
  session.state(at);  // whether it can be made
  return {{"at", json_of(at)}};
}

}  // namespace

std::vector<NamedMethod> rewrite_methods() { return {{"rewrites", q_rewrites}, {"rewrite_state", q_rewrite_state}}; }

}  // namespace hlo
