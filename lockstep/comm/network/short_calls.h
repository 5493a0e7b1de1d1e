// A watchdog for calls into a library that are to return at once, and that may deadlock inside it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace lockstep::comm {

class ShortCalls {
 public:
  // `stuck` gets the peer of a call that never returns, on the watchdog's thread. It does not use this object.
  explicit ShortCalls(std::function<void(int peer)> stuck) : stuck_(std::move(stuck)) {}
  ~ShortCalls();
  ShortCalls(const ShortCalls&) = delete;
  ShortCalls& operator=(const ShortCalls&) = delete;

  // A call by this thread, as long as the object lives. It never returns if its thread sleeps in it at each look for
  // three seconds: a thread that computes, reads pages in, or is kept from the processor does not sleep; nor does the
  // watchdog look while the process is stopped. Any thread.
  class Call {
   public:
    Call(ShortCalls& all, int peer);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    ShortCalls& all_;
    uint64_t number_;
  };

 private:
  struct UnderWay {
    pid_t thread = 0;
    int peer = 0;
    int asleep = 0;  // looks in a row that found it so
  };

  void run();

  std::function<void(int)> stuck_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<uint64_t, UnderWay> calls_;  // by number
  uint64_t next_ = 1;
  bool ending_ = false;
  std::thread thread_;  // started with the first call
};

}  // namespace lockstep::comm
