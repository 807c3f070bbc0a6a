#include "ir/library/tuning.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/backend_config.h"
#include "ir/base/check.h"

namespace hlo {
namespace {

using Json = nlohmann::json;

struct BackendName {
  std::string_view word, name;
};
constexpr BackendName kBackends[] = {
    {"CUDNN", "cuDNN"},
    {"TRITON", "Triton"},
    {"CUBLAS", "cuBLAS"},
    {"CUBLASLT", "cuBLASLt"},
    {"CUBLASLT_FISSION", "cuBLASLt"},
    {"HIPBLASLT", "hipBLASLt"},
    {"HIPBLASLT_FISSION", "hipBLASLt"},
    {"MIOPEN", "MIOpen"},
    {"CUSTOM_KERNEL", "custom kernel"},
    {"CUSTOM_KERNEL_FISSION", "custom kernel"},
    {"BLOCK_LEVEL_EMITTER", "Triton, block level"},
    {"NATIVE_EMITTER", "native emitter"},
    {"LLVM_KERNEL_EMITTER", "LLVM kernel emitter"},
    {"YNNPACK", "YNNPACK"},
    {"BLOCK_LEVEL_EMITTER_CPU", "block level, CPU"},
    {"TENSOR_IR", "TensorIR"},
};

// A number or a string of one.
std::optional<int64_t> whole(const Json& j, const char* key) {
  auto at = j.find(key);
  if (at == j.end()) return {};
  if (at->is_number_integer()) return at->get<int64_t>();
  if (!at->is_string()) return {};
  const std::string& text = at->get_ref<const std::string&>();
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789", text[0] == '-') != std::string::npos)
    return {};
  return std::stoll(text);
}

std::string text_of(const Json& j) { return j.is_string() ? j.get<std::string>() : j.dump(); }

// `sizes` of an output's tile.
std::string sizes_text(const Json& sizes) {
  std::string out;
  for (const Json& s : sizes) out += (out.empty() ? "" : "x") + text_of(s);
  return out;
}

std::string counted(const Json& settings, const char* key, const char* noun) {
  std::optional<int64_t> n = whole(settings, key);
  return n && *n ? fmt::format(", {} {}{}", *n, noun, *n == 1 ? "" : "s") : "";
}

}  // namespace

std::string TuningConfig::backend_in_words() const {
  for (const BackendName& b : kBackends)
    if (b.word == backend) return std::string(b.name);
  return backend == "UNSPECIFIED_BACKEND" ? "unknown" : backend;
}

std::string TuningConfig::tiles() const {
  if (kind == "triton") {
    std::optional<int64_t> m = whole(settings, "block_m"), n = whole(settings, "block_n"),
                           k = whole(settings, "block_k");
    return m && n && k ? fmt::format("{}x{}x{}", *m, *n, *k) : "";
  }
  if (kind != "block_level") return "";
  std::string out;
  auto tiles = settings.find("output_tiles");
  if (tiles == settings.end() || !tiles->is_array()) return "";
  for (const Json& t : *tiles) {
    if (!t.is_object()) return "";
    std::string one = t.contains("sizes") && t["sizes"].is_array() ? sizes_text(t["sizes"]) : "";
    out += (out.empty() ? "" : " and ") + (one.empty() ? "scalar" : one);
  }
  // Of a product, the tile that its sum goes by.
  if (std::optional<int64_t> k = whole(settings, "block_k")) out += fmt::format("x{}", *k);
  return out;
}

std::string TuningConfig::algorithm() const {
  if (kind == "gemm") {
    int64_t n = whole(settings, "algorithm").value_or(0);
    return n < 0                 ? "its own choice of algorithm"
           : backend == "CUBLAS" ? fmt::format("algorithm {}", n)
                                 : fmt::format("algorithm {} of its list", n);
  }
  if (kind == "conv") return fmt::format("algorithm {}", whole(settings, "algorithm").value_or(0));
  if (kind == "cuda_conv_plan") return "plan " + word(settings, "exec_plan_id", "?");
  if (kind == "custom_kernel_fusion") return fmt::format("kernel {}", whole(settings, "kernel_index").value_or(0));
  if (kind != "algorithm") return "";
  std::string out = fmt::format("engine {}", whole(settings, "algo_id").value_or(0));
  auto knobs = settings.find("tuning_knobs");
  if (knobs == settings.end() || !knobs->is_object() || knobs->empty()) return out;
  std::map<int64_t, std::string> sorted;
  for (const auto& [key, value] : knobs->items()) sorted[atoll(key.c_str())] = text_of(value);
  std::string list;
  for (const auto& [key, value] : sorted) list += fmt::format(" {}={}", key, value);
  return out + ", knobs" + list;
}

std::optional<int64_t> TuningConfig::split_k() const {
  if (kind != "triton") return {};
  std::optional<int64_t> n = whole(settings, "split_k");
  return n && *n > 0 ? n : std::nullopt;
}

std::string TuningConfig::in_words() const {
  std::string out = tiles();
  std::string how = algorithm();
  if (!how.empty()) out += (out.empty() ? "" : ", ") + how;
  if (std::optional<int64_t> parts = split_k(); parts && *parts > 1) out += fmt::format(", split-K {}", *parts);
  if (kind == "triton" || kind == "block_level") {
    out += counted(settings, "num_stages", "stage") + counted(settings, "num_warps", "warp");
    if (whole(settings, "num_ctas").value_or(1) > 1) out += counted(settings, "num_ctas", "CTA");
    if (flag(settings, "is_tma_allowed")) out += ", TMA";
    if (flag(settings, "is_warp_specialization_allowed")) out += ", warps specialized";
  }
  for (const char* key : {"autotune_workspace_size", "workspace_size"})
    if (std::optional<int64_t> bytes = whole(settings, key); bytes && *bytes)
      out += fmt::format(", {} bytes of workspace", *bytes);
  return out.starts_with(", ") ? out.substr(2) : out;
}

TuningIndex::TuningIndex(const TuningResults& results) {
  for (const TuningChoice& c : results.choices) {
    if (!c.key.empty()) by_key_.emplace(c.key, &c);
    if (!c.content.empty()) by_content_.emplace(c.content, &c);
  }
}

std::string tuning_word(const TuningResults& results) {
  Json list = Json::array();
  for (const TuningChoice& c : results.choices)
    if (!c.key.empty() || !c.content.empty())
      list.push_back({c.key, c.content, c.config.backend, c.config.kind, c.config.settings});
  return list.dump();
}

TuningResults tuning_of_word(std::string_view word) {
  TuningResults out;
  if (word.empty() || word == "none") return out;
  const Json list = Json::parse(word, nullptr, false);
  auto wrong = [] { fail(FailureKind::kUsage, "the autotuner's results are a word of ours, and this is none"); };
  if (!list.is_array()) wrong();
  for (const Json& j : list) {
    const bool words = j.is_array() && j.size() == 5 && j[4].is_object() &&
                       std::all_of(j.begin(), j.begin() + 4, [](const Json& w) { return w.is_string(); });
    if (!words) wrong();
    TuningChoice& c = out.choices.emplace_back();
    c.key = j[0].get<std::string>(), c.content = j[1].get<std::string>();
    c.config = {j[2].get<std::string>(), j[3].get<std::string>(), j[4]};
  }
  return out;
}

namespace {

// What the product within says that its sum's tile is.
std::optional<std::string> summed_tile(const Module& m, CompId body) {
  for (InstId i : m.live_order(body)) {
    if (m.op(i) != Opcode::Dot) continue;
    const Json config = Json::parse(m.u().text(m.attrs(i).text(Attr::backend_config)), nullptr, false);
    if (!config.is_object()) continue;
    auto sizes = config.find("sizes");
    if (sizes != config.end() && sizes->is_array() && sizes->size() == 1) return text_of((*sizes)[0]);
  }
  return {};
}

TuningConfig of_fusion(const Module& m, InstId fusion) {
  const Json config = backend_config(m.u().text(m.attrs(fusion).text(Attr::backend_config)), "fusion_backend_config");
  const std::string kind = word(config, "kind", "");
  auto part = [&](const char* key) {
    auto at = config.find(key);
    return at != config.end() && at->is_object() ? *at : Json::object();
  };
  if (kind == "__triton_gemm")
    return config.contains("triton_gemm_config") ? TuningConfig{"TRITON", "triton", part("triton_gemm_config")}
                                                 : TuningConfig();
  if (kind == "__triton_nested_gemm_fusion") {
    TuningConfig out{"TRITON", "block_level", part("block_level_fusion_config")};
    if (auto k = summed_tile(m, m.called(fusion)[0])) out.settings["block_k"] = *k;
    return out;
  }
  if (kind == "__triton") return {"BLOCK_LEVEL_EMITTER", "block_level", part("block_level_fusion_config")};
  if (kind == "__custom_fusion") return {"CUSTOM_KERNEL", "custom_kernel_fusion", part("custom_fusion_config")};
  if (kind == "__cudnn$fusion") return {"CUDNN", "algorithm", part("cudnn_fusion_config")};
  if (kind.empty()) return {"NATIVE_EMITTER", "native_emitter", Json::object()};
  return {"UNSPECIFIED_BACKEND", kind, config};
}

}  // namespace

std::optional<TuningConfig> kernel_choice(const Module& m, InstId instruction) {
  if (m.op(instruction) == Opcode::Fusion) return of_fusion(m, instruction);
  if (m.op(instruction) != Opcode::CustomCall) return {};
  const std::string_view target = m.u().text(m.attrs(instruction).text(Attr::custom_call_target));
  const std::string_view text = m.u().text(m.attrs(instruction).text(Attr::backend_config));
  if (target.starts_with("__cublas$")) {
    const Json config = backend_config(text, "gemm_backend_config");
    TuningConfig out{target.starts_with("__cublas$lt$") ? "CUBLASLT" : "CUBLAS", "gemm", Json::object()};
    if (auto n = whole(config, "selected_algorithm")) out.settings["algorithm"] = std::to_string(*n);
    if (auto n = whole(config, "autotune_workspace_size")) out.settings["autotune_workspace_size"] = std::to_string(*n);
    return out;
  }
  if (!target.starts_with("__cudnn$")) return {};
  Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) return TuningConfig{"CUDNN", "", Json::object()};
  // The part of its operation, which is called after that, holds the plan.
  if (!config.contains("algorithm"))
    for (const auto& [key, value] : config.items())
      if (value.is_object() && value.contains("algorithm")) {
        config = Json(value);
        break;
      }
  auto plan = config.find("algorithm");
  if (plan == config.end() || !plan->is_object()) return TuningConfig{"CUDNN", "", Json::object()};
  return TuningConfig{"CUDNN", "algorithm", *plan};
}

}  // namespace hlo
