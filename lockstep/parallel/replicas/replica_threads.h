// The threads on which the replicas of a network compute, one for each.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::parallel {

// Thrown in a replica's thread to end it where another one has failed. It never leaves ReplicaThreads::run().
struct ReplicaCancelled : std::exception {
  const char* what() const noexcept override { return "another replica has failed"; }
};

// Used by one thread. Threads are started when they are first needed, and stay.
class ReplicaThreads {
 public:
  ReplicaThreads() = default;
  ~ReplicaThreads();  // joins the threads
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Calls work(i) for 0 <= i < count, all at once, each with the caller's libtorch settings (autocast, gradient mode)
  // and its share of the caller's intra-op threads, at least one. `failed` is called on the thread of each one that
  // throws, for what others wait for. Throws the error of the first one in order, once all have ended.
  void run(size_t count, const std::function<void(size_t)>& work, const std::function<void()>& failed = {});

  // The replica that this thread computes.
  static size_t current();

 private:
  void loop(size_t number);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  std::function<void(size_t)> work_;  // of the run under way
  size_t count_ = 0, ended_ = 0;      // in it
  uint64_t runs_ = 0;
  std::vector<std::exception_ptr> errors_;  // by replica
  bool closing_ = false;
};

}  // namespace lockstep::parallel
