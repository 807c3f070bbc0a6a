// The order of an array's users, which no file of a stage tells: from a replay of what came before the stage.
#pragma once
#include <string>

#include "ir/module.h"
#include "passes/pass.h"

namespace hlo {

struct ReplayedUsers {
  std::string from;                // the stage that the replay began with
  std::string why_not;             // empty where there was one
  size_t arrays = 0, ordered = 0;  // those with several users; of these, those whose order the replay told
  std::string in_words() const;
};

// `spec` is what `m` was loaded from, a stage in a folder of XLA's: the stages before `pass`, as it runs in the
// pipeline of XLA's that is called `site`, are replayed from the first one, and the users of what stands there in `m`
// as well are put in the order that they have there. Nothing else of `m` changes. Looks at no stage behind it.
// Where that cannot be done, all stays as it is and the answer says why.
ReplayedUsers order_users_by_replay(Module& m, const std::string& spec, const PassInfo& pass, const std::string& site);

}  // namespace hlo
