// A library for LD_PRELOAD: reading a file whose path holds "/failing_disk/" ends with an input/output error, as on a
// disk that is lost, and so does looking at a link to "lost_mount". A checkpoint whose path holds "/full_disk/" finds
// no space, unless the file "/full_disk/room" is there; below "/unsynced_disk/" it can't be brought to the disk. A
// checkpoint whose path holds "/held_disk/" is on the disk when the file "/held_disk/go" is there. Writing a checkpoint
// whose path holds "/slow_disk/" goes at 15 KB a second.
#include <dlfcn.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
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

bool holds(std::string_view path, std::string_view part) { return path.find(part) != std::string_view::npos; }

using Write = ssize_t (*)(int, const void*, size_t);
using Read = ssize_t (*)(int, void*, size_t, off_t);

ssize_t read_or_fail(const char* name, int file, void* to, size_t bytes, off_t at) {
  if (holds(path_of(file), "/failing_disk/")) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<Read>(dlsym(RTLD_NEXT, name))(file, to, bytes, at);
}

}  // namespace

extern "C" ssize_t write(int file, const void* from, size_t bytes) {
  constexpr size_t kPiece = 12'000;
  constexpr std::string_view kFullDisk = "/full_disk/";
  const std::string_view path = path_of(file);
  if (holds(path, "/slow_disk/") && holds(path, "/checkpoints/")) {
    usleep(800'000);
    bytes = std::min(bytes, kPiece);
  }
  const size_t disk = path.find(kFullDisk);
  if (disk != std::string_view::npos && holds(path, "/checkpoints/")) {
    const std::string room = std::string(path.substr(0, disk + kFullDisk.size())) + "room";
    if (access(room.c_str(), F_OK) != 0) {
      errno = ENOSPC;
      return -1;
    }
  }
  return reinterpret_cast<Write>(dlsym(RTLD_NEXT, "write"))(file, from, bytes);
}
extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  return read_or_fail("pread", file, to, bytes, at);
}
extern "C" ssize_t pread64(int file, void* to, size_t bytes, off_t at) {
  return read_or_fail("pread64", file, to, bytes, at);
}
extern "C" int stat(const char* path, struct stat* to) noexcept {
  constexpr std::string_view kLost = "lost_mount";
  char link[kLost.size() + 1];
  const ssize_t length = readlink(path, link, sizeof link);
  if (length > 0 && std::string_view(link, static_cast<size_t>(length)) == kLost) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<int (*)(const char*, struct stat*)>(dlsym(RTLD_NEXT, "stat"))(path, to);
}
extern "C" int fsync(int file) {
  constexpr std::string_view kDisk = "/held_disk/";
  const std::string_view path = path_of(file);
  if (holds(path, "/unsynced_disk/") && path.ends_with(".pt.tmp")) {
    errno = EIO;
    return -1;
  }
  const size_t disk = path.find(kDisk);
  if (disk != std::string_view::npos && path.ends_with(".pt.tmp")) {
    const std::string go(std::string(path.substr(0, disk + kDisk.size())) + "go");
    while (access(go.c_str(), F_OK) != 0) usleep(5000);
  }
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"))(file);
}
