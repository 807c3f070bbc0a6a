// --permissive: what tolerant reading tells, for every command alike.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <set>

#include "replay/cli/command.h"
#include "replay/cli/json_output.h"
#include "replay/judge/arguments/inputs.h"
#include "replay/os/progress.h"
#include "replay/os/terminal.h"

namespace hlo {
namespace {

Json excerpt_json(const std::string& label, const Excerpt& e) {
  Json notes = Json::array();
  for (const ExcerptNote& n : e.notes) notes.push_back({{"line", n.line}, {"message", n.text}});
  return {{"file", label},
          {"incomplete", e.incomplete},
          {"instructions", e.instructions},
          {"custom_calls", e.custom_calls},
          {"left_out", e.left_out},
          {"stand_ins", e.stand_ins},
          {"gaps", e.gaps},
          {"notes", notes},
          {"more_notes", e.more_notes}};
}

// Commands whose standard output is a module's text: its first line is a comment.
bool prints_text(const std::string& command) { return command == "print" || command == "opt" || command == "fmt"; }

}  // namespace

void add_permissive(CLI::App& app) {
  // Those that read no module, and those that hand the rest of the line to another program.
  static const std::set<std::string> kOthers = {"capture", "cache", "compare", "lesson", "mcp", "installed"};
  for (CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!kOthers.contains(c->get_name()))
      c->add_flag_callback("--permissive", read_permissively,
                           "read excerpts and logs, too: what is missing or not read is reported with its line");
}

void tell_excerpts(const std::string& command) {
  hear_excerpts(
      [command, told = std::make_shared<std::set<std::string>>()](const std::string& label, const Excerpt& e) {
        // A command may read a file twice.
        if (!told->insert(fmt::format("{}:{}:{}", label, e.notes[0].line, e.notes[0].text)).second) return;
        Progress::clear();
        for (const ExcerptNote& n : e.notes)
          complain(fmt::format("{}:{}: warning: {}", printable(label), n.line, printable(n.text)));
        if (e.more_notes) complain(fmt::format("{}: … and {} more", printable(label), e.more_notes));
        add_to_json("excerpts", excerpt_json(label, e));
        if (json_asked()) return;
        std::fflush(stdout);
        std::cout << (prints_text(command) ? "// " : "") << "an excerpt, " << printable(label) << ": " << e.in_words()
                  << "\n";
        std::cout.flush();
      });
}

void tell_elided() {
  hear_elided([told = std::make_shared<std::set<std::string>>()](const ElidedTold& e) {
    if (!told->insert(e.label).second) return;
    add_to_json("elided_constants",
                {{"file", e.label}, {"constants", e.constants}, {"first", e.first}, {"seed", e.seed}, {"own", e.own}});
    Progress::clear();
    if (!e.own.empty()) complain("note: " + printable(e.own));
    if (!e.constants) return;
    complain(fmt::format(
        "{}: note: {} constant{} elided ({{...}}) in it, {}{}: made up by seed {}, the same wherever the name is; "
        "--xla_dump_large_constants=true dumps whole ones, --fill-elided=refuse ends here",
        printable(e.label), e.constants, e.constants == 1 ? " is" : "s are", printable(e.first),
        e.constants == 1 ? "" : " …", e.seed));
  });
}

void require_whole(const std::string& spec, const Excerpt& e) {
  if (!e.incomplete) return;
  fail(FailureKind::kUnsupported,
       "{} is an excerpt ({}): what it computes is not known, so it is not run or rewritten; print, search, stats, "
       "memory, cost and view take it",
       spec, e.in_words());
}

}  // namespace hlo
