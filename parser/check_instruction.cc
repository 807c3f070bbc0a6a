// What an instruction must have and may have, as soon as it is read: operands by number, attributes by opcode.
#include <algorithm>
#include <map>

#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

void Parser::check_transfer(const Pending& p, const AttrSet& set) {
  if (p.operands.size() != 1) return;
  Opcode want = p.op == Opcode::RecvDone ? Opcode::Recv : Opcode::Send;
  if (p.op == Opcode::RecvDone && m_->op(p.operands[0]) != want && !m_->shape(p.operands[0]).is_tuple())
    error_at(p.op_at, "{} takes what {} returns", op_text(p.op), op_text(want));
  const AttrSet& start = m_->attrs(p.operands[0]);
  // In a pipelined loop the operand comes out of the loop's state.
  bool carried = m_->op(p.operands[0]) == Opcode::GetTupleElement || m_->op(p.operands[0]) == Opcode::Parameter;
  if (set.has(Attr::channel_id) && !carried &&
      (m_->op(p.operands[0]) != want || !start.has(Attr::channel_id) ||
       set.integer(Attr::channel_id) != start.integer(Attr::channel_id)))
    error_at(p.op_at, "channel_id differs from that of its operand");
}

void Parser::check_slice_indices(const Pending& p) {
  const size_t count = p.operands.size();
  size_t first = p.op == Opcode::DynamicSlice ? 1 : 2;
  if (count < first) error_at(p.op_at, "{} takes at least {} operand(s)", op_text(p.op), first);
  bool vector =
      count == first + 1 && m_->shape(p.operands[first]).rank() == 1;  // all indices in one operand, as before 2019
  if (!vector && count != first + static_cast<size_t>(m_->shape(p.operands[0]).rank()))
    error_at(p.op_at, "{} takes an index for each of {} dimensions, not {}", op_text(p.op),
             m_->shape(p.operands[0]).rank(), count - first);
}

void Parser::check_branches(const Pending& p, const AttrSet& set) {
  const size_t count = p.operands.size();
  size_t branches = set.has(Attr::true_computation) ? 2 : 0;
  if (const auto* some = set.get<std::vector<CompId>>(Attr::branch_computations)) branches = some->size();
  if (!branches) error_at(p.op_at, "conditional has no branch");
  if (count != branches + 1)
    error_at(p.op_at, "conditional of {} branches takes {} operands, not {}", branches, branches + 1, count);
  const Shape& index = m_->shape(p.operands[0]);
  if (index.rank() != 0 || (index.type != ElementType::Pred && index.type != ElementType::S32))
    error_at(p.op_at, "conditional chooses by a pred[] or s32[], not by {}",
             u_.shape_text_plain(m_->shape_id(p.operands[0])));
}

void Parser::check_layout_constraints(const Pending& p, const AttrSet& set) {
  const size_t count = p.operands.size();
  const auto* shapes = set.get<std::vector<ShapeId>>(Attr::operand_layout_constraints);
  if (!shapes) return;
  if (shapes->size() != count)
    error_at(p.op_at, "operand_layout_constraints has {} shapes for {} operand(s)", shapes->size(), count);
  for (size_t i = 0; i < count; ++i)
    if (!u_.compatible((*shapes)[i], m_->shape_id(p.operands[i])))
      error_at(p.op_at, "operand_layout_constraints says {} of operand {}, which is a {}",
               u_.shape_text_plain((*shapes)[i]), i, u_.shape_text_plain(m_->shape_id(p.operands[i])));
}

// What XLA's parser asks of operands and attributes together before it makes an instruction.
void Parser::check_operands(const Pending& p, const AttrSet& set) {
  size_t count = p.operands.size();
  auto operand_shape = [&](size_t i) -> const Shape& { return m_->shape(p.operands[i]); };
  switch (p.op) {
    case Opcode::AllToAll:
    case Opcode::Concatenate:
    case Opcode::Sort:
    case Opcode::SetDimensionSize:
    case Opcode::Scan:
      if (const Dims* d = set.get<Dims>(Attr::dimensions); d && d->size() != 1)
        error_at(p.op_at, "{} takes one dimension, not {}", op_text(p.op), d->size());
      break;
    case Opcode::RecvDone:
    case Opcode::SendDone:
      check_transfer(p, set);
      break;
    case Opcode::Tuple:
      if (p.shape.valid() && u_[p.shape].is_tuple() && u_[p.shape].elements.size() != count)
        error_at(p.op_at, "a tuple of {} elements takes {} operands, not {}", u_[p.shape].elements.size(),
                 u_[p.shape].elements.size(), count);
      break;
    case Opcode::Reshape:
      if (count == 1 && p.shape.valid() && u_[p.shape].is_array() && operand_shape(0).is_array() &&
          u_[p.shape].elements_count() != operand_shape(0).elements_count())
        error_at(p.op_at, "reshape of {} elements to {}", operand_shape(0).elements_count(),
                 u_[p.shape].elements_count());
      break;
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
      check_slice_indices(p);
      break;
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      if (count % 2) error_at(p.op_at, "{} takes an even number of operands, not {}", op_text(p.op), count);
      break;
    case Opcode::Scatter:
      if (count % 2 == 0) error_at(p.op_at, "scatter takes an odd number of operands, not {}", count);
      break;
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      if (p.shape.valid() && p.shape != u_.scalar(ElementType::U32))
        error_at(p.op_at, "{} returns a u32[]", op_text(p.op));
      break;
    case Opcode::Infeed:
      if (!p.shape.valid() || !u_[p.shape].is_tuple() || u_[p.shape].elements.empty())
        error_at(p.op_at, "infeed returns a tuple that is not empty");
      break;
    case Opcode::Conditional:
      check_branches(p, set);
      break;
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart:
      if (set.has(Attr::slice_sizes) && count != 4)
        error_at(p.op_at, "{} with slice_sizes takes four operands, not {}", op_text(p.op), count);
      break;
    case Opcode::CustomCall:
      check_layout_constraints(p, set);
      break;
    default:
      break;
  }
  if (set.flag(Attr::use_global_device_ids) && !set.has(Attr::channel_id))
    error_at(p.op_at, "use_global_device_ids needs a channel_id");
}

void Parser::drop_defaults(Pending& p) {
  AttrSet& set = p.set;
  auto drop_text = [&](Attr key, std::string_view value) {
    if (StrId t = set.text(key); t.valid() && u_.text(t) == value) set.erase(key);
  };
  auto drop_int = [&](Attr key, int64_t value) {
    if (const int64_t* v = set.get<int64_t>(key); v && *v == value) set.erase(key);
  };
  for (auto it = set.list.begin(); it != set.list.end();) {
    const bool* flag = std::get_if<bool>(&it->second);
    bool keep = !flag || *flag || it->first == Attr::largest || it->first == Attr::is_associative ||
                (p.op == Opcode::TopK && it->first == Attr::is_stable);
    it = keep ? it + 1 : set.list.erase(it);
  }
  drop_int(Attr::feature_group_count, 1);
  drop_int(Attr::batch_group_count, 1);
  drop_text(Attr::api_version, "API_VERSION_ORIGINAL");
  drop_text(Attr::schedule, "SCHEDULE_NONE");
  drop_text(Attr::transpose_a, "TRANSPOSE_INVALID");
  drop_text(Attr::padding_type, "PADDING_INVALID");
  drop_text(Attr::convolution_kind, "unset");
  drop_text(Attr::async_execution_thread, "main");
  for (Attr key : {Attr::frontend_attributes, Attr::result_accuracy, Attr::statistics, Attr::output_to_operand_aliasing,
                   Attr::operand_precision, Attr::sparsity_config, Attr::slice_sizes, Attr::backend_config})
    drop_text(key, "");
  if (p.op == Opcode::Dot || p.op == Opcode::Convolution) drop_text(Attr::algorithm, "unset");
  for (Attr key : {Attr::lhs_batch_dims, Attr::rhs_batch_dims, Attr::operand_batching_dims,
                   Attr::start_indices_batching_dims, Attr::input_batching_dims, Attr::scatter_indices_batching_dims,
                   Attr::slice_sizes, Attr::rhs_group_dims, Attr::lhs_ragged_dims})
    if (const Dims* d = set.get<Dims>(key);
        d && d->empty() && attr_position(p.op, key) >= 0 && !(key == Attr::slice_sizes && p.op == Opcode::Gather))
      set.erase(key);
  if (const Window* w = set.get<Window>(Attr::window); w && w->dims.empty() && p.op != Opcode::SelectAndScatter &&
                                                       p.op != Opcode::ReduceWindow && p.op != Opcode::CustomCall)
    set.erase(Attr::window);
  if (p.op == Opcode::Compare && !p.operands.empty()) {
    ElementType type = m_->shape(p.operands[0]).type;
    std::string_view normal = is_float(type) || is_complex(type) ? "FLOAT"
                              : is_signed_int(type)              ? "SIGNED"
                                                                 : "UNSIGNED";
    drop_text(Attr::type, normal);
  }
}

void Parser::check_callees(const Pending& p) {
  const AttrSet& set = p.set;
  bool pair = set.has(Attr::true_computation) && set.has(Attr::false_computation);
  bool list = set.has(Attr::branch_computations);
  bool one_of_pair = set.has(Attr::true_computation) != set.has(Attr::false_computation);
  if (one_of_pair || pair == list)
    error_at(p.op_at, "conditional takes true_computation and false_computation, or branch_computations");
  if (!p.operands.empty()) {
    const Shape& index = m_->shape(p.operands[0]);
    bool is_pred = index.type == ElementType::Pred;
    if (is_pred != pair)
      error_at(p.op_at, "{}",
               is_pred ? "a conditional on pred takes true_computation and false_computation"
                       : "a conditional on s32 takes branch_computations");
  }
}

// Of an attribute that the operation must have and the text leaves out. False where it has no default.
bool Parser::add_default(Pending& p, Attr key) {
  switch (key) {
    case Attr::replica_groups:
      p.set.set(key, u_.str("{}"));
      return true;
    case Attr::lhs_contracting_dims:
    case Attr::rhs_contracting_dims:
      p.set.set(key, Dims{});
      return true;
    case Attr::dimensions:
      if (p.op != Opcode::Broadcast || p.operands.empty() || m_->shape(p.operands[0]).rank() != 0) return false;
      p.set.set(key, Dims{});
      return true;
    case Attr::window:
      if (p.op != Opcode::ReduceWindow && p.op != Opcode::SelectAndScatter) return false;
      p.set.set(key, Window{});  // of scalars
      return true;
    case Attr::largest:
      p.set.set(key, true);
      return true;
    default:
      return false;
  }
}

// Defaults out, required ones in (xla/hlo/parser/hlo_parser.cc, per opcode in CreateInstruction).
void Parser::check_attrs(Pending& p) {
  AttrSet& set = p.set;
  if (set.list.empty() && op_info(p.op).attrs.empty()) return;
  drop_defaults(p);
  if (p.op == Opcode::Conditional) check_callees(p);
  if (p.op == Opcode::AllGather || p.op == Opcode::AllGatherStart || p.op == Opcode::ReduceScatter ||
      p.op == Opcode::GetDimensionSize)
    if (const Dims* d = set.get<Dims>(Attr::dimensions)) {
      // The first counts.
      if (d->empty()) error_at(p.op_at, "{} takes one dimension, not 0", op_text(p.op));
      if (d->size() > 1) set.set(Attr::dimensions, Dims{d->front()});
    }
  if (p.op == Opcode::Map) {
    // Always all dimensions of the result.
    Dims all;
    int rank = p.shape.valid() ? u_[p.shape].rank() : p.operands.empty() ? 0 : m_->shape(p.operands[0]).rank();
    for (int i = 0; i < rank; ++i) all.push_back(i);
    set.set(Attr::dimensions, all);
  }
  for (const OwnAttr& own : op_info(p.op).attrs) {
    if (own.optional || set.has(own.key)) continue;
    if (own.key == Attr::calls && p.is_short) continue;
    if (own.key == Attr::is_associative || add_default(p, own.key)) continue;
    error_at(p.op_at, "{} needs attribute '{}'", op_text(p.op), attr_text(own.key));
  }
}

}  // namespace hlo
