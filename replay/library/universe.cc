#include "replay/library/access.h"

namespace hlo::api {
namespace {

thread_local char t_mark;
uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(&t_mark); }

constexpr const char* kTwoThreads =
    "another thread works in this universe: one at a time may; give each thread its own Universe, or lock";

}  // namespace

Universe::Universe() : body_(std::make_shared<UniverseBody>()) { body_->u = std::make_shared<hlo::Universe>(); }

size_t Universe::strings() const {
  const Reading reading(*body_);
  return body_->u->string_count();
}
size_t Universe::shapes() const {
  const Reading reading(*body_);
  return body_->u->shape_count();
}

// A reader announces itself and then looks for a worker, a worker the other way round: one of two that come at once
// sees the other, or both do.
Reading::Reading(UniverseBody& body) : body_(body) {
  ++body_.readers;
  uintptr_t worker = body_.worker;
  if (worker && worker != this_thread()) {
    --body_.readers;
    refuse(ErrorKind::usage, kTwoThreads);
  }
}
Reading::~Reading() { --body_.readers; }

Working::Working(UniverseBody& body) : body_(body) {
  uintptr_t nobody = 0;
  if (!body_.worker.compare_exchange_strong(nobody, this_thread())) {
    if (nobody != this_thread()) refuse(ErrorKind::usage, kTwoThreads);
    ++body_.depth;  // a callback's call within ours
    return;
  }
  if (body_.readers) {
    body_.worker = 0;
    refuse(ErrorKind::usage, kTwoThreads);
  }
  body_.depth = 1;
}
Working::~Working() {
  if (--body_.depth == 0) body_.worker = 0;
}

Editing::Editing(ModuleBody& body) : working_(*body.universe) {
  if (body.busy) refuse(ErrorKind::usage, "the module is being worked on: callbacks may read it, not change it");
}

void require_same(const UniverseBody& a, const UniverseBody& b) {
  if (&a != &b)
    refuse(ErrorKind::usage,
           "the two are in different universes: parse them into one, or take one over with copied_into()");
}

}  // namespace hlo::api
