#include "gpu_exec/lower/device_program.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "gpu_exec/emit/element_emitter.h"
#include "gpu_exec/lower/host_module.h"
#include "gpu_exec/lower/matrix_vector.h"
#include "ir/base/check.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/value.h"
#include "ir/inference/precision.h"
#include "ir/leaves.h"
#include "ir/library/library_calls.h"
#include "ir/query/loop_config.h"
#include "ir/verify/verifier.h"
#include "passes/backend/backend.h"
#include "passes/passes.h"

namespace hlo {

int64_t device_bytes(const Shape& s) { return s.is_array() ? array_bytes(s).value("an array") : 0; }

namespace {

// A fusion whose product a library does better, between kernels of what stands around it.
bool better_apart(const Module& m, InstId fusion) {
  if (m.op(fusion) != Opcode::Fusion) return false;
  constexpr int64_t kSmall = int64_t{1} << 20;
  for (InstId i : m.post_order(m.called(fusion)[0])) {
    if (m.op(i) != Opcode::Dot) continue;
    int64_t k = 1;
    for (int64_t d : m.attrs(i).ints(Attr::lhs_contracting_dims))
      k *= m.shape(m.operand(i, 0)).dims[static_cast<size_t>(d)];
    if (m.shape(i).elements_count() * k > kSmall) return true;
  }
  return false;
}

// The bytes stay as they are.
bool plain_copy(const Module& m, InstId i) {
  return m.op(i) == Opcode::Copy && m.shape(i).is_array() && m.shape(m.operand(i, 0)).type == m.shape(i).type &&
         major_first(m.shape(m.operand(i, 0))) == major_first(m.shape(i));
}

// Of a copy-start: do an array and its copy lie in memory in another order?
bool moves_elements(const Module& m, InstId start) {
  const std::vector<ShapeId> to = leaf_shapes(m.u(), m.shape(start).elements[0]),
                             from = leaf_shapes(m.u(), m.shape(start).elements[1]);
  for (size_t k = 0; k < to.size(); ++k)
    if (m.u()[to[k]].is_array() && major_first(m.u()[to[k]]) != major_first(m.u()[from[k]])) return true;
  return false;
}

bool runs_on_device(const Module& m, InstId i) {
  if (better_apart(m, i) || plain_copy(m, i)) return false;
  switch (m.op(i)) {
    case Opcode::Sort:
    case Opcode::Scatter:
    case Opcode::Dot:
    case Opcode::Convolution:
    case Opcode::Reshape:
      return true;
    default:
      return runs_as_kernel(m, i);
  }
}

// Among one device there is nothing to exchange.
bool exchanges_nothing(const Module& m, InstId i) {
  switch (m.op(i)) {
    case Opcode::AllReduce:
    case Opcode::AllGather:
    case Opcode::AllToAll:
    case Opcode::ReduceScatter:
    case Opcode::CollectiveBroadcast:
      break;
    default:
      return false;
  }
  std::vector<ShapeId> results = m.shape(i).is_tuple() ? m.shape(i).elements : std::vector<ShapeId>{m.shape_id(i)};
  auto ops = m.operands(i);
  if (results.size() != ops.size()) return false;
  for (size_t k = 0; k < results.size(); ++k) {
    const Shape &s = m.u()[results[k]], &o = m.shape(ops[k]);
    if (!s.is_array() || s.dims != o.dims || s.type != o.type || major_first(s) != major_first(o) || s.is_dynamic())
      return false;
  }
  return true;
}

bool has_stable_sort(const Module& m) {
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) == Opcode::Sort && m.attrs(i).flag(Attr::is_stable)) return true;
  return false;
}

}  // namespace

DeviceProgram::DeviceProgram(Device& device, const Module& m, int64_t devices, const EvalOptions& options,
                             const LoweringOptions& lowering)
    : device_(device), options_(options), alone_(devices == 1) {
  Lowering steps(device.on_host() ? "lower-host" : "lower-cuda", lowering);
  prepare(m, steps);
  compile();
  steps.step(*m_, "open-fusions", [&](Module&, PassContext&) { open_fusions(); });
  steps.step(*m_, "name-bitcasts", [&](Module&, PassContext&) { name_reshapes(); });
  // What is scheduled already has its copies, too, unless something here changed it.
  if (!m_->config().is_scheduled || !assign()) {
    // Our kernels write into memory of their own, except where they say otherwise.
    steps.pass(*m_, "copy-insertion", {{"memory", "own"}});
    if (has_stale_kernels()) {
      by_inst_.clear(), refused_.clear(), distinct_ = 0;
      compile();
    }
    steps.step(*m_, "schedule", [](Module& module, PassContext&) { schedule_module(module); });
    bool held = assign();
    HLO_CHECK(held, "{}", *overwritten_value(*m_, buffers_, rules()));
  }
  forget_trimmed(m);
  for (const Allocation& a : buffers_.allocations) allocations_.push_back(a.kind == Allocation::kTuple ? 0 : a.size);
  entry_ = build(m_->entry());
  find_borrowed();
  check_memory(devices);
}

void DeviceProgram::prepare(const Module& m, Lowering& steps) {
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && mixes_precision(m, i))
        fail(FailureKind::kUnsupported, "{}: operations of mixed precision are read, not run", m.inst_name(i));
  // Whoever watches values wants those of the module as it is.
  const bool as_it_is = options_.trace || options_.as_it_is, host = device_.on_host();
  m_ = m.clone();
  origins_ = m.inst_slots();
  if (!as_it_is && !host) expand_for_device(steps, *m_);
  // Before layouts are assigned, what a callee returns may be laid out otherwise than what its caller says.
  if (host || !verify_module(*m_, 1, Layouts::kBinding).empty())
    steps.step(*m_, "row-major", [&](Module& module, PassContext&) {
      for (auto [old, made] : make_row_major(module)) {
        origin_[made] = old;
        module.set_scheduled(false);
      }
    });
  if (!as_it_is && host)
    steps.step(*m_, "convolution-calls",
               [&](Module& module, PassContext& context) { call_convolutions(device_, module, context); });
  if (!as_it_is) {
    fuse_for_device(steps, *m_);
    // Sorts that threads can do in any order.
    if (has_stable_sort(*m_)) steps.pass(*m_, "stable-sort-expander"), m_->set_scheduled(false);
  }
  if (!as_it_is && !host) {
    bool laid_out = false;
    steps.step(*m_, "library-forms", [&](Module& module, PassContext&) {
      size_t before = module.inst_slots();
      laid_out = lay_out_convolutions(device_, module);
      if (split_convolutions(device_, module)) laid_out |= lay_out_convolutions(device_, module);
      reduce_vector_products(module);
      if (module.inst_slots() != before) module.set_scheduled(false);
    });
    // A filter that no trip changes is brought into its layout once.
    if (laid_out && m_->count(Opcode::While)) steps.pass(*m_, "while-loop-invariant-code-motion");
  }
  // Places belong to instructions: each computation has one caller.
  steps.pass(*m_, "flatten-call-graph");
  if (!as_it_is) steps.step(*m_, "products-apart", [&](Module&, PassContext& context) { set_products_free(context); });
  // Copy insertion tidies up: what it would take off a fusion (results and operands that nobody reads) goes before
  // there is a kernel of it.
  steps.pass(*m_, "dce");
}

// Has one been changed since its kernel was made? What was read through tuples alone is found to be dead late.
bool DeviceProgram::has_stale_kernels() const {
  return std::any_of(by_inst_.begin(), by_inst_.end(), [&](const auto& entry) {
    const auto& [i, k] = entry;
    return m_->alive(i) &&
           (m_->operand_count(i) != kernels_[k].operands || m_->u().leaf_count(m_->shape_id(i)) != kernels_[k].leaves);
  });
}

// What computes only a part of the caller's instruction, or of parts of its operands, is not that instruction any more.
void DeviceProgram::forget_trimmed(const Module& m) {
  auto changed = [&](InstId i) {
    return i.value < origins_ && m.alive(i) && m.shape(i).elements.size() != m_->shape(i).elements.size();
  };
  for (CompId c : m_->nonfusion_computations())
    for (InstId i : m_->live_order(c)) {
      if (i.value >= origins_ || !m.alive(i)) continue;
      bool other = changed(i) || m.operand_count(i) != m_->operand_count(i);
      for (InstId o : m_->operands(i)) other |= changed(o);
      if (other) origin_[i] = InstId();
    }
}

// %f = fusion(x, w), calls={ … dot … }   of a large product is   a call of {prologue kernels, library call, epilogue
// kernels}.
void DeviceProgram::set_products_free(PassContext& context) {
  std::vector<CompId> bodies;
  for (CompId c : m_->nonfusion_computations())
    for (InstId i : m_->live_order(c)) {
      if (!better_apart(*m_, i)) continue;
      bodies.push_back(m_->called(i)[0]);
      call_body(i);
    }
  if (bodies.empty()) return;
  if (fuse_within(*m_, context, bodies)) m_->set_scheduled(false);
}

void DeviceProgram::compile() {
  std::vector<CompId> roots{m_->entry()};
  std::unordered_set<CompId> seen{m_->entry()};
  while (!roots.empty()) {
    std::vector<CompId> reached;
    std::vector<std::vector<InstId>> kinds = hlo::distinct_kernels(*m_, roots, runs_on_device, &reached);
    // What a library multiplies, only names other bytes or fills memory needs no kernel.
    std::erase_if(kinds, [&](const std::vector<InstId>& same) {
      return by_library(same[0]) || device_.performs(*m_, same[0]) || must_alias(same[0]) || fill_pattern(same[0]);
    });
    std::vector<std::pair<size_t, std::string>> without;
    size_t first = kernels_.size();
    std::vector<Kernel> fresh = device_.load(*m_, kinds, &without);
    for (size_t k = 0; k < fresh.size(); ++k) {
      if (!fresh[k].parts.empty())
        for (InstId i : kinds[k]) by_inst_[i] = first + k;
      distinct_ += !fresh[k].parts.empty();
      fresh[k].operands = m_->operand_count(fresh[k].inst);
      fresh[k].leaves = m_->u().leaf_count(m_->shape_id(fresh[k].inst));
      kernels_.push_back(std::move(fresh[k]));
    }
    for (auto& [k, why] : without)
      for (InstId i : kinds[k]) refused_[i] = why;
    // Fusions without a kernel are run part by part.
    roots.clear();
    for (CompId c : reached)
      for (InstId i : m_->post_order(c)) {
        if (m_->op(i) != Opcode::Fusion || by_inst_.contains(i)) continue;
        CompId body = m_->called(i)[0];
        if (seen.insert(body).second) roots.push_back(body);
      }
  }
}

// Another operation in an instruction's place, in name and schedule as well.
InstId DeviceProgram::substitute(InstId old, Opcode op, std::vector<InstId> operands, AttrsId attrs) {
  Module& m = *m_;
  CompId c = m.parent(old);
  StrId name = m[old].name;
  InstId made = m.add(
      c, {.op = op, .shape = m.shape_id(old), .operands = std::move(operands), .attrs = attrs, .meta = m[old].meta});
  std::vector<InstId> before(m.control_preds(old).begin(), m.control_preds(old).end());
  std::vector<InstId> behind(m.control_succs(old).begin(), m.control_succs(old).end());
  m.drop_control(old);
  for (InstId p : before) m.add_control(p, made);
  for (InstId s : behind) m.add_control(made, s);
  if (m.config().is_scheduled) {
    std::vector<InstId> order = m.comp(c).order;
    order.pop_back();
    *std::find(order.begin(), order.end(), old) = made;
    order.push_back(old);
    m.set_order(c, std::move(order));
  }
  bool root = m.is_root(old);
  m.replace_all_uses(old, made);
  if (root) m.set_root(c, made);
  m.remove(old);
  m.set_name(made, name);
  if (InstId from = origin(old); from.valid()) origin_[made] = from;
  return made;
}

// %f = fusion(a, b), calls=%body   without a kernel is   %f = call(a, b), to_apply=%body
void DeviceProgram::open_fusions() {
  std::vector<CompId> list{m_->entry()};
  std::unordered_set<CompId> seen{m_->entry()};
  for (size_t k = 0; k < list.size(); ++k) {
    for (InstId i : m_->live_order(list[k])) {
      Opcode op = m_->op(i);
      bool opened = op == Opcode::Fusion && !by_inst_.contains(i);
      if (opened || op == Opcode::While || op == Opcode::Conditional || op == Opcode::Call || op == Opcode::AsyncStart)
        for (CompId c : m_->called(i))
          if (seen.insert(c).second) list.push_back(c);
      if (opened) call_body(i);
    }
  }
}
void DeviceProgram::call_body(InstId fusion) {
  AttrSet set;
  set.op = Opcode::Call;
  set.list.push_back({Attr::to_apply, m_->called(fusion)[0]});
  set.called = {m_->called(fusion)[0]};
  auto ops = m_->operands(fusion);
  substitute(fusion, Opcode::Call, {ops.begin(), ops.end()}, m_->u().attrs(std::move(set)));
}

// Reshapes of the same bytes are bitcasts, as which copy insertion knows them.
void DeviceProgram::name_reshapes() {
  for (CompId c : m_->nonfusion_computations())
    for (InstId i : m_->live_order(c))
      if (m_->op(i) == Opcode::Reshape && must_alias(i)) substitute(i, Opcode::Bitcast, {m_->operand(i, 0)}, {});
}

InstId DeviceProgram::origin(InstId i) const {
  if (auto at = origin_.find(i); at != origin_.end()) return at->second;
  return i.value < origins_ ? i : InstId();
}

bool DeviceProgram::by_library(InstId i) {
  if (std::optional<Product> p = product_of(*m_, i)) return device_.multiplies(p->form);
  std::optional<ConvolutionForm> c = convolution_of(*m_, i);
  return c && device_.convolves(*c);
}

// The result's bytes are the operand's.
bool DeviceProgram::must_alias(InstId i) const {
  Opcode op = m_->op(i);
  if (op == Opcode::OptBarrier || op == Opcode::AddDependency || op == Opcode::Domain) return true;
  if (op != Opcode::Bitcast && op != Opcode::Reshape) return false;
  const Shape &s = m_->shape(i), &from = m_->shape(m_->operand(i, 0));
  if (!s.is_array() || device_bytes(s) != device_bytes(from)) return false;
  if (op == Opcode::Bitcast) return (type_bits(s.type) >= 8) == (type_bits(from.type) >= 8);
  return !has_other_layout(s) && !has_other_layout(from);
}

// A scalar constant in every element, of which a memset has the bits.
std::optional<std::pair<uint32_t, int>> DeviceProgram::fill_pattern(InstId i) const {
  if (m_->op(i) != Opcode::Broadcast || m_->op(m_->operand(i, 0)) != Opcode::Constant) return std::nullopt;
  const Literal& l = m_->literal(m_->operand(i, 0));
  auto width = static_cast<size_t>(storage_bytes(m_->shape(i).type));
  if (l.bytes.size() != width || width == 0 || m_->shape(i).is_dynamic()) return std::nullopt;
  uint32_t pattern = 0;
  std::memcpy(&pattern, l.bytes.data(), std::min<size_t>(width, 4));
  for (size_t at = 4; at < width; at += 4)
    if (std::memcmp(l.bytes.data() + at, &pattern, 4) != 0) return std::nullopt;
  return std::pair(pattern, static_cast<int>(std::min<size_t>(width, 4)));
}

BufferRules DeviceProgram::rules() const {
  BufferRules r;
  r.bytes = [this](ShapeId s) { return device_bytes(m_->u()[s]); };
  r.alias = [this](InstId i) { return must_alias(i); };
  r.in_place = [this](InstId i, size_t leaf) { return in_place(i, leaf); };
  return r;
}

int DeviceProgram::in_place(InstId i, size_t leaf) const {
  if (auto at = by_inst_.find(i); at != by_inst_.end()) return kernels_[at->second].in_place_operand(leaf);
  if (plain_copy(*m_, i)) return 0;
  if (alone_ && exchanges_nothing(*m_, i)) return static_cast<int>(leaf);
  if (leaf == 0)
    if (std::optional<Product> p = product_of(*m_, i)) return p->matrix;
  return -1;
}

bool DeviceProgram::assign() {
  BufferRules with = rules();
  buffers_ = assign_buffers(*m_, with);
  return !overwritten_value(*m_, buffers_, with);
}

BufferSlice DeviceProgram::slice(int value) const {
  const BufferValue& v = buffers_.values[static_cast<size_t>(value)];
  return {v.allocation, v.offset};
}

// Parameters that no step writes to, and constants.
void DeviceProgram::find_borrowed() {
  borrowed_.assign(allocations_.size(), false);
  if (!device_.on_host()) return;
  for (size_t k = 0; k < buffers_.allocations.size(); ++k) {
    using Kind = Allocation::Kind;
    Kind kind = buffers_.allocations[k].kind;
    borrowed_[k] = kind == Kind::kConstant || (kind == Kind::kParameter && !changes_parameters_);
  }
  for (const auto& [lit, slice] : literals_) borrowed_[static_cast<size_t>(slice.allocation)] = true;
  for (const BufferValue& v : buffers_.values)
    if (v.allocation >= 0 && v.offset != 0) borrowed_[static_cast<size_t>(v.allocation)] = false;
}

// What a run holds, so that it fails before it starts.
void DeviceProgram::check_memory(int64_t devices) const {
  Checked parameters = 0, constants = 0, values = 0;
  for (size_t k = 0; k < allocations_.size(); ++k) {
    using Kind = Allocation::Kind;
    Kind kind = k < buffers_.allocations.size() ? buffers_.allocations[k].kind : Kind::kTemp;
    if (borrowed_[k]) continue;  // lies in memory already
    (kind == Kind::kParameter ? parameters : kind == Kind::kConstant ? constants : values) += allocations_[k];
  }
  Checked sum = (parameters + constants + values) * devices;
  int64_t there = device_.free_bytes();
  if (sum.capped() <= there) return;
  auto gb = [&](Checked n) { return fmt::format("{:.2f} GB", static_cast<double>((n * devices).capped()) / 1e9); };
  fail(FailureKind::kUnsupported,
       "the module needs {} on the device (parameters {}, constants {}, values {}), and {} has {:.2f} GB free",
       gb(parameters + constants + values), gb(parameters), gb(constants), gb(values), device_.name(),
       static_cast<double>(there) / 1e9);
}

// --- steps ---

size_t DeviceProgram::build(CompId c) {
  check_stack("calls of computations are nested");
  DeviceSequence s;
  s.root = m_->comp(c).root;
  for (InstId i : m_->live_order(c)) add(i, s);
  find_segments(s);
  sequences_.push_back(std::move(s));
  return sequences_.size() - 1;
}

void DeviceProgram::add(InstId i, DeviceSequence& s) {
  if (m_->op(i) == Opcode::Parameter) return;
  DeviceStep step;
  step.inst = i;
  for (InstId o : m_->operands(i))
    for (int v : buffers_.by_inst.at(o)) step.reads.push_back(v), step.in.push_back(slice(v));
  for (int v : buffers_.by_inst.at(i)) step.writes.push_back(v), step.out.push_back(slice(v));
  choose(step);
  if (m_->op(i) == Opcode::Constant) initials_.push_back({i, {}, {}});
  if (step.kind == DeviceStep::kNoThunk && !options_.trace) return;
  keep_apart(step);
  auto parameter = [&](const BufferSlice& p) {
    return p.allocation >= 0 && static_cast<size_t>(p.allocation) < buffers_.allocations.size() &&
           buffers_.allocations[static_cast<size_t>(p.allocation)].kind == Allocation::kParameter;
  };
  if (step.kind != DeviceStep::kNoThunk && step.kind != DeviceStep::kAsyncDone && step.sequences.empty())
    for (const BufferSlice& p : step.out) changes_parameters_ |= parameter(p);
  for (const SliceCopy& move : step.after) changes_parameters_ |= parameter(move.to);
  s.steps.push_back(std::move(step));
}

// What neither a kernel nor a library does. False for all that the evaluator runs.
bool DeviceProgram::choose_by_opcode(DeviceStep& s) {
  const InstId i = s.inst;
  const Module& m = *m_;
  constexpr size_t kStreams = 4;
  switch (m.op(i)) {
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Constant:
    case Opcode::AsyncUpdate:
    case Opcode::AfterAll:
      s.kind = DeviceStep::kNoThunk;
      return true;
    case Opcode::Call:
      s.kind = DeviceStep::kCall, s.sequences = {build(m.called(i)[0])};
      return true;
    case Opcode::AsyncStart:
      s.kind = DeviceStep::kAsyncStart, s.stream = 1 + streams_++ % kStreams, s.sequences = {build(m.called(i)[0])};
      return true;
    case Opcode::CopyStart:
      if (moves_elements(m, i)) return false;
      s.kind = DeviceStep::kAsyncStart, s.stream = 1 + streams_++ % kStreams;
      for (ShapeId leaf : leaf_shapes(m.u(), m.shape_id(m.operand(i, 0)))) {
        const size_t k = s.before.size();
        s.before.push_back({s.in[k], s.out[k], device_bytes(m.u()[leaf])});
      }
      return true;
    case Opcode::AsyncDone:
    case Opcode::CopyDone:
      s.kind = DeviceStep::kAsyncDone;
      return true;
    case Opcode::While:
      s.kind = DeviceStep::kWhile, s.trips = known_trip_count(m, i).value_or(-1);
      if (s.trips > options_.max_while_steps) s.trips = -1;
      s.sequences = {build(m.attrs(i).comp(Attr::condition)), build(m.attrs(i).comp(Attr::body))};
      return true;
    case Opcode::Conditional:
      s.kind = DeviceStep::kConditional;
      for (CompId c : m.called(i)) s.sequences.push_back(build(c));
      return true;
    default:
      return false;
  }
}

void DeviceProgram::choose(DeviceStep& s) {
  InstId i = s.inst;
  const Module& m = *m_;
  const AttrSet& a = m.attrs(i);
  if (auto at = by_inst_.find(i); at != by_inst_.end()) {
    s.kind = DeviceStep::kKernel, s.kernel = at->second;
    for (LitId lit : kernels_[s.kernel].constants) {
      auto [known, fresh] = literals_.try_emplace(lit);
      if (fresh) {
        known->second = scratch(static_cast<int64_t>(m.u()[lit].bytes.size()));
        initials_.push_back({{}, lit, known->second});
      }
      s.in.push_back(known->second);
    }
    ++launched_;
    return;
  }
  if (std::optional<size_t> scratch = scratch_element(m, i); scratch && reads_element(i, *scratch))
    s.zeroed = static_cast<int>(*scratch);
  if (auto pattern = fill_pattern(i)) {
    s.kind = DeviceStep::kFill, s.pattern = pattern->first, s.width = pattern->second;
    return;
  }
  if (must_alias(i)) {
    s.kind = DeviceStep::kNoThunk;
    return;
  }
  if (by_library(i)) {
    if (std::optional<ConvolutionForm> c = convolution_of(m, i))
      s.kind = DeviceStep::kConvolution, s.convolution = std::move(*c);
    else
      s.kind = DeviceStep::kProduct, s.product = *product_of(m, i);
    ++library_calls_;
    return;
  }
  if (device_.performs(m, i)) {
    s.kind = DeviceStep::kOwn;
    ++library_calls_;
    return;
  }
  if (plain_copy(m, i) || (alone_ && exchanges_nothing(m, i))) {
    s.kind = DeviceStep::kCopy;
    return;
  }
  if (choose_by_opcode(s)) return;
  s.kind = DeviceStep::kHost;
  auto why = refused_.find(i);
  evaluated_.push_back(why != refused_.end()
                           ? why->second + ": it runs in the evaluator"
                           : fmt::format("{} ({}) runs in the evaluator", m.inst_name(i),
                                         m.op(i) == Opcode::CustomCall ? m.u().text(a.text(Attr::custom_call_target))
                                                                       : op_text(m.op(i))));
}

BufferSlice DeviceProgram::scratch(int64_t bytes) {
  allocations_.push_back(bytes);
  return {static_cast<int>(allocations_.size()) - 1, 0};
}

// Does every thread read what it needs of the operand before it, and no other, writes there? Elementwise on the way
// from the operand to every result.
bool DeviceProgram::reads_before_it_writes(InstId i, size_t operand) const {
  const Module& m = *m_;
  auto along = [&](InstId user, const Shape& from) {
    const Shape& s = m.shape(user);
    return op_info(m.op(user)).elementwise && s.dims == from.dims && major_first(s) == major_first(from);
  };
  const Shape& from = m.shape(m.operand(i, operand));
  if (m.op(i) != Opcode::Fusion) return along(i, from);
  CompId body = m.called(i)[0];
  std::vector<InstId> list{m.comp(body).params[operand]};
  std::unordered_set<InstId> seen(list.begin(), list.end());
  for (size_t k = 0; k < list.size(); ++k)
    for (InstId user : m.users(list[k])) {
      if (m.op(user) == Opcode::Tuple && m.is_root(user)) continue;
      if (!along(user, from)) return false;
      if (seen.insert(user).second) list.push_back(user);
    }
  return true;
}

// Can anybody tell what that element of the call's tuple is?
bool DeviceProgram::reads_element(InstId call, size_t element) const {
  const Module& m = *m_;
  return options_.trace || m.is_root(call) || std::any_of(m.users(call).begin(), m.users(call).end(), [&](InstId user) {
           if (m.op(user) != Opcode::GetTupleElement) return true;
           if (m.attrs(user).integer(Attr::index) != static_cast<int64_t>(element)) return false;
           return m.is_root(user) || !m.users(user).empty();
         });
}

// A result that lies where an operand lies is made there only by what may do so, otherwise beside it and moved.
void DeviceProgram::keep_apart(DeviceStep& s) {
  using Kind = DeviceStep::Kind;
  if (s.kind != Kind::kKernel && s.kind != Kind::kProduct && s.kind != Kind::kConvolution && s.kind != Kind::kCopy)
    return;
  const size_t operands = m_->operand_count(s.inst);
  const std::vector<ShapeId> shapes = leaf_shapes(m_->u(), m_->shape_id(s.inst));
  for (size_t r = 0; r < s.out.size(); ++r) {
    int64_t bytes = device_bytes(m_->u()[shapes[r]]);
    if (bytes == 0) continue;
    int target = -1;
    if (s.kind == Kind::kKernel) target = kernels_[s.kernel].in_place_operand(r);
    if (s.kind == Kind::kProduct && r == 0) target = s.product.matrix;
    if (s.kind == Kind::kCopy) target = static_cast<int>(r);
    bool clash = false;
    for (size_t o = 0; o < operands; ++o) {
      if (s.in[o] != s.out[r] || static_cast<int>(o) == target) continue;
      clash |= s.kind != Kind::kKernel || target >= 0 || kernels_[s.kernel].parts.size() != 1 ||
               !reads_before_it_writes(s.inst, o);
    }
    if (clash) {
      BufferSlice beside = scratch(bytes);
      s.after.push_back({beside, s.out[r], bytes});
      s.out[r] = beside;
    }
    if (s.kind == Kind::kKernel && target >= 0 && s.in[static_cast<size_t>(target)] != s.out[r])
      s.before.push_back({s.in[static_cast<size_t>(target)], s.out[r], bytes});
  }
}

}  // namespace hlo
