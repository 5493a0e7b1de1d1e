// The protocol with threads as ranks; with processes it is tested through the communicator.
#include "lockstep/comm/shm/shm_protocol.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

struct Node : testing::NodeOfThreads {
  using NodeOfThreads::NodeOfThreads;

  ShmProtocol protocol(int rank) {
    const auto options = node_options(rank);
    auto node = std::make_shared<ShmNode>(options, memory(), pool(rank), board());
    std::vector<int> local_ranks(static_cast<size_t>(options.size));
    std::iota(local_ranks.begin(), local_ranks.end(), 0);
    ShmSegment& segment = node->segment();
    return ShmProtocol(std::move(node), segment, std::move(local_ranks), std::chrono::seconds(20));
  }
};

Signature barrier() {
  return {.kind = OpKind::kBarrier, .dtype = 0, .detail = 0, .tensors = 1, .elements = 0, .sizes_hash = 0};
}

bool wait(ShmProtocol& protocol, uint64_t call, const std::function<bool()>& ready, std::chrono::nanoseconds time) {
  return protocol.node().wait_until({.what = "barrier",
                                     .ready = ready,
                                     .awaited = [&] { return protocol.unfinished(call); },
                                     .missing = [&] { return protocol.missing(call); },
                                     .timeout = std::chrono::seconds(100)},
                                    time);
}

bool wait_published(ShmProtocol& protocol, uint64_t call, std::chrono::nanoseconds time = std::chrono::seconds(20)) {
  return wait(
      protocol, call, [&] { return protocol.published(call); }, time);
}

bool wait_complete(ShmProtocol& protocol, uint64_t call) {
  return wait(
      protocol, call, [&] { return protocol.complete(call); }, std::chrono::seconds(20));
}

TEST(ShmProtocol, CallsFarBeyondTheRing) {
  Node node(3);
  node.run_ranks([&](int rank) {
    ShmProtocol protocol = node.protocol(rank);
    for (uint64_t i = 0; i < 10 * ShmSegment::kRing; ++i) {
      if (protocol.full()) wait_complete(protocol, i - ShmSegment::kRing);
      const uint64_t call = protocol.publish({.call = barrier()});
      EXPECT_EQ(call, i);
      EXPECT_TRUE(wait_published(protocol, call));
      protocol.finish(call);
    }
  });
}

TEST(ShmProtocol, WhatIsPublishedIsSeen) {
  Node node(4);
  node.run_ranks([&](int rank) {
    ShmProtocol protocol = node.protocol(rank);
    const PoolBlock mine = protocol.node().allocate(sizeof(int));
    *mine.as<int>() = rank;
    const uint64_t call = protocol.publish({.call = barrier(), .data = mine.offset});
    EXPECT_TRUE(wait_published(protocol, call));
    for (int k = 0; k < 4; ++k) {
      EXPECT_EQ(*reinterpret_cast<const int*>(protocol.at(k, protocol.record(k, call).data)), k);
    }
    protocol.finish(call);
    EXPECT_TRUE(wait_complete(protocol, call));
  });
}

TEST(ShmProtocol, CountersOfACallAreReadTogether) {
  Node node(2);
  ShmProtocol zero = node.protocol(0), one = node.protocol(1);
  const uint64_t call = zero.publish({.call = barrier(), .staged = 3});
  one.publish({.call = barrier()});
  EXPECT_EQ(zero.least(call, &OpRecord::staged), 3u);
  EXPECT_EQ(zero.missing(call), (std::vector<int>{0, 1})) << "nobody has finished";
  EXPECT_TRUE(zero.absent(call).empty());
  one.finish(call);
  EXPECT_EQ(zero.missing(call), std::vector<int>{0});
  zero.raise(call, &OpRecord::reduced, 5);
  EXPECT_EQ(one.least(call, &OpRecord::reduced), 0u);
}

TEST(ShmProtocol, TimeoutsAndAborts) {
  Node node(2);
  ShmProtocol zero = node.protocol(0);
  const uint64_t call = zero.publish({.call = barrier()});
  EXPECT_FALSE(wait_published(zero, call, std::chrono::milliseconds(50)));
  EXPECT_EQ(zero.missing(call), std::vector<int>{1});
  EXPECT_EQ(zero.absent(call), std::vector<int>{1});
  node.protocol(1).node().abort("enough");
  try {
    wait_published(zero, call);
    FAIL();
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("gave up: enough"), std::string::npos);
  }
}

TEST(ShmProtocol, MoreRanksThanTheMemoryIsForAreRefused) {
  Node node(2);
  EXPECT_THROW(ShmNode({.self = 0, .size = 3}, node.memory(), node.pool(0), node.board()), ConfigError);
}

}  // namespace
}  // namespace lockstep::comm
