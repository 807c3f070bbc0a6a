#include "replay/record/recording/store_parts.h"

#include <algorithm>

#include "replay/os/terminal.h"

namespace hlo {

void StoreParts::words(ByteReader in) {
  auto table = [&](std::vector<int>& list, auto find) {
    for (size_t n = in.count(); n > 0; --n) list.push_back(find(in.text()));
  };
  table(opcodes_, [](std::string_view text) {
    Opcode op;
    return op_from_text(text, &op) ? static_cast<int>(op) : -1;
  });
  table(attrs_, [](std::string_view text) {
    for (int k = 0; k < kAttrCount; ++k)
      if (attr_text(static_cast<Attr>(k)) == text) return k;
    return -1;
  });
  table(types_, [](std::string_view text) {
    for (int k = 0; k < kElementTypeCount; ++k)
      if (type_name(static_cast<ElementType>(k)) == text) return k;
    return -1;
  });
  in.finish();
}

namespace {
uint8_t known_word(const ByteReader& in, const std::vector<int>& list, uint32_t number, const char* what) {
  if (number >= list.size()) in.damaged(fmt::format("{} that is not in the table", what));
  if (list[number] < 0)
    fail(FailureKind::kUnsupported, "the recording was made by a program that knows {} this one does not know", what);
  return static_cast<uint8_t>(list[number]);
}
}  // namespace

Opcode StoreParts::opcode(ByteReader& in) const {
  return static_cast<Opcode>(known_word(in, opcodes_, in.index(UINT32_MAX), "an opcode"));
}

ElementType StoreParts::type(ByteReader& in) const {
  return static_cast<ElementType>(known_word(in, types_, in.index(UINT32_MAX), "an element type"));
}

void StoreParts::strings(ByteReader in) {
  while (!in.end()) {
    std::string_view text = in.text();
    strings_.push_back(u_.str(text));
    can_be_name_.push_back(!text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != 0x7F;
    }) && printable(text) == text);
  }
}

StrId StoreParts::string(ByteReader& in) const {
  uint32_t k = in.index(strings_.size() + 1);
  return k ? strings_[k - 1] : StrId();
}

StrId StoreParts::name(ByteReader& in) const {
  uint32_t k = in.index(strings_.size() + 1);
  if (!k || !can_be_name_[k - 1]) in.damaged("a name that is none");
  return strings_[k - 1];
}

ShapeId StoreParts::shape(ByteReader& in) const {
  uint32_t k = in.index(shapes_.size() + 1);
  return k ? shapes_[k - 1] : ShapeId();
}

LitId StoreParts::literal(ByteReader& in) const {
  uint32_t k = in.index(literals_.size() + 1);
  if (!k) in.damaged("a constant without a value");
  return literals_[k - 1];
}

Dims StoreParts::dims(ByteReader& in) {
  Dims out;
  for (size_t n = in.count(); n > 0; --n) out.push_back(in.integer());
  return out;
}

void StoreParts::shapes(ByteReader in) {
  while (!in.end()) {
    Shape s;
    s.type = type(in);
    uint8_t flags = in.byte();
    if (flags > 7) in.damaged("a shape of an unknown kind");
    s.is_buffer = flags & 1, s.has_layout = flags & 2;
    s.dims = dims(in);
    for (int64_t d : s.dims)
      if (d < 0 && d != kUnbounded) in.damaged("a negative dimension");
    if (flags & 4)
      for (size_t k = 0; k < s.dims.size(); ++k) s.dynamic.push_back(in.flag());
    if (s.has_layout) {
      s.layout.minor_to_major = dims(in);
      s.layout.rest = in.text();
      s.layout.sparse = in.integer();
      Dims sorted = s.layout.minor_to_major;
      std::sort(sorted.begin(), sorted.end());
      for (size_t k = 0; k < sorted.size(); ++k)
        if (sorted[k] < 0 || sorted[k] >= s.rank() || (k && sorted[k] == sorted[k - 1]) || s.layout.sparse < 0)
          in.damaged("a layout of other dimensions");
      if (!s.layout.sparse && sorted.size() != s.dims.size()) in.damaged("a layout of other dimensions");
      if (printable(s.layout.rest) != s.layout.rest) in.damaged("a layout that is none");
    }
    for (size_t n = in.count(); n > 0; --n) {
      uint32_t e = in.index(shapes_.size() + 1);
      if (!e) in.damaged("a tuple of nothing");
      s.elements.push_back(shapes_[e - 1]);
    }
    if (!s.is_array() && (!s.dims.empty() || s.has_layout)) in.damaged("dimensions of what is no array");
    if (!s.is_tuple() && !s.elements.empty()) in.damaged("elements of what is no tuple");
    shapes_.push_back(u_.shape(std::move(s)));
  }
}

void StoreParts::literals(ByteReader in) {
  while (!in.end()) {
    Literal l;
    l.shape = shape(in);
    l.elided = in.flag();
    l.bytes = in.text();
    for (size_t n = in.count(); n > 0; --n) {
      uint32_t e = in.index(literals_.size() + 1);
      if (!e) in.damaged("a tuple of nothing");
      l.elements.push_back(literals_[e - 1]);
    }
    if (!l.shape.valid()) in.damaged("a value without a shape");
    const Shape& s = u_[l.shape];
    if (s.is_tuple()) {
      if (!l.bytes.empty() || (!l.elided && l.elements.size() != s.elements.size()))
        in.damaged("a tuple of other elements");
      for (size_t k = 0; k < l.elements.size(); ++k)
        if (k >= s.elements.size() || !u_.compatible(u_[l.elements[k]].shape, s.elements[k]))
          in.damaged("a tuple of other elements");
    } else {
      bool sized = s.is_array() && !s.layout.sparse;
      uint64_t count = sized ? static_cast<uint64_t>(s.elements_count()) : 0;
      uint64_t each = sized ? static_cast<uint64_t>(storage_bytes(s.type)) : 0;
      if (!l.elements.empty() || (!l.elided && sized && (l.bytes.size() % each || l.bytes.size() / each != count)) ||
          (l.elided && !l.bytes.empty()))
        in.damaged("a value of another size than its shape");
    }
    literals_.push_back(u_.literal(std::move(l)));
  }
}

void StoreParts::metadata(ByteReader in) {
  while (!in.end()) {
    Metadata m;
    for (uint32_t* s : {&m.op_type, &m.op_name, &m.source_file, &m.deduplicated_name, &m.scheduling_name, &m.payload,
                        &m.profile_type})
      *s = string(in).value;
    for (int32_t* v : {&m.source_line, &m.source_end_line, &m.source_column, &m.source_end_column, &m.stack_frame_id})
      *v = in.small();
    metadata_.push_back(u_.metadata(m));
  }
}

// Each label stands in a dimension of its own.
void StoreParts::check_labels(ByteReader& in, const DimLabels& d) {
  auto check = [&](int rank, int64_t a, int64_t b, const Dims& spatial) {
    std::vector<bool> taken(static_cast<size_t>(std::clamp(rank, 0, 1000)));
    auto take = [&](int64_t at) {
      if (at < 0 || at >= static_cast<int64_t>(taken.size()) || taken[static_cast<size_t>(at)])
        in.damaged("dim_labels of other dimensions");
      taken[static_cast<size_t>(at)] = true;
    };
    take(a), take(b);
    for (int64_t at : spatial) take(at);
  };
  check(d.lhs_rank, d.input_batch, d.input_feature, d.input_spatial);
  check(d.rhs_rank, d.kernel_input, d.kernel_output, d.kernel_spatial);
  check(d.out_rank, d.output_batch, d.output_feature, d.output_spatial);
}

Window StoreParts::window(ByteReader& in) {
  Window w;
  for (size_t n = in.count(); n > 0; --n) {
    WindowDim d;
    for (int64_t* v : {&d.size, &d.stride, &d.pad_low, &d.pad_high, &d.lhs_dilate, &d.rhs_dilate}) *v = in.integer();
    d.reversal = in.integer() != 0;
    w.dims.push_back(d);
  }
  return w;
}

DimLabels StoreParts::dim_labels(ByteReader& in) {
  DimLabels d;
  for (int* v : {&d.lhs_rank, &d.rhs_rank, &d.out_rank}) *v = in.small();
  for (int64_t* v :
       {&d.input_batch, &d.input_feature, &d.kernel_input, &d.kernel_output, &d.output_batch, &d.output_feature})
    *v = in.integer();
  for (Dims* v : {&d.input_spatial, &d.kernel_spatial, &d.output_spatial}) *v = dims(in);
  check_labels(in, d);
  return d;
}

AttrValue StoreParts::value(ByteReader& in, Attr key, uint8_t form, size_t computation_bound) const {
  // The alternatives of AttrValue, in its order.
  static_assert(std::variant_size_v<AttrValue> == 13);
  const AttrKind kind = attr_kind(key);
  auto of = [&](std::initializer_list<AttrKind> kinds) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      in.damaged(fmt::format("a {} of another form", attr_text(key)));
  };
  auto computation = [&] {
    uint32_t c = in.index(computation_bound + 1);
    if (!c) in.damaged("a call of nothing");
    return CompId(c - 1);
  };
  auto needed_shape = [&] {
    ShapeId s = shape(in);
    if (!s.valid()) in.damaged("an attribute without a shape");
    return s;
  };
  switch (form) {
    case 0:
      of({AttrKind::Bool});
      return in.flag();
    case 1:
      of({AttrKind::Int});
      return in.integer();
    case 2:
      of({AttrKind::Float});
      return in.real();
    case 3: {
      of({AttrKind::Enum, AttrKind::Str, AttrKind::Raw, AttrKind::Config, AttrKind::Ints});
      StrId text = string(in);
      if (!text.valid()) in.damaged("an attribute without a text");
      return text;
    }
    case 4:
      of({AttrKind::Ints});
      return dims(in);
    case 5:
      of({AttrKind::Comp});
      return computation();
    case 6: {
      of({AttrKind::Comps});
      std::vector<CompId> list;
      for (size_t n = in.count(); n > 0; --n) list.push_back(computation());
      return list;
    }
    case 7:
      of({AttrKind::Window});
      return window(in);
    case 8:
      of({AttrKind::DimLabels});
      return Boxed<DimLabels>(dim_labels(in));
    case 9: {
      of({AttrKind::Padding});
      std::vector<PaddingDim> list(in.count());
      for (PaddingDim& d : list) d.low = in.integer(), d.high = in.integer(), d.interior = in.integer();
      return list;
    }
    case 10: {
      of({AttrKind::Slices});
      std::vector<SliceDim> list(in.count());
      for (SliceDim& d : list) d.start = in.integer(), d.limit = in.integer(), d.stride = in.integer();
      return list;
    }
    case 11:
      of({AttrKind::Shape});
      return needed_shape();
    case 12: {
      of({AttrKind::Shapes});
      std::vector<ShapeId> list;
      for (size_t n = in.count(); n > 0; --n) list.push_back(needed_shape());
      return list;
    }
    default:
      in.damaged("an attribute of an unknown form");
  }
}

void StoreParts::attributes(ByteReader in, size_t computation_bound) {
  while (!in.end()) {
    AttrSet set;
    set.op = opcode(in);
    int last = -1;
    for (size_t n = in.count(); n > 0; --n) {
      Attr key = static_cast<Attr>(known_word(in, attrs_, in.index(UINT32_MAX), "an attribute"));
      int position = attr_position(set.op, key);
      // The order of the table is that of printing; another program's may differ.
      if (position <= last) in.damaged(fmt::format("{} takes no {}, or not there", op_text(set.op), attr_text(key)));
      last = position;
      uint8_t form = in.byte();
      set.list.emplace_back(key, value(in, key, form, computation_bound));
    }
    if (set.list.empty()) in.damaged("a set of no attributes");
    set_of_.push_back(set.op);
    sets_.push_back(u_.attrs(std::move(set)));
  }
}

Inst StoreParts::instruction(ByteReader& in, size_t computation_bound) const {
  Inst inst;
  inst.op = opcode(in);
  inst.flags = in.byte();
  inst.shape = shape(in);
  if (!inst.shape.valid()) in.damaged("an instruction without a shape");
  if (uint32_t k = in.index(sets_.size() + 1)) {
    if (set_of_[k - 1] != inst.op) in.damaged("attributes of another opcode");
    inst.attrs = sets_[k - 1];
  }
  if (uint32_t k = in.index(metadata_.size() + 1)) inst.meta = metadata_[k - 1];
  inst.name = name(in);
  inst.parent = CompId(in.index(computation_bound));
  return inst;
}

ModuleConfig StoreParts::config(ByteReader& in) const {
  ModuleConfig c;
  uint8_t flags = in.byte();
  c.is_scheduled = flags & 1, c.alias_passthrough_params = flags & 2, c.has_entry_layout = flags & 4;
  for (size_t n = in.count(); n > 0; --n) {
    c.entry_params.push_back(shape(in));
    if (!c.entry_params.back().valid()) in.damaged("a parameter without a shape");
  }
  c.entry_result = shape(in);
  c.replica_count = in.integer(), c.num_partitions = in.integer();
  for (std::string* text : {&c.input_output_alias, &c.buffer_donor, &c.spmd_to_parameters, &c.spmd_to_output,
                            &c.frontend_attributes, &c.origin_recovery_table, &c.debug_attributes, &c.kept_verbatim})
    *text = in.text();
  return c;
}

StackTables StoreParts::stack(ByteReader& in) {
  StackTables s;
  for (auto* list : {&s.files, &s.functions})
    for (size_t n = in.count(); n > 0; --n) list->emplace_back(in.text());
  for (size_t n = in.count(); n > 0; --n) {
    StackTables::Location l;
    for (int32_t* v : {&l.file, &l.function, &l.line, &l.end_line, &l.column, &l.end_column}) *v = in.small();
    s.locations.push_back(l);
  }
  for (size_t n = in.count(); n > 0; --n) {
    StackTables::Frame f;
    f.location = in.small(), f.parent = in.small();
    s.frames.push_back(f);
  }
  return s;
}

}  // namespace hlo
