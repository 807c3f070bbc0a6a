// What stands around modules in files: log prefixes, separators, other text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

// `I0312 10:01:02.123456 12345 hlo_module.cc:12] ` in front of lines, as glog and absl write them. False when the text
// has none, or no HLO behind them; else the modules in it without prefixes, each line where it stood, all else blank.
// `fragments`: lines that seem to be HLO outside of a module stay, too (parser/excerpt/excerpt.h reads them).
bool strip_log_prefixes(std::string_view text, std::string* out, bool fragments = false);
// Length of the log prefix that a line begins with, 0 where it has none: severity, time, thread, file:line, `] `.
size_t log_prefix(std::string_view line);

// Parts of a file between lines of `// -----`; parts without anything but white space and comments are left out.
// `at_headers`: a part begins at each line `HloModule …`, too.
std::vector<std::string_view> split_modules(std::string_view text, bool at_headers = false);

// Is the module's text in the grammar of 2019 (as `print --dialect=2019` writes it)? No layout of the entry in the
// header, and operands with their types: XLA writes the first since 2021 and left out the second later. Of a text
// without operands the answer is no.
bool is_text_of_2019(std::string_view text);

}  // namespace hlo
