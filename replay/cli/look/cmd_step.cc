// step: a pipeline as in a debugger, pass by pass, forwards and back.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>

#include "ir/print/print.h"
#include "ir/query/find_instruction.h"
#include "ir/verify/verifier.h"
#include "passes/pipelines/pipelines.h"
#include "replay/cli/command.h"
#include "replay/compare/diff.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"
#include "replay/record/recording/recording.h"

namespace hlo {
namespace {

const char* const kHelp =
    "next [N]            run the next pass, or N                       n\n"
    "back [N]            one pass back                                 b\n"
    "rewrite [N]         one rewrite into the next pass, or N           r\n"
    "until PASS          run until that pass has run                   u\n"
    "continue            run until a break, or the end                 c\n"
    "break WHAT          stop after a pass, rule or change of an instruction of that name; alone: list them\n"
    "delete [WHAT]       forget a break, or all\n"
    "skip                go past the next pass without running it\n"
    "disable PASS        leave its runs out from here; enable PASS\n"
    "fuel PASS N         at most N rewrites by that pass from here\n"
    "list                passes done and ahead                         l\n"
    "print [NAME]        the module, a computation or an instruction   p\n"
    "users NAME          what uses an instruction\n"
    "notes               rules that the last pass applied, and why it did not\n"
    "diff [N]            against the last module that was different, or against that of step N\n"
    "exec                run the module: are its results those of the first step?\n"
    "save FILE           its text\n"
    "load FILE           continue from here with the text of a file; edit: with what $EDITOR leaves\n"
    "quit                                                              q\n";

// Of what a pass made, changed or removed. Both are one module before and after it: instructions keep their ids.
std::vector<std::string> changed_names(const Module& before, const Module& after) {
  std::vector<std::string> out;
  for (uint32_t k = 0; k < after.inst_slots(); ++k) {
    InstId i(k);
    bool was = before.alive(i), is = after.alive(i);
    bool same = was == is;
    if (was && is) {
      const Inst &x = before[i], &y = after[i];
      auto ox = before.operands(i), oy = after.operands(i);
      same = x.op == y.op && x.shape == y.shape && x.attrs == y.attrs && x.name == y.name && x.parent == y.parent &&
             before.is_root(i) == after.is_root(i) && std::equal(ox.begin(), ox.end(), oy.begin(), oy.end());
      if (same && (x.op == Opcode::Constant || x.op == Opcode::Parameter)) same = x.operand[0] == y.operand[0];
    }
    if (same) continue;
    if (was) out.emplace_back(before.inst_name(i));
    if (is) out.emplace_back(after.inst_name(i));
  }
  return out;
}

class Stepper {
 public:
  Stepper(const StepArgs& a, std::unique_ptr<Module> m, const std::vector<Step>& steps,
          std::map<std::string, std::string> given, InputOptions inputs)
      : args_(a), inputs_(std::move(inputs)), interactive_(::isatty(0) && ::isatty(1)) {
    options_.given = std::move(given);
    options_.disabled = words(a.disabled);
    options_.verify = !a.how.no_verify;
    first_ = std::shared_ptr<const Module>(m->clone());
    points_.push_back(
        {PipelineCursor(steps, {}), std::shared_ptr<const Module>(std::move(m)), {}, false, false, "", 0, 0});
    if (!a.from.empty()) {
      const PassInfo& wanted = pass_or_fail(a.from);
      while (upcoming() && find_pass(upcoming()->name) != &wanted) points_[0].cursor.skip();
      if (!upcoming()) fail(FailureKind::kUsage, "the pipeline has no pass '{}' to start from", a.from);
    }
  }

  int run() {
    where();
    std::string line, last;
    while (prompt(), std::getline(std::cin, line)) {
      if (interrupted()) break;
      std::istringstream in(line);
      std::vector<std::string> w;
      for (std::string word; in >> word;) w.push_back(word);
      if (w.empty() && interactive_ && !last.empty()) {
        std::istringstream again(last);
        for (std::string word; again >> word;) w.push_back(word);
      }
      if (w.empty() || w[0][0] == '#') continue;
      if (w[0] == "quit" || w[0] == "q" || w[0] == "exit") break;
      try {
        command(w);
        if (!line.empty()) last = line;
      } catch (const Failure& e) {
        std::cout.flush();
        fmt::print("error: {}\n", e.what());
        failed_ = true;
      }
      std::cout.flush();
      std::fflush(stdout);
    }
    return failed_ && !interactive_ ? kBad : kYes;
  }

 private:
  struct Point {
    PipelineCursor cursor;  // what comes behind this point
    std::shared_ptr<const Module> module;
    PassEvent event;  // that led here
    bool ran = false, edited = false;
    std::string note;
    int64_t inside = 0;  // after so many rewrites of the pass that is to come; 0: between two passes
    size_t begins = 0;   // of such a one: the point in front of that pass
  };

  Point& here() { return points_[at_]; }
  const Module& module() { return *here().module; }
  const Step* upcoming(std::string* pipeline = nullptr) { return here().cursor.upcoming(pipeline); }

  void prompt() const {
    if (!interactive_) return;
    fmt::print("(step {}) ", at_);
    std::fflush(stdout);
  }

  void where() {
    const Point& p = here();
    std::string what = "start";
    if (p.edited) {
      what = p.note;
    } else if (p.ran) {
      const PassEvent& e = p.event;
      std::string how = !e.implemented ? "not implemented"
                        : e.disabled   ? "left out"
                        : e.changed    ? fmt::format("changed, {} rewrites", e.rewrites)
                                       : "no change";
      what = fmt::format("{} / {}: {}", e.pipeline, e.pass, how);
      if (p.inside) what = fmt::format("{} / {}: inside, after {} rewrites", e.pipeline, e.pass, p.inside);
    }
    std::string pipeline;
    const Step* next = upcoming(&pipeline);
    fmt::print("#{} {}; {} instructions; next: {}\n", at_, what, p.module->instruction_count(),
               next ? fmt::format("{} / {}", pipeline, next->name) : "the end");
  }

  // One pass. False at the end.
  bool forward() {
    if (at_ + 1 < points_.size()) {
      ++at_;
      return true;
    }
    if (!upcoming()) return false;
    // From within a pass it is run as a whole: its rewrites so far are the first ones of it.
    points_.push_back(run_pass_from(here().inside ? here().begins : at_, -1));
    ++at_;
    return true;
  }

  // The point behind the next pass of that one; `fuel`: with so many rewrites at most, -1: as it comes.
  Point run_pass_from(size_t at, int64_t fuel) {
    const Point& from = points_[at];
    Point p{from.cursor, from.module, {}, true, false, "", 0, 0};
    std::shared_ptr<Module> work = from.module->clone();
    if (fuel >= 0) p.cursor.set_fuel(std::string(find_pass(p.cursor.upcoming()->name)->name), fuel);
    PipelineOptions o = options_;
    bool done = false;
    o.observe = [&](const Module&, const PassEvent& e) {
      if (e.kind == PassEvent::kPass) p.event = e, done = true;
    };
    while (!done && p.cursor.advance(*work, o)) {
    }
    if (p.event.changed) p.module = work;
    return p;
  }

  // On to the next rewrites within the pass that is to come, or behind it where it makes no more.
  void rewrite(int64_t count) {
    if (at_ + 1 < points_.size()) forget_ahead();
    const size_t begins = here().inside ? here().begins : at_;
    const int64_t wanted = here().inside + count;
    const Step* next = points_[begins].cursor.upcoming();
    if (!next) fail(FailureKind::kUsage, "the pipeline has ended");
    const PassInfo* pass = find_pass(next->name);
    if (!pass || !pass->run) fail(FailureKind::kUsage, "{} is not implemented; next goes past it", next->name);
    Point p = run_pass_from(begins, wanted);
    const std::vector<Note>& notes = p.event.notes;
    for (const Note& n : notes)
      if (n.rewrite > here().inside) fmt::print("{:>4} {}: {}\n", n.rewrite, n.rule, fmt::join(n.names, ", "));
    if (p.event.rewrites < wanted) {
      // The whole pass, and not only what the fuel was for.
      points_.push_back(run_pass_from(begins, -1));
    } else {
      p.inside = wanted, p.begins = begins, p.cursor = points_[begins].cursor;
      points_.push_back(std::move(p));
    }
    ++at_;
    where();
  }

  // Everything ahead of this point was made under other conditions.
  void forget_ahead() { points_.erase(points_.begin() + static_cast<ptrdiff_t>(at_) + 1, points_.end()); }

  std::optional<std::string> broke() {
    const PassEvent& e = here().event;
    if (breaks_.empty()) return std::nullopt;
    std::vector<std::string> touched;
    if (e.changed && at_ > 0) {
      touched = changed_names(*points_[at_ - 1].module, module());
    }
    for (const std::string& b : breaks_) {
      const PassInfo* pass = find_pass(b);
      if (e.pass == b || (pass && find_pass(e.pass) == pass)) return "pass " + b;
      for (const Note& n : e.notes)
        if (n.rewrite > 0 && n.rule == b) return fmt::format("rule {} on {}", b, fmt::join(n.names, ", "));
      if (std::find(touched.begin(), touched.end(), b) != touched.end()) return "instruction " + b;
    }
    return std::nullopt;
  }

  size_t number(const std::vector<std::string>& w, size_t at, size_t absent) {
    if (w.size() <= at) return absent;
    if (w[at].find_first_not_of("0123456789") != std::string::npos || w[at].size() > 9)
      fail(FailureKind::kUsage, "'{}' is no number", w[at]);
    return static_cast<size_t>(atoll(w[at].c_str()));
  }

  const std::string& word(const std::vector<std::string>& w, const char* what) {
    if (w.size() < 2) fail(FailureKind::kUsage, "{} needs {}", w[0], what);
    return w[1];
  }

  // What goes from stage to stage. False where the word is none of these.
  bool move(const std::vector<std::string>& w) {
    const std::string& c = w[0];
    if (c == "next" || c == "n") {
      for (size_t k = number(w, 1, 1); k > 0; --k)
        if (!forward()) {
          fmt::print("the pipeline has ended\n");
          break;
        }
      where();
    } else if (c == "back" || c == "b") {
      at_ -= std::min(at_, number(w, 1, 1));
      where();
    } else if (c == "rewrite" || c == "r") {
      rewrite(static_cast<int64_t>(number(w, 1, 1)));
    } else if (c == "until" || c == "u") {
      const PassInfo* wanted = &pass_or_fail(word(w, "a pass"));
      bool found = false;
      while (!found && !interrupted() && forward()) found = find_pass(here().event.pass) == wanted;
      if (!found) fmt::print("{} does not run again\n", w[1]);
      where();
    } else if (c == "continue" || c == "c") {
      std::optional<std::string> why;
      while (!why && !interrupted() && forward()) why = broke();
      if (why) fmt::print("break at {}\n", *why);
      where();
    } else {
      return false;
    }
    return true;
  }

  // What changes where it stops, or the passes that are ahead.
  bool plan(const std::vector<std::string>& w) {
    const std::string& c = w[0];
    if (c == "break") {
      if (w.size() > 1) breaks_.push_back(w[1]);
      for (const std::string& b : breaks_) fmt::print("break at {}\n", b);
    } else if (c == "delete") {
      if (w.size() == 1) {
        breaks_.clear();
      } else if (std::erase(breaks_, w[1]) == 0) {
        fail(FailureKind::kUsage, "there is no break at {}", w[1]);
      }
    } else if (c == "skip") {
      if (!upcoming()) fail(FailureKind::kUsage, "the pipeline has ended");
      forget_ahead();
      here().cursor.skip();
      where();
    } else if (c == "disable") {
      pass_or_fail(word(w, "a pass"));
      forget_ahead();
      options_.disabled.insert(w[1]);
    } else if (c == "enable") {
      if (options_.disabled.erase(word(w, "a pass")) == 0) fail(FailureKind::kUsage, "{} is not disabled", w[1]);
      forget_ahead();
    } else if (c == "fuel") {
      if (w.size() != 3) fail(FailureKind::kUsage, "fuel PASS N");
      std::string name(pass_or_fail(w[1]).name);
      forget_ahead();
      here().cursor.set_fuel(name, static_cast<int64_t>(number(w, 2, 0)));
    } else {
      return false;
    }
    return true;
  }

  void command(const std::vector<std::string>& w) {
    if (move(w) || plan(w)) return;
    const std::string& c = w[0];
    if (c == "list" || c == "l") {
      list();
    } else if (c == "print" || c == "p") {
      print(w);
    } else if (c == "users") {
      InstId i = find_instruction(module(), word(w, "an instruction"));
      if (!i.valid()) fail(FailureKind::kUsage, "no instruction is called {} here", w[1]);
      for (InstId user : module().users(i)) fmt::print("{}\n", print_instruction(module(), user));
    } else if (c == "notes") {
      for (const Note& n : here().event.notes)
        fmt::print("{} {}: {}{}{}\n", n.rewrite ? fmt::format("{:>4}", n.rewrite) : "   -", n.rule,
                   fmt::join(n.names, ", "), n.text.empty() ? "" : " — ", n.text);
    } else if (c == "diff") {
      show_diff(w);
    } else if (c == "exec") {
      exec();
    } else if (c == "save") {
      write_file(word(w, "a file"), lossless_text(module()));
    } else if (c == "load") {
      replace(load_verified(word(w, "a file"), options_.verify, nullptr, {.universe = module().universe()}),
              "text of " + w[1]);
    } else if (c == "edit") {
      edit();
    } else if (c == "where" || c == "w") {
      where();
    } else if (c == "help" || c == "h" || c == "?") {
      fmt::print("{}", kHelp);
    } else {
      fail(FailureKind::kUsage, "no command '{}'; help lists them", c);
    }
  }

  void list() {
    for (size_t k = at_ < 8 ? 0 : at_ - 8; k <= at_; ++k) {
      const Point& p = points_[k];
      fmt::print("{} #{:<4} {}{}\n", k == at_ ? ">" : " ", k,
                 p.edited ? p.note
                 : p.ran  ? p.event.pipeline + " / " + p.event.pass
                          : "start",
                 p.event.changed ? " (changed)" : "");
    }
    PipelineCursor ahead = here().cursor;
    std::string pipeline;
    for (int k = 0; k < 8; ++k, ahead.skip()) {
      const Step* s = ahead.upcoming(&pipeline);
      if (!s) break;
      const PassInfo* info = find_pass(s->name);
      fmt::print("        {} / {}{}\n", pipeline, s->name, info && info->run ? "" : " (not implemented)");
    }
  }

  void print(const std::vector<std::string>& w) {
    if (w.size() == 1) {
      std::cout << lossless_text(module());
      return;
    }
    std::string_view name = w[1];
    if (name.starts_with('%')) name.remove_prefix(1);
    for (CompId c : module().computations())
      if (module().comp_name(c) == name) {
        std::cout << print_computation(module(), c) << "\n";
        return;
      }
    InstId i = find_instruction(module(), w[1]);
    if (!i.valid()) fail(FailureKind::kUsage, "nothing is called {} here", w[1]);
    fmt::print("{}\n", print_instruction(module(), i));
    std::vector<InstId> operands(module().operands(i).begin(), module().operands(i).end());
    for (InstId o : operands) fmt::print("  {}\n", print_instruction(module(), o));
  }

  void show_diff(const std::vector<std::string>& w) {
    size_t other = at_;
    if (w.size() > 1) {
      other = number(w, 1, 0);
      if (other >= points_.size()) fail(FailureKind::kUsage, "there are steps 0 to {}", points_.size() - 1);
    } else {
      while (other > 0 && points_[other].module == here().module) --other;
    }
    show_module_diff(diff_modules(*points_[other].module, module()), 50);
  }

  void exec() {
    check_supported(*first_);
    if (!judge_) {
      auto settled = std::shared_ptr<Module>(first_->clone());
      settle_elided(*settled, inputs_);
      reference_ = settled;
      session_ = std::make_unique<Session>(*settled, inputs_);
      JudgeOptions o;
      o.backend = args_.how.backend, o.eval = eval_options(args_.how), o.tolerance = args_.how.tolerance;
      judge_ = make_judge(o, *reference_, session_.get());
    }
    auto settled = module().clone();
    settle_elided(*settled, inputs_);
    Judgement j = judge_(*settled);
    fmt::print("{}\n", j.verdict == Verdict::kGood ? "results equal those of the first step"
                                                   : "results differ from those of the first step: " + j.detail);
  }

  void replace(std::unique_ptr<Module> m, const std::string& note) {
    forget_ahead();
    Point p{here().cursor, std::shared_ptr<const Module>(std::move(m)), {}, false, true, note, 0, 0};
    points_.push_back(std::move(p));
    ++at_;
    where();
  }

  void edit() {
    const char* editor = std::getenv("EDITOR");
    if (!editor || !*editor) fail(FailureKind::kUsage, "$EDITOR is not set; save FILE, change it, load FILE");
    TemporaryFolder folder;
    std::string file = folder.path() + "/module.hlo", text = lossless_text(module());
    write_file(file, text);
    if (run_shell(fmt::format("{} {}", editor, shell_word(file)), true) != 0)
      fail(FailureKind::kUsage, "the editor failed; nothing is changed");
    if (read_file(file) == text) {
      fmt::print("nothing was changed\n");
      return;
    }
    replace(load_verified(file, options_.verify, nullptr, {.universe = module().universe()}), "edited text");
  }

  const StepArgs& args_;
  InputOptions inputs_;
  bool interactive_, failed_ = false;
  PipelineOptions options_;
  std::shared_ptr<const Module> first_, reference_;
  std::unique_ptr<Session> session_;
  Judge judge_;
  std::vector<Point> points_;
  size_t at_ = 0;
  std::vector<std::string> breaks_;
};

}  // namespace

int cmd_step(const StepArgs& a) {
  checked_executor(a.how);
  Loaded loaded;
  RunArgs how = a.how;
  how.file = a.file;
  auto m = load_verified(a.file, !how.no_verify, &loaded);
  InputOptions inputs = input_options(how);
  inputs.snapshot = loaded.arguments;
  for (const std::string& name : words(a.disabled)) pass_or_fail(name);
  const std::string pipeline = pipeline_for(a.pipeline, a.file, loaded.of_2019);
  return Stepper(a, std::move(m), *find_pipeline(pipeline), gpu_options_for(pipeline, a.file), std::move(inputs)).run();
}

}  // namespace hlo
