#include "replay/npz.h"

#include <zip.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"
#include "replay/files.h"

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

int descr_width(const std::string& d) { return d.size() < 3 ? 0 : atoi(d.c_str() + 2); }

NamedArray parse_npy(const std::string& name, const std::string& data, const std::string& path) {
  auto bad = [&](const char* why) { fail(FailureKind::kIo, "{}: array {} is damaged: {}", path, name, why); };
  if (data.size() < 12 || data.compare(0, 6, "\x93NUMPY", 6)) bad("no numpy header");
  size_t header = 0, start = 10;
  if (data[6] == 1) {
    header = static_cast<unsigned char>(data[8]) | static_cast<size_t>(static_cast<unsigned char>(data[9])) << 8;
  } else {
    start = 12;
    for (int k = 3; k >= 0; --k) header = header << 8 | static_cast<unsigned char>(data[8 + static_cast<size_t>(k)]);
  }
  if (header > data.size() - start) bad("its header is cut off");
  std::string dict = data.substr(start, header);
  NamedArray a;
  a.name = name;
  auto value = [&](const char* key) {
    size_t at = dict.find(key);
    if (at == std::string::npos) bad("its header lacks a field");
    return dict.find(':', at) + 1;
  };
  size_t d = dict.find('\'', value("'descr'"));
  size_t e = d == std::string::npos ? d : dict.find('\'', d + 1);
  if (e == std::string::npos) bad("its type cannot be read");
  a.descr = dict.substr(d + 1, e - d - 1);
  bool fortran = dict.compare(dict.find_first_not_of(' ', value("'fortran_order'")), 4, "True") == 0;
  size_t at = dict.find('(', value("'shape'"));
  if (at == std::string::npos) bad("its shape cannot be read");
  int64_t count = 1;
  for (++at; at < dict.size() && dict[at] != ')';) {
    if (!isdigit(static_cast<unsigned char>(dict[at]))) {
      ++at;
      continue;
    }
    int64_t n = strtoll(dict.c_str() + at, nullptr, 10);
    while (at < dict.size() && isdigit(static_cast<unsigned char>(dict[at]))) ++at;
    a.dims.push_back(n);
    if (__builtin_mul_overflow(count, n, &count)) bad("its shape is too large");
  }
  int64_t bytes;
  if (a.descr.empty() || a.descr[0] == '>') bad("big-endian arrays are not read");
  if (fortran && a.dims.size() > 1) bad("Fortran order is not read");
  if (__builtin_mul_overflow(count, static_cast<int64_t>(descr_width(a.descr)), &bytes) ||
      bytes != static_cast<int64_t>(data.size() - start - header))
    bad("its size does not fit its shape");
  a.bytes = data.substr(start + header);
  return a;
}

}  // namespace

std::vector<NamedArray> read_npz(const std::string& path) {
  if (path.ends_with(".npy")) return {parse_npy("p0", read_file(path), path)};
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
  std::string note;
  for (zip_int64_t i = 0; i < zip_get_num_entries(zip, 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat)) fail(FailureKind::kIo, "{} is damaged", path);
    if (stat.size > (uint64_t{1} << 36)) fail(FailureKind::kIo, "{}: array {} is larger than 64 GiB", path, stat.name);
    zip_file_t* file = zip_fopen_index(zip, static_cast<zip_uint64_t>(i), 0);
    if (!file) fail(FailureKind::kIo, "{}: array {} cannot be read", path, stat.name);
    std::string data, name = stat.name;
    // Grown as it comes: the stated size may be a lie.
    for (;;) {
      size_t at = data.size(), step = std::min<uint64_t>(stat.size - std::min<uint64_t>(at, stat.size) + 1, 1 << 24);
      data.resize(at + step);
      zip_int64_t n = zip_fread(file, data.data() + at, step);
      data.resize(at + static_cast<size_t>(std::max<zip_int64_t>(n, 0)));
      if (n <= 0) {
        zip_fclose(file);
        if (n < 0) fail(FailureKind::kIo, "{}: array {} is damaged", path, name);
        break;
      }
    }
    if (name == kTypes) {
      note = std::move(data);
      continue;
    }
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    out.push_back(parse_npy(name, data, path));
  }
  if (!note.empty()) {
    auto types = nlohmann::json::parse(note, nullptr, false);
    for (NamedArray& a : out)
      if (types.is_object() && types.contains(a.name) && types[a.name].is_string()) a.type = types[a.name];
  }
  return out;
}

void write_npz(const std::string& path, const std::vector<NamedArray>& arrays) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);  // libzip writes beside and renames
  if (!zip) fail(FailureKind::kIo, "cannot write {}", path);
  std::vector<std::pair<std::string, std::string>> files;
  files.reserve(arrays.size() + 1);
  nlohmann::ordered_json types;
  for (const NamedArray& a : arrays) {
    files.emplace_back(a.name + ".npy", npy_header(a) + a.bytes);
    if (!a.type.empty()) types[a.name] = a.type;
  }
  if (!types.empty()) files.emplace_back(kTypes, types.dump());
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
