#include "lockstep/datasets/write_png.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/datasets/files/file_errors.h"
#include "lockstep/image/encode.h"

namespace lockstep::datasets {

void write_png(const std::string& path, const image::Pixels& pixels) {
  const std::vector<uint8_t> png = image::encode_png(pixels);
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  const std::string_view bytes(reinterpret_cast<const char*>(png.data()), png.size());
  if (file && write_all(file.get(), bytes)) return;
  const int error = errno;
  struct stat status {};
  if (file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) unlink(path.c_str());
  throw_write_error(path, error);
}

}  // namespace lockstep::datasets
