// Notices that a run's folder is no longer the one in which the run began.
#pragma once

#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::train {

// One thread at a time.
class FolderWatch {
 public:
  // Throws IoError if there is no such folder.
  explicit FolderWatch(std::string folder);

  // Whether the path still leads to the folder that it led to at first.
  bool holds() const;
  // Throws IoError if it does not. To be called before each write, which would otherwise reach a file without a name,
  // or another run's folder.
  void check() const;

 private:
  std::string folder_;
  Descriptor handle_;  // open, so that no later folder can get the same inode
};

}  // namespace lockstep::train
