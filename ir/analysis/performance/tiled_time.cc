// Triton kernels by the model (xla/service/gpu/model/gpu_indexing_performance_model.cc).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/analysis/fusion/tiling.h"
#include "ir/analysis/performance/gpu_performance_model.h"
#include "ir/backend_config.h"

namespace hlo {
namespace {

constexpr double kRegistersForTiles = 0.4;  // the rest is what is computed on the way
constexpr int64_t kMostChoices = 100000;    // of tiles for one kernel; XLA tries them all, however many
constexpr int64_t kMostTileElements = 1048576, kMostBlocks = INT32_MAX;

int64_t bytes_of_element(const Shape& s) { return (element_bits(s.type) + 7) / 8; }

// How much of what memory brings is asked for: rows of a tile are short, transactions are not.
double rate_of_tile(const Shape& s, const Tile& t, int64_t transaction) {
  int64_t elements = 1;
  const bool laid = s.has_layout && s.layout.minor_to_major.size() == s.dims.size();
  for (size_t n = 0; n < s.dims.size(); ++n) {
    const auto k = laid ? static_cast<size_t>(s.layout.minor_to_major[n]) : s.dims.size() - 1 - n;
    if (t.strides[k] != 1) break;
    elements *= std::min(t.sizes[k], s.dims[k]);
    if (t.sizes[k] < s.dims[k]) break;
  }
  const int64_t bytes = std::max<int64_t>(1, elements * bytes_of_element(s));
  const int64_t brought = transaction * ((bytes + transaction - 1) / transaction);
  return 1.0 * static_cast<double>(bytes) / static_cast<double>(brought);
}

int64_t warps_for(int64_t largest) { return largest <= 256 ? 1 : largest <= 1024 ? 2 : largest <= 4096 ? 4 : 8; }

}  // namespace

std::string TritonTiles::config() const {
  std::vector<std::string> words;
  for (int64_t s : sizes) words.push_back(fmt::format("\"{}\"", s));
  return fmt::format(
      "{{\"operation_queue_id\":\"0\",\"fusion_backend_config\":{{\"kind\":\"__triton\",\"block_level_fusion_config\":{"
      "{"
      "\"num_warps\":\"{}\",\"output_tiles\":[{{\"sizes\":[{}]}}],\"num_ctas\":1,\"num_stages\":1,"
      "\"is_tma_allowed\":false,\"is_warp_specialization_allowed\":false,\"waves_per_eu\":0}}}},"
      "\"force_earliest_schedule\":false,\"reification_cost\":[],\"device_type\":\"DEVICE_TYPE_INVALID\"}}",
      warps, fmt::join(words, ","));
}

int64_t GpuPerformanceModel::cycles_of_element(InstId i) {
  switch (m_.op(i)) {
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Constant:
    case Opcode::Iota:
    case Opcode::Parameter:
    case Opcode::Slice:
    case Opcode::Transpose:
      return 0;
    default:
      break;
  }
  const auto flops = static_cast<int64_t>(costs_.of(i).flops);
  const int64_t out = std::max<int64_t>(1, m_.shape(i).elements_count());
  if (m_.op(i) != Opcode::Reduce) return flops / out;
  const int64_t in = m_.shape(m_.operand(i, 0)).elements_count();
  if (in <= out) return 0;
  return flops / (in - out) * (in / out - 1);
}

bool GpuPerformanceModel::tiled_time(const FusionView& view, TiledFusion* fusion, TritonTiles* tiles) {
  Tile root;
  root.rank = tiles->sizes.size();
  if (root.rank > kMostTileRank) return false;
  for (size_t k = 0; k < root.rank; ++k) root.sizes[k] = tiles->sizes[k], root.strides[k] = 1;
  const double registers = kRegistersForTiles * static_cast<double>(target_.registers_per_block_limit);
  if (static_cast<double>(padded_elements(root)) > registers) return false;
  const auto* values = fusion->cut(root);
  if (!values) return false;
  const Shape& result = m_.shape(view.roots()[0]);
  RunTime& r = tiles->time;
  r = RunTime();
  r.kind = EmitterKind::kTriton;
  for (size_t k = 0; k < tiles->sizes.size(); ++k)
    r.grid.blocks *= (result.dims[k] + tiles->sizes[k] - 1) / tiles->sizes[k];
  int64_t largest = 1;
  struct Read {
    int64_t bytes = 0;
    double rate = 1;
  };
  std::vector<std::pair<InstId, Read>> reads;
  for (size_t k = 0; k < values->size(); ++k) {
    const Asked<Tile>& v = (*values)[k];
    const int64_t elements = padded_elements(v.part);
    largest = std::max(largest, elements);
    const bool whole = k == 0 || !v.inside || m_.op(v.inst) == Opcode::Iota;
    if (elements > kMostTileElements || (whole && static_cast<double>(elements) > registers)) return false;
    if (v.inside) {
      r.flops += cycles_of_element(v.inst) * r.grid.blocks * elements;
      continue;
    }
    const Shape& s = m_.shape(v.inst);
    int64_t count = r.grid.blocks;
    for (size_t d = 0; d < s.dims.size(); ++d) count *= std::min(v.part.sizes[d], s.dims[d]);
    auto at = std::find_if(reads.begin(), reads.end(), [&](const auto& x) { return x.first == v.inst; });
    if (at == reads.end()) at = reads.insert(reads.end(), {v.inst, Read()});
    at->second.bytes += count * bytes_of_element(s);
    at->second.rate = std::min(at->second.rate, rate_of_tile(s, v.part, target_.dram_transaction));
  }
  if (r.grid.blocks >= kMostBlocks) return false;
  if (tiles->warps == 0) tiles->warps = warps_for(largest);
  r.grid.threads = tiles->warps * target_.threads_per_warp;
  for (const auto& [i, read] : reads)
    r.read += read_time(r.grid, std::min(costs_.size(i), read.bytes), read.bytes, read.rate);
  r.bytes_written = costs_.size(view.roots()[0]);
  const auto bandwidth = static_cast<int64_t>(rate_of_tile(result, (*values)[0].part, target_.dram_transaction) *
                                              static_cast<double>(target_.memory_bandwidth));
  r.write = from_seconds(1.0 * static_cast<double>(r.bytes_written) / static_cast<double>(bandwidth));
  r.compute = compute_time(r.flops, r.grid);
  r.total = together(r.compute, r.read + r.write);
  return true;
}

std::optional<TritonTiles> GpuPerformanceModel::best_tiles(const FusionView& view) {
  if (view.roots().size() != 1 || !view.contains(view.roots()[0])) return std::nullopt;
  const Shape& result = m_.shape(view.roots()[0]);
  if (!result.is_array() || result.elements_count() == 0) return std::nullopt;
  std::optional<TritonTiles> best;
  TiledFusion fusion(view);
  int64_t choices = 1;
  for (int64_t d : result.dims) choices *= std::bit_width(static_cast<uint64_t>(d)) + 1;
  if (choices > kMostChoices || choices <= 0 || result.dims.size() > kMostTileRank) return std::nullopt;
  if (!fusion.has_maps()) return std::nullopt;
  // Powers of 2 below a dimension, and all of it; the last dimension changes first.
  Dims sizes(result.dims.size(), 1);
  for (bool more = true; more;) {
    TritonTiles t{sizes, 0, {}};
    if (tiled_time(view, &fusion, &t) && (!best || t.time.total < best->time.total)) best = std::move(t);
    more = false;
    for (size_t k = sizes.size(); k-- > 0;) {
      if (sizes[k] < result.dims[k]) {
        sizes[k] = std::min(sizes[k] * 2, result.dims[k]);
        more = true;
        break;
      }
      sizes[k] = 1;
    }
  }
  return best;
}

// A fusion says how it is cut up; one that does not, or not so that it can be, counts as the loop that it would be.
std::optional<RunTime> GpuPerformanceModel::of_triton(InstId fusion) {
  const BackendConfig config =
      backend_config(m_.u().text(m_.attrs(fusion).text(Attr::backend_config)), "fusion_backend_config");
  auto block = config.find("block_level_fusion_config");
  if (block == config.end() || !block->is_object()) return std::nullopt;
  TritonTiles t;
  t.warps = static_cast<int64_t>(number(*block, "num_warps", 0));
  auto tiles = block->find("output_tiles");
  if (tiles == block->end() || !tiles->is_array() || tiles->empty() || !(*tiles)[0].is_object()) return std::nullopt;
  t.sizes = list((*tiles)[0], "sizes");
  const FusionView view(m_, fusion);
  const Shape& result = m_.shape(view.roots()[0]);
  if (!result.is_array() || t.sizes.size() != result.dims.size() || t.warps < 1 || t.warps > 64) return std::nullopt;
  for (size_t k = 0; k < t.sizes.size(); ++k)
    if (t.sizes[k] < 1 || t.sizes[k] > kMostTileElements) return std::nullopt;
  TiledFusion cut(view);
  if (!tiled_time(view, &cut, &t)) return std::nullopt;
  return t.time;
}

}  // namespace hlo
