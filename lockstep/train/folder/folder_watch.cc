#include "lockstep/train/folder/folder_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::train {

FolderWatch::FolderWatch(std::string folder)
    : folder_(std::move(folder)), handle_(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!handle_) throw IoError(folder_, ": can't be opened: ", errno_text(errno));
}

bool FolderWatch::holds() const {
  struct stat ours {};
  struct stat there {};
  return fstat(handle_.get(), &ours) == 0 && stat(folder_.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

void FolderWatch::check() const {
  if (holds()) return;
  throw IoError(folder_,
                ": the run's folder was removed or replaced while the run was under way; "
                "put it back and go on with --resume, or start the run anew");
}

}  // namespace lockstep::train
