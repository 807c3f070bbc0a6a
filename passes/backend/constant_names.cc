// sanitize-constant-names.
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace hlo {

bool run_sanitize_constant_names(Module& m, PassContext& ctx) {
  NameUniquer names('_');
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c))
      if (m.op(i) != Opcode::Constant) names.unique(m.inst_name(i));
  bool any = false;
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::Constant) continue;
      ctx.claim(true);  // of every constant, whether its name changes or not
      std::string wish(m.inst_name(i));
      for (char& ch : wish)
        if (ch == '.' || ch == '-') ch = '_';
      StrId legal = m.u().str(names.unique(wish));
      if (m[i].name == legal) continue;
      if (!ctx.spend(m, "legal LLVM name", {i})) return any;
      m.set_uniquified_name(i, m.u().text(legal));  // taken from now on, for what is named later
      m.set_name(i, legal);
      any = true;
    }
  return any;
}

}  // namespace hlo
