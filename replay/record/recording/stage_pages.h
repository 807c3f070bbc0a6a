// The pages of a stage while it is made from those of the stage before: what changes is copied, the rest is shared.
#pragma once
#include <memory>
#include <vector>

#include "ir/snapshot.h"

namespace hlo {

class StagePages {
 public:
  using Shared = std::vector<std::shared_ptr<const Snapshot::Page>>;
  explicit StagePages(Shared before) : before_(std::move(before)) {}

  // The slot of an instruction, to be written.
  uint32_t& slot(InstId i) {
    size_t p = i.value / Snapshot::kPage;
    if (own_.size() <= p) own_.resize(p + 1);
    if (!own_[p]) {
      if (p < before_.size()) {
        own_[p] = std::make_shared<Snapshot::Page>(*before_[p]);
      } else {
        own_[p] = std::make_shared<Snapshot::Page>();
        own_[p]->slot.fill(Snapshot::kNone);
      }
    }
    return own_[p]->slot[i.value % Snapshot::kPage];
  }

  // Pages for so many ids.
  Shared take(size_t slots) {
    size_t pages = (slots + Snapshot::kPage - 1) / Snapshot::kPage;
    for (size_t p = before_.size(); p < pages; ++p) slot(InstId(p * Snapshot::kPage));
    before_.resize(pages);
    for (size_t p = 0; p < own_.size(); ++p)
      if (own_[p]) before_[p] = std::move(own_[p]);
    own_.clear();
    return std::move(before_);
  }

 private:
  Shared before_;
  std::vector<std::shared_ptr<Snapshot::Page>> own_;
};

}  // namespace hlo
