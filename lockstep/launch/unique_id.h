// A name that no other launch has.
#pragma once

#include <string>

namespace lockstep::launch {

// Random, by the kernel: "1b4e28ba-2fa1-41d2-883f-0016d3cca427".
std::string unique_id();

}  // namespace lockstep::launch
