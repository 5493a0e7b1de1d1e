#include "lockstep/base/file_content.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/shared_memory.h"

namespace lockstep {

std::optional<std::string> file_content(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string content;
  std::array<char, 1 << 16> block;
  for (ssize_t count = 1; count != 0;) {
    count = read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    content.append(block.data(), static_cast<size_t>(count));
  }
  return content;
}

}  // namespace lockstep
