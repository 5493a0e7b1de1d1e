#include "lockstep/launch/runs/file_end.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

std::string end_of(const std::string& path, size_t bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat there {};
  if (!file || fstat(file.get(), &there) != 0) return "";
  const auto size = static_cast<size_t>(there.st_size);
  std::string text(std::min(bytes, size), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

// A line ends with its newline, so the one at the very end of the file ends the last line.
uint64_t begin_of_lines(int descriptor, uint64_t size, uint64_t lines) {
  constexpr uint64_t kBlock = 64 * 1024;
  std::string block;
  uint64_t ends = 0;
  for (uint64_t end = size; end > 0;) {
    const uint64_t begin = end > kBlock ? end - kBlock : 0;
    block.resize(end - begin);
    if (pread(descriptor, block.data(), block.size(), static_cast<off_t>(begin)) !=
        static_cast<ssize_t>(block.size())) {
      return 0;
    }
    for (uint64_t at = end; at > begin; --at) {
      const bool ends_line = block[at - 1 - begin] == '\n' || at == size;
      if (ends_line && ++ends > lines) return at;
    }
    end = begin;
  }
  return lines == 0 ? size : 0;
}

std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

}  // namespace lockstep::launch
