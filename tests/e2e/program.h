// Runs a program of ours as a user does, and watches it and all processes that come of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::e2e {

// Sanitizers come before every library, so none can be preloaded then.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// A run that takes longer hangs. On a busy machine ordinary ones have taken over a minute.
constexpr std::chrono::seconds kHang(300);

struct Result {
  int exit_code = -1;  // 128 + N where signal N ended it
  double seconds = 0;  // from its start to its end
  double peak_mb = 0;  // the most memory that it, or one of its children, has had
  std::string out, err;
};

// One start of a program, its output in files of a folder of its own. Whatever is left of it is killed with this
// object. One thread.
class Program {
 public:
  struct Options {
    std::vector<std::string> command;  // the program's path, then its arguments
    std::string folder = ".";          // where it runs
  };
  // Throws IoError if it can't be started.
  explicit Program(const Options& options);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // Waits for its end; kills it, and says so, after `timeout`.
  Result wait(std::chrono::seconds timeout = kHang);
  bool has_ended() { return reap(/*block=*/false); }
  void signal(int number) const;
  std::string out() const;  // what it has said so far
  std::string err() const;

  // The processes that came of it and still run, itself included: those that inherited its mark. With a name: only
  // those that are called so ("lockstep-worker"). One that is just becoming another program (exec) may be missing.
  std::vector<pid_t> processes(std::string_view name = "") const;
  // Whether all of them were gone before `timeout`.
  bool all_gone(std::chrono::milliseconds timeout) const;

 private:
  bool reap(bool block);

  std::string mark_;
  testing_support::TempDir output_;
  std::chrono::steady_clock::time_point began_;
  pid_t pid_ = -1;
  bool ended_ = false;
  Result result_;
};

// Where lockstep and lockstep-worker lie: $LOCKSTEP_BIN, or beside this program.
std::string bin_folder();
// `lockstep ARGUMENTS…`, run to its end.
Program::Options lockstep_command(const std::vector<std::string>& arguments, const std::string& folder = ".");
Result lockstep(const std::vector<std::string>& arguments, const std::string& folder = ".",
                std::chrono::seconds timeout = kHang);

// Whether `condition` came true before `timeout`; asked every few milliseconds.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds timeout = std::chrono::milliseconds(20000));

using testing_support::TempDir;

std::string read_file(const std::string& path);                        // "" if it can't be read
void write_file(const std::string& path, const std::string& content);  // throws IoError

}  // namespace lockstep::e2e
