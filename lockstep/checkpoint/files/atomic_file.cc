#include "lockstep/checkpoint/files/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/lease.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/sync_folder.h"
#include "lockstep/checkpoint/files/large_pages.h"

namespace lockstep::checkpoint {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string advice(int error) {
  if (error == EFBIG) return "the limit on file sizes (ulimit -f) is too low";
  if (error == EACCES || error == EPERM || error == EROFS) return "choose a folder that can be written";
  if (error == ENOENT || error == ENOTDIR) return "make the folder first";
  return "the file that was there before is unchanged";
}

[[noreturn]] void fail(const std::string& path, std::string_view what, int error) {
  const std::string line = cat(path, ": ", what, ": ", errno_text(error), "; ");
  if (error == ENOSPC || error == EDQUOT) throw DiskFullError(line, "free space there, or choose another folder");
  throw IoError(line, advice(error));
}

// Writes by way of a buffer, from which a full part goes to the disk past the page cache where the file system has
// O_DIRECT: twice as fast there, and what others read stays in memory. A small file goes through the page cache.
class FileSink : public ByteSink {
 public:
  FileSink(int fd, std::string path, const std::function<void()>& on_progress)
      : fd_(fd), path_(std::move(path)), on_progress_(on_progress) {}

  void write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), kPart - filled_);
      std::memcpy(buffer_.data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes.remove_prefix(count);
      if (filled_ < kPart) return;
      if (written_ == 0) direct_ = set_direct(true);
      write_out({buffer_.data(), std::exchange(filled_, 0)});
    }
  }

  // Writes what is left, which may end within a block of the disk's.
  void flush() {
    end_direct();
    write_out({buffer_.data(), std::exchange(filled_, 0)});
  }

  // Writes the first `bytes` of whole pages into the file, which is empty.
  void write_pages(std::span<const char> pages, size_t bytes) {
    direct_ = set_direct(true);
    write_out({pages.data(), pages.size()});
    end_direct();
    if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail(path_, "can't be cut to its size", errno);
  }

 private:
  static constexpr size_t kPart = 2u << 20;

  void write_out(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_, bytes.data(), std::min(bytes.size(), kPart));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EINVAL && std::exchange(direct_, false) && set_direct(false)) continue;
      if (count < 0) fail(path_, cat("can't write beyond ", human_bytes(written_)), errno);
      bytes.remove_prefix(static_cast<size_t>(count));
      written_ += static_cast<uint64_t>(count);
      if (on_progress_) on_progress_();
    }
  }

  void end_direct() {
    if (std::exchange(direct_, false)) set_direct(false);
  }

  // Whether the file's flags could be set: some file systems have no O_DIRECT, and say so here or at the first write.
  bool set_direct(bool on) const {
    const int flags = fcntl(fd_, F_GETFL);
    return flags >= 0 && fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }

  int fd_;
  bool direct_ = false;
  std::string path_;
  const std::function<void()>& on_progress_;
  LargePages buffer_{kPart};  // memory that is not touched takes none
  size_t filled_ = 0;
  uint64_t written_ = 0;
};

// A file that is removed with its owner unless it was renamed.
class TemporaryFile {
 public:
  // Opens the file and locks it. A writer that dies releases its lock. If another writer renamed the file between our
  // opening and our locking, our file no longer has the name.
  explicit TemporaryFile(const std::string& path) : path_(path), name_(temporary_name(path)) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      Descriptor fd(::open(name_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
      if (!fd) fail(path_, "can't write here", errno);
      if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) break;
      if (!bears_name(fd.get())) continue;
      if (const int error = ftruncate(fd.get(), 0) == 0 ? 0 : errno; error != 0) {
        ::unlink(name_.c_str());
        fail(path_, "can't write here", error);
      }
      fd_ = std::move(fd);
      return;
    }
    throw IoError(path_, ": another process is writing this file; give each run a folder of its own");
  }
  ~TemporaryFile() {
    if (fd_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_.get(); }

  void rename() {
    if (fsync(fd_.get()) != 0) fail(path_, "can't be brought to the disk", errno);
    check_lease(path_);
    if (std::rename(name_.c_str(), path_.c_str()) != 0) fail(path_, "can't be replaced", errno);
    fd_ = Descriptor();
  }

 private:
  bool bears_name(int fd) const {
    struct stat ours {};
    struct stat named {};
    return fstat(fd, &ours) == 0 && stat(name_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
  }

  std::string path_;
  std::string name_;
  Descriptor fd_;
};

void sync_name(const std::string& path) {
  if (!sync_folder(folder_of(path))) fail(path, "its folder can't be brought to the disk", errno);
}

template <typename Write>
void replace(const std::string& path, const std::function<void()>& on_progress, const Write& write) {
  TemporaryFile file(path);
  FileSink sink(file.fd(), path, on_progress);
  write(sink);
  file.rename();
  sync_name(path);
}

}  // namespace

std::string temporary_name(const std::string& path) { return path + ".tmp"; }

void write_atomically(const std::string& path, const std::function<void(ByteSink&)>& write,
                      const std::function<void()>& on_progress) {
  replace(path, on_progress, [&](FileSink& sink) {
    write(sink);
    sink.flush();
  });
}

void write_atomically(const std::string& path, std::span<const char> pages, size_t bytes,
                      const std::function<void()>& on_progress) {
  replace(path, on_progress, [&](FileSink& sink) { sink.write_pages(pages, bytes); });
}

void link_atomically(const std::string& target, const std::string& path) {
  const std::string name = temporary_name(path);
  check_lease(path);
  if (::unlink(name.c_str()) != 0 && errno != ENOENT) fail(path, "can't be replaced", errno);
  if (::symlink(target.c_str(), name.c_str()) != 0) fail(path, "can't be made a link", errno);
  if (std::rename(name.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(name.c_str());
    fail(path, "can't be replaced", error);
  }
  sync_name(path);
}

}  // namespace lockstep::checkpoint
