// The order in which XLA made a module's instructions, as far as a stage's text tells it.
#pragma once
#include "ir/module.h"

namespace hlo {

// XLA makes the parameters of a computation first, then what the program has, then what passes add; a stage's text,
// which is in post order, tells that no more. They are put back so, what is not used and the root apart: where those
// stand, in which order what is dead is printed, is in the text (parameters go in front where they stand in front).
void put_in_order_made(Module& m);

}  // namespace hlo
