#include "lockstep/predict/standard_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::predict {

StandardInput::StandardInput() : memory_(memfd_create("standard-input", MFD_CLOEXEC)) {
  constexpr size_t kMost = size_t{1} << 30, kPiece = size_t{1} << 16;
  if (!memory_) throw IoError(kName, ": ", errno_text(errno));
  std::vector<char> piece(kPiece);
  size_t total = 0;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(kName, ": ", errno_text(errno));
    if (got == 0) break;
    total += static_cast<size_t>(got);
    if (total > kMost) throw DataError(kName, ": more than a gigabyte; it should hold one image");
    if (write(memory_.get(), piece.data(), static_cast<size_t>(got)) != got) {
      throw IoError(kName, ": ", errno_text(errno));
    }
  }
  if (total == 0) throw DataError(kName, ": empty; it should hold an image, as in: … -i - < cat.jpg");
}

std::string StandardInput::path() const { return cat("/proc/self/fd/", memory_.get()); }

std::string StandardInput::named(std::string text) const {
  const std::string own = path();
  for (size_t at = text.find(own); at != std::string::npos; at = text.find(own)) text.replace(at, own.size(), kName);
  return text;
}

}  // namespace lockstep::predict
