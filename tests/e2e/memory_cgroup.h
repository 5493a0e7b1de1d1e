// A cgroup whose processes have so much memory together, for the kernel's OOM killer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::e2e {

// Version 1 or 2, below this machine's root. Whoever is left in it is killed with this object. One thread.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(uint64_t bytes);
  ~MemoryCgroup();
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  // Whether it could be made: that takes root, and a hierarchy that may be written to.
  bool is_there() const { return !path_.empty(); }
  // The command, which enters it first.
  std::vector<std::string> entered_by(std::vector<std::string> command) const;
  // How many of its processes the kernel has killed.
  int64_t kills() const;
  // Takes memory in it until the kernel has killed a process; returns whether it did. The kernel prefers `victim`.
  bool fill_until_it_kills(pid_t victim) const;

 private:
  std::string processes() const { return path_ + "/cgroup.procs"; }

  std::string path_;
};

}  // namespace lockstep::e2e
