// Text as it stands in XML, HTML and Graphviz's labels.
#pragma once
#include <string>
#include <string_view>

namespace hlo {

// With & < > and both quotes as entities: safe between tags and within quoted attributes.
std::string xml_escaped(std::string_view text);

}  // namespace hlo
