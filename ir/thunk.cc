#include "ir/thunk.h"

#include <algorithm>

#include "ir/print.h"

namespace hlo {
namespace {

class Builder {
 public:
  Builder(const Module& m, const BufferAssignment& b) : m_(m), b_(b) {}

  std::vector<Thunk> sequence(CompId c) {
    std::vector<Thunk> out;
    for (InstId i : m_.live_order(c)) add(i, out);
    return out;
  }

 private:
  void use(Thunk& t, InstId i, bool write) {
    for (int id : b_.leaf_values(m_, i)) {
      const BufferValue& v = b_.values[static_cast<size_t>(id)];
      t.slices.push_back({v.allocation, v.offset, v.size, write});
    }
  }
  void add(InstId i, std::vector<Thunk>& out) {
    Opcode op = m_.op(i);
    const AttrSet& a = m_.attrs(i);
    Thunk t;
    t.inst = i;
    switch (op) {
      // No work at run time: buffers are where they are.
      case Opcode::Parameter:
      case Opcode::Constant:
      case Opcode::GetTupleElement:
      case Opcode::Bitcast:
      case Opcode::AfterAll:
      case Opcode::AddDependency:
      case Opcode::OptBarrier:
      case Opcode::Domain:
        return;
      case Opcode::Tuple:
        return;
      case Opcode::While:
        t.kind = "kWhile";
        t.id = next_++;
        t.nested.push_back({"condition", sequence(a.comp(Attr::condition))});
        t.nested.push_back({"body", sequence(a.comp(Attr::body))});
        break;
      case Opcode::Conditional:
        t.kind = "kConditional";
        t.id = next_++;
        for (size_t n = 0; n < a.called.size(); ++n) {
          std::string label =
              a.has(Attr::true_computation) ? (n == 0 ? "true_branch" : "false_branch") : fmt::format("branch_{}", n);
          t.nested.push_back({label, sequence(a.called[n])});
        }
        break;
      case Opcode::Call:
        t.kind = "kSequential";
        t.id = next_++;
        t.nested.push_back({"call", sequence(a.called[0])});
        break;
      case Opcode::Copy:
        t.kind = "kCopy";
        break;
      case Opcode::Dot:
        t.kind = "kGemm";
        break;
      case Opcode::Convolution:
        t.kind = "kConvolution";
        break;
      case Opcode::Fft:
        t.kind = "kFft";
        break;
      case Opcode::TriangularSolve:
        t.kind = "kTriangularSolve";
        break;
      case Opcode::PartitionId:
        t.kind = "kPartitionId";
        break;
      case Opcode::ReplicaId:
        t.kind = "kReplicaId";
        break;
      case Opcode::Infeed:
        t.kind = "kInfeed";
        break;
      case Opcode::Outfeed:
        t.kind = "kOutfeed";
        break;
      case Opcode::AllReduce:
        t.kind = "kAllReduce";
        break;
      case Opcode::AllGather:
        t.kind = "kAllGather";
        break;
      case Opcode::AllToAll:
        t.kind = "kAllToAll";
        break;
      case Opcode::ReduceScatter:
        t.kind = "kReduceScatter";
        break;
      case Opcode::CollectivePermute:
        t.kind = "kCollectivePermute";
        break;
      case Opcode::CollectiveBroadcast:
        t.kind = "kCollectiveBroadcast";
        break;
      case Opcode::CustomCall: {
        std::string_view target = m_.u().text(a.text(Attr::custom_call_target));
        t.kind = target.starts_with("__cudnn$conv")    ? "kConvolution"
                 : target.starts_with("__cublas$lt")   ? "kCublasLtMatmul"
                 : target.starts_with("__cublas$gemm") ? "kGemm"
                                                       : "kCustomCall";
        t.description = target;
        break;
      }
      default:
        t.kind = "kKernel";
    }
    if (t.nested.empty()) t.id = next_++;
    for (InstId o : m_.operands(i)) use(t, o, false);
    use(t, i, true);
    if (t.nested.empty()) {
      std::string kernel(m_.inst_name(i));
      std::replace(kernel.begin(), kernel.end(), '.', '_');
      std::replace(kernel.begin(), kernel.end(), '-', '_');
      if (t.kind == "kKernel")
        t.description = "kernel = " + kernel;
      else
        t.description += (t.description.empty() ? "" : ", ") + std::string(m_.inst_name(i));
      t.description += ", " + m_.u().shape_text(m_.shape_id(i));
    }
    out.push_back(std::move(t));
  }

  const Module& m_;
  const BufferAssignment& b_;
  int next_ = 0;
};

bool conflict(const Thunk& a, const Thunk& b) {
  for (const ThunkSlice& x : a.slices)
    for (const ThunkSlice& y : b.slices)
      if ((x.write || y.write) && x.allocation == y.allocation && x.allocation >= 0 && x.offset < y.offset + y.size &&
          y.offset < x.offset + x.size)
        return true;
  return false;
}

void append_text(const Module& m, const std::vector<Thunk>& list, int indent, std::string& out) {
  std::string pad(static_cast<size_t>(indent), ' ');
  if (list.empty()) {
    out += pad + "No thunks.\n";
    return;
  }
  std::vector<std::string> before, after;
  size_t kind_width = 0, before_width = 0, after_width = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string prev = "source", next = "sink";
    for (size_t j = i; j-- > 0;)
      if (conflict(list[j], list[i])) {
        prev = fmt::format("prev={:03} ({})", list[j].id, i - j);
        break;
      }
    for (size_t j = i + 1; j < list.size(); ++j)
      if (conflict(list[i], list[j])) {
        next = fmt::format("next={:03} ({})", list[j].id, j - i);
        break;
      }
    kind_width = std::max(kind_width, list[i].kind.size());
    before_width = std::max(before_width, prev.size());
    after_width = std::max(after_width, next.size());
    before.push_back(prev), after.push_back(next);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const Thunk& t = list[i];
    out += fmt::format("{}{:03}: {:<{}} [{:<{}} | {:<{}}] {}\n", pad, t.id, t.kind, kind_width, before[i], before_width,
                       after[i], after_width,
                       t.description.empty() && !t.nested.empty() ? std::string(m.inst_name(t.inst)) : t.description);
    for (const auto& [label, inner] : t.nested) {
      out += pad + "  " + label + ":\n";
      append_text(m, inner, indent + 4, out);
    }
  }
}

void append_json(const Module& m, const std::vector<Thunk>& list, std::string& out) {
  out += "[";
  for (size_t i = 0; i < list.size(); ++i) {
    const Thunk& t = list[i];
    if (i) out += ",";
    out += fmt::format("{{\"id\":{},\"kind\":\"{}\",\"instruction\":\"{}\",\"slices\":[", t.id, t.kind,
                       m.inst_name(t.inst));
    for (size_t k = 0; k < t.slices.size(); ++k)
      out += fmt::format("{}{{\"allocation\":{},\"offset\":{},\"size\":{},\"write\":{}}}", k ? "," : "",
                         t.slices[k].allocation, t.slices[k].offset, t.slices[k].size, t.slices[k].write);
    out += "]";
    for (const auto& [label, inner] : t.nested) {
      out += ",\"" + label + "\":";
      append_json(m, inner, out);
    }
    out += "}";
  }
  out += "]";
}

}  // namespace

std::vector<Thunk> build_thunks(const Module& m, const BufferAssignment& buffers) {
  return Builder(m, buffers).sequence(m.entry());
}

std::string thunks_text(const Module& m, const std::vector<Thunk>& thunks) {
  std::string out;
  append_text(m, thunks, 0, out);
  return out;
}

std::string thunks_json(const Module& m, const std::vector<Thunk>& thunks) {
  std::string out;
  append_json(m, thunks, out);
  return out;
}

size_t count_thunks(const std::vector<Thunk>& thunks) {
  size_t n = thunks.size();
  for (const Thunk& t : thunks)
    for (const auto& [label, inner] : t.nested) n += count_thunks(inner);
  return n;
}

}  // namespace hlo
