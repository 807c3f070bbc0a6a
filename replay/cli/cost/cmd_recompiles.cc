// recompiles: which modules of dumps, of jax's compilation cache or of a log are one function, and what differs.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "parser/proto/proto_reader.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"
#include "replay/record/files/held_modules.h"
#include "replay/record/files/run.h"
#include "replay/record/start/start_stage.h"
#include "replay/report/compile/compile_time.h"
#include "replay/report/compile/recompiles.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kShownReasons = 8, kShownValues = 6;

class Recompilations {
 public:
  explicit Recompilations(const RecompilesArgs& a) : a_(a) {
    if (!a.log.empty()) log_ = read_jax_log(read_file(a.log));
    for (const std::string& what : a.what) take(what);
    if (log_) join(*log_);
    functions_ = recompiled(all_);
  }

  int tell() {
    size_t again = 0, known = 0, cached = 0;
    double seconds = 0;
    bool whole = false;
    for (const RecompiledFunction& f : functions_)
      again += f.again(), seconds += f.seconds, known += f.seconds_known, whole |= f.whole_seconds;
    for (const Compiled& c : all_) cached += c.from_cache;
    if (a_.json) {
      print_json(json(again, known, seconds));
    } else {
      std::set<std::string> names;
      for (const Compiled& c : all_) names.insert(c.function);
      fmt::print("{} compilation{} of {} function{}{}; {}\n", all_.size() - cached,
                 all_.size() - cached == 1 ? "" : "s", names.size(), names.size() == 1 ? "" : "s",
                 cached ? fmt::format(" ({} more came from the cache)", cached) : "",
                 !again ? "none was compiled again"
                        : fmt::format("{} of them again, {}", again, lost(seconds, known, again, whole)));
      for (size_t k = 0; k < functions_.size() && k < a_.most; ++k) print(functions_[k]);
      if (functions_.size() > a_.most) fmt::print("… and {} functions more (--most)\n", functions_.size() - a_.most);
      for (const std::string& n : notes_) fmt::print("note: {}\n", printable(n));
    }
    return again ? kNo : kYes;
  }

 private:
  void take(const std::string& what) {
    std::error_code error;
    if (what != "-" && names_modules(what)) {
      bool any = false;
      try {
        for (const Recording& r : select_modules(what)) add_recording(what, r), any = true;
      } catch (const Failure& e) {
        if (interrupted() || !fs::is_directory(what, error) || holding_files(what).empty()) throw;
      }
      if (!any) add_cache(what);
      return;
    }
    const std::string text = read_file(what);
    if (std::optional<HeldModules> held = held_modules(what, text)) {
      add_held(what, *held);
      return;
    }
    if (text.find('\0') != std::string::npos)
      fail(FailureKind::kUsage, "{} is no dump, no compilation cache and no log", what);
    logs_.push_back(std::make_unique<JaxLog>(read_jax_log(text)));
    if (logs_.back()->compiles.empty())
      fail(FailureKind::kUsage,
           "{} is no dump and no compilation cache, and no line of it reports a compilation: JAX_LOG_COMPILES=1 and "
           "JAX_EXPLAIN_CACHE_MISSES=1 have jax print them",
           what);
    for (const JaxCompile& c : logs_.back()->compiles) all_.push_back(compiled_of_log(c, what));
  }

  void add_recording(const std::string& what, const Recording& r) {
    Compiled c;
    const std::optional<Selector> selector = split_selector(what);
    c.where = fmt::format("{}:{:04}", selector ? selector->folder : what, r.module_number);
    c.function = function_of(r.module_name);
    try {
      // The first stage is the program as it was handed over; constants in full where the folder has its proto.
      const auto first =
          std::find_if(r.rows.begin(), r.rows.end(), [](const StageRow& row) { return !row.file.empty(); });
      if (first == r.rows.end()) fail(FailureKind::kIo, "no stage with a text");
      describe_compiled(*load(proto_or_text(r.folder, first->file)), &c);
    } catch (const Failure& e) {
      if (interrupted()) throw;
      notes_.push_back(fmt::format("{} ({}): not compared: {}", c.where, r.module_name, first_line(e.what())));
      return;
    }
    for (const std::string& f : r.other_files)
      if (f.ends_with(".debug_options")) c.flags = flags_of(read_confined(r.folder, f)), c.flags_told = true;
    const CompileTime time = compile_time(r);
    if (time.total >= 0)
      c.seconds = time.total, c.seconds_from = time.total_from;
    else if (time.passes >= 0)
      c.seconds = time.passes, c.seconds_from = "its passes alone";
    all_.push_back(std::move(c));
  }

  void add_held(const std::string& file, const HeldModules& held) {
    for (const HeldModule& m : held.modules) {
      Compiled c;
      c.where = file;
      // jax names an entry after its key.
      if (std::string name = fs::path(file).filename().string(); name.ends_with("-cache"))
        c.key = name.substr(0, name.size() - 6);
      try {
        describe_compiled(*read_held(m, file), &c);
      } catch (const Failure& e) {
        if (interrupted()) throw;
        notes_.push_back(fmt::format("{}: not compared: {}", file, first_line(e.what())));
        continue;
      }
      if (held.compile_ms >= 0)
        c.seconds = static_cast<double>(held.compile_ms) / 1000, c.seconds_from = "the cache's entries",
        c.whole_seconds = true;
      all_.push_back(std::move(c));
    }
    if (held.modules.empty()) notes_.push_back(fmt::format("{}: {}", file, held.why_none));
  }

  static std::unique_ptr<Module> read_held(const HeldModule& m, const std::string& file) {
    return load(file + ":" + m.label());
  }

  void add_cache(const std::string& folder) {
    Progress progress("reading " + folder);
    const std::vector<std::string> files = holding_files(folder);
    for (size_t k = 0; k < files.size(); ++k) {
      progress.at(k, files.size(), files[k]);
      if (interrupted()) fail(FailureKind::kUsage, "interrupted");
      const std::string path = folder + "/" + files[k];
      try {
        if (const std::optional<HeldModules> held = held_modules(path, read_confined(folder, files[k])))
          add_held(path, *held);
      } catch (const Failure& e) {
        if (interrupted()) throw;
        notes_.push_back(fmt::format("{}: {}", path, first_line(e.what())));
      }
    }
  }

  // By the key of jax's cache; else, where the log tells of as many of one function as there are, by their order.
  void join(const JaxLog& log) {
    std::map<std::string, std::vector<size_t>> ours;
    std::map<std::string, std::vector<const JaxCompile*>> theirs;
    auto plain = [](const std::string& name) {
      std::string out;
      for (char c : name)
        if (std::isalnum(static_cast<unsigned char>(c))) out += c;
      return out;
    };
    std::map<std::string, const JaxCompile*> by_key;
    for (const JaxCompile& c : log.compiles) {
      if (!c.key.empty() && !c.from_cache) by_key.emplace(c.key, &c);
      if (!c.from_cache) theirs[plain(c.function)].push_back(&c);
    }
    std::map<const JaxCompile*, size_t> places;
    for (size_t k = 0; k < all_.size(); ++k) {
      if (const auto at = by_key.find(all_[k].key); at != by_key.end())
        attach(*at->second, k), places[at->second] = k;
      else if (all_[k].key.empty() && !all_[k].said)
        ours[plain(all_[k].function)].push_back(k);
    }
    for (const auto& [name, list] : ours) {
      const auto at = theirs.find(name);
      if (at == theirs.end()) continue;
      if (at->second.size() != list.size()) {
        notes_.push_back(fmt::format("the log reports {} compilations of {}, here are {}: they are not joined",
                                     at->second.size(), all_[list[0]].function, list.size()));
        continue;
      }
      for (size_t k = 0; k < list.size(); ++k) attach(*at->second[k], list[k]);
    }
    in_order(log, places);
  }

  // Entries of a cache have no order of their own; a log gives them one.
  void in_order(const JaxLog& log, const std::map<const JaxCompile*, size_t>& places) {
    if (places.empty()) return;
    std::vector<Compiled> sorted;
    std::set<size_t> taken;
    for (const JaxCompile& c : log.compiles)
      if (const auto at = places.find(&c); at != places.end() && taken.insert(at->second).second)
        sorted.push_back(std::move(all_[at->second]));
    for (size_t k = 0; k < all_.size(); ++k)
      if (!taken.contains(k)) sorted.push_back(std::move(all_[k]));
    all_ = std::move(sorted);
  }

  void attach(const JaxCompile& said, size_t k) {
    Compiled& c = all_[k];
    c.said = &said;
    if (said.seconds >= 0) c.seconds = said.seconds, c.seconds_from = "jax", c.whole_seconds = false;
    // jax drops arguments that the program does not read.
    if (said.arguments.size() == c.arguments.size())
      for (size_t j = 0; j < c.arguments.size(); ++j) {
        c.arguments[j].weak = said.arguments[j].weak;
        // What the caller left open the partitioner chose.
        if (said.arguments[j].sharding.empty()) c.arguments[j].sharding.clear();
      }
  }

  static std::string lost(double seconds, size_t known, size_t of, bool whole) {
    if (!known) return "seconds lost: unknown";
    const std::string rest = known == of ? "" : fmt::format(", of {} unknown", of - known);
    // Entries of jax's cache have whole seconds.
    if (whole && seconds == 0) return "less than a second lost by each" + rest;
    return fmt::format("{} lost{}{}", time_text(seconds), whole ? " (whole seconds, rounded down)" : "", rest);
  }

  void print(const RecompiledFunction& f) const {
    fmt::print("\n{}{}: {} compilations, {} again, {}\n", printable(f.function),
               f.place.empty() ? "" : fmt::format(" ({})", printable(f.place)), f.which.size(), f.again(),
               lost(f.seconds, f.seconds_known, f.again(), f.whole_seconds));
    for (size_t k = 0; k < f.reasons.size() && k < kShownReasons; ++k) {
      const RecompileReason& r = f.reasons[k];
      std::string values;
      for (size_t v = 0; v < r.values.size() && v < kShownValues; ++v)
        values += (v ? ", " : ": ") + printable(r.values[v]);
      if (r.values.size() > kShownValues) values += ", …";
      fmt::print("  {:>4} by {}{}{}\n", r.compilations, printable(r.where), values,
                 r.source.empty() ? "" : "  (" + printable(r.source) + ")");
      for (size_t w = 0; w < r.with.size() && w < 3; ++w) fmt::print("       and {}\n", printable(r.with[w]));
      if (r.with.size() > 3) fmt::print("       and {} more\n", r.with.size() - 3);
      fmt::print("       {}\n", recompile_advice(r.kind));
    }
    if (f.reasons.size() > kShownReasons)
      fmt::print("  … and {} reasons more (--json)\n", f.reasons.size() - kShownReasons);
    // A key is a hash: where entries are the same, what else goes into it is what differs.
    const bool keys = std::any_of(f.which.begin(), f.which.end(), [&](size_t k) { return !all_[k].key.empty(); });
    const bool same =
        std::any_of(f.reasons.begin(), f.reasons.end(), [](const auto& r) { return r.kind == "unknown"; });
    if (keys && same)
      fmt::print(
          "       the entries are equal and their keys are not: a key is also computed from flags, compile options,\n"
          "       devices and versions of jaxlib and its back end, which an entry does not hold\n");
  }

  Json json(size_t again, size_t known, double seconds) const {
    Json functions = Json::array();
    for (const RecompiledFunction& f : functions_) {
      Json reasons = Json::array(), modules = Json::array();
      for (const RecompileReason& r : f.reasons)
        reasons.push_back({{"kind", r.kind},
                           {"where", r.where},
                           {"values", r.values},
                           {"source", r.source},
                           {"with", r.with},
                           {"compilations", r.compilations},
                           {"seconds", r.seconds_known ? Json(r.seconds) : Json()},
                           {"advice", recompile_advice(r.kind)}});
      for (size_t k : f.which)
        modules.push_back({{"where", all_[k].where},
                           {"key", all_[k].key},
                           {"seconds", all_[k].seconds < 0 ? Json() : Json(all_[k].seconds)},
                           {"from", all_[k].seconds < 0 ? Json() : Json(all_[k].seconds_from)}});
      functions.push_back({{"function", f.function},
                           {"place", f.place},
                           {"again", f.again()},
                           {"seconds_lost", f.seconds_known ? Json(f.seconds) : Json()},
                           {"seconds_unknown", f.again() - f.seconds_known},
                           {"whole_seconds", f.whole_seconds},
                           {"reasons", reasons},
                           {"modules", modules}});
    }
    return {{"what", a_.what},
            {"compilations", all_.size()},
            {"again", again},
            {"seconds_lost", known ? Json(seconds) : Json()},
            {"seconds_unknown", again - known},
            {"functions", functions},
            {"notes", notes_}};
  }

  const RecompilesArgs& a_;
  std::optional<JaxLog> log_;
  std::vector<std::unique_ptr<JaxLog>> logs_;
  std::vector<Compiled> all_;
  std::vector<RecompiledFunction> functions_;
  std::vector<std::string> notes_;
};

}  // namespace

int cmd_recompiles(const RecompilesArgs& a) { return Recompilations(a).tell(); }

}  // namespace hlo
