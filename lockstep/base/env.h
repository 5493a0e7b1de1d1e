// Checked environment variables, and the limits on cores and memory that this process runs under.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

// The variable's value, or nothing if it is unset or empty.
std::optional<std::string> env(const char* name);

// The variable's value as a whole number, or nothing if it is unset or empty. Throws ConfigError that names the
// variable unless the value is a whole number within [least, most].
std::optional<int64_t> env_int(const char* name, int64_t least, int64_t most);

// The number of cores that this process may use, at least 1. CPU affinity and the cgroup's quota limit it. A rank that
// our launcher has bound to some of its node's (--numa-binding) gets those that all ranks of the node share: numbers
// of threads follow from it, which are to be the same on all.
int usable_cores();
// The variable by which the launcher tells that number to ranks that it binds.
constexpr const char* kNodeCores = "LOCKSTEP_NODE_CORES";

// The tightest limits among this process's cgroups; nothing where there is no limit.
struct CgroupLimits {
  std::optional<double> cpus;
  std::optional<uint64_t> memory;  // bytes
};
CgroupLimits cgroup_limits();

// Bytes of memory that this process can still get: the minimum over the machine and its cgroups of what is left there.
uint64_t available_memory();

}  // namespace lockstep
