#include "lockstep/datasets/files/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "lockstep/base/error.h"

namespace lockstep::datasets {

Bytes::Bytes(size_t size, const std::string& path) : size_(size) {
  try {
    data_ = std::make_unique_for_overwrite<uint8_t[]>(size);
  } catch (const std::bad_alloc&) {
    throw IoError(path, ": out of memory: no ", human_bytes(size), " for its contents");
  }
}

DataFile::DataFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a named pipe waits for its writer.
  file_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_) throw DataError(path, ": can't be read: ", errno_text(errno), "; check the path and its permissions");
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) throw DataError(path, ": can't be read: ", errno_text(errno));
  if (S_ISDIR(status.st_mode)) throw DataError(path, ": is a directory where a file is expected");
  if (!S_ISREG(status.st_mode)) throw DataError(path, ": is a device, pipe or socket where a file is expected");
  size_ = static_cast<uint64_t>(status.st_size);
}

Bytes DataFile::head(size_t count) const {
  Bytes bytes(std::min<uint64_t>(count, size_), path_);
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = pread(file_.get(), bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError(path_, ": byte ", filled, ": can't be read: ", errno_text(errno));
    if (n == 0)
      throw DataError(path_, ": byte ", filled, ": the file ends here, but had ", size_, " bytes when opened");
    filled += static_cast<size_t>(n);
  }
  return bytes;
}

Bytes DataFile::all(uint64_t most) const {
  if (size_ > most) {
    throw DataError(path_, ": ", human_bytes(size_), " are too many: ", human_bytes(most),
                    " is the most that such a file may have; is it the right one?");
  }
  return head(size_);
}

}  // namespace lockstep::datasets
