#include "lockstep/comm/network/network_work.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;

TEST(NetworkWork, WaitsRemindsAndTellsOfTheFailure) {
  std::atomic<int> calls = 0;
  NetworkWork work("test", std::chrono::seconds(10), [&] { ++calls; });
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

}  // namespace
}  // namespace lockstep::comm
