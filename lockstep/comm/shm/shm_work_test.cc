#include "lockstep/comm/shm/shm_work.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

TEST(ShmWork, WaitsForAsLongAsItIsTold) {
  testing::NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto work = comm.start(calls::all_reduce(at::ones({3})));
    if (comm.rank() == 0) {
      EXPECT_FALSE(work->done());
      EXPECT_FALSE(work->wait_for(std::chrono::milliseconds(10)));
      EXPECT_GE(work->elapsed(), std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(work->wait_for(std::chrono::seconds(20)));
    const auto elapsed = work->elapsed();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(work->elapsed(), elapsed) << "it stands still from when the work was seen done";
  });
}

TEST(ShmWork, ACallsOwnTimeoutCounts) {
  testing::NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    if (comm.rank() == 1) return;
    Call call = calls::barrier();
    call.timeout = std::chrono::milliseconds(40);
    EXPECT_THROW(comm.start(call)->wait(), CommError);
  });
}

// As rank 0 does that saves a large checkpoint, or evaluates for long.
TEST(ShmWork, AWaitGoesOnWhileTheMissingRankMakesProgress) {
  testing::NodeOfThreads node(2);
  node.run([&](ShmCommunicator& comm) {
    comm.start(calls::barrier())->wait();
    Call call = calls::barrier();
    call.timeout = std::chrono::milliseconds(400);
    if (comm.rank() == 1) {
      for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        node.board()->ranks[1].beat_ns.store(monotonic_ns());
      }
      call.timeout = std::chrono::seconds(20);
    }
    EXPECT_NO_THROW(comm.start(call)->wait());
  });
}

TEST(ShmWork, APauseOfAllRanksDoesNotCount) {
  testing::NodeOfThreads node(2);
  node.run([&](ShmCommunicator& comm) {
    comm.start(calls::barrier())->wait();
    Call call = calls::barrier();
    call.timeout = std::chrono::milliseconds(400);
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      node.board()->paused_ns.store(100'000'000'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(800));
      call.timeout = std::chrono::seconds(20);
    }
    EXPECT_NO_THROW(comm.start(call)->wait());
  });
}

// A rank that gave up and goes on all the same is at another step than its peers, which may be late.
TEST(ShmWork, ARankThatHasGivenUpBeginsNoCall) {
  testing::NodeOfThreads node(2);
  ShmCommunicator zero(node.options(0), node.memory(), node.pool(0), node.board());
  ShmCommunicator one(node.options(1), node.memory(), node.pool(1), node.board());
  const auto first = zero.start(calls::barrier()), second = one.start(calls::barrier());
  for (int i = 0; i < 2; ++i) {
    zero.progress();
    one.progress();
  }
  const auto next = zero.start(calls::barrier());
  one.abort("enough");
  first->wait();
  second->wait();
  EXPECT_THROW(one.start(calls::barrier()), CommError);
  EXPECT_THROW(one.isend(at::ones({1}), 0), CommError);
  EXPECT_THROW(next->wait(), CommError);
  EXPECT_THROW(zero.start(calls::barrier()), CommError);
}

// Rank 2 waits for rank 1, which waits for rank 0, which makes progress.
TEST(ShmWork, ARankThatWaitsHasTheProgressOfTheOneItWaitsFor) {
  testing::NodeOfThreads node(3);
  node.run([&](ShmCommunicator& comm) {
    comm.start(calls::barrier())->wait();
    const at::Tensor data = at::zeros({3});
    if (comm.rank() == 0) {
      for (int i = 0; i < 100; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        node.board()->ranks[0].beat_ns.store(monotonic_ns());
      }
      return comm.send(data, 1);
    }
    Call call = calls::receive(data, comm.rank() - 1, /*tag=*/0);
    call.timeout = std::chrono::seconds(3);
    EXPECT_NO_THROW(comm.start(call)->wait());
    if (comm.rank() == 1) comm.send(data, 2);
  });
}

// Rank 1 saves for longer than the timeout, rank 2 polls for its message, and rank 0 waits for both.
TEST(ShmWork, ARankThatPollsHasTheProgressOfTheOneItWaitsFor) {
  testing::NodeOfThreads node(3);
  node.run([&](ShmCommunicator& comm) {
    comm.start(calls::barrier())->wait();
    const at::Tensor data = at::zeros({3});
    Call last = calls::barrier();
    last.timeout = std::chrono::seconds(comm.rank() == 0 ? 1 : 20);
    if (comm.rank() == 1) {
      for (int i = 0; i < 60; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        node.board()->ranks[1].beat_ns.store(monotonic_ns());
      }
      comm.send(data, 2);
    }
    if (comm.rank() == 2) {
      Call call = calls::receive(data, 1, /*tag=*/0);
      call.timeout = std::chrono::seconds(1);
      const auto work = comm.start(call);
      while (!work->done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_NO_THROW(comm.start(last)->wait());
  });
}

TEST(ShmWork, APauseOfAllRanksDoesNotCountForARankThatPolls) {
  testing::NodeOfThreads node(2);
  node.run([&](ShmCommunicator& comm) {
    comm.start(calls::barrier())->wait();
    Call call = calls::barrier();
    call.timeout = std::chrono::milliseconds(600);
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      node.board()->paused_ns.store(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      call.timeout = std::chrono::seconds(20);
    }
    const auto work = comm.start(call);
    EXPECT_NO_THROW(while (!work->done()) std::this_thread::sleep_for(std::chrono::milliseconds(1)));
  });
}

}  // namespace
}  // namespace lockstep::comm
