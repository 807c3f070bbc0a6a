// Which Python has the XLA that is asked.
#pragma once
#include <string>
#include <vector>

namespace hlo {

struct Interpreter {
  std::string python;  // a program
  std::string which;   // how it was found: "python3 on PATH", "release 0.10.2" …
};

struct ReleaseOptions {
  bool yes = false, offline = false;  // install without asking; never install
};

// `engine`: `installed` ($HLO_REPLAY_PYTHON, an active venv, the first python3 on PATH that has jaxlib),
// `installed:PYTHON` (a program, or a venv's folder), `installed:VERSION` (a release from PyPI in a folder of its own,
// installed where it is not there; `platform`: cpu, gpu or tpu). Throws Failure(kUsage) saying who was asked.
Interpreter find_interpreter(const std::string& engine, const std::string& platform, const ReleaseOptions& options);

// --- releases.cc ---
// `0.10.2`, `0.12.0.1`
bool is_release(const std::string& word);
// $XDG_CACHE_HOME/hlo-replay/releases, else below ~/.cache.
std::string releases_folder();
Interpreter release_interpreter(const std::string& version, const std::string& platform, const ReleaseOptions& options);
// All that PyPI has, the oldest first. Asks once a day; `offline`: those that are installed.
std::vector<std::string> known_releases(const ReleaseOptions& options);
// By numbers: 0.9.2 < 0.10.0.
bool release_before(const std::string& a, const std::string& b);

}  // namespace hlo
