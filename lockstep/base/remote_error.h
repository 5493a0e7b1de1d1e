// Errors of another process, thrown again in this one with the type that they had there.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep {

// Throws the type of Error that ends a process with `exit_code`; `line` is its text.
[[noreturn]] inline void throw_error(int exit_code, const std::string& line) {
  switch (exit_code) {
    case ConfigError::kExitCode:
      throw ConfigError(line);
    case DataError::kExitCode:
      throw DataError(line);
    case CommError::kExitCode:
      throw CommError(line);
    case BugError::kExitCode:
      throw BugError(line);
    case IoError::kExitCode:
      throw IoError(line);
    case DesyncError::kExitCode:
      throw DesyncError(line);
    default:
      throw Error(exit_code, line);
  }
}

}  // namespace lockstep
