// Messages between devices that run beside the rest: what starts one, what waits for it.
#pragma once
#include "ir/module.h"

namespace hlo {

// all-reduce-start, all-gather-start, collective-permute-start, and async-start of a computation that is a message.
bool starts_message(const Module& m, InstId i);
// What waits for one of them, with nothing in between.
bool ends_message(const Module& m, InstId i);

// Does the rest stand still meanwhile, by its configuration?
bool waits_at_once(const Module& m, InstId start);

// The start's backend_config, written out in XLA's order, saying whether the rest stands still meanwhile (`is_sync`);
// invalid where it has one that is no object.
StrId config_with_sync(const Module& m, InstId start, bool is_sync);
// Likewise a message's, saying which kernel does it.
StrId config_with_strategy(const Module& m, InstId message, std::string_view strategy);

}  // namespace hlo
