// The printer: modules, computations and instructions in print.cc, attributes in print_attributes.cc, headers in
// print_header.cc.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/huge.h"
#include "ir/print/print.h"

namespace hlo {

// Nothing in it that c_escape would change?
bool needs_no_escape(std::string_view text);
// `large`: in full whatever its size; `exact`: so that it reads back bit for bit; `top`: not an element of a tuple,
// whose arrays are in full where the tuple is.
void append_literal(const Universe& u, const Literal& lit, bool large, bool exact, std::string& out, bool top);

inline void append_number(std::string& out, int64_t v) {
  fmt::format_int digits(v);
  out.append(digits.data(), digits.size());
}

class Printer {
 public:
  // `alone`: it prints one instruction, and no table of the module's size is worth its while.
  Printer(const Module& m, const PrintOptions& o, bool alone = false) : m_(m), u_(m.u()), o_(o), alone_(alone) {}

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
    if (left / 4 > kHugePage && std::align(kHugePage, kHugePage, at, left))
      wish_huge_pages(at, left / kHugePage * kHugePage);
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

  void window(const Window& w);
  void dim_labels(const DimLabels& d);
  void value(Attr key, const AttrValue& v);
  void config(std::string_view text);
  void comp_names(const std::vector<CompId>& comps);
  void padding(const std::vector<PaddingDim>& dims);
  void slices(const std::vector<SliceDim>& dims);
  void shapes(const std::vector<ShapeId>& list);

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

  void attributes(InstId id);

  // The short form of async-start: its own attributes, those of the operation inside, then what all instructions have.
  void sugared(InstId id);

  // Control predecessors and what stands behind them.
  void tail(InstId id);

  // XLA has a word of its own there for the callees of these.
  static Attr canonical_key(Opcode op, Attr key) {
    return op == Opcode::ReduceScatter || op == Opcode::Scan ? Attr::calls : key;
  }

  // Canonical style: `to_apply=` and the body in place.
  void called_bodies(Attr key, const AttrValue& v);

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
  void metadata(const Metadata& d);

  // Room by what was printed so far.
  void room() {
    ++printed_count_;
    if (out.capacity() - out.size() > 4096) return;
    // Names grow longer. Room that is not written to costs little, a copy more.
    double scale = 1.3 * static_cast<double>(expected_) / static_cast<double>(printed_count_);
    out.reserve(static_cast<size_t>(static_cast<double>(out.size()) * std::min(scale, 256.0)) + 8192);
    wish_large_pages();
  }

  void instruction(InstId id);
  void constant(const Inst& inst);
  void computation(CompId c, int indent = 0, bool in_place = false);
  void header();
  void preamble();  // header, tables of stack frames

  // Frames that no instruction uses are dropped, the rest numbered in order of first use, callers first.
  void stack_tables();
  void module();

 private:
  const Module& m_;
  const Universe& u_;
  const PrintOptions& o_;
  const bool alone_;
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
  bool within_ = false;  // a body in place
};

}  // namespace hlo
