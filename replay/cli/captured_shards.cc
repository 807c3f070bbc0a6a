#include "replay/cli/captured_shards.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ir/base/check.h"

namespace hlo {
namespace {

constexpr size_t kMostDimensions = 64, kMostParts = 8192;

bool whole_numbers(const Json& list) {
  return list.is_array() && list.size() <= kMostDimensions && std::all_of(list.begin(), list.end(), [](const Json& n) {
           return n.is_number_integer() && n.get<int64_t>() >= 0 && n.get<int64_t>() <= (int64_t{1} << 48);
         });
}

// Elements; -1: more than can be.
int64_t volume(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(out, size, &out)) return -1;
  return out;
}

std::vector<int64_t> sizes_of(const CapturedShard& s) {
  std::vector<int64_t> out;
  for (const auto& [begin, end] : s.index) out.push_back(end - begin);
  return out;
}

// Copies a part into the whole, row by row; both row-major.
void place(const NamedArray& part, const CapturedShard& shard, const std::vector<int64_t>& shape, size_t element,
           std::string& whole) {
  const size_t rank = shape.size();
  const std::vector<int64_t> sizes = sizes_of(shard);
  if (part.bytes.empty()) return;
  if (rank == 0) {
    whole = part.bytes;
    return;
  }
  const size_t row = static_cast<size_t>(sizes[rank - 1]) * element;
  std::vector<int64_t> at(rank, 0);
  for (size_t from = 0; from < part.bytes.size(); from += row) {
    int64_t to = 0;
    for (size_t d = 0; d < rank; ++d) to = to * shape[d] + shard.index[d].first + at[d];
    std::memcpy(whole.data() + static_cast<size_t>(to) * element, part.bytes.data() + from, row);
    for (size_t d = rank - 1; d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

using Index = std::vector<std::pair<int64_t, int64_t>>;

bool overlap(const Index& a, const Index& b) {
  for (size_t d = 0; d < a.size(); ++d)
    if (a[d].second <= b[d].first || b[d].second <= a[d].first) return false;
  return true;
}

// The array of its parts; nothing where one is not there, or they are none of it.
std::optional<NamedArray> joined(const CapturedArray& array, const std::map<std::string, NamedArray>& parts) {
  std::map<Index, const NamedArray*> found;  // devices may hold the same part
  for (const CapturedShard& s : array.shards) {
    const auto at = parts.find(fmt::format("{}.device{}", array.name, s.device));
    const NamedArray*& part = found[s.index];
    if (!part && at != parts.end()) part = &at->second;
  }
  NamedArray out;
  out.name = array.name;
  size_t element = 0;
  int64_t covered = 0;
  for (const auto& [index, part] : found) {
    const int64_t elements = volume(sizes_of({0, index}));
    if (!part || elements < 0 || part->dims != sizes_of({0, index}) || (elements == 0) != part->bytes.empty())
      return std::nullopt;
    if (elements == 0) continue;
    const size_t size = part->bytes.size() / static_cast<size_t>(elements);
    if (size * static_cast<size_t>(elements) != part->bytes.size() || (element && size != element) ||
        (!out.descr.empty() && out.descr != part->descr))
      return std::nullopt;
    element = size, out.descr = part->descr, out.type = part->type;
    if (__builtin_add_overflow(covered, elements, &covered)) return std::nullopt;
  }
  if (found.size() > kMostParts) return std::nullopt;
  for (auto one = found.begin(); one != found.end(); ++one)
    for (auto other = std::next(one); other != found.end(); ++other)
      if (overlap(one->first, other->first)) return std::nullopt;
  // Parts that are all there and as many elements as the whole: no more memory than the files have.
  if (!element || covered != volume(array.shape)) return std::nullopt;
  for (int64_t size : array.shape) out.dims.push_back(size);
  out.bytes.resize(static_cast<size_t>(covered) * element);
  for (const auto& [index, part] : found) place(*part, {0, index}, array.shape, element, out.bytes);
  return out;
}

}  // namespace

std::optional<CapturedArray> captured_array(const Json& told) {
  CapturedArray out;
  if (!told.is_object() || !told.contains("name") || !told["name"].is_string() || !told.contains("shape") ||
      !whole_numbers(told["shape"]))
    return std::nullopt;
  out.name = told["name"].get<std::string>();
  out.shape = told["shape"].get<std::vector<int64_t>>();
  for (const Json& shard : told.value("shards", Json::array())) {
    CapturedShard s;
    if (!shard.is_object() || !shard.contains("device") || !shard["device"].is_number_integer() ||
        !shard.contains("index") || !shard["index"].is_array() || shard["index"].size() != out.shape.size())
      return std::nullopt;
    s.device = shard["device"].get<int64_t>();
    for (size_t d = 0; d < out.shape.size(); ++d) {
      const Json& range = shard["index"][d];
      if (!whole_numbers(range) || range.size() != 2 || range[0] > range[1] || range[1] > out.shape[d])
        return std::nullopt;
      s.index.emplace_back(range[0].get<int64_t>(), range[1].get<int64_t>());
    }
    out.shards.push_back(std::move(s));
  }
  return out;
}

std::vector<CapturedArray> join_shards(const std::vector<std::string>& files, const std::vector<CapturedArray>& wanted,
                                       const MostBytes& most, const std::string& out) {
  const MostBytes limit = [&most](const std::string& name) { return most(name.substr(0, name.find(".device"))); };
  std::vector<NamedArray> whole;
  std::map<std::string, NamedArray> parts;
  for (const std::string& file : files)
    for (NamedArray& array : read_npz(file, limit)) {
      if (!array.name.starts_with("p")) continue;
      if (array.bytes.empty() && volume(array.dims) != 0)
        fail(FailureKind::kUsage, "{}: the array {} is larger than the parameter, or none of the module's", file,
             array.name);
      if (array.name.find(".device") != std::string::npos)
        parts.emplace(array.name, std::move(array));
      else if (file == files[0])
        whole.push_back(std::move(array));
    }
  std::vector<CapturedArray> missing;
  for (const CapturedArray& array : wanted) {
    std::optional<NamedArray> made = joined(array, parts);
    if (made)
      whole.push_back(std::move(*made));
    else
      missing.push_back(array);
  }
  write_npz(out, whole);
  return missing;
}

}  // namespace hlo
