// XLA_FLAGS: those that make XLA write its stages, and those that a release does not know.
#include <algorithm>
#include <cstdlib>

#include "ir/base/check.h"
#include "replay/os/process/program.h"

namespace hlo {

std::string xla_flags_set() {
  const char* set = std::getenv("XLA_FLAGS");
  return set ? set : "";
}

std::string xla_dump_flags(const std::string& folder) {
  return fmt::format(
      "--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_large_constants "
      "--xla_dump_module_metadata",
      folder);
}

std::string xla_flag_set(const std::string& flag) { return xla_flag_in(xla_flags_set(), flag); }

std::string xla_flag_in(const std::string& all, const std::string& flag) {
  std::string wanted = "--" + flag + "=";
  size_t at = all.rfind(wanted);
  if (at == std::string::npos) return {};
  at += wanted.size();
  return all.substr(at, all.find_first_of(" \t\n", at) - at);
}

std::vector<std::string> unknown_xla_flags(std::string_view log) {
  std::vector<std::string> out;
  size_t at = log.find("Unknown flag");
  if (at == std::string_view::npos || (at = log.find("XLA_FLAGS: ", at)) == std::string_view::npos) return out;
  at += std::string_view("XLA_FLAGS: ").size();
  // One blank between them: what stands behind two is no longer the list.
  while (log.substr(at).starts_with("--")) {
    const size_t end = std::min(log.find_first_of(" \t\r\n", at), log.size());
    out.emplace_back(log.substr(at, end - at));
    if (end >= log.size() || log[end] != ' ') break;
    at = end + 1;
  }
  return out;
}

std::string without_xla_flags(const std::string& flags, const std::vector<std::string>& unknown) {
  std::string out;
  for (size_t at = 0; at < flags.size();) {
    const size_t end = std::min(flags.find_first_of(" \t\r\n", at), flags.size());
    const std::string word = flags.substr(at, end - at);
    if (!word.empty() && std::find(unknown.begin(), unknown.end(), word) == unknown.end())
      out += (out.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out;
}

}  // namespace hlo
