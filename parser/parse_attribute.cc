// Attributes: one branch an AttrKind, defaults normalised so that two spellings of one meaning are one AttrSet.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <map>
#include <utility>

#include "ir/print.h"
#include "parser/parser_impl.h"

namespace hlo {

namespace {

// To the first quote or backslash, or the end.
const char* quote_or_escape(const char* at, const char* end) {
#ifdef __SSE2__
  for (; end - at >= 16; at += 16) {
    __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('"')), _mm_cmpeq_epi8(c, _mm_set1_epi8('\\')));
    if (auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit))) return at + std::countr_zero(mask);
  }
#endif
  while (at < end && *at != '"' && *at != '\\') ++at;
  return at;
}

// Where `, metadata={` starts at or behind `at`, or the text's end.
size_t metadata_start(std::string_view text, size_t at) {
  static constexpr std::string_view kKey = ", metadata={";
#ifdef __SSE2__
  for (; at + 16 + kKey.size() <= text.size(); at += 16) {
    auto equal = [&](size_t offset) {
      return _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at + offset)),
                            _mm_set1_epi8(kKey[offset]));
    };
    __m128i hit = _mm_and_si128(_mm_and_si128(equal(0), equal(2)), equal(11));
    for (auto mask = static_cast<unsigned>(_mm_movemask_epi8(hit)); mask; mask &= mask - 1) {
      size_t place = at + static_cast<size_t>(std::countr_zero(mask));
      if (text.compare(place, kKey.size(), kKey) == 0) return place;
    }
  }
#endif
  return std::min(text.find(kKey, at), text.size());
}

}  // namespace

void Parser::attributes(Pending& p) {
  p.set.op = p.op;
  size_t start = at_, comments = comments_, inlined = m_ ? m_->comp_slots() : 0;
  if (skip(); peek() != ',') return check_attrs(p), void(p.attrs = u_.attrs(p.set));
  at_ = start;
  static constexpr std::string_view kMetadata = ", metadata={";
  // Metadata first, and mostly nothing behind it.
  if (text_.compare(at_, kMetadata.size(), kMetadata) == 0) {
    at_ += kMetadata.size() - 1;
    if (plain_metadata(&p.meta)) {
      while (eat(',')) attribute(p);
      check_attrs(p);
      p.attrs = u_.attrs(p.set);
      return;
    }
    at_ = start;
  }
  // Memos look no further than this: a module may be one endless line.
  size_t reach = std::min(text_.size() - at_, kMemoReach);
  const char* newline = static_cast<const char*>(std::memchr(text_.data() + at_, '\n', reach));
  size_t line_end = newline ? static_cast<size_t>(newline - text_.data()) : start + reach;
  std::string_view prefix = text_.substr(start, metadata_start(text_.substr(0, line_end), start) - start);
  while (!prefix.empty() && (prefix.back() == ' ' || prefix.back() == '\r')) prefix.remove_suffix(1);
  // A sharding is spread over the leaves of the shape.
  bool spread = p.shape.valid() && u_[p.shape].is_tuple() && prefix.find('{') != std::string_view::npos;
  bool memo_ok = !prefix.empty() && prefix.size() < 2048 && prefix[0] == ',' && !spread &&
                 op_info(p.op).cls != OpClass::Async && p.op != Opcode::Map;
  uint64_t hash = 0;
  if (memo_ok) {
    hash = attr_memo_.hash(prefix, static_cast<uint64_t>(p.op) + 1);
    if (const AttrsId* known = attr_memo_.find(text_, prefix, hash)) {
      at_ = start + prefix.size();
      AttrsId id = *known;
      bool plain = true;
      while (eat(',')) {
        if (!p.meta.valid() && metadata_to_end(line_end, &p.meta)) continue;
        if (plain) p.set = u_[id], p.set.op = p.op, plain = false;
        attribute(p);
      }
      if (plain) {
        p.attrs = id;
        return;
      }
      check_attrs(p);
      p.attrs = u_.attrs(p.set);
      return;
    }
  }
  size_t last_end = start;
  bool after_meta = false;
  p.set.list.reserve(4), p.seen.reserve(4);
  while (eat(',')) {
    if (!p.meta.valid() && metadata_to_end(line_end, &p.meta)) continue;
    if (p.meta.valid()) after_meta = true;
    attribute(p);
    last_end = at_;
  }
  check_attrs(p);
  p.attrs = u_.attrs(p.set);
  bool relative = p.op == Opcode::Compare && prefix.find("type=") != std::string_view::npos;
  if (memo_ok && !relative && !after_meta && last_end == start + prefix.size() && comments == comments_ &&
      p.control.empty() && (!m_ || inlined == m_->comp_slots()))
    attr_memo_.keep(text_, prefix, hash, p.attrs);
}

// A value of unknown form: a string, something in brackets, or a word; several of them without a comma between.
std::string_view Parser::raw_value() {
  skip();
  size_t start = at_, end = at_;
  while (at_ < text_.size()) {
    char c = peek();
    if (c == '"' || c == '\'') {
      quoted("a value");
    } else if (c == '{' || c == '(' || c == '[') {
      balanced();
    } else if (c == ',' || c == '\n' || c == '\r' || c == '}') {
      break;
    } else {
      ++at_;
    }
    end = at_;
  }
  if (end == start) error_here("expected a value");
  while (end > start && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
  return text_.substr(start, end - start);
}

// If metadata comes next: reads it, from the memo where the rest of the line has been seen before.
// `{op_name="…" source_line=3}` as XLA writes it: each field at most once and in its order, one blank in between.
// False, and nothing read, for all else.
bool Parser::plain_metadata(MetaId* out) {
  static constexpr std::string_view kKeys[] = {"op_type=\"",         "op_name=\"",       "source_file=\"",
                                               "source_line=",       "source_end_line=", "source_column=",
                                               "source_end_column=", "stack_frame_id="};
  enum { kOpType, kOpName, kFile, kLine, kEndLine, kColumn, kEndColumn, kFrame };
  const char *at = text_.data() + at_, *end = text_.data() + text_.size();
  if (at == end || *at != '{') return false;
  Metadata m;
  uint32_t* const strings[] = {&m.op_type, &m.op_name, &m.source_file};
  int32_t* const numbers[] = {&m.source_line, &m.source_end_line, &m.source_column, &m.source_end_column,
                              &m.stack_frame_id};
  int last = -1;
  do {
    ++at;
    if (end - at < 20) return false;  // the longest key and a byte
    int field = 0;
    if (*at == 'o')
      field = at[3] == 'n' ? kOpName : kOpType;
    else if (at[1] == 't')
      field = kFrame;
    else if (at[7] == 'e')
      field = at[11] == 'l' ? kEndLine : kEndColumn;
    else
      field = at[7] == 'f' ? kFile : at[7] == 'l' ? kLine : kColumn;
    std::string_view key = kKeys[field];
    if (field <= last || std::memcmp(at, key.data(), key.size()) != 0) return false;
    last = field;
    at += key.size();
    if (field <= kFile) {
      const char* body = at;
      at = quote_or_escape(at, end);
      if (at == end || *at != '"') return false;
      std::string_view text(body, static_cast<size_t>(at - body));
      auto& memory = last_strings_[field];
      if (memory.id == StrId::kNone || memory.text != text) memory = {text, u_.str(text).value};
      *strings[field] = memory.id;
      ++at;
    } else {
      const char* digits = at;
      int32_t value = 0;
      while (at < end && at - digits < 9 && *at >= '0' && *at <= '9') value = value * 10 + (*at++ - '0');
      if (at == digits) return false;
      *numbers[field - kLine] = value;
    }
  } while (at < end && *at == ' ');
  if (at == end || *at != '}') return false;
  at_ = static_cast<size_t>(at + 1 - text_.data());
  if (std::exchange(metadata_room_, true) == false && room_) u_.reserve_metadata(text_.size() / 140);
  *out = u_.metadata(m);
  return true;
}

bool Parser::metadata_to_end(size_t line_end, MetaId* out) {
  skip();
  static constexpr std::string_view kKey = "metadata=";
  if (text_.compare(at_, kKey.size(), kKey) != 0) return false;
  size_t start = at_ += kKey.size();
  if (plain_metadata(out)) return true;
  if (line_end <= start || line_end - start > 1024 || text_.size() < kMemoReach) {
    *out = metadata();
    return true;
  }
  std::string_view rest = text_.substr(start, line_end - start);
  uint64_t hash = meta_memo_.hash(rest);
  if (const MetaId* known = meta_memo_.find(text_, rest, hash)) {
    at_ = line_end;
    *out = *known;
    return true;
  }
  *out = metadata();
  if (at_ == line_end) meta_memo_.keep(text_, rest, hash, *out);
  return true;
}

void Parser::attribute(Pending& p) {
  skip();
  size_t start = at_;
  std::string_view key_text = word();
  if (key_text.empty()) error_at(start, "expected the name of an attribute");
  if (key_text == "metadata" && p.meta.valid()) error_at(start, "attribute metadata stands twice");
  if (peek() != '=') {
    at_ = start;
    error_at(start, "expected '=' right behind attribute '{}'", key_text);
  }
  ++at_;
  if (key_text == "metadata") {
    p.meta = metadata();
    return;
  }
  if (key_text == "control-predecessors") {
    expect('{', "before control predecessors");
    do {
      skip();
      size_t place = at_;
      StrId n = name("the name of a control predecessor");
      InstId before = find(n, CompId(), place);
      if (std::find(p.control.begin(), p.control.end(), before) == p.control.end()) p.control.push_back(before);
    } while (eat(','));
    expect('}', "behind control predecessors");
    return;
  }
  if (key_text == "mode" && op_info(p.op).cls == OpClass::Collective) {
    skip();
    size_t place = at_;
    std::string_view mode = word();
    if (mode != "cross_replica" && mode != "cross_partition" && mode != "cross_replica_and_partition" &&
        mode != "flattened_id")
      error_at(place, "unknown mode '{}' of a collective", mode);
    return;
  }
  // XLA of late 2026 writes the order of a comparison instead of its type.
  if (key_text == "order" && p.op == Opcode::Compare) {
    skip();
    size_t place = at_;
    std::string_view order = word();
    if (order != "TOTAL" && order != "PARTIAL") error_at(place, "unknown order '{}' of a comparison", order);
    if (p.set.has(Attr::type)) error_at(start, "compare takes a type or an order");
    if (p.operands.empty()) return;
    ElementType type = m_->shape(p.operands[0]).type;
    const bool partial = is_float(type) || is_complex(type);  // by itself; integers have a total order
    if (partial == (order == "TOTAL")) p.set.set(Attr::type, u_.str(partial ? "TOTALORDER" : "FLOAT"));
    return;
  }
  Attr key;
  bool known = attr_from_text(key_text, &key) && key != Attr::kept_verbatim;
  if (options_.permissive &&
      (!known || (attr_position(p.op, key) < 0 && !p.wrapped && op_info(p.op).cls != OpClass::Async))) {
    StrId before = p.set.text(Attr::kept_verbatim);
    p.set.set(Attr::kept_verbatim,
              u_.str(fmt::format("{}, {}={}", before.valid() ? u_.text(before) : "", key_text, raw_value())));
    return;
  }
  if (!known) {
    std::string_view near = nearest_attr(key_text);
    error(start, fmt::format("unknown attribute '{}'", key_text),
          near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  // custom-call and call spell their callee in two ways.
  if (p.op == Opcode::CustomCall && key == Attr::to_apply) {
    p.set.set(Attr::called_computations, std::vector<CompId>{computation_ref()});
    return;
  }
  if (p.op == Opcode::Call && key == Attr::called_computations) {
    std::vector<CompId> list = computation_list();
    if (list.size() != 1) error_at(start, "call takes one computation");
    p.set.set(Attr::to_apply, list[0]);
    return;
  }
  if (p.wrapped) {
    // What the operation inside takes is its own.
    bool inside = key == Attr::result_accuracy && op_info(p.base).transcendental;
    for (const OwnAttr& own : op_info(p.base).attrs) inside |= own.key == key;
    if (inside) {
      if (p.wrapped->set.has(key)) error_at(start, "attribute '{}' stands twice", key_text);
      p.wrapped->set.set(key, attr_value(*p.wrapped, key, attr_kind(key)));
      return;
    }
    if (key == Attr::calls) error_at(start, "a short form takes no attribute 'calls'");
  }
  bool foreign = attr_position(p.op, key) < 0;
  if (key == Attr::result_accuracy && !op_info(p.op).transcendental) foreign = true;
  if (key == Attr::parameter_replication && p.op != Opcode::Parameter) foreign = true;
  // -done and -update may repeat what their start says.
  bool dropped = false;
  if (foreign) {
    bool repeated = (p.op == Opcode::AsyncDone || p.op == Opcode::AsyncUpdate) &&
                    (key == Attr::calls || key == Attr::async_execution_thread || key == Attr::called_computations);
    if (repeated && (p.is_short && key == Attr::calls)) repeated = false;
    if (repeated && key == Attr::called_computations) repeated = false;
    if (!repeated) {
      std::string takes;
      for (const OwnAttr& a : op_info(p.op).attrs) takes += (takes.empty() ? "" : ", ") + std::string(attr_text(a.key));
      error(start, fmt::format("{} takes no attribute '{}'", op_text(p.op), key_text),
            takes.empty() ? "" : "it takes " + takes);
    }
    dropped = true;
  }
  if (!dropped && std::find(p.seen.begin(), p.seen.end(), key) != p.seen.end())
    error_at(start, "attribute '{}' stands twice", key_text);
  p.seen.push_back(key);
  AttrValue value = attr_value(p, key, attr_kind(key));
  if (dropped) {
    const AttrSet& set = m_->attrs(async_root(p.operands[0]).first);
    if (const CompId* callee = std::get_if<CompId>(&value); callee && *callee != set.comp(Attr::calls))
      error_at(start, "its async-start calls '{}'", m_->comp_name(set.comp(Attr::calls)));
    StrId thread = set.text(Attr::async_execution_thread);
    if (const StrId* word = std::get_if<StrId>(&value);
        word && u_.text(*word) != (thread.valid() ? u_.text(thread) : std::string_view("main")))
      error_at(start, "its async-start runs on thread '{}'", thread.valid() ? u_.text(thread) : "main");
    return;
  }
  p.set.set(key, std::move(value));
}

AttrValue Parser::attr_value(Pending& p, Attr key, AttrKind kind) {
  const char* what = attr_text(key).data();
  skip();
  switch (kind) {
    case AttrKind::Bool:
      return boolean(what);
    case AttrKind::Int:
      return integer(what);
    case AttrKind::Float:
      return decimal(what);
    case AttrKind::Enum: {
      std::string_view w = word();
      if (w.empty()) error_here("expected a word as {}", what);
      static const std::map<Attr, std::vector<std::string_view>> kWords = {
          {Attr::direction, {"EQ", "NE", "GE", "GT", "LE", "LT"}},
          {Attr::type, {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
          {Attr::kind, {"kLoop", "kInput", "kOutput", "kCustom"}},
          {Attr::distribution, {"rng_uniform", "rng_normal"}},
          {Attr::fft_type, {"FFT", "IFFT", "RFFT", "IRFFT"}},
          {Attr::transpose_a, {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
          {Attr::schedule, {"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"}},
          {Attr::padding_type, {"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"}},
          {Attr::convolution_kind, {"fprop", "wgrad", "dgrad", "unset"}},
          {Attr::api_version,
           {"API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
            "API_VERSION_TYPED_FFI"}}};
      auto words = kWords.find(key);
      if (words != kWords.end() && std::find(words->second.begin(), words->second.end(), w) == words->second.end())
        error_at(at_ - w.size(), "unknown {} '{}'", what, w);
      if (key == Attr::algorithm && p.op != Opcode::RngBitGenerator) {
        static constexpr std::string_view kAlgorithms[] = {"unset",
                                                           "dot_any_f8_any_f8_f32",
                                                           "dot_any_f8_any_f8_f32_fast_accum",
                                                           "dot_f16_f16_f16",
                                                           "dot_f16_f16_f32",
                                                           "dot_bf16_bf16_bf16",
                                                           "dot_bf16_bf16_f32",
                                                           "dot_bf16_bf16_f32_x3",
                                                           "dot_bf16_bf16_f32_x6",
                                                           "dot_bf16_bf16_f32_x9",
                                                           "dot_tf32_tf32_f32",
                                                           "dot_tf32_tf32_f32_x3",
                                                           "dot_f32_f32_f32",
                                                           "dot_f64_f64_f64"};
        at_ -= w.size();
        size_t place = at_;
        std::string lower = lower_word(what);
        if (std::find(std::begin(kAlgorithms), std::end(kAlgorithms), lower) == std::end(kAlgorithms))
          error_at(place, "unknown algorithm '{}'", w);
        return u_.str(lower);
      }
      if (key == Attr::algorithm && p.op == Opcode::RngBitGenerator && w != "rng_default" && w != "rng_three_fry" &&
          w != "rng_philox")
        error_at(at_ - w.size(), "unknown random algorithm '{}'", w);
      return u_.str(w);
    }
    case AttrKind::Str:
      return u_.str(quoted(what));
    case AttrKind::Config:
      if (peek() == '"' || peek() == '\'') return u_.str(quoted(what));
      if (peek() != '{') error_here("expected a string or a dictionary as {}", what);
      return u_.str(dictionary());
    case AttrKind::Ints:
      if (key == Attr::slice_sizes && p.op != Opcode::Gather) {  // of collective-permute: a list a slice
        std::string out = "{";
        for (const Dims& d : nested_ints(what))
          out += fmt::format("{}{{{}}}", out.size() > 1 ? "," : "", fmt::join(d, ","));
        return u_.str(out.size() == 1 ? "" : out + "}");
      }
      return int_list(what);
    case AttrKind::Comp:
      return computation_ref();
    case AttrKind::Comps:
      return computation_list();
    case AttrKind::Window:
      return window();
    case AttrKind::DimLabels:
      return dim_labels();
    case AttrKind::Shape:
      return shape();
    case AttrKind::Shapes: {
      std::vector<ShapeId> out;
      expect('{', what);
      while (!eat('}')) {
        if (!out.empty()) expect(',', what);
        out.push_back(shape());
      }
      return out;
    }
    case AttrKind::Padding: {
      std::vector<PaddingDim> out;
      if (p.operands.size() == 2 && m_->shape(p.operands[0]).rank() == 0 &&
          !isdigit(static_cast<unsigned char>(peek())) && peek() != '-')
        return out;
      do {
        PaddingDim d;
        size_t place = at_;
        d.low = integer("low padding");
        if (peek() != '_') error_at(place, "padding is written low_high[_interior]x…");
        ++at_;
        d.high = integer("high padding");
        if (peek() == '_') ++at_, d.interior = integer("interior padding");
        if (d.interior < 0) error_at(place, "interior padding is not negative");
        out.push_back(d);
      } while (peek() == 'x' && ++at_);
      return out;
    }
    case AttrKind::Slices: {
      std::vector<SliceDim> out;
      expect('{', what);
      while (!eat('}')) {
        if (!out.empty()) expect(',', what);
        expect('[', what);
        SliceDim d;
        d.start = integer("the start of a slice");
        expect(':', what);
        d.limit = integer("the limit of a slice");
        if (eat(':')) d.stride = integer("the stride of a slice");
        expect(']', what);
        out.push_back(d);
      }
      return out;
    }
    case AttrKind::Raw:
      break;
  }
  switch (key) {
    case Attr::frontend_attributes:
      return u_.str(canonical_dict());
    case Attr::literal:
      return u_.str(typed_literal());
    case Attr::sharding:
      return sharding_of(p.shape);
    case Attr::domain:
      return u_.str(domain(p.shape));
    case Attr::replica_groups:
      return u_.str(replica_groups());
    case Attr::source_target_pairs:
      return u_.str(source_target_pairs());
    case Attr::output_to_operand_aliasing:
      return u_.str(operand_aliases());
    case Attr::operand_precision:
      return u_.str(operand_precision());
    case Attr::result_accuracy:
      return u_.str(result_accuracy());
    case Attr::statistics:
      return u_.str(statistics());
    case Attr::origin:
      return u_.str(origin_attribute());
    case Attr::sparsity_config:
      return u_.str(sparsity_config());
    case Attr::parameter_replication: {
      size_t place = at_, count = 0;
      std::string out = "{";
      expect('{', what);
      while (!eat('}')) {
        if (count++) expect(',', what), out += ",";
        skip();
        if (peek() != 't' && peek() != 'f') error_here("expected true or false");
        out += boolean(what) ? "true" : "false";
      }
      size_t leaves = u_.leaf_count(p.shape);
      if (leaves != count) error_at(place, "{} flags for a parameter of {} buffer(s)", count, leaves);
      return u_.str(out + "}");
    }
    default:
      break;
  }
  HLO_CHECK(false, "no grammar for attribute {}", attr_text(key));
}

std::string Parser::canonical_dict() {
  std::map<std::string, std::string> entries;
  expect('{', "before attributes");
  while (!eat('}')) {
    if (!entries.empty()) expect(',', "between attributes");
    skip();
    size_t start = at_;
    std::string key(field_name("a dictionary"));
    skip();
    std::string value;
    if (peek() == '"' || peek() == '\'') {
      std::string body = quoted("a value");
      value = is_dict_text(body) ? body : "\"" + c_escape(body) + "\"";
    } else if (peek() == '{') {
      value = dictionary();
    } else {
      error_at(start, "expected a string or a dictionary as the value of '{}'", key);
    }
    entries[key] = value;
  }
  if (entries.empty()) return "";
  std::string out = "{";
  for (const auto& [key, value] : entries) out += (out.size() > 1 ? "," : "") + key + "=" + value;
  return out + "}";
}

Window Parser::window() {
  size_t start = at_;
  expect('{', "before a window");
  std::vector<Dims> lists(6);
  std::vector<std::pair<int64_t, int64_t>> pads;
  static constexpr std::string_view kFields[] = {"size", "stride", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  size_t rank = 0;
  while (!eat('}')) {
    skip();
    size_t place = at_;
    std::string_view field = word();
    if (peek() != '=') error_at(place, "expected a field of a window");
    ++at_;
    size_t count;
    if (field == "pad") {
      if (!pads.empty()) error_at(place, "window field pad stands twice");
      do {
        int64_t low = integer("low padding");
        if (peek() != '_') error_here("window padding is written low_highx…");
        ++at_;
        pads.emplace_back(low, integer("high padding"));
      } while (peek() == 'x' && ++at_);
      count = pads.size();
    } else {
      size_t which = std::find(std::begin(kFields), std::end(kFields), field) - std::begin(kFields);
      if (which == std::size(kFields)) error_at(place, "unknown field '{}' of a window", field);
      if (!lists[which].empty()) error_at(place, "window field {} stands twice", field);
      lists[which] = dxd("a number of a window");
      count = lists[which].size();
    }
    if (count > 1024) error_at(place, "a window of more than 1024 dimensions");
    if (rank && rank != count) error_at(place, "window fields have {} and {} dimensions", rank, count);
    rank = count;
  }
  if (rank && lists[0].empty()) error_at(start, "a window needs size=");
  Window out;
  for (size_t i = 0; i < rank; ++i) {
    WindowDim d;
    d.size = lists[0][i];
    if (!lists[1].empty()) d.stride = lists[1][i];
    if (!pads.empty()) d.pad_low = pads[i].first, d.pad_high = pads[i].second;
    if (!lists[2].empty()) d.lhs_dilate = lists[2][i];
    if (!lists[3].empty()) d.rhs_dilate = lists[3][i];
    if (!lists[4].empty()) d.reversal = lists[4][i] != 0;
    out.dims.push_back(d);
  }
  return out;
}

DimLabels Parser::dim_labels() {
  skip();
  size_t start = at_;
  auto part = [&] {
    size_t from = at_;
    while (isalnum(static_cast<unsigned char>(peek())) || peek() == '?') ++at_;
    return text_.substr(from, at_ - from);
  };
  std::string_view lhs = part();
  if (peek() != '_') error_at(start, "dim_labels is written like b01f_01io->b01f");
  ++at_;
  std::string_view rhs = part();
  if (!eat("->")) error_at(start, "dim_labels is written like b01f_01io->b01f");
  std::string_view out = part();
  DimLabels d;
  auto read = [&](std::string_view labels, char one, char two, int64_t& a, int64_t& b, Dims& spatial) {
    size_t count = 0;
    for (char c : labels) count += c >= '0' && c <= '9';
    spatial.assign(count, -1);
    a = b = -1;
    for (size_t i = 0; i < labels.size(); ++i) {
      char c = labels[i];
      auto put = [&](int64_t& slot) {
        if (slot >= 0) error_at(start, "dim label '{}' stands twice", c);
        slot = static_cast<int64_t>(i);
      };
      if (c == one)
        put(a);
      else if (c == two)
        put(b);
      else if (c >= '0' && c <= '9' && static_cast<size_t>(c - '0') < count)
        put(spatial[static_cast<size_t>(c - '0')]);
      else if (c != '?')
        error_at(start, "unexpected dim label '{}'", c);
    }
    if (a < 0 || b < 0) error_at(start, "dim labels '{}' need {} and {}", labels, one, two);
    return static_cast<int>(labels.size());
  };
  d.lhs_rank = read(lhs, 'b', 'f', d.input_batch, d.input_feature, d.input_spatial);
  d.rhs_rank = read(rhs, 'i', 'o', d.kernel_input, d.kernel_output, d.kernel_spatial);
  d.out_rank = read(out, 'b', 'f', d.output_batch, d.output_feature, d.output_spatial);
  if (d.input_spatial.size() != d.kernel_spatial.size() || d.input_spatial.size() != d.output_spatial.size())
    error_at(start, "dim labels have different numbers of spatial dimensions");
  return d;
}

// `{1}` or `{1,2}`: numbers of xla.ProfileType.
std::string Parser::profile_types() {
  skip();
  size_t place = at_;
  Dims list = int_list("the types of a profile");
  for (int64_t v : list)
    if (v < 0 || v > 4) error_at(place, "unknown profile type {}", v);
  return fmt::format("{{{}}}", fmt::join(list, ","));
}

MetaId Parser::metadata() {
  expect('{', "before metadata");
  Metadata m;
  uint32_t seen = 0;
  while (!eat('}')) {
    eat(',');
    skip();
    size_t place = at_;
    std::string_view field = field_name("metadata");
    auto text = [&](uint32_t& slot) {
      if (slot != StrId::kNone) error_at(place, "metadata field {} stands twice", field);
      skip();
      // Quoted without escapes: the common case needs no copy.
      if (peek() == '"') {
        size_t end = text_.find('"', at_ + 1);
        if (end != std::string_view::npos) {
          std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
          if (body.find('\\') == std::string_view::npos) {
            slot = u_.str(body).value;
            at_ = end + 1;
            return;
          }
        }
      }
      slot = u_.str(quoted("a string")).value;
    };
    auto number = [&](int32_t& slot, int bit) {
      if (seen & 1u << bit) error_at(place, "metadata field {} stands twice", field);
      seen |= 1u << bit;
      int64_t v = integer("a number");
      if (v < INT32_MIN || v > INT32_MAX) error_at(place, "{} is out of the range of 32 bits", v);
      slot = static_cast<int32_t>(v);
    };
    if (field == "op_type")
      text(m.op_type);
    else if (field == "op_name")
      text(m.op_name);
    else if (field == "source_file")
      text(m.source_file);
    else if (field == "source_line")
      number(m.source_line, 0);
    else if (field == "source_end_line")
      number(m.source_end_line, 1);
    else if (field == "source_column")
      number(m.source_column, 2);
    else if (field == "source_end_column")
      number(m.source_end_column, 3);
    else if (field == "stack_frame_id")
      number(m.stack_frame_id, 4);
    else if (field == "deduplicated_name")
      text(m.deduplicated_name);
    else if (field == "scheduling_name")
      text(m.scheduling_name);
    else if (field == "metadata_payload")
      text(m.payload);
    else if (field == "profile_type")
      m.profile_type = u_.str(profile_types()).value;
    else
      error_at(place, "unknown field '{}' of metadata", field);
  }
  return u_.metadata(m);
}

CompId Parser::computation_ref() {
  skip();
  if (peek() == '{') return computation(true);
  size_t place = at_;
  StrId n = name("the name of a computation");
  auto found = comp_by_name_.find(n);
  if (found == comp_by_name_.end()) {
    std::string_view best;
    int distance = 4;
    for (const auto& [known, id] : comp_by_name_)
      if (int d = edit_distance(u_.text(n), u_.text(known));
          d < distance || (d == distance && !best.empty() && u_.text(known) < best))
        distance = d, best = u_.text(known);
    error(place, fmt::format("computation '{}' is not defined before this place", u_.text(n)),
          best.empty() ? "a computation stands before its callers" : fmt::format("did you mean '{}'?", best));
  }
  // Its root and parameters may be missing: what calls it is in error because of it.
  if (std::find(broken_.begin(), broken_.end(), found->second) != broken_.end()) throw SyntaxError{{}, true};
  return found->second;
}

std::vector<CompId> Parser::computation_list() {
  std::vector<CompId> out;
  expect('{', "before a list of computations");
  while (!eat('}')) {
    if (!out.empty()) expect(',', "between computations");
    out.push_back(computation_ref());
  }
  return out;
}

// What XLA's parser asks of operands and attributes together before it makes an instruction.
void Parser::check_operands(const Pending& p, const AttrSet& set) {
  size_t count = p.operands.size();
  auto operand_shape = [&](size_t i) -> const Shape& { return m_->shape(p.operands[i]); };
  switch (p.op) {
    case Opcode::AllToAll:
    case Opcode::Concatenate:
    case Opcode::Sort:
    case Opcode::SetDimensionSize:
    case Opcode::Scan:
      if (const Dims* d = set.get<Dims>(Attr::dimensions); d && d->size() != 1)
        error_at(p.op_at, "{} takes one dimension, not {}", op_text(p.op), d->size());
      break;
    case Opcode::RecvDone:
    case Opcode::SendDone:
      if (count == 1) {
        Opcode want = p.op == Opcode::RecvDone ? Opcode::Recv : Opcode::Send;
        if (p.op == Opcode::RecvDone && m_->op(p.operands[0]) != want && !operand_shape(0).is_tuple())
          error_at(p.op_at, "{} takes what {} returns", op_text(p.op), op_text(want));
        const AttrSet& start = m_->attrs(p.operands[0]);
        // In a pipelined loop the operand comes out of the loop's state.
        bool carried = m_->op(p.operands[0]) == Opcode::GetTupleElement || m_->op(p.operands[0]) == Opcode::Parameter;
        if (set.has(Attr::channel_id) && !carried &&
            (m_->op(p.operands[0]) != want || !start.has(Attr::channel_id) ||
             set.integer(Attr::channel_id) != start.integer(Attr::channel_id)))
          error_at(p.op_at, "channel_id differs from that of its operand");
      }
      break;
    case Opcode::Tuple:
      if (p.shape.valid() && u_[p.shape].is_tuple() && u_[p.shape].elements.size() != count)
        error_at(p.op_at, "a tuple of {} elements takes {} operands, not {}", u_[p.shape].elements.size(),
                 u_[p.shape].elements.size(), count);
      break;
    case Opcode::Reshape:
      if (count == 1 && p.shape.valid() && u_[p.shape].is_array() && operand_shape(0).is_array() &&
          u_[p.shape].elements_count() != operand_shape(0).elements_count())
        error_at(p.op_at, "reshape of {} elements to {}", operand_shape(0).elements_count(),
                 u_[p.shape].elements_count());
      break;
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice: {
      size_t first = p.op == Opcode::DynamicSlice ? 1 : 2;
      if (count < first) error_at(p.op_at, "{} takes at least {} operand(s)", op_text(p.op), first);
      bool vector =
          count == first + 1 && operand_shape(first).rank() == 1;  // all indices in one operand, as before 2019
      if (!vector && count != first + static_cast<size_t>(operand_shape(0).rank()))
        error_at(p.op_at, "{} takes an index for each of {} dimensions, not {}", op_text(p.op), operand_shape(0).rank(),
                 count - first);
      break;
    }
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
      if (count % 2) error_at(p.op_at, "{} takes an even number of operands, not {}", op_text(p.op), count);
      break;
    case Opcode::Scatter:
      if (count % 2 == 0) error_at(p.op_at, "scatter takes an odd number of operands, not {}", count);
      break;
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
      if (p.shape.valid() && p.shape != u_.scalar(ElementType::U32))
        error_at(p.op_at, "{} returns a u32[]", op_text(p.op));
      break;
    case Opcode::Infeed:
      if (!p.shape.valid() || !u_[p.shape].is_tuple() || u_[p.shape].elements.empty())
        error_at(p.op_at, "infeed returns a tuple that is not empty");
      break;
    case Opcode::Conditional: {
      size_t branches = set.has(Attr::true_computation) ? 2 : 0;
      if (const auto* some = set.get<std::vector<CompId>>(Attr::branch_computations)) branches = some->size();
      if (!branches) error_at(p.op_at, "conditional has no branch");
      if (count != branches + 1)
        error_at(p.op_at, "conditional of {} branches takes {} operands, not {}", branches, branches + 1, count);
      const Shape& index = operand_shape(0);
      if (index.rank() != 0 || (index.type != ElementType::Pred && index.type != ElementType::S32))
        error_at(p.op_at, "conditional chooses by a pred[] or s32[], not by {}",
                 u_.shape_text_plain(m_->shape_id(p.operands[0])));
      break;
    }
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart:
      if (set.has(Attr::slice_sizes) && count != 4)
        error_at(p.op_at, "{} with slice_sizes takes four operands, not {}", op_text(p.op), count);
      break;
    case Opcode::CustomCall:
      if (const auto* shapes = set.get<std::vector<ShapeId>>(Attr::operand_layout_constraints)) {
        if (shapes->size() != count)
          error_at(p.op_at, "operand_layout_constraints has {} shapes for {} operand(s)", shapes->size(), count);
        for (size_t i = 0; i < count; ++i)
          if (!u_.compatible((*shapes)[i], m_->shape_id(p.operands[i])))
            error_at(p.op_at, "operand_layout_constraints says {} of operand {}, which is a {}",
                     u_.shape_text_plain((*shapes)[i]), i, u_.shape_text_plain(m_->shape_id(p.operands[i])));
      }
      break;
    default:
      break;
  }
  if (set.flag(Attr::use_global_device_ids) && !set.has(Attr::channel_id))
    error_at(p.op_at, "use_global_device_ids needs a channel_id");
}

// Defaults out, required ones in (xla/hlo/parser/hlo_parser.cc, per opcode in CreateInstruction).
void Parser::check_attrs(Pending& p) {
  AttrSet& set = p.set;
  if (set.list.empty() && op_info(p.op).attrs.empty()) return;
  auto drop_text = [&](Attr key, std::string_view value) {
    if (StrId t = set.text(key); t.valid() && u_.text(t) == value) set.erase(key);
  };
  auto drop_int = [&](Attr key, int64_t value) {
    if (const int64_t* v = set.get<int64_t>(key); v && *v == value) set.erase(key);
  };
  for (auto it = set.list.begin(); it != set.list.end();) {
    const bool* flag = std::get_if<bool>(&it->second);
    bool keep = !flag || *flag || it->first == Attr::largest || it->first == Attr::is_associative ||
                (p.op == Opcode::TopK && it->first == Attr::is_stable);
    it = keep ? it + 1 : set.list.erase(it);
  }
  drop_int(Attr::feature_group_count, 1);
  drop_int(Attr::batch_group_count, 1);
  drop_text(Attr::api_version, "API_VERSION_ORIGINAL");
  drop_text(Attr::schedule, "SCHEDULE_NONE");
  drop_text(Attr::transpose_a, "TRANSPOSE_INVALID");
  drop_text(Attr::padding_type, "PADDING_INVALID");
  drop_text(Attr::convolution_kind, "unset");
  drop_text(Attr::async_execution_thread, "main");
  for (Attr key : {Attr::frontend_attributes, Attr::result_accuracy, Attr::statistics, Attr::output_to_operand_aliasing,
                   Attr::operand_precision, Attr::sparsity_config, Attr::slice_sizes, Attr::backend_config})
    drop_text(key, "");
  if (p.op == Opcode::Dot || p.op == Opcode::Convolution) drop_text(Attr::algorithm, "unset");
  for (Attr key : {Attr::lhs_batch_dims, Attr::rhs_batch_dims, Attr::operand_batching_dims,
                   Attr::start_indices_batching_dims, Attr::input_batching_dims, Attr::scatter_indices_batching_dims,
                   Attr::slice_sizes, Attr::rhs_group_dims, Attr::lhs_ragged_dims})
    if (const Dims* d = set.get<Dims>(key);
        d && d->empty() && attr_position(p.op, key) >= 0 && !(key == Attr::slice_sizes && p.op == Opcode::Gather))
      set.erase(key);
  if (const Window* w = set.get<Window>(Attr::window); w && w->dims.empty() && p.op != Opcode::SelectAndScatter &&
                                                       p.op != Opcode::ReduceWindow && p.op != Opcode::CustomCall)
    set.erase(Attr::window);
  if (p.op == Opcode::Compare && !p.operands.empty()) {
    ElementType type = m_->shape(p.operands[0]).type;
    std::string_view normal = is_float(type) || is_complex(type) ? "FLOAT"
                              : is_signed_int(type)              ? "SIGNED"
                                                                 : "UNSIGNED";
    drop_text(Attr::type, normal);
  }
  if (p.op == Opcode::Conditional) {
    bool pair = set.has(Attr::true_computation) && set.has(Attr::false_computation);
    bool list = set.has(Attr::branch_computations);
    bool one_of_pair = set.has(Attr::true_computation) != set.has(Attr::false_computation);
    if (one_of_pair || pair == list)
      error_at(p.op_at, "conditional takes true_computation and false_computation, or branch_computations");
    if (!p.operands.empty()) {
      const Shape& index = m_->shape(p.operands[0]);
      bool is_pred = index.type == ElementType::Pred;
      if (is_pred != pair)
        error_at(p.op_at, "{}",
                 is_pred ? "a conditional on pred takes true_computation and false_computation"
                         : "a conditional on s32 takes branch_computations");
    }
  }
  if (p.op == Opcode::AllGather || p.op == Opcode::AllGatherStart || p.op == Opcode::ReduceScatter ||
      p.op == Opcode::GetDimensionSize)
    if (const Dims* d = set.get<Dims>(Attr::dimensions)) {
      // The first counts.
      if (d->empty()) error_at(p.op_at, "{} takes one dimension, not 0", op_text(p.op));
      if (d->size() > 1) set.set(Attr::dimensions, Dims{d->front()});
    }
  if (p.op == Opcode::Map) {
    // Always all dimensions of the result.
    Dims all;
    int rank = p.shape.valid() ? u_[p.shape].rank() : p.operands.empty() ? 0 : m_->shape(p.operands[0]).rank();
    for (int i = 0; i < rank; ++i) all.push_back(i);
    set.set(Attr::dimensions, all);
  }
  for (const OwnAttr& own : op_info(p.op).attrs) {
    if (own.optional || set.has(own.key)) continue;
    if (own.key == Attr::calls && p.is_short) continue;
    switch (own.key) {
      case Attr::replica_groups:
        set.set(own.key, u_.str("{}"));
        continue;
      case Attr::source_target_pairs:
        break;
      case Attr::lhs_contracting_dims:
      case Attr::rhs_contracting_dims:
        set.set(own.key, Dims{});
        continue;
      case Attr::dimensions:
        if (p.op == Opcode::Broadcast && !p.operands.empty() && m_->shape(p.operands[0]).rank() == 0) {
          set.set(own.key, Dims{});
          continue;
        }
        break;
      case Attr::window:
        if (p.op != Opcode::ReduceWindow && p.op != Opcode::SelectAndScatter) break;
        set.set(own.key, Window{});  // of scalars
        continue;
      case Attr::largest:
        set.set(own.key, true);
        continue;
      case Attr::is_associative:
        continue;
      default:
        break;
    }
    error_at(p.op_at, "{} needs attribute '{}'", op_text(p.op), attr_text(own.key));
  }
}

}  // namespace hlo
