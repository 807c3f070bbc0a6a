// Stages drawn by child processes, each within a budget: Graphviz keeps global state and may take for ever.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "dump/graph.h"
#include "replay/os/files.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct StageDrawing {
  StageRow row;
  std::string base;               // name of the files, without ending
  std::set<std::string> formats;  // of dot, svg, png, html
  std::vector<std::string> removed;
  GraphOptions options;
  std::string command;  // that draws the whole without a budget, for the page
};

class Drawers {
 public:
  // At most two seconds of work go into a drawing, then it is tried with fewer nodes, then left out; each says so.
  explicit Drawers(OutputFolder& out) : out_(out) {}
  ~Drawers();  // ends what is still at work
  Drawers(const Drawers&) = delete;
  Drawers& operator=(const Drawers&) = delete;
  // From the module as it is now, which may change afterwards. Waits while two are at work. Throws Failure where an
  // earlier one failed for another reason than time.
  void draw(const Module& m, const StageDrawing& d);
  // A graph that stands in a file; its DOT text is written as it is.
  void draw_dot(const std::string& dot, const StageDrawing& d);
  void wait();
  size_t begun() const { return begun_; }
  size_t at_work() const { return children_.size(); }

 private:
  void start(const std::function<void()>& job);
  void reap(bool all);
  OutputFolder& out_;
  size_t begun_ = 0;
  std::vector<pid_t> children_;
};

}  // namespace hlo
