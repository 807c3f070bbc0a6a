#include "replay/hunt/memory_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "ir/base/checked.h"

namespace hlo {
namespace {

constexpr size_t kMostComplaints = 50, kMostBlocks = 10000, kLongestText = 300;
constexpr int64_t kAllocatorUnit = 256;  // tsl's BFCAllocator::kMinAllocationSize

int64_t rounded_up(int64_t bytes) {
  return bytes > INT64_MAX - kAllocatorUnit ? bytes : (bytes + kAllocatorUnit - 1) / kAllocatorUnit * kAllocatorUnit;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number at the begin of the text with its unit; nothing where there is none, or no unit.
std::optional<LoggedBytes> bytes_at(std::string_view text) {
  size_t end = 0, digits_behind = 0;
  bool point = false;
  for (; end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !point)); ++end) {
    if (text[end] == '.')
      point = true;
    else if (point)
      ++digits_behind;
  }
  if (end == 0 || end > 20) return std::nullopt;
  if (point && digits_behind == 0) --end, point = false;
  double value = 0;
  if (std::from_chars(text.data(), text.data() + end, value).ec != std::errc()) return std::nullopt;
  std::string_view rest = text.substr(end);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.starts_with("bytes") || rest.starts_with("byte ")) {
    int64_t exact = 0;
    if (point || std::from_chars(text.data(), text.data() + end, exact).ec != std::errc()) return std::nullopt;
    return LoggedBytes{exact, exact};
  }
  double unit = 1;
  const char letter = rest.empty() ? ' ' : rest[0];
  for (char known : std::string_view("KMGTP")) {
    unit *= 1024;
    if (letter != known) continue;
    const double half = std::pow(10.0, -static_cast<double>(digits_behind)) / 2;
    if (value * unit > 9e18) return std::nullopt;
    return LoggedBytes{std::llround((value - half) * unit), std::llround((value + half) * unit)};
  }
  if (letter == 'B' && !point) return LoggedBytes{std::llround(value), std::llround(value)};
  return std::nullopt;
}

// The number behind `mark`; where one in brackets says the same in bytes, that.
LoggedBytes bytes_behind(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  return at == std::string_view::npos ? LoggedBytes() : logged_bytes(line.substr(at + mark.size()));
}

int64_t whole_behind(std::string_view line, std::string_view mark) {
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return -1;
  std::string_view rest = line.substr(at + mark.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  int64_t out = -1;
  return std::from_chars(rest.data(), rest.data() + rest.size(), out).ec == std::errc() && out >= 0 ? out : -1;
}

std::string_view plain_line(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  // Of glog's `W1128 14:37:16.369941 9160 file.cc:12] words` the words.
  const size_t close = line.find("] ");
  if (close != std::string_view::npos && line.substr(0, close).rfind(".cc:") != std::string_view::npos)
    line.remove_prefix(close + 2);
  return line.substr(0, kLongestText);
}

// What is said of one allocation: XLA's runtime, tsl's allocators, PJRT's for TPUs, CUDA's.
LoggedBytes asked_for(std::string_view line) {
  for (std::string_view mark : {"trying to allocate ", "ttempting to allocate ", "ttempting to reserve ",
                                "failed to allocate ", "Failed to allocate request for ", "Could not allocate "}) {
    const LoggedBytes bytes = bytes_behind(line, mark);
    if (bytes.known()) return bytes;
  }
  return {};
}

bool tells_of_memory(std::string_view line) {
  for (std::string_view sign :
       {"RESOURCE_EXHAUSTED", "ResourceExhausted", "ut of memory", "ran out of memory", "CUDA_ERROR_OUT_OF_MEMORY"})
    if (line.find(sign) != std::string_view::npos) return true;
  return false;
}

void add_complaint(MemoryLog* out, MemoryComplaint c) {
  for (MemoryComplaint& known : out->complaints)
    if (known.kind == c.kind && known.asked.least == c.asked.least && known.asked.most == c.asked.most &&
        known.reached.least == c.reached.least && (c.kind != MemoryComplaint::kOther || known.text == c.text)) {
      ++known.times;
      return;
    }
  if (out->complaints.size() < kMostComplaints) out->complaints.push_back(std::move(c));
}

void see_allocator(std::string_view line, size_t number, MemoryLog* out) {
  // `8 Chunks of size 256 totalling 2.0KiB`, and the statistics behind them.
  if (const size_t at = line.find(" Chunks of size "); at != std::string_view::npos) {
    size_t begin = at;
    while (begin > 0 && is_digit(line[begin - 1])) --begin;
    int64_t count = -1;
    std::from_chars(line.data() + begin, line.data() + at, count);
    const int64_t bytes = whole_behind(line, " Chunks of size ");
    if (count > 0 && bytes > 0 && out->blocks.size() < kMostBlocks) out->blocks.push_back({bytes, count, number});
  }
  const std::string_view words = plain_line(line);
  if (words.starts_with("Limit:")) out->pool = whole_behind(words, "Limit:");
  if (words.starts_with("InUse:")) out->in_use = whole_behind(words, "InUse:");
}

}  // namespace

bool LoggedBytes::holds(int64_t bytes) const {
  if (!known() || bytes <= 0) return false;
  if (exact()) return rounded_up(bytes) == rounded_up(least);
  const int64_t rounded = rounded_up(bytes);
  return (bytes >= least && bytes <= most) || (rounded >= least && rounded <= most);
}

LoggedBytes logged_bytes(std::string_view text) {
  for (size_t at = 0; at < text.size() && at < 64; ++at) {
    if (!is_digit(text[at])) continue;
    const std::optional<LoggedBytes> first = bytes_at(text.substr(at));
    if (!first) return {};
    // `16.00GiB (17179869184 bytes)`, `(rounded to 17179869184)`: the exact one, where it is the same number.
    const std::string_view rest = text.substr(at, 80);
    const size_t open = rest.find('(');
    if (open == std::string_view::npos || open > 24 || first->exact()) return *first;
    const bool rounded = rest.substr(open).starts_with("(rounded to ");
    const int64_t whole = whole_behind(rest.substr(open), rounded ? "(rounded to " : "(");
    if (whole >= first->least && whole <= first->most) return {whole, whole};
    return *first;
  }
  return {};
}

MemoryLog read_memory_log(std::string_view text) {
  MemoryLog out;
  out.buffers = evidence_of(text, {}).buffers;
  size_t number = 0;
  std::string rematerialized;  // the module whose rematerialization the lines in front told of
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    see_allocator(line, number, &out);
    if (const size_t at = line.find(" instructions in module ");
        at != std::string_view::npos && line.find("ematerialized") < at) {
      const std::string_view rest = line.substr(at + 24);
      rematerialized = rest.substr(0, std::min(rest.find_first_of("; \r"), rest.size()));
    }
    MemoryComplaint c;
    c.line = number, c.text = plain_line(line);
    if (line.find("Can't reduce memory use below ") != std::string_view::npos) {
      c.kind = MemoryComplaint::kRematerialization, c.module = std::exchange(rematerialized, "");
      c.limit = bytes_behind(line, "memory use below "), c.reached = bytes_behind(line, "only reduced to ");
      c.before = bytes_behind(line, "down from ");
      add_complaint(&out, std::move(c));
    } else if (c.asked = asked_for(line); c.asked.known()) {
      c.kind = MemoryComplaint::kAllocation;
      add_complaint(&out, std::move(c));
    } else if (tells_of_memory(line)) {
      add_complaint(&out, std::move(c));
    }
  }
  // Lines that say no number say nothing more than those that do.
  if (std::any_of(out.complaints.begin(), out.complaints.end(), [](const auto& c) { return c.kind != c.kOther; }))
    std::erase_if(out.complaints, [](const auto& c) { return c.kind == c.kOther; });
  std::stable_sort(out.blocks.begin(), out.blocks.end(), [](const AllocatorBlocks& x, const AllocatorBlocks& y) {
    return (Checked(x.bytes) * x.count).capped() > (Checked(y.bytes) * y.count).capped();
  });
  return out;
}

}  // namespace hlo
