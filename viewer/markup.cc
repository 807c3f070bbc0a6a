#include "viewer/markup.h"

#include <array>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "ir/base/check.h"

namespace hlo {
namespace {

// SHA-256 (FIPS 180-4).
std::array<uint8_t, 32> sha256(std::string_view text) {
  static constexpr std::array<uint32_t, 64> kRound = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<uint32_t, 8> h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>((uint64_t{text.size()} * 8) >> shift);
  for (size_t block = 0; block < padded.size(); block += 64) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i) w[i / 4] = (w[i / 4] << 8) | static_cast<uint8_t>(padded[block + i]);
    for (size_t i = 16; i < 64; ++i) {
      uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    std::array<uint32_t, 8> s = h;
    for (size_t i = 0; i < 64; ++i) {
      uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                    ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
      uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                    ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
      s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
    }
    for (size_t i = 0; i < 8; ++i) h[i] += s[i];
  }
  std::array<uint8_t, 32> out{};
  for (size_t i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(h[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

std::string base64(const std::array<uint8_t, 32>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = (three << 8) | (i + k < bytes.size() ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[(three >> (18 - 6 * k)) & 63];
  }
  return out;
}

// Of the template's one script, as it stands.
std::string content_policy(std::string_view page_template, bool frames) {
  constexpr std::string_view kBegin = "<script>", kEnd = "</script>";
  size_t begin = page_template.rfind(kBegin), end = page_template.rfind(kEnd);
  HLO_CHECK(begin != std::string_view::npos && begin < end, "a template has a script");
  begin += kBegin.size();
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; {}base-uri 'none'; "
      "form-action 'none'",
      base64(sha256(page_template.substr(begin, end - begin))), frames ? "frame-src 'self' file:; " : "");
}

}  // namespace

std::string MarkupValue::escaped(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

Markup MarkupMaker::filled(std::string_view pattern, std::initializer_list<MarkupValue> values) {
  Markup out;
  const MarkupValue* next = values.begin();
  for (size_t at = 0;;) {
    size_t place = pattern.find("{}", at);
    out.text_ += pattern.substr(at, place - at);
    if (place == std::string_view::npos) break;
    HLO_CHECK(next != values.end(), "a pattern's values: {}", pattern);
    out.text_ += (next++)->text();
    at = place + 2;
  }
  HLO_CHECK(next == values.end(), "a pattern's values: {}", pattern);
  return out;
}

Markup MarkupMaker::trusted(std::string text) {
  Markup out;
  out.text_ = std::move(text);
  return out;
}

Markup json_data(const nlohmann::ordered_json& data) {
  std::string json = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out = "<script type=\"application/json\" id=\"data\">";
  // These stand only inside of JSON's strings, where they may be written so.
  for (char c : json) switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  return MarkupMaker::trusted(out + "</script>");
}

std::string page_of(std::string_view page, std::initializer_list<std::pair<std::string_view, MarkupValue>> values,
                    bool frames) {
  std::string out;
  for (size_t at = 0;;) {
    size_t open = page.find("{{", at);
    out += page.substr(at, open - at);
    if (open == std::string_view::npos) return out;
    size_t close = page.find("}}", open);
    HLO_CHECK(close != std::string_view::npos, "a template's mark has an end");
    std::string_view name = page.substr(open + 2, close - open - 2);
    at = close + 2;
    if (name == "policy") {
      out += content_policy(page, frames);
      continue;
    }
    bool known = false;
    for (const auto& [key, value] : values)
      if (key == name) out += value.text(), known = true;
    HLO_CHECK(known, "a template names {}", name);
  }
}

}  // namespace hlo
