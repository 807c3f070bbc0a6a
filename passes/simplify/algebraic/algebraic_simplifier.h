// Inside of algsimp (xla/hlo/transforms/simplifiers/algebraic_simplifier.cc and the GPU's subclass). Rules of one
// opcode are tried in XLA's order; at most one fires on an instruction in one walk.
#pragma once
#include <algorithm>

#include "passes/rewrite.h"

namespace hlo {

inline bool ascending(const Dims& d) { return std::is_sorted(d.begin(), d.end()); }

class AlgebraicSimplifier {
 public:
  AlgebraicSimplifier(Module& m, PassContext& ctx)
      : m_(m),
        u_(m.u()),
        ctx_(ctx),
        ls_(ctx.flag("layout_sensitive")),
        reduce_of_transpose_(ctx.flag("unconditional_reduce_of_transpose")),
        remove_reduce_precision_(ctx.flag("remove_no_op_reduce_precision")) {}
  bool run();

 private:
  void visit(InstId i);
  // Elementwise (algebraic_elementwise.cc).
  void add(InstId i);
  void add_of_scatters(InstId i);
  void subtract(InstId i);
  void multiply(InstId i);
  void divide(InstId i);
  void on_magnitude(InstId i, Opcode operation, int64_t k);
  void remainder(InstId i);
  void logic(InstId i);
  void compare(InstId i);
  void minmax(InstId i);
  void power(InstId i);
  void unary(InstId i);
  void select(InstId i);
  void convert(InstId i);
  void bitcast_convert(InstId i);
  // Movement (algebraic_movement.cc).
  void constant(InstId i);
  void iota(InstId i);
  void broadcast(InstId i);
  bool sink_broadcast(InstId i);
  void reshape(InstId i);
  void transpose(InstId i);
  bool remove_chain(InstId i);
  bool transpose_of_reshape(InstId i);
  bool split_iota(InstId i);
  bool transpose_into_scatter(InstId i);
  bool last_of_window(InstId i, const std::vector<SliceDim>& s);
  bool dynamic_slice_of_movement(InstId i);
  bool dynamic_slice_of_iota(InstId i);
  bool clamp_of_id(InstId i);
  bool pad_of_broadcast(InstId i, const std::vector<PaddingDim>& pads);
  void slice(InstId i);
  void dynamic_slice(InstId i);
  bool zero_whole_indices(InstId i, size_t first, const Dims& taken, const Dims& all);
  void dynamic_update_slice(InstId i);
  void pad(InstId i);
  void concatenate(InstId i);
  void reverse(InstId i);
  void copy(InstId i);
  void bitcast(InstId i);
  // Contractions, reductions and control (algebraic_structure.cc).
  void reduce(InstId i);
  void reduce_window(InstId i);
  bool reduce_of_several(InstId i);
  bool reduce_of_single_elements(InstId i);
  bool place_in_constant(InstId i);
  bool value_beside_place(InstId i, Opcode kind);
  bool reduce_of_scalar(InstId i, Opcode kind);
  bool window_of_constant(InstId i);
  bool window_sees_one(InstId i, InstId pad, InstId cast);
  void dot(InstId i);
  bool dot_of_movement(InstId i);
  bool dot_of_transposes(InstId i);
  // Convolutions (algebraic_convolutions.cc).
  void convolution(InstId i);
  bool padding_of_filter(InstId i);
  bool padding_of_input(InstId i);
  bool swapped_convolution(InstId i);
  bool convolution_as_dot(InstId i);
  bool convolution_as_product(InstId i);
  bool scaled_convolution(InstId i);
  void collective(InstId i);
  void custom_call(InstId i);
  void gather(InstId i);
  bool gather_of_pad(InstId i);
  void scatter(InstId i);
  void sort(InstId i);
  void map(InstId i);
  void conditional(InstId i);
  void opt_barrier(InstId i);
  void get_tuple_element(InstId i);

  // --- helpers ---
  bool go(std::string_view rule, InstId i) { return ctx_.spend(m_, rule, {i}); }
  Opcode op(InstId i) const { return m_.op(i); }
  InstId operand(InstId i, size_t k) const { return m_.operand(i, k); }
  ElementType type(InstId i) const { return m_.shape(i).type; }
  bool one_user(InstId i) const { return m_.user_count(i) == 1; }
  bool integral(InstId i) const { return is_integral(type(i)); }
  bool k(InstId i) const { return is_constant(m_, i); }
  bool bck(InstId i) const { return is_broadcast_of_scalar_constant(m_, i); }
  bool same_shape(InstId a, InstId b) const {
    return ls_ ? m_.shape_id(a) == m_.shape_id(b) : u_.compatible(m_.shape_id(a), m_.shape_id(b));
  }
  // ReplaceInstructionIfCompatible: refuses, changing nothing, where shapes differ or control dependencies stand.
  bool ric(InstId i, InstId to, std::string_view rule);
  void ri(InstId i, InstId to);  // relays control dependencies
  InstId rw(InstId i, Opcode op, std::vector<InstId> operands,
            AttrsId attrs = {});    // ReplaceWithNewInstruction of i's shape
  void rw_to(InstId i, InstId to);  // the same with an instruction made before
  InstId make_op(InstId at, Opcode op, std::vector<InstId> operands, AttrsId attrs = {}, ShapeId shape = {}) {
    return make(m_, m_.parent(at), op, std::move(operands), attrs, shape);
  }
  bool non_negative(InstId i, int depth = 0) const;
  bool reshape_bitcast(InstId from, ShapeId to) const { return ls_ && reshape_is_bitcast(u_, m_.shape_id(from), to); }
  double scalar_value(InstId i) const;  // of a one-element constant or a broadcast of one
  bool scalar_int(InstId i, int64_t* v) const;
  CompId scalar_add(ElementType t);
  void swap_precisions(AttrSet* set) const;  // of two operands

  Module& m_;
  Universe& u_;
  PassContext& ctx_;
  bool ls_, reduce_of_transpose_, remove_reduce_precision_;
  bool changed_ = false;
  std::map<ElementType, CompId> scalar_add_;
};

}  // namespace hlo
