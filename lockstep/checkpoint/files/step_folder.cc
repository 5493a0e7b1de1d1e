#include "lockstep/checkpoint/files/step_folder.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/sync_folder.h"
#include "lockstep/checkpoint/files/atomic_file.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1 << 20;  // bytes

void copy_into(ByteSink& sink, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string block(kBlock, '\0');
  while (file && file.peek() != std::ifstream::traits_type::eof()) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    sink.write({block.data(), static_cast<size_t>(file.gcount())});
  }
  if (!file.eof()) throw IoError(path, ": can't be read");
}

}  // namespace

std::string StepFolder::save(int64_t step, const std::function<void(const std::string&)>& write) const {
  make(step);
  write(path_of(step));
  link_atomically(step_file_name(step), folder_ + "/last.pt");
  prune();
  return path_of(step);
}

std::string StepFolder::adopt(int64_t step, const std::string& file) const {
  make(step);
  write_atomically(path_of(step), [&file](ByteSink& sink) { copy_into(sink, file); });
  link_atomically(step_file_name(list().back().step), folder_ + "/last.pt");
  return path_of(step);
}

void StepFolder::make(int64_t step) const {
  if (step < 0) throw BugError("a checkpoint of step ", step);
  std::error_code error;
  const bool is_new = fs::create_directories(folder_, error);
  if (error) throw IoError(folder_, ": can't be made: ", error.message(), "; choose another folder for the run");
  if (!is_new) return;
  // A checkpoint is on the disk when the names of the folders above it are: this one's, and the run's own.
  const fs::path run = fs::absolute(folder_).lexically_normal().parent_path();
  for (const fs::path& above : {run, run.parent_path()}) {
    if (!sync_folder(above.string()))
      throw IoError(above.string(), ": can't be brought to the disk: ", errno_text(errno));
  }
}

void StepFolder::mark_best(int64_t step) const {
  std::error_code error;
  if (!fs::exists(path_of(step), error) && !error) {
    throw BugError(path_of(step), ": called the best checkpoint, but was not saved");
  }
  if (best() != step) link_atomically(step_file_name(step), folder_ + "/best.pt");
}

std::optional<int64_t> StepFolder::best() const {
  std::error_code error;
  const auto target = fs::read_symlink(folder_ + "/best.pt", error);
  return error ? std::nullopt : step_of_name(target.filename().string());
}

void StepFolder::cut_back(int64_t step) const {
  sweep("");
  for (const StepFile& saved : list()) {
    std::error_code error;
    if (saved.step > step && !fs::remove(saved.path, error) && error) {
      throw IoError(saved.path, ": can't be removed: ", error.message());
    }
  }
  const auto left = list();
  const std::string last = folder_ + "/last.pt", best = folder_ + "/best.pt";
  if (!left.empty()) link_atomically(step_file_name(left.back().step), last);
  std::error_code ignored;
  if (fs::is_symlink(best, ignored) && !fs::exists(best, ignored)) fs::remove(best, ignored);
}

bool StepFolder::is_linked(const StepFile& saved) const {
  const auto points_there = [&](const char* link) {
    std::error_code ignored;
    return fs::read_symlink(folder_ + link, ignored).string() == step_file_name(saved.step);
  };
  return points_there("/last.pt") || points_there("/best.pt");
}

// Removes what killed writers have left, of files whose names begin with `prefix`: the folder has only one writer,
// which is not writing now.
void StepFolder::sweep(const std::string& prefix) const {
  std::error_code ignored;
  for (const fs::path& path : entries_of(folder_)) {
    const std::string name = path.filename().string();
    if (name.starts_with(prefix) && name.ends_with(temporary_name(kStepSuffix))) fs::remove(path, ignored);
  }
}

// Files that can't be removed are left to the next save: a checkpoint too many harms nobody.
void StepFolder::prune() const {
  sweep(kStepPrefix);
  if (keep_last_ <= 0) return;
  std::error_code ignored;
  const auto all = list();
  for (size_t i = 0; i + static_cast<size_t>(keep_last_) < all.size(); ++i) {
    if (!is_linked(all[i])) fs::remove(all[i].path, ignored);
  }
}

}  // namespace lockstep::checkpoint
