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
  const Dims& order = layout.minor_to_major;
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(order.size() - 1 - i)) return false;
  return layout.rest.empty();
}

bool has_other_layout(const Shape& shape) {
  return shape.is_array() && shape.rank() > 0 && shape.has_layout && !is_default_layout(shape.layout);
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
  if (!s.dynamic.empty() && std::none_of(s.dynamic.begin(), s.dynamic.end(), [](bool d) { return d; }))
    s.dynamic.clear();
  if (s.is_tuple()) return tuple_shape(std::move(s));
  if (s.is_array() && !s.has_layout) {
    s.has_layout = true;
    s.layout.minor_to_major = default_minor_to_major(s.rank());
  }
  std::string& text = scratch_;
  text.clear();
  auto number = [&](int64_t v) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof(digits), v).ptr);
  };
  if (s.is_buffer) text += "b(";
  text += type_name(s.type);
  text += '[';
  for (size_t i = 0; i < s.dims.size(); ++i) {
    if (i) text += ',';
    if (s.dims[i] == kUnbounded) {
      text += '?';
      continue;
    }
    if (!s.dynamic.empty() && s.dynamic[i]) text += "<=";
    number(s.dims[i]);
  }
  text += ']';
  size_t plain = text.size();
  if (s.is_array() && s.layout.sparse) {
    text += "sparse{";
    number(s.layout.sparse);
    text += '}';
  } else if (s.is_array() && (s.rank() > 0 || !s.layout.rest.empty())) {
    text += '{';
    for (size_t i = 0; i < s.layout.minor_to_major.size(); ++i) {
      if (i) text += ',';
      number(s.layout.minor_to_major[i]);
    }
    if (!s.layout.rest.empty()) text += ':', text += s.layout.rest;
    text += '}';
  }
  if (s.is_buffer) text += ')';
  return keyed_shape(std::move(s), text, plain);
}

ShapeId Universe::shape_of_text(Shape s, std::string_view text) {
  return keyed_shape(std::move(s), text, text.find(']') + 1);
}

// `plain`: where the layout begins in the text.
ShapeId Universe::keyed_shape(Shape s, std::string_view text, size_t plain) {
  StrId key = shape_keys_.intern(text);
  if (key.value < shape_of_key_.size()) return shape_of_key_[key.value];
  ShapeId id(shapes_.size());
  shape_of_key_.push_back(id);
  std::string plain_text(text.substr(0, plain));
  if (s.is_buffer) plain_text += ')';
  // Of an array that lies by default nothing can be erased.
  bool lies_by_default = !s.is_array() || (!s.layout.sparse && is_default_layout(s.layout));
  if (lies_by_default) {
    shapes_.push_back({std::move(s), std::string(text), std::move(plain_text), id});
    return id;
  }
  shapes_.push_back({s, std::string(text), std::move(plain_text), id});
  s.layout = {default_minor_to_major(s.rank()), "", 0};
  shapes_[id.value].erased = shape(std::move(s));
  return id;
}

namespace {
// What walks over a shape recurses; the parser takes no more levels either.
constexpr int kDeepestTuple = 500;
int nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  for (char c : text) {
    if (c == '(')
      deepest = std::max(deepest, ++depth);
    else if (c == ')')
      --depth;
  }
  return deepest;
}
}  // namespace

// By the ids of its elements: the text of a long tuple is made once.
ShapeId Universe::tuple_shape(Shape s) {
  uint64_t hash = hash_bytes(reinterpret_cast<const char*>(s.elements.data()), s.elements.size() * sizeof(ShapeId));
  uint32_t found = tuple_table_.find(hash, [&](uint32_t i) { return shapes_[i].shape.elements == s.elements; });
  if (found != IndexTable::kEmpty) return ShapeId(found);
  size_t length = 2, plain_length = 2;
  for (ShapeId e : s.elements) length += shape_text(e).size() + 6, plain_length += shape_text_plain(e).size() + 6;
  if (length > kLongestShapeText)
    fail(FailureKind::kUnsupported, "a tuple whose shape is more than {} MB of text is not supported",
         kLongestShapeText >> 20);
  std::string text, plain;
  text.reserve(length), plain.reserve(plain_length);
  text = plain = "(";
  bool lies_by_default = true;
  for (size_t i = 0; i < s.elements.size(); ++i) {
    if (i) {
      text += ", ", plain += ", ";
      if (i % 5 == 0) {
        std::string comment = fmt::format("/*index={}*/", i);
        text += comment, plain += comment;
      }
    }
    text += shape_text(s.elements[i]), plain += shape_text_plain(s.elements[i]);
    lies_by_default = lies_by_default && shapes_[s.elements[i].value].erased == s.elements[i];
  }
  text += ')', plain += ')';
  if (nesting(plain) > kDeepestTuple)
    fail(FailureKind::kUnsupported, "tuples nested more than {} levels deep are not supported", kDeepestTuple);
  ShapeId id(shapes_.size());
  tuple_table_.insert(hash, id.value);
  shapes_.push_back({s, std::move(text), std::move(plain), id});
  if (!lies_by_default) {
    for (ShapeId& e : s.elements) e = shapes_[e.value].erased;
    shapes_[id.value].erased = tuple_shape(std::move(s));
  }
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
  // A size of elements that the layout states is the old type's.
  if (s.type != type && s.layout.rest.starts_with("E(")) s.layout.rest.clear();
  s.type = type;
  return shape(std::move(s));
}

ShapeId Universe::with_dims(ShapeId id, Dims dims) { return array((*this)[id].type, std::move(dims)); }

ShapeId Universe::with_layout(ShapeId id, Dims minor_to_major) {
  const Shape& old = (*this)[id];
  if (old.has_layout && old.layout.minor_to_major == minor_to_major) return id;
  Shape s = old;
  s.layout.minor_to_major = std::move(minor_to_major);
  return shape(std::move(s));
}

ShapeId Universe::with_default_layout(ShapeId id) { return shapes_[id.value].erased; }

bool Universe::compatible(ShapeId a, ShapeId b) { return a == b || shapes_[a.value].erased == shapes_[b.value].erased; }

int64_t Universe::byte_size(ShapeId id) const {
  Checked size = bytes(id);
  if (!size.fits())
    fail(FailureKind::kUnsupported, "the bytes of {} do not fit into 63 bits: no machine holds such an array",
         shape_text_plain(id));
  return size.capped();
}

Checked Universe::bytes(ShapeId id) const {
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
  // A product of dimensions is 0 where one of them is, whatever the others are.
  Checked count = s.has_zero() ? Checked(0) : Checked(1);
  for (int64_t d : s.dims) count *= d;
  // Whole bytes first: bits would not fit where bytes do.
  Checked size = bits % 8 ? divided(count * bits, 8) : count * (bits / 8);
  return s.is_dynamic() ? size + 4 * s.rank() : size;  // dynamic arrays carry their sizes behind the data
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
  Checked sum = 0;
  for (ShapeId e : s.elements) sum += leaf_bytes(e);
  return sum.value("the sum of a tuple's arrays");
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
