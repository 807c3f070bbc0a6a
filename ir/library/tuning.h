// What XLA's autotuner chose for kernels: of a file of its results, and of a module's own configurations.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace hlo {

// A back end and its settings.
struct TuningConfig {
  // XLA's word (autotuner.Config.backend): CUDNN, TRITON, CUBLASLT, CUBLASLT_FISSION, BLOCK_LEVEL_EMITTER,
  // NATIVE_EMITTER, CUSTOM_KERNEL …; CUBLAS, where a module calls it, and UNSPECIFIED_BACKEND where nothing tells.
  std::string backend = "UNSPECIFIED_BACKEND";
  // The field of `settings`: gemm, triton, block_level, algorithm, native_emitter, conv, cuda_conv_plan,
  // custom_kernel_fusion, other; empty where there are none.
  std::string kind;
  // As protobuf's JSON has them and backend_config dictionaries hold them: 64-bit numbers are strings.
  nlohmann::json settings = nlohmann::json::object();

  // `Triton`, `cuBLASLt`, `cuDNN`, `native emitter` …; `unknown`.
  std::string backend_in_words() const;
  // `128x256x128` (m, n, k) of a product, `1x16` of a result's tile; empty where there is none or it is not told.
  std::string tiles() const;
  // `algorithm 3 of its list`, `engine 57, knobs 2=4 17=396`; empty where nothing tells.
  std::string algorithm() const;
  // In how many parts a product's sum goes; nothing where the settings do not say, as those of XLA of 2026, whose
  // splitk-rewriter does that before. 1: not split.
  std::optional<int64_t> split_k() const;
  // All of them: `128x256x128, 3 stages, 8 warps, TMA`.
  std::string in_words() const;
  bool operator==(const TuningConfig&) const = default;
};

// One entry of a file.
struct TuningChoice {
  std::string key;      // tuning_key() of the instruction; empty in the older form
  std::string content;  // kernel_content_key() of it, where a dump told which kernel it is; else empty
  std::string hlo;      // its text, in the older form alone
  std::string device;   // XLA's description or a hash of it
  std::string version;  // of the code generator or of cuBLAS and cuDNN; may be empty
  TuningConfig config;
  double run_time = -1;        // seconds; -1: not told, as today's form never does
  int64_t scratch_bytes = -1;  // -1: not told
  std::string failure;         // of the older form: why the choice failed; empty
  int line = 0;                // of a text; 0 of a binary file
};

struct TuningResults {
  std::string file, form;  // `AutotuneCache`, `AutotuneResults`
  int version = 0;         // of AutotuneResults; 0: none
  std::vector<TuningChoice> choices;
  std::map<std::string, size_t> not_understood;  // fields and words by name, and how often
};

// The choices of results by key and by content, the first of each. The results must outlive it.
class TuningIndex {
 public:
  explicit TuningIndex(const TuningResults& results);
  // Null where there is none.
  const TuningChoice* of_key(const std::string& key) const { return find(by_key_, key); }
  const TuningChoice* of_content(const std::string& content) const { return find(by_content_, content); }

 private:
  using Map = std::unordered_map<std::string, const TuningChoice*>;
  static const TuningChoice* find(const Map& map, const std::string& key) {
    auto at = map.find(key);
    return at == map.end() ? nullptr : at->second;
  }
  Map by_key_, by_content_;
};

// As one word of a pass's options, and back; an empty word and `none` are no results. Throws Failure(kUsage) where the
// text is none of them.
std::string tuning_word(const TuningResults& results);
TuningResults tuning_of_word(std::string_view word);

// What a module says of an instruction: a fusion or a call of a library that XLA tunes. Nothing for others.
// UNSPECIFIED_BACKEND for a product's fusion that was not decided yet.
std::optional<TuningConfig> kernel_choice(const Module& m, InstId instruction);

}  // namespace hlo
