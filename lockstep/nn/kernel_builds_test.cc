#include "lockstep/nn/kernel_builds.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lockstep/nn/thread_generator.h"

namespace lockstep::nn {
namespace {

constexpr int kThreads = 4;

// Calls work(thread) on several threads at once.
template <typename Work>
void at_once(const Work& work) {
  std::barrier begin(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      work(i);
    });
  }
}

TEST(KernelBuilds, FirstCallsRunAlone) {
  KernelBuilds builds(100);
  std::atomic<int> inside = 0, most = 0;
  const auto call = [&] {
    most = std::max(most.load(), ++inside);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --inside;
  };
  at_once([&](int i) { builds.run(static_cast<uint64_t>(i), call); });
  EXPECT_EQ(most, 1);
}

TEST(KernelBuilds, LaterCallsRunTogether) {
  KernelBuilds builds(100);
  builds.run(7, [] {});
  std::barrier meet(kThreads);  // none would return from it otherwise
  at_once([&](int) { builds.run(7, [&] { meet.arrive_and_wait(); }); });
}

TEST(KernelBuilds, AFirstCallThatFailsIsNone) {
  KernelBuilds builds(100);
  EXPECT_THROW(builds.run(7, [] { throw std::runtime_error("no"); }), std::runtime_error);
  int calls = 0;
  builds.run(7, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(KernelBuilds, KindsThatMayHaveMadeRoomAreNewAgain) {
  for (const size_t most : {0, 2}) {
    KernelBuilds builds(most);
    for (const uint64_t kind : {1, 2, 3}) builds.run(kind, [] {});
    std::atomic<int> inside = 0, together = 0;
    at_once([&](int) {
      builds.run(1, [&] {
        if (++inside > 1) ++together;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --inside;
      });
    });
    if (most == 0) EXPECT_EQ(together, 0);
    EXPECT_LT(together, kThreads) << "the first one ran alone";
  }
}

TEST(KernelBuilds, NestedTensorsPass) {
  at::Generator generator;
  const ThreadGenerator own(generator, [] { return uint64_t{1}; });
  const at::Tensor nested = at::_nested_tensor_from_tensor_list({at::ones({2, 3}), at::ones({4, 3})});
  EXPECT_TRUE(at::linear(nested, at::ones({5, 3})).is_nested());
}

// What they compute, in forward and backward, is what one thread does.
TEST(KernelBuilds, OperatorsInThreadsKeepTheirResults) {
  at::manual_seed(1);
  const auto format = at::MemoryFormat::ChannelsLast;
  const at::Tensor images = at::randn({4, 8, 7, 7}).contiguous(format);
  const at::Tensor weight = at::randn({16, 8, 5, 5}).contiguous(format).requires_grad_();
  const auto gradient = [&] {
    const at::Tensor own = weight.detach().requires_grad_();
    const at::Tensor input = images.detach().requires_grad_();
    at::conv2d(input, own, {}, 1, 2).square().sum().backward();
    return at::cat({own.grad().flatten(), input.grad().flatten()});
  };
  std::vector<at::Tensor> found(kThreads);
  at_once([&](int i) {
    at::Generator generator;
    const ThreadGenerator own(generator, [] { return uint64_t{1}; });
    found[static_cast<size_t>(i)] = gradient();
  });
  for (const at::Tensor& each : found) EXPECT_TRUE(at::allclose(each, gradient(), 1e-4, 1e-4));
}

}  // namespace
}  // namespace lockstep::nn
