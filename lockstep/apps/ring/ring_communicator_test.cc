#include "lockstep/apps/ring/ring_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/comm/network/network_communicator.h"
#include "lockstep/comm/network/testing/local_mesh.h"
#include "lockstep/comm/single_communicator.h"
#include "lockstep/comm/testing/conformance.h"

namespace lockstep::apps {
namespace {

using comm::Network;
using comm::NetworkCommunicator;
using comm::ReduceOp;
using comm::Work;
using comm::testing::LocalWorld;

// Within a mesh a message is a header, an answer and the data.
TEST(Ring, EachRankSendsTwiceAllButOneSlice) {
  for (const int size : {2, 3, 4}) {
    constexpr int64_t kElements = 1200;
    LocalWorld world{.size = size};
    world.run_networks([&](const Network& network, int rank) {
      std::vector<int> all;
      for (int k = 0; k < size; ++k) all.push_back(k);
      RingCommunicator ring(std::make_unique<NetworkCommunicator>(network, all, "world"));
      const at::Tensor tensor = at::full({kElements}, rank + 1.0f);
      ring.all_reduce(tensor, ReduceOp::kSum);
      EXPECT_TRUE(tensor.eq(size * (size + 1) / 2.0f).all().item<bool>());
    });
    const auto is_slice = [&](size_t bytes) { return bytes == kElements * sizeof(float) / static_cast<size_t>(size); };
    EXPECT_EQ(std::count_if(world.exchanged->sent.begin(), world.exchanged->sent.end(), is_slice), 2 * (size - 1));
  }
}

TEST(Ring, ManyUnderWayAreWaitedForInAnyOrder) {
  LocalWorld{.size = 3}.run_networks([](const Network& network, int rank) {
    RingCommunicator ring(std::make_unique<NetworkCommunicator>(network, std::vector<int>{0, 1, 2}, "world"));
    std::vector<at::Tensor> tensors;
    std::vector<std::shared_ptr<Work>> works;
    for (int i = 0; i < 6; ++i) {
      tensors.push_back(at::full({10 + i}, rank + i, at::kInt));
      works.push_back(ring.fold({tensors.back()}, {.label = "test"}));
      ring.progress();
    }
    for (int i = 0; i < 6; ++i) works[static_cast<size_t>(rank == 1 ? i : 5 - i)]->wait();
    for (int i = 0; i < 6; ++i) {
      EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(3 * i + 3).all().item<bool>());
      EXPECT_TRUE(works[static_cast<size_t>(i)]->done());
    }
  });
}

TEST(Ring, MeansAndOtherOps) {
  LocalWorld{.size = 4}.run_networks([](const Network& network, int rank) {
    RingCommunicator ring(std::make_unique<NetworkCommunicator>(network, std::vector<int>{0, 1, 2, 3}, "world"));
    const at::Tensor mean = at::full({5}, rank, at::kDouble), most = at::full({3}, rank, at::kLong);
    ring.all_reduce(mean, ReduceOp::kMean);
    ring.all_reduce(most, ReduceOp::kMax);
    EXPECT_TRUE(mean.eq(1.5).all().item<bool>());
    EXPECT_TRUE(most.eq(3).all().item<bool>());
    EXPECT_FALSE(ring.same_bits());
  });
}

TEST(Ring, ConformsButForItsOrder) {
  LocalWorld{.size = 3}.run_networks([](const Network& network, int) {
    RingCommunicator ring(std::make_unique<NetworkCommunicator>(network, std::vector<int>{0, 1, 2}, "world"));
    comm::testing::check_movements(ring);
    comm::testing::check_under_way(ring);
    comm::testing::check_messages(ring);
    comm::testing::check_groups(ring);
    comm::testing::check_mistakes(ring);
  });
}

TEST(Ring, PollingOneGoesOnWithThoseBefore) {
  LocalWorld{.size = 2}.run_networks([](const Network& network, int rank) {
    RingCommunicator ring(std::make_unique<NetworkCommunicator>(network, std::vector<int>{0, 1}, "world"));
    const at::Tensor a = at::ones({1000}), b = at::ones({1000});
    const auto first = ring.start(comm::calls::all_reduce(a)), second = ring.start(comm::calls::all_reduce(b));
    if (rank == 0) {
      while (!second->wait_for(std::chrono::milliseconds(10))) continue;
    } else {
      first->wait();
    }
    second->wait();
    EXPECT_TRUE(first->done());
    EXPECT_EQ(a[999].item<float>() + b[999].item<float>(), 4);
  });
}

TEST(Ring, OfOne) {
  RingCommunicator ring(std::make_unique<comm::SingleCommunicator>());
  const at::Tensor tensor = at::ones({3});
  ring.all_reduce(tensor, ReduceOp::kMean);
  EXPECT_TRUE(tensor.eq(1).all().item<bool>());
}

}  // namespace
}  // namespace lockstep::apps
