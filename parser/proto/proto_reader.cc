#include "parser/proto/proto_reader.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/print/print.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"
#include "parser/proto/proto_text.h"

namespace hlo {
namespace pb = google::protobuf;

void check_proto_nesting(std::string_view text, const std::string& label) {
  constexpr int kDeepest = 1000;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      while (++at < text.size() && text[at] != c && text[at] != '\n') at += text[at] == '\\';
    } else if (c == '{' || c == '<' || c == '[') {
      if (++depth > kDeepest)
        fail(FailureKind::kUnsupported, "{}: a proto in text form that is nested more than {} levels deep", label,
             kDeepest);
    } else if (c == '}' || c == '>' || c == ']') {
      --depth;
    }
  }
}

namespace {

bool usable(const xla::HloModuleProto& m) {
  for (const auto& c : m.computations())
    if (c.instructions_size()) return true;
  return false;
}

// Any of XLA's messages that hold a module.
struct Message {
  std::string kind;
  xla::HloModuleProto module;
  xla::HloProto proto;
  xla::HloSnapshot snapshot;
  xla::HloUnoptimizedSnapshot unoptimized;

  const pb::Message& whole() const {
    if (kind == "HloModuleProto") return module;
    if (kind == "HloProto") return proto;
    if (kind == "HloSnapshot") return snapshot;
    return unoptimized;
  }
  const xla::HloModuleProto& hlo() const {
    if (kind == "HloModuleProto") return module;
    if (kind == "HloProto") return proto.hlo_module();
    if (kind == "HloSnapshot") return snapshot.hlo().hlo_module();
    return unoptimized.hlo_module();
  }
};

void read_message(std::string_view bytes, const std::string& label, Message* out) {
  std::string unpacked;
  if (bytes.starts_with("\x1f\x8b")) {
    unpacked = gunzip(bytes, label);
    bytes = unpacked;
  }
  bool text = !looks_like_proto(bytes) &&
              std::all_of(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(std::min<size_t>(bytes.size(), 4096)),
                          [](char c) {
                            auto b = static_cast<unsigned char>(c);
                            return b == '\n' || b == '\r' || b == '\t' || (b >= 32 && b != 127);
                          });
  if (text) check_proto_nesting(bytes, label);
  auto attempt = [&](const char* kind, pb::Message& message) {
    if (text) {
      pb::TextFormat::Parser parser;
      parser.AllowUnknownField(true);
      struct Quiet : pb::io::ErrorCollector {
        void AddError(int, int, const std::string&) override {}
        void AddWarning(int, int, const std::string&) override {}
      } quiet;
      parser.RecordErrorsTo(&quiet);
      pb::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
      if (!parser.Parse(&in, &message)) return false;
    } else {
      pb::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
      if (!message.ParsePartialFromZeroCopyStream(&in)) return false;
    }
    out->kind = kind;
    return usable(out->hlo());
  };
  if (bytes.size() > static_cast<size_t>(INT32_MAX))
    fail(FailureKind::kUnsupported, "{}: protos of more than 2 GB are not possible", label);
  pb::LogSilencer quiet;
  if (attempt("HloModuleProto", out->module) || attempt("HloProto", out->proto) ||
      attempt("HloSnapshot", out->snapshot) || attempt("HloUnoptimizedSnapshot", out->unoptimized))
    return;
  fail(FailureKind::kIo,
       "{}: not a proto of XLA with a module (HloModuleProto, HloProto, HloSnapshot): truncated, damaged or of another "
       "kind; a SessionModule of 2017 holds no HLO",
       label);
}

}  // namespace

namespace {

// An id grows with the place in the computation's list, whether it is that place (its low half, of which cleaning up
// leaves no hole) or counts what a builder made; XLA puts instructions back by it (HloComputation::CreateFromProto).
std::vector<InstId> in_memory(const Module& m, CompId comp, const xla::HloComputationProto& c) {
  const std::vector<InstId>& printed = m.comp(comp).order;
  if (printed.size() != static_cast<size_t>(c.instructions_size())) return {};
  std::vector<std::pair<int64_t, InstId>> by_id;
  for (size_t k = 0; k < printed.size(); ++k) by_id.emplace_back(c.instructions(static_cast<int>(k)).id(), printed[k]);
  std::sort(by_id.begin(), by_id.end());
  std::vector<InstId> out;
  for (size_t k = 0; k < by_id.size(); ++k) {
    if (k > 0 && by_id[k].first == by_id[k - 1].first) return {};
    out.push_back(by_id[k].second);
  }
  return out;
}

// Where an order is told; false where no computation has one. With a schedule all stands as listed, bodies of fusions,
// of which it says nothing, too: operands come first there.
bool put_in_memory_order(const xla::HloModuleProto& p, const ProtoText& text, UserOrder users, Module& m) {
  if (m.config().is_scheduled) return false;
  std::unordered_map<std::string_view, CompId> by_name;
  for (CompId c : m.computations()) by_name.emplace(m.comp_name(c), c);
  std::vector<std::pair<CompId, std::vector<InstId>>> orders;
  for (const auto& c : p.computations()) {
    auto comp = by_name.find(text.computation_name(c.id()));
    if (comp == by_name.end()) continue;
    std::vector<InstId> order = in_memory(m, comp->second, c);
    if (!order.empty()) orders.emplace_back(comp->second, std::move(order));
  }
  if (orders.empty()) return false;
  if (users == UserOrder::kListed) m.users(m.comp(m.entry()).root);  // the lists of users are made when first asked for
  for (auto& [comp, order] : orders) m.set_order(comp, std::move(order));
  return true;
}

}  // namespace

bool looks_like_proto(std::string_view b) {
  if (b.starts_with("\x1f\x8b")) return true;
  // Field 1 with a length, as all of them start; HLO text never begins with a line feed and a control byte.
  // Nor with a byte of several, as the length of a name of more than 127 has.
  if (b.size() > 2 && b[0] == '\n' && static_cast<unsigned char>(b[1]) >= 0x80) return true;
  return b.size() > 2 && b[0] == '\n' &&
         b.substr(0, 512).find_first_of(std::string_view(
             "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x18\x1a", 20)) !=
             std::string_view::npos;
}

ProtoContents read_proto(std::string_view bytes, const std::string& label, const std::shared_ptr<Universe>& universe,
                         UserOrder users) {
  Message message;
  read_message(bytes, label, &message);
  ProtoContents out;
  out.kind = message.kind;
  const xla::HloModuleProto& p = message.hlo();
  ProtoText text(p, *universe);
  text.module();
  ParseOptions options;
  options.file = label + " (as text)";
  options.literals = &text.literals;
  out.module = parse_module(text.out, universe, options);
  out.module->set_module_name(p.name());
  StackTables& stack = out.module->edit_stack();
  const auto& index = p.stack_frame_index();
  stack.files.assign(index.file_names().begin(), index.file_names().end());
  stack.functions.assign(index.function_names().begin(), index.function_names().end());
  for (const auto& l : index.file_locations())
    stack.locations.push_back(
        {l.file_name_id(), l.function_name_id(), l.line(), l.end_line(), l.column(), l.end_column()});
  for (const auto& f : index.stack_frames()) stack.frames.push_back({f.file_location_id(), f.parent_frame_id()});
  out.in_memory_order = put_in_memory_order(p, text, users, *out.module);
  if (message.kind == "HloSnapshot") {
    for (const auto& a : message.snapshot.arguments()) out.arguments.push_back(literal_from_proto(a, *universe));
    if (message.snapshot.has_result()) out.result = literal_from_proto(message.snapshot.result(), *universe);
  } else if (message.kind == "HloUnoptimizedSnapshot" && message.unoptimized.partitions_size()) {
    for (const auto& a : message.unoptimized.partitions(0).arguments())
      out.arguments.push_back(literal_from_proto(a, *universe));
  }
  return out;
}

std::string reencode_proto(std::string_view bytes, const std::string& label, std::string_view ending) {
  Message message;
  read_message(bytes, label, &message);
  std::string out;
  if (ending == ".pbtxt") {
    pb::TextFormat::PrintToString(message.whole(), &out);
    return out;
  }
  out = message.whole().SerializePartialAsString();
  return ending == ".pb.gz" ? gzip(out) : out;
}

}  // namespace hlo
