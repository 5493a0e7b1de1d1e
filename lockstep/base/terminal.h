// What a terminal shows of a line.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// The width in columns of the terminal at a descriptor; 0 if it is no terminal.
int terminal_columns(int descriptor);

// The line in lines of at most `columns` characters, broken between words; the later ones are indented as the text of
// the first. A word that is longer than a line stays whole. `columns` 0: unchanged.
std::string wrap_line(std::string_view line, int columns);

// The line without the escape sequences that move a terminal's cursor, erase or colour.
std::string without_escapes(std::string_view line);

}  // namespace lockstep
