#include "lockstep/base/node_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(NodeMemory, GoesThroughTheEnvironment) {
  const NodeMemory made = NodeMemory::create(2);
  const std::string text = made.to_env();
  EXPECT_EQ(NodeMemory::board_in(text), made.board.get());
  for (int attempt = 0; attempt < 2; ++attempt) {  // a worker may try to join its world again
    const NodeMemory taken = NodeMemory::from_env(text);
    ASSERT_EQ(taken.pools.size(), 2u);
    EXPECT_NE(taken.board.get(), made.board.get());
    EXPECT_EQ(Board::attach(Mapping(taken.board.get()).data())->local_ranks, 2);
    EXPECT_TRUE(fcntl(taken.comm.get(), F_GETFD) & FD_CLOEXEC);
  }
}

// The death test's child executes this program again, as a launcher executes a worker.
TEST(NodeMemoryDeathTest, AWorkersDescriptorsAreClosedOnExecBeforeItsMainBegins) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  constexpr const char* kInherited = "LOCKSTEP_TEST_INHERITED";  // set in the child alone
  NodeMemory made;
  Descriptor other;
  if (!env(kInherited)) {
    made = NodeMemory::create(1);
    other = create_memfd("another-program's", 8);
    for (const int fd : {made.board.get(), made.comm.get(), made.pools[0].get(), other.get()}) fcntl(fd, F_SETFD, 0);
    setenv("LOCKSTEP_NODE_MEMORY", cat(made.to_env(), ',', other.get()).c_str(), 1);
    setenv(kInherited, made.to_env().c_str(), 1);
    setenv("LOCKSTEP_TEST_OTHER", std::to_string(other.get()).c_str(), 1);
  }
  const auto closed = [](int fd) { return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; };
  EXPECT_EXIT(
      {
        const std::string inherited = env(kInherited).value_or("");
        bool right = fcntl(NodeMemory::board_in(inherited), F_GETFD) >= 0;
        for (std::istringstream in(inherited); right && in;) {
          int fd = -1;
          char comma = 0;
          if (in >> fd) right = closed(fd);
          in >> comma;
        }
        NodeMemory::keep_on_exec();
        right = right && !closed(NodeMemory::board_in(inherited));
        _exit(right && !closed(std::stoi(env("LOCKSTEP_TEST_OTHER").value_or(""))) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  for (const char* name : {kInherited, "LOCKSTEP_TEST_OTHER", "LOCKSTEP_NODE_MEMORY"}) unsetenv(name);
}

TEST(NodeMemory, WhatIsNoListIsRefused) {
  EXPECT_THROW(NodeMemory::from_env(""), ConfigError);
  EXPECT_THROW(NodeMemory::from_env("3;4"), ConfigError);
  EXPECT_THROW(NodeMemory::from_env("9990,9991,9992"), ConfigError);
  EXPECT_THROW(NodeMemory::board_in("rubbish"), ConfigError);
}

}  // namespace
}  // namespace lockstep
