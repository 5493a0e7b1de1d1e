// Work on many things by several threads, whose results one thread takes in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/no_threads.h"

namespace lockstep {

// What became of one thing: a result, or an exception.
template <typename Result>
class Outcome {
 public:
  explicit Outcome(Result result) : result_(std::move(result)) {}
  explicit Outcome(std::exception_ptr error) : error_(std::move(error)) {}

  // Returns the result, or throws what the worker threw.
  Result get() && {
    if (error_) std::rethrow_exception(error_);
    return std::move(*result_);
  }

 private:
  std::optional<Result> result_;
  std::exception_ptr error_;
};

namespace internal {

// The results that are made and not taken yet, a few more than there are threads. Any thread.
template <typename Result>
class OrderedResults {
 public:
  OrderedResults(int64_t count, int threads) : count_(count), slots_(static_cast<size_t>(2 * threads + 2)) {}

  // The number of the next thing to work on, once there is room for its result; nothing if there is none.
  std::optional<int64_t> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || next_ >= count_ || next_ < taken_ + std::ssize(slots_); });
    if (ended_ || next_ >= count_) return std::nullopt;
    return next_++;
  }

  void put(int64_t index, Outcome<Result> outcome) {
    {
      const std::lock_guard lock(mutex_);
      slot(index).emplace(std::move(outcome));
    }
    changed_.notify_all();
  }

  Outcome<Result> take() {
    std::unique_lock lock(mutex_);
    auto& wanted = slot(taken_);
    changed_.wait(lock, [&] { return wanted.has_value(); });
    Outcome<Result> outcome = std::move(*wanted);
    wanted.reset();
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return outcome;
  }

  // No more work is given out.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::optional<Outcome<Result>>& slot(int64_t index) {
    return slots_[static_cast<size_t>(index % std::ssize(slots_))];
  }

  const int64_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Outcome<Result>>> slots_;
  int64_t next_ = 0, taken_ = 0;
  bool ended_ = false;
};

}  // namespace internal

// Calls take(index, Outcome<Result>) for 0, 1, … count - 1 on the calling thread. The results come from `threads`
// others, or from the calling thread where that is 0: each calls make_worker() once and then worker(index) for one
// index after the other. No more than a few
// results wait to be taken. What `take` throws ends the work, after the samples that are at work, and is thrown. Throws
// IoError if the system has no more threads.
template <typename Result, typename MakeWorker, typename Take>
void in_order(int64_t count, int threads, const MakeWorker& make_worker, const Take& take) {
  using Worker = std::optional<decltype(make_worker())>;
  const auto outcome_of = [&](Worker& worker, int64_t index) {
    try {
      if (!worker) worker.emplace(make_worker());
      return Outcome<Result>((*worker)(index));
    } catch (...) {
      return Outcome<Result>(std::current_exception());
    }
  };
  if (threads <= 0) {
    Worker worker;
    for (int64_t index = 0; index < count; ++index) take(index, outcome_of(worker, index));
    return;
  }
  internal::OrderedResults<Result> results(count, threads);
  const auto work = [&] {
    Worker worker;
    while (const auto index = results.next()) results.put(*index, outcome_of(worker, *index));
  };
  struct Ending {
    internal::OrderedResults<Result>& results;
    ~Ending() { results.end(); }
  };
  std::vector<std::jthread> workers;
  const Ending ending{results};  // before the threads are joined
  const auto wanted = static_cast<int>(std::min<int64_t>(threads, count));
  try {
    for (int i = 0; i < wanted; ++i) workers.emplace_back(work);
  } catch (const std::system_error& error) {
    throw_no_threads(wanted, "to read data", error);
  }
  for (int64_t index = 0; index < count; ++index) take(index, results.take());
}

}  // namespace lockstep
