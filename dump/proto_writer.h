// Modules to XLA's protos (xla/hlo/ir/hlo_module.cc, HloModule::ToProto).
#pragma once
#include <string>
#include <string_view>

#include "ir/module.h"

namespace xla {
class HloModuleProto;
class LiteralProto;
}  // namespace xla

namespace hlo {

// Elided constants are marked so that we read them back as such; XLA refuses a literal without its elements.
void module_to_proto(const Module& m, xla::HloModuleProto* out);
void literal_to_proto(const Universe& u, LitId lit, xla::LiteralProto* out);

// An HloModuleProto in the form of the ending: `.pb`, `.pb.gz` or `.pbtxt`.
std::string module_to_proto_bytes(const Module& m, std::string_view ending);

}  // namespace hlo
