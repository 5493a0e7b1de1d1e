// Which folders are meant by the words of a command on runs.
#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

// Whether a run has begun in this folder, or was about to: it has a lock or an option file.
bool is_run(const std::string& folder);

// Returns the folder of the run that a word names: the folder itself, or the one of that name under `root`, as
// "mnist-1" for "runs/mnist-1". Throws ConfigError if there is none, with the nearest name.
std::string find_run(const std::string& word, const std::string& root = "runs");

// Returns the runs that the words name, each a run or a folder with runs in it; without words those under `root`, which
// need not be there. Sorted by names in which numbers count as such, each run once. Throws ConfigError for a word that
// names no folder, or one without runs.
std::vector<std::string> find_runs(const std::vector<std::string>& words, const std::string& root = "runs");

}  // namespace lockstep::launch
