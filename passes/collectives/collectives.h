// Shared by passes over collectives.
#pragma once
#include <optional>

#include "ir/module.h"

namespace hlo {

// A channel id that no collective has yet; `last`, 0 at first, keeps the one given before.
int64_t next_channel(const Module& m, int64_t* last);

// Replica groups as lists of ids, however they are written; all devices in one group are the empty list. False where
// they cannot be read.
bool read_groups(const Module& m, InstId i, std::vector<Dims>* out);

// The operation that a collective reduces by (reducer_operation of its function).
std::optional<Opcode> reduced_by(const Module& m, InstId i);

// Devices of each of the collective's groups; 0 where groups differ in size.
int64_t group_size(const Module& m, InstId i);
// The same of groups that it names; 0 where it names none.
int64_t named_group_size(const Module& m, InstId i);

}  // namespace hlo
