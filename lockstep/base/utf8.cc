#include "lockstep/base/utf8.h"

#include <array>

namespace lockstep {

Utf8Character first_character(std::string_view text) {
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};  // of so many bytes
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {1, first};
  const size_t bytes = first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  uint32_t code = first & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  const bool half_of_a_pair = code >= 0xd800 && code < 0xe000;  // of UTF-16
  return code < kLeast[bytes] || code > 0x10ffff || half_of_a_pair ? Utf8Character{} : Utf8Character{bytes, code};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace lockstep
