#include "lockstep/datasets/packing/places.h"

#include <filesystem>
#include <system_error>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

// Whether the path is the folder, or lies in it, by whatever names.
bool lies_in(fs::path path, const fs::path& folder) {
  while (true) {
    std::error_code ignored;  // what is not there equals nothing
    if (path == folder || fs::equivalent(path, folder, ignored)) return true;
    if (path == path.parent_path()) return false;
    path = path.parent_path();
  }
}

}  // namespace

std::string whole_path(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) throw ConfigError(shown(path), ": ", error.message(), "; choose another folder");
  if (!whole.has_filename()) whole = whole.parent_path();
  return whole;
}

void check_places(const std::string& out, const std::vector<std::string>& data,
                  const std::vector<std::string>& cleared) {
  for (const std::string& path : data) {
    const std::string whole = whole_path(path);
    if (lies_in(out, whole)) {
      throw ConfigError("OUT ", shown(out), ": lies in the data itself, ", shown(path), "; choose a folder beside it");
    }
    for (const std::string& folder : cleared) {
      if (!lies_in(whole, folder)) continue;
      throw ConfigError("OUT ", shown(out), ": the data, ", shown(path), ", lie in ", shown(folder),
                        ", of which all files would be removed; choose another folder");
    }
  }
}

}  // namespace lockstep::datasets
