#include "lockstep/checkpoint/formats/latin1.h"

namespace lockstep::checkpoint {
namespace {

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

std::optional<size_t> latin1_length(std::string_view utf8) {
  size_t length = 0;
  for (size_t i = 0; i < utf8.size(); ++i, ++length) {
    if (is_ascii(utf8[i])) continue;
    const auto lead = static_cast<unsigned char>(utf8[i]);
    if ((lead != 0xc2 && lead != 0xc3) || ++i == utf8.size() || (utf8[i] & 0xc0) != 0x80) return std::nullopt;
  }
  return length;
}

void latin1_decode(std::string_view utf8, char* bytes) {
  for (size_t i = 0; i < utf8.size(); ++i) {
    if (is_ascii(utf8[i])) {
      *bytes++ = utf8[i];
    } else {
      const int lead = utf8[i];
      *bytes++ = static_cast<char>((lead & 3) << 6 | (utf8[++i] & 0x3f));
    }
  }
}

std::string latin1_encode(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 2);
  for (const char c : bytes) {
    if (is_ascii(c)) {
      text += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += static_cast<char>(0xc0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

}  // namespace lockstep::checkpoint
