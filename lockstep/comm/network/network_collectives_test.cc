#include "lockstep/comm/network/network_collectives.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lockstep/comm/network/testing/local_mesh.h"

namespace lockstep::comm {
namespace {

using testing::LocalWorld;

size_t bytes_sent(int size, const std::function<void(NetworkCommunicator&)>& program) {
  LocalWorld world{.size = size};
  world.run(program);
  return std::accumulate(world.exchanged->sent.begin(), world.exchanged->sent.end(), size_t{0});
}

// The volumes that docs/collectives.md computes with.
TEST(NetworkCollectives, SendAsManyBytesAsTheirModelSays) {
  constexpr int64_t kElements = 1 << 18;
  constexpr size_t kBytes = kElements * sizeof(float);
  const auto fold = [](NetworkCommunicator& comm) { comm.all_reduce(at::ones({kElements}), ReduceOp::kSum); };
  EXPECT_EQ(bytes_sent(2, fold), kBytes);  // 2 (N-1)/N
  EXPECT_EQ(bytes_sent(4, fold), 2 * kBytes * 3 / 4);
  const auto broadcast = [](NetworkCommunicator& comm) { comm.broadcast(at::ones({kElements}), 0); };
  EXPECT_EQ(bytes_sent(4, broadcast), 2 * kBytes * 3 / 4);  // the members' slices, then the root's own to each
  const auto small = [](NetworkCommunicator& comm) { comm.broadcast(at::ones({16}), 0); };
  EXPECT_EQ(bytes_sent(8, small), 3u * 16 * sizeof(float));  // log2(N)
  EXPECT_EQ(bytes_sent(8, [](NetworkCommunicator& comm) { comm.barrier(); }), 3u);
}

TEST(NetworkCollectives, AWireOf16BitsHalvesTheVolume) {
  const auto fold = [](NetworkCommunicator& comm) {
    comm.fold({at::ones({1 << 16})}, {.label = "test", .wire = at::kBFloat16})->wait();
  };
  EXPECT_EQ(bytes_sent(2, fold), (size_t{1} << 16) * 2);
}

}  // namespace
}  // namespace lockstep::comm
