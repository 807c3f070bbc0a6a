#include "replay/record/dump_names.h"

#include <algorithm>
#include <filesystem>

namespace hlo {

bool parse_name(const std::string& file, DumpName* out) {
  size_t start = 0;
  while (start < file.size() && start < 18 && isdigit(static_cast<unsigned char>(file[start]))) ++start;
  if (start >= 10 && file.compare(start, 8, ".module_") == 0)
    out->time = std::stoll(file.substr(0, start)), ++start;
  else
    start = 0;
  if (file.compare(start, 7, "module_") != 0) return false;
  size_t at = start + 7, end = at;
  while (end < file.size() && isdigit(static_cast<unsigned char>(file[end]))) ++end;
  if (end == at || end >= file.size() || file[end] != '.') return false;
  out->module = atoi(file.c_str() + at);
  std::string rest = file.substr(end + 1);
  size_t after = rest.find(".after_");
  // `.0007.pipeline` right in front of `.after_`.
  if (after != std::string::npos && rest.ends_with(".txt")) {
    size_t dot = rest.rfind('.', after - 1);
    if (dot != std::string::npos && dot >= 5) {
      size_t number = rest.rfind('.', dot - 1);
      std::string digits =
          number == std::string::npos ? rest.substr(0, dot) : rest.substr(number + 1, dot - number - 1);
      bool numeric = digits.size() == 4 && std::all_of(digits.begin(), digits.end(),
                                                       [](char c) { return isdigit(static_cast<unsigned char>(c)); });
      if (numeric && number != std::string::npos) {
        out->stage = true;
        out->name = rest.substr(0, number);
        out->number = atoi(digits.c_str());
        out->pipeline = rest.substr(dot + 1, after - dot - 1);
        std::string tail = rest.substr(after + 7, rest.size() - 4 - after - 7);
        size_t before = tail.find(".before_");
        out->pass = tail.substr(0, before);
        if (before != std::string::npos) out->next = tail.substr(before + 8);
        return true;
      }
    }
  }
  for (const char* known : {".before_optimizations.", ".after_spmd_partitioner.", ".before_config_assignment."})
    if (size_t found = rest.rfind(known); found != std::string::npos && found > 0) out->name = rest.substr(0, found);
  out->rest = rest;
  return true;
}

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
    if (!a.empty() && !b.empty()) r.us = atoll(b.c_str()) - atoll(a.c_str());
    r.changed = field(block, "module_changed") == "true";
    std::string file = field(block, "dump_filenames");
    if (!file.empty()) r.file = std::filesystem::path(file).filename().string();
    out.push_back(std::move(r));
    at += 1;
  }
  return out;
}

}  // namespace hlo
