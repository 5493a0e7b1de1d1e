#include "lockstep/data/prefetcher.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::data {

Prefetcher::Prefetcher(Make make, uint64_t first, PrefetcherOptions options)
    : make_(std::move(make)),
      options_(options),
      slots_(std::max<size_t>(1, options.ahead)),
      next_(first),
      claimed_(first) {
  try {
    for (int i = 0; i < options.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    stop();
    throw IoError("can't start ", options.workers, " threads to load data: ", error.what(), "; ask for fewer workers");
  }
}

Prefetcher::~Prefetcher() { stop(); }

Batch Prefetcher::next() {
  if (threads_.empty()) {
    Batch batch = make_(next_);
    ++next_;
    return batch;
  }
  std::unique_lock lock(mutex_);
  if (!ready_.wait_for(lock, options_.timeout, [&] { return slot(next_).ready; })) {
    throw IoError("loading data: batch ", next_, " was not ready after ",
                  std::chrono::duration<double>(options_.timeout).count(),
                  " s; does the file system that the data lies on hang?");
  }
  if (slot(next_).error) std::rethrow_exception(slot(next_).error);
  Batch batch = std::exchange(slot(next_), {}).batch;
  ++next_;
  room_.notify_one();
  return batch;
}

void Prefetcher::seek(uint64_t unit) {
  std::vector<Slot> dropped(slots_.size());  // freed when the lock is released
  const std::lock_guard lock(mutex_);
  dropped.swap(slots_);
  next_ = claimed_ = unit;
  ++generation_;
  room_.notify_all();
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stopping_ || claimed_ < next_ + slots_.size(); });
    if (stopping_) return;
    const uint64_t unit = claimed_++;
    const uint64_t generation = generation_;
    lock.unlock();
    Slot made = make_slot(unit);
    lock.lock();
    if (generation != generation_) continue;
    slot(unit) = std::move(made);
    ready_.notify_one();
  }
}

Prefetcher::Slot Prefetcher::make_slot(uint64_t unit) const {
  Slot made{.ready = true, .batch = {}, .error = nullptr};
  try {
    made.batch = make_(unit);
  } catch (...) {
    made.error = std::current_exception();
  }
  return made;
}

void Prefetcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace lockstep::data
