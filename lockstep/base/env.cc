#include "lockstep/base/env.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "lockstep/base/cgroup.h"
#include "lockstep/base/error.h"

namespace lockstep {

std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int64_t> env_int(const char* name, int64_t least, int64_t most) {
  const auto text = env(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) {
    throw ConfigError("environment variable ", name, "=", *text, ": expected a whole number from ", least, " to ",
                      most);
  }
  return value;
}

CgroupLimits cgroup_limits() {
  const Cgroups groups;
  return {.cpus = groups.cpus(), .memory = groups.memory()};
}

int usable_cores() {
  constexpr int kMost = 1 << 20;
  if (const auto cores = env_int(kNodeCores, 1, kMost)) return static_cast<int>(*cores);
  cpu_set_t set;
  CPU_ZERO(&set);
  const int affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double quota = std::ceil(cgroup_limits().cpus.value_or(affinity));
  return std::max(1, quota < affinity ? static_cast<int>(quota) : affinity);
}

uint64_t available_memory() {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string name;
    uint64_t kib = 0;
    if (in >> name >> kib && name == "MemAvailable:") available = kib * 1024;
  }
  if (const auto left = Cgroups().memory_left()) available = std::min(available, *left);
  return available;
}

}  // namespace lockstep
