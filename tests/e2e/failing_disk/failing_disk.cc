// A library for LD_PRELOAD: reading a file whose path holds "/failing_disk/" ends with an input/output error, as on a
// disk that is lost.
#include <dlfcn.h>
#include <limits.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace {

bool is_lost(int file) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 &&
         std::string_view(path, static_cast<size_t>(length)).find("/failing_disk/") != std::string_view::npos;
}

using Read = ssize_t (*)(int, void*, size_t, off_t);

ssize_t read_or_fail(const char* name, int file, void* to, size_t bytes, off_t at) {
  if (is_lost(file)) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<Read>(dlsym(RTLD_NEXT, name))(file, to, bytes, at);
}

}  // namespace

extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  return read_or_fail("pread", file, to, bytes, at);
}
extern "C" ssize_t pread64(int file, void* to, size_t bytes, off_t at) {
  return read_or_fail("pread64", file, to, bytes, at);
}
