// Writes log files on a thread of its own, so that a disk or network file system that hangs does not stop the launcher.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// A log file that is appended to. It is closed once all that was written to it is on its way.
using LogFile = std::shared_ptr<const Descriptor>;

// write() and drain() are for one thread.
class LogWriter {
 public:
  LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  // Waits for what is not written yet, for a few seconds; a file that hangs longer does not get it.
  ~LogWriter();

  // Opens `path`. Throws IoError.
  static LogFile open(const std::string& path);

  // Hands a line to the thread, which adds the newline; the first one starts it. Text beyond kMostWaiting bytes that
  // wait is left out, and the file says how much.
  void write(const LogFile& file, std::string_view line);

  // Waits until all is written, for at most `time`; returns whether it is.
  bool drain(std::chrono::milliseconds time) const;

  static constexpr size_t kMostWaiting = size_t{16} << 20;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace lockstep::launch
