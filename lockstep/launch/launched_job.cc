#include "lockstep/launch/launched_job.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/lease.h"
#include "lockstep/base/process_state.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

constexpr const char* kTorchrunStarts = "TORCHELASTIC_RESTART_COUNT";
constexpr char kBetween = ';';
constexpr std::string_view kCommand = ", command ", kEndless = ", of any length ", kStart = ", start ";

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
int number_of_start(const std::optional<std::string>& start) {
  int number = 0;
  if (start) std::from_chars(start->data(), start->data() + start->size(), number);
  return number;
}

std::string own_command_line() { return file_content("/proc/self/cmdline").value_or(""); }

// Words end with zeros there.
std::string line_of(const std::string& command_line) {
  std::string line = command_line.substr(0, command_line.find_last_not_of('\0') + 1);
  std::replace(line.begin(), line.end(), '\0', ' ');
  return shown(line);
}

// The command line, whose words end with zeros, without --steps and --epochs.
std::string without_length(const std::string& command_line) {
  std::istringstream words(command_line);
  std::string rest;
  for (std::string word; std::getline(words, word, '\0');) {
    const bool has_value = word == "--steps" || word == "--epochs";
    if (has_value) std::getline(words, word, '\0');
    if (!has_value && !word.starts_with("--steps=") && !word.starts_with("--epochs=")) rest += word + '\0';
  }
  return rest;
}

// What a folder names, of one job: "slurm 7 of alps, command a5d1, of any length 93c0, start 2". The last two tell the
// commands of a job apart that has several.
std::string entry_of(const LaunchedJob& job) {
  const std::string entry = cat(job.name, kCommand, job.command);
  return job.one_command ? entry : cat(entry, kEndless, job.endless, kStart, job.start);
}

LaunchedJob read_entry(const std::string& entry) {
  LaunchedJob job;
  std::string_view rest = entry;
  const auto take_until = [&rest](std::string_view mark) {
    const size_t end = std::min(rest.find(mark), rest.size());
    const std::string taken(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + mark.size()));
    return taken;
  };
  job.name = take_until(kCommand);
  job.command = take_until(kEndless);
  job.endless = take_until(kStart);
  job.start = number_of_start(std::string(rest));
  return job;
}

std::vector<std::string> entries_in(const std::string& named) {
  std::vector<std::string> entries;
  std::istringstream all(named);
  for (std::string entry; std::getline(all, entry, kBetween);) entries.push_back(entry);
  return entries;
}

// Whether `is_it` of a job that is named, and of one of `jobs` that has its name.
template <typename IsIt>
bool any_of_them(const std::string& named, const std::vector<LaunchedJob>& jobs, const IsIt& is_it) {
  const auto entries = entries_in(named);
  return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
    const LaunchedJob earlier = read_entry(entry);
    return std::any_of(jobs.begin(), jobs.end(),
                       [&](const LaunchedJob& job) { return job.name == earlier.name && is_it(earlier, job); });
  });
}

}  // namespace

std::vector<LaunchedJob> find_jobs(const Variable& variable, const std::string& command_line) {
  std::vector<LaunchedJob> jobs;
  const std::string command = hex(xxh3(command_line)), line = line_of(command_line);
  const std::string endless = hex(xxh3(without_length(command_line)));
  const auto of_nodes = variable(kJobVariable);
  if (const auto start = variable(kTorchrunStarts); start && of_nodes) {
    jobs.push_back({.name = *of_nodes,
                    .command = command,
                    .endless = endless,
                    .line = line,
                    .start = number_of_start(start),
                    .one_command = true});
  } else if (start) {
    const Ancestor agent = torchrun_agent();
    if (agent.pid > 0) {
      jobs.push_back({.name = cat("torchrun agent ", agent.pid, " (", agent.start, ") on ", host_name()),
                      .command = command,
                      .endless = endless,
                      .line = line,
                      .start = number_of_start(start),
                      .one_command = true});
    }
  }
  if (const auto id = variable("SLURM_JOB_ID")) {
    jobs.push_back({.name = cat("slurm ", *id, " of ", variable("SLURM_CLUSTER_NAME").value_or("one cluster")),
                    .command = command,
                    .endless = endless,
                    .line = line,
                    .start = number_of_start(variable("SLURM_RESTART_COUNT"))});
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
      const std::string name = read_entry(entry).name;
      const bool known =
          std::any_of(jobs.begin(), jobs.end(), [&](const LaunchedJob& job) { return job.name == name; });
      if (known || jobs.empty()) continue;
      LaunchedJob other = jobs.front();  // of the same start
      other.name = name;
      jobs.push_back(std::move(other));
    }
  }
}

bool is_of_job(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs, [](const LaunchedJob&, const LaunchedJob&) { return true; });
}

bool is_of_command(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs,
                     [](const LaunchedJob& earlier, const LaunchedJob& job) { return earlier.command == job.command; });
}

bool is_restart(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs, [](const LaunchedJob& earlier, const LaunchedJob& job) {
    return (job.restarted() || job.one_command) && earlier.command == job.command;
  });
}

// A line that has run in this start already is that of another command of the script.
bool is_restart_of_other_length(const std::string& named, const std::vector<LaunchedJob>& jobs) {
  return any_of_them(named, jobs, [](const LaunchedJob& earlier, const LaunchedJob& job) {
    return earlier.start < job.start && !earlier.endless.empty() && earlier.endless == job.endless &&
           earlier.command != job.command;
  });
}

std::string names_of(const std::vector<LaunchedJob>& jobs) {
  std::string names;
  for (const LaunchedJob& job : jobs) names += (names.empty() ? "" : std::string(1, kBetween)) + entry_of(job);
  return names;
}

}  // namespace lockstep::launch
