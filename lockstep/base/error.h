// The errors of the library. An error carries one line (what happened, where, what to do) and the exit code of a
// process that it ends.
#pragma once

#include <stdexcept>
#include <string>

#include "lockstep/base/text.h"

namespace lockstep {

// The base class of all the library's errors.
class Error : public std::runtime_error {
 public:
  Error(int exit_code, const std::string& line) : std::runtime_error(line), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// One type per exit code, built from parts: throw DataError(path, ": byte ", n, ": …").
template <int Code>
class ErrorOf : public Error {
 public:
  static constexpr int kExitCode = Code;
  template <typename... Parts>
  explicit ErrorOf(const Parts&... parts) : Error(Code, cat(parts...)) {}
};

using ConfigError = ErrorOf<2>;   // the user's mistake: options, environment, a file that doesn't fit the model
using DataError = ErrorOf<65>;    // bad data: a damaged, mislabelled or hostile file
using CommError = ErrorOf<69>;    // a peer or the network failed: dead, late, unreachable
using BugError = ErrorOf<70>;     // a bug in the library, or a misuse of its interface
using IoError = ErrorOf<74>;      // the machine failed: no space, no permission, out of memory
using DesyncError = ErrorOf<76>;  // ranks called different collectives

constexpr int kExitStoppedOnRequest = 75;  // Ctrl-C or SIGTERM, with a checkpoint saved

// "No space left on device (errno 28)" for the errno of a failed call.
std::string errno_text(int error);

}  // namespace lockstep
