// What is asked before a module is evaluated: sizes, devices, what no evaluator can run.
#include <unordered_set>

#include "ir/eval/devices.h"
#include "ir/eval/evaluator.h"
#include "ir/program/buffer.h"

namespace hlo {

// Before anything is computed from them: sizes of arrays, and their sum, that no memory has.
void Evaluator::check_sizes() {
  constexpr int64_t kMostSum = int64_t{1} << 61;
  Checked sum = 0;
  for (CompId c : m_.computations())
    for (InstId i : m_.live_order(c)) {
      std::vector<ShapeId> parts{m_.shape_id(i)};
      if (m_.op(i) == Opcode::Tuple || m_.op(i) == Opcode::GetTupleElement) parts.clear();  // handed on
      while (!parts.empty()) {
        ShapeId id = parts.back();
        parts.pop_back();
        const Shape& s = u_[id];
        parts.insert(parts.end(), s.elements.begin(), s.elements.end());
        if (!s.is_array()) continue;
        Checked bytes = array_bytes(s);
        if (!bytes.fits())
          refuse(i, fmt::format("an array of shape {} does not fit into any memory", u_.shape_text_plain(id)));
        sum += bytes;
      }
    }
  if (sum.capped() > kMostSum)
    fail(FailureKind::kUnsupported, "the arrays of the module do not fit into any memory, all together");
}

void Evaluator::check() {
  check_sizes();
  // Whatever a run is sure to reach; branches and bodies of loops may never run.
  std::vector<CompId> list{m_.entry()};
  std::unordered_set<CompId> seen{m_.entry()};
  auto reach = [&](CompId c) {
    if (seen.insert(c).second) list.push_back(c);
  };
  for (size_t k = 0; k < list.size(); ++k)
    for (InstId i : plan(list[k]).order) {
      Opcode op = m_.op(i);
      const AttrSet& a = m_.attrs(i);
      if (op == Opcode::Call || op == Opcode::Fusion || op == Opcode::AsyncStart)
        reach(m_.called(i)[0]);
      else if (op == Opcode::While)
        reach(a.comp(Attr::condition));
      else if (op == Opcode::Infeed || op == Opcode::Outfeed)
        refuse(i, "a transfer with the host");
      else if (op == Opcode::Send || op == Opcode::Recv || op == Opcode::SendDone || op == Opcode::RecvDone)
        check_transfer(i);
      else if (op == Opcode::CustomCall)
        check_target(i);
      else if (a.has(Attr::replica_groups))
        members(i);
    }
}

void check_supported(const Module& m) {
  if (int64_t devices = devices_needed(m); devices > kMostDevices)
    fail(FailureKind::kUnsupported, "the module runs on {} devices, at most {} are simulated", devices, kMostDevices);
  DeviceGrid grid(m.config().replica_count, m.config().num_partitions);
  Evaluator(m, {}, &grid).check();
}

}  // namespace hlo
