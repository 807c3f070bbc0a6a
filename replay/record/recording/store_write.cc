#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "replay/record/recording/bytes.h"
#include "replay/record/recording/store.h"
#include "replay/record/recording/store_format.h"

namespace hlo {
namespace {

// Old ids to new ones, in the order of the old.
class Ranks {
 public:
  void mark(uint32_t id) {
    if (used_.size() <= id) used_.resize(std::max<size_t>(id + 1, used_.size() * 2));
    used_[id] = true;
  }
  void number() {
    rank_.resize(used_.size());
    for (size_t k = 0; k < used_.size(); ++k)
      if (used_[k]) rank_[k] = count_++;
  }
  bool has(uint32_t id) const { return id < used_.size() && used_[id]; }
  uint32_t operator[](uint32_t id) const { return rank_[id]; }

 private:
  std::vector<bool> used_;
  std::vector<uint32_t> rank_;
  uint32_t count_ = 0;
};

// Parts of the universe that the stages need, numbered as they come up.
class Parts {
 public:
  explicit Parts(const Universe& u, const Ranks& computations) : u_(u), computations_(computations) {}

  // 0: none.
  uint32_t string(StrId id) {
    if (!id.valid()) return 0;
    return number(strings_, id.value, [&] { string_out_.text(u_.text(id)); });
  }
  uint32_t shape(ShapeId id) {
    if (!id.valid()) return 0;
    if (uint32_t known = seen(shapes_, id.value)) return known;
    const Shape& s = u_[id];
    std::vector<uint32_t> elements;
    for (ShapeId e : s.elements) elements.push_back(shape(e));
    return number(shapes_, id.value, [&] { write_shape(s, elements); });
  }
  uint32_t literal(LitId id) {
    if (!id.valid()) return 0;
    if (uint32_t known = seen(literals_, id.value)) return known;
    const Literal& l = u_[id];
    std::vector<uint32_t> elements;
    for (LitId e : l.elements) elements.push_back(literal(e));
    uint32_t of = shape(l.shape);
    return number(literals_, id.value, [&] {
      literal_out_.number(of), literal_out_.byte(l.elided);
      literal_out_.text(l.bytes);
      literal_out_.number(elements.size());
      for (uint32_t e : elements) literal_out_.number(e);
    });
  }
  uint32_t metadata(MetaId id) {
    if (!id.valid()) return 0;
    return number(metadata_, id.value, [&] {
      const Metadata& m = u_[id];
      ByteWriter& w = metadata_out_;
      for (uint32_t s :
           {m.op_type, m.op_name, m.source_file, m.deduplicated_name, m.scheduling_name, m.payload, m.profile_type})
        w.number(string(StrId(s)));
      for (int32_t v : {m.source_line, m.source_end_line, m.source_column, m.source_end_column, m.stack_frame_id})
        w.integer(v);
    });
  }
  uint32_t attributes(AttrsId id) {
    if (!id.valid()) return 0;
    return number(attributes_, id.value, [&] { write_attributes(u_[id]); });
  }

  const std::string& strings() const { return string_out_.out; }
  const std::string& shapes() const { return shape_out_.out; }
  const std::string& literals() const { return literal_out_.out; }
  const std::string& metadatas() const { return metadata_out_.out; }
  const std::string& attribute_sets() const { return attribute_out_.out; }

 private:
  struct Numbers {
    std::vector<uint32_t> of;
    uint32_t count = 0;
  };
  static uint32_t seen(const Numbers& n, uint32_t id) { return id < n.of.size() ? n.of[id] : 0; }
  template <class Write>
  static uint32_t number(Numbers& n, uint32_t id, const Write& write) {
    if (n.of.size() <= id) n.of.resize(std::max<size_t>(id + 1, n.of.size() * 2));
    if (!n.of[id]) {
      write();
      n.of[id] = ++n.count;
    }
    return n.of[id];
  }

  void write_shape(const Shape& s, const std::vector<uint32_t>& elements) {
    ByteWriter& w = shape_out_;
    w.number(static_cast<uint64_t>(s.type));
    w.byte(static_cast<uint8_t>(s.is_buffer | s.has_layout << 1 | (!s.dynamic.empty()) << 2));
    w.number(s.dims.size());
    for (int64_t d : s.dims) w.integer(d);
    for (bool d : s.dynamic) w.byte(d);
    if (s.has_layout) {
      w.number(s.layout.minor_to_major.size());
      for (int64_t d : s.layout.minor_to_major) w.integer(d);
      w.text(s.layout.rest);
      w.integer(s.layout.sparse);
    }
    w.number(elements.size());
    for (uint32_t e : elements) w.number(e);
  }

  void dims(ByteWriter& w, const Dims& list) {
    w.number(list.size());
    for (int64_t d : list) w.integer(d);
  }
  void computation(ByteWriter& w, CompId c) {
    w.number(c.valid() && computations_.has(c.value) ? computations_[c.value] + uint64_t{1} : 0);
  }

  void write_attributes(const AttrSet& set) {
    // What it refers to is numbered first; only then is the set written in one piece.
    ByteWriter w;
    w.number(static_cast<uint64_t>(set.op)), w.number(set.list.size());
    for (const auto& [key, value] : set.list) {
      w.number(static_cast<uint64_t>(key)), w.byte(static_cast<uint8_t>(value.index()));
      write_value(w, value);
    }
    attribute_out_.out += w.out;
  }

  void write_value(ByteWriter& w, const AttrValue& value) {
    if (const bool* flag = std::get_if<bool>(&value)) w.byte(*flag);
    if (const int64_t* integer = std::get_if<int64_t>(&value)) w.integer(*integer);
    if (const double* real = std::get_if<double>(&value)) w.real(*real);
    if (const StrId* text = std::get_if<StrId>(&value)) w.number(string(*text));
    if (const Dims* list = std::get_if<Dims>(&value)) dims(w, *list);
    if (const CompId* one = std::get_if<CompId>(&value)) computation(w, *one);
    if (const auto* many = std::get_if<std::vector<CompId>>(&value)) {
      w.number(many->size());
      for (CompId c : *many) computation(w, c);
    }
    if (const Window* window = std::get_if<Window>(&value)) {
      w.number(window->dims.size());
      for (const WindowDim& d : window->dims)
        for (int64_t v : {d.size, d.stride, d.pad_low, d.pad_high, d.lhs_dilate, d.rhs_dilate, int64_t{d.reversal}})
          w.integer(v);
    }
    if (const auto* boxed = std::get_if<Boxed<DimLabels>>(&value)) {
      const DimLabels& d = **boxed;
      for (int64_t v : {int64_t{d.lhs_rank}, int64_t{d.rhs_rank}, int64_t{d.out_rank}, d.input_batch, d.input_feature,
                        d.kernel_input, d.kernel_output, d.output_batch, d.output_feature})
        w.integer(v);
      dims(w, d.input_spatial), dims(w, d.kernel_spatial), dims(w, d.output_spatial);
    }
    if (const auto* padding = std::get_if<std::vector<PaddingDim>>(&value)) {
      w.number(padding->size());
      for (const PaddingDim& d : *padding) w.integer(d.low), w.integer(d.high), w.integer(d.interior);
    }
    if (const auto* slices = std::get_if<std::vector<SliceDim>>(&value)) {
      w.number(slices->size());
      for (const SliceDim& d : *slices) w.integer(d.start), w.integer(d.limit), w.integer(d.stride);
    }
    if (const ShapeId* one = std::get_if<ShapeId>(&value)) w.number(shape(*one));
    if (const auto* many = std::get_if<std::vector<ShapeId>>(&value)) {
      w.number(many->size());
      for (ShapeId s : *many) w.number(shape(s));
    }
  }

  const Universe& u_;
  const Ranks& computations_;
  Numbers strings_, shapes_, literals_, metadata_, attributes_;
  ByteWriter string_out_, shape_out_, literal_out_, metadata_out_, attribute_out_;
};

class StoreWriter {
 public:
  StoreWriter(const Recording& recording, const Lineage& lineage)
      : recording_(recording), lineage_(lineage), parts_(*lineage.universe(), computations_) {}

  std::string write() {
    for (size_t k = 0; k < lineage_.size(); ++k) mark(k);
    instructions_.number(), computations_.number();
    std::vector<std::string> stages, heirs;
    for (size_t k = 0; k < lineage_.size(); ++k) {
      stages.push_back(stage(k));
      heirs.push_back(heirs_of(k));
    }
    section(kWords, 0, words());
    section(kStrings, 0, parts_.strings());
    section(kShapes, 0, parts_.shapes());
    section(kLiterals, 0, parts_.literals());
    section(kMetadata, 0, parts_.metadatas());
    section(kAttributes, 0, parts_.attribute_sets());
    section(kRows, 0, rows());
    section(kJournal, 0, journal());
    for (size_t k = 0; k < stages.size(); ++k) {
      section(kStage, k, std::move(stages[k]));
      section(kHeirs, k, std::move(heirs[k]));
    }
    return assembled();
  }

 private:
  struct Section {
    std::string_view tag;
    size_t number;
    std::string bytes;
  };

  void section(std::string_view tag, size_t number, std::string bytes) {
    sections_.push_back({tag, number, std::move(bytes)});
  }

  std::string assembled() const {
    ByteWriter head;
    head.out = kStoreMagic;
    head.fixed(kStoreVersion, 4), head.fixed(sections_.size(), 4);
    size_t at = kStoreHead + sections_.size() * kStoreEntry + 8;
    for (const Section& s : sections_) {
      head.out += s.tag;
      head.fixed(s.number, 4), head.fixed(at, 8), head.fixed(s.bytes.size(), 8);
      head.fixed(checksum_of(s.bytes), 4), head.fixed(0, 4);
      at += s.bytes.size();
    }
    head.fixed(checksum_of(head.out), 4), head.fixed(0, 4);
    std::string out = std::move(head.out);
    out.reserve(at);
    for (const Section& s : sections_) out += s.bytes;
    return out;
  }

  // What differs from the stage before, by id.
  template <class F>
  void each_change(size_t k, const F& f) const {
    const Snapshot& now = lineage_.stage(k);
    const Snapshot* before = k ? &lineage_.stage(k - 1) : nullptr;
    if (!before) {
      for (uint32_t i = 0; i < now.slots(); ++i)
        if (now.alive(InstId(i))) f(InstId(i), true);
      return;
    }
    // Three lists, each in order.
    StageDiff d = diff_stages(*before, now);
    const std::vector<InstId>* lists[] = {&d.added, &d.modified, &d.removed};
    size_t at[3] = {0, 0, 0};
    for (size_t left = d.added.size() + d.modified.size() + d.removed.size(); left > 0; --left) {
      size_t least = 3;
      for (size_t n = 0; n < 3; ++n)
        if (at[n] < lists[n]->size() && (least == 3 || (*lists[n])[at[n]] < (*lists[least])[at[least]])) least = n;
      f((*lists[least])[at[least]++], least < 2);
    }
  }

  void mark(size_t k) {
    each_change(k, [&](InstId i, bool lives) {
      if (lives) instructions_.mark(i.value);
    });
    const Snapshot& now = lineage_.stage(k);
    for (CompId c : now.computation_order())
      if (now.computation(c)) computations_.mark(c.value);
  }

  static std::string words() {
    ByteWriter w;
    w.number(kOpcodeCount);
    for (int k = 0; k < kOpcodeCount; ++k) w.text(op_text(static_cast<Opcode>(k)));
    w.number(kAttrCount);
    for (int k = 0; k < kAttrCount; ++k) w.text(attr_text(static_cast<Attr>(k)));
    w.number(kElementTypeCount);
    for (int k = 0; k < kElementTypeCount; ++k) w.text(type_name(static_cast<ElementType>(k)));
    return std::move(w.out);
  }

  static void ids(ByteWriter& w, const Ranks& ranks, const std::vector<InstId>& list, uint32_t from) {
    w.number(list.size());
    int64_t last = from;
    for (InstId i : list) {
      w.integer(int64_t{ranks[i.value]} - last);
      last = ranks[i.value];
    }
  }

  void instruction(ByteWriter& w, const Snapshot& now, InstId i, uint32_t rank) {
    const Inst& inst = now[i];
    w.number(static_cast<uint64_t>(inst.op)), w.byte(inst.flags);
    w.number(parts_.shape(inst.shape)), w.number(parts_.attributes(inst.attrs)), w.number(parts_.metadata(inst.meta));
    w.number(parts_.string(inst.name)), w.number(computations_[inst.parent.value]);
    if (inst.op == Opcode::Constant) {
      w.number(parts_.literal(LitId(inst.operand[0])));
    } else if (inst.op == Opcode::Parameter) {
      w.number(inst.operand[0]);
    } else {
      auto operands = now.operands(i);
      w.number(operands.size());
      for (InstId o : operands) w.integer(int64_t{rank} - int64_t{instructions_[o.value]});
    }
  }

  void config(ByteWriter& w, const ModuleConfig& c) {
    w.byte(static_cast<uint8_t>(c.is_scheduled | c.alias_passthrough_params << 1 | c.has_entry_layout << 2));
    w.number(c.entry_params.size());
    for (ShapeId s : c.entry_params) w.number(parts_.shape(s));
    w.number(parts_.shape(c.entry_result));
    w.integer(c.replica_count), w.integer(c.num_partitions);
    for (const std::string* text :
         {&c.input_output_alias, &c.buffer_donor, &c.spmd_to_parameters, &c.spmd_to_output, &c.frontend_attributes,
          &c.origin_recovery_table, &c.debug_attributes, &c.kept_verbatim})
      w.text(*text);
  }

  static void stack(ByteWriter& w, const StackTables& s) {
    for (const auto* list : {&s.files, &s.functions}) {
      w.number(list->size());
      for (const std::string& text : *list) w.text(text);
    }
    w.number(s.locations.size());
    for (const auto& l : s.locations)
      for (int32_t v : {l.file, l.function, l.line, l.end_line, l.column, l.end_column}) w.integer(v);
    w.number(s.frames.size());
    for (const auto& f : s.frames) w.integer(f.location), w.integer(f.parent);
  }

  void control(ByteWriter& w, const Snapshot::Control* control) {
    std::map<uint32_t, const std::vector<InstId>*> sorted;
    if (control)
      for (const auto& [i, list] : *control)
        if (!list.empty() && instructions_.has(i.value)) sorted[instructions_[i.value]] = &list;
    w.number(sorted.size());
    for (const auto& [i, list] : sorted) {
      w.number(i);
      ids(w, instructions_, *list, i);
    }
  }

  std::string stage(size_t k) {
    Snapshot::Parts now = lineage_.stage(k).parts();
    Snapshot::Parts before;
    if (k) before = lineage_.stage(k - 1).parts();
    ByteWriter w;
    w.text(now.name);
    w.byte(lineage_.imported(k));
    w.number(computations_[now.entry.value]);
    // Shared with the stage before where nothing changed.
    auto fresh = [&](const auto& mine, const auto& theirs) {
      bool changed = mine != theirs && (!mine || !theirs || !(*mine == *theirs));
      w.byte(changed);
      return changed;
    };
    if (fresh(now.config, before.config)) config(w, *now.config);
    if (fresh(now.stack, before.stack)) stack(w, *now.stack);
    std::vector<CompId> order = live_order(k);
    bool other_order = !k || order != live_order(k - 1);
    w.byte(other_order);
    if (other_order) {
      w.number(order.size());
      for (CompId c : order) w.number(computations_[c.value]);
    }
    changes(w, k);
    computations(w, now, before);
    if (fresh(now.preds, before.preds)) control(w, now.preds.get());
    if (fresh(now.succs, before.succs)) control(w, now.succs.get());
    return std::move(w.out);
  }

  std::vector<CompId> live_order(size_t k) const {
    std::vector<CompId> out;
    for (CompId c : lineage_.stage(k).computation_order())
      if (lineage_.stage(k).computation(c)) out.push_back(c);
    return out;
  }

  void changes(ByteWriter& w, size_t k) {
    size_t count = 0;
    ByteWriter list;
    uint32_t last = 0;
    each_change(k, [&](InstId i, bool lives) {
      uint32_t rank = instructions_[i.value];
      list.number(rank - last), list.byte(lives);
      last = rank;
      if (lives) instruction(list, lineage_.stage(k), i, rank);
      ++count;
    });
    w.number(count);
    w.out += list.out;
  }

  void computations(ByteWriter& w, const Snapshot::Parts& now, const Snapshot::Parts& before) {
    size_t count = 0;
    ByteWriter list;
    auto of = [](const Snapshot::Parts& p, size_t c) -> const Computation* {
      return c < p.computations.size() && p.computations[c] && p.computations[c]->alive ? p.computations[c].get()
                                                                                        : nullptr;
    };
    for (size_t c = 0; c < std::max(now.computations.size(), before.computations.size()); ++c) {
      const Computation *is = of(now, c), *was = of(before, c);
      if (is == was || (is && was && *is == *was) || !computations_.has(static_cast<uint32_t>(c))) continue;
      ++count;
      list.number(computations_[static_cast<uint32_t>(c)]), list.byte(is != nullptr);
      if (!is) continue;
      list.number(parts_.string(is->name)), list.number(parts_.string(is->thread));
      std::vector<InstId> order;
      for (InstId i : is->order)
        if (i.valid() && instructions_.has(i.value)) order.push_back(i);
      ids(list, instructions_, order, 0);
      list.number(is->params.size());
      for (InstId p : is->params)
        list.number(p.valid() && instructions_.has(p.value) ? instructions_[p.value] + uint64_t{1} : 0);
      list.number(is->root.valid() ? instructions_[is->root.value] + uint64_t{1} : 0);
    }
    w.number(count);
    w.out += list.out;
  }

  std::string heirs_of(size_t k) const {
    ByteWriter w;
    auto heirs = lineage_.heirs(k);
    w.number(heirs.size());
    for (const Heir& h : heirs)
      w.number(instructions_[h.from.value]), w.number(instructions_[h.to.value]), w.byte(static_cast<uint8_t>(h.kind));
    const std::vector<InstId>& undecided = lineage_.undecided(k);
    ids(w, instructions_, undecided, 0);
    return std::move(w.out);
  }

  std::string rows() const {
    const Recording& r = recording_;
    ByteWriter w;
    w.text(r.module_name), w.integer(r.module_number), w.text(r.source), w.text(r.pipeline);
    w.number(r.rows.size());
    for (const StageRow& row : r.rows) {
      w.byte(static_cast<uint8_t>(row.kind)), w.integer(row.number), w.integer(row.stage);
      w.text(row.pipeline), w.text(row.pass), w.text(row.next), w.text(row.file);
      w.byte(static_cast<uint8_t>(row.changed | row.implemented << 1 | row.disabled << 2));
      w.integer(row.microseconds);
      for (size_t v : {row.before, row.after, row.added, row.removed, row.modified}) w.number(v);
      w.integer(row.rewrites);
    }
    for (const auto* list : {&r.other_files, &r.missing, &r.problems}) {
      w.number(list->size());
      for (const std::string& text : *list) w.text(text);
    }
    return std::move(w.out);
  }

  // Rules, names and texts come up again and again: each once, then by number.
  std::string journal() const {
    ByteWriter w;
    std::unordered_map<std::string_view, uint64_t> known;
    auto text = [&](std::string_view t) {
      auto [at, fresh] = known.try_emplace(t, known.size());
      w.number(fresh ? 0 : at->second + 1);
      if (fresh) w.text(t);
    };
    w.number(recording_.rows.size());
    for (const StageRow& row : recording_.rows) {
      w.number(row.notes.size());
      for (const Note& n : row.notes) {
        text(n.rule);
        w.text(n.text);
        w.integer(n.rewrite);
        w.number(n.names.size());
        for (size_t k = 0; k < n.names.size(); ++k) {
          text(n.names[k]);
          InstId i = k < n.insts.size() ? n.insts[k] : InstId();
          w.number(i.valid() && instructions_.has(i.value) ? instructions_[i.value] + uint64_t{1} : 0);
        }
      }
    }
    return std::move(w.out);
  }

  const Recording& recording_;
  const Lineage& lineage_;
  Ranks instructions_, computations_;
  Parts parts_;
  std::vector<Section> sections_;
};

}  // namespace

std::string store_bytes(const Recording& recording, const Lineage& lineage) {
  return StoreWriter(recording, lineage).write();
}

}  // namespace hlo
