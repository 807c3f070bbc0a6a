#include "ir/opcode.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace hlo {
namespace {

struct AttrRow {
  std::string_view text;
  AttrKind kind;
};
constexpr AttrRow kAttrRows[] = {
#define HLO_ATTR(id, kind) {#id, AttrKind::kind},
#include "ir/attributes.def"
#undef HLO_ATTR
};

constexpr int kEw = 1, kComm = 2, kEffect = 4, kTrans = 8;

// Spreads opcode texts over a table of 1024; looked up once an instruction.
size_t opcode_hash(std::string_view text) {
  if (text.empty()) return 0;
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
  return (byte(0) * 7 + byte(text.size() / 2) * 31 + byte(text.size() - 1) * 131 + text.size() * 17) % 1024;
}

struct Tables {
  std::array<OpInfo, kOpcodeCount> ops;
  std::array<std::vector<OwnAttr>, kOpcodeCount> attrs;
  std::array<std::array<int8_t, kAttrCount>, kOpcodeCount> position;
  std::array<uint8_t, 1024> slots;  // opcode by opcode_hash, 0xFF for none
  std::unordered_map<std::string_view, Attr> attr_by_text;

  Tables() {
    slots.fill(0xFF);
    for (int i = 0; i < kAttrCount; ++i) attr_by_text[kAttrRows[i].text] = static_cast<Attr>(i);
    int at = 0;
    auto add = [&](std::string_view text, int arity, OpClass cls, int traits, std::string_view list) {
      std::vector<OwnAttr>& own = attrs[at];
      while (!list.empty()) {
        size_t end = std::min(list.find(' '), list.size());
        std::string_view word = list.substr(0, end);
        bool optional = word[0] == '?';
        if (optional) word.remove_prefix(1);
        own.push_back({attr_by_text.at(word), optional});
        list.remove_prefix(std::min(end + 1, list.size()));
      }
      ops[at] = {
          text, arity, cls, (traits & kEw) != 0, (traits & kComm) != 0, (traits & kEffect) != 0, (traits & kTrans) != 0,
          own};
      position[at].fill(-1);
      int next = 0;
      for (const OwnAttr& attr : own) position[at][static_cast<int>(attr.key)] = static_cast<int8_t>(next++);
      for (int key = static_cast<int>(Attr::sharding); key < kAttrCount; ++key)
        if (position[at][key] < 0) position[at][key] = static_cast<int8_t>(next++);
      size_t slot = opcode_hash(text);
      while (slots[slot] != 0xFF) slot = (slot + 1) % slots.size();
      slots[slot] = static_cast<uint8_t>(at);
      ++at;
    };
#define HLO_OP(id, text, arity, cls, traits, attrs) add(text, arity, OpClass::cls, traits, attrs);
#include "ir/opcodes.def"
#undef HLO_OP
  }
};

const Tables& tables() {
  static const Tables kTables;
  return kTables;
}

template <class Names>
std::string_view nearest(std::string_view text, const Names& names) {
  std::string_view best;
  int limit = std::max<int>(1, static_cast<int>(text.size()) / 3), distance = limit + 1;
  for (std::string_view name : names) {
    int d = edit_distance(text, name);
    if (d < distance) distance = d, best = name;
  }
  return best;
}

}  // namespace

namespace {

constexpr bool names_computation(std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const std::string_view word = list.substr(list[0] == '?', end - (list[0] == '?'));
    for (const AttrRow& row : kAttrRows)
      if (row.text == word && (row.kind == AttrKind::Comp || row.kind == AttrKind::Comps)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

// Made by the compiler: there before anything runs.
constexpr std::array<bool, kOpcodeCount> kMayCall = {
#define HLO_OP(id, text, arity, cls, traits, attrs) names_computation(attrs),
#include "ir/opcodes.def"
#undef HLO_OP
};

const OpInfo& op_info(Opcode op) { return tables().ops[static_cast<int>(op)]; }

bool op_from_text(std::string_view text, Opcode* op) {
  const Tables& t = tables();
  for (size_t at = opcode_hash(text);; at = (at + 1) % t.slots.size()) {
    uint8_t slot = t.slots[at];
    if (slot == 0xFF) return false;
    if (t.ops[slot].text == text) {
      *op = static_cast<Opcode>(slot);
      return true;
    }
  }
}

std::string_view attr_text(Attr key) { return kAttrRows[static_cast<int>(key)].text; }
AttrKind attr_kind(Attr key) { return kAttrRows[static_cast<int>(key)].kind; }

bool attr_from_text(std::string_view text, Attr* key) {
  auto found = tables().attr_by_text.find(text);
  if (found == tables().attr_by_text.end()) return false;
  *key = found->second;
  return true;
}

int attr_position(Opcode op, Attr key) { return tables().position[static_cast<int>(op)][static_cast<int>(key)]; }

std::string_view nearest_opcode(std::string_view text) {
  std::vector<std::string_view> names;
  for (const OpInfo& info : tables().ops) names.push_back(info.text);
  return nearest(text, names);
}

std::string_view nearest_attr(std::string_view text) {
  std::vector<std::string_view> names;
  for (const AttrRow& row : kAttrRows) names.push_back(row.text);
  return nearest(text, names);
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int corner = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

bool keeps_layout(Opcode op) {
  switch (op) {
    case Opcode::Copy:
    case Opcode::CopyStart:
    case Opcode::CopyDone:
      return false;
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter:
    case Opcode::Map:
      return true;
    default:
      return op_info(op).elementwise;
  }
}

}  // namespace hlo
