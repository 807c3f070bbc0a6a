#include "replay/judge/arguments/npz.h"

#include <zip.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/base/check.h"
#include "ir/base/checked.h"
#include "ir/base/memory.h"
#include "ir/leaves.h"
#include "ir/program/buffer.h"
#include "replay/os/files.h"

namespace hlo {
namespace {

// What numpy has no types for is told beside: {"o0": "bf16", …}.
constexpr const char* kTypes = "types.json";

std::string descr_of(ElementType t) {
  int bytes = storage_bytes(t);
  switch (type_kind(t)) {
    case TypeKind::kBool:
      return "|b1";
    case TypeKind::kSigned:
      return fmt::format("{}i{}", bytes == 1 ? "|" : "<", bytes);
    case TypeKind::kUnsigned:
      return fmt::format("{}u{}", bytes == 1 ? "|" : "<", bytes);
    case TypeKind::kFloat:
      if (t == ElementType::F32 || t == ElementType::F64 || t == ElementType::F16) return fmt::format("<f{}", bytes);
      return fmt::format("{}u{}", bytes == 1 ? "|" : "<", bytes);
    case TypeKind::kComplex:
      return fmt::format("<c{}", bytes);
    case TypeKind::kOther:
      break;
  }
  return "|V0";
}

std::string npy_header(const NamedArray& a) {
  std::string shape = "(";
  for (size_t i = 0; i < a.dims.size(); ++i)
    shape += std::to_string(a.dims[i]) + (a.dims.size() == 1 || i + 1 < a.dims.size() ? "," : "") +
             (i + 1 < a.dims.size() ? " " : "");
  shape += ")";
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", a.descr, shape);
  while ((10 + dict.size() + 1) % 64) dict += ' ';
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 255);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

int64_t descr_width(const std::string& d) {
  int64_t width = 0;
  for (size_t k = 2; k < d.size(); ++k) {
    if (!isdigit(static_cast<unsigned char>(d[k])) || width > 1'000'000) return 0;
    width = width * 10 + (d[k] - '0');
  }
  return width;
}

// The dictionary in front of an array: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, as Python writes
// it.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, NamedArray& to, std::string& why) : text_(text), to_(to), why_(why) {}

  bool read() {
    bool fields[3] = {};
    if (!take('{')) return bad("its header is no dictionary");
    while (!take('}')) {
      std::string key;
      if (!word(key) || !take(':')) return bad("its header cannot be read");
      size_t which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3) return bad("its header has another field");
      if (fields[which]) return bad("its header has a field twice");
      fields[which] = true;
      if (!(which == 0 ? descr() : which == 1 ? order() : shape())) return false;
      if (!take(',')) {
        if (take('}')) break;
        return bad("its header cannot be read");
      }
    }
    spaces();
    if (at_ != text_.size()) return bad("its header continues after its dictionary");
    if (!fields[0] || !fields[1] || !fields[2]) return bad("its header lacks a field");
    return true;
  }

 private:
  bool bad(const char* why) {
    if (why_.empty()) why_ = why;
    return false;
  }
  void spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string& out) {
    spaces();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool descr() {
    if (!word(to_.descr) || to_.descr.size() < 3) return bad("its type cannot be read");
    return to_.descr[0] != '>' || bad("big-endian arrays are not read");
  }
  bool order() {
    spaces();
    for (std::string_view said : {"True", "False"})
      if (text_.substr(at_, said.size()) == said) {
        at_ += said.size(), fortran_ = said == "True";
        return true;
      }
    return bad("its order cannot be read");
  }
  bool shape() {
    if (!take('(')) return bad("its shape cannot be read");
    bool comma = true;
    while (!take(')')) {
      spaces();
      size_t digits = at_;
      int64_t n = 0;
      for (; at_ < text_.size() && isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
        if (__builtin_mul_overflow(n, int64_t{10}, &n) || __builtin_add_overflow(n, text_[at_] - '0', &n))
          return bad("its shape is too large");
      if (at_ == digits || !comma) return bad("its shape cannot be read");
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // of Python 2
      to_.dims.push_back(n);
      comma = take(',');
    }
    return (to_.dims.size() != 1 || comma) || bad("its shape cannot be read");
  }

  std::string_view text_;
  NamedArray& to_;
  std::string& why_;
  size_t at_ = 0;

 public:
  bool fortran_ = false;
};

// One array from where its bytes come from: `next(to, n)` gives at most n of them, `size` of which there are. The
// header is measured against the size before anything large is read; more than `most` bytes of elements stay unread.
template <class F>
NamedArray read_npy(const std::string& name, const std::string& path, Checked size, int64_t most, const F& next) {
  std::string why;
  auto bad = [&](std::string_view said) { fail(FailureKind::kIo, "{}: array {} is damaged: {}", path, name, said); };
  auto take = [&](size_t count) {
    std::string data;
    while (data.size() < count) {
      size_t at = data.size(), step = std::min<size_t>(count - at, size_t{1} << 24);
      data.resize(at + step);
      int64_t n = next(data.data() + at, step);
      if (n <= 0) bad(n < 0 ? "it cannot be read" : "it is cut off");
      data.resize(at + static_cast<size_t>(n));
    }
    return data;
  };
  if (size.capped() < 12) bad("no numpy header");
  std::string head = take(10);
  if (head.compare(0, 6, "\x93NUMPY", 6) != 0) bad("no numpy header");
  if (head[6] < 1 || head[6] > 3 || head[7] != 0) bad("its header is of another version than 1.0 to 3.0");
  if (head[6] > 1) head += take(2);
  size_t header = 0;
  for (size_t k = head.size(); k-- > 8;) header = header << 8 | static_cast<unsigned char>(head[k]);
  if ((Checked(static_cast<int64_t>(header)) + static_cast<int64_t>(head.size())).capped() > size.capped())
    bad("its header is cut off");
  NamedArray a;
  a.name = name;
  std::string dictionary = take(header);
  NpyHeader reader(dictionary, a, why);
  if (!reader.read()) bad(why);
  if (reader.fortran_ && a.dims.size() > 1) bad("Fortran order is not read");
  Checked bytes = descr_width(a.descr);
  for (int64_t d : a.dims) bytes *= d;
  if (!bytes.fits() || descr_width(a.descr) == 0 ||
      (bytes + static_cast<int64_t>(head.size() + header)).capped() != size.capped())
    bad("its size does not fit its shape");
  if (most >= 0 && bytes.capped() > most) return a;
  AvailableMemory there = available_memory();
  if (bytes.capped() > there.bytes / 2)
    fail(FailureKind::kUnsupported, "{}: array {} takes {}, and {} is {}", path, name, human_bytes(bytes.capped()),
         human_bytes(there.bytes), there.limit);
  a.bytes = take(bytes.size("an array"));
  return a;
}

NamedArray read_npy_file(const std::string& path, int64_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) fail(FailureKind::kIo, "cannot read {}: no file", path);
  std::ifstream file(path, std::ios::binary);
  auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (!file || error) fail(FailureKind::kIo, "cannot read {}", path);
  return read_npy("p0", path, size, most, [&](char* to, size_t n) -> int64_t {
    file.read(to, static_cast<std::streamsize>(n));
    return file.gcount();
  });
}

// The small text beside the arrays.
std::string read_note(zip_file_t* file, uint64_t size, const std::string& path) {
  constexpr uint64_t kMost = 16 << 20;
  if (size > kMost) fail(FailureKind::kIo, "{}: its {} is too large", path, kTypes);
  std::string note(size, '\0');
  if (zip_fread(file, note.data(), size) != static_cast<zip_int64_t>(size))
    fail(FailureKind::kIo, "{} is damaged", path);
  return note;
}

}  // namespace

std::vector<NamedArray> read_npz(const std::string& path, const MostBytes& most) {
  auto limit = [&](const std::string& name) { return most ? most(name) : -1; };
  if (path.ends_with(".npy")) return {read_npy_file(path, limit("p0"))};
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail(FailureKind::kIo, "cannot read {}: {}", path, why);
  }
  std::unique_ptr<zip_t, void (*)(zip_t*)> close(zip, [](zip_t* z) { zip_discard(z); });
  std::vector<NamedArray> out;
  std::set<std::string> names;
  std::string note;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat) || !(stat.valid & ZIP_STAT_NAME) ||
        !(stat.valid & ZIP_STAT_SIZE))
      fail(FailureKind::kIo, "{} is damaged", path);
    std::string name = stat.name;
    std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0),
                                                           zip_fclose);
    if (!file) fail(FailureKind::kIo, "{}: array {} cannot be read", path, name);
    if (name == kTypes) {
      note = read_note(file.get(), stat.size, path);
      continue;
    }
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second) fail(FailureKind::kIo, "{} holds two arrays {}", path, name);
    Checked size = stat.size > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(stat.size);
    out.push_back(read_npy(name, path, size, limit(name),
                           [&](char* to, size_t n) -> int64_t { return zip_fread(file.get(), to, n); }));
  }
  if (!note.empty()) {
    auto types = nlohmann::json::parse(note, nullptr, false);
    for (NamedArray& a : out)
      if (types.is_object() && types.contains(a.name) && types[a.name].is_string()) a.type = types[a.name];
  }
  return out;
}

void leaf_shapes(const Universe& u, ShapeId shape, std::vector<ShapeId>& leaves) {
  each_leaf(u, shape, [&](const Dims&, ShapeId leaf) { leaves.push_back(leaf); });
}

MostBytes bytes_of_leaves(const Universe& u, std::vector<ShapeId> leaves, char letter) {
  std::map<std::string, int64_t> most;
  for (size_t k = 0; k < leaves.size(); ++k)
    most[letter + std::to_string(k)] = u[leaves[k]].is_array() ? array_bytes(u[leaves[k]]).capped() : 0;
  return [most = std::move(most)](const std::string& name) {
    auto at = most.find(name);
    return at == most.end() ? int64_t{0} : at->second;
  };
}

namespace {

// `path`: for messages.
void put_zip(const std::string& file, const std::string& path, const std::vector<NamedArray>& arrays) {
  int code = 0;
  zip_t* zip = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!zip) fail(FailureKind::kIo, "cannot write {}", path);
  std::vector<std::pair<std::string, std::string>> files;
  files.reserve(arrays.size() + 1);
  nlohmann::ordered_json types;
  for (const NamedArray& a : arrays) {
    files.emplace_back(a.name + ".npy", npy_header(a) + a.bytes);
    if (!a.type.empty()) types[a.name] = a.type;
  }
  if (!types.empty()) files.emplace_back(kTypes, types.dump());
  if (files.empty()) {  // libzip makes no file of nothing: an archive's end alone
    zip_discard(zip);
    write_file(file, std::string("PK\x05\x06", 4) + std::string(18, '\0'));
    return;
  }
  for (const auto& [name, data] : files) {
    zip_source_t* source = zip_source_buffer(zip, data.data(), data.size(), 0);
    zip_int64_t index = source ? zip_file_add(zip, name.c_str(), source, ZIP_FL_OVERWRITE) : -1;
    // Equal contents make equal files: all of them are of the first of January 1980, midnight.
    if (index >= 0) zip_file_set_dostime(zip, static_cast<zip_uint64_t>(index), 0, (1 << 5) | 1, 0);
    if (index < 0) {
      zip_discard(zip);
      fail(FailureKind::kIo, "cannot write {}", path);
    }
    zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(zip)) {
    std::string why = zip_strerror(zip);
    zip_discard(zip);
    fail(FailureKind::kIo, "cannot write {}: {}", path, why);
  }
}

}  // namespace

void write_npz(const std::string& path, const std::vector<NamedArray>& arrays) {
  write_file_by(path, [&](const std::string& file) { put_zip(file, path, arrays); });
}

NamedArray to_array(const Universe& u, const std::string& name, const Value& v) {
  const Shape& s = u[v.shape];
  NamedArray a;
  a.name = name, a.descr = descr_of(s.type), a.dims = s.dims, a.type = type_name(s.type);
  if (v.data) a.bytes.assign(v.data->begin(), v.data->end());
  return a;
}

ElementType array_type(const NamedArray& a, const std::string& path) {
  ElementType type;
  if (type_from_name(a.type, &type) && descr_of(type).substr(1) == a.descr.substr(1)) return type;
  for (ElementType t : {ElementType::Pred, ElementType::S8, ElementType::S16, ElementType::S32, ElementType::S64,
                        ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64, ElementType::F16,
                        ElementType::F32, ElementType::F64, ElementType::C64, ElementType::C128})
    if (descr_of(t).substr(1) == a.descr.substr(1)) return t;
  fail(FailureKind::kUnsupported, "{}: array {} is of numpy's type {}", path, a.name, a.descr);
}

Value from_array(const Universe& u, const NamedArray& a, ShapeId shape) {
  const Shape& s = u[shape];
  // Elements of less than a byte come as bytes of either kind: as numbers, or as their bits alone.
  const bool small = type_bits(s.type) < 8 && s.type != ElementType::Pred;
  const std::string_view kind = std::string_view(a.descr).substr(1);
  if (a.dims != s.dims || (kind != descr_of(s.type).substr(1) && !(small && (kind == "i1" || kind == "u1")))) {
    std::string dims;
    for (int64_t d : a.dims) dims += (dims.empty() ? "" : ",") + std::to_string(d);
    fail(FailureKind::kUsage, "array {} is a {}[{}], the module takes {}", a.name, a.descr, dims,
         u.shape_text_plain(shape));
  }
  Value v;
  v.shape = shape;
  if (static_cast<int64_t>(a.bytes.size()) != array_bytes(s).capped())
    fail(FailureKind::kUsage, "array {} is not of {}'s size", a.name, u.shape_text_plain(shape));
  v.data = std::make_shared<std::vector<char>>(a.bytes.begin(), a.bytes.end());
  if (!small) return v;
  const int mask = (1 << type_bits(s.type)) - 1, sign = is_signed_int(s.type) ? (mask + 1) / 2 : 0;
  for (char& c : *v.data) {
    int byte = static_cast<unsigned char>(c), bits = byte & mask, value = bits & sign ? (bits | ~mask) & 255 : bits;
    if (byte != bits && byte != value)
      fail(FailureKind::kUsage, "array {} holds {}, which is no {}", a.name, byte, type_name(s.type));
    c = static_cast<char>(value);
  }
  return v;
}

}  // namespace hlo
