#include "replay/report/memory/buffer_file.h"

#include <charconv>
#include <functional>

#include "ir/base/check.h"
#include "ir/base/checked.h"

namespace hlo {
namespace {

// What is left of a line, read word by word.
class LineReader {
 public:
  LineReader(std::string_view line, const std::string& label, size_t number)
      : rest_(line), label_(label), number_(number) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) wrong(fmt::format("'{}' is missing", word));
  }
  int64_t number() {
    int64_t v = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    if (error != std::errc() || v < 0) wrong("a number is missing");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return v;
  }
  // Up to one of these characters, which stays.
  std::string_view until(std::string_view stops) {
    size_t end = std::min(rest_.find_first_of(stops), rest_.size());
    std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return out;
  }
  Dims index() {
    Dims out;
    expect("{");
    while (!take("}")) {
      out.push_back(number());
      take(",");
    }
    return out;
  }
  std::string_view rest() const { return rest_; }
  [[noreturn]] void wrong(const std::string& what) const {
    fail(FailureKind::kIo, "{}:{}: this is no buffer assignment as XLA writes it: {}", label_, number_, what);
  }

 private:
  std::string_view rest_;
  const std::string& label_;
  size_t number_;
};

void each_line(std::string_view text, const std::function<void(std::string_view, size_t)>& f) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    f(text.substr(at, end - at), ++number);
    at = end + 1;
  }
}

BufferFile::Part allocation_line(LineReader& r) {
  BufferFile::Part a;
  r.expect("allocation ");
  a.number = r.number();
  r.expect(": size ");
  a.size = r.number();
  while (r.take(", ")) {
    if (r.take("color "))
      a.color = r.number();
    else if (r.take("parameter "))
      a.parameter = r.number();
    else if (r.take("shape |"))  // of the parameter, with the place of the leaf
      r.until("|"), r.expect("|"), r.expect(" at ShapeIndex "), r.index();
    else if (r.take("output shape is |"))
      a.output = true, r.until("|"), r.expect("|");
    else if (r.take("constant"))
      a.constant = true;
    else if (r.take("thread-local"))
      a.thread_local_ = true;
    else if (r.take("maybe-live-out"))
      a.live_out = true;
    else if (r.take("preallocated-temp"))
      a.temporary = true;
    else
      r.until(",:");  // of another release
  }
  r.expect(":");
  return a;
}

BufferFile::Value value_line(LineReader& r) {
  BufferFile::Value v;
  r.expect(" value: <");
  v.id = r.number();
  r.expect(" ");
  v.instruction = r.until(" {>");
  if (r.rest().starts_with('{')) v.index = r.index();
  r.until(">");
  r.expect("> (size=");
  v.size = r.number();
  r.expect(",offset=");
  v.offset = r.number();
  r.expect("): ");
  v.shape = r.rest();
  return v;
}

}  // namespace

int64_t BufferFile::total() const {
  Checked sum(0);
  for (const Part& a : allocations)
    if (!a.thread_local_) sum += a.size;
  return sum.capped();
}

int64_t LivePeak::total() const {
  Checked sum(0);
  for (const Value& v : values) sum += v.size;
  return sum.capped();
}

BufferFile read_buffer_file(std::string_view text, const std::string& label) {
  BufferFile out;
  bool begun = false, other_colors = false, ended = false;
  each_line(text, [&](std::string_view line, size_t number) {
    LineReader r(line, label, number);
    if (!begun) {
      if (line.empty()) return;
      r.expect("BufferAssignment:");
      begun = true;
    } else if (ended) {
      return;
    } else if (line.starts_with("allocation ")) {
      other_colors = false;
      out.allocations.push_back(allocation_line(r));
    } else if (line.starts_with(" value: <")) {
      if (out.allocations.empty()) r.wrong("a value before the first allocation");
      out.allocations.back().values.push_back(value_line(r));
    } else if (line.starts_with(" reused by")) {
      other_colors = true;
    } else if (line.empty()) {
      ended = !out.allocations.empty();  // what follows are totals, uses and positions
    } else if (!other_colors) {
      r.wrong("neither an allocation nor a value");
    }
  });
  if (!begun) fail(FailureKind::kIo, "{}: the file is empty", label);
  return out;
}

LivePeak read_live_range_file(std::string_view text, const std::string& label) {
  LivePeak out;
  bool inside = false, ranges = false, sequence = false;
  each_line(text, [&](std::string_view line, size_t number) {
    LineReader r(line, label, number);
    if (sequence && r.take(fmt::format("    {}:", out.schedule.size()))) {
      out.schedule.emplace_back(r.rest());
      return;
    }
    sequence = r.take("  InstructionSequence:");
    if (ranges && r.take("    ")) {
      LivePeak::Range range;
      range.instruction = r.until("{:");
      if (r.rest().starts_with('{')) range.index = r.index();
      r.expect(":");
      range.first = r.number();
      r.expect("-");
      range.last = r.number();
      out.ranges.push_back(std::move(range));
      return;
    }
    ranges = r.take("  BufferLiveRange:");
    if (r.take("  Live ranges at ")) {
      inside = out.at < 0;
      if (inside) out.at = r.number();
      return;
    }
    if (!inside) return;
    if (!r.take("    ") || line.find(" bytes (cumulative: ") == std::string_view::npos) {
      inside = false;
      return;
    }
    LivePeak::Value v;
    v.instruction = r.until("{ ");
    if (r.rest().starts_with('{')) v.index = r.index();
    r.until(" 0123456789");
    r.expect(" ");
    v.size = r.number();
    out.values.push_back(std::move(v));
  });
  return out;
}

}  // namespace hlo
