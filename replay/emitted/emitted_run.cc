#include "replay/emitted/emitted_run.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>

#include "gpu_exec/device_runtime.h"
#include "gpu_exec/lower/library_calls.h"
#include "ir/base/check.h"
#include "ir/base/checked.h"
#include "ir/base/stack_guard.h"
#include "ir/leaves.h"
#include "replay/emitted/emitted_launch.h"

namespace hlo {
namespace {

constexpr uint8_t kUnwritten = 0xff;  // in memory before anything is written: NaN of floats

std::string in_words(const EmittedThunk& t) {
  return fmt::format("thunk {} ({}{})", t.id, t.kind, t.instruction.empty() ? "" : " of " + t.instruction);
}

class EmittedRun {
 public:
  EmittedRun(Device& device, const Module& m, const EmittedProgram& program, const EmittedRunOptions& options)
      : device_(device), m_(m), u_(m.u()), program_(program), options_(options), evaluator_(m, options.eval) {
    prepare(program.thunks);
    if (refused_.empty()) return;
    std::string list;
    constexpr size_t kNamed = 20;
    for (size_t k = 0; k < std::min(refused_.size(), kNamed); ++k) list += "\n  " + refused_[k];
    if (refused_.size() > kNamed) list += fmt::format("\n  and {} more", refused_.size() - kNamed);
    fail(FailureKind::kUnsupported, "{} thunk(s) have no way here (--evaluate-others: the evaluator's):{}",
         refused_.size(), list);
  }

  Execution run(const std::vector<Value>& arguments) {
    using Clock = std::chrono::steady_clock;
    allocate();
    Execution out;
    out.run_s = 1e300;
    for (int k = 0; k < std::max(options_.repeat, 1); ++k) {
      give(arguments);
      device_.wait();
      const auto start = Clock::now();
      sequence(program_.thunks);
      device_.wait();
      out.run_s = std::min(out.run_s, std::chrono::duration<double>(Clock::now() - start).count());
    }
    out.results.push_back(value_of(m_.comp(m_.entry()).root));
    out.compiled = kernels_;
    out.notes.push_back(
        fmt::format("{} of XLA's kernels and {} library calls and copies on {}", kernels_, calls_, device_.name()));
    for (const std::string& e : evaluated_) out.notes.push_back("evaluated: " + e);
    return out;
  }

 private:
  struct Way {
    enum Kind { kInside, kKernel, kProduct, kConvolution, kCopy, kWhile, kEvaluator } kind = kInside;
    size_t number = 0;
    Product product;
    ConvolutionForm convolution;
  };

  // --- before the run ---

  void prepare(const std::vector<EmittedThunk>& list) {
    check_stack("thunks are nested");
    for (const EmittedThunk& t : list) {
      try {
        ways_[&t] = way_of(t);
      } catch (const Failure& e) {
        const bool alone = t.inst.valid() && t.nested.empty() && !m_.has_side_effect(t.inst);
        if (options_.evaluate_others && alone)
          ways_[&t].kind = Way::kEvaluator, evaluated_.push_back(fmt::format("{}: {}", in_words(t), e.what()));
        else
          refused_.push_back(fmt::format("{}: {}", in_words(t), e.what()));
      }
      for (const auto& [label, inner] : t.nested) prepare(inner);
    }
  }

  Way way_of(const EmittedThunk& t) {
    Way w;
    if (t.is_kernel()) {
      if (!t.problem.empty()) fail(FailureKind::kUnsupported, "{}", t.problem);
      w.kind = Way::kKernel, w.number = load_emitted(device_, program_, t), ++kernels_;
      return w;
    }
    if (t.kind == "kSequential" || t.kind == "kCommandBuffer") return w;
    if (!t.inst.valid()) fail(FailureKind::kUnsupported, "the dump does not say whose it is");
    if (t.kind == "kWhile") {
      if (m_.op(t.inst) != Opcode::While || t.nested.size() != 2 || t.nested[0].first != "condition" ||
          t.nested[1].first != "body")
        fail(FailureKind::kUnsupported, "a loop without its condition and body");
      w.kind = Way::kWhile;
      return w;
    }
    ++calls_;
    if (t.kind == "kGemm" || t.kind == "kCublasLtMatmul") {
      std::optional<Product> p = product_of(m_, t.inst);
      if (!p || !device_.multiplies(p->form)) fail(FailureKind::kUnsupported, "no library here makes this product");
      w.kind = Way::kProduct, w.product = *p;
      return w;
    }
    if (t.kind == "kConvolution") {
      std::optional<ConvolutionForm> c = convolution_of(m_, t.inst);
      if (!c || !device_.convolves(*c)) fail(FailureKind::kUnsupported, "no library here makes this convolution");
      w.kind = Way::kConvolution, w.convolution = *c;
      return w;
    }
    if (t.kind == "kCopy" && m_.op(t.inst) == Opcode::Copy &&
        u_.shape_text(m_.shape_id(t.inst)) == u_.shape_text(m_.shape_id(m_.operand(t.inst, 0)))) {
      w.kind = Way::kCopy;
      return w;
    }
    --calls_;
    fail(FailureKind::kUnsupported, "there is no way for it here");
  }

  // All of XLA's allocations but those of threads, and what stands in them before the run.
  void allocate() {
    Checked sum(0);
    const std::vector<BufferFile::Part>& parts = program_.slices->file().allocations;
    for (const BufferFile::Part& p : parts)
      if (!p.thread_local_) sum += Checked(p.size) + 2 * GuardedMemory::kZone;
    if (sum.capped() > device_.free_bytes())
      fail(FailureKind::kUnsupported, "XLA's allocations take {} bytes, {} has {} free", sum.capped(), device_.name(),
           device_.free_bytes());
    by_part_.resize(parts.size(), nullptr);
    for (size_t k = 0; k < parts.size(); ++k) {
      if (parts[k].thread_local_) continue;
      memory_.emplace_back(device_, parts[k].size, kUnwritten, fmt::format("allocation {}", parts[k].number));
      by_part_[k] = &memory_.back();
    }
    for (CompId c : m_.nonfusion_computations())
      for (InstId i : m_.live_order(c))
        if (m_.op(i) == Opcode::Constant && u_[m_.shape_id(i)].is_array()) try {
            if (!program_.slices->file().allocations[program_.slices->of(i, {}).allocation].thread_local_)
              store(i, value_of_literal(u_, m_.literal_id(i)));
          } catch (const Failure&) {
            // One that has no memory is in the kernels' code; whoever reads it from memory is refused by name.
          }
  }

  // --- values ---

  char* at(const XlaSlice& s) const {
    const GuardedMemory* memory = by_part_[s.allocation];
    if (!memory) fail(FailureKind::kUnsupported, "an array in memory of threads");
    return memory->at(s.offset);
  }
  void give(const std::vector<Value>& arguments) {
    const std::vector<InstId>& params = m_.comp(m_.entry()).params;
    for (size_t k = 0; k < params.size(); ++k) store(params[k], arguments[k]);
  }
  void store(InstId i, const Value& v) {
    std::vector<Value> leaves;
    flatten(u_, v, &leaves);
    size_t k = 0;
    each_leaf(u_, m_.shape_id(i), [&](const Dims& index, ShapeId leaf) {
      const Value& one = leaves[k++];
      if (!u_[leaf].is_array()) return;
      const std::vector<char> bytes = laid_out(u_[leaf], one.bytes(), false);
      device_.write(at(program_.slices->of(i, index)), bytes.data(), static_cast<int64_t>(bytes.size()));
    });
  }
  Value value_of(InstId i) const { return value_of(i, m_.shape_id(i), {}); }
  Value value_of(InstId i, ShapeId shape, Dims index) const {
    Value v;
    v.shape = shape;
    const Shape& s = u_[shape];
    if (s.is_tuple()) {
      index.push_back(0);
      for (ShapeId e : s.elements) {
        v.elements.push_back(value_of(i, e, index));
        ++index.back();
      }
      return v;
    }
    std::vector<char> bytes(s.is_array() ? array_bytes(s).size("an array") : 0);
    if (!bytes.empty()) {
      device_.read(bytes.data(), at(program_.slices->of(i, index)), static_cast<int64_t>(bytes.size()));
      bytes = laid_out(s, bytes.data(), true);
    }
    v.data = std::make_shared<std::vector<char>>(std::move(bytes));
    return v;
  }

  // --- the run ---

  void sequence(const std::vector<EmittedThunk>& list) {
    for (const EmittedThunk& t : list) {
      if (options_.eval.stop && options_.eval.stop()) fail(FailureKind::kUnsupported, "interrupted at {}", in_words(t));
      work(t, ways_.at(&t));
    }
  }

  void work(const EmittedThunk& t, const Way& w) {
    auto operand = [&](int k) -> char* {
      return k < 0 ? nullptr : at(program_.slices->of(m_.operand(t.inst, static_cast<size_t>(k)), {}));
    };
    switch (w.kind) {
      case Way::kInside:
        for (const auto& [label, inner] : t.nested) sequence(inner);
        return;
      case Way::kWhile:
        return loop(t);
      case Way::kKernel:
        launch_emitted(device_, w.number, t, [&](const XlaSlice& s) { return at(s); });
        break;
      case Way::kProduct: {
        const Product& p = w.product;
        const std::vector<char*> out = results(t.inst);
        device_.multiply(p.form,
                         {operand(p.left), operand(p.right), operand(p.matrix), operand(p.bias), operand(p.left_scale),
                          operand(p.right_scale), operand(p.scale), out[0], p.form.before ? out[1] : nullptr});
        break;
      }
      case Way::kConvolution: {
        const ConvolutionForm& f = w.convolution;
        device_.convolve(f, {operand(0), operand(1), f.side ? operand(3) : nullptr, f.bias ? operand(2) : nullptr,
                             results(t.inst)[0]});
        break;
      }
      case Way::kCopy:
        device_.copy(results(t.inst)[0], operand(0), array_bytes(m_.shape(t.inst)).value("an array"));
        break;
      case Way::kEvaluator: {
        std::vector<Value> values;
        for (InstId o : m_.operands(t.inst)) values.push_back(value_of(o));
        store(t.inst, evaluator_.run_instruction(t.inst, std::move(values)));
        break;
      }
    }
    look_around(t);
  }

  std::vector<char*> results(InstId i) const {
    std::vector<char*> out;
    each_leaf(u_, m_.shape_id(i), [&](const Dims& index, ShapeId leaf) {
      if (u_[leaf].is_array()) out.push_back(at(program_.slices->of(i, index)));
    });
    return out;
  }

  void loop(const EmittedThunk& t) {
    const InstId condition = m_.comp(m_.attrs(t.inst).comp(Attr::condition)).root;
    for (int64_t step = 0;; ++step) {
      sequence(t.nested[0].second);
      const Value again = value_of(condition);
      if (!again.data->at(0)) return;
      if (step >= options_.eval.max_while_steps)
        fail(FailureKind::kUnsupported, "{}: it does not end within {} steps", t.instruction,
             options_.eval.max_while_steps);
      sequence(t.nested[1].second);
    }
  }

  // Whose thunk wrote where nothing lies? Asked behind each one, so that it has a name.
  void look_around(const EmittedThunk& t) {
    for (const GuardedMemory& memory : memory_)
      if (std::string damage = memory.damage(); !damage.empty())
        fail(FailureKind::kUnsupported, "{}{}: {}", in_words(t), t.is_kernel() ? ", kernel " + t.kernel : "", damage);
  }

  Device& device_;
  const Module& m_;
  Universe& u_;
  const EmittedProgram& program_;
  const EmittedRunOptions& options_;
  Evaluator evaluator_;
  std::unordered_map<const EmittedThunk*, Way> ways_;
  std::vector<std::string> refused_, evaluated_;
  size_t kernels_ = 0, calls_ = 0;
  std::deque<GuardedMemory> memory_;
  std::vector<const GuardedMemory*> by_part_;  // null: a thread's
};

}  // namespace

Execution run_emitted(Device& device, const Module& m, const EmittedProgram& program,
                      const std::vector<Value>& arguments, const EmittedRunOptions& options) {
  return EmittedRun(device, m, program, options).run(arguments);
}

}  // namespace hlo
