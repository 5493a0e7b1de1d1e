// UTF-8, which checkpoints, JSON and terminals take; names of files may be anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep {

struct Utf8Character {
  size_t bytes = 0;  // 0: the text does not begin with a well-formed character
  uint32_t code = 0;
};

// The first character of a text that is not empty: no surrogate, nothing overlong.
Utf8Character first_character(std::string_view text);

// Whether the text is well-formed UTF-8.
bool is_utf8(std::string_view text);

}  // namespace lockstep
