#include "lockstep/datasets/packing/packing_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/sync_folder.h"
#include "lockstep/datasets/files/file_errors.h"
#include "lockstep/datasets/packing/own_files.h"
#include "lockstep/datasets/packing/places.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

dev_t device_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw_write_error(path, errno);
  return status.st_dev;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void sync(const std::string& folder) {
  if (!sync_folder(folder)) throw_write_error(folder, errno);
}

void move(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw_write_error(to, errno);
}

// Locks a folder; nothing if another process has it, or has moved it away.
Descriptor locked(const std::string& folder) {
  Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) throw_write_error(folder, errno);
  struct stat ours {};
  struct stat named {};
  // Some network file systems lock no folders; there nobody can be kept out.
  const bool taken = flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const bool gone = fstat(opened.get(), &ours) != 0 || stat(folder.c_str(), &named) != 0 || ours.st_ino != named.st_ino;
  return taken || gone ? Descriptor() : std::move(opened);
}

}  // namespace

bool exchange_names(const std::string& one, const std::string& other) {
  return renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

PackingFolder::PackingFolder(const std::string& out, PackingFolderOptions options)
    : options_(std::move(options)), out_(whole_path(out)), packing_(out_ + ".packing"), replaced_(out_ + ".replaced") {
  check_places(out_, options_.data, {out_, packing_});
  if (is_there(out_)) check_out();
  lock();
  clear();
}

void PackingFolder::check_out() {
  std::error_code error;
  if (!fs::is_directory(out_, error)) throw ConfigError("OUT ", shown(out_), ": is no folder; choose another name");
  if (device_of(out_) != device_of(fs::path(out_).parent_path())) {
    throw ConfigError("OUT ", shown(out_),
                      ": is a mount point, which can't be replaced; name a folder in it: ", shown(out_), "/packed");
  }
  replaces_ = !fs::is_empty(out_, error);
  if (!replaces_) return;
  if (!options_.overwrite) {
    throw ConfigError("OUT ", shown(out_),
                      ": there are files in it; choose another folder, or --overwrite packed data");
  }
  if (const std::string strange = strange_file_in(out_); !strange.empty()) {
    throw ConfigError("OUT ", shown(out_), ": ", shown(strange),
                      " is no packed data; --overwrite replaces nothing else");
  }
  if (is_there(replaced_)) {
    throw ConfigError("OUT ", shown(out_), ": ", shown(replaced_),
                      " is in the way, which an earlier packing may have left; move or remove it");
  }
}

// Of the data that are replaced, too: they are OUT.packing once the names have been exchanged.
void PackingFolder::lock() {
  std::error_code error;
  fs::create_directories(fs::path(packing_).parent_path(), error);
  if (replaces_) lock_of_replaced_ = locked(out_);
  if (!replaces_ || lock_of_replaced_) {
    if (mkdir(packing_.c_str(), 0777) != 0 && errno != EEXIST) throw_write_error(packing_, errno);
    lock_ = locked(packing_);
  }
  if (lock_) return;
  throw ConfigError("OUT ", shown(out_), ": another process packs there; wait for its end, or choose another folder");
}

// What a killed packing left.
void PackingFolder::clear() const {
  if (const std::string strange = strange_file_in(packing_); !strange.empty()) {
    throw ConfigError("OUT ", shown(out_), ": ", shown(strange), " is no packed data, and would be removed; move it");
  }
  const int error = remove_own_files_in(packing_);
  if (error != 0) throw IoError(shown(packing_), ": can't be emptied: ", errno_text(error));
}

PackingFolder::~PackingFolder() {
  if (lock_ && !whole_) remove_own_folder(packing_);
}

std::string PackingFolder::part(const std::string& name) const {
  if (name.empty()) return packing_;
  const std::string path = packing_ + "/" + name;
  if (mkdir(path.c_str(), 0777) != 0) throw_write_error(path, errno);
  return path;
}

std::string PackingFolder::finish() {
  std::error_code ignored;
  for (const fs::path& path : entries_of(packing_)) {
    if (fs::is_directory(path, ignored)) sync(path);
  }
  sync(packing_);
  const bool replaces = replaces_ && is_there(out_);
  std::string before;
  if (replaces) {
    before = replace();
  } else {
    move(packing_, out_);
  }
  whole_ = true;
  const std::string above = fs::path(out_).parent_path();
  sync(above);
  if (!replaces) return "";
  const std::string kept = remove_replaced(before);
  sync(above);
  return kept;
}

// Returns the name that the data have now which were OUT.
std::string PackingFolder::replace() const {
  if (options_.exchange(packing_, out_)) return packing_;
  move(out_, replaced_);
  if (std::rename(packing_.c_str(), out_.c_str()) == 0) return replaced_;
  const int error = errno;
  if (std::rename(replaced_.c_str(), out_.c_str()) == 0) throw_write_error(out_, error);
  throw IoError(shown(out_), ": can't be replaced: ", errno_text(error), "; the data that were there are ",
                shown(replaced_));
}

std::string PackingFolder::remove_replaced(const std::string& folder) const {
  std::string strange = strange_file_in(folder);
  const int error = strange.empty() ? remove_own_folder(folder) : ENOTEMPTY;
  if (error == 0 || !is_there(folder)) return "";
  if (strange.empty()) strange = strange_file_in(folder);
  const bool is_moved = folder != replaced_ && std::rename(folder.c_str(), replaced_.c_str()) == 0;
  const std::string kept = is_moved ? replaced_ : folder;
  if (strange.empty()) return cat(shown(kept), ": the data that were replaced can't be removed: ", errno_text(error));
  return cat(shown(kept), ": the data that were replaced are kept, for ", shown(kept + strange.substr(folder.size())),
             " was put there meanwhile");
}

}  // namespace lockstep::datasets
