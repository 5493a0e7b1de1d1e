// The logs of a run, as they are or as they grow.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// A file that others write to, read from a place on. It need not be there yet. One thread.
class FollowedFile {
 public:
  // With `lines` from those last lines on, else from the beginning.
  FollowedFile(std::string path, std::optional<uint64_t> lines) : path_(std::move(path)), lines_(lines) {}

  struct News {
    std::string text = {};
    bool anew = false;  // the file was cut off or replaced, and this is from its beginning
  };
  // Returns what has been written since the last call, some of it if it is much. Throws IoError if the file can't be
  // read.
  News next();

 private:
  bool open_anew();

  std::string path_;
  std::optional<uint64_t> lines_;
  Descriptor file_;
  uint64_t at_ = 0;
};

// Returns the log that a run is to be shown by: that of the rank, or without a rank what its launcher printed if the
// present start, or the last one, was in the background, else rank 0's. Throws ConfigError for a rank that the run
// does not have, and for a run without logs.
std::string log_of(const std::string& folder, std::optional<int> rank);

struct Following {
  bool follow = false;
  std::optional<uint64_t> lines = {};  // from those last lines on; else all
  std::chrono::milliseconds interval{100};
  int out_fd = -1;  // where `show` writes: it ends, too, when a pipe's or terminal's other end there is closed
};

// Passes the log's text to `show` piece by piece, until that returns false; with `follow` until the run in `folder` has
// ended and all is shown. `tell` gets a line for people if the log is cut off. Throws IoError.
void show_log(const std::string& folder, const std::string& log, const Following& options,
              const std::function<bool(const std::string& text)>& show,
              const std::function<void(const std::string& line)>& tell);

}  // namespace lockstep::launch
