#include "passes/library_calls/tuned_configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/library/library_calls.h"
#include "ir/library/tuning_key.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

using Json = nlohmann::ordered_json;

class TunedConfigs {
 public:
  TunedConfigs(Module& m, PassContext& ctx, const TuningResults& results) : m_(m), ctx_(ctx), index_(results) {}

  bool run() {
    bool changed = false;
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.post_order(c)) {
        if (!m_.alive(i) || !kernel_choice(m_, i)) continue;
        const TuningChoice* choice = nullptr;
        for (const std::string& key : tuning_keys(m_, i))
          if (!choice) choice = index_.of_key(key);
        if (!choice) choice = index_.of_content(kernel_content_key(m_, i));
        if (choice) changed |= apply(i, choice->config);
      }
    return changed;
  }

 private:
  bool apply(InstId i, const TuningConfig& c) {
    const bool fusion = m_.op(i) == Opcode::Fusion;
    if (fusion && c.kind == "triton") return product_tiles(i, c);
    if (fusion && c.kind == "block_level" && c.backend == "BLOCK_LEVEL_EMITTER") return tiles(i, c);
    if (fusion && c.kind == "gemm" && c.backend.starts_with("CUBLASLT")) return call_of_cublas(i, c);
    if (!fusion && c.kind == "algorithm") return plan(i, c);
    if (!fusion && c.kind == "gemm") return algorithm(i, c);
    if (c.backend != "NATIVE_EMITTER")
      ctx_.note(m_, "choice not taken", {i}, fmt::format("{} {}", c.backend_in_words(), c.in_words()));
    return false;
  }

  bool spend(InstId i, const TuningConfig& c) {
    return ctx_.spend(m_, "as the autotuner chose", {i}, fmt::format("{}: {}", c.backend_in_words(), c.in_words()));
  }

  Json config_of(InstId i) const {
    Json config = Json::parse(m_.u().text(m_.attrs(i).text(Attr::backend_config)), nullptr, false);
    return config.is_object() ? config : Json::object();
  }
  void set_config(InstId i, const Json& config) { m_.set_attr(i, Attr::backend_config, m_.u().str(config.dump())); }

  bool product_tiles(InstId fusion, const TuningConfig& c) {
    Json config = config_of(fusion);
    Json& part = config["fusion_backend_config"];
    if (!part.is_object() || part.value("kind", Json()) != "__triton_gemm" || part.contains("triton_gemm_config"))
      return false;
    if (!spend(fusion, c)) return false;
    part["triton_gemm_config"] = Json(c.settings);
    set_config(fusion, config);
    return true;
  }

  bool tiles(InstId fusion, const TuningConfig& c) {
    if (!kernel_choice(m_, fusion) || kernel_choice(m_, fusion)->backend != "NATIVE_EMITTER") return false;
    if (!spend(fusion, c)) return false;
    Json config = config_of(fusion);
    config["fusion_backend_config"] = Json{{"kind", "__triton"}, {"block_level_fusion_config", Json(c.settings)}};
    m_.set_attr(fusion, Attr::kind, AttrValue(m_.u().str("kCustom")));
    set_config(fusion, config);
    return true;
  }

  void set_scratch(InstId call, int64_t bytes) {
    const std::optional<size_t> at = scratch_element(m_, call);
    if (!at || bytes < 0) return;
    std::vector<ShapeId> elements = m_.shape(call).elements;
    Shape scratch = m_.u()[elements[*at]];
    if (scratch.rank() != 1) return;
    scratch.dims[0] = bytes;
    const ShapeId made = m_.u().shape(scratch);
    elements[*at] = made;
    // Whoever takes it out has its shape, too.
    for (InstId user : std::vector<InstId>(m_.users(call).begin(), m_.users(call).end()))
      if (m_.op(user) == Opcode::GetTupleElement && m_.attrs(user).integer(Attr::index) == static_cast<int64_t>(*at))
        return;
    m_.set_shape(call, m_.u().tuple(std::move(elements)));
  }

  static int64_t whole(const nlohmann::json& j, const char* key) {
    auto at = j.find(key);
    if (at == j.end()) return -1;
    if (at->is_number_integer()) return at->get<int64_t>();
    const std::string text = at->is_string() ? at->get<std::string>() : "";
    const bool number = !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
    return number ? std::stoll(text) : -1;
  }

  bool plan(InstId call, const TuningConfig& c) {
    Json config = config_of(call);
    auto part = config.find("cudnn_conv_backend_config");
    if (part == config.end() || !part->is_object() || part->contains("algorithm")) return false;
    if (!spend(call, c)) return false;
    (*part)["algorithm"] = Json(c.settings);
    set_config(call, config);
    set_scratch(call, std::max<int64_t>(0, whole(c.settings, "workspace_size")));
    return true;
  }

  bool algorithm(InstId call, const TuningConfig& c) {
    Json config = config_of(call);
    auto part = config.find("gemm_backend_config");
    if (part == config.end() || !part->is_object() || !spend(call, c)) return false;
    (*part)["selected_algorithm"] = std::to_string(std::max<int64_t>(0, whole(c.settings, "algorithm")));
    const int64_t scratch = whole(c.settings, "autotune_workspace_size");
    if (scratch > 0) (*part)["autotune_workspace_size"] = std::to_string(scratch);
    set_config(call, config);
    if (scratch > 0) set_scratch(call, scratch);
    return true;
  }

  std::set<InstId> calls(CompId comp) const {
    std::set<InstId> out;
    for (InstId i : m_.live_order(comp))
      if (m_.op(i) == Opcode::CustomCall) out.insert(i);
    return out;
  }

  // The product leaves its fusion and becomes a call; what stood around it becomes kernels of its own.
  bool call_of_cublas(InstId fusion, const TuningConfig& c) {
    Json config = config_of(fusion);
    auto part = config.find("fusion_backend_config");
    if (part == config.end() || !part->is_object() || part->value("kind", Json()) != "__triton_gemm") return false;
    if (!spend(fusion, c)) return false;
    const CompId around = m_.parent(fusion);
    const std::set<InstId> before = calls(around);
    const std::vector<InstId> arguments(m_.operands(fusion).begin(), m_.operands(fusion).end());
    if (!inline_computation(m_, fusion, m_.called(fusion)[0], arguments, false)) return false;
    ctx_.run(m_, "cublas-gemm-rewriter", {{"gpu", ctx_.word("gpu")}});
    std::vector<InstId> made;
    for (InstId i : calls(around))
      if (!before.contains(i)) made.push_back(i);
    if (made.size() != 1) return true;
    algorithm(made[0], c);
    return true;
  }

  Module& m_;
  PassContext& ctx_;
  const TuningIndex index_;
};

}  // namespace

bool apply_tuning(Module& m, PassContext& ctx, const TuningResults& results) {
  return !results.choices.empty() && TunedConfigs(m, ctx, results).run();
}

}  // namespace hlo
