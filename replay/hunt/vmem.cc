#include "replay/hunt/vmem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "ir/program/buffer.h"
#include "parser/excerpt/pieces.h"

namespace hlo {
namespace {

constexpr size_t kMostParts = 40;
constexpr std::string_view kRanOut = "Ran out of memory in memory space vmem";

// The text behind `mark`, up to one of `ends`; empty where it is not there.
std::string_view text_behind(std::string_view text, std::string_view mark, std::string_view ends) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + mark.size());
  return text.substr(0, std::min(text.find_first_of(ends), text.size()));
}

// `my_add.1 = f32[…] custom-call(…)`, with % or not, with a shape or not: its name and opcode.
void take_instruction(std::string_view text, VmemOverflow* out) {
  text = trimmed(text);
  if (text.starts_with('%')) text.remove_prefix(1);
  const size_t equals = text.find(" = ");
  if (equals == std::string_view::npos || text.substr(0, equals).find(' ') != std::string_view::npos) return;
  out->instruction = text.substr(0, equals);
  const std::string_view rest = text.substr(equals + 3);
  for (size_t open = rest.find('('); open != std::string_view::npos; open = rest.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && (std::isalpha(static_cast<unsigned char>(rest[begin - 1])) || rest[begin - 1] == '-')) --begin;
    // `T(8,128)` and `S(1)` are a layout's.
    if (open - begin < 2 || (begin > 0 && rest[begin - 1] != ' ')) continue;
    out->opcode = rest.substr(begin, open - begin);
    break;
  }
  out->custom_call = rest.find("\"tpu_custom_call\"") != std::string_view::npos;
}

std::string source_told(std::string_view text) {
  const std::string_view file = text_behind(text, "source_file=\"", "\""),
                         line = text_behind(text, "source_line=", " }\",");
  return file.empty() ? "" : line.empty() ? std::string(file) : fmt::format("{}:{}", file, line);
}

// `input window allocation for operator input 0. The window shape is f32[8192,1024], while the full shape is
// f32[32768,1024]. … This allocation has 2 buffering levels.`
void take_tag(std::string_view tag, VmemPart* part) {
  const std::string_view operand = text_behind(tag, "for operator ", ".");
  part->what = operand.empty() ? tag.substr(0, tag.find(". ")) : operand;
  auto shape = [&](std::string_view mark) {
    const std::string_view rest = text_behind(tag, mark, "]");
    return rest.empty() ? std::string() : std::string(rest) + "]";
  };
  part->window = shape("The window shape is "), part->whole = shape("the full shape is ");
  const std::string_view copies = text_behind(tag, "This allocation has ", " ");
  std::from_chars(copies.data(), copies.data() + copies.size(), part->copies);
}

void take_part_line(std::string_view line, VmemOverflow* out, bool* open) {
  line = trimmed(line);
  const size_t size = line.find("Size: ");
  if (size != std::string_view::npos && size <= 6) {
    const int64_t bytes = bytes_in_words(line.substr(size + 6));
    *open = bytes >= 0 && out->parts.size() < kMostParts;
    if (*open) out->parts.push_back({"", "", "", bytes, 1, ""});
    return;
  }
  if (!*open) return;
  VmemPart& part = out->parts.back();
  if (line.starts_with("====")) *open = false;
  if (line.starts_with("Tag: ")) take_tag(line.substr(5), &part);
  if (line.starts_with("Shape: ") && part.window.empty() && part.what.empty()) part.what = line.substr(7);
  if (const std::string_view op = text_behind(line, "op_name=\"", "\""); !op.empty() && out->op_name.empty())
    out->op_name = op;
  if (std::string source = source_told(line); !source.empty() && out->source.empty()) out->source = source;
  for (std::string_view mark : {"XLA label: ", "XLA Label: "})
    if (line.starts_with(mark)) {
      part.kernel = line.substr(mark.size());
      part.kernel =
          part.kernel.substr(part.kernel.starts_with('%'), part.kernel.find(' ') - part.kernel.starts_with('%'));
      if (out->instruction.empty()) take_instruction(line.substr(mark.size()), out);
    }
}

// The leading dimension of `f32[8192,1024]` divided; empty where it cannot be.
std::string divided_block(const std::string& shape, int64_t by) {
  const size_t open = shape.find('[');
  if (open == std::string::npos) return {};
  for (size_t at = open + 1; at < shape.size();) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(shape.data() + at, shape.data() + shape.size(), size);
    if (error != std::errc()) return {};
    const size_t behind = static_cast<size_t>(end - shape.data());
    if (size >= by && size % by == 0)
      return fmt::format("{}{}{}", shape.substr(0, at), size / by, shape.substr(behind));
    at = behind + 1;
  }
  return {};
}

}  // namespace

int64_t bytes_in_words(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0) || value > 1e6) return -1;
  const char unit = end == text.data() + text.size() ? 'B' : *end;
  const double scale = unit == 'K' ? 1024.0 : unit == 'M' ? 1048576.0 : unit == 'G' ? 1073741824.0 : 1.0;
  return std::llround(value * scale);
}

std::optional<VmemOverflow> vmem_overflow(std::string_view log) {
  const size_t at = log.find(kRanOut);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view text = log.substr(at), first = text.substr(0, std::min(text.find("\n\n"), text.size()));
  VmemOverflow out;
  if (const std::string_view who = text_behind(first, "while allocating on stack for ", "\n"); !who.empty()) {
    take_instruction(who, &out);
    out.op_name = text_behind(who, "op_name=\"", "\""), out.source = source_told(who);
  }
  if (const std::string_view asked = text_behind(text, "Scoped allocation with size ", " "); !asked.empty()) {
    out.scoped = true;
    out.asked = bytes_in_words(asked);
    out.limit = bytes_in_words(text_behind(text, " and limit ", " "));
  } else {
    out.asked = bytes_in_words(text_behind(first, "Used ", " "));
    out.limit = bytes_in_words(text_behind(text_behind(first, "Used ", "\n"), " of ", " "));
  }
  out.asked = std::max<int64_t>(out.asked, 0), out.limit = std::max<int64_t>(out.limit, 0);
  bool open = false;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    take_part_line(rest.substr(0, end), &out, &open);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

int64_t vmem_limit_kib(const VmemOverflow& v) { return v.scoped && v.asked > v.limit ? (v.asked + 1023) / 1024 : 0; }

std::vector<std::string> vmem_advice(const VmemOverflow& v) {
  std::vector<std::string> out;
  if (v.asked <= v.limit || v.limit <= 0) return out;
  if (const int64_t kib = vmem_limit_kib(v)) {
    out.push_back(
        fmt::format("a limit of {0} KiB is what it asks for, if the chip has as much: "
                    "LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib={0}, or "
                    "compiler_options={{\"xla_tpu_scoped_vmem_limit_kib\": \"{0}\"}} of jax",
                    kib));
    if (v.custom_call)
      out.push_back(fmt::format("of this kernel alone: pltpu.CompilerParams(vmem_limit_bytes={})", kib * 1024));
  } else {
    out.push_back(fmt::format("no flag helps: {} is all the vmem that the chip has", human_bytes(v.limit)));
  }
  int64_t by = 1;
  while (by < (int64_t{1} << 20) && v.asked > by * v.limit) by *= 2;
  if (v.custom_call) {
    std::string blocks;
    for (const VmemPart& p : v.parts)
      if (const std::string smaller = p.window.empty() ? "" : divided_block(p.window, by); !smaller.empty())
        blocks += fmt::format("{}{} {} for {}", blocks.empty() ? ": " : ", ", p.what, smaller, p.window);
    out.push_back(fmt::format("blocks of 1/{} take {} of {}, as far as its memory grows with them{}", by,
                              human_bytes(v.asked / by), human_bytes(v.limit), blocks));
  } else {
    out.push_back(
        "what is fused into it can be kept apart (jax.lax.optimization_barrier between its parts), so that each asks "
        "for "
        "less");
  }
  return out;
}

}  // namespace hlo
