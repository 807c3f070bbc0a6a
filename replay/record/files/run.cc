#include "replay/record/files/run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>

#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/terminal.h"
#include "replay/record/files/dump_names.h"

namespace hlo {
namespace fs = std::filesystem;
namespace {

constexpr size_t kCandidates = 12;      // shown
constexpr size_t kMostFolders = 10000;  // below a run

bool only_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return isdigit(static_cast<unsigned char>(c)); });
}

// Of digits; -2, which nothing has, beyond what fits.
int number_of(std::string_view digits) {
  int out = -2;
  return std::from_chars(digits.data(), digits.data() + digits.size(), out).ec == std::errc() ? out : -2;
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return out;
}
bool has_part(std::string_view whole, std::string_view part) {
  return lower(whole).find(lower(part)) != std::string::npos;
}

// Does the folder look like one of a recording? Names only.
bool holds_stages(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "recording.json", error)) return true;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if ((name.starts_with("module_") &&
         (name.find("_optimizations") != std::string::npos || name.find(".after_") != std::string::npos)) ||
        (name.starts_with("hlo_graph_") && name.ends_with(".dot")))
      return true;
  }
  return false;
}

// Folders below that hold recordings, by name; links are not followed, so none leads out or in circles.
void folders_below(const fs::path& folder, int depth, std::vector<std::string>* out, size_t* seen) {
  std::error_code error;
  std::vector<fs::path> list;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_symlink(ignored) && at->is_directory(ignored) && ++*seen < kMostFolders) list.push_back(at->path());
  }
  std::sort(list.begin(), list.end());
  for (const fs::path& p : list) {
    if (!why_not_below(p.filename().string()).empty()) continue;
    if (holds_stages(p))
      out->push_back(p.string());
    else if (depth > 1)
      folders_below(p, depth - 1, out, seen);
  }
}

// The folder of a module below that of the run; empty where it is the run's own.
std::string folder_within(const Run& run, const Recording& r) {
  std::string_view whole = r.folder, own = run.folder;
  while (own.ends_with('/')) own.remove_suffix(1);
  if (!whole.starts_with(own)) return {};
  whole.remove_prefix(own.size());
  while (whole.starts_with('/')) whole.remove_prefix(1);
  return std::string(whole);
}

std::vector<size_t> matching_modules(const Run& run, const std::string& wanted) {
  std::vector<size_t> out;
  if (wanted.empty()) return out;
  auto keep = [&](auto fits) {
    if (!out.empty()) return;
    for (size_t k = 0; k < run.modules.size(); ++k)
      if (fits(run.modules[k])) out.push_back(k);
  };
  if (only_digits(wanted)) keep([&](const Recording& r) { return r.module_number == number_of(wanted); });
  keep([&](const Recording& r) { return r.module_name == wanted || folder_within(run, r) == wanted; });
  if (only_digits(wanted)) return out;  // `29` is no part of jit_op_290
  keep([&](const Recording& r) { return function_of(r.module_name) == wanted; });
  keep([&](const Recording& r) {
    return has_part(r.module_name, wanted) || has_part(folder_within(run, r), wanted) ||
           has_part(fmt::format("module_{:04}.{}", r.module_number, r.module_name), wanted);
  });
  return out;
}

std::string text_row(const Recording& r, size_t row) {
  std::string name = printable(r.rows[row].name());
  return r.rows[row].number >= 0 ? fmt::format("{:04} {}", r.rows[row].number, name) : name;
}

// Rows that fit, one a text.
std::vector<size_t> matching_rows(const Recording& r, const std::string& wanted) {
  std::vector<size_t> out;
  auto keep = [&](auto fits) {
    if (!out.empty()) return;
    for (size_t k = 0; k < r.rows.size(); ++k)
      if (fits(r.rows[k])) out.push_back(k);
  };
  if (only_digits(wanted))
    keep([&](const StageRow& row) {
      return row.number == number_of(wanted) && (row.changed || row.kind == StageRow::kPipelineStart);
    });
  keep([&](const StageRow& row) { return row.name() == wanted || row.file == wanted; });
  keep([&](const StageRow& row) { return row.pass == wanted; });
  if (!wanted.empty())
    keep([&](const StageRow& row) {
      return !row.file.empty() && has_part(fmt::format("{:04} {}", row.number, row.name()), wanted);
    });
  // Runs that changed something come before those that did not; those of one text are one.
  if (std::any_of(out.begin(), out.end(), [&](size_t k) { return !r.rows[k].file.empty(); }))
    std::erase_if(out, [&](size_t k) { return r.rows[k].file.empty(); });
  std::vector<std::string> texts;
  std::erase_if(out, [&](size_t k) {
    std::string text = r.text_file(k);
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) return true;
    texts.push_back(text);
    return false;
  });
  return out;
}

std::string list_of(std::vector<std::string> lines) {
  std::string out;
  for (size_t k = 0; k < lines.size() && k < kCandidates; ++k) out += "\n  " + lines[k];
  if (lines.size() > kCandidates) out += fmt::format("\n  … and {} more", lines.size() - kCandidates);
  return out;
}

std::string module_line(const Run& run, const Recording& r, const std::string& stage = "") {
  return fmt::format("{:<32} {}",
                     fmt::format("{}:{}{}", printable(run.folder), printable(module_selector(run, r)),
                                 stage.empty() ? "" : ":" + printable(stage)),
                     printable(r.module_name));
}

std::string module_lines(const Run& run, const std::vector<size_t>& list, const std::string& stage = "") {
  std::vector<std::string> lines;
  for (size_t k : list) lines.push_back(module_line(run, run.modules[k], stage));
  return list_of(std::move(lines));
}

std::vector<size_t> all_of_run(const Run& run) {
  std::vector<size_t> out(run.modules.size());
  for (size_t k = 0; k < out.size(); ++k) out[k] = k;
  return out;
}

// `; stage 3 is written DIR:0001:0003`, of the only module, where it has such a stage: DIR:3 is none.
std::string stage_of_number(const Run& run, const std::string& wanted) {
  if (!only_digits(wanted) || matching_rows(run.modules[0], wanted).empty()) return {};
  return fmt::format("; stage {} is written {}:{}:{}", printable(wanted), printable(run.folder),
                     printable(module_selector(run, run.modules[0])), printable(wanted));
}

size_t one_module(const Run& run, const std::string& wanted, const std::string& stage) {
  std::vector<size_t> fits = matching_modules(run, wanted);
  if (fits.size() == 1) return fits[0];
  if (fits.empty()) {
    std::string line = fmt::format("{} has no module '{}'", printable(run.folder), printable(wanted));
    if (stage.empty() && run.modules.size() == 1) line += stage_of_number(run, wanted);
    fail(FailureKind::kUsage, "{}; it holds{}", line, module_lines(run, all_of_run(run), stage));
  }
  fail(FailureKind::kUsage, "'{}' fits {} modules of {}; name one by its number{}", printable(wanted), fits.size(),
       printable(run.folder), module_lines(run, fits, stage));
}

size_t one_row(const std::string& where, const Recording& r, const std::string& wanted) {
  std::vector<size_t> fits = matching_rows(r, wanted);
  if (fits.size() == 1) return fits[0];
  std::vector<std::string> lines;
  auto line = [&](size_t k) {
    std::string choice = stage_selector(r, k);
    lines.push_back(fmt::format("{:<32} {}", fmt::format("{}:{}", where, printable(choice)), text_row(r, k)));
  };
  if (!fits.empty()) {
    for (size_t k : fits) line(k);
    fail(FailureKind::kUsage, "'{}' fits {} stages of {}; name one by its number{}", printable(wanted), fits.size(),
         where, list_of(std::move(lines)));
  }
  for (size_t k = 0; k < r.rows.size(); ++k)
    if (!r.rows[k].file.empty()) line(k);
  fail(FailureKind::kUsage, "{} has no stage '{}'; it has{}", where, printable(wanted), list_of(std::move(lines)));
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

Run open_run(const std::string& folder) {
  Run run{folder, {}};
  std::error_code error;
  // A folder of its own, or one that is damaged: its own message tells.
  if (!fs::is_directory(folder, error) || holds_stages(folder)) {
    run.modules = open_folder(folder);
    return run;
  }
  std::vector<std::string> below;
  size_t seen = 0;
  folders_below(folder, 3, &below, &seen);
  std::vector<std::string> problems;
  for (const std::string& f : below) {
    try {
      for (Recording& r : open_folder(f)) run.modules.push_back(std::move(r));
    } catch (const Failure& e) {
      problems.emplace_back(e.what());
    }
  }
  if (run.modules.empty()) {
    if (!problems.empty()) fail(FailureKind::kIo, "{}", problems[0]);
    run.modules = open_folder(folder);
  }
  for (std::string& p : problems) run.modules[0].problems.push_back(std::move(p));
  return run;
}

std::string function_of(std::string_view name) {
  for (std::string_view start : {"jit_", "pjit_", "pmap_", "xla_computation_"})
    if (name.starts_with(start) && name.size() > start.size()) {
      name.remove_prefix(start.size());
      while (name.size() > 1 && name.starts_with('_')) name.remove_prefix(1);
      break;
    }
  return std::string(name);
}

std::string module_selector(const Run& run, const Recording& module) {
  auto is_alone = [&](const std::string& word) {
    std::vector<size_t> fits =
        word.empty() || word.find(':') != std::string::npos ? std::vector<size_t>() : matching_modules(run, word);
    return fits.size() == 1 && &run.modules[fits[0]] == &module;
  };
  const std::string within = folder_within(run, module);
  std::array<std::string, 3> ways{fmt::format("{:04}", module.module_number), within, module.module_name};
  for (const std::string& word : ways)
    if (is_alone(word)) return word;
  return ways[0];
}

std::string stage_selector(const Recording& module, size_t row) {
  const StageRow& r = module.rows[row];
  if (r.number >= 0 && r.changed) {
    std::string number = fmt::format("{:04}", r.number);
    if (matching_rows(module, number).size() == 1) return number;
  }
  return matching_rows(module, r.name()).size() == 1 ? r.name() : r.file;
}

std::optional<Selector> split_selector(const std::string& spec) {
  if (is_folder(spec)) return Selector{spec, {}};
  // Names of folders may have colons: the longest one that is a folder.
  for (size_t colon = spec.rfind(':'); colon != std::string::npos && colon > 0; colon = spec.rfind(':', colon - 1)) {
    if (!is_folder(spec.substr(0, colon))) continue;
    Selector out{spec.substr(0, colon), {}};
    std::string rest = spec.substr(colon + 1);
    if (size_t second = rest.find(':'); second == std::string::npos)
      out.parts = {rest};
    else
      out.parts = {rest.substr(0, second), rest.substr(second + 1)};
    return out;
  }
  return std::nullopt;
}

bool names_modules(const std::string& spec) {
  std::optional<Selector> s = split_selector(spec);
  if (!s || s->parts.size() > 1) return false;
  if (s->parts.empty()) return true;
  if (only_digits(s->parts[0])) return true;  // what fits no module is refused as one
  Run run = open_run(s->folder);
  if (run.modules.size() > 1) return true;
  return matching_rows(run.modules[0], s->parts[0]).empty() && !matching_modules(run, s->parts[0]).empty();
}

std::vector<Recording> select_modules(const std::string& spec) {
  std::optional<Selector> s = split_selector(spec);
  if (!s) return open_folder(spec);  // says what is wrong
  Run run = open_run(s->folder);
  if (s->parts.empty()) return std::move(run.modules);
  if (s->parts.size() > 1)
    fail(FailureKind::kUsage, "{} names a stage; a module of the run is written {}:{}", printable(spec),
         printable(s->folder), printable(s->parts[0]));
  size_t k = one_module(run, s->parts[0], "");
  std::vector<Recording> out;
  out.push_back(std::move(run.modules[k]));
  return out;
}

Recording select_module(const std::string& spec) {
  std::optional<Selector> s = split_selector(spec);
  if (s && s->parts.empty()) {
    Run run = open_run(s->folder);
    if (run.modules.size() > 1)
      fail(FailureKind::kUsage, "{} holds {} modules; name one{}", printable(spec), run.modules.size(),
           module_lines(run, all_of_run(run)));
    return std::move(run.modules[0]);
  }
  return std::move(select_modules(spec)[0]);
}

namespace {

// Of DIR:PART, which names no stage.
[[noreturn]] void no_stage(const Run& run, const std::string& part) {
  const std::string folder = printable(run.folder);
  const std::vector<size_t> fits = matching_modules(run, part);
  if (run.modules.size() == 1) {
    if (fits.empty()) one_module(run, part, "");  // says so
    const std::string within = only_digits(part) ? folder + ":" + printable(part) : folder;
    fail(FailureKind::kUsage, "{}:{} is a module; a stage of it is written {}:STAGE, the last one {}:{}{}", folder,
         printable(part), within, within,
         final_row(run.modules[0]) ? printable(stage_selector(run.modules[0], *final_row(run.modules[0]))) : "STAGE",
         stage_of_number(run, part));
  }
  if (!fits.empty())
    fail(FailureKind::kUsage, "{}:{} is {}; a stage is written {}:MODULE:STAGE{}", folder, printable(part),
         fits.size() == 1 ? "a module of a run" : fmt::format("what {} modules of a run fit", fits.size()), folder,
         module_lines(run, fits, "STAGE"));
  std::vector<size_t> having;
  for (size_t k = 0; k < run.modules.size(); ++k)
    if (!matching_rows(run.modules[k], part).empty()) having.push_back(k);
  fail(FailureKind::kUsage, "{} holds {} modules, and '{}' is no module of it; a stage is written {}:MODULE:STAGE{}",
       folder, run.modules.size(), printable(part), folder,
       having.empty() ? module_lines(run, all_of_run(run), "STAGE") : module_lines(run, having, part));
}

}  // namespace

StageChoice select_stage(const Selector& s) {
  if (s.parts.empty())
    fail(FailureKind::kUsage, "{} is a folder; a stage of it is written {}:STAGE", printable(s.folder),
         printable(s.folder));
  Run run = open_run(s.folder);
  const bool single = run.modules.size() == 1;
  const size_t module = s.parts.size() == 2 ? one_module(run, s.parts[0], s.parts[1]) : 0;
  const std::string& stage = s.parts.back();
  if (s.parts.size() == 1) {
    const bool by_name = single && !only_digits(stage);
    // What fits neither is refused as a stage.
    if (!by_name || (matching_rows(run.modules[0], stage).empty() && !matching_modules(run, stage).empty()))
      no_stage(run, stage);
  }
  StageChoice out;
  std::string where = printable(s.folder);
  if (!single || s.parts.size() == 2) where += ":" + printable(module_selector(run, run.modules[module]));
  out.row = one_row(where, run.modules[module], stage);
  out.module = std::move(run.modules[module]);
  out.file = out.module.text_file(out.row);
  if (out.file.empty() || out.file.ends_with(".dot"))
    fail(FailureKind::kIo, "stage {} of {} has no text{}", printable(stage), where,
         out.file.empty() ? "" : ", only a graph: hlo-replay view shows it");
  return out;
}

std::optional<StageChoice> stage_of(const std::string& spec) {
  if (const std::optional<Selector> selector = split_selector(spec))
    return selector->parts.empty() ? std::nullopt : std::optional(select_stage(*selector));
  const fs::path path(spec);
  const std::string name = path.filename().string();
  DumpName dumped;
  std::error_code error;
  if (!parse_name(name, &dumped) || !fs::is_regular_file(path, error)) return std::nullopt;
  std::vector<Recording> all;
  try {
    all = open_folder(path.has_parent_path() ? path.parent_path().string() : ".");
  } catch (const Failure&) {  // a file by itself
    return std::nullopt;
  }
  for (Recording& r : all)
    for (size_t k = 0; k < r.rows.size(); ++k)
      if (const std::string& text = r.rows[k].file; !text.empty() && (text == name || proto_beside(text) == name))
        return StageChoice{std::move(r), k, text};
  return std::nullopt;
}

size_t select_row(const Recording& module, const std::string& wanted) {
  return one_row(printable(module.folder), module, wanted);
}

std::optional<size_t> final_row(const Recording& r) {
  for (size_t k = r.rows.size(); k-- > 0;)
    if (const std::string& f = r.rows[k].file; f.ends_with(".txt") || f.ends_with(".hlo")) return k;
  return std::nullopt;
}

StageChoice final_stage(const Recording& r) {
  std::optional<size_t> row = final_row(r);
  if (!row)
    fail(FailureKind::kIo, "module {:04} {} of {} has no stage with a text", r.module_number, printable(r.module_name),
         printable(r.folder));
  return {r, *row, r.rows[*row].file};
}

}  // namespace hlo
