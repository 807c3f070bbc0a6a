// What a finding goes back to: the instruction of the first stage, the pass that made what is odd, whose doing it is.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/query/source_lines.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct FindingEvidence {
  // Who made what is odd: the program that XLA was given, or a pass. Unknown where there are no stages, or where they
  // do not say.
  enum Whose { kUnknown, kProgram, kPass } whose = kUnknown;
  std::string first_stage;  // its name; empty where there are no stages
  std::string first;        // the instruction there that it goes back to; empty: none is known
  std::string stage;        // that first has what is odd, `0089 hlo_normalization.after_splitk-rewriter`
  std::string pass;         // that made it; empty where the first stage has it, or where it is unknown
  SourceLine line;          // of the user's own code
  std::vector<SourceLine> stack;
  std::string op_name;
};

// Instructions of a module's last stage followed back to the first one. Stages are read when they are asked for.
class Provenance {
 public:
  // `last` is the module of the stage that is looked at, the recording's last; it must live as long.
  Provenance(const Recording& recording, const Module& last);
  // False: there is one stage alone, or the stages cannot be read.
  bool known() const { return lineage_ != nullptr; }
  const std::string& first_stage() const { return first_stage_; }

  // What an instruction was from the stage `born` on; the newest one first.
  struct Link {
    size_t born = 0;
    InstId id;
  };
  // Of an instruction of `last`; empty where the stages do not have it. It ends at stage 0 where the origin is known.
  const std::vector<Link>& chain(InstId i);
  // Of the first stage; invalid where it is not known.
  InstId first(InstId i);
  // It stays until others were asked for: two at a time may be looked at. The first and the last always stay.
  const Module& module(size_t stage);
  std::string label(size_t stage) const;
  std::string pass(size_t stage) const;

  // Where an instruction of that kind was made: the earliest stage from which on the chain holds only such ones.
  // `fits` is asked of each link as it was when it began.
  using Fits = std::function<bool(const Module&, InstId)>;
  // The evidence of `i`, in which that oddity stands.
  FindingEvidence made(InstId i, const Fits& fits);
  // The same of what an instruction that lives on becomes: the first stage in which the oddity is there, found by
  // halves.
  FindingEvidence became(InstId i, const Fits& odd);

  // The last decision of fusion about two kernels of `last`, in words; empty where none is recorded.
  std::string why_apart(InstId a, InstId b);

 private:
  FindingEvidence evidence_of(InstId i);
  InstId ancestor(size_t born, InstId i);
  InstId in_lineage(InstId i);

  Recording recording_;
  const Module& last_;
  Lineage* lineage_ = nullptr;
  std::string first_stage_;
  std::vector<const StageRow*> rows_;
  struct Kept {
    std::unique_ptr<Module> module;
    size_t asked = 0;
  };
  std::map<size_t, Kept> modules_;
  size_t asked_ = 0;
  std::map<std::pair<std::string, std::string>, InstId> names_;  // of the last stage: computation and instruction
  std::map<uint32_t, std::vector<Link>> chains_;
};

}  // namespace hlo
