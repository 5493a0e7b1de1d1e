#include "lockstep/base/exception_text.h"

#include <exception>

namespace lockstep {

std::string exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace lockstep
