#include "ir/print.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "ir/base/stack_guard.h"
#include "ir/sharding.h"

namespace hlo {

PrintOptions PrintOptions::Long() {
  PrintOptions o;
  o.operand_shapes = o.large_constants = true;
  return o;
}
PrintOptions PrintOptions::Short() {
  PrintOptions o;
  o.percent = o.signatures = o.metadata = o.control = o.index_comments = o.stack_tables = false;
  o.large_constants = true;
  return o;
}
PrintOptions PrintOptions::Canonical() {
  PrintOptions o;
  o.percent = o.metadata = o.control = o.index_comments = o.stack_tables = o.backend_config = false;
  o.signatures = false;
  o.operand_shapes = true;
  o.canonical = true;
  return o;
}
PrintOptions PrintOptions::Fingerprint() {
  PrintOptions o = Canonical();
  o.fingerprint = true;
  o.large_constants = true;
  return o;
}
bool PrintOptions::by_name(std::string_view style, PrintOptions* out) {
  if (style == "default")
    *out = Default();
  else if (style == "long")
    *out = Long();
  else if (style == "short")
    *out = Short();
  else if (style == "canonical")
    *out = Canonical();
  else if (style == "fingerprint")
    *out = Fingerprint();
  else
    return false;
  return true;
}

namespace {

#ifdef __SSE2__
// A bit for each of 16 bytes that c_escape changes.
unsigned changed(const char* at) {
  auto all = [](char c) { return _mm_set1_epi8(c); };
  __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  // As signed numbers everything over 127 is below a blank as well.
  __m128i bad = _mm_or_si128(_mm_cmplt_epi8(c, all(' ')), _mm_cmpeq_epi8(c, all('\x7f')));
  bad = _mm_or_si128(bad, _mm_or_si128(_mm_cmpeq_epi8(c, all('"')), _mm_cmpeq_epi8(c, all('\''))));
  bad = _mm_or_si128(bad, _mm_cmpeq_epi8(c, all('\\')));
  return static_cast<unsigned>(_mm_movemask_epi8(bad));
}
#endif

// Index of the first byte from `at` on that c_escape changes, or the size.
size_t plain_until(std::string_view text, size_t at) {
#ifdef __SSE2__
  for (; at + 16 <= text.size(); at += 16)
    if (unsigned mask = changed(text.data() + at)) return at + static_cast<size_t>(std::countr_zero(mask));
#endif
  for (; at < text.size(); ++at) {
    char c = text[at];
    auto b = static_cast<unsigned char>(c);
    if (b < 32 || b >= 127 || c == '"' || c == '\'' || c == '\\') break;
  }
  return at;
}

}  // namespace

std::string c_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (size_t at = 0;; ++at) {
    size_t run = plain_until(text, at);
    out.append(text, at, run - at);
    if ((at = run) == text.size()) break;
    char c = text[at];
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\'':
        out += "\\'";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

size_t closing_quote(std::string_view text, size_t open) {
  for (size_t at = open + 1;;) {
    const void* quote = at < text.size() ? std::memchr(text.data() + at, text[open], text.size() - at) : nullptr;
    if (!quote) return std::string_view::npos;
    size_t end = static_cast<size_t>(static_cast<const char*>(quote) - text.data()), escapes = end;
    while (escapes > open + 1 && text[escapes - 1] == '\\') --escapes;
    if ((end - escapes) % 2 == 0) return end;
    at = end + 1;
  }
}

size_t dict_end(std::string_view text, size_t start) {
  int depth = 0;
  for (size_t i = start; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      i = closing_quote(text, i);
      if (i == std::string_view::npos) return i;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

bool is_dict_text(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text.starts_with('{') && dict_end(text, 0) == text.size();
}

// --- literals ---

namespace {

// XLA prints a negative zero as `-0`, which its parser and ours read as the integer 0: `-0.0` where nothing may be
// lost.
void append_value(std::string& out, ElementType type, const char* at, bool exact) {
  size_t start = out.size();
  append_element(out, type, at);
  if (!exact || (!is_float(type) && !is_complex(type))) return;
  for (size_t i = out.find("-0", start); i != std::string::npos; i = out.find("-0", i + 2))
    if (i + 2 == out.size() || out[i + 2] == ',' || out[i + 2] == ')') out.insert(i + 2, ".0");
}

void append_array(const Universe& u, const Literal& lit, std::string& out, bool exact) {
  const Shape& s = u[lit.shape];
  int rank = s.rank(), width = storage_bytes(s.type);
  bool predicate = s.type == ElementType::Pred;
  const char* at = lit.bytes.data();
  auto value = [&] {
    if (predicate)
      out += *at ? '1' : '0';
    else
      append_value(out, s.type, at, exact);
    at += width;
  };
  // xla/literal.cc, DenseArrayPrintHelper: braces a dimension, rank 1 without blanks inside.
  auto level = [&](auto&& self, int dim, int64_t index) -> void {
    int64_t n = s.dims[static_cast<size_t>(dim)];
    bool last = dim + 1 == rank;
    // The innermost braces hug a single element, as all of rank 1 do.
    bool tight = rank == 1 || (last && n <= 1);
    out += tight ? "{" : "{ ";
    // From rank 4 on the outer indices are told in comments.
    bool told = rank > 3 && dim > 0 && dim < rank - 1;
    if (told) out += fmt::format("/*i{}={}*/ ", dim - 1, index);
    for (int64_t i = 0; i < n; ++i) {
      if (i) out += ", ";
      if (last)
        value();
      else
        self(self, dim + 1, i);
    }
    out += tight || (told && n == 0) ? "}" : " }";
  };
  level(level, 0, 0);
}

// The elements that are not zero, with their indices.
void append_sparse(const Shape& s, const Literal& lit, std::string& out, bool exact) {
  size_t width = static_cast<size_t>(storage_bytes(s.type));
  std::string zero(width, '\0');
  bool first = true;
  out += '{';
  for (size_t n = 0; n * width < lit.bytes.size(); ++n) {
    if (!lit.bytes.compare(n * width, width, zero)) continue;
    if (!first) out += ", ";
    first = false;
    Dims index(s.dims.size());
    size_t rest = n;
    for (size_t d = s.dims.size(); d-- > 0;) {
      index[d] = static_cast<int64_t>(rest % static_cast<size_t>(s.dims[d]));
      rest /= static_cast<size_t>(s.dims[d]);
    }
    out += index.size() == 1 ? fmt::format("{}: ", index[0]) : fmt::format("[{}]: ", fmt::join(index, ", "));
    append_value(out, s.type, lit.bytes.data() + n * width, exact);
  }
  out += '}';
}

void append_literal(const Universe& u, const Literal& lit, bool large, bool exact, std::string& out, bool top) {
  const Shape& s = u[lit.shape];
  if (s.is_tuple()) {
    if (!large || lit.elided) {
      out += "{...}";
      return;
    }
    out += "( ";
    for (size_t i = 0; i < lit.elements.size(); ++i) {
      if (i) out += ", ";
      append_literal(u, u[lit.elements[i]], large, exact, out, false);
    }
    out += " )";
    return;
  }
  if (lit.elided || (top && !large && s.elements_count() > 10)) {
    out += "{...}";
    return;
  }
  if (s.rank() == 0)
    append_value(out, s.type, lit.bytes.data(), exact);
  else if (s.layout.sparse)
    append_sparse(s, lit, out, exact);
  else
    append_array(u, lit, out, exact);
}

}  // namespace

std::string literal_text(const Universe& u, LitId lit, bool large, bool exact) {
  std::string out;
  append_literal(u, u[lit], large, exact, out, true);
  return out;
}

// Does XLA print the async operation in its short form? Its computation is one operation over parameters.
bool async_sugar(const Module& m, InstId id, Opcode* inside) {
  while (m.op(id) == Opcode::AsyncUpdate || m.op(id) == Opcode::AsyncDone) id = m.operand(id, 0);
  if (m.op(id) != Opcode::AsyncStart) return false;
  CompId callee = m.attrs(id).comp(Attr::calls);
  if (!callee.valid()) return false;
  const Computation& c = m.comp(callee);
  for (InstId i : c.order)
    if (m.alive(i) && i != c.root && m.op(i) != Opcode::Parameter) return false;
  *inside = m.op(c.root);
  return true;
}

// --- orders ---

std::vector<InstId> print_order(const Module& m, CompId comp) {
  return m.config().is_scheduled ? m.live_order(comp) : m.post_order(comp);
}

std::vector<CompId> print_order(const Module& m, bool stable) {
  // Roots are computations that nobody calls, in stored order; before each, depth first, what it reaches.
  std::vector<bool> called(m.comp_slots(), false);
  std::vector<CompId> all = m.computations();
  std::vector<std::vector<CompId>> callees(m.comp_slots());
  for (CompId c : all) {
    for (InstId i : stable ? print_order(m, c) : m.comp(c).order)
      if (m.alive(i))
        for (CompId callee : m.called(i)) callees[c.value].push_back(callee), called[callee.value] = true;
  }
  std::vector<CompId> out;
  std::vector<uint8_t> state(m.comp_slots(), 0);
  for (CompId root : all) {
    if (called[root.value]) continue;
    std::vector<std::pair<CompId, size_t>> stack{{root, 0}};
    state[root.value] = 1;
    while (!stack.empty()) {
      auto& [c, next] = stack.back();
      if (next < callees[c.value].size()) {
        CompId callee = callees[c.value][next++];
        if (!state[callee.value]) state[callee.value] = 1, stack.push_back({callee, 0});
      } else {
        out.push_back(c);
        stack.pop_back();
      }
    }
  }
  return out;
}

// --- attributes and instructions ---

namespace {

// Nothing in it that c_escape would change?
bool plain(std::string_view text) {
#ifdef __SSE2__
  if (text.size() >= 16) {
    for (size_t at = 0; at + 16 < text.size(); at += 16)
      if (changed(text.data() + at)) return false;
    return !changed(text.data() + text.size() - 16);  // some bytes of it for the second time
  }
#endif
  return plain_until(text, 0) == text.size();
}

void append_number(std::string& out, int64_t v) {
  fmt::format_int digits(v);
  out.append(digits.data(), digits.size());
}

void metadata_fields(const Universe& u, const Metadata& d, const std::vector<int32_t>& frame_map, std::string& out) {
  constexpr uint32_t none = StrId::kNone;
  auto has = [&](uint32_t s) { return s != none && !u.text(StrId(s)).empty(); };
  size_t start = out.size();
  auto text = [&](std::string_view key, uint32_t s, bool escape = true) {
    if (!has(s)) return;
    std::string_view t = u.text(StrId(s));
    out.append(key);
    if (!escape || plain(t))
      out.append(t);
    else
      out.append(c_escape(t));
    out.append(std::string_view("\" "));
  };
  auto number = [&](std::string_view key, int32_t v) {
    if (!v) return;
    out.append(key);
    append_number(out, v);
    out.push_back(' ');
  };
  text("op_type=\"", d.op_type);
  text("op_name=\"", d.op_name);
  text("source_file=\"", d.source_file);
  number("source_line=", d.source_line);
  number("source_end_line=", d.source_end_line);
  number("source_column=", d.source_column);
  number("source_end_column=", d.source_end_column);
  if (d.profile_type != none && u.text(StrId(d.profile_type)) != "{}")
    out += "profile_type=" + std::string(u.text(StrId(d.profile_type))) + " ";
  text("deduplicated_name=\"", d.deduplicated_name);
  text("scheduling_name=\"", d.scheduling_name, false);
  int32_t frame = d.stack_frame_id;
  if (frame && frame < static_cast<int32_t>(frame_map.size())) frame = frame_map[static_cast<size_t>(frame)];
  number("stack_frame_id=", frame);
  text("metadata_payload=\"", d.payload);
  if (out.size() > start && out.back() == ' ') out.pop_back();
}

class Printer {
 public:
  Printer(const Module& m, const PrintOptions& o) : m_(m), u_(m.u()), o_(o) {}

  std::string out;

  // So many instructions are going to be printed.
  void expect(size_t instructions) {
    expected_ = instructions;
    out.reserve(std::min<size_t>(instructions * 100 + 1000, size_t{1} << 20));
  }
  // They spare page faults.
  void wish_large_pages() {
    void* at = out.data();
    size_t left = out.capacity();
    constexpr size_t kHuge = HugeAllocator<char>::kHuge;
    if (left > 4 * kHuge && std::align(kHuge, kHuge, at, left)) ::madvise(at, left / kHuge * kHuge, MADV_HUGEPAGE);
  }

  // A get-tuple-element that `%t#1` says in full.
  bool folded(InstId id) const {
    return o_.compact_gte && m_.op(id) == Opcode::GetTupleElement && !m_.is_root(id) && !m_[id].meta.valid() &&
           m_.attrs(id).list.size() == 1 && !m_.has_control(id);
  }

  // async_sugar() without walking a chain of updates anew for each of them.
  bool sugar(InstId id, Opcode* inside) {
    if (o_.lossless) return false;
    if (m_.op(id) == Opcode::AsyncStart) return async_sugar(m_, id, inside);
    InstId start = m_.operand(id, 0);
    if (auto known = async_start_.find(start); known != async_start_.end()) start = known->second;
    while (m_.op(start) == Opcode::AsyncUpdate) start = m_.operand(start, 0);
    async_start_[id] = start;
    return async_sugar(m_, start, inside);
  }

  enum class Ink { kName, kOpcode, kShape, kMetadata };
  // Colours the text from `start` on.
  void paint(size_t start, Ink ink) {
    if (!o_.color) return;
    static constexpr const char* kCodes[] = {"\x1b[36m", "\x1b[1m", "\x1b[33m", "\x1b[2m"};
    out.insert(start, kCodes[static_cast<int>(ink)]);
    out += "\x1b[0m";
  }

  void name(InstId id) {
    if (folded(id)) {
      name(m_.operand(id, 0));
      out += fmt::format("#{}", m_.attrs(id).integer(Attr::index));
      return;
    }
    if (o_.percent) out += '%';
    if (o_.canonical) {
      out += canonical_name(id);
      return;
    }
    out += m_.inst_name(id);
  }
  void comp_name(CompId c) {
    if (o_.percent) out += '%';
    out += m_.comp_name(c);
  }
  std::string canonical_name(InstId id) {
    auto found = numbers_.find(id);
    if (found != numbers_.end()) return "tmp_" + std::to_string(found->second);
    int& next = next_number_[m_.parent(id)];
    numbers_[id] = next;
    return "tmp_" + std::to_string(next++);
  }

  void ints(const Dims& d) {
    out += '{';
    for (size_t i = 0; i < d.size(); ++i) {
      if (i) out += ',';
      out += std::to_string(d[i]);
    }
    out += '}';
  }

  void window(const Window& w) {
    out += '{';
    bool first = true;
    auto field = [&](const char* key, auto&& value, bool show) {
      if (!show) return;
      if (!first) out += ' ';
      first = false;
      out += key;
      for (size_t i = 0; i < w.dims.size(); ++i) {
        if (i) out += 'x';
        value(w.dims[i]);
      }
    };
    auto any = [&](auto&& test) { return std::any_of(w.dims.begin(), w.dims.end(), test); };
    auto num = [&](int64_t v) { out += std::to_string(v); };
    using D = const WindowDim&;
    field(
        "size=", [&](D d) { num(d.size); }, !w.dims.empty());
    field(
        "stride=", [&](D d) { num(d.stride); }, any([](D d) { return d.stride != 1; }));
    field(
        "pad=", [&](D d) { num(d.pad_low), out += '_', num(d.pad_high); },
        any([](D d) { return d.pad_low || d.pad_high; }));
    field(
        "lhs_dilate=", [&](D d) { num(d.lhs_dilate); }, any([](D d) { return d.lhs_dilate != 1; }));
    field(
        "rhs_dilate=", [&](D d) { num(d.rhs_dilate); }, any([](D d) { return d.rhs_dilate != 1; }));
    field(
        "rhs_reversal=", [&](D d) { num(d.reversal); }, any([](D d) { return d.reversal; }));
    out += '}';
  }

  void dim_labels(const DimLabels& d) {
    auto part = [&](int rank, int64_t a, char ca, int64_t b, char cb, const Dims& spatial) {
      std::string labels(static_cast<size_t>(rank), '?');
      labels[static_cast<size_t>(a)] = ca;
      labels[static_cast<size_t>(b)] = cb;
      for (size_t i = 0; i < spatial.size(); ++i) labels[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
      out += labels;
    };
    part(d.lhs_rank, d.input_batch, 'b', d.input_feature, 'f', d.input_spatial);
    out += '_';
    part(d.rhs_rank, d.kernel_input, 'i', d.kernel_output, 'o', d.kernel_spatial);
    out += "->";
    part(d.out_rank, d.output_batch, 'b', d.output_feature, 'f', d.output_spatial);
  }

  void value(Attr key, const AttrValue& v) {
    if (!o_.metadata && (key == Attr::sharding || key == Attr::domain)) {
      out += without_metadata(u_.text(std::get<StrId>(v)));
      return;
    }
    if (o_.fingerprint && key == Attr::replica_groups) {
      // Every form as the plain list.
      std::vector<DeviceDims> groups;
      if (expand_replica_groups(u_.text(std::get<StrId>(v)), &groups)) {
        out += '{';
        for (size_t i = 0; i < groups.size(); ++i)
          out += fmt::format("{}{{{}}}", i ? "," : "", fmt::join(groups[i], ","));
        out += '}';
        return;
      }
    }
    if (const StrId* text = std::get_if<StrId>(&v); text && attr_kind(key) == AttrKind::Ints) {
      out += u_.text(*text);  // slice_sizes of collective-permute: lists of lists
      return;
    }
    switch (attr_kind(key)) {
      case AttrKind::Bool:
        out += std::get<bool>(v) ? "true" : "false";
        return;
      case AttrKind::Int:
        out += std::to_string(std::get<int64_t>(v));
        return;
      case AttrKind::Float:
        out += fmt::format("{:g}", static_cast<float>(std::get<double>(v)));
        return;
      case AttrKind::Enum:
      case AttrKind::Raw:
        out += u_.text(std::get<StrId>(v));
        return;
      case AttrKind::Str:
        out += '"';
        out += c_escape(u_.text(std::get<StrId>(v)));
        out += '"';
        return;
      case AttrKind::Config: {
        std::string_view text = u_.text(std::get<StrId>(v));
        if (is_dict_text(text) && !o_.dialect_2019 && !(o_.lossless && text.back() != '}')) {
          out += text;
        } else {
          out += '"';
          out += c_escape(text);
          out += '"';
        }
        return;
      }
      case AttrKind::Ints:
        ints(std::get<Dims>(v));
        return;
      case AttrKind::Comp:
        comp_name(std::get<CompId>(v));
        return;
      case AttrKind::Comps: {
        out += '{';
        bool first = true;
        for (CompId c : std::get<std::vector<CompId>>(v)) {
          if (!first) out += ", ";
          first = false;
          comp_name(c);
        }
        out += '}';
        return;
      }
      case AttrKind::Window:
        window(std::get<Window>(v));
        return;
      case AttrKind::DimLabels:
        dim_labels(*std::get<Boxed<DimLabels>>(v));
        return;
      case AttrKind::Padding: {
        const auto& dims = std::get<std::vector<PaddingDim>>(v);
        bool interior = std::any_of(dims.begin(), dims.end(), [](const PaddingDim& d) { return d.interior != 0; });
        for (size_t i = 0; i < dims.size(); ++i) {
          if (i) out += 'x';
          out += fmt::format("{}_{}", dims[i].low, dims[i].high);
          if (interior) out += fmt::format("_{}", dims[i].interior);
        }
        return;
      }
      case AttrKind::Slices: {
        const auto& dims = std::get<std::vector<SliceDim>>(v);
        bool stride = std::any_of(dims.begin(), dims.end(), [](const SliceDim& d) { return d.stride != 1; });
        out += '{';
        for (size_t i = 0; i < dims.size(); ++i) {
          if (i) out += ", ";
          out += fmt::format("[{}:{}", dims[i].start, dims[i].limit);
          if (stride) out += fmt::format(":{}", dims[i].stride);
          out += ']';
        }
        out += '}';
        return;
      }
      case AttrKind::Shape:
        out += u_.shape_text(std::get<ShapeId>(v));
        return;
      case AttrKind::Shapes: {
        out += '{';
        bool first = true;
        for (ShapeId s : std::get<std::vector<ShapeId>>(v)) {
          if (!first) out += ", ";
          first = false;
          out += u_.shape_text(s);
        }
        out += '}';
        return;
      }
    }
  }

  // A window of no dimensions is said of custom-calls only.
  void attr(Attr key, const AttrValue& v, Opcode op = Opcode::CustomCall) {
    if (key == Attr::window && op != Opcode::CustomCall && std::get<Window>(v).dims.empty()) return;
    if (o_.fingerprint && key == Attr::parameter_replication) return;
    if (key == Attr::kept_verbatim) return void(out += u_.text(std::get<StrId>(v)));
    out += ", ";
    out += attr_text(key);
    out += '=';
    value(key, v);
  }

  static bool late(Attr key) { return key == Attr::statistics || key == Attr::result_accuracy || key == Attr::origin; }

  void attributes(InstId id) {
    Opcode inside;
    if (m_.op(id) == Opcode::AsyncStart && sugar(id, &inside)) {
      sugared(id);
      return;
    }
    const AttrSet& set = m_.attrs(id);
    bool bodies = o_.canonical && op_info(m_.op(id)).cls != OpClass::Async;
    auto preds = m_.control_preds(id);
    // Most sets repeat: their text is kept. What comes behind the control predecessors is rare.
    bool simple = !bodies && o_.backend_config && preds.empty();
    if (simple && m_[id].attrs.valid()) {
      size_t slot = m_[id].attrs.value;
      if (cache_.size() <= slot) cache_.resize(slot + 1);
      if (!cache_[slot].second) {
        std::string saved;
        saved.swap(out);
        for (const auto& [key, v] : set.list)
          if (key != Attr::backend_config) attr(key, v, m_.op(id));
        cache_[slot] = {std::move(out), true};
        out.swap(saved);
      }
      out += cache_[slot].first;
    } else {
      for (const auto& [key, v] : set.list) {
        if (key == Attr::backend_config || late(key)) continue;
        bool config = key == Attr::infeed_config || key == Attr::outfeed_config;
        if (o_.fingerprint && config) continue;
        if (bodies && (attr_kind(key) == AttrKind::Comp || attr_kind(key) == AttrKind::Comps)) {
          called_bodies(canonical_key(m_.op(id), key), v);
          continue;
        }
        attr(key, v, m_.op(id));
      }
      tail(id);
      return;
    }
    if (o_.metadata && m_[id].meta.valid()) metadata(m_[id].meta);
    if (o_.backend_config)
      if (const AttrValue* config = set.find(Attr::backend_config)) attr(Attr::backend_config, *config);
  }

  // The short form of async-start: its own attributes, those of the operation inside, then what all instructions have.
  void sugared(InstId id) {
    const AttrSet& set = m_.attrs(id);
    for (const auto& [key, v] : set.list)
      if (attr_position(Opcode::AsyncStart, key) < attr_position(Opcode::AsyncStart, Attr::calls)) attr(key, v);
    InstId root = m_.comp(set.comp(Attr::calls)).root;
    bool bodies = o_.canonical && op_info(m_.op(root)).cls != OpClass::Async;
    for (const auto& [key, v] : m_.attrs(root).list) {
      if (key == Attr::backend_config || (key == Attr::frontend_attributes && set.has(key))) continue;
      if (bodies && (attr_kind(key) == AttrKind::Comp || attr_kind(key) == AttrKind::Comps))
        called_bodies(canonical_key(m_.op(root), key), v);
      else
        attr(key, v, m_.op(root));
    }
    if (o_.canonical) called_bodies(Attr::calls, *set.find(Attr::calls));
    for (const auto& [key, v] : set.list)
      if (attr_position(Opcode::AsyncStart, key) > attr_position(Opcode::AsyncStart, Attr::calls) &&
          key != Attr::backend_config && !late(key))
        attr(key, v);
    tail(id);
  }

  // Control predecessors and what stands behind them.
  void tail(InstId id) {
    const AttrSet& set = m_.attrs(id);
    auto preds = m_.control_preds(id);
    if (o_.control && !preds.empty()) {
      out += ", control-predecessors={";
      for (size_t i = 0; i < preds.size(); ++i) {
        if (i) out += ", ";
        name(preds[i]);
      }
      out += '}';
    }
    for (const auto& [key, v] : set.list)
      if (late(key)) attr(key, v);
    if (o_.metadata && m_[id].meta.valid()) metadata(m_[id].meta);
    if (o_.backend_config)
      if (const AttrValue* config = set.find(Attr::backend_config)) attr(Attr::backend_config, *config);
  }

  // XLA has a word of its own there for the callees of these.
  static Attr canonical_key(Opcode op, Attr key) {
    return op == Opcode::ReduceScatter || op == Opcode::Scan ? Attr::calls : key;
  }

  // Canonical style: `to_apply=` and the body in place.
  void called_bodies(Attr key, const AttrValue& v) {
    if (const CompId* one = std::get_if<CompId>(&v)) {
      out += ", ";
      out += attr_text(key);
      out += "=\n";
      computation(*one, indent_ + 2, true);
      return;
    }
    out += ", ";
    out += attr_text(key);
    out += "={\n";
    const auto& list = std::get<std::vector<CompId>>(v);
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out += ",\n";
      computation(list[i], indent_ + 2, true);
    }
    out += "\n}";
  }

  // Many instructions share theirs: what a module's text holds already is taken from there.
  void metadata(MetaId id) {
    Printed* known = printed_.empty() ? nullptr : &printed_[id.value % printed_.size()];
    if (known && known->id == id) {
      out.append(out, known->at, known->size);
      return;
    }
    size_t start = out.size();
    metadata(u_[id]);
    if (known) *known = {start, static_cast<uint32_t>(out.size() - start), id};
  }
  void metadata(const Metadata& d) {
    // A frame that the module's tables do not have: XLA leaves its number out.
    if (!o_.lossless && d.stack_frame_id &&
        (d.stack_frame_id < 0 || static_cast<size_t>(d.stack_frame_id) > m_.stack().frames.size())) {
      Metadata known = d;
      known.stack_frame_id = 0;
      return metadata(known);
    }
    auto has = [&](uint32_t s) { return s != StrId::kNone && !u_.text(StrId(s)).empty(); };
    if (!has(d.op_type) && !has(d.op_name) && !has(d.source_file) && !has(d.scheduling_name) && !d.stack_frame_id &&
        !has(d.payload))
      return;
    size_t start = out.size();
    out += ", metadata={";
    metadata_fields(u_, d, frame_map_, out);
    out += '}';
    paint(start, Ink::kMetadata);
  }

  // Room by what was printed so far.
  void room() {
    ++printed_count_;
    if (out.capacity() - out.size() > 4096) return;
    // Names grow longer. Room that is not written to costs little, a copy more.
    double scale = 1.3 * static_cast<double>(expected_) / static_cast<double>(printed_count_);
    out.reserve(static_cast<size_t>(static_cast<double>(out.size()) * std::min(scale, 256.0)) + 8192);
    wish_large_pages();
  }

  void instruction(InstId id) {
    if (expected_) room();
    const Inst& inst = m_[id];
    size_t start = out.size();
    name(id);
    paint(start, Ink::kName);
    out += " = ";
    if (o_.result_shapes) {
      start = out.size();
      out += u_.shape_text(inst.shape);
      paint(start, Ink::kShape);
      out += ' ';
    }
    start = out.size();
    Opcode inside;
    if (op_info(inst.op).cls == OpClass::Async && sugar(id, &inside)) {
      out += op_text(inside);
      out += op_text(inst.op).substr(5);  // `-start` of `async-start`
    } else {
      out += op_text(inst.op);
    }
    paint(start, Ink::kOpcode);
    out += '(';
    if (inst.op == Opcode::Parameter) {
      out += std::to_string(inst.operand[0]);
    } else if (inst.op == Opcode::Constant) {
      constant(inst);
    } else {
      auto list = m_.operands(id);
      for (size_t i = 0; i < list.size(); ++i) {
        if (i) {
          out += ", ";
          if (o_.index_comments && i % 5 == 0) out += fmt::format("/*index={}*/", i);
        }
        if (o_.operand_shapes) {
          out += u_.shape_text(m_.shape_id(list[i]));
          out += ' ';
        }
        name(list[i]);
      }
    }
    out += ')';
    attributes(id);
  }

  void constant(const Inst& inst) {
    const Literal& lit = u_[LitId(inst.operand[0])];
    if (o_.fingerprint && !lit.elided) {
      const Shape& s = u_[inst.shape];
      if (!s.is_array()) return void(out += "{...}");
      if (!s.elements_count()) return void(out += "0");
      // Only values that a fingerprint should tell apart: zeros, ones and short integer lists.
      size_t width = static_cast<size_t>(storage_bytes(s.type));
      bool splat = s.elements_count() > 0;
      for (size_t i = width; i + width <= lit.bytes.size() && splat; i += width)
        splat = !lit.bytes.compare(i, width, lit.bytes, 0, width);
      double first = is_complex(s.type) ? -1 : load_double(s.type, lit.bytes.data());
      if (splat && !std::signbit(first) && (first == 0 || first == 1)) return void(out += first == 0 ? "0" : "1");
      if (is_integral(s.type)) return append_literal(u_, lit, s.elements_count() <= 500000, false, out, true);
      return void(out += "{...}");
    }
    append_literal(u_, lit, o_.large_constants, o_.lossless, out, true);
  }

  void computation(CompId c, int indent = 0, bool in_place = false) {
    const Computation& comp = m_.comp(c);
    // Bodies in place are written once for every call: two calls a level are 2^n of them.
    constexpr size_t kLongestInPlace = size_t{256} << 20;
    if (in_place) {
      check_stack("computations call each other");
      if (out.size() > kLongestInPlace)
        fail(FailureKind::kUnsupported,
             "the text with computations in place is longer than {} MB: {} is called so often", kLongestInPlace >> 20,
             m_.comp_name(c));
    }
    int saved = indent_;
    indent_ = indent;
    std::string pad(static_cast<size_t>(indent), ' ');
    out += pad;
    if (!o_.canonical || !in_place) {
      if (c == m_.entry()) out += o_.fingerprint ? "ENTRY " : "ENTRY ";
      if (!o_.fingerprint) {
        comp_name(c);
        out += ' ';
      }
    }
    if (o_.signatures) {
      out += '(';
      for (size_t i = 0; i < comp.params.size(); ++i) {
        if (i) out += ", ";
        out += m_.inst_name(comp.params[i]);
        out += ": ";
        out += u_.shape_text_plain(m_.shape_id(comp.params[i]));
      }
      out += ") -> ";
      out += u_.shape_text_plain(m_.shape_id(comp.root));
      out += ' ';
    }
    out += "{\n";
    for (InstId i : print_order(m_, c)) {
      if (folded(i)) continue;
      out += pad;
      out += i == comp.root ? "  ROOT " : "  ";
      instruction(i);
      out += '\n';
    }
    out += pad;
    out += '}';
    if (comp.thread.valid() && !o_.fingerprint) {
      out += ", execution_thread=\"";
      out += c_escape(u_.text(comp.thread));
      out += '"';
    }
    indent_ = saved;
  }

  void header() {
    const ModuleConfig& c = m_.config();
    out += "HloModule ";
    if (!o_.fingerprint) out += m_.name();
    if (c.is_scheduled) out += ", is_scheduled=true";
    if (!c.input_output_alias.empty()) out += ", input_output_alias=" + c.input_output_alias;
    if (!c.buffer_donor.empty()) out += ", buffer_donor=" + c.buffer_donor;
    if (c.alias_passthrough_params) out += ", alias_passthrough_params=true";
    if (o_.dialect_2019) {
      out += "\n\n";
      return;
    }
    if (c.has_entry_layout) {
      out += ", entry_computation_layout={(";
      for (size_t i = 0; i < c.entry_params.size(); ++i) {
        if (i) {
          out += ", ";
          if (i % 5 == 0) out += fmt::format("/*index={}*/", i);
        }
        out += u_.shape_text(c.entry_params[i]);
      }
      out += ")->" + u_.shape_text(c.entry_result) + "}";
    }
    if (!c.spmd_to_parameters.empty()) out += ", allow_spmd_sharding_propagation_to_parameters=" + c.spmd_to_parameters;
    if (!c.spmd_to_output.empty()) out += ", allow_spmd_sharding_propagation_to_output=" + c.spmd_to_output;
    if (c.replica_count != 1) out += fmt::format(", replica_count={}", c.replica_count);
    if (c.num_partitions != 1) out += fmt::format(", num_partitions={}", c.num_partitions);
    if (!c.frontend_attributes.empty()) out += ", frontend_attributes=" + c.frontend_attributes;
    if (!c.origin_recovery_table.empty()) out += ", origin_recovery_table=" + c.origin_recovery_table;
    if (!c.debug_attributes.empty()) out += ", debug_attributes=" + c.debug_attributes;
    out += c.kept_verbatim;
    out += "\n\n";
  }

  // Frames that no instruction uses are dropped, the rest numbered in order of first use, callers first.
  void stack_tables() {
    const StackTables& s = m_.stack();
    if (s.empty()) return;
    frame_map_.assign(s.frames.size() + 1, 0);
    std::vector<int32_t> frames, locations, files, functions;
    std::vector<int32_t> location_map(s.locations.size() + 1, 0), file_map(s.files.size() + 1, 0),
        function_map(s.functions.size() + 1, 0);
    auto number = [](std::vector<int32_t>& map, std::vector<int32_t>& list, int32_t i) {
      if (i <= 0 || static_cast<size_t>(i) >= map.size()) return false;
      int32_t& slot = map[static_cast<size_t>(i)];
      if (slot) return false;
      list.push_back(i);
      slot = static_cast<int32_t>(list.size());
      return true;
    };
    for (CompId c : o_.stable_order ? print_order(m_, true) : m_.computations())
      for (InstId i : o_.stable_order ? print_order(m_, c) : m_.comp(c).order) {
        if (!m_.alive(i)) continue;
        std::vector<int32_t> chain;
        for (int32_t f = u_[m_[i].meta].stack_frame_id;
             f > 0 && static_cast<size_t>(f) <= s.frames.size() && !frame_map_[static_cast<size_t>(f)];
             f = s.frames[static_cast<size_t>(f - 1)].parent) {
          if (chain.size() == s.frames.size()) break;  // frames that call each other: each stands there once
          chain.push_back(f);
        }
        for (; !chain.empty(); chain.pop_back()) {
          int32_t f = chain.back(), l = s.frames[static_cast<size_t>(f - 1)].location;
          if (l > 0 && static_cast<size_t>(l) <= s.locations.size()) {
            number(file_map, files, s.locations[static_cast<size_t>(l - 1)].file);
            number(function_map, functions, s.locations[static_cast<size_t>(l - 1)].function);
          }
          number(location_map, locations, l);
          number(frame_map_, frames, f);
        }
      }
    if (frames.empty()) return;
    auto at = [](const std::vector<int32_t>& map, int32_t i) {
      return i > 0 && static_cast<size_t>(i) < map.size() ? map[static_cast<size_t>(i)] : i;
    };
    int32_t row = 0;
    out += "FileNames\n";
    auto name_rows = [&](const std::vector<int32_t>& list, const std::vector<std::string>& names) {
      for (int32_t i : list) {
        append_number(out, ++row);
        out += " \"", out += c_escape(names[static_cast<size_t>(i - 1)]), out += "\"\n";
      }
    };
    auto fields = [&](std::initializer_list<std::pair<std::string_view, int64_t>> list) {
      append_number(out, ++row);
      const char* before = " {";
      for (const auto& [key, v] : list) out += before, out += key, append_number(out, v), before = " ";
      out += "}\n";
    };
    name_rows(files, s.files);
    out += "\nFunctionNames\n", row = 0;
    name_rows(functions, s.functions);
    out += "\nFileLocations\n", row = 0;
    for (int32_t i : locations) {
      const auto& l = s.locations[static_cast<size_t>(i - 1)];
      fields({{"file_name_id=", at(file_map, l.file)},
              {"function_name_id=", at(function_map, l.function)},
              {"line=", l.line},
              {"end_line=", l.end_line},
              {"column=", l.column},
              {"end_column=", l.end_column}});
    }
    out += "\nStackFrames\n", row = 0;
    for (int32_t i : frames) {
      const auto& f = s.frames[static_cast<size_t>(i - 1)];
      fields({{"file_location_id=", at(location_map, f.location)},
              {"parent_frame_id=", int64_t{at(frame_map_, f.parent)} + 1}});
    }
    out += "\n\n";
  }

  void module() {
    header();
    if (o_.stack_tables && o_.metadata) stack_tables();
    if (o_.metadata && !o_.color) printed_.resize(std::clamp<size_t>(m_.inst_slots() / 4, 1, 4096));
    std::vector<bool> hidden(m_.comp_slots(), false);
    if (!o_.lossless)
      for (CompId c : m_.computations())
        for (InstId i : m_.comp(c).order) {
          Opcode inside;
          if (m_.alive(i) && m_.op(i) == Opcode::AsyncStart && async_sugar(m_, i, &inside))
            hidden[m_.attrs(i).comp(Attr::calls).value] = true;
        }
    // A fingerprint takes them as they are stored.
    for (CompId c : o_.fingerprint ? m_.computations() : print_order(m_, o_.stable_order)) {
      if (hidden[c.value]) continue;
      computation(c);
      out += "\n\n";
    }
  }

 private:
  const Module& m_;
  const Universe& u_;
  const PrintOptions& o_;
  std::vector<std::pair<std::string, bool>> cache_;
  std::vector<int32_t> frame_map_;
  struct Printed {
    size_t at = 0;
    uint32_t size = 0;
    MetaId id;
  };
  size_t expected_ = 0, printed_count_ = 0;
  std::vector<Printed> printed_;  // of whole modules, by number: where metadata printed lately stands in `out`
  std::unordered_map<InstId, InstId> async_start_;
  std::unordered_map<InstId, int> numbers_;
  std::unordered_map<CompId, int> next_number_;
  int indent_ = 0;
};

}  // namespace

std::string metadata_text(const Universe& u, const Metadata& m) {
  std::string out = "{";
  metadata_fields(u, m, {}, out);
  return out + "}";
}

std::string print_module(const Module& m, const PrintOptions& options) {
  Printer p(m, options);
  p.expect(m.inst_slots());
  p.module();
  return std::move(p.out);
}
std::string print_header(const Module& m, const PrintOptions& options) {
  Printer p(m, options);
  p.header();
  return std::move(p.out);
}
std::string print_computation(const Module& m, CompId comp, const PrintOptions& options) {
  Printer p(m, options);
  p.computation(comp);
  return std::move(p.out);
}
std::string print_instruction(const Module& m, InstId inst, const PrintOptions& options) {
  Printer p(m, options);
  p.instruction(inst);
  return std::move(p.out);
}
std::string print_attributes(const Module& m, InstId inst, const PrintOptions& options) {
  PrintOptions o = options;
  o.metadata = false;
  Printer p(m, o);
  p.attributes(inst);
  return std::move(p.out);
}

std::string lossless_text(const Module& m) {
  PrintOptions print;
  print.large_constants = print.stable_order = print.lossless = true;
  return print_module(m, print);
}

}  // namespace hlo
