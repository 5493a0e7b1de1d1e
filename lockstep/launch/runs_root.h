// The folder of runs that nobody has named: runs/mnist-1, runs/mnist-2.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::launch {

// Returns n of a folder called "<recipe>-<n>"; 0 for any other.
int number_of(const std::filesystem::path& folder, const std::string& recipe);
// The same of whatever recipe.
int number_of(const std::filesystem::path& folder);

// "runs/a" of "runs/a/".
std::string without_last_slash(std::string path);

// Returns the newest run of the recipe under `root` that has a checkpoint. Throws ConfigError if there is none.
std::string newest_run(const std::string& root, const std::string& recipe);

}  // namespace lockstep::launch
