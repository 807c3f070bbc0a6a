// The pipelines as lists, a file each, and what they are written with.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pipelines/pipelines.h"

namespace hlo {

std::vector<Step> xla_2019_pipeline();
std::vector<Step> xla_gpu_pipeline();
std::vector<Step> xla_gpu_unfused_pipeline();

// One pass. A name that no row of passes.def has would run nowhere and look like a pass without code: refused, as are
// options that the row has not.
Step pass_step(std::string name, std::map<std::string, std::string> options = {});
// Passes of one pipeline, run until nothing changes, at most `rounds` times.
Step pipeline_step(std::string name, std::vector<Step> children, int rounds = 1);
// Passes by name, blank separated.
std::vector<Step> pass_list(std::string_view names);
// A pipeline of today's XLA: the same, with the options that it gives its passes there (call_site_options). A name of
// one of `nested` stands for that pipeline.
Step xla_step(std::string name, std::string_view names, const std::vector<Step>& nested = {}, int rounds = 1);

}  // namespace hlo
