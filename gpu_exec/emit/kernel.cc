#include "gpu_exec/emit/kernel.h"

#include <algorithm>
#include <unordered_map>

#include "gpu_exec/emit/kernel_builder.h"
#include "ir/base/check.h"
#include "ir/base/hash.h"
#include "ir/base/stack_guard.h"
#include "ir/leaves.h"
#include "ir/query/fingerprint.h"

namespace hlo {

using llvm::Value;

InstId handed_on(const Module& m, InstId i) {
  check_stack("elements of tuples are nested");
  if (m.op(i) != Opcode::GetTupleElement) return i;
  InstId tuple = handed_on(m, m.operand(i, 0));
  if (m.op(tuple) != Opcode::Tuple) return i;
  return handed_on(m, m.operand(tuple, static_cast<size_t>(m.attrs(i).integer(Attr::index))));
}

std::vector<KernelOutput> kernel_outputs(const Module& m, InstId inst) {
  std::vector<KernelOutput> out;
  auto add = [&](auto&& self, InstId i) -> void {
    check_stack("tuples of a kernel's results are nested");
    if (!m.shape(i).is_tuple()) {
      out.push_back({i, 0, m.shape_id(i)});
      return;
    }
    if (i != inst) i = handed_on(m, i);
    Opcode op = m.op(i);
    if (op == Opcode::Tuple && i != inst) {
      for (InstId o : m.operands(i)) self(self, o);
      return;
    }
    if (op != Opcode::Reduce && op != Opcode::ReduceWindow && op != Opcode::Sort && op != Opcode::Scatter)
      fail(FailureKind::kUnsupported, "no kernel for {}: a tuple that {} makes", m.inst_name(i), op_text(op));
    int part = 0;
    for (ShapeId leaf : leaf_shapes(m.u(), m.shape_id(i))) out.push_back({i, part++, leaf});
  };
  add(add, m.op(inst) == Opcode::Fusion ? m.comp(m.called(inst)[0]).root : inst);
  HLO_CHECK(out.size() == m.u().leaf_count(m.shape_id(inst)), "{}: outputs of its kernel", m.inst_name(inst));
  return out;
}

ElementEmitter KernelBuilder::emitter(std::vector<Value*>* constants) {
  return ElementEmitter(m_, b_, options_, [this, constants](LitId lit) {
    auto at = std::find(kernel_.constants.begin(), kernel_.constants.end(), lit);
    auto k = static_cast<size_t>(at - kernel_.constants.begin());
    if (at == kernel_.constants.end()) kernel_.constants.push_back(lit);
    HLO_CHECK(k < constants->size(), "more constants than were counted");
    return (*constants)[k];
  });
}

void KernelBuilder::count_constants() {
  if (counted_) return;
  counted_ = true;
  std::vector<bool> seen(m_.comp_slots(), false);
  auto visit = [&](auto&& self, CompId c) -> void {
    if (seen[c.value]) return;
    seen[c.value] = true;
    check_stack("computations of one kernel are nested");
    for (InstId i : m_.post_order(c)) {
      count(i);
      for (CompId callee : m_.called(i)) self(self, callee);
    }
  };
  for (InstId o : operands_)
    if (m_.op(inst_) != Opcode::Fusion) count(o);
  if (m_.op(inst_) == Opcode::Fusion) visit(visit, m_.called(inst_)[0]);
  for (CompId c : m_.called(inst_))
    if (m_.op(inst_) != Opcode::Fusion) visit(visit, c);
}

void KernelBuilder::count(InstId i) {
  if (m_.op(i) != Opcode::Constant || !m_.shape(i).is_array() || m_.shape(i).elements_count() < 2) return;
  if (std::find(kernel_.constants.begin(), kernel_.constants.end(), m_.literal_id(i)) == kernel_.constants.end())
    kernel_.constants.push_back(m_.literal_id(i));
}

ElementEmitter::Frame KernelBuilder::frame(ElementEmitter& e, const std::vector<Value*>& pointers,
                                           llvm::MDNode* results) {
  ElementEmitter::Frame f;
  for (size_t k = 0; k < operands_.size(); ++k) {
    if (!m_.shape(operands_[k]).is_array())
      fail(FailureKind::kUnsupported, "no kernel for {}: an operand is no array", m_.inst_name(inst_));
    const auto* buffer = e.add_buffer({pointers[k], m_.shape_id(operands_[k]), nullptr, results});
    f.params.push_back({buffer, nullptr, InstId(), nullptr});
    if (m_.op(inst_) != Opcode::Fusion && by_pointer(operands_[k])) f.in_memory[operands_[k]] = buffer;
  }
  return f;
}

std::optional<RowFusion> row_fusion(const Module& m, InstId inst) {
  if (m.op(inst) != Opcode::Fusion) return std::nullopt;
  CompId body = m.called(inst)[0];
  RowFusion out;
  std::unordered_map<InstId, bool> depends;
  const Universe& u = m.u();
  auto is_row = [&](const Dims& d) {
    if (d.size() < out.kept || !std::equal(d.begin(), d.begin() + static_cast<ptrdiff_t>(out.kept), out.dims.begin()))
      return false;
    return std::all_of(d.begin() + static_cast<ptrdiff_t>(out.kept), d.end(), [](int64_t x) { return x == 1; });
  };
  bool inner = false;  // a reduction that something in here reads
  for (InstId i : m.post_order(body)) {
    bool late = false;
    for (InstId o : m.operands(i)) late |= depends[o];
    const Shape& s = m.shape(i);
    Opcode op = m.op(i);
    if (op == Opcode::Reduce) {
      if (!s.is_array() || depends[m.operand(i, 1)]) return std::nullopt;
      const Dims &in = m.shape(m.operand(i, 0)).dims, &over = m.attrs(i).ints(Attr::dimensions);
      size_t kept = in.size() - over.size();
      for (int64_t d : over)
        if (static_cast<size_t>(d) < kept) return std::nullopt;
      if (!out.reduces.empty() && (in != out.dims || kept != out.kept)) return std::nullopt;
      out.dims = in, out.kept = kept;
      out.reduces.push_back(i);
      depends[i] = true;
      continue;
    }
    if (!late) continue;
    depends[i] = true;
    inner |= op != Opcode::Tuple;
    if (op == Opcode::Tuple && i == m.comp(body).root) continue;
    if (!s.is_array() || (s.dims != out.dims && !is_row(s.dims))) return std::nullopt;
    auto plain = [&](ShapeId id) { return !u[id].has_layout || is_default_layout(u[id].layout); };
    if (op == Opcode::Broadcast) {
      const Dims& from = m.shape(m.operand(i, 0)).dims;
      const Dims& to = m.attrs(i).ints(Attr::dimensions);
      for (size_t k = 0; k < to.size(); ++k)
        if (to[k] != static_cast<int64_t>(k)) return std::nullopt;
      if (!is_row(from)) return std::nullopt;
    } else if (op == Opcode::Reshape || op == Opcode::Bitcast) {
      const Shape& from = m.shape(m.operand(i, 0));
      bool same = from.dims == s.dims || (is_row(from.dims) && is_row(s.dims));
      if (!same || from.type != s.type ||
          (op == Opcode::Bitcast && (!plain(m.shape_id(i)) || !plain(m.shape_id(m.operand(i, 0))))))
        return std::nullopt;
    } else if (op_info(op).elementwise || op == Opcode::Copy) {
      for (InstId o : m.operands(i))
        if (depends[o] && m.shape(o).dims != s.dims) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (!inner || out.reduces.empty()) return std::nullopt;
  InstId root = m.comp(body).root;
  auto fits = [&](InstId o) {
    return m.shape(o).is_array() && (m.shape(o).dims == out.dims || is_row(m.shape(o).dims));
  };
  if (m.op(root) == Opcode::Tuple) {
    for (InstId o : m.operands(root))
      if (!fits(o)) return std::nullopt;
  } else if (!fits(root)) {
    return std::nullopt;
  }
  for (size_t k = 0; k < out.dims.size(); ++k) (k < out.kept ? out.rows : out.length) *= out.dims[k];
  if (out.rows == 0 || out.length == 0) return std::nullopt;
  return out;
}

bool runs_as_kernel(const Module& m, InstId i) {
  const Shape& s = m.shape(i);
  if (!s.is_array() && m.op(i) != Opcode::Fusion && m.op(i) != Opcode::Reduce && m.op(i) != Opcode::ReduceWindow)
    return false;
  switch (m.op(i)) {
    case Opcode::Fusion:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Iota:
    case Opcode::Pad:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Reverse:
    case Opcode::SelectAndScatter:
    case Opcode::Slice:
    case Opcode::Transpose:
    case Opcode::Map:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Copy:
      return true;
    default:
      return op_info(m.op(i)).elementwise;
  }
}

std::vector<std::vector<InstId>> distinct_kernels(const Module& m) {
  return distinct_kernels(m, {m.entry()}, runs_as_kernel);
}

std::vector<std::vector<InstId>> distinct_kernels(const Module& m, std::vector<CompId> list, RunsAsKernel* wanted,
                                                  std::vector<CompId>* reached) {
  std::vector<std::vector<InstId>> out;
  std::unordered_map<uint64_t, size_t> known;
  Fingerprints prints(m);
  std::vector<bool> seen(m.comp_slots(), false);
  for (CompId c : list) seen[c.value] = true;
  for (size_t k = 0; k < list.size(); ++k)
    for (InstId i : m.post_order(list[k])) {
      Opcode op = m.op(i);
      if (op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call || op == Opcode::AsyncStart)
        for (CompId c : m.called(i))
          if (!seen[c.value]) seen[c.value] = true, list.push_back(c);
      if (!wanted(m, i)) continue;
      uint64_t h = prints.instruction(i);
      auto ops = m.operands(i);
      for (InstId o : ops) {
        h = hash_combine(h, hash_bytes(m.u().shape_text(m.shape_id(o))));
        // One operand twice is read through one pointer.
        h = hash_combine(h, static_cast<uint64_t>(std::find(ops.begin(), ops.end(), o) - ops.begin()));
        // A single operation has its constants in its code.
        if (m.op(o) == Opcode::Constant && op != Opcode::Fusion) h = hash_combine(h, m.literal_id(o).value);
      }
      auto [at, fresh] = known.emplace(h, out.size());
      if (fresh) out.emplace_back();
      out[at->second].push_back(i);
    }
  if (reached) *reached = std::move(list);
  return out;
}

}  // namespace hlo
