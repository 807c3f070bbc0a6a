// Metadata: where an instruction comes from.
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstring>

#include "ir/print/print.h"
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

}  // namespace

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
      if (slot != StrId::kNone) error_at(place, "metadata field {} is given twice", field);
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
      if (seen & 1u << bit) error_at(place, "metadata field {} is given twice", field);
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

}  // namespace hlo
