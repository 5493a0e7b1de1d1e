#include "lockstep/comm/network/network_work.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;

TEST(NetworkWork, WaitsRemindsAndTellsOfTheFailure) {
  std::atomic<int> calls = 0;
  NetworkWork work("test", std::chrono::seconds(10), {.remind = [&] { ++calls; }});
  EXPECT_FALSE(work.done());
  EXPECT_FALSE(work.wait_for(milliseconds(450)));
  EXPECT_GE(calls, 1);
  std::thread other([&] { work.finish(std::make_exception_ptr(CommError("broken"))); });
  EXPECT_THROW(work.wait(), CommError);
  EXPECT_THROW(work.done(), CommError);
  other.join();
  const auto elapsed = work.elapsed();
  EXPECT_GE(elapsed, milliseconds(450));
  EXPECT_EQ(work.elapsed(), elapsed);
}

TEST(NetworkWork, ABlockingWaitIsMarkedAndMakesProgress) {
  std::atomic<int> turns = 0;
  const auto mark = std::make_shared<int>();
  long marked = 0;
  NetworkWork work("test", std::chrono::seconds(10),
                   {.block = [&]() -> std::shared_ptr<void> { return mark; },
                    .progress = [&] { marked = std::max(marked, mark.use_count()), ++turns; }});
  EXPECT_FALSE(work.done());
  EXPECT_EQ(turns, 1);
  EXPECT_FALSE(work.wait_for(milliseconds(50)));
  EXPECT_GT(turns, 2);
  EXPECT_EQ(marked, 1) << "a caller that comes back is not blocked";
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    work.finish(nullptr);
  });
  work.wait();
  other.join();
  EXPECT_EQ(marked, 2);
  EXPECT_EQ(mark.use_count(), 1);
}

TEST(SerialThread, RunsTasksInOrderAndAllOfThem) {
  std::vector<int> order;
  {
    SerialThread thread;
    for (int i = 0; i < 100; ++i) thread.push([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  const SerialThread unused;
}

// A wait goes on as long as its call does, and ends where the library does not come back.
TEST(NetworkWork, TheEndOfACallMayMove) {
  int asked = 0;
  NetworkWork work("test", std::chrono::seconds(-15),
                   {.left = [&] { return std::chrono::seconds(-15) + milliseconds(++asked < 5 ? 20 : 0); }});
  EXPECT_THROW(work.wait(), CommError);
  EXPECT_EQ(asked, 5);
}

}  // namespace
}  // namespace lockstep::comm
