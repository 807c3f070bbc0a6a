// autotuner and convert_triton_gemm_config (xla/backends/gpu/autotuner, xla/backends/gpu/transforms/
// convert_triton_gemm_config.cc) where there is no device to measure on.
#include <nlohmann/json.hpp>

#include "ir/target/gpu_target.h"
#include "passes/library_calls/gemm_tiles.h"
#include "passes/library_calls/tuned_configs.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char *kFusion = "fusion_backend_config", *kGemm = "triton_gemm_config";

// The part of a fusion of a product's configuration; null where it is none.
Json* gemm_part(Json& config) {
  if (!config.is_object()) return nullptr;
  auto part = config.find(kFusion);
  if (part == config.end() || !part->is_object()) return nullptr;
  auto kind = part->find("kind");
  return kind != part->end() && *kind == "__triton_gemm" ? &*part : nullptr;
}

// A fusion of a product by itself, whose arrays have elements.
InstId dot_of(const Module& m, InstId fusion) {
  for (InstId i : m.live_order(m.called(fusion)[0])) {
    if (m.op(i) != Opcode::Dot || m.operand_count(i) != 2) continue;
    for (InstId x : {m.operand(i, 0), m.operand(i, 1), i})
      if (m.shape(x).has_zero() || m.shape(x).is_dynamic() || !m.u().bytes(m.shape_id(x)).fits()) return {};
    return i;
  }
  return {};
}

template <class Rewrite>
bool each_gemm(Module& m, Rewrite&& rewrite) {
  bool changed = false;
  for (CompId c : m.nonfusion_computations()) {
    for (InstId i : m.post_order(c)) {
      if (m.op(i) != Opcode::Fusion) continue;
      Json config = Json::parse(m.u().text(m.attrs(i).text(Attr::backend_config)), nullptr, false);
      Json* part = gemm_part(config);
      const InstId dot = part ? dot_of(m, i) : InstId();
      if (!dot.valid() || !rewrite(i, dot, *part)) continue;
      m.set_attr(i, Attr::backend_config, m.u().str(config.dump()));
      changed = true;
    }
  }
  return changed;
}

// 64-bit numbers are strings there.
int64_t number(const Json& part, const char* key) {
  auto at = part.find(key);
  if (at == part.end() || !at->is_string()) return 0;
  const std::string& text = at->get_ref<const std::string&>();
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoll(text);
}

}  // namespace

//   fusion, backend_config={…"kind":"__triton_gemm"…}      →      …,"triton_gemm_config":{"block_m":"16",…}
// With results of XLA's autotuner what they say comes first, of every kernel.
bool run_autotuner(Module& m, PassContext& ctx) {
  const GpuTarget target = named_gpu_target(ctx.word("gpu"));
  const bool taken = apply_tuning(m, ctx, tuning_of_word(ctx.word("autotune_results")));
  return taken | each_gemm(m, [&](InstId fusion, InstId dot, Json& part) {
           if (part.contains(kGemm)) return false;
           const std::optional<GemmTiles> found = default_gemm_tiles(m, dot, target);
           if (!found) {
             ctx.note(m, "no tiles", {fusion},
                      fmt::format("no list of XLA's for capability {} is known", target.major));
             return false;
           }
           const GemmTiles t = *found;
           if (!ctx.spend(m, "tiles without a device", {fusion}, fmt::format("{}x{}x{}", t.m, t.n, t.k))) return false;
           Json config = Json::object();
           auto put = [&](const char* key, int64_t value) { config[key] = std::to_string(value); };
           put("block_m", t.m), put("block_n", t.n), put("block_k", t.k), put("split_k", 0);
           put("num_stages", t.stages), put("num_warps", t.warps), put("num_ctas", 1);
           config["is_tma_allowed"] = false;
           config["is_warp_specialization_allowed"] = false;
           put("waves_per_eu", 0);
           part[kGemm] = std::move(config);
           return true;
         });
}

//   "triton_gemm_config":{"block_m":"16",…}      →
//   "block_level_fusion_config":{…"output_tiles":[{"sizes":["16","8"]}]…}, and the sum's tile at the dot
bool run_convert_triton_gemm_config(Module& m, PassContext& ctx) {
  return each_gemm(m, [&](InstId fusion, InstId dot, Json& part) {
    auto at = part.find(kGemm);
    if (at == part.end() || !at->is_object()) return false;
    const Json config = *at;
    const AttrSet& a = m.attrs(dot);
    const size_t batch = a.ints(Attr::lhs_batch_dims).size();
    auto kept = [&](size_t n, Attr sum) { return m.shape(m.operand(dot, n)).dims.size() - batch - a.ints(sum).size(); };
    const Dims three = {number(config, "block_m"), number(config, "block_n"), number(config, "block_k")};
    if (kept(0, Attr::lhs_contracting_dims) != 1 || kept(1, Attr::rhs_contracting_dims) != 1 ||
        a.ints(Attr::lhs_contracting_dims).size() != 1 || contains(three, 0))
      return false;
    Dims tiles(batch, 1);
    tiles.push_back(three[0]), tiles.push_back(three[1]);
    const auto root = root_tiles(m, dot, tiles);
    if (!root) {
      ctx.note(m, "tiles that its result does not have", {fusion, dot});
      return false;
    }
    if (!ctx.spend(m, "tiles of the result", {fusion, dot})) return false;
    Json sizes = Json::array();
    for (int64_t t : *root) sizes.push_back(std::to_string(t));
    Json block = Json::object();
    block["num_warps"] = std::to_string(number(config, "num_warps"));
    block["output_tiles"] = Json::array({Json{{"sizes", std::move(sizes)}}});
    block["num_ctas"] = number(config, "num_ctas");
    block["num_stages"] = number(config, "num_stages");
    auto flag = [&](const char* key) { return config.contains(key) && config[key] == true; };
    block["is_tma_allowed"] = flag("is_tma_allowed");
    block["is_warp_specialization_allowed"] = flag("is_warp_specialization_allowed");
    block["waves_per_eu"] = number(config, "waves_per_eu");
    part.erase(kGemm);
    part["kind"] = "__triton_nested_gemm_fusion";
    part["block_level_fusion_config"] = std::move(block);
    m.set_attr(dot, Attr::backend_config, m.u().str(fmt::format(R"({{"sizes":["{}"]}})", three[2])));
    return true;
  });
}

}  // namespace hlo
