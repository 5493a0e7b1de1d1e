#include "lockstep/base/sync_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/shared_memory.h"

namespace lockstep {

bool sync_folder(const std::string& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems can't sync folders and return EINVAL.
  return !opened || fsync(opened.get()) == 0 || errno == EINVAL;
}

}  // namespace lockstep
