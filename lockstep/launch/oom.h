// Whether a process was killed for want of memory: the kernel counts such deaths for each cgroup.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::launch {

// One thread.
class OomWatch {
 public:
  OomWatch();                                           // of this process's cgroups
  explicit OomWatch(std::vector<std::string> folders);  // the cgroups' folders, either version

  // "out of memory (cgroup limit 8 GiB)" if the kernel has killed a process of the cgroups for that since this was
  // made; "" if not, or if the counts can't be read.
  std::string verdict() const;

 private:
  struct Folder {
    std::string path;
    uint64_t kills;
  };
  std::vector<Folder> folders_;
};

}  // namespace lockstep::launch
