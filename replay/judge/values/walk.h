// One stage, instruction by instruction, through fusions, calls, branches and loops.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/judge/values/numbering.h"

namespace hlo {

struct Visit {
  InstId inst;
  Term term;
  std::vector<Term> operands;
};

struct StageNumbers {
  std::shared_ptr<StageModule> module;
  std::vector<Visit> visits;  // operands before users; a callee's in the place of its caller, once a list of arguments
  std::unordered_map<StrId, std::vector<uint32_t>> by_name;  // places in `visits`
  Term result;                                               // of the entry, as the devices hold it
  bool draws = false;                                  // random numbers out of nowhere: two stages may draw others
  size_t loops = 0, loops_run = 0, branches_left = 0;  // branches that no run took
  std::string first_unknown;                           // why the first value that has none has none
};

class StageWalk {
 public:
  // `remember`: visits are kept, for comparison; else the result alone.
  // `instead`: values that instructions have whatever they compute.
  StageWalk(Numbering& numbers, std::shared_ptr<StageModule> module, bool remember = true,
            const std::unordered_map<InstId, Term>* instead = nullptr);
  // `arguments`: of the entry. Throws only what stops everything (memory, interruption).
  StageNumbers run(const std::vector<Term>& arguments);
  // The same of one computation, as if it were the entry.
  StageNumbers run_computation(CompId c, const std::vector<Term>& parameters);
  // The value of one instruction, no parameter, on these operands.
  Term value_of(InstId i, const std::vector<Term>& operands);

 private:
  Term computation(CompId c, const std::vector<Term>& parameters);
  Term instruction(InstId i, std::vector<Term> operands, const std::vector<Term>& parameters);
  Term called(CompId c, const std::vector<Term>& parameters);
  Term conditional(InstId i, const std::vector<Term>& operands);
  Term loop(InstId i, const std::vector<Term>& operands);
  int64_t trip_work(CompId c);
  Term run_loop(InstId i, const Term& init, uint64_t key);
  bool same_loop(InstId i, const Term& init, const Term& first, Term* result);
  Term operation(InstId i, std::vector<Term> operands);
  bool may_put_off(InstId i, const std::vector<Term>& operands);
  bool known_sort(InstId i, const std::vector<Term>& operands, uint64_t order, Term* result);
  Term sort(InstId i, const std::vector<Term>& operands);
  Term product(InstId i, std::vector<Term> operands, uint64_t viewed);
  bool swapped_product(InstId i, const std::vector<Term>& operands, Term* out);
  bool summed_product(InstId i, const std::vector<Term>& operands, Term* out);
  bool untransposed(InstId i, const std::vector<Term>& operands, Term* out);
  Term library_product(InstId i, std::vector<Term> operands, uint64_t product);
  Term fused_convolution(InstId i, std::vector<Term> operands, uint64_t product);
  Term with_memory(InstId i, Term value);
  bool is_zero(const Term& t);
  Term tuple(ShapeId shape, std::vector<Term> elements) const;
  uint64_t key_of(InstId i, const std::vector<Term>& operands);
  bool scalar(const Term& t, int64_t* value);

  Numbering& n_;
  std::shared_ptr<StageModule> s_;
  const Module& m_;
  bool remember_;
  const std::unordered_map<InstId, Term>* instead_;
  StageNumbers out_;
  std::unordered_map<uint64_t, Term> calls_;
  uint64_t draws_ = 0;
};

}  // namespace hlo
