// For tests: a full disk.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace lockstep::testing_support {

// While it lives no file may grow beyond a limit: writes fail with EFBIG, as they fail with ENOSPC on a full disk. One
// that the limit refuses sends a signal, which `handler` gets.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes, sighandler_t handler = SIG_IGN) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, handler);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_;
};

}  // namespace lockstep::testing_support
