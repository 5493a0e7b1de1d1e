#include "lockstep/datasets/files/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/file_errors.h"

namespace lockstep::datasets {

Bytes::Bytes(size_t size, const std::string& path) : size_(size) {
  try {
    data_ = std::make_unique_for_overwrite<uint8_t[]>(size);
  } catch (const std::bad_alloc&) {
    throw IoError(shown(path), ": out of memory: no ", human_bytes(size), " for its contents");
  }
}

DataFile::DataFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a named pipe waits for its writer.
  file_ = Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_ && errno == ENXIO)
    throw DataError(shown(path), ": is a socket or a missing device where a file is expected");
  if (!file_) throw_file_error(path, "can't be read", errno);
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) throw_file_error(path, "can't be read", errno);
  if (S_ISDIR(status.st_mode)) throw DataError(shown(path), ": is a directory where a file is expected");
  if (!S_ISREG(status.st_mode)) throw DataError(shown(path), ": is a device, pipe or socket where a file is expected");
  size_ = static_cast<uint64_t>(status.st_size);
}

void DataFile::read(uint64_t offset, std::span<uint8_t> to) const {
  size_t filled = 0;
  while (filled < to.size()) {
    const uint64_t at = offset + filled;
    const ssize_t n = pread(file_.get(), to.data() + filled, to.size() - filled, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_file_error(path_, cat("byte ", at, ": can't be read"), errno);
    if (n == 0)
      throw DataError(shown(path_), ": byte ", at, ": the file ends here, but had ", size_, " bytes when opened");
    filled += static_cast<size_t>(n);
  }
}

Bytes DataFile::head(size_t count) const {
  Bytes bytes(std::min<uint64_t>(count, size_), path_);
  read(0, {bytes.data(), bytes.size()});
  return bytes;
}

void DataFile::check_size(uint64_t most) const {
  if (size_ <= most) return;
  throw DataError(shown(path_), ": ", human_bytes(size_), " are too many: ", human_bytes(most),
                  " is the most that such a file may have; is it the right one?");
}

Bytes DataFile::all(uint64_t most) const {
  check_size(most);
  return head(size_);
}

std::span<const uint8_t> DataFile::part(uint64_t offset, size_t count, std::vector<uint8_t>& memory) const {
  if (offset > size_ || count > size_ - offset) {
    throw DataError(shown(path_), ": byte ", offset, ": ", count, " bytes are to be here, and the file has ", size_,
                    "; it was cut short: get it again");
  }
  try {
    memory.resize(count);
  } catch (const std::bad_alloc&) {
    throw IoError(shown(path_), ": out of memory: no ", human_bytes(count), " for its contents");
  }
  read(offset, memory);
  return memory;
}

void DataFile::will_need(uint64_t offset, uint64_t count) const {
  posix_fadvise(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(count), POSIX_FADV_WILLNEED);
}

std::span<const uint8_t> read_whole(const std::string& path, std::vector<uint8_t>& memory, uint64_t most) {
  const DataFile file(path);
  file.check_size(most);
  return file.part(0, file.size(), memory);
}

}  // namespace lockstep::datasets
