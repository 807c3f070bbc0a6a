// Folders of compilation caches, profiles and snapshots: which modules their files hold.
#include "parser/proto/proto_reader.h"
#include "replay/cli/command.h"
#include "replay/cli/looked_at.h"
#include "replay/cli/other_files.h"
#include "replay/os/confined_path.h"
#include "replay/os/files.h"
#include "replay/os/interrupt.h"
#include "replay/os/terminal.h"
#include "replay/record/files/held_modules.h"
#include "replay/report/kernels/kernels.h"

namespace hlo {
namespace {

Json entry_json(const std::string& folder, const std::string& file) {
  Json row{{"file", file},         {"what", ""},   {"bytes", 0}, {"modules", Json::array()},
           {"compile_ms", Json()}, {"problem", ""}};
  try {
    const std::string text = read_confined(folder, file);
    row["bytes"] = text.size();
    std::optional<HeldModules> held = held_modules(file, text);
    if (held && held->compile_ms >= 0) row["compile_ms"] = held->compile_ms;
    row["what"] = held ? held->what : "a snapshot";
    if (held && held->modules.empty()) fail(FailureKind::kUnsupported, "{}", held->why_none);
    auto add = [&](std::string_view bytes, const std::string& label) {
      auto module = std::move(read_proto(bytes, file, std::make_shared<Universe>()).module);
      row["modules"].push_back(
          {{"name", label.empty() ? module->name() : label}, {"instructions", module->instruction_count()}});
    };
    if (!held)
      add(text, "");
    else
      for (const HeldModule& m : held->modules) add(m.bytes, held->modules.size() > 1 ? m.label() : "");
  } catch (const Failure& e) {
    if (interrupted()) throw;
    row["problem"] = first_line(e.what());
  }
  return row;
}

}  // namespace

bool open_held_folder(const std::string& folder, bool json) {
  std::vector<std::string> files = holding_files(folder);
  if (files.empty()) return false;
  Json list = Json::array();
  std::string example;
  bool several = false;
  if (!json)
    fmt::print("{} files that hold modules\n{:>12} {:>9} {:>12}  {}\n", files.size(), "instructions", "compiled",
               "bytes", "module");
  for (const std::string& file : files) {
    Json row = entry_json(folder, file);
    if (!json) {
      size_t instructions = 0;
      std::string names;
      for (const Json& m : row["modules"]) {
        instructions += m["instructions"].get<size_t>();
        names += (names.empty() ? "" : ", ") + m["name"].get<std::string>();
      }
      const std::string compiled =
          row["compile_ms"].is_null() ? "" : time_text(static_cast<double>(row["compile_ms"].get<int64_t>()) / 1e3);
      fmt::print("{:>12} {:>9} {:>12}  {}\n              {}\n", names.empty() ? "" : std::to_string(instructions),
                 compiled, size_text(row["bytes"].get<double>()), printable(names), printable(file));
      if (const std::string problem = row["problem"]; !problem.empty())
        fmt::print("              {}\n", printable(problem));
      if (!names.empty()) example = file, several = row["modules"].size() > 1;
    }
    list.push_back(std::move(row));
  }
  if (json)
    print_json({{"folder", folder},
                {"look_first", Json::array()},
                {"modules", Json::array()},
                {"graphs", Json::array()},
                {"entries", list}});
  else if (!example.empty())
    fmt::print("next: hlo-replay {} {}\n", several ? "profile" : "print", shell_word(folder + "/" + example));
  return true;
}

}  // namespace hlo
