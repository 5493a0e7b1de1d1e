// A command of the shell, for tests of what other programs make of ours.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::testing_support {

struct CommandOutput {
  int status = 0;    // its exit code
  std::string text;  // of its standard output
};

// Runs the command to its end. Throws IoError if no process can be started.
inline CommandOutput run_command(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw IoError("can't run ", command);
  CommandOutput output;
  std::array<char, 4096> buffer{};
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) output.text.append(buffer.data(), count);
  output.status = WEXITSTATUS(pclose(pipe));
  return output;
}

}  // namespace lockstep::testing_support
