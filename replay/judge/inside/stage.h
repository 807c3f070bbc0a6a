// How two numbered stages are compared.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "replay/judge/inside/inside.h"

namespace hlo {

struct Inside::Stage {
  StageNumbers walked;
  std::vector<Term> outputs;  // leaves, whole arrays
  std::vector<Term> local;    // the same as devices hold them
  int64_t devices = 1, partitions = 1;
};

class Inside::Comparison {
 public:
  // `expected`: outputs as the first stage has them, or the last bad one.
  Comparison(Numbering& numbers, const Stage& before, const Stage& now, const std::vector<Term>& expected)
      : n_(numbers), a_(before), b_(now), expected_(expected) {}
  InsideStage judge();
  void count(InsideStage* out);

 private:
  struct Departed {
    uint32_t before, now;  // places in the stages' visits
    bool operands_agree;
    bool elsewhere;  // the values agree: by a constant's own bits, or on other operands, they would not
  };
  void find_departed();
  void find_producers();
  void compare_outputs(InsideStage* out);
  bool leads_to_outputs(uint32_t visit) const { return reached_.contains(visit); }
  void reach_back(const std::vector<Term>& from);
  void describe_outputs(InsideStage* out);
  void describe_partial(InsideFinding* f);
  bool adds_up(const Term& now, const Term& before);
  std::string partial_words(std::string_view holder, std::string_view whole, std::string_view reader) const;
  InsideFinding describe(const Departed& d);
  void add_operands(InsideFinding* f);
  void add_regions(InsideFinding* f, uint32_t now, const uint32_t* before);
  // What becomes of a value that is another one while the outputs are not.
  enum class Fate {
    kErased,   // all that reads it is what it was: these inputs do not tell, and no algebra has healed it
    kHealed,   // what reads it was rewritten, and makes up for it
    kNotTold,  // what reads it was rewritten, and yet it is these inputs that do not tell further on
  };
  // What is seen where values agree again, and on the way there.
  struct Frontier {
    bool blind = false;      // something that is what it was reads one other value, and gives what it gave
    bool cancelled = false;  // the same of several other values
    bool rewired = false;    // a reader reads by other names than it did
  };
  Fate fate(uint32_t visit, Frontier* frontier = nullptr);
  size_t other_operands(const Visit& now, const Visit& before) const;
  bool changed_places(const Visit& now, const Visit& before) const;
  bool reads_other_value(const Visit& before, const Visit& now) const;
  bool reads_as_before(const Visit& now, const Visit& before) const;
  bool other_constant(const Visit& before, const Visit& now);
  bool other_number(const Departed& d) const;
  InstId folded_anew(const Departed& d) const;
  bool taken_over(NumberId n);
  bool alone_differs(uint32_t now, const Term& before);
  void judge_rewired(InsideStage* out);
  Departed rewired_behind(const Departed& d);
  bool other_element(const Visit& before, const Visit& now) const;
  bool other_function(const Visit& before, const Visit& now);
  void find_readers();
  uint32_t counterpart(uint32_t now);
  uint32_t by_place(uint32_t now);
  void pair_by_readers();
  bool values_agree(const Visit& now, const Visit& before) const;
  bool renamed_only();
  void count_not_compared(InsideStage* out);
  void judge_promises(InsideStage* out);
  void count_branches(InsideStage* out);
  std::vector<bool> held_by_readers();
  static bool compares(const Module& m, InstId i);
  bool origin(const Departed& d, Departed* out);
  bool pair_of_operands(uint32_t before, uint32_t now, Departed* out);
  bool only_name(const Departed& d) const;
  void find_readers_of(uint32_t visit, std::vector<uint32_t>* out);
  void judge_values(InsideStage* out);
  void describe_applied(const Departed& d, InsideFinding* f);
  bool applied_by_values(CompId before, CompId now, InsideFinding* f);
  // By places of operands, down from a pair that differs, or from the results.
  class Lockstep;
  bool lockstep(uint32_t before, uint32_t now, Departed* out);
  bool lockstep_of_results(Departed* out);
  Departed cause_of(const Departed& d);
  void tell(const Departed& d, InsideStage* out);
  bool same_operation(InstId before, InstId now);
  // Two loops that begin alike; `which`: of the old one's state the elements that the new one has, whose shape is
  // `shape`.
  struct LoopPair {
    InstId before, now;
    std::vector<size_t> which;
    ShapeId shape;
  };
  bool later_trip(uint32_t now, uint32_t before, InsideStage* out);
  bool trip_of_values(const LoopPair& loops, const Term& init, InsideStage* out);
  bool trip_of_devices(const LoopPair& loops, const Term& init, InsideStage* out);
  bool parted_in_trip(const LoopPair& loops, Attr called, const Term& given, int64_t trip, InsideStage* out);
  std::vector<size_t> elements_of_loop(uint32_t now, uint32_t before);
  uint32_t first_loop();
  void judge_endless(InsideStage* out);
  double apart(const Term& now, const Term& before, std::string* words);
  bool fresh(const Term& t) const;
  bool agrees(const Term& t, const Term& with) const;
  uint32_t producer(NumberId n) const;
  std::string name_of(const Stage& s, NumberId n) const;

  Numbering& n_;
  const Stage &a_, &b_;
  const std::vector<Term> expected_;
  std::vector<Departed> departed_;
  std::unordered_map<NumberId, uint32_t> made_before_, made_now_;  // by number: the first operation that gives it
  std::unordered_map<NumberId, std::vector<uint32_t>> readers_;    // of new values, in this stage
  std::unordered_map<NumberId, std::vector<uint32_t>> departed_numbers_;  // of this stage's values: places in departed_
  std::unordered_set<uint32_t> reached_;
  // Which instruction of the stage before it is by its place, where names are gone; made when it is asked for.
  std::unordered_map<InstId, InstId> places_;
  std::unordered_map<InstId, std::vector<uint32_t>> visits_before_, visits_now_;
  bool placed_ = false;
  int renamed_ = -1;                // renamed_only(), once asked
  std::vector<uint32_t> not_told_;  // visits that these inputs do not tell from what was, and others were not tried
  std::vector<size_t> elements_;    // of the result before, by elements of this one's, where it has others too
  std::vector<Term> moved_;         // outputs, as devices hold them
  double moved_by_ = 0;
};

}  // namespace hlo
