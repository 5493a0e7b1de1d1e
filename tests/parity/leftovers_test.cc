// Gradients that are in .grad when a step or a pass begins.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/amp/autocast.h"
#include "loops.h"
#include "support/ports.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::free_port;
using testing_support::join_world;
using testing_support::RankContext;

// Over shared memory, where a gradient stays where backward made it, or over a network, where it is a part of its
// bucket. The argument is the network's port, or empty.
std::shared_ptr<World> join_over(RankContext& context) {
  if (context.argument.empty()) return join_world(context);
  unsetenv("LOCKSTEP_NODE_MEMORY");
  return init({.backend = "gloo",
               .rank = context.rank,
               .world_size = context.size,
               .init_method = "tcp://127.0.0.1:" + context.argument});
}

// Backward adds to a gradient in place, which leaves it the tensor that a step has installed.
RANK_PROGRAM(no_sync_after_a_step) {
  const auto world = join_over(context);
  const int r = context.rank, w = context.size;
  for (const bool average : {true, false}) {
    auto net = linear(1), alone = linear(1);
    DistributedDataParallel ddp(net.ptr(), world, {.gradient_average = average});
    const auto step = [&](int64_t number, double factor) {
      ddp.run(one_lane_each(*world, number), [&](size_t) { return loss_of(net, r, factor); });
    };
    const auto own = [&](double factor) {
      const auto scope = ddp.no_sync();
      loss_of(net, r, factor).backward();
    };
    // Without the average, the gradient that was folded is one of those that are summed.
    const double folded = average ? 1 : w;
    step(0, 1);
    own(3);
    step(0, 5);
    mean_over_ranks(alone, w, 5 + 3 * folded + folded).backward();
    expect_gradient(net, alone);

    for (auto& parameter : net->parameters()) {
      const at::NoGradGuard no_grad;
      parameter.add_(0);  // as an update leaves a new version
      parameter.grad().zero_();
    }
    own(3);
    step(1, 5);
    alone->zero_grad();
    mean_over_ranks(alone, w, 5 + 3 * folded).backward();
    expect_gradient(net, alone);
    EXPECT_TRUE(same_on_all_ranks(net->weight.grad(), *world));
  }
}
TEST(Leftovers, APassWithoutSyncAddsToTheGradientOfAStep) {
  expect_ranks_pass("no_sync_after_a_step", 1);
  expect_ranks_pass("no_sync_after_a_step", 2);
  expect_ranks_pass("no_sync_after_a_step", 2, std::to_string(free_port()));
}

RANK_PROGRAM(leftovers_with_options) {
  const auto world = join_world(context);
  const int r = context.rank, w = context.size;
  for (const DdpOptions& options : {DdpOptions{.gradient_predivide_factor = 3.0}, DdpOptions{.allreduce_always_fp32 = true},
                                    DdpOptions{.buckets = {.wire = at::kBFloat16}}, DdpOptions{.gradient_average = false}}) {
    auto net = linear(1), alone = linear(1);
    DistributedDataParallel ddp(net.ptr(), world, options);
    {
      const auto scope = ddp.no_sync();
      loss_of(net, r).backward();
    }
    ddp.run(one_lane_each(*world), [&](size_t) { return loss_of(net, r, 5); });
    mean_over_ranks(alone, w, 5 + (options.gradient_average ? 1 : w)).backward();
    expect_gradient(net, alone, options.buckets.wire ? 2e-2 : 1e-5);
  }
}
TEST(Leftovers, EveryOptionTreatsThemAsGradients) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("leftovers_with_options", size);
}

}  // namespace
}  // namespace lockstep::parallel
