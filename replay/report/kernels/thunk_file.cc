#include "replay/report/kernels/thunk_file.h"

#include <charconv>
#include <set>

#include "ir/base/check.h"

namespace hlo {
namespace {

constexpr size_t kMostNested = 64;
// cuLaunchKernel's own limits.
constexpr int64_t kMostBlocks = INT32_MAX, kMostThreads = 1024, kMostShared = int64_t{1} << 20;

class ThunkReader {
 public:
  ThunkReader(std::string_view text, const std::string& label) : label_(label) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  std::vector<ThunkLine> read() {
    std::vector<ThunkLine> out = sequence(0, 0);
    if (at_ < lines_.size()) wrong(lines_[at_]);
    return out;
  }

 private:
  static size_t indent(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }
  static bool is_thunk(std::string_view line) {
    const size_t from = indent(line);
    size_t digits = from;
    while (digits < line.size() && line[digits] >= '0' && line[digits] <= '9') ++digits;
    return digits > from && line.substr(digits, 2) == ": ";
  }

  // Lines that are indented by `by`, with what is nested in them.
  std::vector<ThunkLine> sequence(size_t by, size_t depth) {
    if (depth > kMostNested) wrong("thunks are nested too deep");
    std::vector<ThunkLine> out;
    for (; at_ < lines_.size();) {
      std::string_view line = lines_[at_];
      const size_t here = indent(line);
      if (here == line.size()) {
        ++at_;
        continue;
      }
      if (is_thunk(line)) {
        if (here < by) return out;
        if (here == by) {
          out.push_back(thunk(line.substr(here)));
          ++at_;
          continue;
        }
        if (out.empty()) wrong("it is indented below nothing");
        out.back().nested.push_back({"", sequence(here, depth + 1)});
        continue;
      }
      if (line.substr(here) == "No thunks.") {
        if (here < by) return out;
        ++at_;
        continue;
      }
      // `body:` is of a thunk that stands at its indentation or two before it; thunks go in by four.
      if (line.back() != ':') wrong("neither a thunk nor a label");
      if (here / 4 * 4 < by) return out;
      if (out.empty()) wrong("a label below nothing");
      std::string name(line.substr(here, line.size() - here - 1));
      ++at_;
      out.back().nested.push_back({std::move(name), sequence(by + 4, depth + 1)});
    }
    return out;
  }
  ThunkLine thunk(std::string_view text) {
    ThunkLine t;
    t.line = at_ + 1;
    t.id = number(text, kMostBlocks);
    take(text, ": ");
    const size_t kind = text.find_first_of(" [");
    t.kind = text.substr(0, kind);
    if (t.kind.size() < 2 || t.kind[0] != 'k') wrong("no kind of thunk");
    const size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos) wrong("'[' is missing");
    text = text.substr(close + 1);
    if (t.kind == "kAsyncStart" || t.kind == "kAsyncDone") {
      t.stream = stream(word_behind(text, "stream="));
      if (std::string_view id = word_behind(text, "async_id="); !id.empty()) t.async_id = number(id, kMostBlocks);
      return t;
    }
    const size_t grid = text.find(" grid: [");
    if (grid == std::string_view::npos) return t;
    t.kernel = text.substr(1, grid - 1);
    if (t.kernel.empty() || t.kernel.find(' ') != std::string::npos) wrong("no name of a kernel");
    text = text.substr(grid + 7);
    t.grid = three(text, kMostBlocks);
    take(text, " threads: ");
    t.threads = three(text, kMostThreads);
    if (t.threads[0] * t.threads[1] * t.threads[2] > kMostThreads) wrong("more threads than a block has");
    take(text, "  shared_memory: ");
    t.shared_bytes = number(text, kMostShared);
    return t;
  }
  static std::string_view word_behind(std::string_view text, std::string_view key) {
    const size_t at = text.find(key);
    if (at == std::string_view::npos) return {};
    text = text.substr(at + key.size());
    return text.substr(0, text.find_first_of(", "));
  }
  // Releases write what they like: another word is none.
  static std::string stream(std::string_view word) {
    for (std::string_view kind : {"computation_stream[", "communication_stream["}) {
      if (!word.starts_with(kind) || !word.ends_with("]")) continue;
      const std::string_view digits = word.substr(kind.size(), word.size() - kind.size() - 1);
      if (!digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == std::string_view::npos)
        return std::string(word);
    }
    return {};
  }
  std::array<int64_t, 3> three(std::string_view& text, int64_t most) {
    std::array<int64_t, 3> out{};
    take(text, "[");
    for (size_t k = 0; k < 3; ++k) {
      if (k) take(text, ", ");
      out[k] = number(text, most);
      if (out[k] < 1) wrong("a launch of nothing");
    }
    take(text, "]");
    return out;
  }
  int64_t number(std::string_view& text, int64_t most) const {
    int64_t v = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || v < 0) wrong("a number is missing");
    if (v > most) wrong(fmt::format("{} is more than there can be", v));
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return v;
  }
  void take(std::string_view& text, std::string_view word) const {
    if (!text.starts_with(word)) wrong(fmt::format("'{}' is missing", word));
    text.remove_prefix(word.size());
  }
  [[noreturn]] void wrong(std::string_view what) const {
    fail(FailureKind::kIo, "{}:{}: this is no sequence of thunks as XLA writes it: {}", label_, at_ + 1, what);
  }

  const std::string& label_;
  std::vector<std::string_view> lines_;
  size_t at_ = 0;
};

}  // namespace

std::vector<ThunkLine> read_thunk_file(std::string_view text, const std::string& label) {
  return ThunkReader(text, label).read();
}

std::map<int64_t, std::string> read_thunk_metadata(std::string_view text, const std::string& label) {
  std::map<int64_t, std::string> out;
  std::set<int64_t> twice;
  std::string name;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1, ++number;
    const size_t from = line.find_first_not_of(' ');
    if (from == std::string_view::npos) continue;
    line = line.substr(from);
    constexpr std::string_view kName = "profile_annotation: \"", kId = "thunk_id: ";
    if (line.starts_with("thunk_metadata")) {
      name.clear();
    } else if (line.starts_with(kName)) {
      if (line.back() != '"' || line.size() <= kName.size())
        fail(FailureKind::kIo, "{}:{}: a name that does not end", label, number);
      name = line.substr(kName.size(), line.size() - kName.size() - 1);
    } else if (line.starts_with(kId)) {
      int64_t id = 0;
      auto [stop, error] = std::from_chars(line.data() + kId.size(), line.data() + line.size(), id);
      if (error != std::errc() || id < 0) fail(FailureKind::kIo, "{}:{}: no number of a thunk", label, number);
      if (name.empty()) continue;
      auto [known, fresh] = out.emplace(id, name);
      if (!fresh && known->second != name) twice.insert(id);
    }
  }
  for (int64_t id : twice) out.erase(id);
  return out;
}

}  // namespace hlo
