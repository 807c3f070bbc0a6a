#include "ir/verify/verifier.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_set>

#include "ir/inference/shape_inference.h"
#include "ir/library/library_calls.h"
#include "ir/sharding/aliasing.h"
#include "ir/types/tiling.h"
#include "ir/verify/verifier_rules.h"

namespace hlo {
namespace {

// Only XLA's TPU compiler lays arrays out in tiles.
bool any_tiles(const Module& m) {
  const Universe& u = m.u();
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order)
      if (m.alive(i) && u[m.shape_id(i)].layout.rest.starts_with("T(")) return true;
  return false;
}

class Verifier {
 public:
  Verifier(const Module& m, size_t limit, Layouts layouts, Moment moment, Precision precision)
      : m_(m),
        u_(m.u()),
        limit_(limit),
        free_(layouts == Layouts::kFree && moment == Moment::kSettled),
        layouts_(layouts == Layouts::kBinding || (layouts == Layouts::kAuto && m.config().is_scheduled)),
        settled_(moment == Moment::kSettled),
        mixed_(precision == Precision::kMixed || (precision == Precision::kAuto && any_tiles(m))) {}

  std::vector<VerifyError> run() {
    names();
    if (!m_.entry().valid() || !m_.comp(m_.entry()).alive) {
      error("entry", InstId(), "the module has no entry");
      return std::move(errors_);
    }
    call_graph();
    if (errors_.empty())
      for (CompId c : m_.computations()) computation(c);
    if (errors_.empty()) module();
    return std::move(errors_);
  }

 private:
  template <class... A>
  void error(const char* rule, InstId i, fmt::format_string<A...> text, A&&... args) {
    if (errors_.size() >= limit_) return;
    std::string message = fmt::format(text, std::forward<A>(args)...);
    if (i.valid())
      message = fmt::format("{} ({} in computation {}): {}", m_.inst_name(i), op_text(m_.op(i)),
                            m_.comp_name(m_.parent(i)), message);
    errors_.push_back({rule, std::move(message), i});
  }
  const std::string& text(ShapeId s) const { return u_.shape_text_plain(s); }

  void names() {
    std::vector<bool> seen(u_.string_count(), false), comps(u_.string_count(), false);
    for (CompId c : m_.computations()) {
      StrId n = m_.comp(c).name;
      if (comps[n.value]) error("names", InstId(), "two computations are called {}", u_.text(n));
      comps[n.value] = true;
      for (InstId i : m_.comp(c).order) {
        if (!m_.alive(i)) continue;
        StrId name = m_[i].name;
        if (seen[name.value]) error("names", i, "the name is used twice in the module");
        seen[name.value] = true;
      }
    }
  }

  void call_graph() {
    std::vector<uint8_t> state(m_.comp_slots(), 0);
    for (CompId root : m_.computations()) {
      if (state[root.value]) continue;
      std::vector<std::pair<CompId, std::vector<CompId>>> stack;
      auto push = [&](CompId c) {
        state[c.value] = 1;
        std::vector<CompId> callees;
        for (InstId i : m_.comp(c).order)
          if (m_.alive(i))
            for (CompId callee : m_.called(i)) {
              if (callee.value >= m_.comp_slots() || !m_.comp(callee).alive) {
                error("calls", i, "calls a computation that does not exist");
                continue;
              }
              callees.push_back(callee);
            }
        stack.push_back({c, std::move(callees)});
      };
      push(root);
      while (!stack.empty()) {
        auto& [c, callees] = stack.back();
        if (callees.empty()) {
          state[c.value] = 2;
          stack.pop_back();
          continue;
        }
        CompId next = callees.back();
        callees.pop_back();
        if (state[next.value] == 1)
          error("call graph", InstId(), "computation {} calls itself through others", m_.comp_name(next));
        else if (!state[next.value])
          push(next);
      }
    }
  }

  void computation(CompId c) {
    const Computation& comp = m_.comp(c);
    if (!m_.alive(comp.root) || m_.parent(comp.root) != c) {
      error("root", InstId(), "the root of computation {} is not one of its instructions", m_.comp_name(c));
      return;
    }
    size_t params = 0, live = 0;
    for (InstId i : comp.order) {
      if (!m_.alive(i)) continue;
      ++live;
      if (m_.parent(i) != c) error("operands", i, "is in the list of another computation");
      if (m_.op(i) == Opcode::Parameter) {
        ++params;
        size_t n = static_cast<size_t>(m_.parameter_number(i));
        if (n >= comp.params.size() || comp.params[n] != i)
          error("parameters", i, "parameter number {} is not its own", n);
      }
      for (InstId o : m_.operands(i))
        if (!m_.alive(o) || m_.parent(o) != c) {
          error("operands", i, "an operand is not in this computation");
          return;
        }
    }
    if (params != comp.params.size())
      error("parameters", InstId(), "computation {} has {} parameters and {} numbers", m_.comp_name(c), params,
            comp.params.size());
    if (m_.post_order(c).size() != live) {
      error("cycles", InstId(), "the instructions of computation {} form a cycle", m_.comp_name(c));
      return;
    }
    if (m_.config().is_scheduled) {
      std::unordered_set<InstId> seen;
      for (InstId i : m_.live_order(c)) {
        for (InstId o : m_.operands(i))
          if (!seen.contains(o)) error("order", i, "is scheduled before its operand {}", m_.inst_name(o));
        for (InstId p : m_.control_preds(i))
          if (!seen.contains(p)) error("order", i, "is scheduled before its control predecessor {}", m_.inst_name(p));
        seen.insert(i);
      }
    }
    for (InstId i : comp.order)
      if (m_.alive(i) && errors_.size() < limit_) instruction(i);
  }

  void bitcast(InstId i) {
    const Shape &x = m_.shape(m_.operand(i, 0)), &y = m_.shape(i);
    // Numbers of less than a byte are packed where the layout says so; XLA's own stages say it on one side only.
    bool packed = type_bits(x.type) < 8 && x.type == y.type && x.elements_count() == y.elements_count();
    // Tiles are filled up, so that s32[8] and s32[1] are of one size there. How much memory is taken is known where
    // both sides tell.
    bool tiles_of_x = x.layout.rest.starts_with("T("), tiles_of_y = y.layout.rest.starts_with("T(");
    bool tiled = tiles_of_x || tiles_of_y;
    if (tiled && x.is_array() && y.is_array()) {
      const std::optional<TiledOrder> from = TiledOrder::of(x), to = TiledOrder::of(y);
      const bool known = from && to && tiles_of_x && tiles_of_y && x.type == y.type;
      if (known && from->places() != to->places())
        error("bitcast", i, "changes the number of elements that tiles take, {} of {} and {} of {}", from->places(),
              text(m_.shape_id(m_.operand(i, 0))), to->places(), text(m_.shape_id(i)));
    }
    if (x.is_array() && y.is_array() && !packed && !tiled && !free_ &&
        u_.byte_size(m_.shape_id(m_.operand(i, 0))) != u_.byte_size(m_.shape_id(i)))
      error("bitcast", i, "changes the number of bytes");
  }

  // False where something is wrong with it.
  bool broadcast(InstId i) {
    const Dims& dims = m_.attrs(i).ints(Attr::dimensions);
    const Shape &in = m_.shape(m_.operand(i, 0)), &out = m_.shape(i);
    if (static_cast<int>(dims.size()) != in.rank())
      return error("shapes", i, "names {} dimensions for an operand of {}", dims.size(), in.rank()), false;
    if (in.type != out.type && !(mixed_ && is_float(in.type) && is_float(out.type)))
      return error("shapes", i, "changes the element type"), false;
    for (size_t k = 0; k < dims.size(); ++k)
      if (std::count(dims.begin(), dims.end(), dims[k]) > 1)
        return error("attributes", i, "names dimension {} twice", dims[k]), false;
    for (size_t k = 0; k < dims.size(); ++k)
      if (dims[k] < 0 || dims[k] >= out.rank() ||
          (out.dims[static_cast<size_t>(dims[k])] != in.dims[k] && in.dims[k] != kUnbounded))
        return error("shapes", i, "maps dimension {} of {} to dimension {} of {}", k,
                     text(m_.shape_id(m_.operand(i, 0))), dims[k], text(m_.shape_id(i))),
               false;
    return true;
  }

  void instruction(InstId i) {
    Opcode op = m_.op(i);
    const OpInfo& info = op_info(op);
    size_t count = m_.operand_count(i);
    if (info.arity != kVar && static_cast<size_t>(info.arity) != count && !(op == Opcode::Infeed && count == 0))
      return error("operands", i, "takes {} operand(s), has {}", info.arity, count);
    const AttrSet& a = m_.attrs(i);
    for (const OwnAttr& own : info.attrs)
      if (!own.optional && !a.has(own.key) && own.key != Attr::is_associative)
        return error("attributes", i, "lacks attribute {}", attr_text(own.key));
    if (!well_formed(i, m_.shape_id(i))) return;
    // Of an operand that is not, its own line tells; no rule below may read it.
    for (InstId o : m_.operands(i))
      if (judged(m_.shape_id(o)).fault != Judgement::Fault::kNone) return;
    if (judged(m_.shape_id(i)).unbounded)
      return error("dynamism", i, "has unbounded shape {}, which XLA does not compile", text(m_.shape_id(i)));
    if (layouts_) kept_layout(i);
    if (layouts_ && settled_)
      if (std::string why = memory_space_error(m_, i); !why.empty()) return error("layouts", i, "{}", why);
    if (layouts_ && settled_ && op == Opcode::Scan && !a.flag(Attr::is_associative))
      return error("layouts", i, "is a scan that is not associative, which is a loop where layouts are assigned");
    if (op == Opcode::Bitcast) {
      bitcast(i);
      return of_operation(i);
    }
    if (op == Opcode::Reshape && m_.shape(i).is_array() && !m_.shape(i).is_dynamic() &&
        m_.shape(i).elements_count() != m_.shape(m_.operand(i, 0)).elements_count())
      return error("shapes", i, "reshapes {} to {}: the number of elements differs",
                   text(m_.shape_id(m_.operand(i, 0))), text(m_.shape_id(i)));
    if (op == Opcode::Broadcast) {
      if (!broadcast(i)) return;
      return of_operation(i);
    }
    if (op == Opcode::Convert && (!m_.shape(i).is_array() || m_.shape(i).dims != m_.shape(m_.operand(i, 0)).dims))
      return error("shapes", i, "changes the dimensions");
    if (op == Opcode::Iota) {
      int64_t d = a.integer(Attr::iota_dimension);
      if (d < 0 || d >= m_.shape(i).rank()) return error("attributes", i, "has no dimension {}", d);
    }
    if (op == Opcode::Constant && !u_.compatible(m_.literal(i).shape, m_.shape_id(i)))
      return error("shapes", i, "holds a literal of shape {}", text(m_.literal(i).shape));
    bool dynamic = m_.shape(i).is_dynamic();
    for (InstId o : m_.operands(i)) dynamic |= m_.shape(o).is_dynamic();
    Inferred inferred = infer_shape(m_, op, m_.operands(i), a, mixed_);
    if (!inferred.error.empty()) return error("shapes", i, "{}", inferred.error);
    if (inferred.shape.valid() && !dynamic && !same(inferred.shape, m_.shape_id(i), op))
      return error("shapes", i, "has shape {}, its operands give {}", text(m_.shape_id(i)), text(inferred.shape));
    if (std::string why = expanded_call_error(m_, i); !why.empty()) return error("custom-call", i, "{}", why);
    if (layouts_) handed_on(i);
    if (!a.called.empty() || op == Opcode::Conditional) calls(i);
    of_operation(i);
  }

  void of_operation(InstId i) {
    size_t before = errors_.size();
    auto tell = [&](std::string_view rule, std::string message) {
      if (errors_.size() == before) error(std::string(rule).c_str(), i, "{}", message);  // the first of an instruction
    };
    if (before < limit_) verify_operation(m_, i, settled_, mixed_, std::ref(tell));
  }

  // What only hands values on does not change their precision, mixed or not (xla/service/hlo_verifier.cc, CheckShape).
  static bool keeps_precision(Opcode op) {
    switch (op) {
      case Opcode::Bitcast:
      case Opcode::Call:
      case Opcode::Conditional:
      case Opcode::Constant:
      case Opcode::CustomCall:
      case Opcode::GetTupleElement:
      case Opcode::Infeed:
      case Opcode::Outfeed:
      case Opcode::OptBarrier:
      case Opcode::Parameter:
      case Opcode::Recv:
      case Opcode::RecvDone:
      case Opcode::Send:
      case Opcode::SendDone:
      case Opcode::Tuple:
      case Opcode::While:
        return true;
      default:
        return false;
    }
  }
  bool like_but_for_precision(ShapeId a, ShapeId b) const {
    const Shape &x = u_[a], &y = u_[b];
    if (x.is_tuple() || y.is_tuple()) {
      if (x.is_tuple() != y.is_tuple() || x.elements.size() != y.elements.size()) return false;
      for (size_t k = 0; k < x.elements.size(); ++k)
        if (!like_but_for_precision(x.elements[k], y.elements[k])) return false;
      return true;
    }
    return x.dims == y.dims && (x.type == y.type || (is_float(x.type) && is_float(y.type)));
  }
  // Types of dots and convolutions may be chosen freely.
  bool same(ShapeId a, ShapeId b, Opcode op) const {
    if (u_.compatible(a, b)) return true;
    if (op == Opcode::Dot || op == Opcode::Convolution) return u_[a].dims == u_[b].dims && u_[b].is_array();
    if (mixed_ && !keeps_precision(op)) return like_but_for_precision(a, b);
    if (op == Opcode::TopK)
      return u_[b].is_tuple() && u_[b].elements.size() == 2 && u_.compatible(u_[a].elements[0], u_[b].elements[0]);
    return false;
  }

  // What is wrong with a shape by itself, if anything; each is judged once a module.
  struct Judgement {
    enum class Fault : uint8_t { kUnknown, kNone, kLayout, kSize } fault = Fault::kUnknown;
    bool unbounded = false;
  };
  Judgement judged(ShapeId s) {
    if (judged_.size() <= s.value) judged_.resize(u_.shape_count() + 1);
    if (judged_[s.value].fault != Judgement::Fault::kUnknown) return judged_[s.value];
    const Shape& shape = u_[s];
    Judgement out;
    out.fault = Judgement::Fault::kNone;
    for (ShapeId e : shape.elements) {
      Judgement part = judged(e);
      out.unbounded |= part.unbounded;
      if (out.fault == Judgement::Fault::kNone) out.fault = part.fault;
    }
    if (shape.is_array()) {
      out.unbounded = std::find(shape.dims.begin(), shape.dims.end(), kUnbounded) != shape.dims.end();
      std::vector<bool> seen(shape.dims.size(), false);
      for (int64_t d : shape.layout.minor_to_major) {
        if (d < 0 || d >= shape.rank() || seen[static_cast<size_t>(d)]) {
          out.fault = Judgement::Fault::kLayout;
          break;
        }
        seen[static_cast<size_t>(d)] = true;
      }
      if (!u_.bytes(s).fits()) out.fault = Judgement::Fault::kSize;
    }
    return judged_[s.value] = out;
  }
  // False: an error was told.
  bool well_formed(InstId i, ShapeId s) {
    switch (judged(s).fault) {
      case Judgement::Fault::kLayout:
        error("layouts", i, "has layout {} which is no permutation", u_.shape_text(s));
        return false;
      case Judgement::Fault::kSize:
        error("shapes", i, "has shape {}, whose bytes do not fit into 63 bits", text(s));
        return false;
      default:
        return true;
    }
  }

  void kept_layout(InstId i) {
    if (!keeps_layout(m_.op(i))) return;
    const Shape& s = m_.shape(i);
    if (!s.is_array()) return;
    for (InstId o : m_.operands(i)) {
      const Shape& from = m_.shape(o);
      if (from.is_array() && from.rank() == s.rank() && from.layout.minor_to_major != s.layout.minor_to_major)
        return error("layouts", i, "does not change layouts, but makes {} of {}", u_.shape_text(m_.shape_id(i)),
                     u_.shape_text(m_.shape_id(o)));
    }
  }

  void signature(InstId i, CompId c, const std::vector<ShapeId>& params, ShapeId result, const char* what) {
    const Computation& comp = m_.comp(c);
    if (comp.params.size() != params.size())
      return error("calls", i, "{} {} takes {} parameters, {} are passed", what, m_.comp_name(c), comp.params.size(),
                   params.size());
    for (size_t n = 0; n < params.size(); ++n)
      if (!u_.compatible(m_.shape_id(comp.params[n]), params[n]))
        return error("calls", i, "{} {} takes {} as parameter {}, {} is passed", what, m_.comp_name(c),
                     text(m_.shape_id(comp.params[n])), n, text(params[n]));
    if (result.valid() && !u_.compatible(m_.shape_id(comp.root), result))
      return error("calls", i, "{} {} returns {}, expected {}", what, m_.comp_name(c), text(m_.shape_id(comp.root)),
                   text(result));
    if (!layouts_) return;
    for (size_t n = 0; n < params.size(); ++n)
      if (!same_layout(m_.shape_id(comp.params[n]), params[n]))
        return error("layouts", i, "{} {} takes {} as parameter {}, {} is passed", what, m_.comp_name(c),
                     u_.shape_text(m_.shape_id(comp.params[n])), n, u_.shape_text(params[n]));
    if (result.valid() && !same_layout(m_.shape_id(comp.root), result))
      error("layouts", i, "{} {} returns {}, expected {}", what, m_.comp_name(c), u_.shape_text(m_.shape_id(comp.root)),
            u_.shape_text(result));
  }

  // The order of dimensions in memory, of every leaf; where XLA verifies, tiles and memory spaces, too.
  bool same_layout(ShapeId a, ShapeId b) const {
    const Shape &x = u_[a], &y = u_[b];
    if (a == b) return true;
    if (x.is_tuple()) {
      for (size_t k = 0; k < x.elements.size(); ++k)
        if (!same_layout(x.elements[k], y.elements[k])) return false;
      return true;
    }
    auto order = [](const Shape& s) {
      return s.has_layout ? s.layout.minor_to_major : default_minor_to_major(s.rank());
    };
    return !x.is_array() || (order(x) == order(y) && (!settled_ || x.layout.rest == y.layout.rest));
  }
  // What hands a value on does not lay it out anew.
  void handed_on(InstId i) {
    ShapeId out = m_.shape_id(i);
    auto as = [&](ShapeId from) {
      if (!same_layout(from, out))
        error("layouts", i, "does not change layouts, but makes {} of {}", u_.shape_text(out), u_.shape_text(from));
    };
    switch (m_.op(i)) {
      case Opcode::Tuple:
        for (size_t k = 0; k < m_.operand_count(i); ++k)
          if (ShapeId from = m_.shape_id(m_.operand(i, k)); !same_layout(from, u_[out].elements[k]))
            return error("layouts", i, "has {} as element {} of {}", u_.shape_text(from), k, u_.shape_text(out));
        return;
      case Opcode::GetTupleElement:
        return as(u_[m_.shape_id(m_.operand(i, 0))].elements[static_cast<size_t>(m_.attrs(i).integer(Attr::index))]);
      case Opcode::OptBarrier:
      case Opcode::AddDependency:
      case Opcode::Domain:
      case Opcode::While:
        return as(m_.shape_id(m_.operand(i, 0)));
      default:
        return;
    }
  }

  void calls(InstId i) {
    const AttrSet& a = m_.attrs(i);
    std::vector<ShapeId> shapes;
    for (InstId o : m_.operands(i)) shapes.push_back(m_.shape_id(o));
    auto scalars = [&](size_t first, size_t count) {
      std::vector<ShapeId> out;
      for (size_t n = 0; n < count; ++n) out.push_back(u_.scalar(u_[shapes[first + n]].type));
      return out;
    };
    auto binary = [&](size_t count, CompId f, const char* what) {
      // Reducers may work in a wider type than their inputs: only the number is fixed.
      if (m_.comp(f).params.size() != 2 * count)
        return error("calls", i, "{} {} takes {} parameters, expected {}", what, m_.comp_name(f),
                     m_.comp(f).params.size(), 2 * count);
      for (InstId p : m_.comp(f).params)
        if (!m_.shape(p).is_scalar())
          return error("calls", i, "{} {} takes a parameter that is no scalar", what, m_.comp_name(f));
    };
    switch (m_.op(i)) {
      case Opcode::Call:
        return signature(i, a.comp(Attr::to_apply), shapes, m_.shape_id(i), "callee");
      case Opcode::Fusion:
        // XLA takes operands that the body has no parameter for; whoever runs a fusion does not.
        if (settled_ && shapes.size() > m_.comp(a.comp(Attr::calls)).params.size())
          shapes.resize(m_.comp(a.comp(Attr::calls)).params.size());
        return signature(i, a.comp(Attr::calls), shapes, m_.shape_id(i), "fused computation");
      case Opcode::While: {
        signature(i, a.comp(Attr::condition), shapes, u_.scalar(ElementType::Pred), "condition");
        return signature(i, a.comp(Attr::body), shapes, shapes[0], "body");
      }
      case Opcode::Conditional: {
        if (a.called.size() + 1 != shapes.size())
          return error("calls", i, "has {} branches and {} operands for them", a.called.size(), shapes.size() - 1);
        for (size_t n = 0; n < a.called.size(); ++n)
          signature(i, a.called[n], {shapes[n + 1]}, m_.shape_id(i), "branch");
        return;
      }
      case Opcode::Reduce:
      case Opcode::ReduceWindow: {
        size_t n = shapes.size() / 2;
        return binary(n, a.comp(Attr::to_apply), "reducer");
      }
      case Opcode::Map: {
        CompId f = a.comp(Attr::to_apply);
        std::vector<ShapeId> params = scalars(0, shapes.size());
        for (size_t n = 0; settled_ && mixed_ && n < params.size() && n < m_.comp(f).params.size(); ++n)
          if (ShapeId its = m_.shape_id(m_.comp(f).params[n]);
              u_[its].is_scalar() && is_float(u_[its].type) && is_float(u_[params[n]].type))
            params[n] = its;
        return signature(i, f, params, ShapeId(), "function");
      }
      case Opcode::Sort: {
        CompId f = a.comp(Attr::to_apply);
        std::vector<ShapeId> params;
        for (ShapeId s : shapes) params.insert(params.end(), 2, u_.scalar(u_[s].type));
        // XLA lets comparators take another precision of floats; whoever runs a sort does not.
        for (size_t n = 0; settled_ && n < params.size() && n < m_.comp(f).params.size(); ++n)
          if (ShapeId its = m_.shape_id(m_.comp(f).params[n]);
              u_[its].is_scalar() && is_float(u_[its].type) && is_float(u_[params[n]].type))
            params[n] = its;
        return signature(i, f, params, u_.scalar(ElementType::Pred), "comparator");
      }
      case Opcode::SelectAndScatter: {
        ShapeId scalar = u_.scalar(u_[shapes[0]].type);
        signature(i, a.comp(Attr::select), {scalar, scalar}, u_.scalar(ElementType::Pred), "select");
        return binary(1, a.comp(Attr::scatter), "scatter");
      }
      case Opcode::Scatter: {
        size_t n = shapes.size() / 2;
        return binary(n, a.comp(Attr::to_apply), "combiner");
      }
      default:
        return;
    }
  }

  void module() {
    const ModuleConfig& config = m_.config();
    const Computation& entry = m_.comp(m_.entry());
    if (config.has_entry_layout) {
      for (size_t n = 0; n <= config.entry_params.size(); ++n) {
        bool result = n == config.entry_params.size();
        ShapeId s = result ? config.entry_result : config.entry_params[n];
        if (judged(s).fault == Judgement::Fault::kLayout)
          return error("layouts", InstId(), "entry_computation_layout has {} with a layout that is no permutation",
                       u_.shape_text(s));
      }
      if (config.entry_params.size() != entry.params.size())
        return error("entry", InstId(), "entry_computation_layout has {} parameters, the entry {}",
                     config.entry_params.size(), entry.params.size());
      for (size_t n = 0; n < entry.params.size(); ++n)
        if (!u_.compatible(config.entry_params[n], m_.shape_id(entry.params[n])))
          error("entry", entry.params[n], "entry_computation_layout says {}", text(config.entry_params[n]));
      if (!u_.compatible(config.entry_result, m_.shape_id(entry.root)))
        error("entry", entry.root, "entry_computation_layout says {}", text(config.entry_result));
    }
    for (bool donor : {false, true}) {
      const char* what = donor ? "buffer_donor" : "input_output_alias";
      std::set<std::pair<int64_t, Dims>> used;
      for (const AliasEntry& e : parse_aliases(donor ? config.buffer_donor : config.input_output_alias)) {
        if (e.number < 0 || e.number >= static_cast<int64_t>(entry.params.size())) {
          error("aliasing", InstId(), "{} names parameter {} of {}", what, e.number, entry.params.size());
          continue;
        }
        ShapeId to = u_.subshape(m_.shape_id(entry.params[static_cast<size_t>(e.number)]), e.index);
        if (!to.valid())
          error("aliasing", InstId(), "{} names an element of parameter {} that does not exist", what, e.number);
        if (!used.insert({e.number, e.index}).second)
          error("aliasing", InstId(), "{} names one element of parameter {} twice", what, e.number);
        if (donor || !to.valid()) continue;
        ShapeId from = u_.subshape(m_.shape_id(entry.root), e.output);
        if (settled_ && from.valid() && e.must && !u_.compatible(from, to))
          error("aliasing", InstId(), "input_output_alias must join {} and {}", text(from), text(to));
        if (from.valid() && !free_ && u_.byte_size(from) != u_.byte_size(to))
          error("aliasing", InstId(), "input_output_alias joins {} and {}", u_.shape_text_plain(from),
                u_.shape_text_plain(to));
      }
    }
    if (settled_)
      verify_between(m_, [&](std::string_view rule, InstId i, const std::string& message) {
        error(std::string(rule).c_str(), i, "{}", message);
      });
    verify_buffers(m_, [&](InstId i, const std::string& message) { error("buffers", i, "{}", message); });
    auto callers = m_.callers();
    for (CompId c : m_.computations()) {
      size_t fusions = 0;
      InstId sequential;
      for (InstId i : callers[c.value]) {
        fusions += m_.op(i) == Opcode::Fusion;
        if (m_.op(i) == Opcode::While || m_.op(i) == Opcode::Conditional || m_.op(i) == Opcode::Call) sequential = i;
      }
      // What control flow calls has a schedule, a fusion's body has none (xla/hlo/ir/hlo_schedule.cc, Verify).
      if (settled_ && m_.config().is_scheduled && fusions && sequential.valid())
        error("fusion", sequential, "calls {}, the body of a fusion, in a scheduled module", m_.comp_name(c));
      if (fusions > 1) error("fusion", InstId(), "computation {} is the body of {} fusions", m_.comp_name(c), fusions);
    }
  }

  const Module& m_;
  Universe& u_;
  size_t limit_;
  bool free_, layouts_, settled_, mixed_;  // free_: layouts and sizes in memory do not count
  std::vector<VerifyError> errors_;
  std::vector<Judgement> judged_;  // by ShapeId
};

}  // namespace

std::vector<VerifyError> verify_module(const Module& m, size_t limit, Layouts layouts, Moment moment,
                                       Precision precision) {
  return Verifier(m, limit, layouts, moment, precision).run();
}

void check_verifies(const Module& m) {
  const std::vector<VerifyError> errors = verify_module(m);
  if (errors.empty()) return;
  std::string text = "the module does not verify:";
  for (const VerifyError& e : errors) text += fmt::format("\n{} [{}]", e.message, e.rule);
  fail(FailureKind::kInvalid, "{}", text);
}

}  // namespace hlo
