// What bisect has come to in a folder, for whoever answers: the command, or the thread that ends it before its time.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/hunt/by_elements.h"
#include "replay/os/interrupt.h"

namespace hlo {

// A stage of a folder, and what made it.
struct StageMade {
  std::string label, file, pass, pipeline;
};
// `between`: stages in front of it that cannot be judged.
std::string guilty_in_words(const StageMade& bad, size_t between);

// As long as one lives and answering() was not called, the process answers with it where it has to end at once.
class SoFar {
 public:
  explicit SoFar(const BisectArgs& a);
  // `order` of the answer; of its rows, what became of one.
  void order(Json order);
  void outcome(size_t row, const char* word);
  Json order() const;
  // The module at hand, the `row`th.
  void begin(size_t row, std::string module, std::vector<StageMade> stages);
  // Of its stages. A verdict stays where a later way to judge the stage tells nothing.
  void judged(size_t stage, const Judgement& j);
  void judged(size_t stage, const ElementsStage& s);
  void kept(std::shared_ptr<const KeptLeaves> arguments);  // of `judged` by elements: compared on these, too
  void drop_bad();                                         // they were none
  void told();                                             // its answer is printed
  Json stopped(int* code) const;                           // its answer where it is ended now
  void add(Json module);                                   // its answer: it is at hand no more
  bool any() const;                                        // module was judged
  // Of all modules; `ended`: before all were judged.
  Json answer(bool ended) const;
  std::string rest_in_words() const;
  void answering();  // somebody else does

 private:
  int say();
  Json stopped_unlocked(int* code) const;
  Json answer_unlocked(bool ended, int* code) const;
  std::string rest_unlocked() const;

  const BisectArgs& a_;
  mutable std::mutex mutex_;
  Json order_ = Json::array(), modules_ = Json::array();
  bool at_hand_ = false, told_ = false;
  size_t row_ = 0;
  std::string module_;
  std::vector<StageMade> stages_;
  ElementsSearch search_;  // by elements or not
  std::shared_ptr<const KeptLeaves> kept_;
  std::optional<LastAnswer> last_;
};

// Pass and pipeline that made stage `k` of those rows of a recording. A pipeline's begin changes nothing; one that
// begins inside of a pass shows what that one did so far: the row before names it as the next.
std::pair<std::string, std::string> pass_that_made(const Recording& r, const std::vector<size_t>& rows, size_t k);

}  // namespace hlo
