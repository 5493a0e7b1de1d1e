#include "lockstep/doctor/loader.h"

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "lockstep/base/text.h"
#include "lockstep/doctor/version.h"

namespace lockstep::doctor {
namespace {

namespace fs = std::filesystem;

// What the loader says of a library that is too old: "PROGRAM: FILE: version `GLIBCXX_3.4.30' not found (required by
// WHO)".
struct TooOld {
  std::string file, version;
};

std::optional<TooOld> read_too_old(const std::string& line) {
  constexpr std::string_view kVersion = ": version `", kNotFound = "' not found";
  const size_t version = line.find(kVersion), end = line.find(kNotFound);
  if (version == std::string::npos || end == std::string::npos) return std::nullopt;
  const size_t file = line.rfind(' ', version);
  const size_t from = version + kVersion.size();
  return TooOld{line.substr(file + 1, version - file - 1), line.substr(from, end - from)};
}

// "libzip.so.4" of "\tlibzip.so.4 => not found".
std::string read_missing(const std::string& line) {
  const size_t arrow = line.find(" => not found");
  if (arrow == std::string::npos) return "";
  const size_t name = line.find_first_not_of(" \t");
  return line.substr(name, arrow - name);
}

// Whether the second of two versions of one kind, "GLIBCXX_3.4.9" and "GLIBCXX_3.4.30", is newer. Those of the kind
// that comes later in the alphabet, GLIBCXX after CXXABI, tell more.
bool is_newer(const std::string& than, const std::string& version) {
  const auto kind = [](const std::string& text) { return text.substr(0, text.find('_')); };
  if (kind(than) != kind(version)) return kind(version) > kind(than);
  const auto known = find_version(than), found = find_version(version);
  return !known || (found && *known < *found);
}

bool lists(const std::string& search_path, const std::string& folder) {
  std::istringstream folders(search_path);
  for (std::string each; std::getline(folders, each, ':');) {
    if (!each.empty() && fs::path(each + "/").lexically_normal() == fs::path(folder + "/").lexically_normal())
      return true;
  }
  return false;
}

std::string line_of(const std::string& file, const std::string& version, const std::string& search_path) {
  const fs::path path(file);
  const std::string folder = path.parent_path().string();
  const std::string older =
      cat(path.filename().string(), ": the loader finds ", file, ", which is too old: it has no ", version, "; ");
  if (!lists(search_path, folder)) return older + "install a newer one";
  return cat(older, "take ", folder,
             " out of LD_LIBRARY_PATH (conda deactivate, module unload), or put the folder of the newer one before it");
}

}  // namespace

std::vector<std::string> loader_command(const std::string& program) {
  return {"env", "LD_TRACE_LOADED_OBJECTS=1", program};
}

std::vector<std::string> loader_misfits(const std::string& list, const std::string& search_path) {
  std::map<std::string, std::string> newest_missing;  // version, by file
  std::vector<std::string> out;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string library = read_missing(line); !library.empty()) {
      out.push_back(cat(library, ": not found; install it, or add its folder to LD_LIBRARY_PATH"));
    }
    const auto old = read_too_old(line);
    if (!old) continue;
    std::string& version = newest_missing[old->file];
    if (version.empty() || is_newer(version, old->version)) version = old->version;
  }
  for (const auto& [file, version] : newest_missing) out.push_back(line_of(file, version, search_path));
  return out;
}

}  // namespace lockstep::doctor
