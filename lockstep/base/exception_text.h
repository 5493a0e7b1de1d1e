// The text of an exception of any type.
#pragma once

#include <string>

namespace lockstep {

// To be called in a catch block: what() of the exception that is handled, without libtorch's stack, or words for one
// that has none.
std::string exception_text();

}  // namespace lockstep
