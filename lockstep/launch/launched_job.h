// Launchers that start a job's processes anew with the same command line: torchrun after a failure, Slurm after a
// requeue. Such a start goes on with the run that an earlier start of its job has begun (run_directory.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct LaunchedJob {
  std::string name;          // no other job has it: "torchrun agent 812 (7781) on node3", "slurm 4711 of alps"
  bool restarted = false;    // this is not its first start
  bool one_command = false;  // all processes of the job have one command line
  bool operator==(const LaunchedJob&) const = default;
};

// The jobs that this process is a part of: those of torchrun and of Slurm, as far as `variable` and /proc tell. A job
// of torchrun is known by its agent, the nearest process above this one that has not torchrun's variables itself:
// people use one run id for many jobs.
using Variable = std::function<std::optional<std::string>(const char* name)>;
std::vector<LaunchedJob> find_jobs(const Variable& variable);
std::vector<LaunchedJob> find_jobs();  // by this process's environment

// Whether one of `jobs` is a further start of a job that a folder names: `named` as names_of() has written it.
bool is_restart(const std::string& named, const std::vector<LaunchedJob>& jobs);

// The names for a run's folder; empty without jobs.
std::string names_of(const std::vector<LaunchedJob>& jobs);

}  // namespace lockstep::launch
