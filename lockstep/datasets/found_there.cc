#include "lockstep/datasets/found_there.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 4;

// "3 folders (a, b, c)", "1 folder (a)", "no folders".
std::string count_of(std::vector<std::string> names, const char* what) {
  if (names.empty()) return cat("no ", what, "s");
  std::sort(names.begin(), names.end());
  return cat(names.size(), " ", what, names.size() == 1 ? "" : "s", " (", first_few(names, kMostNames, shown), ")");
}

}  // namespace

std::string found_there(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "nothing is there; check the path";
  if (status.type() == fs::file_type::regular) return "found a file";
  fs::directory_iterator entries(path, error);
  if (error) return cat("it can't be read: ", error.message());
  std::vector<std::string> folders, files;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    (entries->is_directory(ignored) ? folders : files).push_back(entries->path().filename().string());
  }
  return cat("found ", count_of(std::move(folders), "folder"), " and ", count_of(std::move(files), "file"));
}

}  // namespace lockstep::datasets
