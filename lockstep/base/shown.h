// Text from outside, as messages show it.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// A name or a piece of a file as one line of a terminal shows it: control characters, and bytes that are no UTF-8, are
// written as \n or \x1b.
std::string shown(std::string_view text);

}  // namespace lockstep
