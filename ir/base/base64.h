// Bytes as letters that stand in JSON and markup as they are.
#pragma once
#include <string>
#include <string_view>

namespace hlo {

std::string base64(std::string_view bytes);

}  // namespace hlo
