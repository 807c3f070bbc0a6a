#include <algorithm>
#include <unordered_map>

#include "replay/os/terminal.h"
#include "replay/record/recording/bytes.h"
#include "replay/record/recording/stage_pages.h"
#include "replay/record/recording/store.h"
#include "replay/record/recording/store_format.h"
#include "replay/record/recording/store_parts.h"

namespace hlo {

class StoreReader {
 public:
  StoreReader(std::string_view bytes, const std::string& label) : bytes_(bytes), label_(label) {}

  StoredRecording read() {
    table();
    auto universe = std::make_shared<Universe>();
    out_.lineage = std::make_shared<Lineage>(universe);
    StoreParts parts(*universe);
    size_t computation_bound = stage_bytes_ / kLeastComputation + 1;
    parts.words(required(kWords));
    parts.strings(required(kStrings));
    parts.shapes(required(kShapes));
    parts.literals(required(kLiterals));
    parts.metadata(required(kMetadata));
    parts.attributes(required(kAttributes), computation_bound);
    parts_ = &parts;
    for (size_t k = 0; k < stages_; ++k) try {
        stage(k, computation_bound);
      } catch (const Failure& e) {
        if (k == 0) throw;
        out_.lost.push_back(fmt::format("{}; of {} stages the first {} are read", e.what(), stages_, k));
        break;
      }
    if (!stages_) fail(FailureKind::kIo, "{} holds no stage", label_);
    optional(kRows, "the rows", [&](ByteReader& in) { rows(in); });
    optional(kJournal, "the journal of rewrites", [&](ByteReader& in) { journal(in); });
    return std::move(out_);
  }

 private:
  // An instruction's record and a computation take so many bytes at least: what bounds the numbers of both.
  static constexpr size_t kLeastRecord = 9, kLeastComputation = 6;

  struct Place {
    uint64_t offset, size;
    uint32_t checksum;
  };

  void table() {
    if (!bytes_.starts_with(kStoreMagic)) fail(FailureKind::kIo, "{} is no recording of hlo-replay", label_);
    ByteReader head(bytes_, label_);
    for (size_t k = 0; k < kStoreMagic.size(); ++k) head.byte();
    uint64_t version = head.fixed(4), sections = head.fixed(4);
    if (version != kStoreVersion)
      fail(FailureKind::kUnsupported, "{} has version {}, this program reads {}", label_, version, kStoreVersion);
    uint64_t size = kStoreHead + sections * kStoreEntry;
    if (size + 8 > bytes_.size()) fail(FailureKind::kIo, "{} is cut off in its table of sections", label_);
    for (uint64_t k = 0; k < sections; ++k) {
      std::string tag;
      for (size_t c = 0; c < kStoreTag; ++c) tag.push_back(static_cast<char>(head.byte()));
      uint64_t number = head.fixed(4);
      Place place{head.fixed(8), head.fixed(8), static_cast<uint32_t>(head.fixed(4))};
      head.fixed(4);
      if (!places_.try_emplace(key(tag, number), place).second) head.damaged("a section twice");
      if (tag != kStage) continue;
      if (number != stages_) head.damaged("stages out of order");
      ++stages_;
      stage_bytes_ += std::min<uint64_t>(place.size, bytes_.size());
    }
    stage_bytes_ = std::min<uint64_t>(stage_bytes_, bytes_.size());
    if (head.fixed(4) != checksum_of(bytes_.substr(0, size))) head.damaged("the table's checksum is wrong");
  }

  static std::string key(std::string_view tag, uint64_t number) { return fmt::format("{}{}", tag, number); }

  // Throws Failure(kIo) where it is not there as it was written.
  ByteReader required(std::string_view tag, size_t number = 0) const {
    std::string what = fmt::format("{}, section '{}'{}", label_, tag, number ? fmt::format(" {}", number) : "");
    auto found = places_.find(key(tag, number));
    if (found == places_.end()) fail(FailureKind::kIo, "{} is missing", what);
    const Place& p = found->second;
    if (p.offset > bytes_.size() || p.size > bytes_.size() - p.offset) fail(FailureKind::kIo, "{} is cut off", what);
    std::string_view section = bytes_.substr(p.offset, p.size);
    if (checksum_of(section) != p.checksum) fail(FailureKind::kIo, "{} is damaged: its checksum is wrong", what);
    return {section, what};
  }

  template <class F>
  void optional(std::string_view tag, const char* what, const F& read, size_t number = 0) {
    try {
      ByteReader in = required(tag, number);
      read(in);
      in.finish();
    } catch (const Failure& e) {
      out_.lost.push_back(fmt::format("{}: {} are lost", e.what(), what));
    }
  }

  // --- stages ---

  void stage(size_t k, size_t computation_bound) {
    ByteReader in = required(kStage, k);
    Lineage& lineage = *out_.lineage;
    Snapshot::Parts p;
    if (k) p = lineage.stage(k - 1).parts();
    Lineage::Stage stage;
    stage.checked = false;
    p.name = printable(in.text());
    stage.imported = in.flag();
    p.entry = CompId(in.index(computation_bound));
    if (in.flag()) p.config = std::make_shared<const ModuleConfig>(parts_->config(in));
    if (in.flag()) p.stack = std::make_shared<const StackTables>(StoreParts::stack(in));
    if (in.flag()) {
      std::vector<CompId> order;
      for (size_t n = in.count(); n > 0; --n) order.emplace_back(in.index(computation_bound));
      p.order = std::make_shared<const std::vector<CompId>>(std::move(order));
    }
    if (!p.config || !p.stack || !p.order) in.damaged("the first stage is not whole");
    changes(in, p, computation_bound);
    computations(in, p, computation_bound);
    if (in.flag()) p.preds = control(in);
    if (in.flag()) p.succs = control(in);
    in.finish();
    auto lives = [&](CompId c) { return c.value < p.computations.size() && p.computations[c.value]; };
    if (!std::all_of(p.order->begin(), p.order->end(), lives) || !lives(p.entry))
      in.damaged("a computation that is not there");
    std::vector<InstId> ended = removed_;
    stage.snapshot = lineage.recorder_.assemble(std::move(p));
    if (k) heirs(k, stage, ended);
    lineage.stages_.push_back(std::move(stage));
  }

  void changes(ByteReader& in, Snapshot::Parts& p, size_t computation_bound) {
    Recorder& recorder = out_.lineage->recorder_;
    const size_t bound = stage_bytes_ / kLeastRecord + 1;
    StagePages pages(std::move(p.pages));
    removed_.clear();
    std::vector<InstId> operands;
    uint32_t last = 0;
    bool first = true;
    for (size_t n = in.count(); n > 0; --n, first = false) {
      uint64_t step = in.number();
      if ((!step && !first) || step >= bound || last + step >= bound) in.damaged("instructions out of order");
      last += static_cast<uint32_t>(step);
      InstId i(last);
      bool lives = in.flag();
      uint32_t& slot = pages.slot(i);
      bool lived = slot != Snapshot::kNone;
      if (!lives) {
        if (!lived) in.damaged("an instruction ends that is not there");
        slot = Snapshot::kNone, --p.live;
        removed_.push_back(i);
        continue;
      }
      Inst inst = parts_->instruction(in, computation_bound);
      operands.clear();
      if (inst.op == Opcode::Constant) {
        inst.operand[0] = parts_->literal(in).value;
      } else if (inst.op == Opcode::Parameter) {
        inst.operand[0] = in.index(UINT32_MAX);
      } else {
        for (size_t k = in.count(); k > 0; --k) {
          int64_t id = int64_t{last} - in.integer();
          if (id < 0 || id >= static_cast<int64_t>(bound)) in.damaged("an operand that is not there");
          operands.emplace_back(static_cast<uint32_t>(id));
        }
      }
      slot = recorder.log(inst, operands);
      p.live += !lived;
      p.slots = std::max<size_t>(p.slots, size_t{last} + 1);
    }
    p.pages = pages.take(p.slots);
  }

  static std::vector<InstId> ids(ByteReader& in, uint32_t from, size_t bound) {
    std::vector<InstId> out;
    int64_t last = from;
    for (size_t n = in.count(); n > 0; --n) {
      last += in.integer();
      if (last < 0 || last >= static_cast<int64_t>(bound)) in.damaged("an instruction that is not there");
      out.emplace_back(static_cast<uint32_t>(last));
    }
    return out;
  }

  void computations(ByteReader& in, Snapshot::Parts& p, size_t bound) const {
    for (size_t n = in.count(); n > 0; --n) {
      size_t c = in.index(bound);
      bool lives = in.flag();
      if (p.computations.size() <= c) p.computations.resize(c + 1);
      if (!lives) {
        p.computations[c] = nullptr;
        continue;
      }
      Computation fresh;
      fresh.name = parts_->name(in), fresh.thread = parts_->string(in);
      fresh.order = ids(in, 0, p.slots);
      for (size_t k = in.count(); k > 0; --k) {
        uint32_t id = in.index(p.slots + 1);
        fresh.params.push_back(id ? InstId(id - 1) : InstId());
      }
      uint32_t root = in.index(p.slots + 1);
      fresh.root = root ? InstId(root - 1) : InstId();
      p.computations[c] = std::make_shared<const Computation>(std::move(fresh));
    }
  }

  std::shared_ptr<const Snapshot::Control> control(ByteReader& in) const {
    Snapshot::Control out;
    const size_t bound = stage_bytes_ / kLeastRecord + 1;
    for (size_t n = in.count(); n > 0; --n) {
      uint32_t i = in.index(bound);
      out[InstId(i)] = ids(in, i, bound);
    }
    return out.empty() ? nullptr : std::make_shared<const Snapshot::Control>(std::move(out));
  }

  // Without them nothing is known of what ended.
  void heirs(size_t k, Lineage::Stage& stage, const std::vector<InstId>& ended) {
    const Snapshot& before = out_.lineage->stage(k - 1);
    size_t lost = out_.lost.size();
    optional(
        kHeirs, "heirs",
        [&](ByteReader& in) {
          size_t slots = stage.snapshot.slots();
          for (size_t n = in.count(); n > 0; --n) {
            InstId from(in.index(slots)), to(in.index(slots));
            uint8_t kind = in.byte();
            bool sorted = stage.heirs.empty() || stage.heirs.back().from < from ||
                          (stage.heirs.back().from == from && stage.heirs.back().to < to);
            if (kind > static_cast<uint8_t>(HeirKind::kDerived) || !sorted || !before.alive(from) ||
                !stage.snapshot.alive(to))
              in.damaged("a successor that does not exist");
            stage.heirs.push_back({from, to, static_cast<HeirKind>(kind)});
          }
          stage.undecided = ids(in, 0, slots);
          if (!std::is_sorted(stage.undecided.begin(), stage.undecided.end())) in.damaged("ids out of order");
        },
        k);
    if (out_.lost.size() == lost) return;
    stage.heirs.clear();
    stage.undecided = ended;
  }

  // --- rows ---

  void rows(ByteReader& in) {
    Recording r;
    r.module_name = printable(in.text()), r.module_number = in.small(), r.source = printable(in.text());
    r.pipeline = printable(in.text());
    for (size_t n = in.count(); n > 0; --n) {
      StageRow row;
      row.kind = static_cast<StageRow::Kind>(in.index(StageRow::kResult + 1));
      row.number = in.small(), row.stage = in.small();
      if (row.stage >= static_cast<int>(stages_) || row.stage < -1) in.damaged("a row of a stage that is not there");
      if (row.stage >= static_cast<int>(out_.lineage->size())) row.stage = -1;
      row.pipeline = printable(in.text()), row.pass = printable(in.text()), row.next = printable(in.text());
      row.file = in.text();
      uint8_t flags = in.byte();
      row.changed = flags & 1, row.implemented = flags & 2, row.disabled = flags & 4;
      row.microseconds = in.integer();
      for (size_t* v : {&row.before, &row.after, &row.added, &row.removed, &row.modified})
        *v = static_cast<size_t>(in.number());
      row.rewrites = in.integer();
      r.rows.push_back(std::move(row));
    }
    for (auto* list : {&r.other_files, &r.missing, &r.problems})
      for (size_t n = in.count(); n > 0; --n) list->emplace_back(in.text());
    out_.recording = std::move(r);
  }

  void journal(ByteReader& in) {
    std::vector<StageRow>& rows = out_.recording.rows;
    std::vector<std::string> known;
    auto text = [&] {
      uint32_t k = in.index(known.size() + 1);
      if (k) return known[k - 1];
      known.push_back(printable(in.text()));
      return known.back();
    };
    if (in.count() != rows.size()) in.damaged("it belongs to other rows");
    size_t slots = out_.lineage->stage(out_.lineage->size() - 1).slots();
    bool whole = out_.lineage->size() == stages_;
    std::vector<std::vector<Note>> notes(rows.size());
    for (std::vector<Note>& list : notes)
      for (size_t n = in.count(); n > 0; --n) {
        Note note;
        note.rule = text(), note.text = printable(in.text()), note.rewrite = in.integer();
        for (size_t k = in.count(); k > 0; --k) {
          note.names.push_back(text());
          uint64_t id = in.number();
          if (id > slots && whole) in.damaged("a note about what is not there");
          note.insts.push_back(id && id <= slots ? InstId(static_cast<uint32_t>(id - 1)) : InstId());
        }
        list.push_back(std::move(note));
      }
    for (size_t k = 0; k < rows.size(); ++k) rows[k].notes = std::move(notes[k]);
  }

  std::string_view bytes_;
  std::string label_;
  std::unordered_map<std::string, Place> places_;
  size_t stages_ = 0;
  uint64_t stage_bytes_ = 0;
  const StoreParts* parts_ = nullptr;
  std::vector<InstId> removed_;  // by the stage that is being read
  StoredRecording out_;
};

StoredRecording read_store(std::string_view bytes, const std::string& label) {
  return StoreReader(bytes, label).read();
}

}  // namespace hlo
