// What a person sees: names made harmless for terminals, and standard output that is looked after.
#pragma once
#include <string>
#include <string_view>

namespace hlo {

// Control characters, which could move a terminal's cursor or worse, as \x1b; line ends and tabs stay.
std::string printable(std::string_view text);

// Descriptors 0 to 2 exist afterwards, so that no file takes their place; one that was closed takes nothing.
void open_standard_streams();
// To be called where the output ends: flushes it. `code`, or 2 with a message where it did not get through; where a
// reader such as `head` has gone, the process ends by SIGPIPE, as is usual.
int end_of_output(int code);
// A line on standard error, whatever its state.
void complain(std::string_view message);

}  // namespace hlo
