// Values of constants that a dump's texts elide (`{...}`) and that other files of the same module have whole.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/eval/value.h"
#include "ir/module.h"

namespace hlo {

// Constants by name, as the files of one module have them. Names hold from stage to stage: XLA gives none twice.
class OwnConstants {
 public:
  // `universe`: of the modules that take the values.
  explicit OwnConstants(std::shared_ptr<Universe> universe) : universe_(std::move(universe)) {}

  // Those of a file below `folder`; a file that cannot be read is told by problems(). The name of a constant that two
  // files have with different values tells nothing any more.
  void read(const std::string& folder, const std::string& file);
  // What the folder of a dump has for the module whose stages' texts these are: each `.hlo.pb` beside one, in order,
  // then snapshots of that module (HloSnapshot, HloUnoptimizedSnapshot), until all of `wanted` have values.
  void read_dump(const std::string& folder, const std::vector<std::string>& texts, const Module& wanted);

  // Has every elided constant of it a name that is known?
  bool knows_all(const Module& wanted) const;
  // Of that name, type and dimensions; null where no file has it. Sets who is told by files().
  const Value* find(const Module& m, InstId constant);
  // Files that values came from, in order, and what could not be read, a line each.
  const std::vector<std::string>& files() const { return used_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Known {
    Value value;
    std::string file;
    bool doubtful = false;
  };
  std::shared_ptr<Universe> universe_;
  std::map<std::string, Known, std::less<>> known_;
  std::set<std::string> read_;  // files
  std::vector<std::string> used_, problems_;
};

// Gives elided constants of `m` the values that files have: `m` was read from `spec`, as commands name modules. Of a
// stage the files of its dump are asked, and its first stage's text; of a file by itself the `.hlo.pb` beside it. A
// sentence that tells how many values came from where, and which file could not be read; empty where there is none.
std::string take_own_values(Module& m, const std::string& spec);
}  // namespace hlo
