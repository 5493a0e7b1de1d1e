// A loop of one's own with PowerSGD, killed and resumed by loop::State.
#include "lockstep/parallel/power_sgd.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/hash.h"
#include "lockstep/loop/state.h"
#include "lockstep/optim/rules/sgd.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

constexpr int64_t kSteps = 8;

// Argument: the run's folder, and the step at whose end each rank is killed, 0 for none. Writes "bits" there.
RANK_PROGRAM(power_sgd_run) {
  const auto world = join_world(context);
  std::istringstream argument(context.argument);
  std::string folder;
  int64_t last = 0;
  argument >> folder >> last;
  at::manual_seed(2);
  torch::nn::Sequential net(torch::nn::Linear(20, 30), torch::nn::Linear(30, 20));
  const auto hook = power_sgd_hook({.matrix_approximation_rank = 2, .start_powerSGD_iter = 2});
  DistributedDataParallel ddp(net.ptr(), world, {.comm_hook = hook});
  EXPECT_EQ(ddp.comm_hook(), hook);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  const Tensor data = at::randn({kSteps, context.size, 4, 20});
  int64_t step = 0;
  loop::State state(*world, step, {{"model", ddp}, {"optimizer", optimizer}, {"power_sgd", *hook}});
  checkpoint::CheckpointStore store(folder + "/checkpoints");
  state.load(store);
  EXPECT_TRUE(last > 0 || std::filesystem::exists(folder + "/whole") || step == 5) << "resumed";
  while (step < kSteps) {
    const StepPlan plan{.number = step, .samples = context.size, .lanes = {{context.rank, 1}}};
    ddp.run(plan, [&](size_t) {
      const Tensor x = data[step][context.rank];
      return (net->forward(x) - x).square().mean();
    });
    optimizer.step();
    optimizer.zero_grad();
    ++step;
    if (step == 5 && last > 0) state.save(store);
    if (step == last) kill(getpid(), SIGKILL);
  }
  Sha256 hash;
  for (const auto& parameter : net->parameters()) hash.update(parameter.data_ptr(), parameter.nbytes());
  const std::string bits = hash.hex();
  if (context.rank == 0) std::ofstream(folder + "/bits") << bits;
}

RANK_PROGRAM(hook_that_outlives_its_world) {
  auto world = join_world(context);
  const auto hook = power_sgd_hook({.matrix_approximation_rank = 1, .start_powerSGD_iter = 1});
  {
    torch::nn::Linear net(20, 30);
    const DistributedDataParallel ddp(net.ptr(), world, {.comm_hook = hook});
    for (int step = 0; step < 2; ++step) net->forward(at::randn({4, 20})).square().mean().backward();
  }
  world.reset();
  const auto state = hook->state_dict();
  int64_t errors = 0;
  for (const auto& [name, value] : state) errors += name.starts_with("errors.") && value.defined() ? value.size(0) : 0;
  if (context.rank == 0) EXPECT_EQ(errors, context.size);
}
TEST(PowerSgdHook, HasItsStateAfterItsNetworkAndWorld) { expect_ranks_pass("hook_that_outlives_its_world", 2); }

// In step 2 a gradient of the last bucket that is filled is infinite on one rank, and it is folded whole.
RANK_PROGRAM(power_sgd_overflow) {
  const auto world = join_over(context);
  at::manual_seed(2);
  torch::nn::Linear first(20, 30), last(30, 20);
  torch::nn::Sequential net(first, last);
  const auto hook = power_sgd_hook({.matrix_approximation_rank = 2, .start_powerSGD_iter = 1});
  DistributedDataParallel ddp(net.ptr(), world,
                              {.buckets = {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5}, .comm_hook = hook});
  const auto state = [&] {
    auto copies = hook->state_dict();
    std::erase_if(copies, [](const auto& each) { return each.first == "iteration" || !each.second.defined(); });
    for (auto& [name, tensor] : copies) tensor = tensor.clone();
    return copies;
  };
  for (int64_t step = 0; step < 4; ++step) {
    const auto before = state();
    net->zero_grad();
    const auto result = ddp.run(one_lane_each(*world, step), [&](size_t) {
      const Tensor loss = net->forward(at::randn({4, 20}) + context.rank).square().mean();
      const bool overflows = step == 2 && context.rank + 1 == context.size;
      return overflows ? loss + first->bias.sum() * HUGE_VAL : loss;
    });
    EXPECT_EQ(std::isfinite(result.square_sum), step != 2);
    const auto after = state();
    const bool unchanged =
        std::equal(before.begin(), before.end(), after.begin(), after.end(),
                   [](const auto& a, const auto& b) { return a.first == b.first && at::equal(a.second, b.second); });
    EXPECT_EQ(unchanged, step == 0 || step == 2) << "step " << step << " of rank " << context.rank;
    EXPECT_EQ(after.empty(), step == 0);
  }
}
TEST(PowerSgdHook, KeepsNothingOfAStepThatIsSkipped) {
  for (const int size : {1, 2}) expect_ranks_pass("power_sgd_overflow", size);
  expect_ranks_pass("power_sgd_overflow", 2, network());
}

struct PowerSgdLoop : testing::Test {
  std::string folder = testing::TempDir() + "power_sgd." + std::to_string(getpid());
  PowerSgdLoop() { std::filesystem::create_directories(folder); }
  ~PowerSgdLoop() override { std::filesystem::remove_all(folder); }

  std::string bits() const {
    std::string text;
    std::ifstream(folder + "/bits") >> text;
    std::filesystem::remove(folder + "/bits");
    EXPECT_EQ(text.size(), 64u);
    return text;
  }
  void run_until_killed(int ranks) const {
    Ranks killed("power_sgd_run", ranks, folder + " 7");
    for (const auto& result : killed.wait()) EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.output;
  }
};

TEST_F(PowerSgdLoop, KilledAndResumedItHasTheBitsOfOneThatWentOn) {
  for (const int ranks : {1, 2, 4}) {
    std::ofstream(folder + "/whole") << "from the beginning";
    expect_ranks_pass("power_sgd_run", ranks, folder + " 0");
    const std::string whole = bits();
    std::filesystem::remove(folder + "/whole");
    run_until_killed(ranks);
    expect_ranks_pass("power_sgd_run", ranks, folder + " 0");
    EXPECT_EQ(bits(), whole) << ranks;
    std::filesystem::remove_all(folder + "/checkpoints");
  }
}

TEST_F(PowerSgdLoop, GoesOnOnAnotherNumberOfRanks) {
  run_until_killed(4);
  expect_ranks_pass("power_sgd_run", 2, folder + " 0");
  bits();
}

}  // namespace
}  // namespace lockstep::parallel
