// Collectives over simulated devices (xla/service/collective_ops_utils.cc tells who takes part).
#include <algorithm>
#include <cstring>

#include "ir/eval/devices.h"
#include "ir/eval/evaluator.h"
#include "ir/eval/kernels.h"
#include "ir/sharding/collective_groups.h"
#include "ir/sharding/sharding.h"

namespace hlo {
namespace {

// The part of `v` that starts at `at` in dimension `dim` and is `size` long, copied to or from place `to` of `out`.
void copy_part(const Universe& u, const Value& from, int64_t from_at, Value& to, int64_t to_at, size_t dim,
               int64_t size) {
  const Shape &in = u[from.shape], &out = u[to.shape];
  Dims dims = in.dims, in_strides = row_major_strides(in.dims), out_strides = row_major_strides(out.dims);
  dims[dim] = size;
  int width = storage_bytes(in.type);
  copy_nd(dims, from.bytes() + from_at * in_strides[dim] * width, in_strides,
          to.mutable_bytes() + to_at * out_strides[dim] * width, out_strides, width);
}

}  // namespace

int64_t Evaluator::replicas() const { return grid_ ? grid_->replicas() : 1; }
int64_t Evaluator::partitions() const { return grid_ ? grid_->partitions() : 1; }

// Devices that take part with this one, in the order in which their shares count; empty when it is in no group.
std::vector<int64_t> Evaluator::members(InstId inst) {
  const CollectiveGroups all = collective_groups(m_, inst, replicas(), partitions());
  if (!all.why.empty()) refuse(inst, all.why);
  for (const DeviceDims& g : all.groups)
    if (std::find(g.begin(), g.end(), device_) != g.end()) return g;
  return {};
}

std::vector<std::vector<Value>> Evaluator::rendezvous(InstId inst, const std::vector<int64_t>& members,
                                                      std::vector<Value> ops) {
  if (!grid_ || members.size() == 1) return {std::move(ops)};
  std::string key = std::to_string(inst.value);
  for (int64_t d : members) key += fmt::format(",{}", d);
  return *grid_->rendezvous(key, device_, members, std::move(ops),
                            fmt::format("{} ({})", m_.inst_name(inst), op_text(m_.op(inst))));
}

Value Evaluator::permuted(InstId inst, std::vector<Value>& ops) {
  const AttrSet& a = m_.attrs(inst);
  const PermuteSources sources = permute_sources(m_, inst, replicas(), partitions());
  if (!sources.why.empty()) refuse(inst, sources.why);
  const bool by_partition = a.has(Attr::channel_id) && a.integer(Attr::channel_id) > 0;
  const int64_t partitions = this->partitions(), replica = device_ / partitions, partition = device_ % partitions;
  std::vector<int64_t> everyone;
  for (int64_t k = 0; k < (by_partition ? partitions : replicas()); ++k)
    everyone.push_back(by_partition ? replica * partitions + k : k * partitions + partition);
  const int64_t source = sources.of[static_cast<size_t>(device_)];
  const auto place = static_cast<size_t>(std::find(everyone.begin(), everyone.end(), source) - everyone.begin());
  bool in_place = a.has(Attr::slice_sizes) || (ops.size() == 4 && u_[ops[1].shape].is_array() &&
                                               u_[ops[2].shape].is_tuple() != u_[ops[0].shape].is_tuple());
  if (in_place) refuse(inst, "an in-place collective-permute");
  ShapeId out_id = m_.shape_id(inst);
  if (m_.op(inst) == Opcode::CollectivePermuteStart) out_id = u_[out_id].elements[1];
  std::vector<std::vector<Value>> all = rendezvous(inst, everyone, ops);
  std::vector<Value> got;
  for (size_t k = 0; k < ops.size(); ++k) got.push_back(source < 0 ? make(ops[k].shape) : all[place][k]);
  return packed(out_id, std::move(got));
}

Value Evaluator::ragged_all_to_all(InstId inst, const std::vector<std::vector<Value>>& all,
                                   const std::vector<int64_t>& members) {
  // Operands: input, output, input_offsets, send_sizes, output_offsets, recv_sizes; rows move, the rest of the output
  // stays as it came.
  size_t me = static_cast<size_t>(std::find(members.begin(), members.end(), device_) - members.begin());
  Value out = all[me][1];
  out.shape = m_.shape_id(inst);
  auto number = [&](const Value& v, int64_t k) {
    ElementType t = u_[v.shape].type;
    return load_int(t, v.bytes() + k * storage_bytes(t));
  };
  for (size_t from = 0; from < members.size(); ++from) {
    const std::vector<Value>& o = all[from];
    int64_t per = u_[o[2].shape].elements_count() / static_cast<int64_t>(members.size());
    for (int64_t k = static_cast<int64_t>(me) * per; k < (static_cast<int64_t>(me) + 1) * per; ++k) {
      int64_t start = number(o[2], k), size = number(o[3], k), to = number(o[4], k);
      if (!size) continue;
      if (start < 0 || size < 0 || to < 0 || start + size > u_[o[0].shape].dims[0] || to + size > u_[out.shape].dims[0])
        refuse(inst, fmt::format("rows {}..{} of {} to row {}: outside of the arrays", start, start + size, from, to));
      copy_part(u_, o[0], start, out, to, 0, size);
    }
  }
  return out;
}

// What the members of a group brought, each its operands, and what each is to have of it.
struct Evaluator::Exchange {
  const Universe& u;
  std::vector<std::vector<Value>> all;
  size_t me, dim;  // this device's place in the group; the dimension that is put together or taken apart
  ShapeId result;
  size_t n = all.size(), count = all[0].size();

  ShapeId shape_of(size_t k) const { return u[result].is_tuple() ? u[result].elements[k] : result; }
};

std::vector<Value> Evaluator::reduced_across(InstId inst, const Exchange& x) {
  std::vector<Value> got;
  CompId function = m_.called(inst)[0];
  for (size_t k = 0; k < x.count; ++k) {
    Value acc = x.all[0][k];
    int64_t elements = u_[acc.shape].elements_count();
    ShapeId shape = acc.shape;
    for (size_t d = 1; d < x.n && elements; ++d) {
      Value next = x.all[d][k];
      acc.shape = next.shape = u_.scalar(u_[shape].type);
      acc = lifted(function, {acc, next}, elements)[0];
    }
    acc.shape = shape;
    if (m_.op(inst) == Opcode::ReduceScatter) {
      Value part = make(x.shape_of(k));
      int64_t size = u_[part.shape].dims[x.dim];
      copy_part(u_, acc, static_cast<int64_t>(x.me) * size, part, 0, x.dim, size);
      acc = std::move(part);
    }
    got.push_back(std::move(acc));
  }
  return got;
}

std::vector<Value> Evaluator::gathered(InstId inst, const Exchange& x) {
  std::vector<Value> got;
  for (size_t k = 0; k < x.count; ++k) {
    Value out = make(x.shape_of(k));
    int64_t size = u_[x.all[0][k].shape].dims[x.dim];
    // Compiled for one device, XLA leaves the other shares of the output alone, which reads as zeros.
    bool alone = !grid_ && size <= u_[out.shape].dims[x.dim];
    if (!alone && size * static_cast<int64_t>(x.n) != u_[out.shape].dims[x.dim])
      refuse(inst, fmt::format("{} devices gather {} of {}; their number is in the module's header "
                               "(replica_count, num_partitions)",
                               x.n, u_.shape_text_plain(x.all[0][k].shape), u_.shape_text_plain(out.shape)));
    for (size_t d = 0; d < x.n; ++d) copy_part(u_, x.all[d][k], 0, out, static_cast<int64_t>(d) * size, x.dim, size);
    got.push_back(std::move(out));
  }
  return got;
}

std::vector<Value> Evaluator::dealt_out(InstId inst, const Exchange& x) {
  std::vector<Value> got;
  if (m_.attrs(inst).has(Attr::dimensions)) {
    Value out = make(x.shape_of(0));
    int64_t size = u_[x.all[0][0].shape].dims[x.dim] / static_cast<int64_t>(x.n);
    for (size_t d = 0; d < x.n; ++d)
      copy_part(u_, x.all[d][0], static_cast<int64_t>(x.me) * size, out, static_cast<int64_t>(d) * size, x.dim, size);
    got.push_back(std::move(out));
  } else {
    for (size_t d = 0; d < x.n; ++d) got.push_back(x.all[d][x.me]);
  }
  return got;
}

Value Evaluator::collective(InstId inst, std::vector<Value>& ops) {
  Opcode op = m_.op(inst);
  const AttrSet& a = m_.attrs(inst);
  ShapeId out_id = m_.shape_id(inst);
  if (op == Opcode::AllReduceDone) return ops[0];
  if (op == Opcode::AllGatherDone || op == Opcode::CollectivePermuteDone) {
    Value v = ops[0].elements[1];
    v.shape = out_id;
    return v;
  }
  if (op == Opcode::CollectivePermute || op == Opcode::CollectivePermuteStart) {
    std::vector<Value> operands = ops;
    Value got = permuted(inst, ops);
    if (op == Opcode::CollectivePermute) return got;
    Value start = make(out_id);
    start.elements[0] = operands.size() == 1 ? operands[0] : packed(u_[out_id].elements[0], std::move(operands));
    start.elements[1] = std::move(got);
    return start;
  }
  std::vector<int64_t> group = members(inst);
  // Outside of every group: an all-reduce leaves what it has, a broadcast gives zeros.
  if (group.empty()) {
    if (op == Opcode::CollectiveBroadcast) return make(out_id);
    group = {device_};
  }
  std::vector<Value> operands = op == Opcode::AllGatherStart ? ops : std::vector<Value>();
  const ShapeId result_id = op == Opcode::AllGatherStart ? u_[out_id].elements[1] : out_id;
  const size_t dim = a.has(Attr::dimensions) && !a.ints(Attr::dimensions).empty()
                         ? static_cast<size_t>(a.ints(Attr::dimensions)[0])
                         : 0;
  const Exchange x{u_, rendezvous(inst, group, std::move(ops)),
                   static_cast<size_t>(std::find(group.begin(), group.end(), device_) - group.begin()), dim, result_id};
  std::vector<Value> got;
  switch (op) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::ReduceScatter:
      got = reduced_across(inst, x);
      break;
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
      got = gathered(inst, x);
      break;
    case Opcode::AllToAll:
      got = dealt_out(inst, x);
      break;
    case Opcode::CollectiveBroadcast:
      got = x.all[0];
      break;
    case Opcode::RaggedAllToAll:
      return ragged_all_to_all(inst, x.all, group);
    default:
      refuse(inst, "not supported");
  }
  Value result = packed(result_id, std::move(got));
  if (op != Opcode::AllGatherStart) return result;
  Value start = make(out_id);
  start.elements[0] = operands.size() == 1 ? operands[0] : packed(u_[out_id].elements[0], std::move(operands));
  start.elements[1] = std::move(result);
  return start;
}

void Evaluator::check_transfer(InstId inst) {
  if (m_.attrs(inst).flag(Attr::is_host_transfer)) refuse(inst, "a transfer with the host");
}

// Between devices, by pairs in `frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},…}}`; a device that is
// nobody's target receives zeros. What goes to or comes from the host is no business of ours.
Value Evaluator::send_or_receive(InstId inst, std::vector<Value>& ops) {
  Opcode op = m_.op(inst);
  const AttrSet& a = m_.attrs(inst);
  ShapeId out_id = m_.shape_id(inst);
  if (op == Opcode::SendDone) return make(out_id);
  check_transfer(inst);
  if (op == Opcode::RecvDone) {
    Value v = make(out_id);
    v.elements[0] = ops[0].elements[0];
    return v;
  }
  int64_t channel = a.integer(Attr::channel_id), partitions = this->partitions();
  std::string_view text = u_.text(a.text(Attr::frontend_attributes));
  constexpr std::string_view kKey = "_xla_send_recv_source_target_pairs=";
  size_t at = text.find(kKey);
  if (at == std::string_view::npos) refuse(inst, "without source and target pairs");
  std::string_view pairs = text.substr(at + kKey.size());
  if (pairs.starts_with('"')) pairs.remove_prefix(1);
  pairs = pairs.substr(0, std::min(pairs.find("}}"), pairs.size()));
  int64_t replica = device_ / partitions, partition = device_ % partitions;
  int64_t me = partitions > 1 ? partition : replica;
  Value out = make(out_id);
  for (auto [from, to] : expand_pairs(pairs)) {
    if (op == Opcode::Send && from == me && grid_)
      grid_->send(channel, partitions > 1 ? replica * partitions + to : to, ops[0]);
    if (op == Opcode::Recv && to == me && grid_)
      out.elements[0] = grid_->receive(channel, device_, std::string(m_.inst_name(inst)));
  }
  if (op == Opcode::Send) out.elements[0] = ops[0];
  return out;
}

int64_t device_count(const Module& m) {
  int64_t count;
  if (__builtin_mul_overflow(m.config().replica_count, m.config().num_partitions, &count)) count = INT64_MAX;
  return std::max<int64_t>(count, 1);
}

int64_t devices_needed(const Module& m) {
  int64_t count = device_count(m);
  if (count == 1) return 1;
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      Opcode op = m.op(i);
      if (op_info(op).cls == OpClass::Collective || op == Opcode::PartitionId || op == Opcode::ReplicaId ||
          op == Opcode::Send || op == Opcode::Recv)
        return count;
    }
  return 1;
}

std::vector<Value> run_devices(const Module& m, std::vector<std::vector<Value>> arguments, const EvalOptions& options) {
  DeviceGrid grid(m.config().replica_count, m.config().num_partitions);
  std::vector<Value> results(static_cast<size_t>(grid.size()));
  grid.run([&](int64_t device) {
    EvalOptions own = options;
    if (device && !options.trace_all) own.trace = nullptr;
    Evaluator evaluator(m, std::move(own), &grid, device);
    auto d = static_cast<size_t>(device);
    results[d] = evaluator.run(std::move(arguments[d]));
  });
  return results;
}

}  // namespace hlo
