// Inside of the parser: one recursive-descent pass over the bytes, with memos for texts that repeat (shapes and
// attribute tails), which is where most of a module's bytes are.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/base/source.h"
#include "ir/sharding/sharding.h"
#include "parser/parser.h"

namespace hlo {

// A universe that the caller keeps.
inline std::shared_ptr<Universe> borrowed(Universe& u) { return {std::shared_ptr<Universe>(), &u}; }

// What a piece of the text was read as, found again where the same bytes stand. Two places for each hash; what is found
// or kept last comes first, and what falls out is read again.
template <class T>
class TextMemo {
 public:
  // `salt` tells what else the value depends on.
  static uint64_t hash(std::string_view piece, uint64_t salt = 0) {
    return hash_bytes(piece) + salt * 0x9E3779B97F4A7C15ull;
  }
  const T* find(std::string_view text, std::string_view piece, uint64_t hash) {
    if (entries_.empty()) return nullptr;
    Entry* at = &entries_[hash & mask_ & ~size_t{1}];
    auto tag = static_cast<uint32_t>(hash >> 32);
    for (int way = 0; way < 2; ++way)
      if (at[way].tag == tag && at[way].size == piece.size() &&
          !std::memcmp(text.data() + at[way].at, piece.data(), piece.size()))
        return &at[way].value;
    return nullptr;
  }
  // `piece` lies in `text`, is not empty and stays where it is.
  void keep(std::string_view text, std::string_view piece, uint64_t hash, T value) {
    if (entries_.empty()) {
      entries_.resize(std::bit_ceil(std::clamp<size_t>(text.size() / 256, 64, kMost)));
      mask_ = entries_.size() - 1;
    }
    Entry* at = &entries_[hash & mask_ & ~size_t{1}];
    at[1] = at[0];
    at[0] = {static_cast<size_t>(piece.data() - text.data()), static_cast<uint32_t>(piece.size()),
             static_cast<uint32_t>(hash >> 32), value};
  }

 private:
  struct Entry {
    size_t at = 0;
    uint32_t size = 0, tag = 0;
    T value;
  };
  static constexpr size_t kMost = 1 << 16;
  std::vector<Entry> entries_;
  size_t mask_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::shared_ptr<Universe> universe, const ParseOptions& options);
  std::unique_ptr<Module> module();
  ShapeId lone_shape();
  LitId lone_literal(ShapeId shape);
  Sharding lone_sharding();
  std::vector<Metadata> lone_metadata_list();

 private:
  struct SyntaxError {
    Diagnostic diagnostic;
    bool silent = false;  // follows from an error already told
  };
  [[noreturn]] void error(size_t at, std::string message, std::string hint = {});
  template <class... A>
  [[noreturn]] void error_at(size_t at, fmt::format_string<A...> text, A&&... args) {
    error(at, fmt::format(text, std::forward<A>(args)...));
  }
  template <class... A>
  [[noreturn]] void error_here(fmt::format_string<A...> text, A&&... args) {
    error(at_, fmt::format(text, std::forward<A>(args)...));
  }

  // One construct that is the whole text.
  template <class Read>
  auto lone(const char* what, Read read) {
    lone_ = true;
    try {
      auto value = read();
      skip();
      if (!done()) error_here("unexpected text after the {}", what);
      return value;
    } catch (SyntaxError& e) {
      throw Failure(FailureKind::kSyntax, render(options_.file, text_, e.diagnostic, options_.first_line));
    }
  }

  // --- bytes ---
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool done() const { return at_ >= text_.size(); }
  // White space and comments.
  void skip() {
    if (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) > ' ' && text_[at_] != '/') return;
    // One blank is the usual thing.
    if (at_ + 1 < text_.size() && text_[at_] == ' ' && static_cast<unsigned char>(text_[at_ + 1]) > ' ' &&
        text_[at_ + 1] != '/') {
      ++at_;
      return;
    }
    skip_slow();
  }
  void skip_slow();
  // Skip, then the byte.
  bool eat(char c) {
    skip();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* where);
  bool eat(std::string_view word);    // punctuation of several bytes
  std::string_view word();            // identifier without skip; empty if none
  std::string_view peek_word();       // after skip
  bool eat_word(std::string_view w);  // whole identifier
  std::string_view name_text(const char* what, StrId (*id_of)(Universe&, std::string_view), StrId* id);
  StrId name(const char* what);  // %name, name, name:
  void signature_name();
  int64_t integer(const char* what);
  uint64_t natural(const char* what);
  double decimal(const char* what);
  std::string quoted(const char* what);
  bool boolean(const char* what);
  std::string_view balanced();  // from an opening bracket to its partner, strings respected

  // --- values ---
  bool at_shape();
  ShapeId shape();
  ShapeId shape_slow();
  ShapeId prefix_shape();
  Layout layout(int rank);
  void layout_parts(Layout& out);
  void layout_part(std::string_view key, Layout& out);
  template <class One>
  std::string layout_list(const One& one);
  void dim_levels();
  std::string tiles_of_layout();
  std::string splits_of_layout();
  std::string type_in_layout(std::string_view key);
  int64_t number_in_layout(int64_t least);
  LitId literal(ShapeId shape);
  bool at_sparse_items();
  void sparse_items(const Shape& s, std::string& bytes);
  bool literal_array(const Shape& shape, std::string& bytes);
  void element(ElementType type, char* at);
  double float_text(ElementType type, std::string* nan_payload);
  Dims int_list(const char* what);
  Dims dxd(const char* what);

  // --- attributes ---
  struct Pending {  // instruction under construction
    Opcode op;
    size_t op_at = 0, name_at = 0;
    StrId name;
    ShapeId shape;
    std::vector<InstId> operands;
    AttrSet set;
    MetaId meta;
    AttrsId attrs;
    uint32_t payload = 0;
    std::vector<InstId> control;
    std::vector<Attr> seen;
    bool is_short = false;  // `add-start`: op is the async one, base what it runs
    Opcode base = Opcode::Abs;
    Pending* wrapped = nullptr;  // of a short async-start: the operation inside
  };
  void attributes(Pending& p);
  bool attributes_from_memo(Pending& p);
  void attribute(Pending& p);
  // Of attribute(): `start` is where its name stands.
  void control_predecessors(Pending& p);
  void collective_mode();
  void comparison_order(Pending& p, size_t start);
  bool wrapped_attribute(Pending& p, Attr key, size_t start);
  static bool repeats_start(const Pending& p, Attr key);
  [[noreturn]] void refuse_attribute(Opcode op, Attr key, size_t start);
  void check_repeated(const Pending& p, const AttrValue& value, size_t start);
  bool metadata_to_end(size_t line_end, MetaId* out);
  bool plain_metadata(MetaId* out);
  AttrValue attr_value(Pending& p, Attr key, AttrKind kind);
  // Its kinds.
  AttrValue enumeration(const Pending& p, Attr key);
  AttrValue paddings(const Pending& p);
  AttrValue slices(const char* what);
  AttrValue shape_list(const char* what);
  AttrValue dimension_list(const Pending& p, Attr key);
  std::string parameter_replication(ShapeId parameter);
  AttrValue algorithm(const Pending& p, std::string_view w);
  AttrValue bracketed(Pending& p, Attr key);
  void check_attrs(Pending& p);
  void drop_defaults(Pending& p);
  void check_callees(const Pending& p);
  bool add_default(Pending& p, Attr key);
  void check_operands(const Pending& p, const AttrSet& set);
  void check_transfer(const Pending& p, const AttrSet& set);
  void check_slice_indices(const Pending& p);
  void check_branches(const Pending& p, const AttrSet& set);
  void check_layout_constraints(const Pending& p, const AttrSet& set);
  MetaId metadata();
  CompId computation_ref();
  std::vector<CompId> computation_list();
  Window window();
  DimLabels dim_labels();
  std::string canonical_dict();
  std::string_view dictionary();
  std::string_view raw_value();
  std::string profile_types();
  std::string alias_text(bool donor);

  // --- values with a grammar of their own (parse_structured.cc) ---
  std::string_view field_name(const char* what);
  std::string lower_word(const char* what);
  Dims number_list(char open, char close, const char* what);
  std::vector<Dims> nested_ints(const char* what);
  void iota_tiles(TileAssignment& tiles, bool needs_transpose);
  // `single_device` is XLA 0.12's word for `maximal_mesh`.
  static bool is_maximal_mesh(std::string_view word) { return word == "maximal_mesh" || word == "single_device"; }
  static bool begins_mesh(std::string_view word) { return word == "mesh" || is_maximal_mesh(word); }
  Mesh mesh();
  std::vector<AxisRef> axis_list(const Mesh& m, std::vector<AxisRef>& taken, bool* open);
  std::string sharding_metadata(bool always_list);
  Sharding sharding();
  Sharding single_sharding();
  struct ShardingText;
  void last_tile_kinds(std::vector<Sharding::Sub>& last);
  void sharding_field(std::string_view w, size_t place, ShardingText& t);
  void sharding_word(std::string_view w, size_t place, ShardingText& t);
  Sharding tiled_sharding(ShardingText& t, size_t start);
  Sharding named_sharding();
  StrId sharding_of(ShapeId shape);
  std::string replica_groups();
  std::string source_target_pairs();
  std::string operand_aliases();
  std::string operand_precision();
  std::string result_accuracy();
  std::string statistics();
  std::string origin();
  std::string origin_attribute();
  std::string origin_recovery_table();
  std::string sparsity_config();
  std::string domain(ShapeId shape);
  std::string typed_literal();

  // --- structure ---
  void header();
  void stack_tables();
  bool fields_in_order(std::initializer_list<std::pair<std::string_view, int32_t*>> list);
  template <class Set>
  void row_fields(const Set& set);
  StackTables::Location file_location();
  StackTables::Frame stack_frame();
  CompId computation(bool inline_body);
  struct Shadows;
  void parameter_list();
  bool instructions(CompId comp, bool inline_body, size_t open);
  void execution_thread(CompId comp, bool inline_body);
  void body(CompId comp, StrId declared_root_shape_at, bool inline_body);
  bool at_computation();
  bool instruction(CompId comp, bool nested);
  InstId parse_instruction(CompId comp, StrId name, size_t name_at, bool nested);
  void operands(CompId comp, Pending& p);
  InstId operand(CompId comp);
  InstId lone_operand(CompId comp, ShapeId stated, size_t place);
  InstId nested_operation(CompId comp, std::string_view w, size_t place);
  InstId tuple_part(CompId comp, InstId tuple, std::string_view name);
  InstId find(StrId name, CompId comp, size_t at);
  void define(StrId name, InstId id, size_t at);
  StrId unique_inst_name(StrId name);
  StrId unique_comp_name(StrId name);
  InstId finish(CompId comp, Pending& p);
  InstId append(CompId comp, Pending& p);
  StrId anonymous_name(CompId comp, Opcode op);
  InstId add_named(CompId comp, Inst inst, StrId wish);
  InstId element_of(CompId comp, InstId tuple, int64_t index, std::string_view name);
  bool async_short_form(std::string_view w, Pending* p);
  std::pair<InstId, size_t> async_root(InstId id);
  void check_async_chain(Pending& p);
  void wrap_async(Pending& p);
  void set_thread(const Pending& p);
  void rename_inlined();
  void recover();
  std::unique_ptr<Module> bare_instruction();
  void finish_module();
  void check_parameters(CompId comp, size_t at);

  std::string_view text_;
  size_t at_ = 0;
  size_t room_ = 0;  // instructions that the module has room for; 0: small enough not to matter
  bool metadata_room_ = false;
  size_t comments_ = 0;  // comments skipped so far: memos are only kept for texts without any
  std::shared_ptr<Universe> universe_;
  Universe& u_;
  ParseOptions options_;
  std::unique_ptr<Module> m_;
  std::vector<SyntaxError> errors_;
  int depth_ = 0;

  std::map<std::pair<InstId, int64_t>, InstId> compact_;       // `%t#0`, by tuple and index
  HugeVector<uint32_t> definition_;                            // by StrId: the InstId that the name stands for now
  std::vector<uint32_t> definition_at_;                        // by StrId: where (only filled for notes)
  std::vector<std::pair<StrId, uint32_t>>* shadow_ = nullptr;  // definitions to restore after an inline computation
  std::vector<StrId> poisoned_;
  std::unordered_map<StrId, CompId> comp_by_name_;
  std::vector<CompId> broken_;                 // computations with errors: what calls them is not judged
  std::vector<bool> taken_inst_, taken_comp_;  // by StrId
  bool slow_names_ = false, slow_comp_names_ = false;
  NameUniquer inst_names_, comp_names_;
  // What names were asked for where they had to be changed, and computations in the order of their ends.
  std::vector<std::pair<InstId, StrId>> renamed_;
  std::unordered_map<CompId, StrId> comp_wish_;
  std::vector<CompId> finished_;
  CompId anonymous_comp_;
  std::unordered_map<Opcode, size_t> anonymous_next_;
  bool inlined_ = false;
  std::unordered_map<InstId, std::pair<InstId, size_t>> async_chain_;  // of async-updates
  std::vector<std::pair<Dims, size_t>> alias_outputs_;                 // of input_output_alias, and where they stand
  bool bare_ = false;
  bool lone_ = false;  // a value by itself, no file
  CompId bare_comp_;
  std::vector<std::pair<StrId, ShapeId>> bare_params_;

  TextMemo<ShapeId> shape_memo_;
  bool literal_prefix_ = false;       // the shape being read stands before a literal
  std::string_view last_shape_text_;  // in the text; the shape read before this one
  ShapeId last_shape_;
  TextMemo<AttrsId> attr_memo_;  // by what stands in front of the metadata, and the opcode
  TextMemo<MetaId> meta_memo_;   // by the rest of the line
  static constexpr size_t kMemoReach = 4096;
  // The last strings of op_type, op_name and source_file: neighbours share them.
  struct {
    std::string_view text;
    uint32_t id = StrId::kNone;
  } last_strings_[3];
  // The last two instructions: what is read next mostly takes one of them.
  struct Recent {
    std::string_view name;
    InstId id;
  } recent_[2];
  // The last instruction's lists, their room used again.
  std::vector<InstId> spare_operands_;
  std::vector<std::pair<Attr, AttrValue>> spare_attrs_;
  std::vector<Attr> spare_seen_;
};

}  // namespace hlo
