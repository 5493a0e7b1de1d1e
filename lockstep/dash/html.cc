#include "lockstep/dash/html.h"

#include <array>
#include <cstdio>

#include "lockstep/base/utf8.h"

namespace lockstep::dash {
namespace {

bool may_stand(uint32_t code) { return (code >= 0x20 && code != 0x7f) || code == '\n' || code == '\t'; }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character first = first_character(text);
    const std::string_view bytes = text.substr(0, first.bytes == 0 ? 1 : first.bytes);
    text.remove_prefix(bytes.size());
    if (first.bytes == 0 || !may_stand(first.code)) {
      std::array<char, 8> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<unsigned char>(bytes[0]));
      out += hex.data();
      continue;
    }
    switch (first.code) {
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
        out += bytes;
    }
  }
  return out;
}

}  // namespace lockstep::dash
