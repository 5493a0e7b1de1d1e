// A library for LD_PRELOAD: reading a file whose path holds "/failing_disk/" ends with an input/output error, as on a
// disk that is lost. A checkpoint whose path holds "/slow_disk/" is on the disk when the file "/slow_disk/go" is there.
#include <dlfcn.h>
#include <limits.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

std::string_view path_of(int file) {
  static thread_local char path[PATH_MAX];
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path);
  return {path, length > 0 ? static_cast<size_t>(length) : 0};
}

using Read = ssize_t (*)(int, void*, size_t, off_t);

ssize_t read_or_fail(const char* name, int file, void* to, size_t bytes, off_t at) {
  if (path_of(file).find("/failing_disk/") != std::string_view::npos) {
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
extern "C" int fsync(int file) {
  constexpr std::string_view kDisk = "/slow_disk/";
  const std::string_view path = path_of(file);
  const size_t disk = path.find(kDisk);
  if (disk != std::string_view::npos && path.ends_with(".pt.tmp")) {
    const std::string go(std::string(path.substr(0, disk + kDisk.size())) + "go");
    while (access(go.c_str(), F_OK) != 0) usleep(5000);
  }
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"))(file);
}
