#include "replay/os/process/ptxas.h"

#include <unistd.h>

#include <cstdlib>

#include "ir/base/check.h"
#include "replay/os/files.h"
#include "replay/os/process/spawn.h"

namespace hlo {
namespace {

// Its output; `ok` tells whether it succeeded.
std::string ran(const std::string& command, const std::string& log, bool* ok) {
  *ok = run_shell(fmt::format("{} >{} 2>&1", command, shell_word(log))) == 0;
  return read_file(log);
}

std::map<std::string, KernelResources> resources(const std::string& text) {
  std::map<std::string, KernelResources> out;
  std::string kernel;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (size_t q = line.find("Function properties for "); q != std::string::npos) kernel = line.substr(q + 24);
    auto number_before = [&](const char* word) {
      size_t w = line.find(word);
      if (w == std::string::npos) return 0;
      size_t s = line.find_last_not_of(" 0123456789", w - 1);
      return atoi(line.c_str() + (s == std::string::npos ? 0 : s + 1));
    };
    if (kernel.empty()) continue;
    if (line.find("spill stores") != std::string::npos) out[kernel].spills = number_before(" bytes spill stores");
    if (line.find("Used ") != std::string::npos) {
      out[kernel].registers = number_before(" registers");
      out[kernel].shared = number_before(" bytes smem");
    }
  }
  return out;
}

}  // namespace

std::string ptx_target(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with(".target ")) return line.substr(8, line.find_first_of(", \t\r", 8) - 8);
  }
  return {};
}

std::string cuda_tool(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string all = std::string(path ? path : "") + ":/usr/local/cuda/bin";
  for (size_t at = 0; at <= all.size();) {
    size_t end = std::min(all.find(':', at), all.size());
    std::string file = all.substr(at, end - at) + "/" + name;
    if (end > at && ::access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return {};
}

Assembled assembled(const std::string& ptx, const std::string& sm, bool with_sass) {
  std::string ptxas = cuda_tool("ptxas");
  if (ptxas.empty()) fail(FailureKind::kUnsupported, "ptxas (of the CUDA toolkit) is needed, which is not to be found");
  TemporaryFolder folder;
  std::string source = folder.path() + "/k.ptx", cubin = folder.path() + "/k.cubin", log = folder.path() + "/log";
  write_file(source, ptx);
  Assembled out;
  bool ok = false;
  out.report = ran(fmt::format("{} -arch={} -v {} -o {}", shell_word(ptxas), sm, shell_word(source), shell_word(cubin)),
                   log, &ok);
  if (!ok) fail(FailureKind::kUnsupported, "ptxas failed: {}", out.report.substr(0, 1000));
  out.kernels = resources(out.report);
  if (!with_sass) return out;
  std::string nvdisasm = cuda_tool("nvdisasm");
  if (nvdisasm.empty()) {
    out.without_sass = "no .sass: nvdisasm (of the CUDA toolkit) is not to be found";
    return out;
  }
  out.sass = ran(fmt::format("{} -c {}", shell_word(nvdisasm), shell_word(cubin)), log, &ok);
  if (!ok) out.without_sass = "no .sass: nvdisasm failed: " + out.sass.substr(0, 300), out.sass.clear();
  return out;
}

}  // namespace hlo
