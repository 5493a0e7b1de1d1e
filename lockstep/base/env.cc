#include "lockstep/base/env.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

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

namespace {

// The folders of this process's cgroup (version 2) from its own up to the root.
std::vector<std::string> cgroup_folders() {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3);; path.resize(path.find_last_of('/'))) {
      folders.push_back("/sys/fs/cgroup" + path);
      if (path.empty() || path == "/") break;
    }
  }
  return folders;
}

// "max", for no limit, fails to parse.
uint64_t read_number(const std::string& path, uint64_t fallback) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : fallback;
}

}  // namespace

CgroupLimits cgroup_limits() {
  double cpus = std::numeric_limits<double>::infinity();
  uint64_t memory = std::numeric_limits<uint64_t>::max();
  for (const auto& folder : cgroup_folders()) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period && period > 0) cpus = std::min(cpus, quota / period);
    memory = std::min(memory, read_number(folder + "/memory.max", memory));
  }
  CgroupLimits limits;
  if (std::isfinite(cpus)) limits.cpus = cpus;
  if (memory != std::numeric_limits<uint64_t>::max()) limits.memory = memory;
  return limits;
}

int usable_cores() {
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
  for (const auto& folder : cgroup_folders()) {
    const uint64_t limit = read_number(folder + "/memory.max", std::numeric_limits<uint64_t>::max());
    const uint64_t used = read_number(folder + "/memory.current", 0);
    if (limit != std::numeric_limits<uint64_t>::max()) available = std::min(available, limit - std::min(limit, used));
  }
  return available;
}

}  // namespace lockstep
