#include "ir/program/thunk.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ir/analysis/fusion/fusion_analysis.h"
#include "ir/analysis/schedule/execution_streams.h"
#include "ir/analysis/schedule/messages.h"
#include "ir/backend_config.h"
#include "ir/base/stack_guard.h"
#include "ir/query/fingerprint.h"

namespace hlo {
namespace {

std::string launch_text(int64_t blocks, int64_t threads) {
  return fmt::format("grid: [{}, 1, 1] threads: [{}, 1, 1]", blocks, threads);
}

const char* call_kind(std::string_view target) {
  if (target.starts_with("__cudnn$conv")) return "kConvolution";
  if (target.starts_with("__cudnn$norm")) return "kNorm";
  if (target.starts_with("__cudnn$")) return "kCuDnn";
  if (target.starts_with("__cublas$lt")) return "kCublasLtMatmul";
  if (target.starts_with("__cublas$gemm")) return "kGemm";
  if (target.starts_with("__cublas$triangularSolve")) return "kTriangularSolve";
  if (target == "__gpu$TopK" || target == "PadToStatic" || target == "SliceToDynamic") return "kCustomKernel";
  // Values that are only marked.
  if (target == "nop" || target == "Sharding" || target == "Pin" || target == "Unpin" || target == "CreateBuffer")
    return nullptr;
  return "kCustomCall";
}

// What the runtime does for an instruction that is no fusion and holds nothing; null where it does nothing.
const char* kind_of(const Module& m, InstId i) {
  switch (m.op(i)) {
    // Buffers are where they are.
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::Tuple:
    case Opcode::AfterAll:
    case Opcode::AddDependency:
    case Opcode::OptBarrier:
    case Opcode::Domain:
      return nullptr;
    case Opcode::Copy:
      return "kCopy";
    case Opcode::Dot:
      return "kGemm";
    case Opcode::Convolution:
      return "kConvolution";
    case Opcode::Fft:
      return "kFft";
    case Opcode::TriangularSolve:
      return "kTriangularSolve";
    case Opcode::PartitionId:
      return "kPartitionId";
    case Opcode::ReplicaId:
      return "kReplicaId";
    case Opcode::Infeed:
      return "kInfeed";
    case Opcode::Outfeed:
      return "kOutfeed";
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
      return "kAllReduce";
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
      return "kAllGather";
    case Opcode::AllToAll:
      return "kAllToAll";
    case Opcode::RaggedAllToAll:
      return "kRaggedAllToAll";
    case Opcode::ReduceScatter:
      return "kReduceScatter";
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart:
      return "kCollectivePermute";
    case Opcode::CollectiveBroadcast:
      return "kCollectiveBroadcast";
    case Opcode::CopyStart:
      return "kCopy";
    case Opcode::CopyDone:
    case Opcode::AllReduceDone:
    case Opcode::AllGatherDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::AsyncDone:
      return "kAsyncDone";
    case Opcode::AsyncUpdate:
      return nullptr;
    case Opcode::Send:
      return "kSend";
    case Opcode::SendDone:
      return "kSendDone";
    case Opcode::Recv:
      return "kRecv";
    case Opcode::RecvDone:
      return "kRecvDone";
    case Opcode::CustomCall:
      return call_kind(m.u().text(m.attrs(i).text(Attr::custom_call_target)));
    default:
      return "kKernel";
  }
}

// Kernels of a bitonic sort of rows of that length: what happens within a tile of shared memory is one.
int64_t sort_kernels(int64_t length, int64_t element_bytes) {
  int64_t stages = 0, tile = 0;
  while ((int64_t{1} << stages) < length) ++stages;
  const int64_t room = std::min({int64_t{4096}, int64_t{49152} / std::max<int64_t>(element_bytes, 1)});
  while (tile < stages && (int64_t{2} << tile) <= room) ++tile;
  int64_t n = 1;
  for (int64_t s = tile; s < stages; ++s) n += 2 + (s - tile);
  return n;
}

class Builder {
 public:
  Builder(const Module& m, const BufferAssignment& b, const GpuTarget& target)
      : m_(m), b_(b), target_(target), bodies_(m), streams_(execution_streams(m)) {}

  std::vector<Thunk> sequence(CompId c) {
    check_stack("thunks are nested");
    std::vector<Thunk> out;
    for (InstId i : m_.live_order(c)) add(i, out);
    return out;
  }

 private:
  Thunk& make(std::vector<Thunk>& out, InstId i, std::string kind) {
    Thunk& t = out.emplace_back();
    t.kind = std::move(kind), t.inst = i, t.id = ++last_;
    return t;
  }
  ThunkSlice slice(int value, bool write) const {
    const BufferValue& v = b_.values[static_cast<size_t>(value)];
    return {v.allocation, v.offset, v.size, write};
  }
  void use(Thunk& t, InstId i, bool write) const {
    for (int id : b_.leaf_values(m_, i)) t.slices.push_back(slice(id, write));
  }
  void use_all(Thunk& t, InstId i) const {
    for (InstId o : m_.operands(i)) use(t, o, false);
    use(t, i, true);
  }

  void add(InstId i, std::vector<Thunk>& out) {
    const AttrSet& a = m_.attrs(i);
    switch (m_.op(i)) {
      case Opcode::While: {
        Thunk t = holder(i, "kWhile");
        t.nested.push_back({"condition", sequence(a.comp(Attr::condition))});
        t.nested.push_back({"body", sequence(a.comp(Attr::body))});
        use(t, m_.comp(a.comp(Attr::condition)).root, false);
        return finish(std::move(t), out);
      }
      case Opcode::Conditional: {
        Thunk t = holder(i, "kConditional");
        use(t, m_.operand(i, 0), false);
        for (size_t n = 0; n < a.called.size(); ++n)
          t.nested.push_back(
              {a.has(Attr::true_computation) ? (n == 0 ? "true_branch" : "false_branch") : fmt::format("branch_{}", n),
               sequence(a.called[n])});
        return finish(std::move(t), out);
      }
      case Opcode::Call:
        for (Thunk& t : sequence(a.called[0])) out.push_back(std::move(t));
        return;
      case Opcode::AsyncStart:
        return add_async(i, out);
      case Opcode::Fusion:
        return add_fusion(i, out);
      case Opcode::Sort:
        return add_sort(i, i, out);
      case Opcode::Copy:
        return add_copies(i, {{m_.operand(i, 0), 0}}, out);
      default:
        break;
    }
    const char* kind = kind_of(m_, i);
    if (!kind) return;
    if (alone(i)) kind = "kCopy";
    if (alone_done(i)) return;
    if (std::string_view(kind) == "kAsyncDone") return add_done(i, out);
    if (m_.op(i) == Opcode::CopyStart) return add_started(i, kind, out);
    if (starts_message(m_, i) && !alone(i)) return add_message(i, kind, out);
    Thunk& t = make(out, i, kind);
    use_all(t, i);
    t.description = kind;
    if (m_.op(i) == Opcode::Send || m_.op(i) == Opcode::Recv) t.stream = stream_of(i);
    if (t.kind == "kKernel") t.description = "kernel = " + kernel_name(i) + ", " + m_.u().shape_text(m_.shape_id(i));
    if (m_.op(i) == Opcode::CustomCall && t.kind == "kCustomCall")
      t.description = m_.u().text(a.text(Attr::custom_call_target));
  }
  Thunk holder(InstId i, std::string kind) {
    Thunk t;
    t.kind = std::move(kind), t.inst = i, t.id = ++last_;
    return t;
  }
  // What is inside is read and written by the whole.
  void finish(Thunk t, std::vector<Thunk>& out) const {
    for (const auto& [label, inner] : t.nested)
      for (const Thunk& n : inner) t.slices.insert(t.slices.end(), n.slices.begin(), n.slices.end());
    out.push_back(std::move(t));
  }
  std::string kernel_name(InstId i) const {
    std::string name(m_.inst_name(i));
    for (char& c : name)
      if (!isalnum(static_cast<unsigned char>(c))) c = '_';
    return name;
  }

  // A collective of one device sends nothing.
  bool alone(InstId i) const {
    switch (m_.op(i)) {
      case Opcode::AllReduce:
      case Opcode::AllReduceStart:
      case Opcode::AllGather:
      case Opcode::AllGatherStart:
      case Opcode::AllToAll:
      case Opcode::ReduceScatter:
        return m_.config().replica_count * m_.config().num_partitions == 1;
      default:
        return false;
    }
  }
  bool alone_done(InstId i) const {
    const Opcode op = m_.op(i);
    return (op == Opcode::AllReduceDone || op == Opcode::AllGatherDone) && alone(m_.operand(i, 0));
  }
  // A message that is waited for at once is one of the sequence, else it runs on a stream of its own until its end.
  void add_message(InstId i, const char* kind, std::vector<Thunk>& out) {
    if (!waits_at_once(m_, i)) return add_started(i, kind, out);
    Thunk& t = make(out, i, kind);
    use_all(t, i);
    t.description = kind;
  }
  // One thunk on a stream of its own.
  void add_started(InstId i, const char* kind, std::vector<Thunk>& out) {
    std::vector<Thunk> inside;
    Thunk& t = make(inside, i, kind);
    use_all(t, i);
    t.description = kind;
    start(holder(i, "kAsyncStart"), std::move(inside), out);
  }
  // XLA refuses a module in which one is started inside of another.
  std::string stream_of(InstId i) const {
    const auto stream = streams_.find(i);
    return stream == streams_.end() ? "unknown" : stream->second;
  }
  void start(Thunk start, std::vector<Thunk> inside, std::vector<Thunk>& out) {
    start.async_id = started_[start.inst] = start.id;
    start.stream = stream_of(start.inst);
    start.description = fmt::format("stream={}, async_id={}", start.stream, start.async_id);
    start.nested.push_back({"", std::move(inside)});
    finish(std::move(start), out);
  }
  void add_done(InstId i, std::vector<Thunk>& out) {
    InstId from = m_.operand(i, 0);
    while (m_.op(from) == Opcode::AsyncUpdate) from = m_.operand(from, 0);
    const auto start = started_.find(from);
    if (start == started_.end()) return;
    Thunk& t = make(out, i, "kAsyncDone");
    use_all(t, i);
    t.async_id = start->second;
    t.description = fmt::format("async_id={}", start->second);
  }
  void add_async(InstId i, std::vector<Thunk>& out) {
    const CompId inside = m_.called(i)[0];
    const char* kind = kind_of(m_, m_.comp(inside).root);
    if (kind && starts_message(m_, i)) return add_message(i, kind, out);
    Thunk t = holder(i, "kAsyncStart");
    start(std::move(t), sequence(inside), out);
  }

  // Where each array of the result comes from: an array, and how far behind its begin in bytes.
  using Sources = std::vector<std::pair<InstId, int64_t>>;
  // One by one; what lies there already stays.
  void add_copies(InstId i, const Sources& pairs, std::vector<Thunk>& out) {
    const std::vector<int> to = b_.leaf_values(m_, i);
    for (size_t k = 0; k < pairs.size(); ++k) {
      const std::vector<int> from = b_.leaf_values(m_, pairs[k].first);
      if (from.size() != 1 || k >= to.size()) continue;
      const ThunkSlice target = slice(to[k], true);
      ThunkSlice source = slice(from[0], false);
      source.offset += pairs[k].second, source.size = std::min(source.size, target.size);
      if (source.allocation == target.allocation && source.offset == target.offset) continue;
      Thunk& t = make(out, i, "kCopy");
      t.slices = {source, target};
      t.description = "kCopy";
    }
  }
  // Of a slice of neighbours in memory, where it begins in bytes: dimensions in front of the first that is not whole
  // have one element.
  std::optional<int64_t> piece_begin(InstId i) const {
    if (m_.op(i) != Opcode::Slice) return std::nullopt;
    const Shape &from = m_.shape(m_.operand(i, 0)), &to = m_.shape(i);
    const auto& slice = std::get<std::vector<SliceDim>>(*m_.attrs(i).find(Attr::slice));
    const Dims order = from.has_layout && from.layout.minor_to_major.size() == from.dims.size()
                           ? from.layout.minor_to_major
                           : default_minor_to_major(from.rank());
    bool whole = true;  // so far, from the minor end on
    int64_t bits = element_bits(from.type), begin = 0;
    for (int64_t d : order) {
      const auto k = static_cast<size_t>(d);
      if (slice[k].stride != 1 || (!whole && to.dims[k] != 1)) return std::nullopt;
      whole &= to.dims[k] == from.dims[k];
      begin += slice[k].start * bits;
      bits *= from.dims[k];
    }
    return begin % 8 == 0 ? std::optional(begin / 8) : std::nullopt;
  }
  InstId outside(InstId fusion, InstId i) const {
    return m_.op(i) == Opcode::Parameter ? m_.operand(fusion, static_cast<size_t>(m_.parameter_number(i))) : InstId();
  }

  void add_fusion(InstId i, std::vector<Thunk>& out) {
    const FusionView view(m_, i);
    const std::string kind = is_custom_fusion(m_, i) ? fusion_backend_kind(m_, i) : "";
    if (kind == "__custom_fusion") return add_slice_fusion(i, out);
    if (kind == "__cudnn$fusion") {
      Thunk& t = make(out, i, "kCuDnn");
      use_all(t, i);
      t.description = t.kind;
      return;
    }
    const InstId root = m_.comp(m_.called(i)[0]).root;
    if (m_.op(root) == Opcode::Sort) return add_sort(i, root, out);
    Sources moved;
    for (InstId r : view.roots()) {
      const bool copies = m_.op(r) == Opcode::Copy && m_.shape_id(r) == m_.shape_id(m_.operand(r, 0));
      const std::optional<int64_t> piece = copies ? 0 : piece_begin(r);
      if (!view.contains(r) || !piece) break;
      const InstId from = outside(i, m_.operand(r, 0));
      if (!from.valid()) break;
      moved.emplace_back(from, *piece);
    }
    if (kind.empty() && !moved.empty() && moved.size() == view.roots().size()) return add_copies(i, moved, out);
    Thunk& t = make(out, i, "kCustomKernel");
    use_all(t, i);
    t.description = kernel_of(i, t, kind) + " " + launch(i, view, kind);
  }
  // Fusions that do the same on arguments that overlap in the same way run the kernel of the first of them.
  std::string kernel_of(InstId i, const Thunk& t, const std::string& kind) {
    std::string key = fmt::format("{} {} ", bodies_.computation(m_.called(i)[0]), kind);
    if (!kind.empty()) key += m_.u().text(m_.attrs(i).text(Attr::backend_config));
    for (const ThunkSlice& s : t.slices) {
      const auto same = [&](const ThunkSlice& o) { return o.allocation == s.allocation && o.offset == s.offset; };
      const bool given =
          s.allocation >= 0 && b_.allocations[static_cast<size_t>(s.allocation)].kind == Allocation::kParameter;
      key += fmt::format(" {}{}", std::find_if(t.slices.begin(), t.slices.end(), same) - t.slices.begin(),
                         given ? "p" : "");
    }
    return kernels_.try_emplace(std::move(key), kernel_name(i)).first->second;
  }
  // A slice that is copied: the copy is the thunk inside.
  void add_slice_fusion(InstId i, std::vector<Thunk>& out) {
    std::vector<Thunk> inner;
    Thunk& copy = make(inner, i, "kCopy");
    use_all(copy, i);
    copy.description = "kCopy";
    Thunk t = holder(i, "kDynamicSliceFusion");
    t.description = fmt::format("params={}, results={}", 1, 1);
    t.nested.push_back({"", std::move(inner)});
    finish(std::move(t), out);
  }
  // Keys and values come to where they are sorted, and each kernel sorts there.
  void add_sort(InstId i, InstId sort, std::vector<Thunk>& out) {
    int64_t bytes = 0;
    Sources moved;
    for (InstId o : m_.operands(sort)) {
      bytes += (element_bits(m_.shape(o).type) + 7) / 8;
      const InstId from = sort == i ? o : outside(i, o);
      moved.emplace_back(from.valid() ? from : o, 0);  // an iota inside is made in its place
    }
    add_copies(i, moved, out);
    const Shape& keys = m_.shape(m_.operand(sort, 0));
    const Dims& dims = m_.attrs(sort).ints(Attr::dimensions);
    const int64_t length = dims.empty() || keys.dims.empty() ? 1 : keys.dims[static_cast<size_t>(dims[0])];
    for (int64_t n = sort_kernels(length, bytes); n > 0; --n) {
      Thunk& t = make(out, i, "kCustomKernel");
      use(t, i, true);
      t.description = kernel_name(sort);
    }
  }

  std::string launch(InstId i, const FusionView& view, const std::string& kind) const {
    if (kind.empty()) {
      const FusionAnalysis a = analyze_fusion(view, target_);
      return launch_text(a.grid.blocks, a.grid.threads) + "  shared_memory: 0 bytes";
    }
    // Triton's: a block for each tile of the result. What it keeps in shared memory its compiler decides.
    const BackendConfig config =
        backend_config(m_.u().text(m_.attrs(i).text(Attr::backend_config)), "fusion_backend_config");
    auto block = config.find("block_level_fusion_config");
    if (block == config.end() || !block->is_object()) return kind;
    auto tiles = block->find("output_tiles");
    if (tiles == block->end() || !tiles->is_array() || tiles->empty() || !(*tiles)[0].is_object()) return kind;
    const Dims sizes = list((*tiles)[0], "sizes");
    const Shape& result = m_.shape(view.roots()[0]);
    if (!result.is_array() || sizes.size() != result.dims.size()) return kind;
    int64_t blocks = 1;
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (sizes[k] < 1) return kind;
      blocks *= (result.dims[k] + sizes[k] - 1) / sizes[k];
    }
    return launch_text(blocks, 32 * static_cast<int64_t>(number(*block, "num_warps", 1)));
  }

  const Module& m_;
  const BufferAssignment& b_;
  const GpuTarget& target_;
  Fingerprints bodies_;
  std::map<std::string, std::string> kernels_;  // names by what they do
  int last_ = 0;
  std::unordered_map<InstId, std::string> streams_;
  std::unordered_map<InstId, int> started_;  // messages on streams of their own: their numbers
};

bool goes_into_command_buffer(const Thunk& t) {
  return t.kind == "kCustomKernel" || t.kind == "kKernel" || t.kind == "kCopy" || t.kind == "kGemm" ||
         t.kind == "kCublasLtMatmul" || t.kind == "kCuDnn";
}

}  // namespace

std::vector<Thunk> build_thunks(const Module& m, const BufferAssignment& buffers, const GpuTarget& target) {
  return Builder(m, buffers, target).sequence(m.entry());
}

std::vector<Thunk> with_command_buffers(std::vector<Thunk> thunks) {
  constexpr size_t kFewest = 5;  // xla_gpu_graph_min_graph_size
  check_stack("thunks are nested");
  std::vector<Thunk> out, open;
  auto close = [&] {
    if (open.size() >= kFewest) {
      Thunk buffer;
      buffer.kind = "kCommandBuffer", buffer.inst = open.front().inst;
      for (const Thunk& t : open) buffer.slices.insert(buffer.slices.end(), t.slices.begin(), t.slices.end());
      buffer.nested.push_back({"", std::move(open)});
      out.push_back(std::move(buffer));
    } else {
      for (Thunk& t : open) out.push_back(std::move(t));
    }
    open.clear();
  };
  for (Thunk& t : thunks) {
    if (goes_into_command_buffer(t)) {
      open.push_back(std::move(t));
      continue;
    }
    close();
    for (auto& [label, inner] : t.nested) inner = with_command_buffers(std::move(inner));
    out.push_back(std::move(t));
  }
  close();
  return out;
}

size_t count_thunks(const std::vector<Thunk>& thunks) {
  size_t n = thunks.size();
  for (const Thunk& t : thunks)
    for (const auto& [label, inner] : t.nested) n += count_thunks(inner);
  return n;
}

}  // namespace hlo
