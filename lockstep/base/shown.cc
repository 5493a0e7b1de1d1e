#include "lockstep/base/shown.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lockstep/base/utf8.h"

namespace lockstep {
namespace {

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string line;
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<size_t>(1, character.bytes));
    if (character.bytes > 0 && !is_control(character.code)) {
      line += bytes;
    } else if (bytes == "\n") {
      line += "\\n";
    } else {
      for (const char byte : bytes) {
        const auto value = static_cast<uint8_t>(byte);
        line += {'\\', 'x', kDigits[value / 16], kDigits[value % 16]};
      }
    }
    text.remove_prefix(bytes.size());
  }
  return line;
}

}  // namespace lockstep
