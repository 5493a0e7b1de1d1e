#include "lockstep/launch/runs/follow.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/launch/runs/file_end.h"
#include "lockstep/launch/runs_root.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 256UL * 1024;

// "0-2", "none".
std::string ranks_with_logs(const train::RunFiles& files) {
  std::vector<int> ranks;
  for (int rank = 0; is_there(files.rank_log(rank)); ++rank) ranks.push_back(rank);
  return ranges(ranks);
}

// Waits for the interval, unless nobody reads any more.
bool reader_left(const Following& options) {
  pollfd reader{.fd = options.out_fd, .events = 0, .revents = 0};  // a negative one is passed over
  return poll(&reader, 1, static_cast<int>(options.interval.count())) == 1;
}

// Each start in the background writes to the log at once, after it has written its lock.
bool is_of_last_start(const std::string& launcher_log, const std::string& lock) {
  std::error_code error;
  const auto written = fs::last_write_time(launcher_log, error);
  if (error) return false;
  const auto locked = fs::last_write_time(lock, error);
  return error || written >= locked;
}

}  // namespace

// False if there is no file.
bool FollowedFile::open_anew() {
  file_ = Descriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_ && errno != ENOENT) throw IoError(path_, ": can't be read: ", errno_text(errno));
  at_ = 0;
  return static_cast<bool>(file_);
}

FollowedFile::News FollowedFile::next() {
  News news;
  struct stat ours {};
  struct stat there {};
  if (!file_) {
    if (!open_anew()) return news;
    if (fstat(file_.get(), &ours) == 0 && lines_) {
      at_ = begin_of_lines(file_.get(), static_cast<uint64_t>(ours.st_size), *lines_);
    }
    lines_.reset();
  }
  news.text.resize(kMostBytes);
  const ssize_t got = pread(file_.get(), news.text.data(), news.text.size(), static_cast<off_t>(at_));
  if (got < 0) throw IoError(path_, ": can't be read: ", errno_text(errno));
  news.text.resize(static_cast<size_t>(got));
  at_ += static_cast<uint64_t>(got);
  if (got > 0 || fstat(file_.get(), &ours) != 0) return news;
  const bool cut = static_cast<uint64_t>(ours.st_size) < at_;
  const bool replaced =
      stat(path_.c_str(), &there) == 0 && (there.st_dev != ours.st_dev || there.st_ino != ours.st_ino);
  if (!cut && !replaced) return news;
  if (replaced && !open_anew()) return news;
  at_ = 0;
  news = next();
  news.anew = true;
  return news;
}

std::string log_of(const std::string& folder, std::optional<int> rank) {
  const train::RunFiles files{folder};
  if (rank) {
    std::string log = files.rank_log(*rank);
    if (is_there(log)) return log;
    throw ConfigError("--rank ", *rank, ": ", folder, " has logs of ranks ", ranks_with_logs(files));
  }
  if (is_of_last_start(files.launcher_log(), files.lock())) return files.launcher_log();
  if (is_there(files.rank_log(0))) return files.rank_log(0);
  if (is_there(files.launcher_log())) return files.launcher_log();
  throw ConfigError(folder, ": has no logs; another launcher than lockstep's has them");
}

void show_log(const std::string& folder, const std::string& log, const Following& options,
              const std::function<bool(const std::string& text)>& show,
              const std::function<void(const std::string& line)>& tell) {
  FollowedFile file(log, options.lines);
  for (;;) {
    const bool under_way = options.follow && train::owner_of(folder).held;  // what comes after this look is seen next
    FollowedFile::News news = file.next();
    if (news.anew) tell(cat(log, ": was cut off, and is shown from its beginning"));
    const bool more = !news.text.empty();
    if (more && !show(news.text)) return;
    if (more) continue;
    if (!under_way) return;
    if (reader_left(options)) return;
  }
}

}  // namespace lockstep::launch
