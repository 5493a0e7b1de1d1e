#include "lockstep/base/process_state.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/base/folder_entries.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

struct Call {
  long number;
  const char* name;
  bool of_file;  // its first argument is a descriptor
};
constexpr Call kCalls[] = {{SYS_read, "read", true},
                           {SYS_pread64, "read", true},
                           {SYS_readv, "read", true},
                           {SYS_write, "write", true},
                           {SYS_pwrite64, "write", true},
                           {SYS_writev, "write", true},
                           {SYS_fsync, "fsync", true},
                           {SYS_fdatasync, "fsync", true},
                           {SYS_recvfrom, "a wait for the network", true},
                           {SYS_recvmsg, "a wait for the network", true},
                           {SYS_connect, "a connect", true},
                           {SYS_poll, "a wait for input", false},
                           {SYS_ppoll, "a wait for input", false},
                           {SYS_epoll_wait, "a wait for input", false},
                           {SYS_epoll_pwait, "a wait for input", false},
                           {SYS_select, "a wait for input", false},
                           {SYS_futex, "a wait for a lock or another thread", false},
                           {SYS_nanosleep, "a pause of its own", false},
                           {SYS_clock_nanosleep, "a pause of its own", false},
                           {SYS_pause, "a pause of its own", false},
                           {SYS_wait4, "a wait for a process", false},
                           {SYS_flock, "a wait for a file's lock", true}};

}  // namespace

std::string process_fields(int pid) {
  std::ifstream file(cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text, '\0');  // empty, and no exception, if the process ends now
  // "812 (a name) T …": the name may hold anything, brackets too.
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? "" : text.substr(name_end + 2);
}

char process_state(int pid) {
  const std::string fields = process_fields(pid);
  return fields.empty() ? '\0' : fields[0];
}

bool process_stopped(int pid) {
  const char state = process_state(pid);
  return state == 'T' || state == 't';
}

bool process_ended(int pid) {
  const char state = process_state(pid);
  return state == '\0' || state == 'Z' || state == 'X';
}

bool has_thread_in(int pid, std::string_view states) {
  for (const auto& thread : entries_of(cat("/proc/", pid, "/task"))) {  // the process may end meanwhile
    int number = 0;
    const std::string name = thread.filename();
    std::from_chars(name.data(), name.data() + name.size(), number);
    const char state = process_state(number);
    if (state != '\0' && states.find(state) != std::string_view::npos) return true;
  }
  return false;
}

std::string activity_of(int pid) {
  if (has_thread_in(pid, "R")) return "computing or spinning";
  std::error_code ignored;
  std::ifstream file(cat("/proc/", pid, "/syscall"));  // "0 0x3 …": its number, and what it was given
  long number = -1;
  std::string first;
  if (!(file >> number >> first)) return "asleep";
  const auto call =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Call& each) { return each.number == number; });
  if (call == std::end(kCalls)) return cat("asleep in system call ", number);
  if (!call->of_file) return cat("asleep in ", call->name);
  const std::string path = cat("/proc/", pid, "/fd/", std::strtol(first.c_str(), nullptr, 16));
  const auto target = std::filesystem::read_symlink(path, ignored);
  return cat("asleep in ", call->name, target.empty() ? "" : cat(" (", target.string(), ')'));
}

}  // namespace lockstep
