#include "replay/report/measured/launches.h"

#include <algorithm>
#include <array>

#include "ir/base/check.h"
#include "ir/program/thunk.h"
#include "ir/query/fingerprint.h"
#include "passes/backend/backend.h"

namespace hlo {
namespace {

std::string kernel_named(std::string_view instruction) {
  std::string name(instruction);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return text.find(w) != std::string_view::npos; });
}

Launch::Kind launch_kind(std::string_view thunk) {
  using Kind = Launch::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 9> kKinds{{{"kCustomKernel", Kind::kKernel},
                                                                     {"kKernel", Kind::kKernel},
                                                                     {"kCopy", Kind::kCopy},
                                                                     {"kGemm", Kind::kProduct},
                                                                     {"kCublasLtMatmul", Kind::kProduct},
                                                                     {"kConvolution", Kind::kLibrary},
                                                                     {"kFft", Kind::kLibrary},
                                                                     {"kTriangularSolve", Kind::kLibrary},
                                                                     {"kNorm", Kind::kLibrary}}};
  for (const auto& [name, kind] : kKinds)
    if (thunk == name) return kind;
  if (thunk == "kCuDnn") return Kind::kLibrary;
  if (thunk == "kMemzero" || thunk == "kMemset32BitValue") return Kind::kMemset;
  if (thunk == "kCustomCall") return Kind::kCall;
  return Kind::kMessage;
}

// Slices that are read or written, and whatever scalars say where.
bool moves_a_slice(const Module& m, InstId i) {
  if (m.op(i) != Opcode::Fusion || m.called(i).empty()) return false;
  bool slices = false;
  for (InstId inside : m.live_order(m.called(i)[0])) {
    const Shape& shape = m.shape(inside);
    const bool scalar = shape.is_array() && shape.dims.empty();
    switch (m.op(inside)) {
      case Opcode::DynamicSlice:
      case Opcode::DynamicUpdateSlice:
        slices = true;
        break;
      case Opcode::Slice:
      case Opcode::Bitcast:
      case Opcode::Parameter:
      case Opcode::Constant:
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
        break;
      default:
        if (!scalar) return false;
    }
  }
  return slices;
}

}  // namespace

KernelKind kernel_kind(std::string_view k) {
  // `MemcpyD2D`, `Memset 0` are what the profiler calls operations that are no kernels; the others are the driver's.
  if (k.starts_with("Memcpy") || k.starts_with("memcpy")) return KernelKind::kCopy;
  if (k.starts_with("Memset") || k.starts_with("memset")) return KernelKind::kMemset;
  if (k.starts_with("nccl")) return KernelKind::kMessage;
  if (has_any(k, {"splitKreduce", "splitK_reduce", "splitkreduce", "reduceSplitK"})) return KernelKind::kAfterwork;
  // Names of C++ are signatures.
  if (has_any(k, {"::", "<", "(", " "})) return KernelKind::kLibrary;
  for (std::string_view start :
       {"nvjet",      "cutlass",       "cudnn",  "cublas", "sm50_",   "sm70_",  "sm75_",   "sm80_",   "sm86_",
        "sm89_",      "sm90_",         "sm100_", "sm120_", "ampere_", "volta_", "turing_", "hopper_", "maxwell_",
        "gemv",       "gemmk1",        "gemmSN", "dgemm",  "sgemm",   "hgemm",  "zgemm",   "cgemm",   "regular_fft",
        "vector_fft", "composite_fft", "trsm",   "potrf",  "getrf",   "cub_"})
    if (k.starts_with(start)) return KernelKind::kLibrary;
  return has_any(k, {"_xmma_", "cutlass", "implicit_gemm", "_sdpa_"}) ? KernelKind::kLibrary : KernelKind::kCompiled;
}

ModuleLaunches::ModuleLaunches(const Module& m) : m_(m) {
  Fingerprints contents(m);
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      uint64_t body = 0;
      if (m.op(i) == Opcode::Fusion && !m.called(i).empty()) {
        body = contents.computation(m.called(i)[0]);
        bodies_.emplace(i, body);
      }
      by_name_.try_emplace(kernel_named(m.inst_name(i)), body);
    }
  try {
    sequences_.emplace_back();
    std::vector<Launch> entry;
    collect(build_thunks(m, assign_buffers(m)), &entry);
    sequences_[0] = std::move(entry);
  } catch (const Failure& e) {
    sequences_.clear();
    const std::string_view what = e.what();
    problem_ = std::string(what.substr(0, what.find('\n')));
  }
}

void ModuleLaunches::collect(const std::vector<Thunk>& thunks, std::vector<Launch>* into) {
  for (const Thunk& t : thunks) {
    if (t.kind == "kWhile" || t.kind == "kConditional") {
      into->push_back({t.inst, Launch::Kind::kHolder, "", false, false});
      for (const auto& [label, inner] : t.nested) {
        std::vector<Launch> sequence;
        collect(inner, &sequence);
        sequences_.push_back(std::move(sequence));
      }
      continue;
    }
    if (!t.nested.empty()) {
      for (const auto& [label, inner] : t.nested) collect(inner, into);
      continue;
    }
    if (t.kind.ends_with("Done")) continue;
    Launch one{t.inst, launch_kind(t.kind), "", false, false};
    one.may_copy = one.kind == Launch::Kind::kKernel && moves_a_slice(m_, t.inst);
    if (one.kind == Launch::Kind::kKernel)
      one.kernel =
          t.kind == "kKernel" ? kernel_named(m_.inst_name(t.inst)) : t.description.substr(0, t.description.find(' '));
    if (!into->empty() && one.kind == Launch::Kind::kKernel && into->back().inst == t.inst &&
        into->back().kernel == one.kernel) {
      into->back().repeats = true;
      continue;
    }
    into->push_back(std::move(one));
  }
}

bool ModuleLaunches::runs(const Launch& launch, std::string_view kernel) const {
  return launch.kind == Launch::Kind::kKernel && (launch.kernel == kernel || runs(launch.inst, kernel));
}

bool ModuleLaunches::runs(InstId inst, std::string_view kernel) const {
  if (kernel_named(m_.inst_name(inst)) == kernel) return true;
  auto own = bodies_.find(inst);
  if (own == bodies_.end()) return false;
  auto named = by_name_.find(std::string(kernel));
  return named != by_name_.end() && named->second == own->second;
}

}  // namespace hlo
