// Detection of processes that the kernel's OOM killer has ended, by its counters for each cgroup.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::launch {

// One thread.
class OomWatch {
 public:
  OomWatch();                                           // watches this process's cgroups
  explicit OomWatch(std::vector<std::string> folders);  // watches the cgroups with these folders, version 1 or 2

  // "out of memory (cgroup limit 8 GiB)" if the OOM killer has ended a process of the cgroups since the construction;
  // "" if not, or if the counters can't be read.
  std::string verdict() const;

 private:
  struct Folder {
    std::string path;
    uint64_t kills;
  };
  std::vector<Folder> folders_;
};

}  // namespace lockstep::launch
