// The error of threads that the system doesn't start.
#pragma once

#include <string>
#include <system_error>

namespace lockstep {

// Throws IoError for std::thread's `error`, with what to do: `wanted` threads "to load data" were to start.
[[noreturn]] void throw_no_threads(int wanted, const std::string& purpose, const std::system_error& error);

}  // namespace lockstep
