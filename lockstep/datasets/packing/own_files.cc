#include "lockstep/datasets/packing/own_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

bool is_own(const fs::path& file) { return file.filename() == "manifest.json" || file.extension() == ".lks"; }

// Not of a link to one.
bool is_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.symlink_status(error).type() == fs::file_type::directory;
}

// Whether its name is that of a file that packings write. A link to a folder is none.
bool is_own_file(const fs::directory_entry& entry) {
  std::error_code error;
  return is_own(entry.path()) && !entry.is_directory(error);
}

}  // namespace

std::string strange_file_in(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!is_folder(*entry) && !is_own_file(*entry)) return entry->path();
  }
  return error ? folder : "";
}

int remove_own_files_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  fs::directory_iterator next(folder, error);
  for (; !error && next != fs::directory_iterator(); next.increment(error)) entries.push_back(*next);
  int first = error.value();
  const auto note = [&first](int failure) {
    if (first == 0) first = failure;
  };
  for (const fs::directory_entry& entry : entries) {
    if (is_folder(entry)) {
      note(remove_own_folder(entry.path()));
    } else if (is_own_file(entry)) {
      note(unlink(entry.path().c_str()) == 0 ? 0 : errno);
    } else {
      note(ENOTEMPTY);
    }
  }
  return first;
}

int remove_own_folder(const std::string& folder) {
  const int error = remove_own_files_in(folder);
  if (error != 0) return error;
  return rmdir(folder.c_str()) == 0 ? 0 : errno;
}

}  // namespace lockstep::datasets
