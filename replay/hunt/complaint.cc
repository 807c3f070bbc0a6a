#include "replay/hunt/complaint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace hlo {
namespace {

constexpr size_t kMostBuffers = 20, kLongestLine = 300;

struct Sign {
  std::string_view words;
  Complaint complaint;
};
// The first that a text has decides: what dies of memory prints a check that failed, too.
constexpr Sign kSigns[] = {
    {"RESOURCE_EXHAUSTED", Complaint::kMemory},
    {"Resource exhausted", Complaint::kMemory},
    {"Ran out of memory in memory space", Complaint::kMemory},
    {"ran out of memory trying to allocate", Complaint::kMemory},
    {"Out of memory while trying to allocate", Complaint::kMemory},
    {"CUDA_ERROR_OUT_OF_MEMORY", Complaint::kMemory},
    {"std::bad_alloc", Complaint::kMemory},
    {"threads to join the rendezvous", Complaint::kHang},
    {"Termination timeout", Complaint::kHang},
    {"milliseconds before timing out", Complaint::kHang},
    {"Barrier timed out", Complaint::kHang},
    {"Check failed", Complaint::kCrash},
    {"Failed after ", Complaint::kCrash},
    {"INTERNAL: ", Complaint::kCrash},
    {"Internal: ", Complaint::kCrash},
    {"UNIMPLEMENTED: ", Complaint::kCrash},
    {"RET_CHECK failure", Complaint::kCrash},
    {"ptxas fatal", Complaint::kCrash},
    {"ptxas error", Complaint::kCrash},
    {"ptxas exited with", Complaint::kCrash},
    {"LLVM ERROR", Complaint::kCrash},
    {"CUDNN_STATUS_", Complaint::kCrash},
    {"CUBLAS_STATUS_", Complaint::kCrash},
    {"CUDA_ERROR_", Complaint::kCrash},
    {"NCCL operation", Complaint::kCrash},
    {"Segmentation fault", Complaint::kCrash},
    {"SIGSEGV", Complaint::kCrash},
    {"SIGABRT", Complaint::kCrash},
    {"Aborted (core dumped)", Complaint::kCrash},
    {"*** Begin stack trace", Complaint::kCrash},
    {"invalid value (nan) encountered", Complaint::kNan},
    {"This may be due to a deadlock", Complaint::kHang},
    {"This thread has been waiting for", Complaint::kHang},
    {"Very slow compile", Complaint::kCompileTime},
    {"has taken longer than", Complaint::kCompileTime},
    {"Constant folding an instruction is taking", Complaint::kCompileTime},
};

// What lies below HLO, by the words of what failed there. The first that stands in the text.
struct LowerSign {
  std::string_view words, who;
};
constexpr LowerSign kLowerSigns[] = {
    {"ptxas fatal", "ptxas"},
    {"ptxas error", "ptxas"},
    {"ptxas exited with", "ptxas"},
    {"Failed to compile generated PTX", "ptxas"},
    {"LLVM ERROR", "LLVM"},
    {"CUDNN_STATUS_", "cuDNN"},
    {"CUBLAS_STATUS_", "cuBLAS"},
    {"NCCL operation", "NCCL"},
    {"CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel that ran: it touched memory that is not its own"},
    {"CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel that ran: it touched memory at a place that its type does not allow"},
    {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel that ran: it has an instruction that the GPU does not know"},
    {"CUDA_ERROR_LAUNCH_FAILED", "a kernel that ran"},
    {"CUDA_ERROR_INVALID_PTX", "the driver, which does not take the PTX"},
    {"CUDA_ERROR_NO_BINARY_FOR_GPU", "the driver: the kernel is for another GPU"},
};

std::string trimmed(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  return std::string(line.substr(0, kLongestLine));
}

// The text behind `mark` up to one of `ends`; empty where the line has no such mark.
std::string behind(std::string_view line, std::string_view mark, std::string_view ends) {
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + mark.size());
  return std::string(rest.substr(0, std::min(rest.find_first_of(ends), rest.size())));
}

std::string source_in_line(std::string_view line) {
  const std::string file = behind(line, "source_file=\"", "\""), number = behind(line, "source_line=", " }\",");
  return file.empty() ? "" : number.empty() ? file : file + ":" + number;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; }

// `%add.5 = f32[…] add(…)`, or `instruction %add.5`; XLA prints names with % where it prints instructions.
std::string named_instruction(std::string_view line) {
  for (size_t at = line.find('%'); at != std::string_view::npos; at = line.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < line.size() && is_name(line[end])) ++end;
    if (end == at + 1) continue;
    const bool defined = line.substr(end).starts_with(" = ");
    const bool told = at >= 1 && line.substr(0, at).find("nstruction") != std::string_view::npos;
    if (!defined && !told) continue;
    std::string name(line.substr(at + 1, end - at - 1));
    while (!name.empty() && name.back() == '.') name.pop_back();
    return name;
  }
  return {};
}

void see_buffer(std::vector<NamedBuffer>& all, std::string_view line, bool* open) {
  const std::string text = trimmed(line);
  if (std::string size = behind(text, "Size: ", " ");
      !size.empty() && text.find("Unpadded size") == std::string::npos) {
    *open = all.size() < kMostBuffers;
    if (*open) all.push_back({size, "", "", "", ""});
    return;
  }
  if (!*open || all.empty()) return;
  NamedBuffer& b = all.back();
  if (text.starts_with("====")) *open = false;
  if (std::string op = behind(text, "op_name=\"", "\""); !op.empty()) b.op_name = op;
  if (std::string source = source_in_line(text); !source.empty()) b.source = source;
  for (std::string_view mark : {"XLA Label: ", "XLA label: "})
    if (std::string what = behind(text, mark, "\n"); !what.empty()) b.what = what;
  if (text.starts_with("Shape: ")) b.shape = text.substr(7);
  if (std::string shape = behind(text, "Entry Parameter Subshape: ", " "); !shape.empty())
    b.what = "an argument", b.shape = shape;
}

std::string stem_of_place(std::string_view check) { return std::string(check.substr(0, check.find(".cc:"))); }

}  // namespace

std::string_view complaint_name(Complaint c) { return kComplaintNames[static_cast<size_t>(c)]; }

std::optional<Complaint> find_complaint(std::string_view name) {
  for (size_t k = 0; k < kComplaintNames.size(); ++k)
    if (kComplaintNames[k] == name) return static_cast<Complaint>(k);
  return std::nullopt;
}

Evidence evidence_of(std::string_view log, const std::vector<std::string>& known) {
  Evidence out;
  out.words = last_words(log);
  size_t best = std::size(kSigns);
  bool open = false;
  std::string before;  // the last line that was not empty
  for (std::string_view rest = log; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    for (size_t k = 0; k < best; ++k)
      if (line.find(kSigns[k].words) != std::string_view::npos) best = k, out.line = trimmed(line);
    if (std::string pass = behind(line, "Failed after ", " \t\r\n.,;:\"'"); !pass.empty() && out.refused_after.empty())
      out.refused_after = pass, out.refused_why = before;
    if (out.instruction.empty() && (out.complaint || best < std::size(kSigns)))
      if (std::string name = named_instruction(line); !name.empty())
        out.instruction = name, out.source = source_in_line(line);
    for (const LowerSign& sign : kLowerSigns)
      if (out.below.empty() && line.find(sign.words) != std::string_view::npos)
        out.below = sign.who, out.below_line = trimmed(line);
    see_buffer(out.buffers, line, &open);
    if (std::string t = trimmed(line); !t.empty()) before = t;
  }
  // Emitters are no passes: what they die of is behind the last one.
  for (const std::string& check : out.words.checks)
    if (out.below.empty() && stem_of_place(check).ends_with("_emitter"))
      out.below = "the emission of kernels", out.below_line = check;
  if (best < std::size(kSigns)) out.complaint = kSigns[best].complaint;
  if (!out.complaint && (!out.words.checks.empty() || !out.words.running.empty())) out.complaint = Complaint::kCrash;
  for (const std::string& check : out.words.checks)
    for (const std::string& pass : known)
      if (pass_named_like(stem_of_place(check), pass) &&
          std::find(out.in_files.begin(), out.in_files.end(), pass) == out.in_files.end())
        out.in_files.push_back(pass);
  for (const std::string& check : out.words.checks)
    if (const std::string_view pass = pass_of_other_name(stem_of_place(check)); !pass.empty() && out.in_files.empty())
      out.in_files.emplace_back(pass);
  return out;
}

}  // namespace hlo
