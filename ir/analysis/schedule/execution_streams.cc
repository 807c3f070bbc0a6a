#include "ir/analysis/schedule/execution_streams.h"

#include <charconv>
#include <deque>
#include <optional>
#include <unordered_set>

#include "ir/analysis/schedule/messages.h"
#include "ir/query/frontend_attribute.h"

namespace hlo {
namespace {

constexpr int64_t kComputationStreams = 4;  // kDefaultNumComputeStreams

enum class StreamKind { kNone, kComputation, kCommunication };

StreamKind stream_kind(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::AsyncStart:
      return starts_message(m, i) ? StreamKind::kCommunication : StreamKind::kComputation;
    case Opcode::CopyStart:
      return StreamKind::kComputation;
    case Opcode::AllGatherStart:
    case Opcode::AllReduceStart:
    case Opcode::CollectivePermuteStart:
    case Opcode::Send:
    case Opcode::Recv:
      return StreamKind::kCommunication;
    default:
      return StreamKind::kNone;
  }
}

std::optional<int64_t> annotated_stream(const Module& m, InstId i) {
  const std::string_view text = frontend_attribute(m, i, "_xla_stream_annotation");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::unordered_map<InstId, std::string> execution_streams(const Module& m) {
  std::unordered_map<InstId, std::string> out;
  std::deque<CompId> queue{m.entry()};
  std::unordered_set<CompId> seen{m.entry()};
  for (int64_t next = 0; !queue.empty(); queue.pop_front()) {
    for (InstId i : m.post_order(queue.front())) {
      if (const StreamKind kind = stream_kind(m, i); kind != StreamKind::kNone) {
        const std::optional<int64_t> named = annotated_stream(m, i);
        if (kind == StreamKind::kCommunication) {
          out.emplace(i, fmt::format("communication_stream[{}]", named.value_or(0)));
        } else {
          out.emplace(i, fmt::format("computation_stream[{}]", named ? *named : next));
          if (!named) next = (next + 1) % kComputationStreams;
        }
      }
      const Opcode op = m.op(i);
      if (op != Opcode::Call && op != Opcode::Conditional && op != Opcode::While) continue;
      for (CompId c : m.called(i))
        if (seen.insert(c).second) queue.push_back(c);
    }
  }
  return out;
}

}  // namespace hlo
