#include "lockstep/config/inputs.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"

namespace lockstep::config {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 10'000;  // a folder of more, such as one of images, is not searched

}  // namespace

void require_there(std::string_view option, const std::string& path, std::string_view advice) {
  if (is_there(path)) return;
  throw ConfigError(option, ' ', path, ": no such file or folder", near_entry(path), advice);
}

void require_file(std::string_view option, const std::string& path, std::string_view advice) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw ConfigError(option, ' ', path, ": a folder, not a file", advice);
  if (!is_there(path)) throw ConfigError(option, ' ', path, ": no such file", near_entry(path), advice);
}

void require_folder_place(std::string_view option, const std::string& path, std::string_view advice) {
  fs::path at;
  for (const auto& part : fs::path(path)) {
    at /= part;
    std::error_code error;
    if (fs::is_directory(at, error)) continue;
    if (error && error != std::errc::no_such_file_or_directory) return;  // whoever makes the folder says why he can't
    if (is_there(at)) throw ConfigError(option, ' ', path, ": ", at.string(), " is a file, not a folder", advice);
    if (fs::is_symlink(at, error)) {
      throw ConfigError(option, ' ', path, ": ", at.string(), " is a link that leads nowhere", advice);
    }
    return;
  }
}

std::string near_entry(const std::string& path) {
  // The first folder or name of the path that is not there is the one that is misspelt.
  fs::path there, missing, rest;
  for (const auto& part : fs::path(path).lexically_normal()) {
    if (missing.empty() && is_there(there / part)) {
      there /= part;
    } else if (missing.empty()) {
      missing = part;
    } else {
      rest /= part;
    }
  }
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = there.empty() ? fs::path(".") : there;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const fs::path name = each->path().filename();
    if (names.size() == kMostEntries) return "";
    if (rest.empty() || is_there(there / name / rest)) names.push_back(name.string());
  }
  std::sort(names.begin(), names.end());  // the same answer in every order of entries
  const std::string near = nearest(missing.string(), names);
  if (near.empty()) return "";
  const fs::path entry = rest.empty() ? there / near : there / near / rest;
  return cat("; did you mean ", shown(entry.string()), '?');
}

}  // namespace lockstep::config
