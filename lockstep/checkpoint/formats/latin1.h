// Bytes as Python writes them where it has text only: each byte is the character of its number, in UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

// The number of bytes that a text of UTF-8 stands for; nothing if it holds other characters.
std::optional<size_t> latin1_length(std::string_view utf8);

// Writes those bytes to `bytes`, which has room for latin1_length() of them.
void latin1_decode(std::string_view utf8, char* bytes);

std::string latin1_encode(std::string_view bytes);

}  // namespace lockstep::checkpoint
