// Where a module's drawing has its boxes and edges: `Drawing` of viewer/page/protocol.ts as a struct. A module of any
// size is a tree of groups that fold (viewer/layout/folding.h); what is open is laid out in layers from top to bottom,
// inner groups first, in time near-linear in what is seen. Needs ir alone (svg.h dump, too): it is a part of the
// WebAssembly engine.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace hlo {

class Folding;

enum class BoxKind : uint8_t { kOp, kFolded, kOpen };
std::string_view box_kind_text(BoxKind kind);  // op, folded, open

// What an operation is to a reader; the names of protocol.ts.
enum class DrawnClass : uint8_t {
  kParameter,
  kConstant,
  kElementwise,
  kMovement,
  kReduction,
  kContraction,
  kFusion,
  kLibrary,
  kCollective,
  kControl,
  kTuple,
  kOther
};
std::string_view drawn_class_text(DrawnClass cls);
DrawnClass drawn_class(const Module& m, InstId inst);

// Against another stage; the strongest last: a group has the strongest inside of it.
enum class Mark : uint8_t { kSame, kLeaves, kChanged, kFused, kNew };
std::string_view mark_text(Mark mark);  // same, leaves, changed, fused, new

struct DrawnBox {
  // The same from stage to stage where the box is: `i17` an instruction (one that calls a computation is a group under
  // that key, with the computation's boxes in it), `c3` one of several computations that an instruction calls, `s…` a
  // name scope, `r…` repeated blocks or one block, `p…` parameters of a group, `q…` results of a computation, `u`
  // computations that nothing calls.
  std::string key;
  uint32_t parent = kNoBox;          // index of the open group that it stands in; parents stand before their children
  float x = 0, y = 0, w = 0, h = 0;  // absolute, in pixels at zoom 1; x, y: the upper left corner
  BoxKind kind = BoxKind::kOp;
  std::string label, detail, opcode;  // opcode is empty where the box is no instruction
  DrawnClass cls = DrawnClass::kOther;
  InstId id;           // invalid where the box is no instruction
  uint32_t count = 1;  // instructions inside, those without a box of their own among them; 1 for an op
  uint32_t times = 1;  // how often a repeated block stands here
  Mark change = Mark::kSame;
  int32_t layer = 0;  // row within the parent, for the layout behind this one
  static constexpr uint32_t kNoBox = 0xFFFFFFFFu;
};

struct DrawnEdges {
  std::vector<uint32_t> from, to;     // boxes
  std::vector<float> points;          // x, y pairs, absolute
  std::vector<uint32_t> start = {0};  // numbers in `points`: edge e has those from start[e] to before start[e + 1]
  // Of an edge that spans too many layers to be routed: the producer's name. It is drawn as a short stub above `to`,
  // its points are that stub's. Empty for all others.
  std::vector<std::string> label;
  size_t size() const { return from.size(); }
};

struct Drawing {
  float width = 0, height = 0;
  std::vector<DrawnBox> boxes;
  DrawnEdges edges;
  uint32_t total = 0;   // instructions of what is drawn (the module, or the group of `within`)
  uint32_t folded = 0;  // of them those that no box of their own shows: total less the boxes that have an id
};

struct LayoutOptions {
  enum class Open : uint8_t { kBest, kThese, kAll };
  Open open = Open::kBest;  // what is best at first sight, `keys`, or everything
  std::unordered_set<std::string>
      keys;                         // open groups; one within a closed group waits, one that is not there is no error
  std::string within;               // a group's key: it alone; empty: the module
  std::vector<Mark> marks;          // by InstId; behind its end all are the same
  const Drawing* before = nullptr;  // of a neighbouring stage: what stays is where it was
};

// Throws Failure(kUsage) where `within` names no group.
Drawing lay_out(const Folding& folding, const LayoutOptions& options);
// Of a folding that is made for this call; who draws a module twice keeps one.
Drawing lay_out(const Module& m, const LayoutOptions& options);

}  // namespace hlo
