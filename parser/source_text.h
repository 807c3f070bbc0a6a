// What stands around modules in files: log prefixes, separators, other text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hlo {

// `I0312 10:01:02.123456 12345 hlo_module.cc:12] ` in front of lines, as glog and absl write them. False when the text
// has none; else the text without them, from its first line of HLO on.
bool strip_log_prefixes(std::string_view text, std::string* out);

// Parts of a file between lines of `// -----`; parts without anything but white space and comments are left out.
std::vector<std::string_view> split_modules(std::string_view text);

// Is the module's text in the grammar of 2019 (as `print --dialect=2019` writes it)? No layout of the entry in the
// header, and operands with their types: XLA writes the first since 2021 and left out the second later. Of a text
// without operands the answer is no.
bool is_text_of_2019(std::string_view text);

}  // namespace hlo
