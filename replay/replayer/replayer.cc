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

Recording replay(Module& m, const ReplayOptions& options, OutputFolder& out) {
  const std::string pipeline = replayed_pipeline(options);
  const std::vector<Step>* steps = &pipeline_or_fail(pipeline);
  Recording r;
  r.folder = out.path(), r.module_name = m.name(), r.source = "hlo-replay", r.pipeline = pipeline;
  if (std::string why = not_partitioned(m); !why.empty()) r.problems.push_back(std::move(why));
  std::string prefix = fmt::format("module_{:04}.{}", r.module_number, name_in_files(m.name()));
  auto lineage = std::make_shared<Lineage>(m.universe());
  Drawers drawers(out);
  auto wants = [&](const char* f) { return options.formats.contains(f); };
  bool draws = wants("dot") || wants("svg") || wants("png") || wants("html");
  if (wants("svg") || wants("png") || wants("html")) require_graphviz();
  int number = 0;
  size_t done = 0, all = count_passes(*steps);
  bool stopped = false;

  // Freezes the module and writes it in every format wanted. The row's counts come from the frozen stages.
  auto write_files = [&](Module& m, StageRow& row, const std::string& base, StageDrawing& drawing) {
    row.file = base + ".txt";
    if (wants("text")) out.write(row.file, lossless_text(m));
    if (wants("json")) out.write(base + ".json", module_json(m));
    if (wants("proto")) out.write(base + ".hlo.pb", module_to_proto_bytes(m, ".pb"));
    if (!draws) return;
    drawing.options.title = fmt::format("{}\n{}", m.name(), row.name());
    drawing.row = row, drawing.base = base, drawing.formats = options.formats;
    if (wants("text"))
      drawing.command = fmt::format("hlo-replay convert {} stage.svg", shell_word(out.path() + "/" + row.file));
    drawers.draw(m, drawing);
  };
  auto write_stage = [&](Module& m, StageRow& row, const std::string& base) {
    StageDrawing drawing;
    size_t stage = lineage->add(m);
    row.stage = static_cast<int>(stage);
    StageDiff d = lineage->changes(stage);
    row.added = d.added.size(), row.removed = d.removed.size(), row.modified = d.modified.size();
    if (draws) {
      for (InstId i : d.added) drawing.options.added.insert(m[i].name);
      for (InstId i : d.modified) drawing.options.modified.insert(m[i].name);
      for (InstId i : d.removed) drawing.removed.emplace_back(m.inst_name(i));
    }
    write_files(m, row, base, drawing);
  };

  StageRow input;
  input.kind = StageRow::kInput;
  input.before = input.after = m.instruction_count();
  write_stage(m, input, prefix + ".before_optimizations");
  r.rows.push_back(input);

  auto record = [&](Module& m, const PassEvent& e) {
    StageRow row = row_of(e);
    if (e.kind == PassEvent::kPass) {
      ++done;
      if (options.progress) options.progress(done, std::max(all, done), e.pass);
    }
    const bool ran = row.kind == StageRow::kPipelineStart || (row.implemented && !row.disabled);
    auto base = [&] {
      return fmt::format("{}.{:04}.{}.after_{}{}{}", prefix, number, e.pipeline, e.pass,
                         e.next.empty() ? "" : ".before_", e.next);
    };
    if (row.changed) {
      row.number = ++number;
      write_stage(m, row, base());
    } else {
      row.stage = static_cast<int>(lineage->size() - 1);
      if (row.kind == StageRow::kPipelineStart) row.number = number;
      if (options.every_pass && ran) {
        row.number = ++number;
        StageDrawing drawing;  // nothing in it is new
        write_files(m, row, base(), drawing);
      }
    }
    bool here = !options.stop_after.empty() &&
                (row.name() == options.stop_after || row.pass == options.stop_after ||
                 (row.number >= 0 && row.changed && fmt::format("{:04}", row.number) == options.stop_after));
    r.rows.push_back(std::move(row));
    if (here) stopped = true;
  };
  PipelineOptions passes = options.passes;
  passes.stop = [&] { return stopped || interrupted(); };
  passes.observe = [&](const Module&, const PassEvent& e) { record(m, e); };
  passes.recording = out.path();
  run_pipeline(m, *steps, passes);
  if (interrupted()) fail(FailureKind::kIo, "interrupted; nothing was written");
  if (!options.stop_after.empty() && !stopped)
    fail(FailureKind::kUsage, "no stage '{}' came up in this run", options.stop_after);

  if (!stopped) {
    StageRow result;
    result.kind = StageRow::kResult;
    result.before = m.instruction_count();
    auto start = std::chrono::steady_clock::now();
    if (!m.config().is_scheduled) schedule_module(m);
    std::vector<Thunk> thunks;
    const auto named = options.passes.given.find("gpu");
    const std::string gpu = named == options.passes.given.end() ? std::string(kDefaultGpu) : named->second;
    const GpuTarget target = named_gpu_target(gpu);
    BufferAssignment buffers = assign_buffers(m, target);
    thunks = build_thunks(m, buffers, target);
    if (named != options.passes.given.end()) {
      // As XLA's dumps say what they are for, so that the recording is read for the same GPU again.
      const GpuDescription* known = find_gpu_description(gpu);
      r.other_files.push_back(prefix + ".gpu_target_config.pbtxt");
      out.write(r.other_files.back(), known ? known->text : gpu);
    }
    result.microseconds =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
    result.after = m.instruction_count();
    result.changed = true;
    write_stage(m, result, prefix + ".after_optimizations");
    r.rows.push_back(result);
    if (!options.lower.empty()) {
      LoweringOptions lowering;
      lowering.observe = record;
      lowering.verify = passes.verify;
      lower_for(options.lower, m, lowering);
    }
    if (wants("buffers")) {
      r.other_files.push_back(prefix + ".after_optimizations-buffer-assignment.txt");
      out.write(r.other_files.back(), buffer_assignment_text(m, buffers));
    }
    if (wants("thunks")) {
      auto put = [&](const char* end, const std::string& text) {
        r.other_files.push_back(prefix + end);
        out.write(r.other_files.back(), text);
      };
      put(".thunk_sequence.txt", thunks_text(m, thunks));
      put(".thunk_sequence_after_thunk_passes.txt", thunks_text(m, with_command_buffers(thunks)));
      put(".thunk_schedule.json", thunks_json(m, thunks) + "\n");
    }
    if (wants("ll") || wants("ptx") || wants("sass")) {
      GpuCode code = gpu_code(m, options.sm);
      auto put = [&](const char* end, const std::string& text) {
        r.other_files.push_back(prefix + end);
        out.write(r.other_files.back(), text);
      };
      if (wants("ll")) {
        put(".ir-no-opt.ll", code.ir), put(".ir-with-opt.ll", code.optimised_ir);
        put(".ir-no-opt-noconst.ll", without_constants(code.ir));
        put(".ir-with-opt-noconst.ll", without_constants(code.optimised_ir));
      }
      if (wants("ptx")) put(".ptx", code.ptx);
      if (wants("sass") && !code.kernels.empty()) {
        Assembled machine = assembled(code.ptx, options.sm, true);
        put(".ptxas.txt", machine.report);
        if (machine.without_sass.empty())
          put(".sass", machine.sass);
        else
          r.problems.push_back(machine.without_sass);
      }
      for (const auto& [inst, why] : code.without) r.problems.push_back(why);
    }
  }
  if (std::string left = sizes_left(m); !left.empty()) r.problems.push_back(std::move(left));
  if (options.progress) options.progress(std::max(all, done), std::max(all, done), "drawing");
  drawers.wait();
  if (!wants("text"))
    for (StageRow& row : r.rows) row.file.clear();
  out.write("recording.json", recording_json(r));
  out.write(kStoreFile, store_bytes(r, *lineage));
  r.keep(std::move(lineage));
  return r;
}

}  // namespace hlo
