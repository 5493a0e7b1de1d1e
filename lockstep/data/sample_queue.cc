#include "lockstep/data/sample_queue.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kMostOfARun = 8;   // samples
constexpr size_t kUnitsToldOf = 2;  // so many units after the one that is opened

}  // namespace

SampleQueue::SampleQueue(std::shared_ptr<const Dataset> dataset, Plan plan, int64_t most_rows, uint64_t first,
                         SampleQueueOptions options)
    : dataset_(std::move(dataset)),
      plan_(std::move(plan)),
      options_(options),
      pool_(dataset_->fields(), most_rows),
      next_(first) {
  try {
    for (int i = 0; i < options.workers; ++i)
      threads_.emplace_back([this, &desk = desks_.emplace_back()] { work(desk); });
  } catch (const std::system_error& error) {
    stop();
    throw IoError("can't start ", options.workers, " threads to load data: ", error.what(), "; ask for fewer workers");
  }
}

SampleQueue::~SampleQueue() { stop(); }

SampleQueue::Unit SampleQueue::next() {
  std::unique_lock lock(mutex_);
  while (true) {
    Run run;
    if (units_.empty()) open_unit(run);
    const std::shared_ptr<Open> wanted = units_.front();
    if (wanted->left == 0) break;
    if (take_run(wanted, run)) {
      serve(lock, std::move(run), nullptr);
    } else if (!ready_.wait_for(lock, bounded(options_.timeout), [&] { return wanted->left == 0; })) {
      throw_late();
    }
  }
  const std::shared_ptr<Open> unit = units_.front();
  if (unit->error) std::rethrow_exception(unit->error);
  units_.pop_front();
  ++next_;
  lock.unlock();
  room_.notify_all();
  if (unit->block == nullptr) return {.batch = SampleRows(dataset_->fields(), 0).batch(), .stats = {}};
  return {.batch = batch_in(unit->block, std::ssize(unit->samples)), .stats = unit->stats};
}

void SampleQueue::seek(uint64_t unit) {
  std::deque<std::shared_ptr<Open>> dropped;  // freed when the lock is released
  const std::lock_guard lock(mutex_);
  dropped.swap(units_);
  planned_.clear();
  next_ = unit;
  room_.notify_all();
}

void SampleQueue::work(Desk& desk) {
  std::unique_lock lock(mutex_);
  while (true) {
    Run run;
    room_.wait(lock, [&] { return stopping_ || find_run(run); });
    if (stopping_) return;
    serve(lock, std::move(run), &desk);
  }
}

// Reads without the lock.
void SampleQueue::serve(std::unique_lock<std::mutex>& lock, Run run, Desk* desk) {
  lock.unlock();
  const Outcome outcome = read(run, desk);
  lock.lock();
  finish(run, outcome);
}

// A run of the oldest unit that has samples left, or of a new one.
bool SampleQueue::find_run(Run& run) {
  for (const auto& unit : units_) {
    if (take_run(unit, run)) return true;
  }
  while (units_.size() < options_.ahead && next_ + units_.size() < options_.end) {
    open_unit(run);
    room_.notify_all();
    if (take_run(units_.back(), run)) return true;  // else it is an empty lane's
  }
  return false;
}

bool SampleQueue::take_run(const std::shared_ptr<Open>& unit, Run& run) const {
  const size_t samples = unit->samples.size();
  if (unit->claimed == samples) return false;
  const auto workers = static_cast<size_t>(options_.workers);
  const size_t fair = workers == 0 ? samples : std::clamp(samples / (4 * workers), size_t{1}, kMostOfARun);
  run.unit = unit;
  run.first = unit->claimed;
  run.count = std::min(fair, samples - unit->claimed);
  unit->claimed += run.count;
  return true;
}

void SampleQueue::open_unit(Run& run) {
  const uint64_t number = next_ + units_.size();
  if (number >= options_.end) throw BugError("unit ", number, " of ", options_.end, " was asked for");
  units_.push_back(std::make_shared<Open>());
  Open& unit = *units_.back();
  try {
    while (planned_.size() <= kUnitsToldOf && number + planned_.size() < options_.end) {
      planned_.push_back(plan_(number + planned_.size()));
      for (const SampleRead& sample : planned_.back()) run.soon.push_back(sample.index);
    }
    unit.samples = std::move(planned_.front());
    planned_.pop_front();
    if (!unit.samples.empty()) unit.block = pool_.take();
    unit.left = unit.samples.size();
  } catch (...) {
    unit.error = std::current_exception();  // for next(): workers have nobody to tell
    unit.claimed = unit.samples.size();
  }
}

SampleQueue::Outcome SampleQueue::read(const Run& run, Desk* desk) const {
  Outcome outcome;
  size_t place = run.first;
  try {
    if (!run.soon.empty()) dataset_->will_need(run.soon);
    for (; place < run.first + run.count; ++place) {
      const SampleRead& sample = run.unit->samples[place];
      if (desk != nullptr) {
        desk->since = monotonic_ns();
        desk->index = sample.index;
      }
      dataset_->read(sample.index, sample.draw, run.unit->block->row(static_cast<int64_t>(place)), outcome.stats);
    }
  } catch (...) {
    outcome.error = std::current_exception();
    outcome.failed = place;
  }
  if (desk != nullptr) desk->index = -1;
  return outcome;
}

void SampleQueue::finish(const Run& run, const Outcome& outcome) {
  Open& unit = *run.unit;
  unit.stats += outcome.stats;
  unit.left -= run.count;
  if (outcome.error) {
    if (!unit.error || outcome.failed < unit.failed) {
      unit.error = outcome.error;
      unit.failed = outcome.failed;
    }
    // Samples before the one that failed have been taken by readers already: none can fail that would come first.
    unit.left -= unit.samples.size() - unit.claimed;
    unit.claimed = unit.samples.size();
  }
  if (unit.left == 0) ready_.notify_one();
}

void SampleQueue::throw_late() const {
  const Desk* slowest = nullptr;
  for (const Desk& desk : desks_) {
    if (desk.index >= 0 && (slowest == nullptr || desk.since < slowest->since)) slowest = &desk;
  }
  const double seconds = std::chrono::duration<double>(options_.timeout).count();
  if (slowest == nullptr) throw IoError("loading data: a batch was not ready after ", seconds, " s");
  throw IoError("loading data: ", dataset_->name_of(slowest->index), " has been read for ",
                seconds_since(slowest->since), " s; does the file system that the data lies on hang?");
}

void SampleQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace lockstep::data
