// Parts of contract_value, by what the instruction moves.
#pragma once
#include "replay/judge/contract/contract.h"

namespace hlo {

std::optional<Value> other_order_of_sort(const Module& m, InstId i, std::span<const Value> operands, const Value& v,
                                         Contract c, int which, int64_t* open);
std::optional<Value> other_indices(const Module& m, InstId i, std::span<const Value> operands, const Value& v,
                                   Contract c, int which, int64_t* open);
std::optional<Value> other_reduction(const Module& m, InstId i, std::span<const Value> operands, const Value& v,
                                     Contract c, int which, int64_t* open);

// Elements of an array at `from[k]` of dimension `dim`, for each k.
Value taken(Universe& u, const Value& v, size_t dim, const std::vector<int64_t>& from);
// 0 … n-1 in another order: 0 reversed, others by chance, the same each time.
std::vector<int64_t> another_order(int64_t n, int which);
// Elements that differ by more than rounding (`exact`: at all), over all leaves.
int64_t differing(const Universe& u, const Value& a, const Value& b, bool exact);

}  // namespace hlo
