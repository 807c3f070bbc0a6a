#include "replay/emitted/emitted_judge.h"

#include <algorithm>
#include <list>
#include <set>

#include "gpu_exec/device_runtime.h"
#include "ir/base/check.h"
#include "ir/leaves.h"
#include "ir/verify/verifier.h"
#include "replay/emitted/emitted_launch.h"
#include "replay/hunt/extract.h"
#include "replay/judge/arguments/fit.h"

namespace hlo {
namespace {

// Every thunk that launches kernels of one instruction, in order.
struct KernelsOfInstruction {
  std::vector<const EmittedThunk*> thunks;
  size_t times = 1;
};

// What two launches must share to be one case: code, launch, and which arrays lie where in respect of one another.
std::string case_of(const Module& m, const std::vector<const EmittedThunk*>& thunks) {
  std::string key;
  for (const EmittedThunk* t : thunks) {
    key += fmt::format("{}|{}|{}|", t->kernel, t->problem, t->kind);
    for (const EmittedArgument& a : t->arguments) {
      size_t same = 0;
      while (!(t->arguments[same].slice == a.slice)) ++same;
      key += fmt::format("{} {}{},", m.u().shape_text(a.shape), a.operand < 0 ? "out" : "in", same);
    }
  }
  return key;
}

std::vector<KernelsOfInstruction> cases_of(const Module& m, const std::vector<EmittedThunk>& thunks) {
  std::vector<KernelsOfInstruction> all, out;
  std::map<std::string, size_t> by_instruction;
  auto walk = [&](auto&& self, const std::vector<EmittedThunk>& list) -> void {
    for (const EmittedThunk& t : list) {
      const std::string key = t.instruction.empty() ? fmt::format("#{}", t.id) : t.instruction;
      if (auto at = by_instruction.find(key); at != by_instruction.end()) {
        all[at->second].thunks.push_back(&t);
      } else if (t.nested.empty()) {
        by_instruction.emplace(key, all.size());
        all.push_back({{&t}, 1});
      }
      for (const auto& [label, inner] : t.nested) self(self, inner);
    }
  };
  walk(walk, thunks);
  std::map<std::string, size_t> known;
  for (KernelsOfInstruction& k : all) {
    if (std::none_of(k.thunks.begin(), k.thunks.end(), [](const EmittedThunk* t) { return t->is_kernel(); })) continue;
    auto [at, fresh] = known.emplace(case_of(m, k.thunks), out.size());
    if (fresh)
      out.push_back(std::move(k));
    else
      ++out[at->second].times;
  }
  return out;
}

class Alone {
 public:
  Alone(const Module& m, const EmittedProgram& program, const EmittedJudgeOptions& options,
        const std::vector<const EmittedThunk*>& thunks)
      : m_(m), u_(m.u()), program_(program), options_(options), thunks_(thunks), inst_(thunks[0]->inst) {}

  void judge(std::unique_ptr<Device>& device, JudgedKernel& out) {
    for (const EmittedThunk* t : thunks_) {
      if (!t->is_kernel())
        fail(FailureKind::kUnsupported, "{} has a thunk {} besides, of which the dump records no more", t->instruction,
             t->kind);
      if (!t->problem.empty()) fail(FailureKind::kUnsupported, "{}", t->problem);
    }
    check_apart();
    for (const EmittedThunk* t : thunks_) numbers_.push_back(load_emitted(*device, program_, *t));
    draw();
    // Twice: what depends on bytes that are not the kernel's, or leaves some of its own unwritten, gives two results.
    for (uint8_t pattern : {uint8_t{0xff}, uint8_t{0x3c}}) {
      Value got;
      try {
        got = launch(*device, pattern, out);
      } catch (const Failure& e) {
        out.verdict = KernelVerdict::kFaults, out.why = e.what();
        device.reset();  // nothing runs on that one any more
        device = options_.device();
        return;
      }
      if (!out.why.empty()) return;
      compare(got, pattern, out);
      if (!out.why.empty()) return;
    }
    out.verdict = KernelVerdict::kEqual;
  }

 private:
  static bool overlap(const XlaSlice& a, const XlaSlice& b) {
    return a.allocation == b.allocation && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
  }
  void check_apart() {
    for (const EmittedThunk* t : thunks_)
      for (const EmittedArgument& a : t->arguments)
        for (const EmittedArgument& b : t->arguments)
          if (!(a.slice == b.slice) && overlap(a.slice, b.slice))
            fail(FailureKind::kUnsupported, "XLA's buffer assignment gives {} and {} bytes in common", name_of(a),
                 name_of(b));
  }
  std::string name_of(const EmittedArgument& a) const {
    if (a.operand >= 0)
      return fmt::format("operand {} ({})", a.operand, m_.inst_name(m_.operand(inst_, static_cast<size_t>(a.operand))));
    return a.index.empty() ? "its result" : fmt::format("its result {{{}}}", fmt::join(a.index, ","));
  }

  // The instruction as a module of its own, inputs for it, and what the evaluator makes of them.
  void draw() {
    const auto operands = m_.operands(inst_);
    part_ = extracted(m_, {inst_}, {operands.begin(), operands.end()});
    if (std::vector<VerifyError> errors = verify_module(*part_, 1); !errors.empty())
      fail(FailureKind::kUnsupported, "it does not make a module by itself: {}", errors[0].message);
    InputOptions inputs = options_.inputs;
    inputs.file.clear(), inputs.snapshot.clear(), inputs.place.clear(), inputs.fit = true;
    session_ = std::make_unique<Session>(*part_, inputs);
    std::vector<Value> arguments = session_->arguments();
    const std::vector<InstId>& params = part_->comp(part_->entry()).params;
    std::map<std::string, size_t> number;
    for (size_t k = 0; k < params.size(); ++k) number.emplace(part_->inst_name(params[k]), k);
    values_.resize(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) {
      auto at = number.find(std::string(m_.inst_name(operands[k])));
      if (at == number.end()) continue;  // nobody reads it
      Value& v = arguments[at->second];
      if (m_.op(operands[k]) == Opcode::Constant && !m_.literal(operands[k]).elided)
        v = value_of_literal(u_, m_.literal_id(operands[k]));
      // Operands that lie in the same bytes hold the same.
      for (size_t j = 0; j < k; ++j)
        if (same_place(j, k) && values_[j].data) {
          const std::vector<char> bytes = laid_out(u_[values_[j].shape], values_[j].bytes(), false);
          v.data = std::make_shared<std::vector<char>>(laid_out(u_[v.shape], bytes.data(), true));
          break;
        }
      values_[k] = v;
    }
    session_->set_arguments(std::move(arguments));
    expected_ = session_->run(*part_, *find_executor("evaluator"), options_.eval, 1, false);
  }
  bool same_place(size_t j, size_t k) const {
    const XlaSlice* places[2] = {};
    for (const EmittedArgument& a : thunks_[0]->arguments) {
      if (a.operand == static_cast<int>(j)) places[0] = &a.slice;
      if (a.operand == static_cast<int>(k)) places[1] = &a.slice;
    }
    return places[0] && places[1] && *places[0] == *places[1];
  }

  // What the result's memory holds behind the launch. A write beside an array, or into one that is only read, is
  // told in `out`.
  Value launch(Device& device, uint8_t pattern, JudgedKernel& out) {
    struct Place {
      const EmittedArgument* argument;
      GuardedMemory memory;
      bool written = false;  // the kernel's to write
    };
    std::list<Place> places;
    auto place = [&](const XlaSlice& s) {
      return std::find_if(places.begin(), places.end(), [&](const Place& p) { return p.argument->slice == s; });
    };
    for (const EmittedThunk* t : thunks_)
      for (const EmittedArgument& a : t->arguments) {
        auto at = place(a.slice);
        if (at == places.end())
          at = places.insert(at, {&a, GuardedMemory(device, a.slice.size, pattern, name_of(a)), false});
        at->written |= a.operand < 0;
        if (a.operand < 0 || !values_[static_cast<size_t>(a.operand)].data) continue;
        const std::vector<char> bytes = laid_out(u_[a.shape], values_[static_cast<size_t>(a.operand)].bytes(), false);
        device.write(at->memory.at(), bytes.data(), static_cast<int64_t>(bytes.size()));
      }
    for (size_t k = 0; k < thunks_.size(); ++k)
      launch_emitted(device, numbers_[k], *thunks_[k], [&](const XlaSlice& s) { return place(s)->memory.at(); });
    device.wait();
    for (const Place& p : places) {
      std::string damage = p.memory.damage();
      if (damage.empty() && !p.written) damage = changed(device, *p.argument, p.memory);
      if (damage.empty()) continue;
      out.verdict = KernelVerdict::kOutside;
      out.why += (out.why.empty() ? "" : "; ") + damage;
    }
    if (!out.why.empty()) return {};
    return read_result(m_.shape_id(inst_), Dims(), [&](const Dims& index, std::vector<char>& bytes) {
      for (const EmittedThunk* t : thunks_)
        for (const EmittedArgument& a : t->arguments)
          if (a.operand < 0 && a.index == index)
            return device.read(bytes.data(), place(a.slice)->memory.at(), static_cast<int64_t>(bytes.size()));
      // Passed once for an operand of the same bytes.
      const XlaSlice s = program_.slices->of(inst_, index);
      device.read(bytes.data(), place(s)->memory.at(), static_cast<int64_t>(bytes.size()));
    });
  }
  std::string changed(Device& device, const EmittedArgument& a, const GuardedMemory& memory) {
    const Value& v = values_[static_cast<size_t>(a.operand)];
    if (!v.data || shared_with_result(a.slice)) return {};
    const std::vector<char> before = laid_out(u_[a.shape], v.bytes(), false);
    std::vector<char> now(before.size());
    device.read(now.data(), memory.at(), static_cast<int64_t>(now.size()));
    const auto [first, second] = std::mismatch(now.begin(), now.end(), before.begin());
    if (first == now.end()) return {};
    return fmt::format("writes into {}, which it only reads, first at byte {}", memory.name(), first - now.begin());
  }
  bool shared_with_result(const XlaSlice& s) const {
    bool shared = false;
    each_leaf(u_, m_.shape_id(inst_), [&](const Dims& index, ShapeId leaf) {
      shared |= u_[leaf].is_array() && program_.slices->of(inst_, index) == s;
    });
    return shared;
  }
  template <class Read>
  Value read_result(ShapeId shape, Dims index, const Read& read) {
    Value v;
    v.shape = shape;
    if (u_[shape].is_tuple()) {
      for (size_t k = 0; k < u_[shape].elements.size(); ++k) {
        index.push_back(static_cast<int64_t>(k));
        v.elements.push_back(read_result(u_[shape].elements[k], index, read));
        index.pop_back();
      }
      return v;
    }
    std::vector<char> bytes(u_[shape].is_array() ? array_bytes(u_[shape]).size("an array") : 0);
    if (!bytes.empty()) read(index, bytes), bytes = laid_out(u_[shape], bytes.data(), true);
    v.data = std::make_shared<std::vector<char>>(std::move(bytes));
    return v;
  }

  void compare(const Value& got, uint8_t pattern, JudgedKernel& out) {
    Comparison c = compare_results(u_, got, expected_, options_.tolerance);
    if (!c.equal) {
      if (high_.shape.valid() == false)
        high_ = session_->run(*part_, *find_executor("evaluator"), options_.eval, 1, true);
      c = compare_results(u_, got, expected_, options_.tolerance, &high_);
    }
    out.outputs = c.outputs;
    if (c.equal) return;
    const OutputComparison& o = *c.first_difference();
    out.verdict = KernelVerdict::kDifferent;
    out.why = fmt::format("{} {}: {}", c.outputs.size() > 1 ? o.name : "its result", o.shape, o.why);
    if (o.worst >= 0)
      out.why += fmt::format("; at [{}]: {}, the evaluator {}; {} of {} elements", fmt::join(o.index, ","), o.value_a,
                             o.value_b, o.different, o.elements);
    if (pattern != 0xff)
      out.why +=
          "; with other bytes around and in its result's memory it was equal: it reads what is not its own, or "
          "leaves elements unwritten";
  }

  const Module& m_;
  Universe& u_;
  const EmittedProgram& program_;
  const EmittedJudgeOptions& options_;
  const std::vector<const EmittedThunk*>& thunks_;
  InstId inst_;
  std::vector<size_t> numbers_;
  std::unique_ptr<Module> part_;
  std::unique_ptr<Session> session_;
  std::vector<Value> values_;  // of the operands
  Value expected_, high_;
};

}  // namespace

std::string_view kernel_verdict_name(KernelVerdict v) {
  switch (v) {
    case KernelVerdict::kEqual:
      return "equal";
    case KernelVerdict::kDifferent:
      return "different";
    case KernelVerdict::kOutside:
      return "wrote_outside";
    case KernelVerdict::kFaults:
      return "faults";
    default:
      return "not_run";
  }
}

std::vector<JudgedKernel> judge_emitted(const Module& m, const EmittedProgram& program,
                                        const EmittedJudgeOptions& options) {
  std::vector<JudgedKernel> out;
  std::vector<KernelsOfInstruction> cases = cases_of(m, program.thunks);
  std::erase_if(cases, [&](const KernelsOfInstruction& k) {
    return k.thunks[0]->kernel.find(options.only) == std::string::npos &&
           k.thunks[0]->instruction.find(options.only) == std::string::npos;
  });
  std::unique_ptr<Device> device = options.device();
  for (const KernelsOfInstruction& k : cases) {
    const EmittedThunk& first = *k.thunks[0];
    JudgedKernel judged;
    judged.instruction = first.instruction, judged.times = k.times, judged.thunk = first.id;
    for (const EmittedThunk* t : k.thunks)
      if (t->is_kernel() && judged.kernel.empty()) judged.kernel = t->kernel, judged.file = t->file;
    if (options.progress) options.progress(out.size(), cases.size(), judged.kernel);
    if (options.eval.stop && options.eval.stop()) fail(FailureKind::kUsage, "interrupted");
    try {
      Alone(m, program, options, k.thunks).judge(device, judged);
    } catch (const Failure& e) {
      if (options.eval.stop && options.eval.stop()) throw;
      judged.verdict = KernelVerdict::kNotRun, judged.why = e.what();
    }
    out.push_back(std::move(judged));
    if (options.told) options.told(out.back());
  }
  return out;
}

}  // namespace hlo
