#include "lockstep/comm/shm/shm_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;

class ShmNodeTest : public ::testing::Test {
 protected:
  ShmNode make(int self) {
    auto options = memory_.node_options(self);
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    return {options, memory_.memory(), memory_.pool(self), memory_.board()};
  }
  bool wait(ShmNode& node, std::chrono::milliseconds time) {
    const std::string what = "test";
    return node.wait_until({.what = what,
                            .ready = [] { return false; },
                            .awaited = [] { return std::vector<int>{1}; },
                            .missing = [] { return std::vector<int>{1}; },
                            .timeout = std::chrono::milliseconds(100)},
                           time);
  }

  testing::NodeOfThreads memory_{2};
  std::vector<std::string> warnings_;
};

TEST_F(ShmNodeTest, BlocksLieInThePool) {
  ShmNode node = make(0);
  const PoolBlock block = node.allocate(100);
  EXPECT_EQ(node.at(0, block.offset), block.as<std::byte>());
  EXPECT_EQ(node.offset_of(block.as<std::byte>(), 100), block.offset);
  const int elsewhere = 0;
  EXPECT_FALSE(node.offset_of(&elsewhere, sizeof elsewhere));
  EXPECT_TRUE(node.offset_of(nullptr, 0)) << "nothing lies anywhere";
}

TEST_F(ShmNodeTest, AWaitEndsAndWarnsOnce) {
  ShmNode node = make(0);
  const Stopwatch watch;
  EXPECT_FALSE(wait(node, std::chrono::milliseconds(80)));
  EXPECT_GE(watch.seconds(), 0.08);
  EXPECT_LT(watch.seconds(), 2);
  EXPECT_EQ(warnings_,
            std::vector<std::string>{
                "test: has waited 0 s for rank 1: rank 1 has not started; gives up after 0.1 s (the timeout)"});
}

TEST_F(ShmNodeTest, WhoGivesUpIsHeard) {
  ShmNode node = make(0), other = make(1);
  other.abort("disk full");
  EXPECT_THROW(wait(node, std::chrono::seconds(10)), CommError);
}

TEST_F(ShmNodeTest, AGroupsSegmentIsKeptUntilAllHaveLeft) {
  ShmNode node = make(0);
  PoolBlock block = node.make_segment();
  auto* segment = block.as<ShmSegment>();
  EXPECT_EQ(segment->left.load(), 0u);
  segment->left.fetch_add(1);
  node.retire(std::move(block), 2);
  EXPECT_GE(memory_.pool(0).stats().in_use, sizeof(ShmSegment));
  segment->left.fetch_add(1);
  const PoolBlock next = node.make_segment();
  EXPECT_LT(memory_.pool(0).stats().in_use, 2 * sizeof(ShmSegment));
}

TEST_F(ShmNodeTest, BeatsFromBeforeAPauseAreNotOld) {
  ShmNode node = make(0);
  const std::string what = "test";
  const auto nobody = [] { return std::vector<int>{}; };
  const auto slow = [] { return std::vector<int>{1}; };
  const auto never = [] { return false; };
  const ShmNode::Waiting waiting{
      .what = what, .ready = never, .awaited = slow, .missing = slow, .timeout = std::chrono::seconds(50)};
  const auto ago = [](int seconds) { return monotonic_ns() - seconds * 1'000'000'000LL; };
  memory_.board()->ranks[1].beat_ns.store(ago(40));
  EXPECT_TRUE(node.goes_on(waiting, ago(60)));
  memory_.board()->ranks[1].beat_ns.store(ago(60));
  EXPECT_FALSE(node.goes_on(waiting, ago(60)));
  memory_.board()->paused_ns.store(1'000'000'000);
  EXPECT_FALSE(node.wait_until(waiting, std::chrono::milliseconds(1)));
  EXPECT_TRUE(node.goes_on(waiting, ago(60)));

  // Where all ranks of the node have come, those that have still to act wait for other nodes.
  memory_.board()->ranks[1].beat_ns.store(monotonic_ns());
  ShmNode fresh = make(0);
  EXPECT_TRUE(fresh.goes_on(
      {.what = what, .ready = never, .awaited = slow, .missing = nobody, .timeout = std::chrono::seconds(50)},
      ago(60)));
}

// Rank 1 saves, and rank 2 is stuck.
TEST_F(ShmNodeTest, AWaitGoesOnWhileAllMakeProgressThatHaveNotCome) {
  testing::NodeOfThreads memory(3);
  ShmNode node(memory.node_options(0), memory.memory(), memory.pool(0), memory.board());
  auto& ranks = memory.board()->ranks;
  const int64_t now = monotonic_ns(), long_ago = now - 60'000'000'000;
  const std::string what = "test";
  const auto others = [] { return std::vector<int>{1, 2}; };
  std::vector<int> absent = {1, 2};
  int64_t passed_on = 0;
  const ShmNode::Waiting waiting{.what = what,
                                 .ready = [&] { return ranks[0].beat_ns.load() == passed_on; },
                                 .awaited = others,
                                 .missing = others,
                                 .timeout = std::chrono::seconds(50),
                                 .absent = [&] { return absent; }};
  ranks[0].beat_ns.store(1);
  ranks[1].beat_ns.store(now);
  ranks[2].beat_ns.store(long_ago);
  EXPECT_FALSE(node.goes_on(waiting, long_ago));
  passed_on = long_ago;
  EXPECT_TRUE(node.wait_until(waiting, std::chrono::seconds(10))) << "who waits makes the slowest's progress";
  ranks[2].beat_ns.store(now);
  EXPECT_TRUE(node.goes_on(waiting, long_ago));

  // Both have begun the call, and rank 2 may wait for rank 1.
  ranks[2].beat_ns.store(long_ago);
  absent.clear();
  EXPECT_TRUE(node.goes_on(waiting, long_ago));
  passed_on = now;
  EXPECT_TRUE(node.wait_until(waiting, std::chrono::seconds(10))) << "or the latest's";
}

}  // namespace
}  // namespace lockstep::comm
