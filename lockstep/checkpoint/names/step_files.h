// The names of a run's checkpoints, step-000500.pt, and the files of such names in a folder. Links no libtorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

constexpr const char* kStepPrefix = "step-";
constexpr const char* kStepSuffix = ".pt";

struct StepFile {
  int64_t step = 0;
  std::string path;
};

// Returns the name of a step's checkpoint, "step-000500.pt".
std::string step_file_name(int64_t step);

// Returns the step of a file's name, such as 500 of "step-000500.pt"; nothing for any other name.
std::optional<int64_t> step_of_name(const std::string& name);

// Returns the checkpoints in a folder, readable or not, in ascending order of steps; none if there is no such folder.
std::vector<StepFile> step_files_in(const std::string& folder);

}  // namespace lockstep::checkpoint
