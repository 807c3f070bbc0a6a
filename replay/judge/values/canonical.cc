#include "replay/judge/values/canonical.h"

#include <algorithm>

#include "ir/backend_config.h"
#include "ir/base/hash.h"
#include "ir/base/stack_guard.h"
#include "passes/rewrite.h"

namespace hlo {
namespace {

Fingerprints::Options fingerprint_options(bool layouts) {
  Fingerprints::Options o;
  o.layouts = layouts, o.sharding = false, o.config = false;
  return o;
}

// A library call's configuration without what says how, or when, and not what it computes: the autotuner fills that in
// (xla/service/gpu/backend_configs.proto).
// Where it says no more than what is so without it: protos leave that out, or write it, as they please.
bool is_default(const BackendConfig& c) {
  return c.is_null() || (c.is_boolean() && !c.get<bool>()) || (c.is_number() && c.get<double>() == 0) ||
         (c.is_string() && c.get_ref<const std::string&>().empty()) || ((c.is_array() || c.is_object()) && c.empty());
}

// Numbers are one however they are written, members that say nothing go.
void leave_out_defaults(BackendConfig* c) {
  if (c->is_number()) *c = c->get<double>();
  if (c->is_string()) {
    // 64-bit integers are texts in a proto's JSON.
    const std::string& text = c->get_ref<const std::string&>();
    const bool digits = !text.empty() && text.size() < 16 && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits) *c = static_cast<double>(std::stoll(text));
  }
  if (!c->is_structured()) return;
  check_stack("a backend_config is nested");
  for (BackendConfig& member : *c) leave_out_defaults(&member);
  if (!c->is_object()) return;
  for (auto at = c->begin(); at != c->end();) at = is_default(*at) ? c->erase(at) : std::next(at);
}

uint64_t configured(std::string_view text) {
  BackendConfig config = BackendConfig::parse(text, nullptr, false);
  if (!config.is_object()) return hash_bytes(text);
  auto strip = [](BackendConfig& c) {
    for (const char* key :
         {"algorithm", "selected_algorithm", "autotune_workspace_size", "device_type", "force_earliest_schedule",
          "operation_queue_id", "wait_on_operation_queues", "reification_cost"})
      c.erase(key);
  };
  strip(config);
  for (const char* part : {"cudnn_conv_backend_config", "gemm_backend_config", "cudnn_fmha_backend_config"})
    if (auto at = config.find(part); at != config.end() && at->is_object()) strip(*at);
  leave_out_defaults(&config);
  return hash_bytes(config.dump());
}

}  // namespace

Role role_of(const Module& m, InstId i) {
  auto type_kept = [&] { return m.shape(i).type == m.shape(m.operand(i, 0)).type; };
  bool dynamic = m.shape(i).is_dynamic() || (m.operand_count(i) && m.shape(m.operand(i, 0)).is_dynamic());
  switch (m.op(i)) {
    case Opcode::Parameter:
      return Role::kParameter;
    case Opcode::Reshape:
      return dynamic ? Role::kOperation : Role::kSame;
    case Opcode::Bitcast: {
      if (dynamic || !m.shape(i).is_array() || !type_kept()) return Role::kOperation;
      bool reshapes = reshape_is_bitcast(m.u(), m.shape_id(m.operand(i, 0)), m.shape_id(i));
      return reshapes ? Role::kSame : Role::kOperation;
    }
    case Opcode::Copy:
    case Opcode::OptBarrier:
    case Opcode::AddDependency:
      return Role::kSame;
    case Opcode::Convert:
      return type_kept() ? Role::kSame : Role::kOperation;
    case Opcode::Tuple:
      return Role::kTuple;
    case Opcode::GetTupleElement:
      return Role::kElement;
    case Opcode::Call:
    case Opcode::Fusion:
      return Role::kCall;
    case Opcode::AsyncStart:
      return m.comp(m.called(i)[0]).params.size() == m.operand_count(i) ? Role::kAsyncStart : Role::kOperation;
    case Opcode::AsyncUpdate:
      return Role::kSame;
    case Opcode::AsyncDone:
      return Role::kAsyncDone;
    case Opcode::CopyStart:
      return Role::kCopyStart;
    case Opcode::CopyDone:
      return Role::kCopyDone;
    case Opcode::While:
      return Role::kWhile;
    case Opcode::Conditional:
      return Role::kConditional;
    case Opcode::Rng:
    case Opcode::RngGetAndUpdateState:
      return Role::kDraw;
    default:
      return Role::kOperation;
  }
}

Canonical::Canonical(const Module& wide)
    : m_(wide), plain_(wide, fingerprint_options(false)), laid_out_(wide, fingerprint_options(true)) {}

uint64_t Canonical::operation(InstId i) {
  Opcode op = m_.op(i);
  if (op == Opcode::CustomCall)
    return hash_combine(plain_.instruction(i), configured(m_.u().text(m_.attrs(i).text(Attr::backend_config))));
  if (op != Opcode::Bitcast) return plain_.instruction(i);
  return hash_combine(laid_out_.instruction(i), hash_bytes(m_.u().shape_text(m_.shape_id(m_.operand(i, 0)))));
}

uint64_t Canonical::library_call(InstId i) {
  return hash_combine(plain_.elements(i), configured(m_.u().text(m_.attrs(i).text(Attr::backend_config))));
}

bool Canonical::commutes(const Module& m, InstId i) {
  if (op_info(m.op(i)).commutative) return true;
  if (m.op(i) != Opcode::Compare) return false;
  const std::string_view direction = m.u().text(m.attrs(i).text(Attr::direction));
  return direction == "EQ" || direction == "NE";
}

uint64_t Canonical::combined(InstId i, std::vector<uint64_t> operands) {
  if (commutes(m_, i)) std::sort(operands.begin(), operands.end());
  uint64_t h = operation(i);
  for (uint64_t o : operands) h = hash_combine(h, o);
  return h;
}

Dims Canonical::steps_of(const Module& m, InstId broadcast) {
  const Shape &s = m.shape(broadcast), &from = m.shape(m.operand(broadcast, 0));
  const Dims& dims = m.attrs(broadcast).ints(Attr::dimensions);
  if (dims.size() != from.dims.size()) return {};
  Dims steps(s.dims.size(), 0);
  int64_t step = 1;
  for (size_t k = from.dims.size(); k-- > 0;) {
    if (dims[k] < 0 || dims[k] >= s.rank()) return {};
    steps[static_cast<size_t>(dims[k])] = step;
    step *= from.dims[k];
  }
  return steps;
}

uint64_t Canonical::repeated(ElementType type, const Dims& sizes, const Dims& steps, uint64_t operand) {
  uint64_t h = hash_combine(hash_combine(0xB20AD, static_cast<uint64_t>(type)), operand);
  int64_t size = 1, step = 0;
  auto end = [&] { h = hash_combine(hash_combine(h, static_cast<uint64_t>(size)), static_cast<uint64_t>(step)); };
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] == 1) continue;
    if (size == 1 || step == steps[k] * sizes[k]) {
      size *= sizes[k];
    } else {
      end();
      size = sizes[k];
    }
    step = steps[k];
  }
  end();
  return h;
}

// Neighbours that both go, or both stay, are one dimension.
bool Canonical::reduced(InstId i, const std::vector<uint64_t>& numbers, uint64_t* key) {
  const Shape& from = m_.shape(m_.operand(i, 0));
  const Dims& over = m_.attrs(i).ints(Attr::dimensions);
  if (numbers.size() != 2 || m_.called(i).size() != 1) return false;
  uint64_t h = hash_combine(hash_combine(0x4ED0CE, static_cast<uint64_t>(from.type)), computation(m_.called(i)[0]));
  int64_t size = 1;
  bool goes = false;
  auto end = [&] { h = hash_combine(hash_combine(h, static_cast<uint64_t>(size)), goes ? 1 : 0); };
  for (int64_t d = 0; d < from.rank(); ++d) {
    const int64_t count = from.dims[static_cast<size_t>(d)];
    const bool own = std::find(over.begin(), over.end(), d) != over.end();
    if (count == 1) continue;
    if (size != 1 && own != goes) end(), size = 1;
    size *= count, goes = own;
  }
  end();
  *key = hash_combine(hash_combine(h, numbers[0]), numbers[1]);
  return true;
}

bool Canonical::by_elements(InstId i, std::vector<uint64_t> numbers, uint64_t* key) {
  const Shape& s = m_.shape(i);
  if (!s.is_array() || s.is_dynamic() || numbers.empty()) return false;
  for (InstId o : m_.operands(i))
    if (!m_.shape(o).is_array() || m_.shape(o).is_dynamic()) return false;
  if (m_.op(i) == Opcode::Broadcast) {
    const Dims steps = steps_of(m_, i);
    if (steps.size() != s.dims.size()) return false;
    *key = repeated(s.type, s.dims, steps, numbers[0]);
    return true;
  }
  if (m_.op(i) == Opcode::Reduce) return reduced(i, numbers, key);
  if (!op_info(m_.op(i)).elementwise || !m_.called(i).empty()) return false;
  for (InstId o : m_.operands(i))
    if (m_.shape(o).dims != s.dims && m_.shape(o).rank() != 0) return false;
  *key = elementwise(i, std::move(numbers), s.elements_count());
  return true;
}

uint64_t Canonical::elementwise(InstId i, std::vector<uint64_t> numbers, int64_t count) {
  if (commutes(m_, i)) std::sort(numbers.begin(), numbers.end());
  uint64_t key = plain_.elements(i, count);
  for (uint64_t n : numbers) key = hash_combine(key, n);
  return key;
}

uint64_t Canonical::operand_of(Universe& u, uint64_t number, ShapeId shape) {
  const Shape& s = u[shape];
  for (int64_t d : s.dims) number = hash_combine(number, static_cast<uint64_t>(d));
  return number;
}

Canonical::Symbol Canonical::Symbol::element(size_t k) const {
  if (elements && k < elements->size()) return (*elements)[k];
  return {hash_combine(hash, k + 1), nullptr};
}

uint64_t Canonical::Symbol::whole() const {
  if (!elements) return hash;
  uint64_t h = elements->size();
  for (const Symbol& s : *elements) h = hash_combine(h, s.whole());
  return h;
}

uint64_t Canonical::computation(CompId c) {
  auto known = known_.find(c);
  if (known != known_.end()) return known->second;
  std::vector<Symbol> parameters;
  for (size_t k = 0; k < m_.comp(c).params.size(); ++k) parameters.push_back({mix64(k + 1), nullptr});
  uint64_t h = root(c, parameters).whole();
  known_[c] = h;
  return h;
}

Canonical::Symbol Canonical::root(CompId c, const std::vector<Symbol>& parameters) {
  check_stack("calls of computations are nested");
  std::unordered_map<InstId, Symbol> known;
  for (InstId i : m_.post_order(c)) {
    std::vector<Symbol> operands;
    for (InstId o : m_.operands(i)) operands.push_back(known.at(o));
    known[i] = step(i, operands, parameters);
  }
  return known.at(m_.comp(c).root);
}

Canonical::Symbol Canonical::step(InstId i, const std::vector<Symbol>& operands,
                                  const std::vector<Symbol>& parameters) {
  switch (role_of(m_, i)) {
    case Role::kParameter:
      return parameters[static_cast<size_t>(m_.parameter_number(i))];
    case Role::kSame:
      return operands[0];
    case Role::kTuple:
      return {0, std::make_shared<const std::vector<Symbol>>(operands)};
    case Role::kElement:
      return operands[0].element(static_cast<size_t>(m_.attrs(i).integer(Attr::index)));
    case Role::kCall: {
      // As deep as the callee is: a body that calls itself twice a level is hashed once a level.
      const Computation& callee = m_.comp(m_.called(i)[0]);
      if (callee.order.size() <= 4096 && op_info(m_.op(i)).cls == OpClass::Fusion)
        return root(m_.called(i)[0], operands);
      uint64_t h = computation(m_.called(i)[0]);
      for (const Symbol& o : operands) h = hash_combine(h, o.whole());
      return {h, nullptr};
    }
    default: {
      uint64_t h = 0;
      for (CompId c : m_.called(i)) h = hash_combine(h, computation(c));
      std::vector<uint64_t> hashes;
      for (size_t k = 0; k < operands.size(); ++k) hashes.push_back(operand(m_, operands[k].whole(), m_.operand(i, k)));
      bool opaque = m_.op(i) == Opcode::While || m_.op(i) == Opcode::Conditional;
      if (!opaque) return {combined(i, std::move(hashes)), nullptr};
      h = hash_combine(h, static_cast<uint64_t>(m_.op(i)));
      for (uint64_t o : hashes) h = hash_combine(h, o);
      return {h, nullptr};
    }
  }
}

}  // namespace hlo
