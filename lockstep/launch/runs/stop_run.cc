#include "lockstep/launch/runs/stop_run.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/stop_request.h"
#include "lockstep/train/folder/run_folder.h"

namespace lockstep::launch {
namespace {

constexpr useconds_t kLookUs = 20'000;
constexpr double kTold = 1;  // seconds

[[noreturn]] void refuse_ended(const std::string& folder) {
  const RunFacts run = facts_of_run(folder);
  const std::string how = run.state == RunState::kNotBegun ? "" : cat(" (", word_of(run.state), ')');
  throw ConfigError(folder, ": no run is under way there", how);
}

// Whether that run is still under way. An owner that can't be read is about to write its name.
bool is_still(const std::string& folder, const train::LockOwner& owner) {
  const train::LockOwner now = train::owner_of(folder);
  return now.held && (now.pid == 0 || now == owner);
}

train::LockOwner owner_with_name(const std::string& folder) {
  const Deadline patience(std::chrono::seconds(1));
  train::LockOwner owner = train::owner_of(folder);
  while (owner.held && owner.pid == 0 && !patience.passed()) {
    usleep(kLookUs);
    owner = train::owner_of(folder);
  }
  if (!owner.held) refuse_ended(folder);
  if (owner.pid != 0) return owner;
  throw ConfigError(folder, ": its lock is held and names no process; `fuser ", folder, "/lock` names them");
}

// The processes of a run whose owner has ended end by themselves.
void await_remains(const std::string& folder, const train::LockOwner& owner) {
  const Deadline patience(std::chrono::seconds(10));
  while (is_still(folder, owner) && !patience.passed()) usleep(kLookUs);
  if (is_still(folder, owner)) {
    throw ConfigError(folder, ": pid ", owner.pid, " has ended, but processes that it started have not; `fuser ",
                      folder, "/lock` names them");
  }
}

// The process that has taken the lock. The descriptor comes before the look at what it has open, so that its number
// can't become another's in between.
Descriptor process_of(const std::string& folder, const train::LockOwner& owner) {
  if (owner.host != host_name()) {
    throw ConfigError(folder, ": its run is that of pid ", owner.pid, " on ", owner.host,
                      "; type there: lockstep stop ", std::filesystem::absolute(folder).lexically_normal().string());
  }
  Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, owner.pid, 0)));
  if (!process && errno == ESRCH) {
    await_remains(folder, owner);
    refuse_ended(folder);
  }
  const auto is_its = train::has_lock_open(owner.pid, folder);
  if (!process || is_its == false) {
    throw ConfigError(folder, ": its lock names pid ", owner.pid,
                      ", which here is none of the run's processes; `fuser ", folder,
                      "/lock` names them, and in a container they are stopped there");
  }
  if (!is_its) throw IoError(folder, ": pid ", owner.pid, " is another user's; stop it as that user");
  return process;
}

bool ask(const Descriptor& process, int signal) {
  return syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

void request(const std::string& folder, const Descriptor& process, int pid) {
  if (!ask(process, SIGTERM) && errno != ESRCH) {
    throw IoError(folder, ": pid ", pid, " can't be signalled: ", errno_text(errno));
  }
  if (process_stopped(pid)) ask(process, SIGCONT);
}

}  // namespace

RunFacts stop_run(const std::string& folder, const StopOptions& options,
                  const std::function<void(const std::string& line)>& tell) {
  const train::LockOwner owner = owner_with_name(folder);
  const Descriptor process = process_of(folder, owner);
  request(folder, process, owner.pid);
  constexpr auto kAgain = std::chrono::nanoseconds(StopRequest::kOneRequestNs) + std::chrono::milliseconds(50);
  const Deadline again(kAgain), timeout(options.timeout);
  const Stopwatch since;
  bool once_more = options.now, told = false;
  while (is_still(folder, owner)) {  // else it has ended, or another one has begun
    if (once_more && again.passed()) {
      once_more = false;
      request(folder, process, owner.pid);
    }
    if (!options.now && since.seconds() > kTold && !std::exchange(told, true)) {
      tell(cat("waiting for ", folder, " (pid ", owner.pid,
               ") to end its step and save; Ctrl-C waits no longer, `lockstep stop --now` doesn't let it save"));
    }
    if (timeout.passed()) {
      throw CommError(folder, ": pid ", owner.pid, " was asked to stop and has not ended in ",
                      static_cast<double>(options.timeout.count()) / 1e3, " s; lockstep stop --now kills its ranks");
    }
    usleep(kLookUs);
  }
  return facts_of_run(folder);
}

std::string resume_command_in(std::string_view log) {
  constexpr std::string_view kBefore = "; go on with: ";
  const size_t at = log.rfind(kBefore);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = log.substr(at + kBefore.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

std::string stopped_text(const RunFacts& run, const std::string& checkpoint, const std::string& command) {
  const std::string at = run.last.step > 0 ? cat(" at step ", run.last.step) : "";
  const std::string step = cat(run.folder, ": ", word_of(run.state), at);
  if (run.state == RunState::kFinished) return step + ", before the request\n";
  if (checkpoint.empty()) return cat(step, "; no checkpoint is saved\n");
  const bool is_told = run.state == RunState::kStopped && !command.empty();
  return cat(step, "; saved: ", checkpoint, "\nnext: ", is_told ? command : "lockstep train --resume " + run.folder,
             '\n');
}

}  // namespace lockstep::launch
