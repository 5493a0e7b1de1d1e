// What a step draws, on real ranks: each lane, network and loss has numbers of its own, whichever rank computes it.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/philox.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

RANK_PROGRAM(random_numbers) {
  const auto world = join_world(context);
  auto net = linear(1), other = linear(2);
  DistributedDataParallel ddp(net.ptr(), world), second(other.ptr(), world);
  at::manual_seed(7);
  const Tensor expected = at::rand({3});
  at::manual_seed(7);
  Tensor drawn[2];
  const StepPlan step{.number = 0, .samples = context.size, .lanes = {{context.rank, 1}}};
  ddp.run(step, [&](size_t) {
    drawn[0] = at::rand({8});
    return loss_of(net, context.rank);
  });
  second.run(step, [&](size_t) {
    drawn[1] = at::rand({8});
    return loss_of(other, context.rank);
  });
  EXPECT_TRUE(at::equal(at::rand({3}), expected)) << "as if there had been no step";
  EXPECT_FALSE(at::equal(drawn[0], drawn[1])) << "each network draws its own dropout";
}
TEST(AnyLoop, AStepLeavesTheGeneratorAsItWas) { expect_ranks_pass("random_numbers", 2); }

// Several losses of one step, two lanes each. The argument names the file for what they draw.
RANK_PROGRAM(draws_of_one_step) {
  const auto world = join_world(context);
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world, {.seed = 11});
  const auto own = world->own_lanes(2);
  std::vector<Tensor> drawn;  // by run: [lanes, draws]
  for (const int64_t number : {0, 0, 0, 1, 0}) {
    if (number == 1) net->zero_grad();
    if (drawn.size() == 4) net->zero_grad();
    StepPlan step{.number = number, .samples = 2, .lanes = {}};
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 1});
    const Tensor draws = at::empty({own.last - own.first, 4});
    ddp.run(step, [&](size_t i) {
      draws[static_cast<int64_t>(i)].copy_(at::rand({4}));
      return loss_of(net, step.lanes[i].index);
    });
    drawn.push_back(world->communicator().all_gather(draws).view({2, 4}));
  }
  for (uint32_t lane = 0; lane < 2; ++lane) {
    for (const auto& [run, number] : {std::pair(0, 0), std::pair(3, 1), std::pair(4, 0)}) {
      const auto generator = at::detail::createCPUGenerator(kernel_seed(11, static_cast<uint64_t>(number), lane));
      EXPECT_TRUE(at::equal(drawn[static_cast<size_t>(run)][lane], at::rand({4}, generator))) << "run " << run;
    }
  }
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < a; ++b) EXPECT_FALSE(at::equal(drawn[a], drawn[b])) << "runs " << b << " and " << a;
  }
  if (context.rank == 0) {
    std::ofstream file(context.argument);
    for (const auto& each : drawn) file << each << '\n';
  }
}
TEST(AnyLoop, EachLossOfAStepDrawsItsOwnRandomNumbers) {
  EXPECT_EQ(written_by("draws_of_one_step", 2), written_by("draws_of_one_step", 1));
}

}  // namespace
}  // namespace lockstep::parallel
