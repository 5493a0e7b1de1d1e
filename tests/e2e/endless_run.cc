#include "endless_run.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::e2e {

Held::Held(pid_t pid) {
  signal_to(pid, SIGSTOP);  // throws where there is no process
  thread_ = std::jthread([pid](const std::stop_token& over) {
    // Before all else where that is allowed: in a few milliseconds the rank would be done.
    const sched_param first{.sched_priority = 1};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    while (!over.stop_requested()) kill(pid, SIGSTOP), usleep(200);
  });
}

EndlessRun::EndlessRun(int nproc)
    : program(
          lockstep_command(train_words({"--nproc", std::to_string(nproc), "--quiet", "--out", folder()}) + kEndless)) {}

bool EndlessRun::is_training() const {
  return eventually([this] { return steps_logged(folder()).size() >= 5; });
}

pid_t worker_of(const Program& program, int rank) {
  for (const pid_t pid : program.processes("lockstep-worker")) {
    const std::string environment = read_file("/proc/" + std::to_string(pid) + "/environ");
    if (environment.find(std::string(1, '\0') + "RANK=" + std::to_string(rank) + '\0') != std::string::npos) return pid;
  }
  return -1;
}

bool kill_at(const std::string& point, const std::function<pid_t()>& rank, pid_t& killed,
             std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    const pid_t pid = rank();
    if (pid > 0 && pid != killed &&
        read_file("/proc/" + std::to_string(pid) + "/maps").find(point) != std::string::npos) {
      kill(pid, SIGKILL);
      killed = pid;
      return true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

void signal_to(pid_t pid, int number) {
  if (pid <= 0) throw IoError("the process that is to get signal ", number, " is not there");
  kill(pid, number);
}

}  // namespace lockstep::e2e
