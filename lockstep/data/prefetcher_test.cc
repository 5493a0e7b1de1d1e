#include "lockstep/data/prefetcher.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Batch numbered(uint64_t unit) {
  const at::Tensor number = at::full({1}, static_cast<int64_t>(unit), at::kLong);
  return Batch::of(number, number);
}

uint64_t number(const Batch& batch) { return static_cast<uint64_t>(*batch.data().const_data_ptr<int64_t>()); }

// Waits until `done`, at most ten seconds.
template <typename Done>
void wait_until(const Done& done) {
  const Deadline deadline(std::chrono::seconds(10));
  while (!done() && !deadline.passed()) std::this_thread::sleep_for(milliseconds(1));
  ASSERT_TRUE(done());
}

class PrefetcherTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, PrefetcherTest, ::testing::Values(0, 1, 2, 5));

TEST_P(PrefetcherTest, KeepsTheOrderWhoeverIsDoneFirst) {
  Prefetcher prefetcher(
      [](uint64_t unit) {
        if (unit % 3 == 0) std::this_thread::sleep_for(milliseconds(2));
        return numbered(unit);
      },
      7, {.workers = GetParam(), .ahead = 4});
  for (uint64_t unit = 7; unit < 57; ++unit) ASSERT_EQ(number(prefetcher.next()), unit);
}

TEST_P(PrefetcherTest, ThrowsAtTheUnitThatFailed) {
  Prefetcher prefetcher(
      [](uint64_t unit) {
        if (unit == 3) throw DataError("unit 3 is damaged");
        return numbered(unit);
      },
      0, {.workers = GetParam(), .ahead = 8});
  for (uint64_t unit = 0; unit < 3; ++unit) EXPECT_EQ(number(prefetcher.next()), unit);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(prefetcher.next(), DataError);
  prefetcher.seek(4);
  EXPECT_EQ(number(prefetcher.next()), 4u);
}

TEST_P(PrefetcherTest, SeeksBackAndForth) {
  Prefetcher prefetcher(numbered, 0, {.workers = GetParam(), .ahead = 3});
  for (const uint64_t target : {5, 1000000, 0, 17, 17}) {
    prefetcher.seek(target);
    for (uint64_t unit = target; unit < target + 5; ++unit) ASSERT_EQ(number(prefetcher.next()), unit);
  }
}

TEST(Prefetcher, MakesNoMoreThanItsRoomAndStopsWithItFull) {
  std::atomic<int> made = 0;
  const Stopwatch watch;
  {
    Prefetcher prefetcher(
        [&](uint64_t unit) {
          ++made;
          return numbered(unit);
        },
        0, {.workers = 2, .ahead = 3});
    wait_until([&] { return made == 3; });
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(made, 3);
    prefetcher.next();
    wait_until([&] { return made == 4; });
  }
  EXPECT_LT(watch.seconds(), 5);
}

TEST(Prefetcher, DropsWhatWasBegunBeforeASeek) {
  std::atomic<bool> began = false;
  std::atomic<bool> go_on = false;
  Prefetcher prefetcher(
      [&](uint64_t unit) {
        if (unit == 0 && !began.exchange(true)) {
          while (!go_on) std::this_thread::sleep_for(milliseconds(1));
        }
        if (unit >= 100) std::this_thread::sleep_for(milliseconds(50));  // so that what unit 0 leaves behind is seen
        return numbered(unit);
      },
      0, {.workers = 1, .ahead = 2});
  wait_until([&] { return began.load(); });
  prefetcher.seek(100);  // while unit 0 is being made, which has the same slot
  go_on = true;
  EXPECT_EQ(number(prefetcher.next()), 100u);
  EXPECT_EQ(number(prefetcher.next()), 101u);
}

TEST(Prefetcher, GivesUpOnABatchThatDoesNotCome) {
  std::atomic<bool> go_on = false;
  Prefetcher prefetcher(
      [&](uint64_t unit) {
        while (!go_on) std::this_thread::sleep_for(milliseconds(1));
        return numbered(unit);
      },
      0, {.workers = 1, .ahead = 2, .timeout = milliseconds(30)});
  try {
    prefetcher.next();
    ADD_FAILURE() << "no IoError";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch 0 was not ready after 0.03 s"));
  }
  go_on = true;
}

}  // namespace
}  // namespace lockstep::data
