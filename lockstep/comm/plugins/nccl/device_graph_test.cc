#include "lockstep/comm/plugins/device_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>

#include "lockstep/base/testing/gpu.h"
#include "lockstep/comm/plugins/nccl_plugin.h"

namespace lockstep::comm {
namespace {

std::unique_ptr<DeviceGraph> make() {
  auto* const entry = plugin_function<decltype(lockstep_make_device_graph)>(kCudaPlugin, "lockstep_make_device_graph");
  return std::unique_ptr<DeviceGraph>(entry());
}

at::Tensor dropped(const at::Tensor& x) { return at::dropout(x, 0.5, /*train=*/true); }

TEST(DeviceGraph, AReplayComputesAnewFromWhatIsInMemory) {
  LOCKSTEP_NEEDS_GPU();
  const auto graph = make();
  const at::Tensor x = at::ones({64}, at::kCUDA);
  const DeviceGraph::Work work = [&] { return std::vector<at::Tensor>{x * 2}; };
  EXPECT_TRUE(at::equal(graph->rehearse(work).at(0), at::full_like(x, 2)));
  const at::Tensor y = graph->record(work).at(0);
  for (int value = 3; value < 6; ++value) {
    x.fill_(value);
    graph->replay();
    EXPECT_TRUE(at::equal(y, at::full_like(x, 2 * value)));
  }
}

// As in steps that are not recorded: the generator is seeded before each.
TEST(DeviceGraph, ReplaysDrawByTheGeneratorsSeed) {
  LOCKSTEP_NEEDS_GPU();
  const auto graph = make();
  const at::Tensor x = at::ones({4096}, at::kCUDA);
  const DeviceGraph::Work work = [&] { return std::vector<at::Tensor>{dropped(x)}; };
  graph->rehearse(work);
  const at::Tensor y = graph->record(work).at(0);
  for (const uint64_t seed : {1, 2, 1}) {
    at::manual_seed(seed);
    graph->replay();
    const at::Tensor replayed = y.clone();
    at::manual_seed(seed);
    EXPECT_TRUE(at::equal(replayed, dropped(x))) << seed;
  }
}

TEST(DeviceGraph, GivesItsMemoryBackAndTellsWhetherThereIsAsMuchBeside) {
  LOCKSTEP_NEEDS_GPU();
  const auto graph = make();
  const at::Tensor x = at::ones({1 << 24}, at::kCUDA);
  const DeviceGraph::Work work = [&] { return std::vector<at::Tensor>{x * 2}; };
  for (int i = 0; i < 3; ++i) {
    graph->rehearse(work);
    at::Tensor y = graph->record(work).at(0);
    EXPECT_TRUE(graph->has_room_beside());
    graph->replay();
    EXPECT_TRUE(at::equal(y, x * 2));
    y.reset();
    graph->forget();
  }
}

// One graph that lives has the generator that another, which was refused, has drawn from.
TEST(DeviceGraph, ARefusalLeavesOtherRecordingsAsTheyWere) {
  LOCKSTEP_NEEDS_GPU();
  const auto one = make(), other = make();
  const at::Tensor x = at::ones({4096}, at::kCUDA);
  const DeviceGraph::Work work = [&] { return std::vector<at::Tensor>{dropped(x)}; };
  one->rehearse(work);
  const at::Tensor y = one->record(work).at(0);
  EXPECT_ANY_THROW(other->record([&] {
    const at::Tensor pinned = at::empty({8}, at::TensorOptions().pinned_memory(true));
    return std::vector<at::Tensor>{dropped(x) * dropped(x).sum().item<float>()};
  }));
  EXPECT_TRUE(at::empty({8}, at::TensorOptions().pinned_memory(true)).is_pinned());
  for (const uint64_t seed : {1, 2}) {
    at::manual_seed(seed);
    one->replay();
    const at::Tensor replayed = y.clone();
    at::manual_seed(seed);
    EXPECT_TRUE(at::equal(replayed, dropped(x))) << seed;
  }
}

// libtorch's allocator and generator are as before, and memory is not lost step by step.
TEST(DeviceGraph, AfterARefusalAllGoesOn) {
  LOCKSTEP_NEEDS_GPU();
  const at::Tensor x = at::ones({1 << 20}, at::kCUDA);
  for (int i = 0; i < 3; ++i) {
    const auto graph = make();
    const DeviceGraph::Work reads = [&] {
      const at::Tensor y = dropped(x);
      return std::vector<at::Tensor>{y * y.sum().item<float>()};
    };
    graph->rehearse(reads);
    EXPECT_ANY_THROW(graph->record(reads));
    at::manual_seed(3);
    const at::Tensor one = dropped(x);
    at::manual_seed(3);
    EXPECT_TRUE(at::equal(one, dropped(x)));
  }
}

}  // namespace
}  // namespace lockstep::comm
