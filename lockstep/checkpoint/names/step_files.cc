#include "lockstep/checkpoint/names/step_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <string_view>

#include "lockstep/base/folder_entries.h"

namespace lockstep::checkpoint {

namespace fs = std::filesystem;

std::string step_file_name(int64_t step) {
  std::ostringstream name;
  name << kStepPrefix << std::setw(6) << std::setfill('0') << step << kStepSuffix;
  return name.str();
}

std::optional<int64_t> step_of_name(const std::string& name) {
  constexpr std::string_view kPrefix = kStepPrefix, kSuffix = kStepSuffix;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() <= kPrefix.size() + kSuffix.size()) {
    return std::nullopt;
  }
  const char* const last = name.data() + name.size() - kSuffix.size();
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), last, step);
  if (error != std::errc() || end != last || step_file_name(step) != name) return std::nullopt;
  return step;
}

std::vector<StepFile> step_files_in(const std::string& folder) {
  std::vector<StepFile> found;
  for (const fs::path& path : entries_of(folder)) {
    if (const auto step = step_of_name(path.filename().string())) found.push_back({*step, path.string()});
  }
  std::sort(found.begin(), found.end(), [](const StepFile& a, const StepFile& b) { return a.step < b.step; });
  return found;
}

}  // namespace lockstep::checkpoint
