#include "lockstep/launch/launched_job.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

constexpr const char* kTorchrunStarts = "TORCHELASTIC_RESTART_COUNT";
constexpr char kBetween = ';';
constexpr std::string_view kCommand = ", command ";

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

// The first start has the number 0, or none.
bool is_further(const std::optional<std::string>& start) { return start && *start != "0"; }

std::string own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Words end with zeros there.
std::string line_of(const std::string& command_line) {
  std::string line = command_line.substr(0, command_line.find_last_not_of('\0') + 1);
  std::replace(line.begin(), line.end(), '\0', ' ');
  return shown(line);
}

std::string entry_of(const LaunchedJob& job) { return cat(job.name, kCommand, job.command); }

std::vector<std::string> entries_in(const std::string& named) {
  std::vector<std::string> entries;
  std::istringstream all(named);
  for (std::string entry; std::getline(all, entry, kBetween);) entries.push_back(entry);
  return entries;
}

std::string name_in(const std::string& entry) { return entry.substr(0, entry.find(kCommand)); }

template <typename IsIt>
bool any_of_them(const std::string& named, const std::vector<LaunchedJob>& jobs, const IsIt& is_it) {
  const auto entries = entries_in(named);
  return std::any_of(jobs.begin(), jobs.end(), [&](const LaunchedJob& job) {
    return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) { return is_it(entry, job); });
  });
}

}  // namespace

std::vector<LaunchedJob> find_jobs(const Variable& variable, const std::string& command_line) {
  std::vector<LaunchedJob> jobs;
  const std::string command = hex(xxh3(command_line)), line = line_of(command_line);
  if (const auto start = variable(kTorchrunStarts)) {
    const Ancestor agent = torchrun_agent();
    if (agent.pid > 0) {
      jobs.push_back({.name = cat("torchrun agent ", agent.pid, " (", agent.start, ") on ", host_name()),
                      .command = command,
                      .line = line,
                      .restarted = is_further(start),
                      .one_command = true});
    }
  }
  if (const auto id = variable("SLURM_JOB_ID")) {
    jobs.push_back({.name = cat("slurm ", *id, " of ", variable("SLURM_CLUSTER_NAME").value_or("one cluster")),
                    .command = command,
                    .line = line,
                    .restarted = is_further(variable("SLURM_RESTART_COUNT"))});
  }
  return jobs;
}

std::vector<LaunchedJob> find_jobs() {
  if (env(train::kRunLockVariable)) return {};
  return find_jobs([](const char* name) { return env(name); }, own_command_line());
}

void add_others(std::vector<LaunchedJob>& jobs, const std::vector<std::string>& named) {
  for (const std::string& names : named) {
    for (const std::string& entry : entries_in(names)) {
      const bool known =
          std::any_of(jobs.begin(), jobs.end(), [&](const LaunchedJob& job) { return job.name == name_in(entry); });
      if (known || jobs.empty()) continue;
      LaunchedJob other = jobs.front();  // of the same start
      other.name = name_in(entry);
      jobs.push_back(std::move(other));
    }
  }
}

bool is_of_job(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs,
                     [](const std::string& entry, const LaunchedJob& job) { return name_in(entry) == job.name; });
}

bool is_of_command(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs,
                     [](const std::string& entry, const LaunchedJob& job) { return entry == entry_of(job); });
}

bool is_restart(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs, [](const std::string& entry, const LaunchedJob& job) {
    return (job.restarted || job.one_command) && entry == entry_of(job);
  });
}

std::string names_of(const std::vector<LaunchedJob>& jobs) {
  std::string names;
  for (const LaunchedJob& job : jobs) names += (names.empty() ? "" : std::string(1, kBetween)) + entry_of(job);
  return names;
}

}  // namespace lockstep::launch
