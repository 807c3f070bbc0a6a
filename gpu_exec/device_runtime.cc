#include "gpu_exec/device_runtime.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "gpu_exec/devices/host.h"
#include "gpu_exec/driver/cuda.h"
#include "gpu_exec/lower/device_program.h"
#include "ir/base/check.h"
#include "ir/base/stack_guard.h"
#include "ir/eval/devices.h"
#include "ir/eval/kernels.h"
#include "ir/leaves.h"
#include "ir/types/element_type.h"

namespace hlo {

void Device::replace(const std::map<std::string, EvalOptions::Replacement>& replaced) {
  if (!replaced.empty()) fail(FailureKind::kUnsupported, "{} takes no kernels of others", name());
}

size_t Device::load_foreign(const std::string&, const ForeignKernel&) {
  fail(FailureKind::kUnsupported, "{} takes no kernels of others", name());
}

std::vector<char> laid_out(const Shape& s, const char* data, bool back) {
  int width = storage_bytes(s.type);
  std::vector<char> out(static_cast<size_t>(device_bytes(s)));
  Dims strides(s.dims.size());
  int64_t step = 1;
  for (int64_t d : s.layout.minor_to_major)
    strides[static_cast<size_t>(d)] = step, step *= s.dims[static_cast<size_t>(d)];
  if (back)
    copy_nd(s.dims, data, strides, out.data(), row_major_strides(s.dims), width);
  else
    copy_nd(s.dims, data, row_major_strides(s.dims), out.data(), strides, width);
  return out;
}

namespace {

using Clock = std::chrono::steady_clock;

// Memory of one run of a program, given back at the end.
class Memory {
 public:
  Memory(Device& device, const DeviceProgram& program) : device_(device) {
    int64_t held = 0;
    const std::vector<int64_t> sizes = program.allocations();
    borrowed_.resize(sizes.size());
    for (size_t k = 0; k < sizes.size(); ++k) {
      borrowed_[k] = program.borrowed(k);
      int64_t bytes = borrowed_[k] ? 0 : sizes[k];
      // Whole words: what is narrower is changed atomically as a part of one.
      char* at = bytes ? device.allocate((bytes + 255) / 256 * 256) : nullptr;
      if (bytes && !at) {
        release();
        fail(FailureKind::kUnsupported, "{} has no memory left for {:.2f} GB more; {:.2f} GB are in use", device.name(),
             static_cast<double>(bytes) / 1e9, static_cast<double>(held) / 1e9);
      }
      bases_.push_back(at), held += bytes;
    }
  }
  ~Memory() { release(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  // What is only read lies where the host has it.
  bool borrowed(const BufferSlice& p) const {
    return p.allocation >= 0 && borrowed_[static_cast<size_t>(p.allocation)];
  }
  void give(const BufferSlice& p, const char* data) {
    bases_[static_cast<size_t>(p.allocation)] = const_cast<char*>(data);
  }
  char* at(const BufferSlice& p) const {
    return p.allocation < 0 ? nullptr : bases_[static_cast<size_t>(p.allocation)] + p.offset;
  }

 private:
  void release() {
    for (size_t k = 0; k < bases_.size(); ++k)
      if (bases_[k] && !borrowed_[k]) device_.release(bases_[k]);
    bases_.clear();
  }
  Device& device_;
  std::vector<char*> bases_;
  std::vector<bool> borrowed_;
};

class Runtime {
 public:
  // `grid`: the other devices of the module, of which this is number `number`.
  Runtime(Device& device, const DeviceProgram& program, const EvalOptions& options, DeviceGrid* grid, int64_t number)
      : device_(device),
        program_(program),
        m_(program.module()),
        u_(m_.u()),
        options_(options),
        evaluator_(m_, options, grid, number),
        memory_(device, program) {
    for (const DeviceProgram::Initial& i : program.initials()) {
      if (i.inst.valid()) {
        kept_.push_back(evaluator_.run_instruction(i.inst, {}));
        store(i.inst, kept_.back());
        if (!device.on_host()) kept_.pop_back();
        continue;
      }
      const Literal& l = u_[i.literal];
      if (memory_.borrowed(i.to)) {
        memory_.give(i.to, l.bytes.data());
        continue;
      }
      device_.write(memory_.at(i.to), l.bytes.data(), static_cast<int64_t>(l.bytes.size()));
    }
  }

  // The result, and the best time of the rounds.
  std::pair<Value, double> run(const std::vector<Value>& arguments, int repeat) {
    double best = 1e300;
    for (int k = 0; k < std::max(repeat, 1); ++k) {
      if (k == 0 || program_.changes_parameters()) give(arguments);
      device_.wait();
      auto start = Clock::now();
      run_sequence(program_.entry(), true);
      device_.wait();
      best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
      tell_times();
    }
    return {value_of(program_.sequence(program_.entry()).root), best};
  }

  // What of it ran as graphs.
  std::string graphs() const {
    size_t replayed = 0;
    for (const auto& [segment, state] : segments_) replayed += state.graph.has_value();
    if (!replayed) return {};
    const DeviceSequence& entry = program_.sequence(program_.entry());
    bool whole = entry.segments.size() == 1 && entry.segments[0].first == 0 &&
                 entry.segments[0].last == entry.steps.size() && segments_.at({program_.entry(), 0}).graph;
    return whole ? ", run as one graph" : fmt::format(", parts of it as {} graphs", replayed);
  }

 private:
  // --- values ---

  void give(const std::vector<Value>& arguments) {
    const auto& params = m_.comp(m_.entry()).params;
    for (size_t k = 0; k < params.size(); ++k) store(params[k], arguments[k]);
  }

  void store(InstId i, const Value& v) {
    size_t leaf = 0;
    // The arrays behind the copies are the operand's.
    const size_t copies = m_.op(i) == Opcode::CopyStart ? u_.leaf_count(m_.shape(i).elements[0]) : 0;
    store(program_.buffers().by_inst.at(i), leaf, m_.shape_id(i), v, {copies, 2 * copies});
  }
  // `kept`: from the first of these leaves to the one before the second memory stays as it is.
  void store(const std::vector<int>& list, size_t& leaf, ShapeId id, const Value& v, std::pair<size_t, size_t> kept) {
    const Shape& s = u_[id];
    if (s.is_tuple()) {
      for (size_t k = 0; k < s.elements.size(); ++k) store(list, leaf, s.elements[k], v.elements[k], kept);
      return;
    }
    const bool stays = leaf >= kept.first && leaf < kept.second;
    int value = list[leaf++];
    if (!s.is_array() || stays) return;
    if (!v.sizes.empty())
      sizes_[value] = v.sizes;
    else if (!sizes_.empty())
      sizes_.erase(value);
    if (memory_.borrowed(program_.slice(value))) return memory_.give(program_.slice(value), v.bytes());
    char* to = memory_.at(program_.slice(value));
    if (has_other_layout(s))
      device_.write(to, laid_out(s, v.bytes(), false).data(), device_bytes(s));
    else
      device_.write(to, v.bytes(), device_bytes(s));
  }

  Value value_of(InstId i) {
    size_t leaf = 0;
    return value_of(program_.buffers().by_inst.at(i), leaf, m_.shape_id(i));
  }
  Value value_of(const std::vector<int>& list, size_t& leaf, ShapeId id) {
    Value out;
    out.shape = id;
    const Shape& s = u_[id];
    if (s.is_tuple()) {
      for (ShapeId e : s.elements) out.elements.push_back(value_of(list, leaf, e));
      return out;
    }
    int value = list[leaf++];
    if (!s.is_array()) {
      out.data = std::make_shared<std::vector<char>>();
      return out;
    }
    if (auto at = sizes_.find(value); at != sizes_.end()) out.sizes = at->second;
    const char* from = memory_.at(program_.slice(value));
    if (device_.on_host()) {
      out.data = std::make_shared<std::vector<char>>(from, from + device_bytes(s));
      return out;
    }
    std::vector<char> bytes(static_cast<size_t>(device_bytes(s)));
    device_.read(bytes.data(), from, device_bytes(s));
    if (has_other_layout(s)) bytes = laid_out(s, bytes.data(), true);
    out.data = std::make_shared<std::vector<char>>(std::move(bytes));
    return out;
  }

  // Of the only leaf.
  int64_t integer(InstId i) {
    char bytes[8] = {};
    const Shape& s = m_.shape(i);
    device_.read(bytes, memory_.at(program_.slice(program_.buffers().by_inst.at(i)[0])), device_bytes(s));
    return load_int(s.type, bytes);
  }

  // --- the run ---

  struct Segment {
    int runs = 0;
    bool refused = false;
    std::optional<size_t> graph;
  };

  // `graphs`: segments may become graphs of their own; not inside of one.
  void run_sequence(size_t number, bool graphs) {
    check_stack("calls of computations are nested");
    const DeviceSequence& s = program_.sequence(number);
    graphs = graphs && !options_.timed && !options_.trace;
    size_t at = 0;
    for (size_t k = 0; k <= s.segments.size(); ++k) {
      size_t until = k < s.segments.size() ? s.segments[k].first : s.steps.size();
      for (; at < until; ++at) run_step(s.steps[at], graphs);
      if (k == s.segments.size()) return;
      if (graphs)
        run_segment(s, s.segments[k], segments_[{number, k}]);
      else
        for (size_t i = at; i < s.segments[k].last; ++i) run_step(s.steps[i], false);
      at = s.segments[k].last;
    }
  }

  // What was launched once without surprises is one graph from then on.
  void run_segment(const DeviceSequence& s, const DeviceSequence::Segment& part, Segment& state) {
    auto steps = [&](bool graphs) {
      for (size_t k = part.first; k < part.last; ++k) run_step(s.steps[k], graphs);
    };
    if (state.runs++ == 0 || state.refused || !sizes_.empty()) return steps(true);
    if (state.graph) return device_.replay_graph(*state.graph);
    if (!device_.begin_graph()) {
      state.refused = true;
      return steps(true);
    }
    steps(false);
    state.graph = device_.end_graph();
    if (state.graph) return device_.replay_graph(*state.graph);
    state.refused = true;
    steps(true);
  }

  void run_step(const DeviceStep& s, bool graphs) {
    std::vector<Value> seen;
    if (options_.trace)
      for (InstId o : m_.operands(s.inst)) seen.push_back(value_of(o));
    size_t begin = options_.timed ? device_.mark() : 0;
    work(s, graphs);
    if (options_.timed && s.kind != DeviceStep::kNoThunk) marks_.push_back({s.inst, begin, device_.mark()});
    if (!options_.trace) return;
    if (InstId known = program_.origin(s.inst); known.valid()) options_.trace(known, seen, value_of(s.inst));
  }

  void move(const std::vector<SliceCopy>& list) {
    for (const SliceCopy& m : list) device_.copy(memory_.at(m.to), memory_.at(m.from), m.bytes);
  }

  void work(const DeviceStep& s, bool graphs) {
    if (!sizes_.empty() && s.kind != DeviceStep::kNoThunk && s.sequences.empty()) {
      // Sizes at run time are the evaluator's.
      bool dynamic = std::any_of(s.reads.begin(), s.reads.end(), [&](int v) { return sizes_.contains(v); });
      if (dynamic && s.kind != DeviceStep::kAsyncDone) return on_host(s.inst);
      for (int v : s.writes) sizes_.erase(v);
    }
    switch (s.kind) {
      case DeviceStep::kNoThunk:
        return;
      case DeviceStep::kHost:
        return on_host(s.inst);
      case DeviceStep::kCall:
        return run_sequence(s.sequences[0], graphs);
      case DeviceStep::kWhile:
        return loop(s, graphs);
      case DeviceStep::kConditional:
        return branch(s, graphs);
      case DeviceStep::kAsyncStart: {
        size_t stream = std::exchange(stream_, s.stream);
        device_.order(stream, s.stream);
        device_.use_stream(s.stream);
        move(s.before);
        // Graphs begin and end on the first stream.
        for (size_t q : s.sequences) run_sequence(q, false);
        stream_ = stream;
        return device_.use_stream(stream);
      }
      case DeviceStep::kAsyncDone:
        return device_.order(s.stream, stream_);
      default:
        break;
    }
    move(s.before);
    auto in = [&](int k) { return k < 0 ? nullptr : memory_.at(s.in[static_cast<size_t>(k)]); };
    switch (s.kind) {
      case DeviceStep::kKernel:
        launch(s);
        break;
      case DeviceStep::kProduct: {
        const Product& p = s.product;
        ProductArrays at{in(p.left),  in(p.right),          in(p.matrix),
                         in(p.bias),  in(p.left_scale),     in(p.right_scale),
                         in(p.scale), memory_.at(s.out[0]), p.form.before ? memory_.at(s.out[1]) : nullptr};
        device_.multiply(p.form, at);
        break;
      }
      case DeviceStep::kConvolution: {
        const ConvolutionForm& f = s.convolution;
        device_.convolve(f, {in(0), in(1), f.side ? in(3) : nullptr, f.bias ? in(2) : nullptr, memory_.at(s.out[0])});
        break;
      }
      case DeviceStep::kOwn: {
        std::vector<char*> from, to;
        for (const BufferSlice& p : s.in) from.push_back(memory_.at(p));
        for (const BufferSlice& p : s.out) to.push_back(memory_.at(p));
        device_.perform(m_, s.inst, from, to);
        break;
      }
      case DeviceStep::kCopy: {
        const std::vector<ShapeId> leaves = leaf_shapes(u_, m_.shape_id(s.inst));
        for (size_t k = 0; k < s.out.size(); ++k)
          if (s.in[k] != s.out[k]) device_.copy(memory_.at(s.out[k]), memory_.at(s.in[k]), device_bytes(u_[leaves[k]]));
        break;
      }
      case DeviceStep::kFill:
        device_.fill(memory_.at(s.out[0]), s.pattern, s.width, device_bytes(m_.shape(s.inst)) / s.width);
        break;
      default:
        HLO_CHECK(false, "{} is no work", m_.inst_name(s.inst));
    }
    if (s.zeroed >= 0) {
      const ShapeId scratch = m_.shape(s.inst).elements[static_cast<size_t>(s.zeroed)];
      device_.fill(memory_.at(s.out[static_cast<size_t>(s.zeroed)]), 0, 1, device_bytes(u_[scratch]));
    }
    move(s.after);
  }

  void on_host(InstId i) {
    std::vector<Value> values;
    for (InstId o : m_.operands(i)) values.push_back(value_of(o));
    Value out = evaluator_.run_instruction(i, std::move(values));
    store(i, out);
  }

  void launch(const DeviceStep& s) {
    const Kernel& kernel = program_.kernel(s.kernel);
    std::vector<char*> inputs;
    for (const BufferSlice& p : s.in) inputs.push_back(memory_.at(p));
    for (size_t p = 0; p < kernel.parts.size(); ++p) {
      const KernelPart& part = kernel.parts[p];
      if (part.count == 0) continue;
      std::vector<char*> pointers = inputs;
      for (size_t r : part.results) pointers.push_back(memory_.at(s.out[r]));
      if (part.launches.empty()) device_.launch(s.kernel, p, pointers, {});
      for (const std::vector<int32_t>& numbers : part.launches) device_.launch(s.kernel, p, pointers, numbers);
    }
  }

  void loop(const DeviceStep& s, bool graphs) {
    InstId condition = program_.sequence(s.sequences[0]).root;
    for (int64_t step = 0; s.trips < 0 || step < s.trips; ++step) {
      if (s.trips < 0) {
        run_sequence(s.sequences[0], graphs);
        if (!integer(condition)) return;
      }
      if (options_.stop && options_.stop())
        fail(FailureKind::kUnsupported, "{}: interrupted in step {}", m_.inst_name(s.inst), step);
      if (step >= options_.max_while_steps)
        fail(FailureKind::kUnsupported, "{}: it does not end within {} steps", m_.inst_name(s.inst),
             options_.max_while_steps);
      run_sequence(s.sequences[1], graphs);
    }
  }

  void branch(const DeviceStep& s, bool graphs) {
    auto branches = static_cast<int64_t>(s.sequences.size());
    InstId index = m_.operand(s.inst, 0);
    int64_t which = integer(index);
    if (m_.shape(index).type == ElementType::Pred)
      which = which ? 0 : 1;
    else if (which < 0 || which >= branches)
      which = branches - 1;
    run_sequence(s.sequences[static_cast<size_t>(which)], graphs);
  }

  // Marks become times of this process's clock.
  void tell_times() {
    if (!options_.timed || marks_.empty()) return;
    size_t end = device_.mark();
    device_.wait();
    int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
    for (const auto& [inst, from, to] : marks_)
      options_.timed(m_, inst, now - device_.nanoseconds(from, end), now - device_.nanoseconds(to, end));
    marks_.clear();
    device_.forget_marks();
  }

  struct Marked {
    InstId inst;
    size_t from, to;
  };
  Device& device_;
  const DeviceProgram& program_;
  const Module& m_;
  Universe& u_;
  const EvalOptions& options_;
  Evaluator evaluator_;
  Memory memory_;
  std::vector<Value> kept_;              // constants that lie where they are
  std::unordered_map<int, Dims> sizes_;  // of dynamic dimensions, by value
  std::map<std::pair<size_t, size_t>, Segment> segments_;
  size_t stream_ = 0;
  std::vector<Marked> marks_;
};

}  // namespace

Execution run_on_device(Device& device, const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                        const EvalOptions& options) {
  auto start = Clock::now();
  device.replace(options.replaced);
  DeviceProgram program(device, m, static_cast<int64_t>(arguments.size()), options);
  for (const std::string& name : device.unused_replacements()) {
    std::vector<std::string> there = device.functions();
    fail(FailureKind::kUsage, "no kernel is called {}; there are {}", name, fmt::join(there, ", "));
  }
  Execution out;
  out.compile_s = std::chrono::duration<double>(Clock::now() - start).count();
  std::string graphs;
  if (arguments.size() == 1) {
    Runtime runtime(device, program, options, nullptr, 0);
    auto [value, seconds] = runtime.run(arguments[0], repeat);
    out.results = {std::move(value)}, out.run_s = seconds, graphs = runtime.graphs();
  } else {
    // Each device is a thread with memory of its own; they take turns on the card, and meet in the evaluator.
    DeviceGrid grid(m.config().replica_count, m.config().num_partitions);
    out.results.resize(arguments.size());
    grid.run([&](int64_t number) {
      EvalOptions own = options;
      if (number && !options.trace_all) own.trace = nullptr;
      if (number) own.timed = nullptr;
      device.enter();
      Runtime runtime(device, program, own, &grid, number);
      auto [value, seconds] = runtime.run(arguments[static_cast<size_t>(number)], repeat);
      out.results[static_cast<size_t>(number)] = std::move(value);
      out.run_s = std::max(out.run_s, seconds);
    });
  }
  out.compiled = program.launched_instructions();
  std::string line = fmt::format("{} instructions as {} kernels on {}", program.launched_instructions(),
                                 program.distinct_kernels(), device.name());
  if (program.library_calls()) line += fmt::format(", {} by {}", program.library_calls(), device.library());
  out.notes.push_back(line + graphs);
  for (const std::string& n : program.left_to_evaluator()) out.notes.push_back(n);
  return out;
}

Execution run_host(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options) {
  return run_on_device(*host_device(options.exact), m, arguments, repeat, options);
}

Execution run_emulated(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                       const EvalOptions& options) {
  return run_on_device(*emulated_device(), m, arguments, repeat, options);
}

Execution run_cuda(const Module& m, const std::vector<std::vector<Value>>& arguments, int repeat,
                   const EvalOptions& options) {
  return run_on_device(*cuda_device(options.tf32), m, arguments, repeat, options);
}

}  // namespace hlo
