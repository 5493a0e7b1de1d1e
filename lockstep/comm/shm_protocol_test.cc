// The protocol with threads as ranks; with processes it is tested through the communicator.
#include "lockstep/comm/shm_protocol.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/comm/shm_communicator.h"

namespace lockstep::comm {
namespace {

// A node of threads: memory, and for each rank a pool.
struct Node {
  explicit Node(int size) : memory(NodeMemory::create(size)), board(memory.board.get()) {
    for (auto& pool : memory.pools) {
      pool = create_memfd("small-pool", size_t{64} << 20);
      pools.push_back(std::make_unique<Pool>(Descriptor(dup(pool.get()))));
    }
  }

  template <typename Body>
  void run(Body&& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(pools.size()); ++rank)
      threads.emplace_back([&body, rank] { body(rank); });
    for (auto& thread : threads) thread.join();
  }

  ShmProtocol protocol(int rank, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return ShmProtocol({.rank = rank, .size = static_cast<int>(pools.size()), .timeout = timeout}, memory,
                       *pools[static_cast<size_t>(rank)], Board::attach(board.data()));
  }

  NodeMemory memory;
  Mapping board;
  std::vector<std::unique_ptr<Pool>> pools;
};

OpRecord barrier() {
  return {.kind = OpKind::kBarrier,
          .dtype = 0,
          .detail = 0,
          .tensors = 1,
          .elements = 0,
          .sizes_hash = 0,
          .offset = 0,
          .stride = 0};
}

TEST(ShmProtocol, CallsFarBeyondTheRing) {
  Node node(3);
  node.run([&](int rank) {
    ShmProtocol protocol = node.protocol(rank);
    for (uint64_t i = 0; i < 10 * ShmSegment::kRing; ++i) {
      const uint64_t call = protocol.publish(barrier(), "barrier");
      EXPECT_EQ(call, i);
      protocol.wait_published(call, "barrier");
      protocol.finish(call);
    }
  });
}

TEST(ShmProtocol, WhatIsPublishedIsSeen) {
  Node node(4);
  node.run([&](int rank) {
    ShmProtocol protocol = node.protocol(rank);
    const at::Tensor mine = protocol.pool_like(at::empty({100}, at::kInt));
    mine.fill_(rank);
    OpRecord record = barrier();
    record.offset = *protocol.offset_of(mine);
    const uint64_t call = protocol.publish(record, "test");
    protocol.wait_published(call, "test");
    for (int k = 0; k < 4; ++k) {
      EXPECT_EQ(reinterpret_cast<const int*>(protocol.at(k, protocol.record(k, call).offset))[99], k);
    }
    protocol.finish(call);
    protocol.wait_complete(call, "test");
  });
}

TEST(ShmProtocol, TimeoutsAndAborts) {
  Node node(2);
  ShmProtocol zero = node.protocol(0, std::chrono::milliseconds(50));
  const uint64_t call = zero.publish(barrier(), "barrier");
  EXPECT_THROW(zero.wait_published(call, "barrier"), CommError);
  node.protocol(1).abort("enough");
  try {
    zero.wait_published(call, "barrier");
    FAIL();
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("gave up: enough"), std::string::npos);
  }
}

TEST(ShmProtocol, MoreRanksThanTheMemoryIsForAreRefused) {
  Node node(2);
  EXPECT_THROW(ShmProtocol({.rank = 0, .size = 3}, node.memory, *node.pools[0], Board::attach(node.board.data())),
               ConfigError);
}

}  // namespace
}  // namespace lockstep::comm
