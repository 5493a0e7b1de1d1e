#include "lockstep/launch/log_writer.h"

#include <fcntl.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/signals_blocked.h"

namespace lockstep::launch {

// Shared with the thread, which may outlive its owner in a write that hangs.
struct LogWriter::State {
  struct Text {
    LogFile file;
    std::string bytes;
  };

  std::mutex mutex;
  std::condition_variable work, rest;
  std::deque<Text> waiting;
  size_t bytes = 0;                    // that wait
  std::map<LogFile, size_t> left_out;  // bytes, by file, since the last line that was taken
  bool writing = false;
  bool ends = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [this] { return ends || !waiting.empty(); });
      if (waiting.empty()) return;
      const Text text = std::move(waiting.front());
      waiting.pop_front();
      bytes -= text.bytes.size();
      writing = true;
      lock.unlock();
      write_all(text.file->get(), text.bytes);  // a full disk is no reason to end a run
      lock.lock();
      writing = false;
      if (waiting.empty()) rest.notify_all();
    }
  }

  bool at_rest() const { return waiting.empty() && !writing; }
};

LogWriter::LogWriter() : state_(std::make_shared<State>()) {}

LogWriter::~LogWriter() {
  if (!thread_.joinable()) return;
  constexpr std::chrono::seconds kPatience{2};
  const bool written = drain(kPatience);
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
    if (!written) state_->waiting.clear();
  }
  state_->work.notify_all();
  if (written) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

LogFile LogWriter::open(const std::string& path) {
  auto file = std::make_shared<const Descriptor>(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!*file) throw IoError(path, ": can't be written: ", errno_text(errno), "; choose another folder");
  return file;
}

void LogWriter::write(const LogFile& file, std::string_view line) {
  if (!thread_.joinable()) {
    // Signals are for the launcher's thread.
    const SignalsBlocked meanwhile;
    thread_ = std::thread([state = state_] { state->run(); });
  }
  const std::lock_guard lock(state_->mutex);
  size_t& left_out = state_->left_out[file];
  if (state_->bytes + line.size() > kMostWaiting || (left_out > 0 && state_->bytes > kMostWaiting / 2)) {
    left_out += line.size() + 1;
    return;
  }
  std::string text = left_out == 0 ? "" : cat("[", human_bytes(left_out), " left out: the disk did not keep up]\n");
  left_out = 0;
  text.append(line).append("\n");
  state_->bytes += text.size();
  if (!state_->waiting.empty() && state_->waiting.back().file == file) {
    state_->waiting.back().bytes += text;
  } else {
    state_->waiting.push_back({file, std::move(text)});
  }
  state_->work.notify_one();
}

bool LogWriter::drain(std::chrono::milliseconds time) const {
  std::unique_lock lock(state_->mutex);
  return state_->rest.wait_for(lock, time, [this] { return state_->at_rest(); });
}

}  // namespace lockstep::launch
