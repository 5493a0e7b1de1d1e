#include "lockstep/data/sample_queue.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kMostOfARun = 8;   // samples
constexpr size_t kUnitsToldOf = 2;  // so many units after the one that is opened

// A unit that is being read, or ready.
struct Open {
  std::vector<SampleRead> samples;
  std::shared_ptr<SampleRows> block;  // null for an empty lane
  size_t claimed = 0;                 // samples that readers have taken; they are the first ones
  size_t left = 0;                    // samples that are not read yet
  ReadStats stats;
  std::exception_ptr error;           // of the first sample that failed
  size_t failed = 0;                  // its place
  std::atomic<bool> dropped = false;  // nobody wants it any more
};

// Some samples of a unit that one reader reads.
struct Run {
  std::shared_ptr<Open> unit;
  size_t first = 0;
  size_t count = 0;
  std::vector<int64_t> soon;  // samples to tell the data set of beforehand
};

struct Outcome {
  ReadStats stats;
  std::exception_ptr error;
  size_t failed = 0;
};

// What a thread reads just now.
struct alignas(64) Desk {
  std::atomic<int64_t> index = -1;  // of the sample; -1: none
  std::atomic<int64_t> since = 0;   // monotonic_ns()
  bool gone = false;                // the thread ends

  void put(int64_t sample) {
    since.store(monotonic_ns(), std::memory_order_release);
    index.store(sample, std::memory_order_release);
  }
  void clear() { index.store(-1, std::memory_order_release); }
};

// The length of one wait of the many that make up a timeout. A process that is stopped in one loses no more than it.
std::chrono::nanoseconds slice_of(std::chrono::nanoseconds timeout) {
  return std::clamp<std::chrono::nanoseconds>(timeout / 16, std::chrono::milliseconds(1), std::chrono::seconds(1));
}

void check(const Dataset& dataset, const SampleQueueOptions& options) {
  if (options.workers < 0 || options.workers > kMostWorkers) {
    throw ConfigError("workers: ", options.workers, " is out of range; 0 to ", kMostWorkers, " are possible");
  }
  check_fields(dataset);
}

// A hint: what is wrong with a sample is said when it is read.
void tell(const Dataset& dataset, const std::vector<int64_t>& soon) {
  try {
    dataset.will_need(soon);
  } catch (...) {
  }
}

}  // namespace

struct SampleQueue::State {
  State(std::shared_ptr<const Dataset> the_dataset, Plan the_plan, int64_t most_rows, uint64_t first,
        SampleQueueOptions the_options)
      : dataset(std::move(the_dataset)),
        plan(std::move(the_plan)),
        options(the_options),
        pool(dataset->fields(), most_rows, 2 * options.ahead),  // those that are open, and as many that were taken
        next(first),
        desks(options.workers > 0 ? static_cast<size_t>(options.workers) + 1 : 0) {}

  const std::shared_ptr<const Dataset> dataset;
  const Plan plan;
  const SampleQueueOptions options;
  BatchPool pool;

  std::mutex mutex;                             // guards all below but what is atomic
  std::condition_variable room;                 // for workers: there may be samples to take
  std::condition_variable help;                 // for the helper: the consumer waits
  std::condition_variable ready;                // for the consumer: a unit is ready
  std::condition_variable gone;                 // for the destructor: a thread ends
  std::deque<std::shared_ptr<Open>> units;      // those from `next` on
  std::deque<std::vector<SampleRead>> planned;  // the units after them
  std::vector<int64_t> soon;                    // samples of those that the data set was not told of yet
  uint64_t next;                                // the unit that next() returns
  bool waits = false;                           // the consumer, for the first unit
  bool stopping = false;
  std::atomic<bool> tried = false;  // the first sample was read twice, or is being
  std::deque<Desk> desks;           // the workers', then the helper's

  void work(Desk& desk, bool helps);
  void serve(std::unique_lock<std::mutex>& lock, const Run& run, Desk* desk);
  bool find_run(Run& run);
  bool take_run(const std::shared_ptr<Open>& unit, Run& run);
  void open_unit();
  Outcome read(const Run& run, Desk* desk);
  void finish(const Run& run, const Outcome& outcome);
  void wait_for(std::unique_lock<std::mutex>& lock, const Open& unit);
  [[noreturn]] void throw_late() const;
  void drop_all();
  bool may_leave(const Desk& desk) const;
};

// A thread's life.
void SampleQueue::State::work(Desk& desk, bool helps) {
  std::unique_lock lock(mutex);
  while (true) {
    Run run;
    if (helps) {
      help.wait(lock, [&] { return stopping || (waits && take_run(units.front(), run)); });
    } else {
      room.wait(lock, [&] { return stopping || find_run(run); });
    }
    if (stopping) break;
    serve(lock, run, &desk);
  }
  desk.gone = true;
  gone.notify_one();
}

// Reads without the lock.
void SampleQueue::State::serve(std::unique_lock<std::mutex>& lock, const Run& run, Desk* desk) {
  lock.unlock();
  const Outcome outcome = read(run, desk);
  lock.lock();
  finish(run, outcome);
}

// A run of the oldest unit that has samples left, or of a new one.
bool SampleQueue::State::find_run(Run& run) {
  for (const auto& unit : units) {
    if (take_run(unit, run)) return true;
  }
  while (units.size() < options.ahead && next + units.size() < options.end) {
    open_unit();
    room.notify_all();
    if (take_run(units.back(), run)) return true;  // else it is an empty lane's
  }
  return false;
}

bool SampleQueue::State::take_run(const std::shared_ptr<Open>& unit, Run& run) {
  const size_t samples = unit->samples.size();
  if (unit->claimed == samples) return false;
  const auto workers = static_cast<size_t>(options.workers);
  const size_t fair = workers == 0 ? samples : std::clamp(samples / (4 * workers), size_t{1}, kMostOfARun);
  run.unit = unit;
  run.first = unit->claimed;
  run.count = std::min(fair, samples - unit->claimed);
  run.soon = std::exchange(soon, {});
  unit->claimed += run.count;
  return true;
}

void SampleQueue::State::open_unit() {
  const uint64_t number = next + units.size();
  units.push_back(std::make_shared<Open>());
  Open& unit = *units.back();
  try {
    while (planned.size() <= kUnitsToldOf && number + planned.size() < options.end) {
      planned.push_back(plan(number + planned.size()));
      for (const SampleRead& sample : planned.back()) soon.push_back(sample.index);
    }
    unit.samples = std::move(planned.front());
    planned.pop_front();
    if (!unit.samples.empty()) unit.block = pool.take();
    unit.left = unit.samples.size();
  } catch (...) {
    unit.error = std::current_exception();  // for next(): workers have nobody to tell
    unit.claimed = unit.samples.size();
  }
}

Outcome SampleQueue::State::read(const Run& run, Desk* desk) {
  Outcome outcome;
  size_t place = run.first;
  const auto on_desk = [&](int64_t index) {
    if (desk != nullptr) desk->put(index);
  };
  try {
    on_desk(run.unit->samples[place].index);
    if (!run.soon.empty()) tell(*dataset, run.soon);
    for (; place < run.first + run.count && !run.unit->dropped; ++place) {
      const SampleRead& sample = run.unit->samples[place];
      on_desk(sample.index);
      const auto rows = run.unit->block->row(static_cast<int64_t>(place));
      const bool is_first = !tried.exchange(true);
      try {
        (is_first ? read_sample_twice : read_sample)(*dataset, sample, rows, outcome.stats);
      } catch (...) {
        if (is_first) tried = false;
        throw;
      }
    }
  } catch (...) {
    outcome.error = std::current_exception();
    outcome.failed = place;
  }
  if (desk != nullptr) desk->clear();
  return outcome;
}

void SampleQueue::State::finish(const Run& run, const Outcome& outcome) {
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
  if (unit.left == 0) ready.notify_one();
}

void SampleQueue::State::wait_for(std::unique_lock<std::mutex>& lock, const Open& unit) {
  waits = true;
  help.notify_one();
  std::chrono::nanoseconds patience = bounded(options.timeout);
  while (unit.left > 0 && patience.count() > 0) {
    const size_t before = unit.left;
    const auto slice = std::min(patience, slice_of(options.timeout));
    ready.wait_for(lock, slice, [&] { return unit.left == 0; });
    patience = unit.left < before ? bounded(options.timeout) : patience - slice;
  }
  waits = false;
  if (unit.left > 0) throw_late();
}

void SampleQueue::State::throw_late() const {
  int64_t slowest = -1, since = 0;
  for (const Desk& desk : desks) {
    const int64_t its_index = desk.index, its_since = desk.since;
    if (its_index < 0 || (slowest >= 0 && its_since >= since)) continue;
    slowest = its_index;
    since = its_since;
  }
  const double seconds = std::chrono::duration<double>(options.timeout).count();
  if (slowest < 0) throw IoError("loading data: a batch was not ready after ", seconds, " s");
  throw IoError("loading data: ", dataset->name_of(slowest), " has been read for ", seconds_since(since),
                " s; does the file system that the data lies on hang?");
}

// Makes readers of what is open stop after the sample that they are at.
void SampleQueue::State::drop_all() {
  for (const auto& unit : units) unit->dropped = true;
  units.clear();
  planned.clear();
  soon.clear();
}

// Whether the destructor needn't wait for the thread any more.
bool SampleQueue::State::may_leave(const Desk& desk) const {
  const bool owned = dataset.use_count() > 0;
  const bool hangs = desk.index >= 0 && monotonic_ns() - desk.since > bounded(options.timeout).count();
  return desk.gone || (owned && hangs);
}

SampleQueue::SampleQueue(std::shared_ptr<const Dataset> dataset, Plan plan, int64_t most_rows, uint64_t first,
                         SampleQueueOptions options)
    : state_((check(*dataset, options),
              std::make_shared<State>(std::move(dataset), std::move(plan), most_rows, first, options))) {
  try {
    for (Desk& desk : state_->desks) {
      const bool helps = &desk == &state_->desks.back();
      threads_.emplace_back([state = state_, &desk, helps] { state->work(desk, helps); });
    }
  } catch (const std::system_error& error) {
    stop();
    throw IoError("can't start ", options.workers, " threads to load data: ", error.what(), "; ask for fewer workers");
  }
}

SampleQueue::~SampleQueue() { stop(); }

const BatchPool& SampleQueue::pool() const { return state_->pool; }

SampleQueue::Unit SampleQueue::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.next >= state.options.end) throw BugError("unit ", state.next, " of ", state.options.end, " was asked for");
  if (state.units.empty()) {
    state.open_unit();
    state.room.notify_all();
  }
  const std::shared_ptr<Open> unit = state.units.front();
  if (state.options.workers > 0) {
    state.wait_for(lock, *unit);
  } else if (Run all; state.take_run(unit, all)) {
    state.serve(lock, all, nullptr);
  }
  if (unit->error) std::rethrow_exception(unit->error);
  state.units.pop_front();
  ++state.next;
  lock.unlock();
  state.room.notify_all();
  if (unit->block == nullptr) return {.batch = SampleRows(state.dataset->fields(), 0).batch(), .stats = {}};
  return {.batch = batch_in(unit->block, std::ssize(unit->samples)), .stats = unit->stats};
}

void SampleQueue::seek(uint64_t unit) {
  const std::lock_guard lock(state_->mutex);
  state_->drop_all();
  state_->next = unit;
  state_->room.notify_all();
}

void SampleQueue::stop() {
  State& state = *state_;
  std::vector<std::thread*> ended;
  {
    std::unique_lock lock(state.mutex);
    state.stopping = true;
    state.drop_all();
    state.room.notify_all();
    state.help.notify_all();
    for (size_t i = 0; i < threads_.size(); ++i) {
      const Desk& desk = state.desks[i];
      while (!state.may_leave(desk)) state.gone.wait_for(lock, slice_of(state.options.timeout));
      if (desk.gone) {
        ended.push_back(&threads_[i]);
      } else {
        threads_[i].detach();
      }
    }
  }
  for (std::thread* thread : ended) thread->join();
  threads_.clear();
}

}  // namespace lockstep::data
