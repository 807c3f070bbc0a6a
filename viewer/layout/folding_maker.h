// How a Folding is made, computation by computation: name scopes first (scopes.cc), then repeated blocks and runs of
// what is left (blocks.cc), then sources put next to who needs them. Nothing here recurses: input nests as it likes.
#pragma once
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "viewer/layout/folding.h"

namespace hlo {

// The scopes of op_name, `jit(f)/layer_3/attention` of `jit(f)/layer_3/attention/dot_general`, as a tree; 0 is the top.
class ScopeTree {
 public:
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  explicit ScopeTree(const Universe& u) : u_(u) { nodes_.push_back({0, 0, ""}); }
  uint32_t of(StrId op_name);  // kUnknown where it names none
  // The scope just below `top` that `scope` lies in; kUnknown where it is `top` or lies elsewhere.
  uint32_t below(uint32_t top, uint32_t scope) const;
  uint32_t common(uint32_t a, uint32_t b) const;
  const std::string& name(uint32_t scope) const { return nodes_[scope].name; }
  std::string path(uint32_t scope) const;

 private:
  struct Node {
    uint32_t parent, depth;
    std::string name;
  };
  uint32_t child(uint32_t parent, std::string_view name);
  const Universe& u_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> children_;  // by the parent's number and the name
  std::string key_;                                     // of one that is looked for
  std::unordered_map<StrId, uint32_t> known_;
};

// Lists of numbers by number.
struct Adjacency {
  std::vector<uint32_t> start = {0}, list;
  std::span<const uint32_t> operator[](size_t i) const { return {list.data() + start[i], list.data() + start[i + 1]}; }
  // The same edges from their other ends; `n`: how many of these there are.
  Adjacency turned(size_t n) const;
};

// The instructions of a computation that have boxes, in topological order, and what flows between them.
struct LocalGraph {
  std::vector<InstId> inst;
  Adjacency preds, succs;
  std::vector<bool> source;            // stands where it is used: parameters, constants, elements of parameters
  std::vector<uint32_t> scope;         // of ScopeTree, or kUnknown
  std::vector<uint64_t> plain, token;  // what it is; what it is and what its operands are
  std::vector<uint32_t> apart;         // has its place already: of the group `results`
  uint32_t results = FoldGroup::kNone;
  std::vector<uint32_t> weight;  // instructions, those it calls among them
};

// What stands in one group before repeats are found: in topological order, with what flows between.
struct ItemList {
  std::vector<FoldItem> item;
  std::vector<uint64_t> token;
  std::vector<uint32_t> weight;
  Adjacency preds;  // by position; may name one several times
};

struct FoldingMaker {
  Folding& f;
  const Module& m;
  std::vector<FoldGroup>& groups;
  std::vector<uint32_t>& home;
  ScopeTree scopes;
  std::vector<uint32_t> local;      // by InstId: place in the graph at hand
  std::vector<bool> claimed;        // by CompId: has its place
  std::vector<uint64_t> comp_hash;  // by CompId, 0: not asked yet
  struct Waiting {
    CompId comp;
    uint32_t group;
  };
  std::deque<Waiting> waiting;

  explicit FoldingMaker(Folding& folding)
      : f(folding),
        m(folding.m_),
        groups(folding.groups_),
        home(folding.home_),
        scopes(m.u()),
        local(m.inst_slots()),
        claimed(m.comp_slots()),
        comp_hash(m.comp_slots()) {}
  void run();

  // folding.cc
  uint32_t add_group(FoldGroup group);  // under a key that is made unique
  bool reducer(CompId c, Opcode caller) const;
  void place(CompId c, uint32_t group);
  LocalGraph graph_of(CompId c);
  void find_hidden(CompId c);
  void add_calls(const LocalGraph& g);
  void infer_scopes(LocalGraph* g);
  void place_sources(const LocalGraph& g, uint32_t top);
  void group_results(LocalGraph* g, CompId c, uint32_t top);
  void group_sources(const LocalGraph& g, uint32_t group, const std::vector<uint32_t>& nodes);
  void group_uncalled(size_t first);  // of the module's children, from that one on
  void finish();
  FoldItem item_of(InstId i, uint32_t group);  // and puts it there
  uint64_t hash_of(CompId c);
  uint64_t plain_hash(InstId i);

  // scopes.cc: all but sources get their homes, groups of scopes are made.
  void partition(const LocalGraph& g, CompId c, uint32_t top);
  // blocks.cc: fills the children of a group.
  void arrange(uint32_t group, const ItemList& items);
};

// A name with its digits left out, and whether it had some: layer_3 is alike to layer_4.
bool without_digits(std::string_view name, std::string* out);

}  // namespace hlo
