#include "lockstep/launch/launched_job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

constexpr const char* kTorchrunStarts = "TORCHELASTIC_RESTART_COUNT";
constexpr char kBetween = ';';

// The kernel's fields of a process: its parent, and its start in ticks since the machine's.
struct Ancestor {
  int pid = 0;
  int parent = 0;
  std::string start = {};
};

Ancestor process(int pid) {
  Ancestor found;
  std::istringstream fields(process_fields(pid));
  std::string state, skipped;
  if (!(fields >> state >> found.parent)) return {};
  constexpr int kBeforeStart = 17;  // from the process group on
  for (int i = 0; i < kBeforeStart; ++i) fields >> skipped;
  if (fields >> found.start) found.pid = pid;
  return found;
}

bool has_variable(int pid, const std::string& name) {
  std::ifstream file(cat("/proc/", pid, "/environ"));
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(name + '=')) return true;
  }
  return false;
}

// Scripts between torchrun and this process have inherited the variables, too.
Ancestor torchrun_agent() {
  Ancestor at = process(getpid());
  while (at.parent > 0) {
    at = process(at.parent);
    if (at.pid == 0 || !has_variable(at.pid, kTorchrunStarts)) return at;
  }
  return {};
}

std::string host_name() {
  std::array<char, 256> host{};
  return gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "?";
}

// The first start has the number 0, or none.
bool is_further(const std::optional<std::string>& start) { return start && *start != "0"; }

}  // namespace

std::vector<LaunchedJob> find_jobs(const Variable& variable) {
  std::vector<LaunchedJob> jobs;
  if (const auto start = variable(kTorchrunStarts)) {
    const Ancestor agent = torchrun_agent();
    if (agent.pid > 0) {
      jobs.push_back({.name = cat("torchrun agent ", agent.pid, " (", agent.start, ") on ", host_name()),
                      .restarted = is_further(start),
                      .one_command = true});
    }
  }
  if (const auto id = variable("SLURM_JOB_ID")) {
    jobs.push_back({.name = cat("slurm ", *id, " of ", variable("SLURM_CLUSTER_NAME").value_or("one cluster")),
                    .restarted = is_further(variable("SLURM_RESTART_COUNT"))});
  }
  return jobs;
}

std::vector<LaunchedJob> find_jobs() {
  return find_jobs([](const char* name) { return env(name); });
}

bool is_restart(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  std::istringstream names(named);
  for (std::string name; std::getline(names, name, kBetween);) {
    const auto is_it = [&name](const LaunchedJob& job) { return job.restarted && job.name == name; };
    if (std::any_of(jobs.begin(), jobs.end(), is_it)) return true;
  }
  return false;
}

std::string names_of(const std::vector<LaunchedJob>& jobs) {
  std::string names;
  for (const LaunchedJob& job : jobs) names += (names.empty() ? "" : std::string(1, kBetween)) + job.name;
  return names;
}

}  // namespace lockstep::launch
