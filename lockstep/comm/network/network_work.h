// Calls under way over a network. A thread of the communicator carries each to its end; the rank's own thread waits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lockstep/comm/communicator.h"

namespace lockstep::comm {

class NetworkWork final : public Work {
 public:
  // What a waiting thread does. Each may be empty.
  struct Hooks {
    std::function<void()> remind = {};  // called every 200 ms
    std::function<std::shared_ptr<void>()> block =
        {};                               // called at the beginning of wait(); the result lives to its end
    std::function<void()> progress = {};  // called every millisecond
    // The time that is left to the calls under way; without it, to the end of this call's timeout.
    std::function<std::chrono::nanoseconds()> left = {};
  };

  // `timeout` is the call's.
  NetworkWork(std::string label, std::chrono::nanoseconds timeout, Hooks hooks);

  bool done() override;
  bool wait_for(std::chrono::nanoseconds time) override;
  void wait() override;
  std::chrono::nanoseconds elapsed() const override;

  // Whether finish() has been called.
  bool ended() const;
  // Waits for finish(). Any thread.
  void wait_for_end();
  // Ends the call, with the error that it failed with or null. Called once, by the thread that carries the call out.
  void finish(std::exception_ptr error);

 private:
  std::string label_;
  std::chrono::nanoseconds timeout_;
  Hooks hooks_;
  int64_t began_ns_, ended_ns_ = 0;
  bool done_ = false;
  std::exception_ptr error_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
};

// A thread that runs tasks one after the other. The destructor waits for the last of them.
class SerialThread {
 public:
  SerialThread() = default;
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  void push(std::function<void()> task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;  // started with the first task
};

}  // namespace lockstep::comm
