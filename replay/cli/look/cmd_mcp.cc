// mcp: the commands as tools of the Model Context Protocol, for agents.
//
// A tool's work is this program again, as a child: a fault, a full memory or a cancelled request ends the child and not
// the server, and what an agent hears is what a person and a script hear. Answers are the commands' texts, by lines
// within a budget.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>

#include "replay/cli/command.h"
#include "replay/mcp/budget.h"
#include "replay/mcp/server.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"
#include "replay/record/files/held_modules.h"
#include "replay/record/files/run.h"

namespace hlo {
namespace {
namespace fs = std::filesystem;
using mcp::Answer;

constexpr int64_t kBudget = 2000, kLeastBudget = 100, kMostBudget = 100000;
constexpr size_t kKept = 8;                      // answers that a cursor goes on with, without asking again
constexpr size_t kKeptBytes = size_t{32} << 20;  // of one
constexpr size_t kMostText = 4096;               // of an argument

struct Ran {
  int code = kBad;
  std::string output, errors;
};

// Arguments of a call, checked.
class Arguments {
 public:
  explicit Arguments(const Json& j) : j_(j) {}
  bool has(const char* key) const { return j_.contains(key) && !j_[key].is_null(); }
  std::string text(const char* key, bool needed = false) const {
    if (!has(key)) {
      if (needed) fail(FailureKind::kUsage, "the argument '{}' is missing", key);
      return "";
    }
    if (!j_[key].is_string()) fail(FailureKind::kUsage, "the argument '{}' is a text", key);
    std::string out = j_[key].get<std::string>();
    if (out.size() > kMostText || out.find('\0') != std::string::npos)
      fail(FailureKind::kUsage, "the argument '{}' is too long or no text", key);
    if (out.starts_with('-')) fail(FailureKind::kUsage, "the argument '{}' must not begin with '-'", key);
    return out;
  }
  int64_t number(const char* key, int64_t otherwise) const {
    if (!has(key)) return otherwise;
    if (!j_[key].is_number_integer()) fail(FailureKind::kUsage, "the argument '{}' is a whole number", key);
    return j_[key].get<int64_t>();
  }
  bool flag(const char* key) const {
    if (!has(key)) return false;
    if (!j_[key].is_boolean()) fail(FailureKind::kUsage, "the argument '{}' is true or false", key);
    return j_[key].get<bool>();
  }
  size_t budget() const {
    return static_cast<size_t>(std::clamp(number("budget", kBudget), kLeastBudget, kMostBudget));
  }
  size_t cursor() const {
    if (!has("cursor")) return 0;
    const std::string given = j_["cursor"].is_string() ? j_["cursor"].get<std::string>() : j_["cursor"].dump();
    if (given.empty() || given.size() > 12 || given.find_first_not_of("0123456789") != std::string::npos)
      fail(FailureKind::kUsage, "a cursor is what an answer ended with");
    return static_cast<size_t>(std::stoull(given));
  }

 private:
  const Json& j_;
};

class Toolbox {
 public:
  explicit Toolbox(const McpArgs& a) : root_(canonical_folder(a.root)), writable_(canonical_folder(a.allow_write)) {
    // What the commands keep between calls is this server's, and goes with it.
    if (!std::getenv("HLO_REPLAY_CACHE")) environment_.emplace_back("HLO_REPLAY_CACHE", scratch_.path() + "/imports");
    program_ = fs::read_symlink("/proc/self/exe").string();
  }

  std::vector<mcp::Tool> tools();

 private:
  using Words = std::vector<std::string>;
  struct Kept {
    Words words;
    Ran ran;
  };

  static std::string canonical_folder(const std::string& folder) {
    if (folder.empty()) return "";
    std::error_code error;
    fs::path path = fs::canonical(folder, error);
    if (error || !fs::is_directory(path, error)) fail(FailureKind::kUsage, "{} is no folder", folder);
    return path.string();
  }

  static bool below(const fs::path& path, const std::string& folder) {
    const fs::path of(folder);
    return std::mismatch(of.begin(), of.end(), path.begin(), path.end()).first == of.end();
  }

  // `PATH[:MODULE[:STAGE]][#INSTRUCTION]`: without the instruction, which goes to `instruction` where that is asked
  // for. Below --root: relative ids count from there, and nothing outside is read.
  std::string id(const Arguments& a, const char* key, std::string* instruction = nullptr) const {
    std::string whole = a.text(key, true);
    if (size_t mark = whole.rfind('#'); mark != std::string::npos) {
      if (instruction) *instruction = whole.substr(mark + 1);
      whole.resize(mark);
    }
    if (!root_.empty() && !whole.starts_with('/')) whole = root_ + "/" + whole;
    std::error_code error;
    for (size_t end = whole.size(); end != std::string::npos && end > 0; end = whole.rfind(':', end - 1)) {
      const std::string path = whole.substr(0, end);
      if (!fs::exists(path, error)) continue;
      const fs::path real = fs::canonical(path, error);
      if (!root_.empty() && (error || !below(real, root_)))
        fail(FailureKind::kUsage, "{} is not below {}", a.text(key), root_);
      return whole;
    }
    fail(FailureKind::kIo, "{}: no such file or folder{}", a.text(key),
         root_.empty() ? "" : fmt::format(" below {}", root_));
  }

  // A file or folder to be made below --allow-write.
  std::string to_write(const Arguments& a, const char* key) const {
    const std::string name = a.text(key, true);
    std::error_code error;
    const fs::path path = fs::weakly_canonical(fs::path(writable_) / name, error);
    if (error || !below(path, writable_) || path == fs::path(writable_))
      fail(FailureKind::kUsage, "{} is not below {}", name, writable_);
    if (fs::exists(path, error)) fail(FailureKind::kUsage, "{} exists already", path.string());
    return path.string();
  }

  Ran run(const Words& words, const std::atomic<bool>& stop) {
    TemporaryFolder folder;
    Command c;
    c.words = {program_};
    c.words.insert(c.words.end(), words.begin(), words.end());
    c.environment = environment_;
    c.output = folder.path() + "/out", c.errors = folder.path() + "/err";
    c.stop = &stop;
    Ran out;
    out.code = run_command(c);
    out.output = read_file(c.output), out.errors = read_file(c.errors);
    if (out.code >= 127)
      out.errors += fmt::format("the command ended by {}\n",
                                out.code == 127 ? "not being found" : fmt::format("signal {}", out.code - 128));
    return out;
  }

  // The same again where a cursor goes on with what was just answered.
  Ran run_or_kept(const Arguments& a, const Words& words, const std::atomic<bool>& stop) {
    if (a.cursor()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const Kept& k : kept_)
        if (k.words == words) return k.ran;
    }
    Ran out = run(words, stop);
    if (out.output.size() > kKeptBytes) return out;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(kept_, [&](const Kept& k) { return k.words == words; });
    kept_.push_front({words, out});
    if (kept_.size() > kKept) kept_.pop_back();
    return out;
  }

  static Answer failed(const Ran& r) {
    std::string text = r.errors.empty() ? r.output : r.errors;
    return {mcp::within_budget(text, 0, 1000), true};
  }

  // A command's text, from the cursor on.
  Answer told(const Arguments& a, const Words& words, const std::atomic<bool>& stop, const std::string& next = "") {
    Ran r = run_or_kept(a, words, stop);
    if (r.code != kYes && (r.code != kNo || r.output.empty())) return failed(r);
    if (!r.errors.empty()) r.output += r.errors;
    if (!next.empty()) r.output += next + "\n";
    return {mcp::within_budget(r.output, a.cursor(), a.budget()), false};
  }

  Answer stages(const Arguments& a, const std::atomic<bool>& stop);
  Answer text(const Arguments& a, const std::atomic<bool>& stop);
  Answer explain(const Arguments& a, const std::atomic<bool>& stop);
  Answer search(const Arguments& a, const std::atomic<bool>& stop);
  Answer memory(const Arguments& a, const std::atomic<bool>& stop);
  Answer triage(const Arguments& a, const std::atomic<bool>& stop);
  Answer profile(const Arguments& a, const std::atomic<bool>& stop);
  void add_reading(std::vector<mcp::Tool>* out);
  void add_asking(std::vector<mcp::Tool>* out);
  void add_writing(std::vector<mcp::Tool>* out);

  const std::string root_, writable_;
  std::string program_;
  TemporaryFolder scratch_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::mutex mutex_;
  std::deque<Kept> kept_;
};

// --- schemas ---

Json property(const char* type, const char* description) { return {{"type", type}, {"description", description}}; }

constexpr const char* kId =
    "PATH, PATH:MODULE or PATH:MODULE:STAGE, as other answers name them; a file of HLO, a folder "
    "that XLA dumped, a profile";

mcp::Tool tool(const char* name, const char* title, const char* description, Json properties, Json required) {
  properties["budget"] = property("integer", "tokens that the answer may take, about (2000)");
  properties["cursor"] = property("string", "where the answer before ended: continues after it");
  mcp::Tool out;
  out.name = name, out.title = title, out.description = description;
  out.schema = {{"type", "object"},
                {"properties", std::move(properties)},
                {"required", std::move(required)},
                {"additionalProperties", false}};
  return out;
}

Json by_words(std::initializer_list<const char*> words, const char* description) {
  Json list = Json::array();
  for (const char* w : words) list.push_back(w);
  return {{"type", "string"}, {"enum", list}, {"description", description}};
}

// --- tools that take more than a command's words ---

Answer Toolbox::stages(const Arguments& a, const std::atomic<bool>& stop) {
  const std::string spec = id(a, "id");
  Ran r = run_or_kept(a, {"open", spec, "--json"}, stop);
  if (r.code != kYes) return failed(r);
  const Json all = Json::parse(r.output, nullptr, false);
  if (all.is_discarded()) return {"the command's answer is no JSON", true};
  std::string out;
  const bool everything = a.flag("all");
  for (const Json& m : all["modules"]) {
    const std::string module = fmt::format("{}:{:04}", all["folder"].get<std::string>(), m["module_number"].get<int>());
    out +=
        fmt::format("{}  {}  (dumped by {})\n", module, m["module"].get<std::string>(), m["source"].get<std::string>());
    for (const Json& s : m["stages"]) {
      const std::string kind = s["kind"], name = s["name"];
      const bool text = s.contains("file");
      if (!text && !everything) continue;
      const Json none(0);
      auto n = [&](const char* key) { return s.value(key, none).get<int64_t>(); };
      std::string number = s.contains("number") ? fmt::format("{:04}", s["number"].get<int64_t>()) : name;
      out += fmt::format("  {}:{}  {}  {} -> {} instructions, {} new, {} gone, {} changed{}{}\n", module, number, name,
                         n("instructions_before"), n("instructions_after"), n("added"), n("removed"), n("modified"),
                         s.contains("microseconds") ? fmt::format(", {} us", n("microseconds")) : "",
                         text ? "" : " (no text)");
    }
  }
  return {mcp::within_budget(out, a.cursor(), a.budget()), false};
}

Answer Toolbox::text(const Arguments& a, const std::atomic<bool>& stop) {
  std::string instruction = a.text("instruction");
  const std::string spec = id(a, "id", instruction.empty() ? &instruction : nullptr);
  std::vector<std::string> words{"print", spec};
  if (!a.flag("metadata")) words.emplace_back("--no-metadata");
  Ran r = run_or_kept(a, words, stop);
  if (r.code != kYes) return failed(r);
  int64_t first = std::max<int64_t>(a.number("first", 1), 1), last = a.number("last", INT64_MAX), number = 0;
  if (!instruction.empty()) {
    // The line that defines it, with some around.
    const int64_t around = std::clamp<int64_t>(a.number("around", 8), 0, 10000);
    int64_t line = 0;
    for (size_t at = 0; at < r.output.size() && !number; ++line) {
      size_t end = std::min(r.output.find('\n', at), r.output.size());
      std::string_view text = std::string_view(r.output).substr(at, end - at);
      at = end + 1;
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      if (text.starts_with("ROOT ")) text.remove_prefix(5);
      if (text.starts_with('%')) text.remove_prefix(1);
      if (text.starts_with(instruction) && text.substr(instruction.size()).starts_with(" = ")) number = line + 1;
    }
    if (!number)
      return {fmt::format("{} has no instruction '{}'; the tool search finds names", spec, instruction), true};
    first = std::max<int64_t>(number - around, 1), last = number + around;
  }
  std::string out;
  int64_t line = 0;
  while (r.output.ends_with('\n')) r.output.pop_back();
  for (size_t at = 0; at < r.output.size();) {
    size_t end = std::min(r.output.find('\n', at), r.output.size());
    if (++line >= first && line <= last)
      out += fmt::format("{:>6}  {}\n", line, std::string_view(r.output).substr(at, end - at));
    at = end + 1;
  }
  if (out.empty()) return {fmt::format("{} has {} lines", spec, line), true};
  return {mcp::within_budget(out, a.cursor(), a.budget()), false};
}

Answer Toolbox::explain(const Arguments& a, const std::atomic<bool>& stop) {
  std::string instruction = a.text("instruction");
  std::string spec = id(a, "id", instruction.empty() ? &instruction : nullptr);
  // A stage's id will do: explain goes through all stages of its module.
  if (std::optional<Selector> s = split_selector(spec); s && !names_modules(spec) && s->parts.size() == 2)
    spec = s->folder + ":" + s->parts[0];
  else if (s && !names_modules(spec) && s->parts.size() == 1)
    spec = s->folder;
  std::vector<std::string> words{"explain", spec};
  const std::string pass = a.text("pass"), other = a.text("why_not");
  if (!pass.empty())
    words.insert(words.end(), {"--pass", pass});
  else if (!other.empty())
    words.insert(words.end(), {"--why-not", instruction, other});
  else if (!instruction.empty())
    words.push_back(instruction);
  else
    fail(FailureKind::kUsage,
         "explain takes an instruction (PATH:MODULE#NAME or 'instruction'), with 'why_not' a second one, or a 'pass'");
  return told(a, words, stop);
}

Answer Toolbox::search(const Arguments& a, const std::atomic<bool>& stop) {
  Words words{"search", id(a, "id"), "--most=1000000"};
  if (a.has("name")) words.push_back(a.text("name"));
  for (const auto& [key, option] :
       {std::pair("opcode", "--opcode"), {"op_name", "--op-name"}, {"shape", "--shape"}, {"line", "--line"}})
    if (a.has(key)) words.push_back(fmt::format("{}={}", option, a.text(key)));
  return told(a, words, stop);
}

Answer Toolbox::memory(const Arguments& a, const std::atomic<bool>& stop) {
  Words words{"memory", id(a, "id"), "--most=100000", "--by=" + (a.has("by") ? a.text("by") : "line")};
  if (a.has("log")) words.push_back("--log=" + id(a, "log"));
  if (a.flag("stages")) words.emplace_back("--stages");
  if (a.flag("try")) words.emplace_back("--try");
  return told(a, words, stop);
}

Answer Toolbox::triage(const Arguments& a, const std::atomic<bool>& stop) {
  Words words{"triage", id(a, "id"),
              fmt::format("--time-limit={}", std::clamp<int64_t>(a.number("seconds", 120), 1, 3600))};
  if (a.has("complaint")) words.push_back("--complaint=" + a.text("complaint"));
  for (const char* file : {"log", "inputs", "outputs"})
    if (a.has(file)) words.push_back(fmt::format("--{}={}", file, id(a, file)));
  Ran r = run_or_kept(a, words, stop);
  // *unknown* is an answer, too.
  if (r.output.empty()) return failed(r);
  return Answer{mcp::within_budget(r.output, a.cursor(), a.budget()), false};
}

Answer Toolbox::profile(const Arguments& a, const std::atomic<bool>& stop) {
  Words words{"profile", id(a, "id")};
  if (a.has("modules")) words.push_back(id(a, "modules"));
  words.insert(words.end(), {"--most=100000", "--by=" + (a.has("by") ? a.text("by") : "op")});
  if (a.has("op")) words.push_back("--op=" + a.text("op"));
  return told(a, words, stop);
}

// --- the table ---

void Toolbox::add_reading(std::vector<mcp::Tool>* out) {
  auto add = [&](mcp::Tool t, auto call) {
    t.call = [call](const Json& j, const std::atomic<bool>& stop) { return call(Arguments(j), stop); };
    out->push_back(std::move(t));
  };
  add(tool("open", "Open a dump, recording or cache",
           "What a folder holds: its modules, those to look at first at the top; of one module the target, most "
           "expensive "
           "kernels "
           "with source lines, memory, passes that did most, and findings. Start here.",
           {{"id", property("string", kId)}}, {"id"}),
      [this](const Arguments& a, const auto& stop) {
        return told(a, {"open", id(a, "id")}, stop);
      });
  add(tool("stages", "Stages of a compilation",
           "Every stage of a module with its id: which pass, instructions before and after, how many are new, gone, "
           "changed.",
           {{"id", property("string", kId)}, {"all", property("boolean", "passes that changed nothing, too")}}, {"id"}),
      [this](const Arguments& a, const auto& stop) { return stages(a, stop); });
  add(tool("text", "Text of a stage",
           "HLO text of a stage or file with line numbers: a range of lines, or the lines around an instruction.",
           {{"id", property("string", "PATH:MODULE:STAGE, a file, with #INSTRUCTION the lines around one")},
            {"first", property("integer", "first line (1)")},
            {"last", property("integer", "last line")},
            {"instruction", property("string", "name of an instruction, in place of a range")},
            {"around", property("integer", "lines before and after the instruction (8)")},
            {"metadata", property("boolean", "with metadata, which is long (false)")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) { return text(a, stop); });
  add(tool("search", "Search for instructions",
           "Instructions by parts of their name, op_name, shape or source line, or by opcode (of custom calls the "
           "target); gives ids for text and explain. Of a folder the last stage of every module.",
           {{"id", property("string", kId)},
            {"name", property("string", "part of the name")},
            {"opcode", property("string", "opcode, or part of a custom call's target")},
            {"op_name", property("string", "part of the metadata's op_name")},
            {"shape", property("string", "part of the shape: f32[128")},
            {"line", property("string", "part of the source line: model.py:12")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) { return search(a, stop); });
  add(tool("summary", "Summary by line, scope, class, module or pass",
           "Least time, operations, bytes and memory added up by source line, scope, class of kernel or module; by "
           "pass what "
           "the compiler's passes did.",
           {{"id", property("string", kId)},
            {"by", by_words({"line", "scope", "class", "module", "pass"}, "key (line)")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) {
        return told(a, {"summary", id(a, "id"), "--most=100000", "--by=" + (a.has("by") ? a.text("by") : "line")},
                    stop);
      });
  add(tool("cost", "Cost of every instruction",
           "Operations, bytes and the least time of every kernel, the most expensive first; of a run a row a module.",
           {{"id", property("string", kId)}, {"gpu", property("string", "data sheet for bounds: H100, A100 …")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) {
        Words words{"cost", id(a, "id"), "--most=100000", "--no-verify"};
        if (a.has("gpu")) words.push_back("--gpu=" + a.text("gpu"));
        return told(a, words, stop);
      });
  add(tool("memory", "Memory at the peak",
           "What a module holds on its device and what is alive at the peak, by source line, scope or value. 'log': "
           "what "
           "ran out of memory; 'stages': which pass raised the peak; 'try': changes that need less, compiled.",
           {{"id", property("string", kId)},
            {"by", by_words({"line", "scope", "value"}, "key (line)")},
            {"log", property("string", "what the program printed when memory ran out: a file")},
            {"stages", property("boolean", "the peak after each pass, of one module (false)")},
            {"try", property("boolean", "compile changes that may need less memory; may take long (false)")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) { return memory(a, stop); });
}

void Toolbox::add_asking(std::vector<mcp::Tool>* out) {
  auto add = [&](mcp::Tool t, auto call) {
    t.call = [call](const Json& j, const std::atomic<bool>& stop) { return call(Arguments(j), stop); };
    out->push_back(std::move(t));
  };
  add(tool("diff", "Compare two stages, modules or folders",
           "By structure, whatever the names; of two folders the first stage that differs. 'run': do both compute the "
           "same?",
           {{"a", property("string", kId)},
            {"b", property("string", kId)},
            {"run", property("boolean", "run both and compare results (false)")}},
           {"a", "b"}),
      [this](const Arguments& a, const auto& stop) {
        Words words{"diff", id(a, "a"), id(a, "b")};
        if (a.flag("run")) words.emplace_back("--run");
        return told(a, words, stop);
      });
  add(tool("explain", "Explain an instruction, a pair or a pass",
           "What became of an instruction through every stage, with its fusion, buffer, thunk and source; with "
           "'why_not' why "
           "two did not fuse; with 'pass' what every run of that pass did.",
           {{"id", property("string", "PATH:MODULE#INSTRUCTION, or PATH:MODULE with 'instruction' or 'pass'")},
            {"instruction", property("string", "its name in any stage")},
            {"why_not", property("string", "name of a second instruction")},
            {"pass", property("string", "name of a pass")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) { return explain(a, stop); });
  add(tool(
          "bisect", "Find the stage that computes something else",
          "Runs every stage of a module on the same inputs and compares every value: which stage, pass and instruction "
          "made the result wrong. May take long; can be cancelled.",
          {{"id", property("string", "PATH:MODULE of a dump, or a module to take through this program's own passes")},
           {"seed", property("integer", "of the inputs (1)")},
           {"outputs_only", property("boolean", "compare results alone (false)")}},
          {"id"}),
      [this](const Arguments& a, const auto& stop) {
        Words words{"bisect", id(a, "id"), fmt::format("--seed={}", std::max<int64_t>(a.number("seed", 1), 0))};
        if (a.flag("outputs_only")) words.emplace_back("--outputs-only");
        return told(a, words, stop);
      });
  add(tool("triage", "From \"it is wrong\" to the cause",
           "Says of a dump, a module or a log what the cause is: a pass, what HLO leaves open, rounding, the program "
           "itself, or what is below HLO; how sure that is, what was tried and what was not. Takes up to 'seconds'.",
           {{"id", property("string", "PATH:MODULE of a dump, a module, or a file with what a crash printed")},
            {"complaint",
             by_words({"wrong", "nan", "crash", "hang", "memory", "slow", "compile-time", "not-reproducible"},
                      "what is complained of (seen from it)")},
            {"log", property("string", "what the program printed, next to a dump: a file")},
            {"inputs", property("string", ".npz with p0, p1 …: the program's own")},
            {"outputs", property("string", ".npz with o0, o1 …: what the device gave")},
            {"seconds", property("integer", "for all of it (120)")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) { return triage(a, stop); });
  add(tool("profile", "Join a profile to instructions",
           "Where the time of a run went (.xplane.pb, trace events), by instruction, source line, scope, class or "
           "module; "
           "'op' shows all about one instruction.",
           {{"id", property("string", "the profile's path")},
            {"modules", property("string", "what ran, where the profile holds no modules: PATH or PATH:MODULE")},
            {"by", by_words({"op", "line", "scope", "class", "module"}, "key (op)")},
            {"op", property("string", "name of an instruction")}},
           {"id"}),
      [this](const Arguments& a, const auto& stop) { return profile(a, stop); });
}

void Toolbox::add_writing(std::vector<mcp::Tool>* out) {
  auto add = [&](mcp::Tool t, auto call) {
    t.read_only = false;
    t.call = [call](const Json& j, const std::atomic<bool>& stop) { return call(Arguments(j), stop); };
    out->push_back(std::move(t));
  };
  add(tool("save", "Write a stage to a file",
           "A stage or module as .hlo, .pb, .json, .dot or .svg, by the file's ending, below the folder that the "
           "server may write to.",
           {{"id", property("string", kId)}, {"file", property("string", "name below that folder; must not exist")}},
           {"id", "file"}),
      [this](const Arguments& a, const auto& stop) {
        const std::string file = to_write(a, "file");
        return told(a, {"convert", id(a, "id"), file}, stop, "written: " + file);
      });
  add(tool("replay", "Replay passes over a module",
           "Takes a module through this program's own passes and keeps every stage as a recording, below the folder "
           "that the server may write to.",
           {{"id", property("string", kId)},
            {"folder", property("string", "name below that folder; must not exist")},
            {"pipeline", by_words({"xla-2019", "xla-gpu"}, "whose passes (those of the module's time)")}},
           {"id", "folder"}),
      [this](const Arguments& a, const auto& stop) {
        const std::string folder = to_write(a, "folder");
        std::vector<std::string> words = {"replay", id(a, "id"), "-o", folder, "--formats=text"};
        if (a.has("pipeline")) words.push_back("--pipeline=" + a.text("pipeline"));
        return told(a, words, stop, "written: " + folder);
      });
}

std::vector<mcp::Tool> Toolbox::tools() {
  std::vector<mcp::Tool> out;
  add_reading(&out);
  add_asking(&out);
  if (!writable_.empty()) add_writing(&out);
  return out;
}

}  // namespace

int cmd_mcp(const McpArgs& a) {
  Toolbox box(a);
  mcp::ServerOptions options;
  options.name = "hlo-replay", options.version = kVersion;
  options.instructions =
      "Reads what XLA compiled: dumps (--xla_dump_to), recordings, HLO files, profiles. Everything has an id: "
      "PATH:MODULE:STAGE#INSTRUCTION, each part optional, MODULE and STAGE by number or name. Start with `open`; "
      "`stages` "
      "lists what each pass did; `bisect` finds the pass that made a result wrong, `diff` shows how. Answers end with "
      "a "
      "cursor where there is more.";
  mcp::serve(STDIN_FILENO, STDOUT_FILENO, box.tools(), options);
  return kYes;
}

}  // namespace hlo
