// Releases of jaxlib from PyPI, each in a folder of its own, made when it is asked for.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "ir/base/check.h"
#include "replay/installed/interpreter.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"
#include "replay/os/progress.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

std::vector<int> numbers_of(const std::string& release) {
  std::vector<int> out;
  std::istringstream in(release);
  for (std::string part; std::getline(in, part, '.');) out.push_back(std::atoi(part.c_str()));
  return out;
}

// The Pythons that a release has wheels for: 3.FIRST to 3.LAST.
struct PythonRange {
  const char* from;  // release
  int first, last;
};
constexpr std::array kPythons = {PythonRange{"0.11.0", 12, 14}, PythonRange{"0.8.0", 11, 14},
                                 PythonRange{"0.7.0", 11, 13}, PythonRange{"0", 10, 13}};

const PythonRange& pythons_of(const std::string& release) {
  return *std::find_if(kPythons.begin(), kPythons.end(),
                       [&](const PythonRange& p) { return !release_before(release, p.from); });
}

// Does it run, is it that Python (minor 0: any), and can it make virtual environments?
bool fits(const std::string& python, int minor) {
  Command c;
  c.words = {python, "-c",
             fmt::format("import sys, venv, ensurepip; sys.exit({} not in (0, sys.version_info[1]))", minor)};
  c.silent = true;
  return run_command(c) == 0;
}

std::string python_for(int first, int last) {
  for (int minor = first; minor <= last; ++minor) {
    const char* set = std::getenv(fmt::format("HLO_REPLAY_PYTHON_3_{}", minor).c_str());
    if (set && *set) {
      if (fits(set, minor)) return set;
      fail(FailureKind::kUsage, "HLO_REPLAY_PYTHON_3_{}={} is no Python 3.{} that makes virtual environments", minor,
           set, minor);
    }
    if (std::string name = fmt::format("python3.{}", minor); fits(name, minor)) return name;
  }
  for (int minor = first; minor <= last; ++minor)
    if (fits("python3", minor)) return "python3";
  return {};
}

// May PyPI be asked? Throws where it may not.
void ask_first(const std::string& what, const ReleaseOptions& o) {
  if (o.offline) fail(FailureKind::kUsage, "{} is not here, and --offline says to take nothing from PyPI", what);
  if (o.yes) return;
  if (!::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO))
    fail(FailureKind::kUsage, "{} is not here: --yes takes it from PyPI (no terminal to ask on)", what);
  Progress::clear();
  fmt::print(stderr, "{} is not here. Take it from PyPI into {}? [y/N] ", what, releases_folder());
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes") fail(FailureKind::kUsage, "not installed, as you chose");
}

std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// Runs it for what it does; throws with its last words.
void must(const std::vector<std::string>& words, const std::string& what, const TemporaryFolder& scratch) {
  Command c;
  c.words = words, c.log = scratch.path() + "/log";
  c.environment = {{"PIP_DISABLE_PIP_VERSION_CHECK", "1"}, {"PYTHONPATH", ""}};
  if (int code = run_command(c))
    fail(FailureKind::kIo, "{} did not work (exit code {}): {}", what, code, last_line(read_file(c.log)));
}

// What a platform needs besides jax and jaxlib. The plugins are taken without what they depend on (CUDA itself): to
// compile for a described device needs none of it.
std::vector<std::string> plugins_of(const std::string& platform, const std::string& release) {
  if (platform == "gpu")
    return {fmt::format("jax-cuda{}-pjrt=={}", release_before(release, "0.7.2") ? 12 : 13, release)};
  if (platform == "tpu") return {"libtpu"};
  return {};
}

std::string marker(const std::string& folder, const std::string& platform) { return folder + "/has-" + platform; }

}  // namespace

bool is_release(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos &&
         word.back() != '.' && word.find_first_not_of("0123456789.") == std::string::npos;
}

bool release_before(const std::string& a, const std::string& b) { return numbers_of(a) < numbers_of(b); }

std::string releases_folder() {
  const std::string base = user_cache_folder();
  if (base.empty()) fail(FailureKind::kUsage, "neither XDG_CACHE_HOME nor HOME says where releases are kept");
  return base + "/releases";
}

Interpreter release_interpreter(const std::string& version, const std::string& platform, const ReleaseOptions& o) {
  const std::string folder = releases_folder() + "/" + version, python = folder + "/bin/python";
  Interpreter found{python, "release " + version};
  std::error_code error;
  if (fs::exists(marker(folder, platform), error)) return found;
  const bool here = fs::exists(marker(folder, "cpu"), error);
  const std::vector<std::string> plugins = plugins_of(platform, version);
  ask_first(
      here ? fmt::format("{} next to jaxlib {}", fmt::join(plugins, ", "), version)
           : fmt::format("jaxlib {} (some 400 MB{})", version, plugins.empty() ? "" : ", its plugin as much again"),
      o);
  TemporaryFolder scratch;
  Progress progress(fmt::format("installing jaxlib {} from PyPI", version));
  if (!here) {
    const PythonRange& range = pythons_of(version);
    const std::string base = python_for(range.first, range.last);
    if (base.empty())
      fail(FailureKind::kUsage,
           "jaxlib {0} needs Python 3.{1} to 3.{2} with venv, and none is on PATH: install one (apt-get install "
           "python3.{1} python3.{1}-venv, or uv python install 3.{1}), or name it by HLO_REPLAY_PYTHON_3_{1}=PYTHON",
           version, range.first, range.last);
    fs::create_directories(releases_folder(), error);
    remove_stale_folders(folder + ".");
    LockedFolder made(folder + ".");
    must({base, "-m", "venv", made.path()}, "a virtual environment of " + base, scratch);
    must({made.path() + "/bin/python", "-m", "pip", "install", "-q", "jax==" + version, "jaxlib==" + version},
         "pip install jaxlib==" + version, scratch);
    write_file(marker(made.path(), "cpu"), "");
    fs::remove_all(folder, error);  // what is there was not finished
    fs::rename(made.path(), folder, error);
    if (error) fail(FailureKind::kIo, "cannot make {}: {}", folder, error.message());
  }
  if (!plugins.empty()) {
    std::vector<std::string> words = {python, "-m", "pip", "install", "-q", "--no-deps"};
    words.insert(words.end(), plugins.begin(), plugins.end());
    must(words, fmt::format("pip install {}", fmt::join(plugins, " ")), scratch);
    write_file(marker(folder, platform), "");
  }
  return found;
}

std::vector<std::string> known_releases(const ReleaseOptions& o) {
  const std::string index = releases_folder() + "/list";
  std::error_code error;
  std::vector<std::string> all;
  if (o.offline) {
    for (const auto& e : fs::directory_iterator(releases_folder(), error))
      if (is_release(e.path().filename()) && fs::exists(marker(e.path(), "cpu"), error))
        all.push_back(e.path().filename());
  } else {
    const auto written = fs::last_write_time(index, error);
    if (error || fs::file_time_type::clock::now() - written > std::chrono::hours(24)) {
      ask_first("the list of jaxlib's releases", o);
      std::string python, lists;
      for (int minor = 14; minor >= 11 && python.empty(); --minor) python = python_for(minor, minor);
      if (python.empty()) fail(FailureKind::kUsage, "no Python 3.11 to 3.14 with pip, which lists the releases");
      TemporaryFolder scratch;
      must({python, "-m", "venv", scratch.path() + "/venv"}, "a virtual environment of " + python, scratch);
      // A list is of what has wheels for one Python: old releases have none for a new one, nor new ones for an old one.
      for (const char* version : {"3.11", "3.13"}) {
        must({scratch.path() + "/venv/bin/python", "-m", "pip", "index", "versions", "jaxlib",
              "--only-binary=:all:", "--python-version", version},
             "pip index versions jaxlib", scratch);
        lists += read_file(scratch.path() + "/log") + "\n";
      }
      fs::create_directories(releases_folder(), error);
      write_file(index, lists);
    }
    const std::string text = read_file(index), mark = "Available versions: ";
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      at += mark.size();
      std::istringstream list(text.substr(at, text.find('\n', at) - at));
      for (std::string word; std::getline(list, word, ',');) {
        word.erase(0, word.find_first_not_of(' '));
        if (is_release(word)) all.push_back(word);
      }
    }
  }
  std::sort(all.begin(), all.end(), release_before);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace hlo
