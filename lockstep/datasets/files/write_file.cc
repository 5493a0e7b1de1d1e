#include "lockstep/datasets/files/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/datasets/files/file_errors.h"

namespace lockstep::datasets {

void write_file(const std::string& path, std::span<const uint8_t> bytes) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (file && write_all(file.get(), text)) return;
  const int error = errno;
  struct stat status {};
  if (file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) unlink(path.c_str());
  throw_write_error(path, error);
}

}  // namespace lockstep::datasets
