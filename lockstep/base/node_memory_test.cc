#include "lockstep/base/node_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(NodeMemory, GoesThroughTheEnvironment) {
  NodeMemory made = NodeMemory::create(2);
  const std::string text = made.to_env();
  EXPECT_EQ(NodeMemory::board_in(text), made.board.get());
  // The worker's descriptors are its own: here they must not be closed twice.
  made.board.release();
  made.comm.release();
  for (auto& pool : made.pools) pool.release();
  const NodeMemory taken = NodeMemory::from_env(text);
  ASSERT_EQ(taken.pools.size(), 2u);
  EXPECT_EQ(Board::attach(Mapping(taken.board.get()).data())->local_ranks, 2);
  EXPECT_TRUE(fcntl(taken.comm.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(NodeMemory, WhatIsNoListIsRefused) {
  EXPECT_THROW(NodeMemory::from_env(""), ConfigError);
  EXPECT_THROW(NodeMemory::from_env("3;4"), ConfigError);
  EXPECT_THROW(NodeMemory::from_env("9990,9991,9992"), ConfigError);
  EXPECT_THROW(NodeMemory::board_in("rubbish"), ConfigError);
}

}  // namespace
}  // namespace lockstep
