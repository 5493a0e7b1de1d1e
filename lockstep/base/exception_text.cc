#include "lockstep/base/exception_text.h"

#include <exception>

namespace lockstep {

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();  // libtorch's ends with a stack
    const size_t stack = text.find("\nException raised from ");
    return text.substr(0, stack);
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace lockstep
