#include "lockstep/comm/network/short_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lockstep/base/clock.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ShortCallsTest : public testing::Test {
 protected:
  std::atomic<int> stuck_peer_ = -1;
  ShortCalls calls_{[this](int peer) { stuck_peer_ = peer; }};
};

TEST_F(ShortCallsTest, ACallThatSleepsOnAndOnNeverReturns) {
  std::mutex held;
  held.lock();
  std::thread caller([&] {
    const ShortCalls::Call call(calls_, 3);
    held.lock();
    held.unlock();
  });
  const Deadline deadline(seconds(20));
  while (stuck_peer_ < 0 && !deadline.passed()) std::this_thread::sleep_for(milliseconds(5));
  held.unlock();
  caller.join();
  EXPECT_EQ(stuck_peer_.load(), 3);
}

TEST_F(ShortCallsTest, ACallThatComputesMayLast) {
  const ShortCalls::Call call(calls_, 3);
  for (const Deadline deadline(seconds(2)); !deadline.passed();) {
  }
  EXPECT_EQ(stuck_peer_.load(), -1);
}

// A thread may sleep in each of its calls.
TEST_F(ShortCallsTest, CallsThatReturnAreShort) {
  for (const Deadline deadline(seconds(2)); !deadline.passed();) {
    const ShortCalls::Call call(calls_, 3);
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(stuck_peer_.load(), -1);
}

}  // namespace
}  // namespace lockstep::comm
