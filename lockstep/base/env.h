// Environment variables, checked: a value that can't be read is a ConfigError that names the variable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// The variable's value; nothing if it is unset or empty.
std::optional<std::string> env(const char* name);

// The same as a whole number; throws ConfigError unless it is one within [least, most].
std::optional<int64_t> env_int(const char* name, int64_t least, int64_t most);

// Cores that this process may use: CPU affinity and the cgroup's quota, at least 1.
int usable_cores();

// Pins this thread, and those that it starts from now on, to `count` of the usable cores: share number `index` of them,
// beginning anew where there are too few. Throws IoError if the system refuses.
void pin_to_cores(int index, int count);

// Bytes of memory that this process may still be given: the least of what the machine and its cgroups have left.
uint64_t available_memory();

}  // namespace lockstep
