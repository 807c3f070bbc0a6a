#include "replay/replayer/replayer.h"

#include <algorithm>
#include <chrono>

#include "dump/graph.h"
#include "dump/json.h"
#include "dump/proto_writer.h"
#include "gpu_exec/emit/gpu_code.h"
#include "gpu_exec/executor.h"
#include "ir/print/print.h"
#include "ir/program/thunk.h"
#include "ir/target/data_sheet.h"
#include "passes/backend/backend.h"
#include "replay/os/interrupt.h"
#include "replay/os/process/ptxas.h"
#include "replay/record/recording/store.h"
#include "replay/record/start/start_stage.h"
#include "viewer/drawing.h"

namespace hlo {
namespace {

// What of dynamic sizes the passes left as it is; empty: nothing.
std::string sizes_left(const Module& m) {
  for (CompId c : m.computations())
    for (InstId i : m.live_order(c)) {
      if (m.op(i) != Opcode::SetDimensionSize && !(m.shape(i).is_array() && m.shape(i).is_dynamic())) continue;
      return fmt::format(
          "{} ({}) keeps a size that is known at run time only: dynamic_padder did not make values of it, and no pass "
          "after it looks into it",
          m.inst_name(i), op_text(m.op(i)));
    }
  return {};
}

}  // namespace

bool known_format(const std::string& f) {
  static const std::set<std::string> kAll = {"text",    "dot",    "svg", "png", "html", "json", "proto",
                                             "buffers", "thunks", "ll",  "ptx", "sass", "page"};
  return kAll.contains(f);
}

std::string already_optimised(const Module& m) {
  if (m.config().is_scheduled) return "it is scheduled (is_scheduled=true)";
  for (CompId c : m.computations())
    for (InstId i : m.comp(c).order) {
      if (!m.alive(i)) continue;
      if (m.op(i) == Opcode::Fusion) return fmt::format("it has fusions ({})", m.inst_name(i));
      if (m.op(i) == Opcode::CustomCall) {
        std::string_view target = m.u().text(m.attrs(i).text(Attr::custom_call_target));
        if (target.starts_with("__cublas") || target.starts_with("__cudnn") || target.starts_with("__triton"))
          return fmt::format("it has library calls ({})", target);
      }
    }
  return {};
}

std::string replayed_pipeline(const ReplayOptions& options) {
  return options.lower.empty() || options.pipeline != "xla-gpu" ? options.pipeline : "xla-gpu-unfused";
}

namespace {

// A module on its way through a pipeline: its stages, and what is written of them.
class Replayer {
 public:
  Replayer(Module& m, const ReplayOptions& options, OutputFolder& out)
      : m_(m),
        options_(options),
        out_(out),
        pipeline_(replayed_pipeline(options)),
        steps_(&pipeline_or_fail(pipeline_)),
        drawers_(out) {
    r_.folder = out.path(), r_.module_name = m.name(), r_.source = "hlo-replay", r_.pipeline = pipeline_;
    if (std::string why = not_partitioned(m); !why.empty()) r_.problems.push_back(std::move(why));
    prefix_ = fmt::format("module_{:04}.{}", r_.module_number, name_in_files(m.name()));
    lineage_ = std::make_shared<Lineage>(m.universe());
    draws_ = wants("dot") || wants("svg") || wants("png") || wants("html");
    if (wants("svg") || wants("png") || wants("html")) require_graphviz();
    all_ = count_passes(*steps_);
  }

  Recording run() {
    StageRow input;
    input.kind = StageRow::kInput;
    input.before = input.after = m_.instruction_count();
    write_stage(m_, input, prefix_ + ".before_optimizations");
    r_.rows.push_back(input);
    PipelineOptions passes = options_.passes;
    passes.stop = [&] { return stopped_ || interrupted(); };
    passes.observe = [&](const Module&, const PassEvent& e) { record(m_, e); };
    passes.recording = out_.path();
    run_pipeline(m_, *steps_, passes);
    if (interrupted()) fail(FailureKind::kIo, "interrupted; nothing was written");
    if (!options_.stop_after.empty() && !stopped_)
      fail(FailureKind::kUsage, "no stage '{}' came up in this run", options_.stop_after);
    if (!stopped_) finish(passes.verify);
    if (std::string left = sizes_left(m_); !left.empty()) r_.problems.push_back(std::move(left));
    if (options_.progress) options_.progress(std::max(all_, done_), std::max(all_, done_), "drawing");
    drawers_.wait();
    if (!wants("text"))
      for (StageRow& row : r_.rows) row.file.clear();
    out_.write("recording.json", recording_json(r_));
    out_.write(kStoreFile, store_bytes(r_, *lineage_));
    r_.keep(std::move(lineage_));
    return std::move(r_);
  }

 private:
  bool wants(const char* format) const { return options_.formats.contains(format); }
  // A file beside the stages; `end` comes behind the module's name.
  void put(const std::string& end, const std::string& text) {
    r_.other_files.push_back(prefix_ + end);
    out_.write(r_.other_files.back(), text);
  }

  // Writes the module in every format wanted.
  void write_files(Module& m, StageRow& row, const std::string& base, StageDrawing& drawing) {
    row.file = base + ".txt";
    if (wants("text")) out_.write(row.file, lossless_text(m));
    if (wants("json")) out_.write(base + ".json", module_json(m));
    if (wants("proto")) out_.write(base + ".hlo.pb", module_to_proto_bytes(m, ".pb"));
    if (!draws_) return;
    drawing.options.title = fmt::format("{}\n{}", m.name(), row.name());
    drawing.row = row, drawing.base = base, drawing.formats = options_.formats;
    if (wants("text"))
      drawing.command = fmt::format("hlo-replay convert {} stage.svg", shell_word(out_.path() + "/" + row.file));
    drawers_.draw(m, drawing);
  }

  // Freezes the module, too. The row's counts come from the frozen stages.
  void write_stage(Module& m, StageRow& row, const std::string& base) {
    StageDrawing drawing;
    size_t stage = lineage_->add(m);
    row.stage = static_cast<int>(stage);
    StageDiff d = lineage_->changes(stage);
    row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
    if (draws_) {
      for (InstId i : d.added) drawing.options.added.insert(m[i].name);
      for (InstId i : d.modified) drawing.options.modified.insert(m[i].name);
      for (InstId i : d.removed) drawing.removed.emplace_back(m.inst_name(i));
    }
    write_files(m, row, base, drawing);
  }

  void record(Module& m, const PassEvent& e) {
    StageRow row = row_of(e);
    if (e.kind == PassEvent::kPass) {
      ++done_;
      if (options_.progress) options_.progress(done_, std::max(all_, done_), e.pass);
    }
    const bool ran = row.kind == StageRow::kPipelineStart || (row.implemented && !row.disabled);
    auto base = [&] {
      return fmt::format("{}.{:04}.{}.after_{}{}{}", prefix_, number_, e.pipeline, e.pass,
                         e.next.empty() ? "" : ".before_", e.next);
    };
    if (row.changed) {
      row.number = ++number_;
      write_stage(m, row, base());
    } else {
      row.stage = static_cast<int>(lineage_->size() - 1);
      if (row.kind == StageRow::kPipelineStart) row.number = number_;
      if (options_.every_pass && ran) {
        row.number = ++number_;
        StageDrawing drawing;  // nothing in it is new
        write_files(m, row, base(), drawing);
      }
    }
    bool here = !options_.stop_after.empty() &&
                (row.name() == options_.stop_after || row.pass == options_.stop_after ||
                 (row.number >= 0 && row.changed && fmt::format("{:04}", row.number) == options_.stop_after));
    r_.rows.push_back(std::move(row));
    if (here) stopped_ = true;
  }

  // What comes after the passes: schedule, buffers, thunks, and the code for a device.
  void finish(bool verify) {
    StageRow result;
    result.kind = StageRow::kResult;
    result.before = m_.instruction_count();
    auto start = std::chrono::steady_clock::now();
    if (!m_.config().is_scheduled) schedule_module(m_);
    const auto named = options_.passes.given.find("gpu");
    const std::string gpu = named == options_.passes.given.end() ? std::string(kDefaultGpu) : named->second;
    const GpuTarget target = named_gpu_target(gpu);
    BufferAssignment buffers = assign_buffers(m_, target);
    std::vector<Thunk> thunks = build_thunks(m_, buffers, target);
    if (named != options_.passes.given.end()) {
      // As XLA's dumps say what they are for, so that the recording is read for the same GPU again.
      const GpuDescription* known = find_gpu_description(gpu);
      put(".gpu_target_config.pbtxt", known ? known->text : gpu);
    }
    result.microseconds =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
    result.after = m_.instruction_count();
    result.changed = true;
    write_stage(m_, result, prefix_ + ".after_optimizations");
    r_.rows.push_back(result);
    if (!options_.lower.empty()) {
      LoweringOptions lowering;
      lowering.observe = [&](Module& m, const PassEvent& e) { record(m, e); };
      lowering.verify = verify;
      lower_for(options_.lower, m_, lowering);
    }
    if (wants("buffers")) put(".after_optimizations-buffer-assignment.txt", buffer_assignment_text(m_, buffers));
    if (wants("thunks")) {
      put(".thunk_sequence.txt", thunks_text(m_, thunks));
      put(".thunk_sequence_after_thunk_passes.txt", thunks_text(m_, with_command_buffers(thunks)));
      put(".thunk_schedule.json", thunks_json(m_, thunks) + "\n");
    }
    if (wants("ll") || wants("ptx") || wants("sass")) write_code();
  }

  void write_code() {
    GpuCode code = gpu_code(m_, options_.sm);
    if (wants("ll")) {
      put(".ir-no-opt.ll", code.ir), put(".ir-with-opt.ll", code.optimised_ir);
      put(".ir-no-opt-noconst.ll", without_constants(code.ir));
      put(".ir-with-opt-noconst.ll", without_constants(code.optimised_ir));
    }
    if (wants("ptx")) put(".ptx", code.ptx);
    if (wants("sass") && !code.kernels.empty()) {
      Assembled machine = assembled(code.ptx, options_.sm, true);
      put(".ptxas.txt", machine.report);
      if (machine.without_sass.empty())
        put(".sass", machine.sass);
      else
        r_.problems.push_back(machine.without_sass);
    }
    for (const auto& [inst, why] : code.without) r_.problems.push_back(why);
  }

  Module& m_;
  const ReplayOptions& options_;
  OutputFolder& out_;
  const std::string pipeline_;
  const std::vector<Step>* steps_;
  Recording r_;
  std::string prefix_;  // of every file
  std::shared_ptr<Lineage> lineage_;
  Drawers drawers_;
  bool draws_, stopped_ = false;
  int number_ = 0;
  size_t done_ = 0, all_;
};

}  // namespace

Recording replay(Module& m, const ReplayOptions& options, OutputFolder& out) { return Replayer(m, options, out).run(); }

}  // namespace hlo
