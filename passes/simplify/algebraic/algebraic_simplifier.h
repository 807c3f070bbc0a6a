// Inside of algsimp (xla/hlo/transforms/simplifiers/algebraic_simplifier.cc and the GPU's subclass). Rules of one
// opcode are tried in XLA's order; at most one fires on an instruction in one walk.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "passes/rewrite.h"
#include "passes/simplify/algebraic/algebraic_rule.h"

namespace hlo {

inline bool ascending(const Dims& d) { return std::is_sorted(d.begin(), d.end()); }

// Rows, a file's each.
std::span<const AlgebraicRule> arithmetic_rules();
std::span<const AlgebraicRule> quotient_rules();
std::span<const AlgebraicRule> elementwise_rules();
std::span<const AlgebraicRule> conversion_rules();
std::span<const AlgebraicRule> broadcast_rules();
std::span<const AlgebraicRule> movement_rules();
std::span<const AlgebraicRule> slice_rules();
std::span<const AlgebraicRule> indexing_rules();
std::span<const AlgebraicRule> reduction_rules();
std::span<const AlgebraicRule> window_rules();
std::span<const AlgebraicRule> product_rules();
std::span<const AlgebraicRule> convolution_rules();
std::span<const AlgebraicRule> structure_rules();

class AlgebraicSimplifier {
 public:
  AlgebraicSimplifier(Module& m, PassContext& ctx)
      : m_(m),
        u_(m.u()),
        ctx_(ctx),
        layout_sensitive_(ctx.flag("layout_sensitive")),
        reduce_of_transpose_(ctx.flag("unconditional_reduce_of_transpose")),
        remove_reduce_precision_(ctx.flag("remove_no_op_reduce_precision")) {}
  bool run();

  // Rules, called by their rows alone.
  // algebraic_arithmetic.cc
  bool two_biases(InstId i);
  bool add_zero(InstId i);
  bool constant_to_the_right(InstId i);
  bool add_of_constants(InstId i);
  bool add_to_difference(InstId i);
  bool add_undoes_subtract(InstId i);
  bool add_of_update(InstId i);
  bool common_factor(InstId i);
  bool add_of_two_scatters(InstId i);
  bool add_of_scatter(InstId i);
  bool subtract_itself(InstId i);
  bool subtract_zero(InstId i);
  bool subtract_constant(InstId i);
  bool subtract_difference(InstId i);
  bool subtract_sum(InstId i);
  bool subtract_from_sum(InstId i);
  bool multiply_by_one(InstId i);
  bool multiply_by_zero(InstId i);
  bool product_of_negations(InstId i);
  bool square_of_abs(InstId i);
  bool multiply_by_pred(InstId i);
  bool constants_of_two_products(InstId i);
  bool constants_of_product(InstId i);
  bool scalar_factor(InstId i);
  bool spread_constants_of_product(InstId i);
  bool product_of_exponentials(InstId i);
  bool square_of_sqrt(InstId i);
  bool square_of_rsqrt(InstId i);
  bool scale_into_filter(InstId i);
  // algebraic_quotients.cc
  bool divide_by_one(InstId i);
  bool divide_by_power_of_two(InstId i);
  bool quotient_of_exponentials(InstId i);
  bool divide_by_exponential(InstId i);
  bool divide_by_power(InstId i);
  bool divide_by_root(InstId i);
  bool divide_by_constant(InstId i);
  bool quotient_of_quotients(InstId i);
  bool divide_quotient(InstId i);
  bool divide_by_quotient(InstId i);
  bool divide_pred(InstId i);
  bool remainder_twice(InstId i);
  bool remainder_of_power_of_two(InstId i);
  bool remainder_of_short_iota(InstId i);
  bool remainder_of_moved_iota(InstId i);
  bool power_of_zero(InstId i);
  bool power_of_one(InstId i);
  bool power_of_exponential(InstId i);
  bool square(InstId i);
  bool cube(InstId i);
  bool inverse(InstId i);
  bool square_root(InstId i);
  // algebraic_elementwise.cc
  bool and_true(InstId i);
  bool and_zero(InstId i);
  bool and_of_two_bounds(InstId i);
  bool or_true(InstId i);
  bool or_zero(InstId i);
  bool unsigned_below_zero(InstId i);
  bool non_negative_below_zero(InstId i);
  bool compare_with_itself(InstId i);
  bool not_equal_false(InstId i);
  bool equal_true(InstId i);
  bool truth_value_as_number(InstId i);
  bool compare_with_extremum(InstId i);
  bool extremum_with_itself(InstId i);
  bool extremum_with_identity(InstId i);
  bool extremum_twice(InstId i);
  bool extremum_twice_on_the_right(InstId i);
  bool clamp_from_extrema(InstId i);
  bool maximum_with_bound(InstId i);
  bool maximum_of_monotone(InstId i);
  bool abs_of_non_negative(InstId i);
  bool same_twice(InstId i);
  bool log_of_exp(InstId i);
  bool log_of_power(InstId i);
  bool log_of_root(InstId i);
  bool exp_of_zero(InstId i);
  bool sqrt_of_square(InstId i);
  bool rsqrt_of_inverse_square(InstId i);
  bool rsqrt_of_inverse(InstId i);
  bool complex_of_parts(InstId i);
  bool real_of_real(InstId i);
  bool real_of_complex(InstId i);
  bool imag_of_complex(InstId i);
  bool imag_of_real(InstId i);
  bool reduce_precision_to_same(InstId i);
  bool select_of_one_value(InstId i);
  bool select_by_true(InstId i);
  bool select_by_false(InstId i);
  bool select_by_negation(InstId i);
  bool select_of_true_and_false(InstId i);
  bool select_of_false_and_true(InstId i);
  bool select_by_comparing(InstId i);
  bool select_of_update(InstId i);
  bool clamp_twice(InstId i);
  bool clamp_of_device(InstId i);
  // algebraic_conversions.cc
  bool convert_to_same(InstId i);
  bool convert_back(InstId i);
  bool narrow_operation(InstId i);
  bool bitcast_convert_twice(InstId i);
  bool bitcast_convert_of_concatenate(InstId i);
  bool bitcast_convert_in_place(InstId i);
  bool bitcast_convert_of_parts(InstId i);
  bool same_as_operand(InstId i);
  bool copy_twice(InstId i);
  bool copy_in_place(InstId i);
  bool copy_of_reshape(InstId i);
  bool copy_as_bitcast(InstId i);
  bool bitcast_twice(InstId i);
  bool bitcast_to_same(InstId i);
  bool bitcast_of_elementwise(InstId i);
  bool bitcast_of_broadcast(InstId i);
  // algebraic_broadcasts.cc
  bool tuple_constant(InstId i);
  bool constant_of_one_value(InstId i);
  bool constant_is_iota(InstId i);
  bool constant_is_strided_iota(InstId i);
  bool iota_of_one(InstId i);
  bool broadcast_is_reshape(InstId i);
  bool broadcast_is_transpose(InstId i);
  bool broadcast_of_inserted_ones(InstId i);
  bool sink_broadcast(InstId i);
  bool movement_of_spread_scalar(InstId i);
  bool broadcast_of_iota(InstId i);
  bool broadcast_twice(InstId i);
  bool broadcast_drops_ones(InstId i);
  // algebraic_movement.cc
  bool reshape_without_elements(InstId i);
  bool reshape_to_same(InstId i);
  bool reshape_twice(InstId i);
  bool movement_of_rng(InstId i);
  bool remove_chain(InstId i);
  bool reshape_of_broadcast(InstId i);
  bool reshape_of_iota(InstId i);
  bool split_iota(InstId i);
  bool reshape_of_update(InstId i);
  bool transpose_of_reshape(InstId i);
  bool reshape_as_bitcast(InstId i);
  bool transpose_into_scatter(InstId i);
  bool transpose_of_nothing(InstId i);
  bool transpose_twice(InstId i);
  bool transpose_of_dot(InstId i);
  bool transpose_of_ones(InstId i);
  bool transpose_as_bitcast(InstId i);
  bool transpose_of_broadcast(InstId i);
  // algebraic_slices.cc
  bool slice_of_padding(InstId i);
  bool slice_undoes_pad(InstId i);
  bool slice_inside_pad(InstId i);
  bool slice_twice(InstId i);
  bool slice_of_broadcast(InstId i);
  bool slice_is_piece(InstId i);
  bool slice_of_concatenate(InstId i);
  bool slice_of_window(InstId i);
  bool slice_of_reshape(InstId i);
  bool slice_of_reverse(InstId i);
  bool stride_of_one_element(InstId i);
  bool pad_of_nothing(InstId i);
  bool interior_padding_of_one(InstId i);
  bool pad_by_nothing(InstId i);
  bool pad_of_broadcast(InstId i);
  bool negative_padding(InstId i);
  bool concatenate_of_one(InstId i);
  bool concatenate_of_nothing(InstId i);
  bool empty_pieces(InstId i);
  bool nested_concatenate(InstId i);
  bool neighbouring_slices(InstId i);
  bool concatenate_of_spread_scalar(InstId i);
  bool concatenate_with_itself(InstId i);
  bool reverse_of_one(InstId i);
  bool reverse_twice(InstId i);
  bool reverse_of_reshape(InstId i);
  bool reverse_of_elementwise(InstId i);
  // algebraic_indexing.cc
  bool dynamic_slice_of_scalar(InstId i);
  bool dynamic_slice_of_everything(InstId i);
  bool index_of_whole_dimension(InstId i);
  bool dynamic_slice_of_broadcast(InstId i);
  bool dynamic_slice_of_reshape(InstId i);
  bool dynamic_slice_of_transpose(InstId i);
  bool dynamic_slice_at_constants(InstId i);
  bool dynamic_slice_of_iota(InstId i);
  bool dynamic_slice_twice(InstId i);
  bool update_of_spread_scalar(InstId i);
  bool update_of_everything(InstId i);
  bool index_of_updated_dimension(InstId i);
  bool update_without_elements(InstId i);
  bool update_of_part(InstId i);
  bool gather_from_nothing(InstId i);
  bool gather_from_one(InstId i);
  bool gather_of_pad(InstId i);
  bool gather_from_few(InstId i);
  bool scatter_of_nothing(InstId i);
  bool scatter_of_everything(InstId i);
  // algebraic_reductions.cc
  bool reduce_of_nothing(InstId i);
  bool tuple_of_one_reduction(InstId i);
  bool reduce_several_of_single_elements(InstId i);
  bool place_in_constant(InstId i);
  bool reduce_of_single_elements(InstId i);
  bool reduce_of_negation(InstId i);
  bool reduce_of_transpose(InstId i);
  bool reduce_of_reduce(InstId i);
  bool reduce_of_reshape(InstId i);
  bool reduce_before_reshape(InstId i);
  bool reduce_of_concatenate(InstId i);
  bool value_next_to_place(InstId i);
  bool reduce_of_spread_scalar(InstId i);
  bool reduce_of_broadcast(InstId i);
  bool sum_of_broadcast(InstId i);
  // algebraic_windows.cc
  bool window_over_scalar(InstId i);
  bool window_of_nothing(InstId i);
  bool windows_of_one(InstId i);
  bool cumulative_sum_of_one_value(InstId i);
  bool window_is_reduction(InstId i);
  bool windows_see_one(InstId i);
  bool padding_into_window(InstId i);
  // algebraic_products.cc
  bool dot_of_nothing(InstId i);
  bool dot_without_contraction(InstId i);
  bool order_of_contracted(InstId i);
  bool dot_of_concatenate(InstId i);
  bool dot_of_row(InstId i);
  bool dot_drops_ones(InstId i);
  bool dot_of_transposes(InstId i);
  // algebraic_convolutions.cc
  bool convolution_of_nothing(InstId i);
  bool padding_of_filter(InstId i);
  bool padding_of_input(InstId i);
  bool swapped_convolution(InstId i);
  bool convolution_as_dot(InstId i);
  bool convolution_as_product(InstId i);
  // algebraic_structure.cc
  bool sort_of_one(InstId i);
  bool map_to_parameter(InstId i);
  bool map_to_constant(InstId i);
  bool map_of_one_operation(InstId i);
  bool conditional_on_pred(InstId i);
  bool unused_elements_of_barrier(InstId i);
  bool element_of_tuple(InstId i);
  bool all_to_all_of_one_value(InstId i);
  bool all_gather_of_one_value(InstId i);
  bool extremum_over_devices(InstId i);
  bool sum_over_devices(InstId i);
  bool dynamic_size_given_back(InstId i);

 private:
  void visit(InstId i);

  // --- what rules share ---
  // Where a slice of a pad lies: beside what was padded, within it, or neither.
  enum class SlicedPad { kNone, kOutside, kInside };
  // A dot of one contracted dimension whose operand `y` is constant; `side`: which operand `x` is.
  struct DotByConstant {
    size_t side;
    InstId x, y;
    size_t x_contracts, y_contracts;
  };
  bool alike_constants(InstId a, InstId b) const;
  InstId sum_of_constants(InstId i, InstId a, InstId b);
  bool constant_factor(InstId product, InstId* a, InstId* constant) const;
  void on_magnitude(InstId i, Opcode operation, int64_t value);
  std::string_view direction(InstId compare) const;
  bool becomes_truth(InstId i, bool value);
  bool is_extreme(InstId v, bool most) const;
  bool selects_truths(InstId i, bool on_true, bool on_false) const;
  bool known_list(InstId i) const;
  bool broadcasts_alike(InstId user, InstId like) const;
  void sink_broadcast_below(InstId i, InstId user);
  std::vector<SliceDim> slice_dims(InstId i) const;
  std::vector<PaddingDim> padding_dims(InstId i) const;
  SlicedPad sliced_pad(InstId i) const;
  std::vector<InstId> sliced_pieces(InstId i, int64_t* first) const;
  std::vector<InstId> pieces_with_elements(InstId i) const;
  size_t run_of_slices(InstId i, size_t n, std::vector<SliceDim>* s) const;
  Dims turned_dims(InstId i) const;
  bool zero_whole_indices(InstId i, size_t first, const Dims& taken, const Dims& all);
  InstId added_index(InstId i, InstId outer, InstId inner, int64_t limit);
  bool adding_scatter(InstId i) const;
  int64_t joined_dimension(InstId l, InstId r) const;
  AttrsId reduce_attrs(InstId i, Dims dims);
  std::pair<InstId, InstId> windowed_pad(InstId i) const;
  std::optional<DotByConstant> dot_by_constant(InstId i) const;
  InstId make_dot(InstId i, size_t side, InstId x, InstId y, ShapeId shape);
  InstId one_value_over_devices(InstId i) const;

  bool spend(InstId i) { return ctx_.spend(m_, rule_->id, {i}); }
  // ReplaceInstructionIfCompatible: refuses, changing nothing, where shapes differ or control dependencies stand.
  bool replace_if_compatible(InstId i, InstId to);
  void replace(InstId i, InstId to);  // relays control dependencies
  // ReplaceWithNewInstruction of i's shape.
  InstId rewrite(InstId i, Opcode op, std::vector<InstId> operands, AttrsId attrs = {});
  void rewrite_to(InstId i, InstId to);  // the same with an instruction made before
  InstId make_op(InstId at, Opcode op, std::vector<InstId> operands, AttrsId attrs = {}, ShapeId shape = {}) {
    return make(m_, m_.parent(at), op, std::move(operands), attrs, shape);
  }

  Opcode op(InstId i) const { return m_.op(i); }
  InstId operand(InstId i, size_t k) const { return m_.operand(i, k); }
  // f on both operand orders of a binary instruction; true where one succeeds.
  template <class F>
  bool either(InstId i, F f) {
    InstId a = operand(i, 0), b = operand(i, 1);
    return f(a, b) || f(b, a);
  }
  ElementType type(InstId i) const { return m_.shape(i).type; }
  bool one_user(InstId i) const { return m_.user_count(i) == 1; }
  bool integral(InstId i) const { return is_integral(type(i)); }
  bool is_constant(InstId i) const { return hlo::is_constant(m_, i); }
  bool is_broadcast_of_scalar_constant(InstId i) const { return hlo::is_broadcast_of_scalar_constant(m_, i); }
  bool same_shape(InstId a, InstId b) const {
    return layout_sensitive_ ? m_.shape_id(a) == m_.shape_id(b) : u_.compatible(m_.shape_id(a), m_.shape_id(b));
  }
  bool non_negative(InstId i, int depth = 0) const;
  double scalar_value(InstId i) const;  // of a one-element constant or a broadcast of one
  bool scalar_int(InstId i, int64_t* v) const;
  void swap_precisions(AttrSet* set) const;  // of two operands

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  const AlgebraicRule* rule_ = nullptr;  // the one that is being tried
  bool layout_sensitive_, reduce_of_transpose_, remove_reduce_precision_;
  bool changed_ = false;
};

}  // namespace hlo
