#include "parser/proto/tuning_results.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cctype>

#include "autotune.pb.h"
#include "parser/proto/proto_reader.h"

namespace hlo {
namespace pb = google::protobuf;
namespace at = hlo_autotune;
namespace {

constexpr size_t kLargest = size_t{256} << 20;

// The first word that is no comment: a field of the message.
std::string_view first_word(std::string_view text) {
  while (true) {
    size_t from = text.find_first_not_of(" \t\r\n");
    if (from == std::string_view::npos) return {};
    text.remove_prefix(from);
    if (text[0] != '#') break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  size_t end = 0;
  while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
  return text.substr(0, end);
}

bool is_text(std::string_view bytes) {
  bytes = bytes.substr(0, 4096);
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto b = static_cast<unsigned char>(c);
    return b == '\n' || b == '\r' || b == '\t' || (b >= 32 && b != 127);
  });
}

// Back ends that this project does not know the words of become none, and are counted: protobuf would refuse the file.
std::string known_backends(std::string_view text, std::map<std::string, size_t>* unknown) {
  std::string out;
  out.reserve(text.size());
  constexpr std::string_view kField = "backend:";
  size_t done = 0;
  for (size_t found = text.find(kField); found != std::string_view::npos; found = text.find(kField, found + 1)) {
    if (found && (isalnum(static_cast<unsigned char>(text[found - 1])) || text[found - 1] == '_')) continue;
    size_t from = text.find_first_not_of(" \t", found + kField.size());
    if (from == std::string_view::npos || !isalpha(static_cast<unsigned char>(text[from]))) continue;
    const std::string word(first_word(text.substr(from)));
    if (at::Config::Backend_descriptor()->FindValueByName(word)) continue;
    ++(*unknown)["backend " + word];
    out += text.substr(done, from - done);
    out += "UNSPECIFIED_BACKEND";
    done = from + word.size();
  }
  return out += text.substr(done);
}

class Complaints : public pb::io::ErrorCollector {
 public:
  explicit Complaints(std::string label) : label_(std::move(label)) {}
  void AddError(int line, int column, const std::string& message) override {
    if (error.empty()) error = fmt::format("{}:{}:{}: error: {}", label_, line + 1, column + 1, message);
  }
  // `Message type "hlo_autotune.GemmKey" has no field named "x".`
  void AddWarning(int, int, const std::string& message) override {
    size_t name = message.find("has no field named \"");
    if (name == std::string::npos) return;
    std::string field = message.substr(name + 20);
    field.resize(std::min(field.find('"'), field.size()));
    ++not_understood[field];
  }
  std::string error;
  std::map<std::string, size_t> not_understood;

 private:
  std::string label_;
};

// Field numbers that the messages do not have, at any depth.
void count_unknown(const pb::Message& message, std::map<std::string, size_t>* out) {
  const pb::Reflection* r = message.GetReflection();
  const pb::UnknownFieldSet& unknown = r->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i)
    ++(*out)[fmt::format("{}.{}", message.GetDescriptor()->name(), unknown.field(i).number())];
  std::vector<const pb::FieldDescriptor*> fields;
  r->ListFields(message, &fields);
  for (const pb::FieldDescriptor* f : fields) {
    if (f->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!f->is_repeated()) {
      count_unknown(r->GetMessage(message, f), out);
      continue;
    }
    for (int i = 0; i < r->FieldSize(message, f); ++i) count_unknown(r->GetRepeatedMessage(message, f, i), out);
  }
}

nlohmann::json json_of(const pb::Message& message) {
  pb::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  if (!pb::util::MessageToJsonString(message, &text, options).ok()) return nlohmann::json::object();
  nlohmann::json j = nlohmann::json::parse(text, nullptr, false);
  return j.is_object() ? j : nlohmann::json::object();
}

// The field of a oneof that is set, and what is in it.
void take_settings(const pb::Message& holder, const char* oneof, TuningConfig* out) {
  const pb::FieldDescriptor* f =
      holder.GetReflection()->GetOneofFieldDescriptor(holder, holder.GetDescriptor()->FindOneofByName(oneof));
  if (!f) return;
  out->kind = f->name();
  out->settings = json_of(holder.GetReflection()->GetMessage(holder, f));
}

// The older form names no back end, only whose settings these are.
std::string backend_of_kind(std::string_view kind) {
  if (kind == "triton") return "TRITON";
  if (kind == "algorithm" || kind == "conv" || kind == "cuda_conv_plan") return "CUDNN";
  if (kind == "custom_kernel_fusion") return "CUSTOM_KERNEL";
  return "UNSPECIFIED_BACKEND";
}

TuningChoice choice_of(const at::AutotuneResults::Entry& e) {
  TuningChoice c;
  c.hlo = e.hlo(), c.device = e.device();
  if (e.version()) c.version = std::to_string(e.version());
  const at::AutotuneResult& r = e.result();
  take_settings(r, "key", &c.config);
  c.config.backend = backend_of_kind(c.config.kind);
  // Of a call the text tells which of NVIDIA's two libraries it is.
  if (c.config.kind == "gemm" && c.hlo.find("__cublas$") != std::string::npos)
    c.config.backend = c.hlo.find("__cublas$lt$") == std::string::npos ? "CUBLAS" : "CUBLASLT";
  if (r.has_run_time())
    c.run_time = static_cast<double>(r.run_time().seconds()) + 1e-9 * static_cast<double>(r.run_time().nanos());
  if (r.scratch_bytes()) c.scratch_bytes = r.scratch_bytes();
  if (r.has_failure())
    c.failure = at::AutotuneResult::FailureKind_Name(r.failure().kind()) +
                (r.failure().msg().empty() ? "" : ": " + r.failure().msg());
  return c;
}

TuningChoice choice_of(const at::AutotuneCache::Entry& e, std::map<std::string, size_t>* not_understood) {
  TuningChoice c;
  const auto& target = e.key().target();
  c.key = target.hlo_fingerprint(), c.device = target.device();
  c.version = e.value().optimal_backend_version();
  const at::Config& config = e.value().optimal_config();
  if (at::Config::Backend_IsValid(config.backend()))
    c.config.backend = at::Config::Backend_Name(config.backend());
  else
    ++(*not_understood)[fmt::format("backend {}", static_cast<int>(config.backend()))];
  take_settings(config.backend_config(), "backend_config", &c.config);
  return c;
}

struct TuningReader {
  std::string_view bytes;
  const std::string& label;
  bool text;
  pb::TextFormat::ParseInfoTree places;

  int line(const pb::Message& message, const char* field, int index) const {
    if (!text) return 0;
    return places.GetLocation(message.GetDescriptor()->FindFieldByName(field), index).line + 1;
  }

  void read(pb::Message* message, std::map<std::string, size_t>* not_understood) {
    pb::LogSilencer quiet;
    if (!text) {
      pb::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
      if (!message->ParseFromZeroCopyStream(&in))
        fail(FailureKind::kIo, "{}: no results of XLA's autotuner: cut short, damaged or another file", label);
      count_unknown(*message, not_understood);
      return;
    }
    const std::string known = known_backends(bytes, not_understood);
    Complaints complaints(label);
    pb::TextFormat::Parser parser;
    parser.AllowUnknownField(true);
    parser.RecordErrorsTo(&complaints);
    parser.WriteLocationsTo(&places);
    pb::io::ArrayInputStream in(known.data(), static_cast<int>(known.size()));
    if (!parser.Parse(&in, message))
      fail(FailureKind::kSyntax, "{}\nno results of XLA's autotuner: cut short, or another file",
           complaints.error.empty() ? fmt::format("{}:1:1: error: not read", label) : complaints.error);
    for (const auto& [name, count] : complaints.not_understood) (*not_understood)[name] += count;
  }
};

}  // namespace

bool looks_like_tuning_results(std::string_view bytes) {
  if (!is_text(bytes)) return false;
  const std::string_view word = first_word(bytes);
  if (word == "version") return bytes.size() < 64 || bytes.find("\nresults {") != std::string_view::npos;
  return word == "device_scope" || word == "explicit_version_scope" || word == "results" ||
         (word == "entries" && bytes.find("optimal_config") != std::string_view::npos);
}

TuningResults read_tuning_results(std::string_view bytes, const std::string& label) {
  if (bytes.size() > kLargest)
    fail(FailureKind::kUnsupported, "{}: {} MB; results of the autotuner are read up to {}", label, bytes.size() >> 20,
         kLargest >> 20);
  TuningReader reader{bytes, label, is_text(bytes), {}};
  TuningResults out;
  out.file = label;
  // A text by its first field. Of binary forms the tag of `version` and of `results` (8 and 34), which the other lacks.
  bool older = bytes.empty();
  if (reader.text) {
    const std::string_view word = first_word(bytes);
    older = word == "version" || word == "results" || word.empty();
    check_proto_nesting(bytes, label);
  } else {
    older = bytes[0] == 8 || bytes[0] == 34;
  }
  if (older) {
    at::AutotuneResults message;
    reader.read(&message, &out.not_understood);
    out.form = "AutotuneResults", out.version = message.version();
    if (out.version > 3 && message.results_size())
      fail(FailureKind::kUnsupported, "{}: AutotuneResults of version {}; 3 is the last one that is known", label,
           out.version);
    for (int i = 0; i < message.results_size(); ++i) {
      out.choices.push_back(choice_of(message.results(i)));
      out.choices.back().line = reader.line(message, "results", i);
    }
  } else {
    at::AutotuneCache message;
    reader.read(&message, &out.not_understood);
    out.form = "AutotuneCache";
    for (int i = 0; i < message.entries_size(); ++i) {
      out.choices.push_back(choice_of(message.entries(i), &out.not_understood));
      out.choices.back().line = reader.line(message, "entries", i);
    }
  }
  return out;
}

}  // namespace hlo
