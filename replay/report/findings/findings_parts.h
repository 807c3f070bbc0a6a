// What the kinds of findings share.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "replay/report/findings/findings.h"

namespace hlo {

// Does a transposition or copy move data, or are its layouts such that the bytes stay where they are?
bool moves_data(const Module& m, InstId i);
// The product that a kernel is, or is built around; library calls among them.
InstId kernel_product(const Module& m, InstId kernel);
// All of a kernel: a fusion of the CPU's may hold a chain of them.
std::vector<InstId> kernel_products(const Module& m, InstId kernel);
// The part of a kernel's time that one of its products has, by operations.
double product_seconds(const Module& m, const KernelCost& kernel, InstId product);
bool is_narrow(ElementType t);
// Bytes of an array; 0 of what is none.
double array_size(const Module& m, InstId i);
// Users of a value, through bitcasts.
std::vector<InstId> readers(const Module& m, InstId i);
// `16 times in each call`.
std::string runs_text(double times);
// The comparison that makes rows of a one at the place of an index; invalid where the value is none.
InstId one_hot_rows(const FindingsInput& in, InstId i);
// Where a narrow value, made f32 for it alone and at its place of the program, meets an f32 scalar.
std::vector<InstId> scalar_meets(const Module& m);
// All arrays that are f32 because `from` is, itself among them: through calls, up to what is made narrow again or is no
// f32.
std::set<InstId> wide_behind(const Module& m, const std::vector<std::vector<InstId>>& callers, InstId from);
// Numbers of the entry's parameters that results may take the place of.
std::set<int64_t> donated_parameters(const Module& m);
// A loop copies what it may not write over: the argument that is not donated is the cause, told once.
void donation_with_copies(std::vector<ModuleFinding>* all);
// Those that matter each by itself, and those of a kind that do together: fifty small transposes are one slow habit.
std::vector<ModuleFinding> worth_telling(const FindingsInput& in, std::vector<ModuleFinding> found);

// Are all operations of the kernel, parameters left out, of these kinds? An instruction that is no fusion is its only
// one.
template <class F>
bool all_operations(const Module& m, InstId kernel, const F& fits) {
  if (m.op(kernel) != Opcode::Fusion) return fits(kernel);
  for (InstId i : m.post_order(m.called(kernel)[0]))
    if (m.op(i) != Opcode::Parameter && !fits(i)) return false;
  return true;
}
template <class F>
InstId first_operation(const Module& m, InstId kernel, const F& fits) {
  if (m.op(kernel) != Opcode::Fusion) return fits(kernel) ? kernel : InstId();
  for (InstId i : m.post_order(m.called(kernel)[0]))
    if (fits(i)) return i;
  return {};
}

}  // namespace hlo
