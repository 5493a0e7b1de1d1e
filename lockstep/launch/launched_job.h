// Launchers that start a job's processes anew with the same command line: torchrun after a failure or a change of its
// nodes, Slurm after a requeue. Such a start goes on with the run that an earlier start of its job has begun
// (run_directory.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct LaunchedJob {
  std::string name;          // no other job has it: "torchrun agent 812 (7781) on node3", "slurm 4711 of alps"
  std::string command;       // tells the command line from others of the job
  std::string endless;       // the same of the command line without --steps and --epochs
  std::string line;          // the command line, for people
  int start = 0;             // the launcher's count of its starts, from 0
  bool one_command = false;  // all its processes have one command line, and run it once a start
  bool restarted() const { return start > 0; }
  bool operator==(const LaunchedJob&) const = default;
};

// The jobs that this process is a part of: those of torchrun and of Slurm, as far as `variable` and /proc tell.
//
// A job of torchrun is known by its agent, the nearest process above this one that has not torchrun's variables itself:
// people use one run id for many jobs. It does not count the starts that follow a change of its nodes, so there the
// command line alone tells. A job of Slurm may have many commands, and counts its starts.
using Variable = std::function<std::optional<std::string>(const char* name)>;
std::vector<LaunchedJob> find_jobs(const Variable& variable, const std::string& command_line);
// By this process's environment and command line; none in a worker of our own front, which has found them already.
std::vector<LaunchedJob> find_jobs();

// Adds the jobs of other ranks: each node has an agent of torchrun's of its own. `named` are names_of() by rank.
void add_others(std::vector<LaunchedJob>& jobs, const std::vector<std::string>& named);

// Of what a folder names, `named` as names_of() has written it: whether it is one of `jobs`, by whatever command line;
// whether it has this process's command line, too; whether this process is a further start of it; whether it is one by
// a command line that asks for other --steps or --epochs, which the script has computed anew.
bool is_of_job(const std::string& named, const std::vector<LaunchedJob>& jobs);
bool is_of_command(const std::string& named, const std::vector<LaunchedJob>& jobs);
bool is_restart(const std::string& named, const std::vector<LaunchedJob>& jobs);
bool is_restart_of_other_length(const std::string& named, const std::vector<LaunchedJob>& jobs);

// The names and commands for a run's folder; empty without jobs.
std::string names_of(const std::vector<LaunchedJob>& jobs);

}  // namespace lockstep::launch
