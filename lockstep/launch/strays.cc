#include "lockstep/launch/strays.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/process_state.h"

namespace lockstep::launch {
namespace {

// The parent of a process; 0 if there is no such process.
pid_t parent_of(pid_t pid) {
  const std::string fields = process_fields(pid);  // "S 1 …"
  pid_t parent = 0;
  if (fields.size() > 2) std::from_chars(fields.data() + 2, fields.data() + fields.size(), parent);
  return parent;
}

std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc"), &closedir);
  while (const dirent* const entry = all ? readdir(all.get()) : nullptr) {
    pid_t pid = 0;
    const char* const name = entry->d_name;
    if (std::from_chars(name, name + std::char_traits<char>::length(name), pid).ec != std::errc()) continue;
    if (parent_of(pid) == getpid()) children.push_back(pid);
  }
  return children;
}

bool holds(const std::vector<pid_t>& pids, pid_t pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

}  // namespace

Strays::Strays() : before_(own_children()) {
  prctl(PR_GET_CHILD_SUBREAPER, &adopted_before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Strays::~Strays() {
  end({});
  prctl(PR_SET_CHILD_SUBREAPER, adopted_before_);
}

std::vector<pid_t> Strays::strays(const std::vector<pid_t>& ranks) const {
  auto children = own_children();
  std::erase_if(children, [&](pid_t child) { return holds(before_, child) || holds(ranks, child); });
  return children;
}

void Strays::reap(const std::vector<pid_t>& ranks) const {
  for (const pid_t stray : strays(ranks)) waitpid(stray, nullptr, WNOHANG);
}

// Only children are killed, whose numbers nobody else can get before they are reaped here. Their own children become
// children of this process and come next.
void Strays::end(const std::vector<pid_t>& ranks, double seconds) const {
  for (const Stopwatch watch; watch.seconds() < seconds;) {
    const auto left = strays(ranks);
    if (left.empty()) return;
    for (const pid_t stray : left) kill(stray, SIGKILL);
    for (const pid_t stray : left) {
      while (waitpid(stray, nullptr, WNOHANG) == 0 && watch.seconds() < seconds) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
}

}  // namespace lockstep::launch
