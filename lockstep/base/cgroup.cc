#include "lockstep/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>

namespace lockstep {
namespace {

// "/a/b", "/a" and "" under `root`. In a container the first may be paths of the host that are not there.
void add_folders(std::vector<std::string>& folders, const std::string& root, std::string path) {
  if (path == "/") path.clear();
  for (;; path.resize(path.find_last_of('/'))) {
    folders.push_back(root + path);
    if (path.find('/') == std::string::npos) return;
  }
}

bool names(const std::string& controllers, const std::string& wanted) {
  std::istringstream in(controllers);
  for (std::string each; std::getline(in, each, ',');) {
    if (each == wanted) return true;
  }
  return false;
}

// "max", for no limit, and "-1" are no number.
std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (!(file >> value) || value < 0) return std::nullopt;
  return static_cast<uint64_t>(value);
}

// The sum of these lines of memory.stat, "name bytes".
uint64_t sum_of(const std::string& path, std::initializer_list<const char*> wanted) {
  std::ifstream file(path);
  std::string name;
  uint64_t sum = 0;
  for (uint64_t bytes = 0; file >> name >> bytes;) {
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) sum += bytes;
  }
  return sum;
}

// For no limit version 1 has a number near the end of 63 bits.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

}  // namespace

Cgroups::Cgroups(const std::string& list, const std::string& root) {
  std::ifstream file(list);
  for (std::string line; std::getline(file, line);) {  // "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1)
    std::istringstream in(line);
    std::string number, controllers, path;
    std::getline(in, number, ':');
    std::getline(in, controllers, ':');
    std::getline(in, path);
    if (controllers.empty()) add_folders(unified_, root, path);
    if (names(controllers, "memory")) add_folders(memory_, root + "/memory", path);
    if (!names(controllers, "cpu")) continue;
    for (const auto& folder : {std::string("cpu"), controllers}) add_folders(cpu_, root + '/' + folder, path);
  }
}

std::optional<double> Cgroups::cpus() const {
  std::optional<double> least;
  const auto take = [&least](double quota, double period) {
    if (period > 0) least = std::min(least.value_or(quota / period), quota / period);
  };
  for (const auto& folder : unified_) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period) take(quota, period);
  }
  for (const auto& folder : cpu_) {
    const auto quota = read_number(folder + "/cpu.cfs_quota_us"), period = read_number(folder + "/cpu.cfs_period_us");
    if (quota && period) take(static_cast<double>(*quota), static_cast<double>(*period));
  }
  return least;
}

std::vector<Cgroups::Memory> Cgroups::limited_memory() const {
  std::vector<Memory> all;
  const auto add = [&all](std::optional<uint64_t> limit, uint64_t used, uint64_t reclaimable) {
    if (limit && *limit < kNoLimit) all.push_back({*limit, used - std::min(used, reclaimable)});
  };
  for (const auto& folder : unified_) {
    add(read_number(folder + "/memory.max"), read_number(folder + "/memory.current").value_or(0),
        sum_of(folder + "/memory.stat", {"inactive_file", "active_file", "slab_reclaimable"}));
  }
  for (const auto& folder : memory_) {
    add(read_number(folder + "/memory.limit_in_bytes"), read_number(folder + "/memory.usage_in_bytes").value_or(0),
        sum_of(folder + "/memory.stat", {"total_inactive_file", "total_active_file"}));
  }
  return all;
}

std::optional<uint64_t> Cgroups::memory() const {
  std::optional<uint64_t> least;
  for (const auto& [limit, used] : limited_memory()) least = std::min(least.value_or(limit), limit);
  return least;
}

std::optional<uint64_t> Cgroups::memory_left() const {
  std::optional<uint64_t> least;
  for (const auto& [limit, used] : limited_memory()) {
    const uint64_t left = limit - std::min(limit, used);
    least = std::min(least.value_or(left), left);
  }
  return least;
}

}  // namespace lockstep
