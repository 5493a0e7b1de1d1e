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

// What the cgroups of this process allow it, the least of each; nothing where there is no limit.
struct CgroupLimits {
  std::optional<double> cpus;
  std::optional<uint64_t> memory;  // bytes
};
CgroupLimits cgroup_limits();

// Bytes of memory that this process may still be given: the least of what the machine and its cgroups have left.
uint64_t available_memory();

}  // namespace lockstep
