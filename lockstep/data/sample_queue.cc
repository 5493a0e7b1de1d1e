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
#include "lockstep/base/no_threads.h"
#include "lockstep/data/desk.h"

namespace lockstep::data {
namespace {

constexpr size_t kMostOfARun = 8;   // samples
constexpr size_t kUnitsToldOf = 2;  // so many units after the one that is opened

// A unit that is being read, or ready.
struct Open {
  // A place whose sample can't be read.
  struct Met {
    size_t place = 0;
    bool is_filled = false;  // by a substitute
    std::vector<BadSample> bad;
  };

  uint64_t number = 0;
  std::vector<SampleRead> samples;
  std::shared_ptr<SampleRows> block;  // null for an empty lane
  size_t claimed = 0;                 // samples that readers have taken; they are the first ones
  size_t left = 0;                    // samples that are not read yet
  ReadStats stats;
  std::exception_ptr error;           // of the first sample that failed
  size_t failed = 0;                  // its place
  std::atomic<bool> dropped = false;  // nobody wants it any more
  std::vector<Met> met;
  bool is_ready = false;  // `batch` or `error` is there; no reader has the unit any more
  Batch batch;
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
  std::vector<Open::Met> met;
  std::exception_ptr error;
  size_t failed = 0;
};

// Of a unit that has been read: the places that stayed empty.
std::vector<int64_t> empty_places(Open& unit) {
  std::sort(unit.met.begin(), unit.met.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  std::vector<int64_t> places;
  for (const Open::Met& met : unit.met) {
    if (!met.is_filled) places.push_back(static_cast<int64_t>(met.place));
  }
  return places;
}

int64_t count_empty(const Open& unit) {
  return std::count_if(unit.met.begin(), unit.met.end(), [](const Open::Met& met) { return !met.is_filled; });
}

std::vector<BadSample> all_bad(const Open& unit) {
  std::vector<BadSample> all;
  for (const Open::Met& met : unit.met) all.insert(all.end(), met.bad.begin(), met.bad.end());
  return all;
}

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

// A queue without an end grows at its beginning rather than later. One that ends, as an epoch's, takes what it needs.
int64_t usual_blocks(const SampleQueueOptions& options) {
  return options.workers > 0 && !options.end ? static_cast<int64_t>(options.ahead) + 1 : 1;
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
        options(std::move(the_options)),
        pool(dataset->fields(), most_rows, 2 * options.ahead,  // those that are open, and as many that were taken
             options.memory, usual_blocks(options)),
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
  std::atomic<bool> tried = false;  // a sample was read twice, and came out alike
  std::deque<Desk> desks;           // the workers', then the helper's

  bool has(uint64_t unit) const { return !options.end || unit < *options.end; }
  void work(Desk& desk, bool helps);
  void serve(std::unique_lock<std::mutex>& lock, const Run& run, Desk* desk);
  bool find_run(Run& run);
  bool take_run(const std::shared_ptr<Open>& unit, Run& run);
  void open_unit();
  Outcome read(const Run& run, Desk* desk);
  void read_place(const Open& unit, size_t place, Desk* desk, Outcome& outcome);
  void finish(const Run& run, const Outcome& outcome);
  void complete(std::unique_lock<std::mutex>& lock, Open& unit);
  void wait_for(std::unique_lock<std::mutex>& lock, const Open& unit);
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

// Reads without the lock. Who reads a unit's last samples completes it.
void SampleQueue::State::serve(std::unique_lock<std::mutex>& lock, const Run& run, Desk* desk) {
  lock.unlock();
  const Outcome outcome = read(run, desk);
  lock.lock();
  finish(run, outcome);
  if (run.unit->left == 0) complete(lock, *run.unit);
}

// A run of the oldest unit that has samples left, or of a new one.
bool SampleQueue::State::find_run(Run& run) {
  for (const auto& unit : units) {
    if (take_run(unit, run)) return true;
  }
  while (units.size() < options.ahead && has(next + units.size())) {
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
  unit.number = number;
  try {
    while (planned.size() <= kUnitsToldOf && has(number + planned.size())) {
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
    unit.is_ready = true;
  }
}

Outcome SampleQueue::State::read(const Run& run, Desk* desk) {
  Outcome outcome;
  size_t place = run.first;
  try {
    if (desk != nullptr) desk->put(run.unit->samples[place].index);
    if (!run.soon.empty()) tell(*dataset, run.soon);
    for (; place < run.first + run.count && !run.unit->dropped; ++place) read_place(*run.unit, place, desk, outcome);
  } catch (...) {
    outcome.error = std::current_exception();
    outcome.failed = place;
  }
  if (desk != nullptr) desk->clear();
  return outcome;
}

void SampleQueue::State::read_place(const Open& unit, size_t place, Desk* desk, Outcome& outcome) {
  const auto rows = unit.block->row(static_cast<int64_t>(place));
  const auto read = [&](const SampleRead& sample) {
    if (desk != nullptr) desk->put(sample.index);
    const bool is_first = !tried;  // of each reader, until one has succeeded
    (is_first ? read_sample_twice : read_sample)(*dataset, sample, rows, outcome.stats);
    if (is_first) tried = true;
  };
  if (options.substitutes == nullptr) return read(unit.samples[place]);
  Open::Met met{.place = place};
  met.is_filled = options.substitutes->read(*dataset, unit.samples[place], met.bad, read);
  if (!met.bad.empty()) outcome.met.push_back(std::move(met));
}

void SampleQueue::State::finish(const Run& run, const Outcome& outcome) {
  Open& unit = *run.unit;
  unit.stats += outcome.stats;
  unit.met.insert(unit.met.end(), outcome.met.begin(), outcome.met.end());
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
}

// Without the lock: nobody else works on the unit any more.
void SampleQueue::State::complete(std::unique_lock<std::mutex>& lock, Open& unit) {
  if (!unit.error && !unit.dropped) {
    lock.unlock();
    try {
      const PlainTensors plain;
      const int64_t begin = monotonic_ns();
      unit.batch = unit.block == nullptr ? SampleRows(dataset->fields(), 0).batch()
                                         : batch_in(unit.block, std::ssize(unit.samples));
      unit.batch.drop_rows(empty_places(unit));
      if (options.complete) options.complete(unit.number, unit.batch);
      unit.stats.transform_ns += options.complete ? monotonic_ns() - begin : 0;
    } catch (...) {
      unit.error = std::current_exception();
    }
    lock.lock();
  }
  unit.is_ready = true;
  ready.notify_one();
}

void SampleQueue::State::wait_for(std::unique_lock<std::mutex>& lock, const Open& unit) {
  waits = true;
  help.notify_one();
  std::chrono::nanoseconds patience = bounded(options.timeout);
  while (!unit.is_ready && patience.count() > 0) {
    const size_t before = unit.left;
    const auto slice = std::min(patience, slice_of(options.timeout));
    ready.wait_for(lock, slice, [&] { return unit.is_ready; });
    patience = unit.left < before ? bounded(options.timeout) : patience - slice;
  }
  waits = false;
  if (!unit.is_ready) throw_late(desks, *dataset, options.timeout);
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
  const std::chrono::nanoseconds most = std::min(options.timeout, options.patience);
  const bool hangs = desk.index >= 0 && monotonic_ns() - desk.since > most.count();
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
    throw_no_threads(options.workers, "to load data", error);
  }
}

SampleQueue::~SampleQueue() { stop(); }

const BatchPool& SampleQueue::pool() const { return state_->pool; }

SampleQueue::Unit SampleQueue::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.has(state.next)) throw BugError("unit ", state.next, " of ", *state.options.end, " was asked for");
  if (state.units.empty()) {
    state.open_unit();
    state.room.notify_all();
  }
  const std::shared_ptr<Open> unit = state.units.front();
  if (unit->samples.empty() && !unit->is_ready) {
    state.complete(lock, *unit);
  } else if (state.options.workers > 0) {
    state.wait_for(lock, *unit);
  } else if (Run all; state.take_run(unit, all)) {
    state.serve(lock, all, nullptr);
  }
  if (unit->error) std::rethrow_exception(unit->error);
  state.units.pop_front();
  ++state.next;
  lock.unlock();
  state.room.notify_all();
  return {.batch = std::move(unit->batch), .stats = unit->stats, .bad = all_bad(*unit), .empty = count_empty(*unit)};
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
