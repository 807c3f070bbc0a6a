#include "replay/record/files/dump_names.h"

#include <algorithm>
#include <filesystem>

namespace hlo {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `NAME.0007.pipeline` up to `end`: its three parts. A module's name may have points and numbers in it.
bool read_stage(const std::string& rest, size_t end, DumpName* out) {
  const size_t dot = end == 0 ? std::string::npos : rest.rfind('.', end - 1);
  if (dot == std::string::npos || dot < 5) return false;
  const size_t number = rest.rfind('.', dot - 1);
  if (number == std::string::npos || dot - number != 5) return false;
  if (!std::all_of(rest.begin() + static_cast<ptrdiff_t>(number) + 1, rest.begin() + static_cast<ptrdiff_t>(dot),
                   is_digit))
    return false;
  out->stage = true;
  out->name = rest.substr(0, number);
  out->number = atoi(rest.c_str() + number + 1);
  out->pipeline = rest.substr(dot + 1, end - dot - 1);
  return true;
}

// `NAME.0007.pipeline.after_PASS.before_NEXT.txt`, or without its `after_`: what a rewriter of the TPU compiler that
// dumps its own steps begins with. `NAME.1234.variant.after_optimizations…txt` is the end of a module of that name;
// pipelines are called `after_layout_assignment`, too: of several `.after_`, that with number and pipeline before it.
bool is_stage(const std::string& rest, DumpName* out) {
  if (!rest.ends_with(".txt")) return false;
  const size_t first = rest.find(".after_");
  for (size_t after = first; after != std::string::npos; after = rest.find(".after_", after + 1)) {
    const std::string tail = rest.substr(after + 7, rest.size() - 4 - after - 7);
    if (tail.starts_with("optimizations")) return false;
    if (!read_stage(rest, after, out)) continue;
    const size_t before = tail.find(".before_");
    out->pass = tail.substr(0, before);
    if (before != std::string::npos) out->next = tail.substr(before + 8);
    return true;
  }
  if (first != std::string::npos) return false;
  const size_t before = rest.rfind(".before_");
  if (before == std::string::npos || rest.compare(before + 8, std::string::npos, "optimizations.txt") == 0 ||
      rest.compare(before + 8, std::string::npos, "config_assignment.txt") == 0 || !read_stage(rest, before, out))
    return false;
  out->pass = "pipeline-start";
  out->next = rest.substr(before + 8, rest.size() - 4 - before - 8);
  return true;
}

}  // namespace

bool parse_name(const std::string& file, DumpName* out) {
  size_t start = 0;
  while (start < file.size() && start < 18 && is_digit(file[start])) ++start;
  if (start >= 10 && file.compare(start, 8, ".module_") == 0)
    out->time = std::stoll(file.substr(0, start)), ++start;
  else
    start = 0;
  if (file.compare(start, 7, "module_") != 0) return false;
  size_t at = start + 7, end = at;
  while (end < file.size() && is_digit(file[end])) ++end;
  if (end == at || end >= file.size() || file[end] != '.') return false;
  out->module = atoi(file.c_str() + at);
  std::string rest = file.substr(end + 1);
  if (is_stage(rest, out)) return true;
  for (const char* known : {".before_optimizations.", ".after_spmd_partitioner.", ".before_config_assignment."})
    if (size_t found = rest.rfind(known); found != std::string::npos && found > 0) out->name = rest.substr(0, found);
  out->rest = rest;
  return true;
}

std::string proto_beside(const std::string& text) {
  return text.ends_with(".txt") ? text.substr(0, text.size() - 4) + ".hlo.pb" : "";
}

namespace {

// A pipeline that runs as a pass has a block of its own: what its passes took is theirs, so that a sum is right.
void take_out_nested(std::vector<PassRun>* runs) {
  std::vector<PassRun*> order, open;
  for (PassRun& r : *runs)
    if (r.us >= 0) order.push_back(&r);
  std::stable_sort(order.begin(), order.end(), [](const PassRun* x, const PassRun* y) {
    return x->begin != y->begin ? x->begin < y->begin : x->end > y->end;
  });
  for (PassRun* r : order) {
    while (!open.empty() && open.back()->end < r->end) open.pop_back();
    for (auto outer = open.rbegin(); outer != open.rend(); ++outer)
      if ((*outer)->pass == r->pipeline && (*outer)->pipeline != r->pipeline) {
        (*outer)->us = std::max<int64_t>((*outer)->us - (r->end - r->begin), 0);
        break;
      }
    open.push_back(r);
  }
}

}  // namespace

std::vector<PassRun> read_metadata(const std::string& text) {
  std::vector<PassRun> out;
  size_t at = 0;
  auto field = [](const std::string& block, const std::string& key) -> std::string {
    size_t p = block.find(key + ": ");
    if (p == std::string::npos) return {};
    p += key.size() + 2;
    size_t e = block.find('\n', p);
    std::string v = block.substr(p, e - p);
    if (!v.empty() && v.front() == '"') v = v.substr(1, v.find('"', 1) - 1);
    return v;
  };
  while ((at = text.find("pass_metadata {", at)) != std::string::npos) {
    size_t next = text.find("pass_metadata {", at + 1);
    std::string block = text.substr(at, next == std::string::npos ? std::string::npos : next - at);
    PassRun r;
    r.pass = field(block, "pass_name"), r.pipeline = field(block, "pipeline_name");
    std::replace(r.pipeline.begin(), r.pipeline.end(), ' ', '_');
    std::string a = field(block, "start_timestamp_usec"), b = field(block, "end_timestamp_usec");
    if (!a.empty() && !b.empty()) r.begin = atoll(a.c_str()), r.end = atoll(b.c_str());
    if (r.begin >= 0 && r.end >= r.begin) r.us = r.end - r.begin;
    r.changed = field(block, "module_changed") == "true";
    std::string file = field(block, "dump_filenames");
    if (!file.empty()) r.file = std::filesystem::path(file).filename().string();
    out.push_back(std::move(r));
    at += 1;
  }
  take_out_nested(&out);
  return out;
}

}  // namespace hlo
