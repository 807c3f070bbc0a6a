// Loops, trip by trip: what a pass makes of several trips (peeled, unrolled, one trip's message begun in the one
// before) is what these trips make.
#include "replay/judge/chosen/walk/expression_walk.h"

namespace hlo {
namespace {

constexpr size_t kMostTrips = 512, kMostVisits = 100'000;

}  // namespace

std::optional<ExprTree> ExpressionWalk::followed(InstId i, const ExprTree& init) {
  ExprTree state = init;
  const CompId body = m_.attrs(i).comp(Attr::body), condition = m_.attrs(i).comp(Attr::condition);
  for (size_t trips = 0;; ++trips) {
    const ExprTree goes_on = called(condition, {state});
    const std::optional<int64_t> go = goes_on.id == kNoExpr ? std::nullopt : trips_->number(goes_on.id);
    if (!go || trips > kMostTrips || out_.visits.size() > kMostVisits) return {};
    if (!*go) {
      ++trips_->loops;
      return state;
    }
    state = called(body, {state});
    state.shape = m_.shape_id(i);
  }
}

}  // namespace hlo
