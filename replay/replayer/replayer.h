// Runs a pipeline over a module and writes what happened into a folder, under XLA's file names.
#pragma once
#include <functional>
#include <set>

#include "passes/pipelines/pipelines.h"
#include "replay/os/files.h"
#include "replay/record/recording/recording.h"

namespace hlo {

struct ReplayOptions {
  std::string pipeline = "xla-gpu";
  // html: a drawn page of every stage. page, the folder's index.html, is write_recording_page's (viewer/page_file.h).
  std::set<std::string> formats = {"text", "dot", "page", "buffers", "thunks"};
  std::string sm = "sm_90a";  // that PTX is made for
  PipelineOptions passes;
  bool every_pass = false;  // files behind each pass that ran and each pipeline's start, whether it changed something
  std::string lower;        // the executor that the result is lowered for, its steps being stages; empty: none
  std::string stop_after;   // number or name of a stage
  std::function<void(size_t done, size_t all, const std::string& pass)> progress;
};

// Formats that a replay can write.
bool known_format(const std::string& format);

// The pipeline that runs: programs are not made of XLA's own kernels, but of what these are made of.
std::string replayed_pipeline(const ReplayOptions& options);

// Changes the module: afterwards it is what the last stage holds.
Recording replay(Module& m, const ReplayOptions& options, OutputFolder& out);

// Already optimised (scheduled, fused, with library calls): the reason, or nothing.
std::string already_optimised(const Module& m);

}  // namespace hlo
