#include "replay/installed/interpreter.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "ir/base/check.h"
#include "replay/os/process/spawn.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_program(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

bool has_jaxlib(const std::string& python) {
  Command c;
  c.words = {python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('jaxlib') is None)"};
  c.silent = true;
  return run_command(c) == 0;
}

// The programs of that name on PATH, each once.
std::vector<std::string> on_path(const std::string& name) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  std::string path = environment("PATH"), folder;
  for (char c : path + ":") {
    if (c != ':') {
      folder += c;
      continue;
    }
    std::error_code error;
    const std::string file = folder.empty() ? "" : folder + "/" + name;
    folder.clear();
    // By the folder: a venv's python3 is a link to the one that it was made of, and not the same.
    if (file.empty() || !is_program(file)) continue;
    if (seen.insert(fs::canonical(fs::path(file).parent_path(), error).string()).second) out.push_back(file);
  }
  return out;
}

Interpreter named(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const char* inside : {"/bin/python", "/bin/python3"})
      if (is_program(path + inside)) return {path + inside, path};
    fail(FailureKind::kUsage, "{} is a folder without bin/python: no virtual environment", path);
  }
  if (path.find('/') == std::string::npos) {
    const std::vector<std::string> all = on_path(path);
    if (!all.empty()) return {all[0], path + " on PATH"};
    fail(FailureKind::kUsage, "no program '{}' on PATH; --engine=installed:PYTHON names one, or a release as 0.10.2",
         path);
  }
  if (!is_program(path)) fail(FailureKind::kUsage, "cannot run {}: no such program", path);
  return {path, path};
}

}  // namespace

Interpreter find_interpreter(const std::string& engine, const std::string& platform, const ReleaseOptions& options) {
  const std::string what = "installed";
  if (engine != what && !engine.starts_with(what + ":"))
    fail(FailureKind::kUsage, "--engine is own, installed, installed:PYTHON or installed:VERSION, not '{}'", engine);
  if (engine.size() > what.size()) {
    const std::string rest = engine.substr(what.size() + 1);
    if (rest.empty()) fail(FailureKind::kUsage, "--engine=installed: names no Python and no release");
    return is_release(rest) ? release_interpreter(rest, platform, options) : named(rest);
  }
  if (std::string set = environment("HLO_REPLAY_PYTHON"); !set.empty()) {
    Interpreter found = named(set);
    found.which = "HLO_REPLAY_PYTHON";
    return found;
  }
  std::vector<std::string> asked;
  auto takes = [&](const std::string& python) {
    asked.push_back(python);
    return has_jaxlib(python);
  };
  if (std::string venv = environment("VIRTUAL_ENV"); !venv.empty())
    if (const std::string python = venv + "/bin/python"; is_program(python) && takes(python))
      return {python, "the active virtual environment"};
  for (const std::string& python : on_path("python3"))
    if (takes(python)) return {python, "python3 on PATH"};
  fail(FailureKind::kUsage,
       "no Python with jaxlib: {}. Name one (--engine=installed:PYTHON or HLO_REPLAY_PYTHON=…), install jax, or take a "
       "release from PyPI: --engine=installed:0.10.2",
       asked.empty() ? "there is no python3 on PATH" : fmt::format("asked were {}", fmt::join(asked, ", ")));
}

}  // namespace hlo
