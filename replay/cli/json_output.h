// What --json promises: one object on standard output, with the same keys whatever was found (docs/schemas/).
#pragma once
#include <string>

#include "ir/base/check.h"
#include "replay/cli/command.h"
#include "replay/report/overview/answers.h"

namespace hlo {

// complete() (replay/report/overview/answers.h) of what bisect and link find, which have no one place where it comes
// together.
Json complete_bisection(const Json& found);
Json complete_links(const Json& found);

// A number, or null where it is NaN or infinite: JSON has no word for those.
Json finite_or_null(double number);

// Remembers whether a command line asks for --json, so that its failures are told in JSON, too. Words behind `--` are
// those of another program.
void note_json_asked(int argc, char** argv);

bool json_asked();
// Does the command line have `--`, behind which another program's words stand?
bool dashes_given();
// One more entry of a list that the object has beside the command's own keys.
void add_to_json(const std::string& key, Json value);

// Where --json was asked for and nothing was printed yet: {"error": {"kind", "message", "diagnostics"}} on standard
// output. `kind` is the failure's word, of the command line "usage", of memory "memory".
void print_json_error(const Failure& failure);
void print_json_error(const std::string& kind, const std::string& message);

}  // namespace hlo
