// Compilations that a log tells of: XLA's timers, passes and tables, jax's lines, put together by module and order.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "replay/report/compile/compile_time.h"

namespace hlo {
namespace {

constexpr const char* kTimers = "XLA's timers";
constexpr std::string_view kCompilingAlarm = "compiling ";

// What a timer is of.
struct TimerName {
  enum Kind { kPasses, kBackend, kWhole, kPart } kind = kPart;
  CompilePhase phase = CompilePhase::kOther;
  std::string module, kernel, label;
};

struct KnownTimer {
  std::string_view begin;
  CompilePhase phase;
  bool module;  // the name behind it is a module's, else a kernel's
};
// xla/service/gpu/{gpu_compiler,nvptx_compiler,amdgpu_compiler,compile_module_to_llvm_ir}.cc,
// xla/backends/cpu/codegen/ir_compiler.cc
constexpr KnownTimer kKnownTimers[] = {
    {"GpuCompiler::RunBackend - IR emission for ", CompilePhase::kEmission, true},
    {"NVPTXCompiler::CompileTargetBinary - CompileToPtx for ", CompilePhase::kLlvm, true},
    {"AMDGPUCompiler::CompileTargetBinary - CompileToHsaco for ", CompilePhase::kLlvm, true},
    {"NVPTXCompiler::CompileTargetBinary - PtxToCubin for ", CompilePhase::kAssembler, true},
    {"Compiled LLVM module: ", CompilePhase::kLlvm, false},
    {"Compiled MLIR module: ", CompilePhase::kEmission, false},
};

std::string in_brackets(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']');
  return open == std::string_view::npos || close == std::string_view::npos || close < open
             ? ""
             : std::string(text.substr(open + 1, close - open - 1));
}

TimerName name_of_timer(const std::string& what) {
  TimerName out;
  out.label = what;
  const std::string_view text = what;
  for (const KnownTimer& known : kKnownTimers)
    if (text.starts_with(known.begin)) {
      out.phase = known.phase;
      (known.module ? out.module : out.kernel) = text.substr(known.begin.size());
      return out;
    }
  if (text.starts_with("Running HLO passes on [")) {
    out.kind = TimerName::kPasses, out.module = in_brackets(text);
  } else if (text.starts_with("Compiling [") && text.find("] for CPU") != std::string_view::npos) {
    out.kind = TimerName::kWhole, out.module = in_brackets(text);
  } else if (const size_t at = text.rfind(" for "); at != std::string_view::npos) {
    out.module = text.substr(at + 5), out.label = text.substr(0, at);
    if (out.label == "GpuCompiler::RunHloPasses") out.kind = TimerName::kPasses;
    if (out.label == "GpuCompiler::RunBackend") out.kind = TimerName::kBackend;
  }
  return out;
}

// Letters, digits and points stay, as XLA and jax make names of modules; what they do to a name's end differs.
std::string like_a_module(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  while (out.ends_with('_')) out.pop_back();
  return out;
}

class CompilationsOfLog {
 public:
  CompilationsOfLog(const LogFile& log, const JaxLog& jax) : log_(log) {
    for (const std::vector<JaxCompile>* list : {&jax.compiles, &jax.only_timed})
      for (const JaxCompile& c : *list)
        if (c.end_line > 0 && c.seconds >= 0) jax_.push_back(&c);
    std::stable_sort(jax_.begin(), jax_.end(), [](const auto* x, const auto* y) { return x->end_line < y->end_line; });
    for (const LogTime& t : log.timers) {
      const TimerName name = name_of_timer(t.what);
      if (name.kind == TimerName::kPasses || name.kind == TimerName::kWhole) modules_.insert(name.module);
      if (name.kind == TimerName::kPasses) last_passes_ = t.line;
    }
    for (const LogPipeline& p : log.pipelines) names_.insert(p.name), pipelines_[p.module].push_back(&p);
  }

  std::vector<CompileTime> all() {
    // By line, whatever tells it.
    size_t timer = 0, time = 0, table = 0, alarm = 0;
    for (;;) {
      const size_t lines[] = {timer < log_.timers.size() ? log_.timers[timer].line : SIZE_MAX,
                              time < jax_.size() ? jax_[time]->end_line : SIZE_MAX,
                              table < log_.stats.size() ? log_.stats[table].line : SIZE_MAX,
                              alarm < log_.alarms.size() ? log_.alarms[alarm].line : SIZE_MAX};
      const size_t next = static_cast<size_t>(std::min_element(std::begin(lines), std::end(lines)) - lines);
      if (lines[next] == SIZE_MAX) break;
      if (next == 0) take_timer(log_.timers[timer++]);
      if (next == 1) take_jax(*jax_[time++]);
      if (next == 2) table_ = &log_.stats[table++];
      if (next == 3) alarms_.push_back(log_.alarms[alarm++]);
    }
    finish();
    return std::move(out_);
  }

 private:
  struct Pending {
    const LogTime* timer;
    TimerName name;
    bool unclear = false;  // whose it is, for several modules were compiled when it was told
  };

  CompileTime& begun(const std::string& module, size_t line) {
    CompileTime t;
    t.module = module, t.line = line;
    out_.push_back(std::move(t));
    return out_.back();
  }

  // The compilation of the module that is under way; a new one where none is.
  CompileTime& open(const std::string& module, size_t line) {
    if (auto at = open_.find(module); at != open_.end()) return out_[at->second];
    open_[module] = out_.size();
    return begun(module, line);
  }

  void take_timer(const LogTime& t) {
    TimerName name = name_of_timer(t.what);
    if (t.what.find("Gpu") != std::string::npos || t.what.find("NVPTX") != std::string::npos) gpu_ = true;
    // A back end without passes, in front of the end of some: a kernel that the autotuner tries.
    if (name.kind == TimerName::kBackend && !modules_.contains(name.module) && t.line < last_passes_) return;
    if (name.kind == TimerName::kPart) {
      pending_.push_back({&t, std::move(name)});
      return;
    }
    CompileTime& c = open(name.module, t.line);
    c.gpu = c.gpu || gpu_;
    if (name.kind == TimerName::kPasses) {
      c.passes = t.seconds, c.passes_from = kTimers;
      give_parts(&c, true, t.line);
      give_passes(&c, t.line);
      return;
    }
    if (name.kind == TimerName::kBackend) {
      c.behind = t.seconds, c.behind_from = kTimers;
      if (c.passes >= 0) c.total = c.passes + c.behind, c.total_from = kTimers;
    } else {
      c.total = t.seconds, c.total_from = kTimers;
      if (c.passes >= 0 && c.passes <= c.total) c.behind = c.total - c.passes, c.behind_from = kTimers;
    }
    give_parts(&c, false, t.line);
    passes_until_[name.module] = t.line, running_.erase(name.module);
    give_alarms(&c);
    open_.erase(name.module);
    last_[like_a_module(name.module)] = static_cast<size_t>(&c - out_.data());
  }

  // Did another module begin its passes in front of the line, and end them behind it?
  bool beside_another(const std::string& module, size_t line) {
    for (; next_pipeline_ < log_.pipelines.size() && log_.pipelines[next_pipeline_].line < line; ++next_pipeline_) {
      const LogPipeline& p = log_.pipelines[next_pipeline_];
      if (modules_.contains(p.module)) running_.insert(p.module);
    }
    return running_.size() > running_.count(module);
  }

  // Parts that were waiting. Up to the end of the passes what other modules tell of is the autotuner's.
  void give_parts(CompileTime* c, bool passes, size_t line) {
    std::vector<Pending> left;
    const bool sole = open_.size() == 1 && !beside_another(c->module, line);
    for (Pending& p : pending_) {
      const bool own = p.name.module == c->module, foreign = !own && modules_.contains(p.name.module);
      p.unclear = p.unclear || (!own && !foreign && !sole);
      if (foreign || p.unclear) {
        left.push_back(std::move(p));
        continue;
      }
      CompilePart part{p.name.phase, p.name.kernel, p.timer->seconds, 1, "log"};
      if (part.phase == CompilePhase::kOther) part.name = p.name.label;
      // Emission may hold what LLVM and ptxas take: they are told apart.
      if (passes)
        part.phase = CompilePhase::kCandidate,
        part.name = fmt::format("{}: {}", p.name.module.empty() ? p.name.kernel : p.name.module,
                                p.name.phase == CompilePhase::kOther ? p.name.label : phase_in_words(p.name.phase));
      add(c, std::move(part));
    }
    pending_ = std::move(left);
  }

  static void add(CompileTime* c, CompilePart part) {
    for (CompilePart& p : c->parts)
      if (p.phase == part.phase && p.name == part.name) {
        p.seconds += part.seconds, p.runs += part.runs;
        return;
      }
    c->parts.push_back(std::move(part));
  }

  // Passes that were entered on the module since its last compilation; else the table that was printed.
  void give_passes(CompileTime* c, size_t line) {
    const size_t from = passes_until_[c->module];
    bool any = false;
    const std::vector<const LogPipeline*>& own = pipelines_[c->module];
    auto at = std::partition_point(own.begin(), own.end(), [&](const LogPipeline* p) { return p->line <= from; });
    for (; at != own.end() && (*at)->line <= line; ++at) {
      const LogPipeline& p = **at;
      for (const LogPass& pass : p.passes) {
        // A pipeline that runs as a pass: its passes are told by themselves.
        const bool pipeline = pass.name != p.name || pass.name.find(' ') != std::string::npos;
        if (pass.microseconds < 0 || (pipeline && names_.contains(pass.name))) continue;
        add(c, {CompilePhase::kPass, pass.name, static_cast<double>(pass.microseconds) * 1e-6, 1, "log"});
        any = true;
      }
    }
    passes_until_[c->module] = line, running_.erase(c->module);
    if (table_ && !any) give_table(c);
    table_ = nullptr;
  }

  void give_table(CompileTime* c) {
    for (const LogPassSum& p : table_->passes)
      add(c, {CompilePhase::kPass, p.name, p.seconds, static_cast<size_t>(p.runs), "log"});
    if (c->passes < 0) c->passes = table_->seconds, c->passes_from = "XLA's table of passes";
    c->gpu = true;
    table_ = nullptr;
  }

  // An alarm names the module that it compiles, or an instruction of the one that ends next.
  void give_alarms(CompileTime* c) {
    std::vector<LogAlarm> left;
    for (LogAlarm& a : alarms_) {
      const std::string_view what = a.what;
      const bool other = what.starts_with(kCompilingAlarm) &&
                         like_a_module(what.substr(kCompilingAlarm.size())) != like_a_module(c->module);
      (other ? left : c->slow).push_back(std::move(a));
    }
    alarms_ = std::move(left);
  }

  // By jax's clock, which ends behind XLA's own.
  void take_jax(const JaxCompile& told) {
    const std::string module = module_of_jax_name(told.name);
    const auto last = last_.find(like_a_module(module));
    CompileTime& c = last == last_.end() ? begun(module, told.end_line) : out_[last->second];
    if (last != last_.end()) last_.erase(last);
    c.total = told.seconds, c.total_from = "jax";
    if (table_ && c.of(CompilePhase::kPass) < 0) give_table(&c);
    // Of what XLA's own timers do not tell, all but the passes is behind them, or around.
    if (c.behind < 0 && c.passes >= 0 && c.passes <= c.total)
      c.behind = c.total - c.passes, c.behind_from = "jax, less the passes";
    c.lowering = told.lowering, c.tracing = told.tracing;
    give_alarms(&c);
  }

  // What is left belongs to no compilation that the log ends.
  void finish() {
    for (const auto& [module, at] : open_) out_[at].notes.emplace_back("no line says that it ended");
    if (table_) give_table(&begun("", table_->line));
    for (LogAlarm& a : alarms_) {
      const bool named = a.what.starts_with(kCompilingAlarm);
      CompileTime& c = begun(named ? a.what.substr(kCompilingAlarm.size()) : "", a.line);
      if (named && a.seconds >= 0) c.total = a.seconds, c.total_from = "XLA's alarm";
      c.slow.push_back(std::move(a));
    }
    alarms_.clear();
    if (pending_.empty()) return;
    CompileTime& c = begun("", pending_.front().timer->line);
    c.notes.emplace_back(
        "these could be of several modules that were compiled at once, or of one whose end is not recorded");
    c.gpu = gpu_;
    for (const Pending& p : pending_)
      add(&c, {p.name.phase, p.name.kernel.empty() ? p.name.module : p.name.kernel, p.timer->seconds, 1, "log"});
    pending_.clear();
  }

  const LogFile& log_;
  std::vector<const JaxCompile*> jax_;  // that ended, in that order
  std::vector<CompileTime> out_;
  std::set<std::string> modules_;                                     // that are compiled, as the log tells
  std::set<std::string> names_;                                       // of pipelines
  std::map<std::string, std::vector<const LogPipeline*>> pipelines_;  // by module, in order
  std::set<std::string> running_;  // modules that began passes in front of where we are, and have not ended them
  size_t next_pipeline_ = 0;
  std::map<std::string, size_t> open_;  // by module, where it stands in out_
  std::map<std::string, size_t> last_;  // by name as in like_a_module, the last that ended and jax has not told of
  std::map<std::string, size_t> passes_until_;
  std::vector<Pending> pending_;
  std::vector<LogAlarm> alarms_;
  const LogStats* table_ = nullptr;
  size_t last_passes_ = 0;  // the last line that ends passes
  bool gpu_ = false;
};

}  // namespace

std::string module_of_jax_name(std::string_view what) { return like_a_module(what); }

std::vector<CompileTime> compile_times(const LogFile& log, const JaxLog& jax) {
  std::vector<CompileTime> out = CompilationsOfLog(log, jax).all();
  for (CompileTime& t : out)
    std::stable_sort(t.parts.begin(), t.parts.end(), [](const CompilePart& x, const CompilePart& y) {
      return x.phase != y.phase ? x.phase < y.phase : x.seconds > y.seconds;
    });
  std::stable_sort(out.begin(), out.end(), [](const CompileTime& x, const CompileTime& y) { return x.line < y.line; });
  return out;
}

}  // namespace hlo
