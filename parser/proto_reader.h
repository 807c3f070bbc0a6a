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
  // The instructions of computations without a schedule as XLA had them in memory, which the order of a text does not
  // tell; of each whose ids are places in it.
  std::vector<std::pair<CompId, std::vector<InstId>>> orders;
};

// Does the text look like a binary proto or a gzip stream of one?
bool looks_like_proto(std::string_view bytes);

// Binary, gzip or text form, told apart by content. Throws Failure(kIo / kUnsupported).
ProtoContents read_proto(std::string_view bytes, const std::string& label, const std::shared_ptr<Universe>& universe);

// The same message in another form, unknown fields included: from binary, gzip or text to `.pb`, `.pb.gz` or `.pbtxt`.
std::string reencode_proto(std::string_view bytes, const std::string& label, std::string_view ending);

std::string gunzip(std::string_view bytes, const std::string& label);
std::string gzip(std::string_view bytes);

LitId literal_from_proto(const xla::LiteralProto& proto, Universe& universe);

}  // namespace hlo
