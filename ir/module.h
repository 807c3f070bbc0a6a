// The working form of a module: computations of instructions, with use lists in XLA's order and the mutations that
// passes are written in. Semantics of names, users, replacement and order follow xla/hlo/ir/hlo_computation.cc,
// hlo_instruction.cc and xla/service/name_uniquer.cc.
#pragma once
#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/base/check.h"
#include "ir/heir.h"
#include "ir/universe.h"

namespace hlo {

// 32 bytes. Up to two operands lie inside; longer lists at operand[0] in the universe's pool. A constant keeps its
// LitId and a parameter its number in operand[0] (they have no operands).
struct Inst {
  Opcode op = Opcode::Abs;
  uint8_t flags = 0;
  uint16_t count_low = 0;  // operand count, 0xFFFF means: first pool entry holds the count
  ShapeId shape;
  AttrsId attrs;
  MetaId meta;
  StrId name;
  CompId parent;  // invalid once removed
  uint32_t operand[2] = {0, 0};
};
static_assert(sizeof(Inst) == 32);

struct Computation {
  StrId name;
  StrId thread;  // execution_thread, invalid for main
  bool alive = true;
  std::vector<InstId> order;  // creation order; a removed instruction leaves an invalid id until cleanup()
  std::vector<InstId> params;
  InstId root;
  bool operator==(const Computation&) const = default;
};

// Stack tables of a module header; positions count from 1 in the text.
struct StackTables {
  struct Location {
    int32_t file = 0, function = 0, line = 0, end_line = 0, column = 0, end_column = 0;
    bool operator==(const Location&) const = default;
  };
  struct Frame {
    int32_t location = 0, parent = 0;
    bool operator==(const Frame&) const = default;
  };
  std::vector<std::string> files, functions;
  std::vector<Location> locations;
  std::vector<Frame> frames;
  bool empty() const { return frames.empty(); }
  bool operator==(const StackTables&) const = default;
};

struct ModuleConfig {
  bool is_scheduled = false;
  bool alias_passthrough_params = false;
  bool has_entry_layout = false;
  std::vector<ShapeId> entry_params;  // entry_computation_layout
  ShapeId entry_result;
  int64_t replica_count = 1, num_partitions = 1;
  // Canonical text of header fields that passes rarely read; empty when absent.
  std::string input_output_alias, buffer_donor, spmd_to_parameters, spmd_to_output, frontend_attributes,
      origin_recovery_table, debug_attributes;
  std::string kept_verbatim;  // `, key=value` of fields that nobody knows, kept by --permissive
  bool operator==(const ModuleConfig&) const = default;
};

// xla/service/name_uniquer.cc: per root a set of used numbers and a counter. Copies go on by themselves.
class NameUniquer {
 public:
  explicit NameUniquer(char separator = '.') : separator_(separator) {}
  // Stays until the next call, and no longer than `prefix` does.
  std::string_view unique(std::string_view prefix);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Most roots have few numbers, and there may be as many roots as names.
  struct Sequence {
    uint64_t next = 0;      // what is asked for a second time gets the least that is free
    uint64_t first = 0;     // numbers below 64, a bit each
    uint32_t more = kNone;  // of more_
  };
  struct More {
    size_t count = 0;  // numbers asked for
    std::vector<bool> dense;
    std::unordered_set<uint64_t> far;  // none below dense.size()
  };
  bool take(Sequence& of, uint64_t id);

  char separator_;
  StringInterner roots_;
  std::vector<Sequence> sequences_;  // by root
  std::vector<More> more_;
  std::string out_;
};

// Removes what may not stand in an HLO name.
std::string sanitized_name(std::string_view name);

class Module {
 public:
  explicit Module(std::shared_ptr<Universe> universe) : universe_(std::move(universe)) {}
  // A deep copy that shares only the universe.
  std::unique_ptr<Module> clone() const {
    frozen_pool_ = u().pool_size();  // both would write into the operand lists that they share
    return std::unique_ptr<Module>(new Module(*this));
  }

  Universe& u() const { return *universe_; }
  const std::shared_ptr<Universe>& universe() const { return universe_; }

  // --- header ---
  const std::string& name() const { return name_; }
  const ModuleConfig& config() const { return config_; }
  const StackTables& stack() const { return stack_; }
  void set_module_name(std::string name) { touch_header(), name_ = std::move(name); }
  void set_scheduled(bool scheduled) {
    if (config_.is_scheduled != scheduled) edit_config().is_scheduled = scheduled;
  }
  void set_entry_layout(std::vector<ShapeId> params, ShapeId result) {
    if (config_.entry_params == params && config_.entry_result == result) return;
    edit_config().entry_params = std::move(params);
    config_.entry_result = result;
  }
  // To be written at once: what is written through a reference that was kept is not seen.
  ModuleConfig& edit_config() {
    touch_header();
    return config_;
  }
  StackTables& edit_stack() {
    touch_header();
    return stack_;
  }

  // --- computations ---
  CompId entry() const { return entry_; }
  void set_entry(CompId id) {
    if (entry_ != id) ++edits_, entry_ = id;
  }
  const Computation& comp(CompId id) const {
    HLO_DCHECK(id.value < comps_.size(), "computation {} of {}", id.value, comps_.size());
    return comps_[id.value];
  }
  std::string_view comp_name(CompId id) const { return u().text(comp(id).name); }
  size_t comp_slots() const { return comps_.size(); }
  std::vector<CompId> computations() const;                // insertion order, live ones
  CompId add_computation(std::string_view name);           // name made unique
  CompId add_computation_verbatim(StrId name);             // parser: names are checked elsewhere
  void set_computation_order(std::vector<CompId> order) {  // of the same ones
    if (comp_order_ != order) ++edits_, comp_order_ = std::move(order);
  }
  // Of the same instructions: the order of creation, and the schedule of a scheduled module.
  void set_order(CompId id, std::vector<InstId> order);
  void set_params(CompId id, std::vector<InstId> params);  // by number; the instructions' own numbers stay
  void set_thread(CompId id, StrId thread);                // execution_thread; invalid: main
  void set_computation_name(CompId id, StrId name);        // as it is: unique is the caller's business
  void remove_computation(CompId id);
  // Those that are not the entry and that the entry does not reach by calls.
  void remove_uncalled_computations();
  void rename_computation(CompId id, std::string_view wish);
  // Copy of a computation inside the module, named `<name>.<suffix>`; instructions keep their names until made unique.
  // Fusions in it have bodies of their own; what else is called is shared.
  CompId clone_computation(CompId id, std::string_view suffix, std::unordered_map<InstId, InstId>* map = nullptr);
  // Callees before callers; on a module whose text has callees first: text order.
  std::vector<CompId> computation_post_order() const;
  std::vector<CompId> nonfusion_computations() const;  // the same without fusion bodies
  // Where the module may be edited, and so has one owner, these and post_order() are kept until something is: most
  // passes find nothing to do, and the next one walks in the same order.
  std::vector<CompId> computation_post_order();
  std::vector<CompId> nonfusion_computations();
  std::vector<bool> fusion_computation_flags() const;  // by CompId
  // Instructions that call it, in order of computations and instructions.
  std::vector<std::vector<InstId>> callers() const;

  // --- instructions ---
  const Inst& operator[](InstId id) const { return inst(id); }
  size_t inst_slots() const { return insts_.size(); }
  // How many there are, fused ones among them: most passes look for an opcode that the module does not have.
  size_t count(Opcode op) const { return op_counts_[static_cast<size_t>(op)]; }
  bool has_any(std::initializer_list<Opcode> ops) const {
    for (Opcode op : ops)
      if (count(op)) return true;
    return false;
  }
  // Which computations, by id, have such an instruction; empty where none has.
  std::vector<bool> computations_with(Opcode op) const;
  bool alive(InstId id) const { return id.valid() && id.value < insts_.size() && insts_[id.value].parent.valid(); }
  Opcode op(InstId id) const { return inst(id).op; }
  ShapeId shape_id(InstId id) const { return inst(id).shape; }
  const Shape& shape(InstId id) const { return u()[inst(id).shape]; }
  const AttrSet& attrs(InstId id) const { return u()[inst(id).attrs]; }
  std::string_view inst_name(InstId id) const { return u().text(inst(id).name); }
  CompId parent(InstId id) const { return inst(id).parent; }
  size_t operand_count(InstId id) const {
    const Inst& inst = insts_[id.value];
    return inst.count_low == 0xFFFF ? u().pool_at(inst.operand[0])->value : inst.count_low;
  }
  std::span<const InstId> operands(InstId id) const {
    const Inst& inst = insts_[id.value];
    if (inst.count_low <= 2) return {reinterpret_cast<const InstId*>(inst.operand), inst.count_low};
    const InstId* at = u().pool_at(inst.operand[0]);
    if (inst.count_low == 0xFFFF) return {at + 1, at->value};
    return {at, inst.count_low};
  }
  InstId operand(InstId id, size_t i) const { return operands(id)[i]; }
  LitId literal_id(InstId id) const { return LitId(inst(id).operand[0]); }
  const Literal& literal(InstId id) const { return u()[literal_id(id)]; }
  int64_t parameter_number(InstId id) const { return inst(id).operand[0]; }
  const std::vector<CompId>& called(InstId id) const {
    return u()[may_call(inst(id).op) ? inst(id).attrs : AttrsId()].called;
  }
  bool is_root(InstId id) const { return comp(parent(id)).root == id; }
  size_t instruction_count() const;  // live ones
  size_t size(CompId id) const;

  // Users in insertion order without duplicates (removal moves the last into the hole, as in XLA).
  std::span<const InstId> users(InstId id) const {
    if (!users_built_) ensure_users();
    return {reinterpret_cast<const InstId*>(user_array(id)), users_[id.value].count};
  }
  std::vector<InstId> users_copy(InstId id) const {
    auto s = users(id);
    return {s.begin(), s.end()};
  }
  size_t user_count(InstId id) const { return users(id).size(); }
  // Puts the users of a value in this order, which is none of the program and so no edit of it. False, and nothing is
  // done, where these are not its users, each once.
  bool order_users(InstId id, std::span<const InstId> users);
  // Uses: operand slots that refer to it.
  size_t use_count(InstId id) const;
  bool dead(InstId id) const { return users(id).empty() && !is_root(id); }

  struct NewInst {
    Opcode op;
    ShapeId shape;
    std::vector<InstId> operands = {};
    AttrsId attrs = {};
    MetaId meta = {};
    std::string_view name = {};  // wish; the opcode's text when empty
    uint32_t payload = 0;        // LitId of a constant, number of a parameter
  };
  // Appends to the computation; the name is made unique over the module.
  InstId add(CompId comp, const NewInst& inst);
  void reserve(size_t instructions) {
    insts_.reserve(instructions);
    dirty_list_.reserve(instructions);
  }
  InstId add_verbatim(CompId comp, const Inst& inst);  // parser: name already final, operands already in place
  // As XLA's inst->AddInstruction: like add(), then what derived instructions inherit of `from`.
  InstId add_derived(InstId from, const NewInst& inst);
  void inherit(InstId from, InstId to);
  // A copy with other operands (and shape, when given), all else inherited; name of the original made unique.
  InstId clone_inst(InstId id, CompId into, std::span<const InstId> operands, ShapeId shape = ShapeId(),
                    std::string_view suffix = {}) {
    return clone_named(id, into, operands, shape, clone_name(id, suffix));
  }
  InstId clone_named(InstId id, CompId into, std::span<const InstId> operands, ShapeId shape, StrId name);
  // Names that an instruction, a copy of one and a computation would get; they are taken from then on.
  StrId take_name(std::string_view wish);
  StrId clone_name(InstId id, std::string_view suffix = {});
  StrId take_computation_name(std::string_view wish);

  InstId constant(CompId comp, Literal literal, std::string_view name = {});
  LitId scalar_literal(ElementType type, ScalarValue value) const;
  InstId parameter(CompId comp, int64_t number, ShapeId shape, std::string_view name);

  void set_operand(InstId id, size_t i, InstId value);
  void set_operands(InstId id, std::span<const InstId> values);
  // The same, but of what stays an operand it keeps its place among the users, as where operands come and go singly.
  void exchange_operands(InstId id, std::span<const InstId> values);
  // Each of these leaves an instruction that has the value already alone.
  void set_shape(InstId id, ShapeId shape) {
    if (inst(id).shape != shape) touch(id).shape = shape;
  }
  void set_attrs(InstId id, AttrsId attrs) {
    if (inst(id).attrs != attrs) touch(id).attrs = attrs;
  }
  void set_attr(InstId id, Attr key, AttrValue value);
  void erase_attr(InstId id, Attr key);
  void set_meta(InstId id, MetaId meta) {
    if (inst(id).meta != meta) touch(id).meta = meta;
  }
  void set_name(InstId id, StrId name) {
    if (inst(id).name != name) touch(id).name = name;
  }
  void set_literal(InstId id, LitId lit) { set_payload(id, lit.value); }
  void set_parameter_number(InstId id, int64_t n) { set_payload(id, static_cast<uint32_t>(n)); }
  void set_root(CompId comp, InstId root);
  void set_uniquified_name(InstId id, std::string_view wish);
  void replace_called(InstId id, CompId from, CompId to);

  // ReplaceAllUsesWith: `to` itself is skipped as a user; the root moves along.
  void replace_all_uses(InstId from, InstId to);
  struct ReplaceOptions {
    bool preserve_sharding = false;
    bool relay_control = false;
    bool remove_unused = true;
  };
  // XLA's ReplaceInstruction (visitor: relay_control = true). False where XLA refuses: nothing is changed then.
  bool replace(InstId from, InstId to, ReplaceOptions options);
  bool replace(InstId from, InstId to) { return replace(from, to, ReplaceOptions()); }
  void remove(InstId id);  // must have no users
  void remove_with_unused_operands(InstId id, bool ignore_control = true);
  bool safely_removable(InstId id, bool ignore_control = false) const;
  bool has_side_effect(InstId id) const;
  void cleanup();  // squeezes removed instructions out of the orders

  // --- control dependencies ---
  std::span<const InstId> control_preds(InstId id) const {
    return preds_.empty() ? std::span<const InstId>() : control_list(preds_, id);
  }
  std::span<const InstId> control_succs(InstId id) const {
    return succs_.empty() ? std::span<const InstId>() : control_list(succs_, id);
  }
  bool has_control(InstId id) const { return !control_preds(id).empty() || !control_succs(id).empty(); }
  bool any_control() const { return !preds_.empty(); }
  void add_control(InstId before, InstId after);
  void drop_control(InstId id);

  // Post order as XLA prints and as most passes walk (hlo_computation.cc, MakeInstructionPostOrder): dead ends are
  // roots in list order; control predecessors, last first, before operands.
  std::vector<InstId> post_order(CompId id) const;
  std::vector<InstId> post_order(CompId id);
  // Order of DfsHloRewriteVisitor::Accept: unreachable roots first, then the root.
  std::vector<InstId> live_order(CompId id) const;  // list order, without holes
  std::vector<InstId> elided_constants() const;     // written `{...}`

  // --- recording ---
  // How many edits there were, of anything that a stage shows; removing and making the same again are two. It survives
  // clear_dirty().
  uint64_t edits() const { return edits_; }
  // From now on what instructions live on as is logged, in the order in which it happens: chains within one pass, and
  // instructions made and removed again, among it. take_heirs() empties the log.
  void keep_heirs(bool keep) { keep_heirs_ = keep; }
  std::vector<Heir> take_heirs() { return std::exchange(heirs_, {}); }
  const std::vector<Heir>& heirs() const { return heirs_; }
  // Empty from here on, and kept: whoever has recorded a stage wants what comes behind it.
  void clear_heirs() { heirs_.clear(), keep_heirs_ = true; }
  const std::vector<InstId>& dirty_insts() const { return dirty_list_; }
  const std::vector<CompId>& dirty_comps() const { return dirty_comp_list_; }
  bool dirty_header() const { return dirty_header_; }
  void clear_dirty();
  // Pool entries below this index belong to recorded stages and are never written again.
  void freeze_pool() { frozen_pool_ = u().pool_size(); }

  void ensure_names();
  void ensure_users() const;

 private:
  friend class Snapshot;
  friend class Recorder;
  Module(const Module&) = default;

  struct UserList {
    uint32_t count = 0, capacity = 2;
    union {
      uint32_t inside[2];
      uint32_t offset;
    };
    UserList() : inside{0, 0} {}
  };
  const Inst& inst(InstId id) const {
    HLO_DCHECK(id.value < insts_.size(), "instruction {} of {}", id.value, insts_.size());
    return insts_[id.value];
  }
  void touch_header() { dirty_header_ = true, ++edits_; }
  Inst& touch(InstId id) {
    HLO_DCHECK(id.value < insts_.size(), "instruction {} of {}", id.value, insts_.size());
    ++edits_;
    if (const CompId of = insts_[id.value].parent; of.valid()) comp_edited_[of.value] = edits_;
    if (!dirty_[id.value]) dirty_[id.value] = true, dirty_list_.push_back(id);
    return insts_[id.value];
  }
  Computation& touch_comp(CompId id) {
    HLO_DCHECK(id.value < comps_.size(), "computation {} of {}", id.value, comps_.size());
    comp_edited_[id.value] = ++edits_;
    if (!dirty_comp_[id.value]) dirty_comp_[id.value] = true, dirty_comp_list_.push_back(id);
    return comps_[id.value];
  }
  void set_payload(InstId id, uint32_t payload) {
    if (inst(id).operand[0] != payload) touch(id).operand[0] = payload;
  }
  void log_heir(InstId from, InstId to, HeirKind kind) {
    if (keep_heirs_) heirs_.push_back({from, to, kind});
  }
  InstId* operand_array(InstId id);
  void write_operands(Inst& inst, std::span<const InstId> values);
  void add_user(InstId of, InstId user) const;
  void remove_user(InstId of, InstId user);
  void append_user(InstId of, InstId user) const;
  void add_as_user(InstId id) const;  // of all its operands, once each; it uses none of them yet
  uint32_t* user_array(InstId of) const {
    UserList& list = users_[of.value];
    return list.capacity <= 2 ? list.inside : user_pool_.data() + list.offset;
  }
  using ControlLists = std::unordered_map<InstId, std::vector<InstId>>;
  static std::span<const InstId> control_list(const ControlLists& lists, InstId id);
  void count_op(const Inst& inst, bool there) { op_counts_[static_cast<size_t>(inst.op)] += there ? 1 : -1; }
  bool uses(InstId user, InstId value, size_t except);
  std::unordered_map<InstId, std::vector<uint32_t>>* places_in(InstId user);  // null where there are few operands

  std::shared_ptr<Universe> universe_;
  std::string name_;
  ModuleConfig config_;
  StackTables stack_;
  HugeVector<Inst> insts_;
  std::vector<Computation> comps_;
  std::vector<CompId> comp_order_;
  CompId entry_;
  ControlLists preds_, succs_;
  std::array<uint32_t, kOpcodeCount> op_counts_ = {};  // of live instructions

  // Orders, by how many edits there were when they were right: of computations, of instructions by computation.
  static constexpr uint64_t kNever = UINT64_MAX;
  template <class IdType>
  struct Order {
    uint64_t at = kNever;
    std::vector<IdType> ids;
  };
  Order<CompId> post_order_of_comps_, nonfusion_;
  std::vector<Order<InstId>> post_orders_;
  std::vector<uint64_t> comp_edited_;  // when the last edit of the computation or its instructions was

  mutable bool users_built_ = false;
  mutable std::vector<UserList> users_;
  mutable std::vector<uint32_t> user_pool_;
  // Position of each user in long lists, so that removal stays constant time.
  mutable std::unordered_map<InstId, std::unordered_map<InstId, uint32_t>> user_index_;

  // Where each operand of one wide instruction under edit stands; kept true by every edit of operands.
  InstId wide_user_;
  std::unordered_map<InstId, std::vector<uint32_t>> wide_places_;

  bool names_built_ = false;
  NameUniquer inst_names_, comp_names_;
  mutable uint32_t frozen_pool_ = 0;

  uint64_t edits_ = 0;
  bool dirty_header_ = true, keep_heirs_ = false;
  std::vector<Heir> heirs_;
  std::vector<bool> dirty_, dirty_comp_;
  std::vector<InstId> dirty_list_;
  std::vector<CompId> dirty_comp_list_;
};

}  // namespace hlo
