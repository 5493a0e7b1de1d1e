// Text from a file, made safe for one line of an error message.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::checkpoint {

// At most `most` bytes of the text. Control characters and what is not ASCII become '?'; "..." marks a cut.
inline std::string printable(std::string_view text, size_t most = 100) {
  std::string line(text.substr(0, most));
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > most ? line + "..." : line;
}

// How a file starts, for the error that says it is of no known format.
inline std::string quoted_start(std::string_view start) { return '"' + printable(start, 24) + '"'; }

}  // namespace lockstep::checkpoint
