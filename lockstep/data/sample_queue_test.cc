#include "lockstep/data/sample_queue.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

using std::chrono::milliseconds;

// A data set whose sample is its number, after act(number).
class Acting : public Dataset {
 public:
  explicit Acting(std::function<void(int64_t)> act = {}) : act_(std::move(act)) {}
  int64_t size() const override { return 1 << 30; }
  std::vector<Field> fields() const override { return {{.name = "data", .dtype = at::kLong, .shape = {}}}; }
  void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    if (act_) act_(index);
    *rows[0].mutable_data_ptr<int64_t>() = index;
    ++stats.bytes;
  }
  void will_need(std::span<const int64_t> indices) const override {
    const std::lock_guard lock(mutex_);
    told_.insert(told_.end(), indices.begin(), indices.end());
  }
  std::vector<int64_t> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  std::string fingerprint() const override { return "acting"; }
  std::string description() const override { return "acting"; }

 private:
  const std::function<void(int64_t)> act_;
  mutable std::mutex mutex_;
  mutable std::vector<int64_t> told_;
};

// Unit u holds the samples 10 · u to 10 · u + 9.
constexpr int64_t kRows = 10;
std::vector<SampleRead> ten(uint64_t unit) {
  std::vector<SampleRead> samples;
  for (int64_t i = 0; i < kRows; ++i) samples.push_back({.index = kRows * static_cast<int64_t>(unit) + i, .draw = {}});
  return samples;
}

void expect_unit(SampleQueue& queue, int64_t unit) {
  const SampleQueue::Unit got = queue.next();
  EXPECT_TRUE(at::equal(got.batch.data(), at::arange(kRows * unit, kRows * (unit + 1))));
  EXPECT_EQ(got.stats.bytes, kRows);
}

// Waits until `done`, at most ten seconds.
template <typename Done>
void wait_until(const Done& done) {
  const Deadline deadline(std::chrono::seconds(10));
  while (!done() && !deadline.passed()) std::this_thread::sleep_for(milliseconds(1));
  ASSERT_TRUE(done());
}

class SampleQueueTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, SampleQueueTest, ::testing::Values(0, 1, 2, 5));

TEST_P(SampleQueueTest, KeepsTheOrderWhoeverIsDoneFirst) {
  const auto slow = std::make_shared<Acting>([](int64_t index) {
    if (index % 7 == 0) std::this_thread::sleep_for(milliseconds(1));
  });
  SampleQueue queue(slow, ten, kRows, 7, {.workers = GetParam(), .ahead = 4});
  for (int64_t unit = 7; unit < 47; ++unit) expect_unit(queue, unit);
}

TEST_P(SampleQueueTest, ThrowsAtTheUnitThatFailed) {
  const auto damaged = std::make_shared<Acting>([](int64_t index) {
    if (index == 33) throw DataError("sample 33 is damaged");
  });
  SampleQueue queue(damaged, ten, kRows, 0, {.workers = GetParam(), .ahead = 8});
  for (int64_t unit = 0; unit < 3; ++unit) expect_unit(queue, unit);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(queue.next(), DataError);
  queue.seek(4);
  expect_unit(queue, 4);
}

TEST_P(SampleQueueTest, SeeksBackAndForth) {
  SampleQueue queue(std::make_shared<Acting>(), ten, kRows, 0, {.workers = GetParam(), .ahead = 3});
  for (const int64_t target : {5, 1000000, 0, 17, 17}) {
    queue.seek(static_cast<uint64_t>(target));
    for (int64_t unit = target; unit < target + 5; ++unit) expect_unit(queue, unit);
  }
}

TEST_P(SampleQueueTest, TellsTheDataSetTwoUnitsBefore) {
  const auto data = std::make_shared<Acting>();
  SampleQueue queue(data, ten, kRows, 0, {.workers = GetParam(), .ahead = 1});
  expect_unit(queue, 0);
  wait_until([&] { return data->told().size() >= 3 * kRows; });
  const auto told = data->told();
  for (size_t i = 0; i < 3 * kRows; ++i) EXPECT_EQ(told[i], static_cast<int64_t>(i));
}

TEST_P(SampleQueueTest, EndsAndHasUnitsWithoutSamples) {
  const auto plan = [](uint64_t unit) { return unit == 1 ? std::vector<SampleRead>() : ten(unit); };
  SampleQueue queue(std::make_shared<Acting>(), plan, kRows, 0, {.workers = GetParam(), .ahead = 4, .end = 3});
  expect_unit(queue, 0);
  EXPECT_EQ(queue.next().batch.data().sizes(), at::IntArrayRef({0}));
  expect_unit(queue, 2);
  EXPECT_THROW(queue.next(), BugError);
}

TEST_P(SampleQueueTest, GoesOnWhereTheHintFails) {
  struct NoHints final : Acting {
    void will_need(std::span<const int64_t>) const override { throw std::runtime_error("no hints"); }
  };
  SampleQueue queue(std::make_shared<NoHints>(), ten, kRows, 0, {.workers = GetParam()});
  for (int64_t unit = 0; unit < 3; ++unit) expect_unit(queue, unit);
}

TEST_P(SampleQueueTest, RefusesADataSetThatDoesNotWriteItsRows) {
  struct Idle final : Acting {
    void read(int64_t, const Draw&, std::span<const at::Tensor>, ReadStats&) const override {}
  };
  SampleQueue queue(std::make_shared<Idle>(), ten, kRows, 0, {.workers = GetParam()});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(queue.next(), ConfigError);
    queue.seek(5);
  }
}

TEST_P(SampleQueueTest, ReadsTheNextSampleTwiceWhereTheFirstIsDamaged) {
  std::atomic<int> read = 0;
  const auto damaged = std::make_shared<Acting>([&](int64_t index) {
    if (index == 0) throw DataError("sample 0 is damaged");
    ++read;
  });
  SampleQueue queue(damaged, ten, kRows, 0, {.workers = GetParam(), .ahead = 1});
  EXPECT_THROW(queue.next(), DataError);
  queue.seek(1);
  expect_unit(queue, 1);
  EXPECT_GT(read, kRows);
}

TEST_P(SampleQueueTest, HandsOnWhatPlanningThrows) {
  const auto plan = [](uint64_t unit) -> std::vector<SampleRead> {
    if (unit == 2) throw BugError("no unit 2");
    return ten(unit);
  };
  SampleQueue queue(std::make_shared<Acting>(), plan, kRows, 2, {.workers = GetParam(), .ahead = 2});
  EXPECT_THROW(queue.next(), BugError);
}

TEST(SampleQueue, ReadsNoMoreThanItsRoomAndStopsWithItFull) {
  std::atomic<int> read = 0;
  const Stopwatch watch;
  {
    SampleQueue queue(std::make_shared<Acting>([&](int64_t) { ++read; }), ten, kRows, 0, {.workers = 2, .ahead = 3});
    wait_until([&] { return read >= 31; });
    std::this_thread::sleep_for(milliseconds(20));
    const int before = read;
    EXPECT_LE(before, 32) << "each worker's first twice, where the other had not read one yet";
    queue.next();
    wait_until([&] { return read == before + 10; });
    EXPECT_LE(queue.pool().blocks(), 4);
  }
  EXPECT_LT(watch.seconds(), 5);
}

// Whether the workers are far ahead at a time is luck; the memory that they take is not. Here they never are: units are
// read when they are wanted, and dropped at once.
TEST(SampleQueue, TakesItsMemoryInItsFirstUnits) {
  std::atomic<int64_t> wanted = 0;
  const auto in_time =
      std::make_shared<Acting>([&](int64_t index) { wait_until([&] { return index / kRows <= wanted; }); });
  SampleQueue queue(in_time, ten, kRows, 0, {.workers = 2, .ahead = 3});
  for (; wanted < 4; ++wanted) expect_unit(queue, wanted);
  EXPECT_EQ(queue.pool().blocks(), 4);
  for (; wanted < 20; ++wanted) expect_unit(queue, wanted);
  EXPECT_EQ(queue.pool().blocks(), 4);
  wanted = 1 << 20;
}

// Such as an epoch's, of which there are many.
TEST(SampleQueue, ThatEndsTakesNoMoreMemoryThanItNeeds) {
  std::atomic<int64_t> wanted = 0;
  const auto in_time =
      std::make_shared<Acting>([&](int64_t index) { wait_until([&] { return index / kRows <= wanted; }); });
  SampleQueue queue(in_time, ten, kRows, 0, {.workers = 2, .ahead = 10, .end = 20});
  for (; wanted < 20; ++wanted) expect_unit(queue, wanted);
  EXPECT_LE(queue.pool().blocks(), 3) << "two that are open, and one that was taken";
}

TEST(SampleQueue, SeveralThreadsReadOneBatch) {
  std::atomic<int> at_once = 0;
  const auto together = std::make_shared<Acting>([&](int64_t index) {
    if (index < kRows && ++at_once < 3) wait_until([&] { return at_once >= 3; });
  });
  SampleQueue queue(together, ten, kRows, 0, {.workers = 3, .ahead = 1});
  wait_until([&] { return at_once >= 3; });
  expect_unit(queue, 0);
}

TEST(SampleQueue, DropsWhatWasBegunBeforeASeek) {
  std::atomic<bool> began = false;
  std::atomic<bool> go_on = false;
  const auto data = std::make_shared<Acting>([&](int64_t index) {
    if (index == 0 && !began.exchange(true)) {
      while (!go_on) std::this_thread::sleep_for(milliseconds(1));
    }
  });
  SampleQueue queue(data, ten, kRows, 0, {.workers = 1, .ahead = 2});
  wait_until([&] { return began.load(); });
  queue.seek(100);  // while a sample of unit 0 is being read
  go_on = true;
  expect_unit(queue, 100);
  expect_unit(queue, 101);
}

TEST(SampleQueue, StopsWhatWasBegunBeforeASeekAfterTheSampleThatItIsAt) {
  std::atomic<bool> began = false, go_on = false, went_on = false;
  const auto data = std::make_shared<Acting>([&](int64_t index) {
    if (index == 1) went_on = true;
    if (index != 0) return;
    began = true;
    while (!go_on) std::this_thread::sleep_for(milliseconds(1));
  });
  SampleQueue queue(data, ten, kRows, 0, {.workers = 1, .ahead = 2});  // a run is of two samples
  wait_until([&] { return began.load(); });
  queue.seek(100);
  go_on = true;
  expect_unit(queue, 100);
  EXPECT_FALSE(went_on);
}

// A gate that samples wait at; whoever waits there owns it.
struct Gate {
  std::atomic<int> waiting = 0;
  std::atomic<bool> open = false;
  void pass() {
    ++waiting;
    while (!open) std::this_thread::sleep_for(milliseconds(1));
  }
};

TEST(SampleQueue, ASampleThatHangsIsNamedAndHoldsNobody) {
  const auto gate = std::make_shared<Gate>();
  std::weak_ptr<Acting> data;
  {
    const auto hanging = std::make_shared<Acting>([gate](int64_t index) {
      if (index >= kRows) gate->pass();  // all of them
    });
    data = hanging;
    SampleQueue queue(hanging, ten, kRows, 0, {.workers = 2, .ahead = 1, .timeout = milliseconds(50)});
    expect_unit(queue, 0);
    for (int i = 0; i < 2; ++i) {
      try {
        queue.next();
        ADD_FAILURE() << "no IoError";
      } catch (const IoError& error) {
        EXPECT_THAT(error.what(), ::testing::MatchesRegex("loading data: sample 1[012] has been read for .*"));
      }
    }
    EXPECT_EQ(gate->waiting, 3) << "two workers and the helper";
  }
  EXPECT_FALSE(data.expired()) << "the threads that were left behind own it";
  gate->open = true;
  wait_until([&] { return data.expired(); });
}

TEST(SampleQueue, ThatWaitsForASampleForEverEndsAllTheSame) {
  const auto gate = std::make_shared<Gate>();
  std::weak_ptr<Acting> data;
  {
    const auto hanging = std::make_shared<Acting>([gate](int64_t) { gate->pass(); });
    data = hanging;
    SampleQueue queue(
        hanging, ten, kRows, 0,
        {.workers = 1, .ahead = 1, .timeout = std::chrono::nanoseconds::max(), .patience = milliseconds(50)});
    wait_until([&] { return gate->waiting > 0; });
  }
  EXPECT_FALSE(data.expired()) << "the thread that was left behind owns it";
  gate->open = true;
  wait_until([&] { return data.expired(); });
}

// A large batch over a slow disk is late as a whole, and no sample of it is.
TEST(SampleQueue, AsLongAsSamplesComeNothingIsLate) {
  const auto slow = std::make_shared<Acting>([](int64_t) { std::this_thread::sleep_for(milliseconds(250)); });
  SampleQueue queue(slow, ten, kRows, 0, {.workers = 1, .ahead = 1, .timeout = std::chrono::seconds(1)});
  expect_unit(queue, 0);
}

TEST(SampleQueue, WaitsForADataSetThatItDoesNotOwn) {
  const auto gate = std::make_shared<Gate>();
  std::atomic<bool> done = false;
  const Acting hanging([gate, &done](int64_t) {
    gate->pass();
    done = true;
  });
  std::thread opener;
  {
    const std::shared_ptr<const Dataset> not_owned(std::shared_ptr<void>(), &hanging);
    SampleQueue queue(not_owned, ten, kRows, 0, {.workers = 1, .ahead = 1, .timeout = milliseconds(20)});
    EXPECT_THROW(queue.next(), IoError);
    opener = std::thread([gate] {
      std::this_thread::sleep_for(milliseconds(50));
      gate->open = true;
    });
  }
  EXPECT_TRUE(done);
  opener.join();
}

// Reads a unit whose first sample takes 100 ms and stops the process for a second before. Ends the process.
[[noreturn]] void read_while_stopped() {
  const auto stopping = std::make_shared<Acting>([](int64_t index) {
    if (index != 0) return;
    const std::string pid = std::to_string(getpid());
    if (std::system(("kill -STOP " + pid + "; sleep 1; kill -CONT " + pid).c_str()) != 0) std::exit(3);
    std::this_thread::sleep_for(milliseconds(100));
  });
  SampleQueue queue(stopping, ten, kRows, 0, {.workers = 1, .ahead = 1, .timeout = milliseconds(700)});
  expect_unit(queue, 0);
  std::exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST(SampleQueueDeathTest, AStoppedProcessIsNotLate) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_while_stopped(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace lockstep::data
