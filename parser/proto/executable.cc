#include "parser/proto/executable.h"

#include <algorithm>
#include <optional>

namespace hlo {
namespace {

constexpr int kDeepest = 8;              // messages around a module; today's are three
constexpr size_t kMostFields = 1 << 20;  // of one message
constexpr size_t kLeast = 24;            // bytes of a module with an instruction

struct WireField {
  uint64_t number = 0;
  bool is_bytes = false;
  std::string_view bytes;  // of a field with a length
};

// Fields one after the other; `bad` where the bytes are none.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  std::string_view rest() const { return rest_; }
  bool bad() const { return bad_; }

  std::optional<uint64_t> varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
      auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      if (shift < 64) out |= uint64_t{byte & 0x7fU} << shift;
      if (!(byte & 0x80)) return out;
    }
    bad_ = true;
    return {};
  }

  std::optional<WireField> next() {
    if (rest_.empty() || bad_) return {};
    std::optional<uint64_t> tag = varint();
    if (!tag) return {};
    WireField out;
    out.number = *tag >> 3;
    size_t size = 0;
    switch (*tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        size = 8;
        break;
      case 5:
        size = 4;
        break;
      case 2:
        if (std::optional<uint64_t> n = varint(); n && *n <= rest_.size())
          size = static_cast<size_t>(*n), out.is_bytes = true;
        else
          bad_ = true;
        break;
      default:
        bad_ = true;
    }
    if (bad_ || !out.number || out.number > 0x1fffffff || size > rest_.size()) {
      bad_ = true;
      return {};
    }
    out.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

bool plain_name(std::string_view s) {
  return !s.empty() && s.size() < 4096 &&
         std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) > 32 && c != 127; });
}

// The module's name if the fields are those of one: 1 and 2 are names, 3 a computation with a name in front.
std::optional<std::string> module_name(const std::vector<WireField>& fields) {
  std::string_view name, entry;
  bool computation = false;
  for (const WireField& f : fields) {
    if (!f.is_bytes) continue;
    if (f.number == 1) name = f.bytes;
    if (f.number == 2) entry = f.bytes;
    if (f.number == 3 && !computation) {
      std::optional<WireField> first = WireReader(f.bytes).next();
      computation = first && first->number == 1 && first->is_bytes && plain_name(first->bytes);
      if (!computation) return {};
    }
  }
  if (!plain_name(name) || !plain_name(entry) || !computation) return {};
  return std::string(name);
}

void search(std::string_view bytes, int depth, std::vector<CarriedModule>* out) {
  if (bytes.size() < kLeast) return;
  std::vector<WireField> fields;
  WireReader reader(bytes);
  while (std::optional<WireField> f = reader.next()) {
    if (f->is_bytes) fields.push_back(*f);
    if (fields.size() > kMostFields) return;
  }
  if (reader.bad()) return;
  if (std::optional<std::string> name = module_name(fields)) {
    out->push_back({*name, bytes});
    return;
  }
  if (depth == kDeepest) return;
  for (const WireField& f : fields) search(f.bytes, depth + 1, out);
}

}  // namespace

std::vector<CarriedModule> carried_modules(std::string_view bytes) {
  std::vector<CarriedModule> out;
  search(bytes, 0, &out);
  if (!out.empty()) return out;
  WireReader reader(bytes);
  std::optional<uint64_t> size = reader.varint();
  if (size && *size < reader.rest().size()) search(reader.rest().substr(static_cast<size_t>(*size)), 0, &out);
  return out;
}

}  // namespace hlo
