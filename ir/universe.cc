#include "ir/universe.h"

#include <algorithm>
#include <charconv>

#include "ir/base/check.h"

namespace hlo {

Dims default_minor_to_major(int rank) {
  Dims order(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = rank - 1 - i;
  return order;
}

bool is_default_layout(const Layout& layout) {
  return layout.rest.empty() &&
         layout.minor_to_major == default_minor_to_major(static_cast<int>(layout.minor_to_major.size()));
}

Universe::Universe() {
  for (int t = 0; t < static_cast<int>(ElementType::Tuple); ++t) str(type_name(static_cast<ElementType>(t)));
  for (const char* word : {"true", "false", "inf", "nan", "HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames",
                           "FileLocations", "StackFrames", "maximal", "replicated", "manual", "last_tile_dim_replicate",
                           "shard_as", "shard_like", "unknown", "unreduced"})
    str(word);
  reserved_ = static_cast<uint32_t>(strings_.size());
  Shape token;
  token.type = ElementType::Token;
  token_ = shape(token);
}

ShapeId Universe::shape(Shape s) {
  if (s.dynamic.empty() == false && std::none_of(s.dynamic.begin(), s.dynamic.end(), [](bool d) { return d; }))
    s.dynamic.clear();
  if (s.is_array() && !s.has_layout) {
    s.has_layout = true;
    s.layout.minor_to_major = default_minor_to_major(s.rank());
  }
  std::string text, plain;
  if (s.is_tuple()) {
    text = plain = "(";
    for (size_t i = 0; i < s.elements.size(); ++i) {
      if (i) {
        text += ", ", plain += ", ";
        if (i % 5 == 0) {
          std::string comment = fmt::format("/*index={}*/", i);
          text += comment, plain += comment;
        }
      }
      text += shape_text(s.elements[i]), plain += shape_text_plain(s.elements[i]);
    }
    text += ')', plain += ')';
  } else {
    plain = type_name(s.type);
    plain += '[';
    for (size_t i = 0; i < s.dims.size(); ++i) {
      if (i) plain += ',';
      if (s.dims[i] == kUnbounded) {
        plain += '?';
        continue;
      }
      if (!s.dynamic.empty() && s.dynamic[i]) plain += "<=";
      plain += std::to_string(s.dims[i]);
    }
    plain += ']';
    text = plain;
    if (s.is_array() && s.layout.sparse) {
      text += fmt::format("sparse{{{}}}", s.layout.sparse);
    } else if (s.is_array() && (s.rank() > 0 || !s.layout.rest.empty())) {
      text += '{';
      for (size_t i = 0; i < s.layout.minor_to_major.size(); ++i) {
        if (i) text += ',';
        text += std::to_string(s.layout.minor_to_major[i]);
      }
      if (!s.layout.rest.empty()) text += ':' + s.layout.rest;
      text += '}';
    }
    if (s.is_buffer) text = "b(" + text + ")", plain = "b(" + plain + ")";
  }
  StrId key = shape_keys_.intern(text);
  ShapeId id(key.value);
  if (key.value < shapes_.size()) return id;
  shapes_.push_back({s, std::move(text), std::move(plain), id});
  Shape erased = s;
  if (s.is_tuple())
    for (ShapeId& e : erased.elements) e = shapes_[e.value].erased;
  else if (s.is_array())
    erased.layout = {default_minor_to_major(s.rank()), "", 0};
  shapes_[id.value].erased = shape(std::move(erased));
  return id;
}

ShapeId Universe::array(ElementType type, Dims dims) {
  Shape s;
  s.type = type;
  s.dims = std::move(dims);
  return shape(std::move(s));
}

ShapeId Universe::tuple(std::vector<ShapeId> elements) {
  Shape s;
  s.elements = std::move(elements);
  return shape(std::move(s));
}

ShapeId Universe::with_type(ShapeId id, ElementType type) {
  Shape s = (*this)[id];
  s.type = type;
  return shape(std::move(s));
}

ShapeId Universe::with_dims(ShapeId id, Dims dims) { return array((*this)[id].type, std::move(dims)); }

ShapeId Universe::with_layout(ShapeId id, Dims minor_to_major) {
  Shape s = (*this)[id];
  s.layout.minor_to_major = std::move(minor_to_major);
  return shape(std::move(s));
}

ShapeId Universe::with_default_layout(ShapeId id) { return shapes_[id.value].erased; }

bool Universe::compatible(ShapeId a, ShapeId b) { return a == b || shapes_[a.value].erased == shapes_[b.value].erased; }

int64_t Universe::byte_size(ShapeId id) const {
  const Shape& s = (*this)[id];
  if (s.is_tuple()) return 8 * static_cast<int64_t>(s.elements.size());
  if (s.type == ElementType::Opaque) return 8;
  if (!s.is_array()) return 0;
  int64_t bits = 8 * storage_bytes(s.type);
  size_t at = s.layout.rest.find("E(");
  if (at != std::string::npos && (at == 0 || s.layout.rest[at - 1] == ')')) {
    int64_t stated = 0;
    std::from_chars(s.layout.rest.data() + at + 2, s.layout.rest.data() + s.layout.rest.size(), stated);
    if (stated > 0) bits = stated;
  }
  int64_t count = 1;
  for (int64_t d : s.dims) count *= std::max<int64_t>(d, 0);
  int64_t bytes = (count * bits + 7) / 8;
  return s.is_dynamic() ? bytes + 4 * s.rank() : bytes;  // dynamic arrays carry their sizes behind the data
}

size_t Universe::leaf_count(ShapeId id) const {
  size_t leaves = 0;
  std::vector<ShapeId> stack{id};
  while (!stack.empty()) {
    const Shape& s = (*this)[stack.back()];
    stack.pop_back();
    leaves += !s.is_tuple();
    stack.insert(stack.end(), s.elements.begin(), s.elements.end());
  }
  return leaves;
}

ShapeId Universe::subshape(ShapeId id, const Dims& index) const {
  for (int64_t k : index) {
    const Shape& s = (*this)[id];
    if (!s.is_tuple() || k < 0 || k >= static_cast<int64_t>(s.elements.size())) return ShapeId();
    id = s.elements[static_cast<size_t>(k)];
  }
  return id;
}

int64_t Universe::leaf_bytes(ShapeId id) const {
  const Shape& s = (*this)[id];
  if (!s.is_tuple()) return byte_size(id);
  int64_t sum = 0;
  for (ShapeId e : s.elements) sum += leaf_bytes(e);
  return sum;
}

AttrsId Universe::attrs(const AttrSet& set) {
  if (set.list.empty()) return AttrsId();
  return attrs_.intern(attr_key(set), [&] {
    AttrSet copy = set;
    copy.finish();
    return copy;
  });
}

AttrsId Universe::attrs(AttrSet&& set) {
  if (set.list.empty()) return AttrsId();
  return attrs_.intern(attr_key(set), [&] {
    set.finish();
    return std::move(set);
  });
}

LitId Universe::literal(Literal literal) {
  uint64_t hash = hash_combine(literal.shape.value, hash_bytes(literal.bytes));
  for (LitId e : literal.elements) hash = hash_combine(hash, e.value);
  if (literal.elided) hash = hash_combine(hash, 1);
  uint32_t found = literal_table_.find(hash, [&](uint32_t i) {
    const Literal& other = literals_[i];
    return other.shape == literal.shape && other.elided == literal.elided && other.elements == literal.elements &&
           other.bytes == literal.bytes;
  });
  if (found != IndexTable::kEmpty) return LitId(found);
  uint32_t index = static_cast<uint32_t>(literals_.size());
  literals_.push_back(std::move(literal));
  literal_table_.insert(hash, index);
  return LitId(index);
}

uint32_t Universe::pool_add(const InstId* ids, size_t count) {
  uint32_t offset = pool_size();
  // The ids may lie in the pool itself, which growing would move.
  if (pool_.size() + count > pool_.capacity()) {
    std::vector<InstId> copy(ids, ids + count);
    pool_.reserve(std::max(pool_.capacity() * 2, pool_.size() + count));
    pool_.insert(pool_.end(), copy.begin(), copy.end());
  } else {
    pool_.insert(pool_.end(), ids, ids + count);
  }
  return offset;
}

}  // namespace hlo
