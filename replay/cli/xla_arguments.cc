#include "replay/cli/xla_arguments.h"

#include "replay/cli/command.h"

namespace hlo {
namespace {

// numpy's and ml_dtypes' name of an element type.
std::string numpy_name(ElementType type) {
  const std::string n(type_name(type));
  if (n == "pred") return "bool";
  if (n == "bf16") return "bfloat16";
  if (n == "c64") return "complex64";
  if (n == "c128") return "complex128";
  if (n.starts_with("f8")) return "float8_" + n.substr(2);
  if (n.starts_with("f4")) return "float4_" + n.substr(2);
  const char* kind = n[0] == 's' ? "int" : n[0] == 'u' ? "uint" : "float";
  return kind + n.substr(1);
}

}  // namespace

void write_arguments(const Module& m, const Session& session, XlaQuestion& q, const std::string& scratch) {
  q.inputs = scratch + "/inputs.npz";
  save_arrays(m.u(), q.inputs, session.arguments(), {});
  std::vector<Value> leaves;
  for (const Value& v : session.arguments()) flatten(m.u(), v, &leaves);
  for (const Value& v : leaves) q.types.push_back(numpy_name(m.u()[v.shape].type));
}

}  // namespace hlo
