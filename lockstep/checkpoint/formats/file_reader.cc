#include "lockstep/checkpoint/formats/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {

InputFile open_input(const std::string& path) {
  // Opening must not wait for the writer of a pipe: it does not block, and a pipe is refused below.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) throw DataError(path, ": there is no such file");
  if (!fd) throw IoError(path, ": can't be opened: ", errno_text(errno));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) throw IoError(path, ": ", errno_text(errno));
  if (S_ISDIR(status.st_mode)) throw DataError(path, ": a directory, not a checkpoint; name a .pt file in it");
  if (!S_ISREG(status.st_mode)) throw DataError(path, ": not a regular file");
  if (status.st_size == 0) throw DataError(path, ": the file is empty");
  return {std::move(fd), static_cast<uint64_t>(status.st_size)};
}

std::string start_of(const std::string& path, const InputFile& file) {
  std::string start(std::min<uint64_t>(file.bytes, 64), '\0');
  read_at(file.fd.get(), path, 0, start.data(), start.size());
  return start;
}

void read_at(int fd, const std::string& path, uint64_t offset, void* memory, uint64_t bytes) {
  constexpr uint64_t kLargestRead = 1u << 30;  // Linux reads at most 2 GiB at once
  for (uint64_t done = 0; done < bytes;) {
    const auto count = pread(fd, static_cast<char*>(memory) + done, std::min(bytes - done, kLargestRead),
                             static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw IoError(path, ": can't read at byte ", offset + done, ": ", errno_text(errno));
    if (count == 0) throw DataError(path, ": cut short at byte ", offset + done);
    done += static_cast<uint64_t>(count);
  }
}

}  // namespace lockstep::checkpoint
