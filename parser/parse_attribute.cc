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

#include "ir/print/print.h"
#include "parser/parser_impl.h"

namespace hlo {

namespace {

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

void Parser::control_predecessors(Pending& p) {
  expect('{', "before control predecessors");
  do {
    skip();
    size_t place = at_;
    StrId n = name("the name of a control predecessor");
    InstId before = find(n, CompId(), place);
    if (std::find(p.control.begin(), p.control.end(), before) == p.control.end()) p.control.push_back(before);
  } while (eat(','));
  expect('}', "after control predecessors");
}

void Parser::collective_mode() {
  skip();
  size_t place = at_;
  std::string_view mode = word();
  if (mode != "cross_replica" && mode != "cross_partition" && mode != "cross_replica_and_partition" &&
      mode != "flattened_id")
    error_at(place, "unknown mode '{}' of a collective", mode);
}

// XLA of late 2026 writes the order of a comparison instead of its type.
void Parser::comparison_order(Pending& p, size_t start) {
  skip();
  size_t place = at_;
  std::string_view order = word();
  if (order != "TOTAL" && order != "PARTIAL") error_at(place, "unknown order '{}' of a comparison", order);
  if (p.set.has(Attr::type)) error_at(start, "compare takes a type or an order");
  if (p.operands.empty()) return;
  ElementType type = m_->shape(p.operands[0]).type;
  const bool partial = is_float(type) || is_complex(type);  // by itself; integers have a total order
  if (partial == (order == "TOTAL")) p.set.set(Attr::type, u_.str(partial ? "TOTALORDER" : "FLOAT"));
}

// Is it one that the operation inside takes? What that takes is its own.
bool Parser::wrapped_attribute(Pending& p, Attr key, size_t start) {
  bool inside = key == Attr::result_accuracy && op_info(p.base).transcendental;
  for (const OwnAttr& own : op_info(p.base).attrs) inside |= own.key == key;
  if (inside) {
    if (p.wrapped->set.has(key)) error_at(start, "attribute '{}' is given twice", attr_text(key));
    p.wrapped->set.set(key, attr_value(*p.wrapped, key, attr_kind(key)));
    return true;
  }
  if (key == Attr::calls) error_at(start, "a short form takes no attribute 'calls'");
  return false;
}

namespace {

bool takes_attribute(Opcode op, Attr key) {
  if (key == Attr::result_accuracy && !op_info(op).transcendental) return false;
  if (key == Attr::parameter_replication && op != Opcode::Parameter) return false;
  return attr_position(op, key) >= 0;
}

}  // namespace

// -done and -update may repeat what their start says.
bool Parser::repeats_start(const Pending& p, Attr key) {
  if (p.op != Opcode::AsyncDone && p.op != Opcode::AsyncUpdate) return false;
  return (key == Attr::calls && !p.is_short) || key == Attr::async_execution_thread;
}

void Parser::refuse_attribute(Opcode op, Attr key, size_t start) {
  std::string takes;
  for (const OwnAttr& a : op_info(op).attrs) takes += (takes.empty() ? "" : ", ") + std::string(attr_text(a.key));
  error(start, fmt::format("{} takes no attribute '{}'", op_text(op), attr_text(key)),
        takes.empty() ? "" : "it takes " + takes);
}

void Parser::check_repeated(const Pending& p, const AttrValue& value, size_t start) {
  const AttrSet& set = m_->attrs(async_root(p.operands[0]).first);
  if (const CompId* callee = std::get_if<CompId>(&value); callee && *callee != set.comp(Attr::calls))
    error_at(start, "its async-start calls '{}'", m_->comp_name(set.comp(Attr::calls)));
  StrId thread = set.text(Attr::async_execution_thread);
  if (const StrId* word = std::get_if<StrId>(&value);
      word && u_.text(*word) != (thread.valid() ? u_.text(thread) : std::string_view("main")))
    error_at(start, "its async-start runs on thread '{}'", thread.valid() ? u_.text(thread) : "main");
}

void Parser::attribute(Pending& p) {
  skip();
  size_t start = at_;
  std::string_view key_text = word();
  if (key_text.empty()) error_at(start, "expected the name of an attribute");
  if (key_text == "metadata" && p.meta.valid()) error_at(start, "attribute metadata is given twice");
  if (peek() != '=') {
    at_ = start;
    error_at(start, "expected '=' right after attribute '{}'", key_text);
  }
  ++at_;
  if (key_text == "metadata") {
    p.meta = metadata();
    return;
  }
  if (key_text == "control-predecessors") {
    control_predecessors(p);
    return;
  }
  if (key_text == "mode" && op_info(p.op).cls == OpClass::Collective) {
    collective_mode();
    return;
  }
  if (key_text == "order" && p.op == Opcode::Compare) {
    comparison_order(p, start);
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
  if (p.wrapped && wrapped_attribute(p, key, start)) return;
  const bool dropped = !takes_attribute(p.op, key);
  if (dropped && !repeats_start(p, key)) refuse_attribute(p.op, key, start);
  if (!dropped && std::find(p.seen.begin(), p.seen.end(), key) != p.seen.end())
    error_at(start, "attribute '{}' is given twice", key_text);
  p.seen.push_back(key);
  AttrValue value = attr_value(p, key, attr_kind(key));
  if (dropped) {
    check_repeated(p, value, start);
    return;
  }
  p.set.set(key, std::move(value));
}

// `w` is behind the cursor.
AttrValue Parser::algorithm(const Pending& p, std::string_view w) {
  if (p.op == Opcode::RngBitGenerator) {
    if (w != "rng_default" && w != "rng_three_fry" && w != "rng_philox")
      error_at(at_ - w.size(), "unknown random algorithm '{}'", w);
    return u_.str(w);
  }
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
  std::string lower = lower_word(attr_text(Attr::algorithm).data());
  if (std::find(std::begin(kAlgorithms), std::end(kAlgorithms), lower) == std::end(kAlgorithms))
    error_at(place, "unknown algorithm '{}'", w);
  return u_.str(lower);
}

AttrValue Parser::enumeration(const Pending& p, Attr key) {
  const char* what = attr_text(key).data();
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
       {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"}}};
  auto words = kWords.find(key);
  if (words != kWords.end() && std::find(words->second.begin(), words->second.end(), w) == words->second.end())
    error_at(at_ - w.size(), "unknown {} '{}'", what, w);
  if (key == Attr::algorithm) return algorithm(p, w);
  return u_.str(w);
}

AttrValue Parser::paddings(const Pending& p) {
  std::vector<PaddingDim> out;
  if (p.operands.size() == 2 && m_->shape(p.operands[0]).rank() == 0 && !isdigit(static_cast<unsigned char>(peek())) &&
      peek() != '-')
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

AttrValue Parser::slices(const char* what) {
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

AttrValue Parser::shape_list(const char* what) {
  std::vector<ShapeId> out;
  expect('{', what);
  while (!eat('}')) {
    if (!out.empty()) expect(',', what);
    out.push_back(shape());
  }
  return out;
}

AttrValue Parser::dimension_list(const Pending& p, Attr key) {
  const char* what = attr_text(key).data();
  if (key == Attr::slice_sizes && p.op != Opcode::Gather) {  // of collective-permute: a list a slice
    std::string out = "{";
    for (const Dims& d : nested_ints(what))
      out += fmt::format("{}{{{}}}", out.size() > 1 ? "," : "", fmt::join(d, ","));
    return u_.str(out.size() == 1 ? "" : out + "}");
  }
  return int_list(what);
}

std::string Parser::parameter_replication(ShapeId parameter) {
  const char* what = attr_text(Attr::parameter_replication).data();
  size_t place = at_, count = 0;
  std::string out = "{";
  expect('{', what);
  while (!eat('}')) {
    if (count++) expect(',', what), out += ",";
    skip();
    if (peek() != 't' && peek() != 'f') error_here("expected true or false");
    out += boolean(what) ? "true" : "false";
  }
  size_t leaves = u_.leaf_count(parameter);
  if (leaves != count) error_at(place, "{} flags for a parameter of {} buffer(s)", count, leaves);
  return out + "}";
}

AttrValue Parser::bracketed(Pending& p, Attr key) {
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
    case Attr::parameter_replication:
      return u_.str(parameter_replication(p.shape));
    default:
      break;
  }
  HLO_CHECK(false, "no grammar for attribute {}", attr_text(key));
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
    case AttrKind::Enum:
      return enumeration(p, key);
    case AttrKind::Str:
      return u_.str(quoted(what));
    case AttrKind::Config:
      if (peek() == '"' || peek() == '\'') return u_.str(quoted(what));
      if (peek() != '{') error_here("expected a string or a dictionary as {}", what);
      return u_.str(dictionary());
    case AttrKind::Ints:
      return dimension_list(p, key);
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
    case AttrKind::Shapes:
      return shape_list(what);
    case AttrKind::Padding:
      return paddings(p);
    case AttrKind::Slices:
      return slices(what);
    case AttrKind::Raw:
      return bracketed(p, key);
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
          best.empty() ? "a computation is defined before its callers" : fmt::format("did you mean '{}'?", best));
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

}  // namespace hlo
