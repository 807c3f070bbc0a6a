#include "replay/record/importer/proto_ids.h"

#include <unordered_map>

#include "parser/proto/proto_reader.h"
#include "replay/os/confined_path.h"

namespace hlo {
namespace {

// Fields of protobuf's wire format, one after the other; ends at what is none.
class WireFields {
 public:
  explicit WireFields(std::string_view bytes) : rest_(bytes) {}
  bool next() {
    uint64_t tag = 0;
    if (rest_.empty() || !varint(&tag)) return false;
    field = static_cast<uint32_t>(tag >> 3);
    text = {}, number = 0;
    size_t size = 0;
    switch (tag & 7) {
      case 0:
        return varint(&number);
      case 1:
        size = 8;
        break;
      case 2: {
        uint64_t length = 0;
        if (!varint(&length) || length > rest_.size()) return false;
        size = static_cast<size_t>(length);
        break;
      }
      case 5:
        size = 4;
        break;
      default:
        return false;
    }
    if (size > rest_.size()) return false;
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  uint32_t field = 0;
  uint64_t number = 0;
  std::string_view text;

 private:
  bool varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      *out |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  std::string_view rest_;
};

// xla/service/hlo.proto
constexpr uint32_t kModuleOfProto = 1, kComputations = 3, kName = 1, kComputationId = 5;

}  // namespace

ProtoIds::ProtoIds(std::string bytes, const std::string& label) : bytes_(std::move(bytes)) {
  if (bytes_.starts_with("\x1f\x8b")) bytes_ = gunzip(bytes_, label);
  for (WireFields proto(bytes_); proto.next();) {
    if (proto.field != kModuleOfProto) continue;
    for (WireFields module(proto.text); module.next();) {
      if (module.field != kComputations) continue;
      std::string_view name;
      int64_t id = -1;
      for (WireFields c(module.text); c.next();) {
        if (c.field == kName) name = c.text;
        if (c.field == kComputationId) id = static_cast<int64_t>(c.number);
      }
      computations_.emplace_back(name, id);
    }
  }
}

StageIds ProtoIds::of(const Module& m) const {
  StageIds out;
  out.computation.assign(m.comp_slots(), -1);
  std::unordered_map<StrId, int64_t> computations;
  computations.reserve(computations_.size());
  for (const auto& [name, id] : computations_)
    if (StrId n = m.u().find_str(name); n.valid()) computations.emplace(n, id);
  for (CompId c : m.computations())
    if (auto found = computations.find(m.comp(c).name); found != computations.end())
      out.computation[c.value] = found->second;
  return out;
}

ProtoIds ids_beside(const std::string& folder, const std::string& file) {
  if (!file.ends_with(".txt")) return {};
  const std::string stem = file.substr(0, file.size() - 4);
  for (const char* ending : {".hlo.pb", ".hlo.pb.gz"}) {
    bool missing = false;
    if (!why_not_confined(folder, stem + ending, &missing).empty()) continue;
    try {
      return {read_confined(folder, stem + ending), stem + ending};
    } catch (const Failure&) {  // the text is enough
      return {};
    }
  }
  return {};
}

}  // namespace hlo
