// Errors that happened in another process: thrown here as the type that they had there.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep {

// Throws the Error whose processes end with `exit_code`, with this line.
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
