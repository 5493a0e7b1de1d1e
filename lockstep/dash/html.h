// Text from outside in HTML.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::dash {

// With what HTML and attributes would take for their own as entities; what is no UTF-8, or no character that HTML may
// hold, is shown as "\x1b".
std::string escaped(std::string_view text);

}  // namespace lockstep::dash
