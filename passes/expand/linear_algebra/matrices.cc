#include "passes/expand/linear_algebra/matrices.h"

#include <map>

namespace hlo {

std::string operands_signature(const Module& m, InstId i) {
  std::string out;
  for (InstId o : m.operands(i)) out += (out.empty() ? "" : "_") + named(m, m.shape_id(o));
  return out;
}

CompId sum_reducer(Module& m, ElementType type) {
  std::string name(type_name(type));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return toupper(c); });
  return make_reducer(m, "add_" + name, Opcode::Add, type);
}

InstId unit_matrix(Client& b, ElementType type, int64_t rows, int64_t columns) {
  InstId down = b.iota(ElementType::U32, {rows}, 0), across = b.iota(ElementType::U32, {columns}, 0);
  InstId x = b.broadcast(down, {rows, columns}, {0}), y = b.broadcast(across, {rows, columns}, {1});
  return b.convert(b.compare(x, y, "EQ"), type);
}

InstId triangle_mask(Client& b, int64_t rows, int64_t columns, int64_t shift) {
  InstId down = b.iota(ElementType::S32, {rows}, 0), across = b.iota(ElementType::S32, {columns}, 0);
  InstId moved = b.op(Opcode::Add, {down, b.filled(ElementType::S32, shift, {rows})});
  return b.compare(b.broadcast(moved, {rows, columns}, {0}), b.broadcast(across, {rows, columns}, {1}), "GE");
}

InstId diagonal_mask(Client& b, const Dims& dims) {
  int64_t n = dims.back();
  auto rank = static_cast<int64_t>(dims.size());
  InstId down = b.iota(ElementType::S32, {n}, 0), across = b.iota(ElementType::S32, {n}, 0);
  InstId moved = b.op(Opcode::Add, {down, b.filled(ElementType::S32, int64_t{0}, {n})});
  InstId same = b.compare(b.broadcast(moved, {n, n}, {0}), b.broadcast(across, {n, n}, {1}), "EQ");
  return b.broadcast(same, dims, {rank - 2, rank - 1});
}

InstId diagonal_of(Client& b, InstId x) {
  const Dims dims = b.dims(x);
  InstId kept = b.op(Opcode::Select, {diagonal_mask(b, dims), x, b.filled(b.type(x), 0.0, dims)});
  return make(b.m, b.comp, Opcode::Reduce, {kept, b.number(b.type(x), 0.0)},
              attrs_of(b.u, Opcode::Reduce,
                       {{Attr::dimensions, Dims{static_cast<int64_t>(dims.size()) - 2}},
                        {Attr::to_apply, sum_reducer(b.m, b.type(x))}}));
}

bool replace_by_calls(Module& m, PassContext& ctx, const char* rule,
                      const std::function<std::string(InstId)>& signed_as, const std::function<CompId(InstId)>& made) {
  std::map<std::string, CompId> known;
  bool any = false;
  for (CompId c : m.nonfusion_computations())
    for (InstId i : m.post_order(c)) {
      std::string name = signed_as(i);
      if (name.empty()) continue;
      if (!ctx.spend(m, rule, {i})) return any;
      auto at = known.find(name);
      if (at == known.end()) at = known.emplace(name, made(i)).first;
      std::vector<InstId> operands(m.operands(i).begin(), m.operands(i).end());
      InstId call = m.add(c, {.op = Opcode::Call,
                              .shape = m.shape_id(i),
                              .operands = operands,
                              .attrs = attrs_of(m.u(), Opcode::Call, {{Attr::to_apply, at->second}}),
                              .meta = m[i].meta});
      m.replace(i, call, {.relay_control = true});
      any = true;
    }
  return any;
}

}  // namespace hlo
