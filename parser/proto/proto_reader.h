// XLA's protos to modules (xla/hlo/ir/hlo_module.cc, HloModule::CreateFromProto).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace xla {
class HloModuleProto;
class LiteralProto;
}  // namespace xla

namespace hlo {

// What a file of protos holds besides the module.
struct ProtoContents {
  std::string kind;  // "HloModuleProto", "HloProto", "HloSnapshot", "HloUnoptimizedSnapshot"
  std::unique_ptr<Module> module;
  std::vector<LitId> arguments;  // of a snapshot
  LitId result;                  // of a snapshot; invalid when absent
  bool in_memory_order = false;  // do instructions stand as their ids say?
};

// Does the text look like a binary proto or a gzip stream of one?
bool looks_like_proto(std::string_view bytes);

// Who reads an array stands in the order of the readers in memory, as a builder made them, or as the proto lists them.
enum class UserOrder : uint8_t { kMemory, kListed };

// Binary, gzip or text form, told apart by content. Throws Failure(kIo / kUnsupported). Instructions of a module
// without a schedule stand as XLA has them in memory, by their ids; a proto lists them in post order.
ProtoContents read_proto(std::string_view bytes, const std::string& label, const std::shared_ptr<Universe>& universe,
                         UserOrder users = UserOrder::kMemory);

// The same message in another form, unknown fields included: from binary, gzip or text to `.pb`, `.pb.gz` or `.pbtxt`.
std::string reencode_proto(std::string_view bytes, const std::string& label, std::string_view ending);

// Protobuf's reader of texts recurses at every bracket, known field or not: Failure(kUnsupported) where they nest deep.
void check_proto_nesting(std::string_view text, const std::string& label);
std::string gunzip(std::string_view bytes, const std::string& label);
std::string gzip(std::string_view bytes);

LitId literal_from_proto(const xla::LiteralProto& proto, Universe& universe);

}  // namespace hlo
