#include "lockstep/track/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/log.h"
#include "lockstep/track/crc32c.h"
#include "lockstep/track/wall_time.h"

namespace lockstep::track {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "events.out.tfevents.", kEnd = ".lockstep";

// Fields of tensorflow.Event, and of SessionLog.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7, kStatus = 1;
constexpr int64_t kStart = 1;

void append(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

// Its name sorts behind those of earlier starts, in whose order the viewer reads them.
std::string new_path(const std::string& folder) {
  auto seconds = static_cast<int64_t>(wall_seconds());
  for (const std::string& each : event_files(folder)) {
    const std::string name = fs::path(each).filename().string();
    seconds = std::max<int64_t>(seconds, 1 + std::strtoll(name.c_str() + kBegin.size(), nullptr, 10));
  }
  return cat(folder, '/', kBegin, seconds, '.', host_name(), '.', getpid(), kEnd);
}

}  // namespace

std::string framed(std::string_view record) {
  std::string frame;
  append(frame, record.size(), 8);
  append(frame, masked_crc32c(frame), 4);
  frame += record;
  append(frame, masked_crc32c(record), 4);
  return frame;
}

EventFile::EventFile(const std::string& folder, int64_t first_step) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError(folder, ": can't be created: ", error.message());
  path_ = new_path(folder);
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file_) throw IoError(path_, ": can't be written: ", errno_text(errno));
  write(ProtoWriter().real(kWallTime, wall_seconds()).text(kFileVersion, "brain.Event:2"));
  // In a run's first file, too: the viewer takes only a second start for one that drops something.
  write(ProtoWriter()
            .real(kWallTime, wall_seconds())
            .whole(kStep, first_step)
            .message(kSessionLog, ProtoWriter().whole(kStatus, kStart)));
}

void EventFile::summary(int64_t step, double seconds, const ProtoWriter& summary) {
  write(ProtoWriter().real(kWallTime, seconds).whole(kStep, step).message(kSummary, summary));
}

void EventFile::write(const ProtoWriter& event) {
  if (!write_all(file_.get(), framed(event.bytes()))) {
    throw IoError(path_, ": can't be written: ", errno_text(errno), "; free some space, then --resume");
  }
}

bool is_event_file(const std::string& name) { return name.starts_with(kBegin) && name.ends_with(kEnd); }

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::path& path : entries_of(folder, error)) {
    if (is_event_file(path.filename().string())) found.push_back(path.string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw IoError(folder, ": can't be read: ", error.message());
  }
  return found;
}

bool remove_event_files(const std::string& folder) {
  const auto found = event_files(folder);
  for (const std::string& each : found) {
    std::error_code error;
    fs::remove(each, error);
    if (error) throw IoError(each, ": can't be removed: ", error.message());
  }
  return !found.empty();
}

bool has_event_files(const std::string& folder) { return !event_files(folder).empty(); }

}  // namespace lockstep::track
