// The control groups that this process is in, of version 2 and of version 1: their limits on cores and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

class Cgroups {
 public:
  // Reads the groups that `list` names; their files are under `root`. Other places than the usual ones are for tests.
  explicit Cgroups(const std::string& list = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");

  // The least limit of all groups from this process's own up to the root; nothing where there is none.
  std::optional<double> cpus() const;
  std::optional<uint64_t> memory() const;  // bytes

  // Bytes that the groups still let this process have. What the kernel takes back when it is asked for memory, the
  // cached contents of files above all, counts as free. Nothing where there is no limit.
  std::optional<uint64_t> memory_left() const;

 private:
  struct Memory {
    uint64_t limit, used;
  };
  std::vector<Memory> limited_memory() const;

  // From this process's own group up to the root, by hierarchy.
  std::vector<std::string> unified_, memory_, cpu_;
};

}  // namespace lockstep
