#include "lockstep/comm/network/network_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/comm/network/testing/local_mesh.h"
#include "lockstep/comm/testing/conformance.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;
using testing::LocalWorld;

TEST(NetworkCommunicator, Conforms) {
  LOCKSTEP_LONG_TEST_IF(true);
  for (const int size : {1, 2, 3, 4, 8}) LocalWorld{.size = size}.run(testing::conformance);
}

TEST(NetworkCommunicator, DifferentCallsExchangeNothingAndAreNamed) {
  std::mutex mutex;
  std::vector<std::string> texts;
  LocalWorld{.size = 4}.run([&](NetworkCommunicator& comm) {
    comm.barrier();
    try {
      if (comm.rank() == 1) {
        comm.broadcast(at::ones({64}), 0);
      } else {
        comm.all_reduce(at::ones({1000}), ReduceOp::kSum);
      }
    } catch (const DesyncError& error) {
      const std::lock_guard lock(mutex);
      texts.push_back(error.what());
    }
  });
  ASSERT_EQ(texts.size(), 4u);
  for (const auto& text : texts) {
    EXPECT_THAT(text, HasSubstr("rank 1 called broadcast #1 [64] Float from rank 0"));
    EXPECT_THAT(text, HasSubstr("ranks 0, 2-3 called all_reduce #1 [1000] Float sum"));
  }
}

// A call that another rank left unfinished is kept to the process's end. The watch ends with the communicator, so that
// it says farewell, and rank 0's keeps the store for those who don't know yet.
TEST(NetworkCommunicator, AKeptCallDoesNotKeepTheWatch) {
  LocalWorld{.size = 2}.run_networks([](const Network& network, int) {
    const long holders = network.watch.use_count();
    std::shared_ptr<Work> kept;
    {
      NetworkCommunicator comm(network, {0, 1}, "world");
      kept = comm.start(calls::barrier());
      kept->wait();
    }
    EXPECT_EQ(network.watch.use_count(), holders);
    EXPECT_TRUE(kept->done());
  });
}

// A root's small broadcast is through before anybody has received it, and a call of no elements sends nothing.
TEST(NetworkCommunicator, ARankThatIsAheadIsFoundByWhatItCalledBefore) {
  for (const int64_t elements : {64, 0}) {
    std::atomic<int> found = 0;
    LocalWorld{.size = 3}.run([&](NetworkCommunicator& comm) {
      comm.barrier();
      if (comm.rank() == 1) {
        comm.broadcast(at::ones({elements}), 1);
        const auto next = comm.start(calls::barrier());
        for (const Deadline deadline(std::chrono::seconds(20)); found < 2 && !deadline.passed();) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return comm.abort("the others have ended");  // which this mesh, without connections, does not show
      }
      try {
        comm.all_reduce(at::ones({1000}), ReduceOp::kSum);
      } catch (const DesyncError& error) {
        EXPECT_THAT(error.what(), HasSubstr("called all_reduce #1 [1000] Float sum"));
        EXPECT_THAT(error.what(), HasSubstr(cat("rank 1 called broadcast #1 [", elements, "] Float from rank 1")));
        ++found;
      }
    });
    EXPECT_EQ(found, 2) << elements;
  }
}

TEST(NetworkCommunicator, AFoldOfAnotherMemoryLayoutIsADesync) {
  std::atomic<int> found = 0;
  LocalWorld{}.run([&](NetworkCommunicator& comm) {
    const at::Tensor image = at::ones({2, 3, 4, 4});
    try {
      comm.fold({comm.rank() == 0 ? image : image.contiguous(at::MemoryFormat::ChannelsLast)}, {.label = "w"})->wait();
    } catch (const DesyncError& error) {
      EXPECT_THAT(error.what(), HasSubstr("memory layout"));
      ++found;
    }
  });
  EXPECT_EQ(found, 2);
}

TEST(NetworkCommunicator, TheLongestTimeoutsDoNotOverflow) {
  LocalWorld{.timeout = std::chrono::milliseconds::max()}.run([](NetworkCommunicator& comm) {
    const at::Tensor one = at::ones({1});
    Call call = calls::all_reduce(one, ReduceOp::kSum);
    call.timeout = std::chrono::milliseconds::max();
    comm.start(call)->wait();
    EXPECT_TRUE(comm.start(calls::barrier())->wait_for(std::chrono::nanoseconds::max()));
    EXPECT_EQ(one.item<float>(), 2);
  });
}

TEST(NetworkCommunicator, ATimeoutNamesWhoIsMissingAndThatItLives) {
  LocalWorld world{.size = 3, .timeout = std::chrono::milliseconds(600)};
  world.run([&](NetworkCommunicator& comm) {
    comm.barrier();
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      return;
    }
    try {
      comm.fold({at::ones({10})}, {.label = "bucket 1/1 (w)"})->wait();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("fold of bucket 1/1 (w), call #1: waited 0.6 s for rank 2"));
      EXPECT_THAT(error.what(), HasSubstr("rank 2 (host2) is alive"));
    }
  });
}

TEST(NetworkCommunicator, ACallsOwnTimeoutCounts) {
  LocalWorld{}.run([](NetworkCommunicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return;
    }
    Call call = calls::barrier();
    call.timeout = std::chrono::milliseconds(200);
    try {
      comm.start(std::move(call))->wait();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("waited 0.2 s for rank 1"));
    }
  });
}

TEST(NetworkCommunicator, NobodyPassesABarrierThatSomebodyHasNotReached) {
  for (const int size : {2, 3, 4, 7}) {
    std::atomic<int> arrived = 0;
    LocalWorld{.size = size}.run([&](NetworkCommunicator& comm) {
      if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ++arrived;
      comm.barrier();
      EXPECT_EQ(arrived.load(), size) << "rank " << comm.rank();
    });
  }
}

TEST(NetworkCommunicator, AMessageOfAnotherSizeIsAnErrorOnBothSides) {
  LocalWorld{}.run([](NetworkCommunicator& comm) {
    const at::Tensor tensor = at::zeros({3 + comm.rank()});
    try {
      comm.rank() == 0 ? comm.send(tensor, 1, 7) : comm.receive(tensor, 0, 7);
      ADD_FAILURE() << "no error";
    } catch (const DesyncError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 sent [3] Float (tag 7) to rank 1, which expected [4] Float (tag 7)"));
    }
  });
}

TEST(NetworkCommunicator, ManyMessagesOfOneTagArriveInTheirOrder) {
  LocalWorld{}.run([](NetworkCommunicator& comm) {
    constexpr int kCount = 100;
    std::vector<at::Tensor> tensors;
    std::vector<std::shared_ptr<Work>> works;
    for (int i = 0; i < kCount; ++i) {
      tensors.push_back(at::full({7}, comm.rank() == 0 ? i : -1));
      works.push_back(comm.rank() == 0 ? comm.isend(tensors.back(), 1, 3) : comm.irecv(tensors.back(), 0, 3));
    }
    for (const auto& work : works) work->wait();
    for (int i = 0; i < kCount; ++i) EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(i).all().item<bool>()) << i;
  });
}

TEST(NetworkCommunicator, AsManyGroupsMayLiveAsThereAreNumbers) {
  LocalWorld{}.run([](NetworkCommunicator& comm) {
    std::vector<std::unique_ptr<Communicator>> groups;
    for (int i = 2; i < GroupNumbers::kMost; ++i) groups.push_back(comm.make_group({0, 1}));
    EXPECT_THROW(comm.make_group({0, 1}), ConfigError);
    groups.back()->barrier();
    groups.pop_back();
    comm.barrier();  // gone on both ranks
    comm.make_group({1, 0})->barrier();
  });
}

TEST(NetworkCommunicator, GivingUpReachesAll) {
  LocalWorld{.size = 3}.run([](NetworkCommunicator& comm) {
    if (comm.rank() == 0) return comm.abort("disk full");
    try {
      comm.barrier();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 (host0) gave up: disk full"));
    }
  });
}

TEST(NetworkCommunicator, LostMessagesEndInAnErrorThatNamesTheRank) {
  LocalWorld world{.size = 2, .timeout = std::chrono::milliseconds(500)};
  world.exchanged->cut = [](int from, int) { return from == 1; };
  world.run([](NetworkCommunicator& comm) {
    try {
      comm.all_reduce(at::ones({100000}), ReduceOp::kSum);
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr(comm.rank() == 0 ? "rank 1" : "rank 0"));
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
