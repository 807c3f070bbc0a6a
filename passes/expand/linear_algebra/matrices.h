// What the expanders of decompositions and triangular solves share: masks and parts of matrices ([batch…, rows,
// columns]), and how an operation becomes a call of a computation of its own.
#pragma once
#include <functional>
#include <string>

#include "passes/expand/client.h"

namespace hlo {

/** Columns that a decomposition or a solve takes at a time. */
inline constexpr int64_t kMatrixBlock = 128;

/** The shapes of the operands as XLA puts them into the name of the computation that is called. */
std::string operands_signature(const Module& m, InstId i);
/** A computation that adds two scalars of the type. */
CompId sum_reducer(Module& m, ElementType type);
/** [rows, columns], ones on its diagonal. */
InstId unit_matrix(Client& b, ElementType type, int64_t rows, int64_t columns);
/** Pred [rows, columns]: is row + shift >= column? */
InstId triangle_mask(Client& b, int64_t rows, int64_t columns, int64_t shift);
/** Pred of these dimensions: is row = column? For every matrix of a batch. */
InstId diagonal_mask(Client& b, const Dims& dims);
/** [batch…, n] of [batch…, n, n]: what stands on the diagonals. */
InstId diagonal_of(Client& b, InstId x);
/** Every instruction for which `signed_as` gives a name becomes a call of the computation that `made` makes for it;
 * those of one name share it. A rewrite of `rule` each. */
bool replace_by_calls(Module& m, PassContext& ctx, const char* rule,
                      const std::function<std::string(InstId)>& signed_as, const std::function<CompId(InstId)>& made);

}  // namespace hlo
