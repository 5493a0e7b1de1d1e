// Programs that catch an error of a step or pass and go on, on real ranks: gradients of different steps are never
// mixed.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

// Backward reaches `second` before it calls the hook.
struct PairImpl : torch::nn::Module {
  torch::nn::Linear first{nullptr}, second{nullptr};
  PairImpl() {
    first = register_module("first", linear(1));
    at::manual_seed(2);
    second = register_module("second", torch::nn::Linear(3, 2));
  }
  Tensor loss(int step, int rank, bool fails = false) {
    Tensor hidden = first->forward(input(rank) + step);
    if (fails) hidden.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("a user's own"); });
    return second->forward(hidden).square().mean();
  }
};
TORCH_MODULE(Pair);

void expect_mean_gradient(const Pair& net, int step, int ranks) {
  Pair alone;
  for (int rank = 0; rank < ranks; ++rank) (alone->loss(step, rank) / ranks).backward();
  const auto gradients = net->parameters(), expected = alone->parameters();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::allclose(gradients[i].grad(), expected[i].grad())) << i;
}

bool fails_here(const testing_support::RankContext& context) { return context.rank == 0 || context.argument == "all"; }

// A hook of rank 0's, or of all ranks', throws in step 1; the others are a little late.
RANK_PROGRAM(goes_on_after_backward) {
  const auto world = join_world(context);
  Pair net;
  DistributedDataParallel ddp(net.ptr(), world);
  for (int step = 0; step < 4; ++step) {
    net->zero_grad();
    if (step == 1 && context.rank > 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    const std::string text =
        failure([&] { ddp.backward(net->loss(step, context.rank, step == 1 && fails_here(context))); });
    if (step == 0) {
      EXPECT_EQ(text, "");
      expect_mean_gradient(net, step, context.size);
    } else {
      EXPECT_THAT(text, HasSubstr("a user's own")) << "step " << step;
    }
  }
}
TEST(FailedPass, AnErrorThatBackwardTellsEndsTheLoopOnAllRanks) {
  for (const char* who : {"one", "all"}) expect_ranks_pass("goes_on_after_backward", 2, who);
}

RANK_PROGRAM(goes_on_after_run) {
  const auto world = join_world(context);
  Pair net;
  DistributedDataParallel ddp(net.ptr(), world);
  for (int step = 0; step < 4; ++step) {
    net->zero_grad();
    if (step == 1 && context.rank > 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    const std::string text = failure([&] {
      ddp.run(one_lane_each(*world, 0), [&](size_t) {
        if (step == 1 && fails_here(context)) throw std::runtime_error("a user's own");
        return net->loss(step, context.rank);
      });
    });
    EXPECT_THAT(text, step == 0 ? HasSubstr("") : HasSubstr("a user's own")) << "step " << step;
    EXPECT_EQ(text.empty(), step == 0);
  }
}
TEST(FailedPass, AnErrorInAStepEndsTheLoopOnAllRanksThoughNumbersDoNotRise) {
  for (const char* who : {"one", "all"}) expect_ranks_pass("goes_on_after_run", 2, who);
}

// Nobody tells the other ranks, but this rank's next pass is another one than theirs.
RANK_PROGRAM(goes_on_after_plain_backward) {
  const auto world = join_world(context);
  Pair net;
  const DistributedDataParallel ddp(net.ptr(), world);
  for (int step = 0; step < 4; ++step) {
    net->zero_grad();
    const std::string text =
        failure([&] { net->loss(step, context.rank, step == 1 && fails_here(context)).backward(); });
    if (step == 1 && fails_here(context)) {
      EXPECT_THAT(text, HasSubstr("a user's own"));
    } else if (step == 0 || context.argument == "all") {
      EXPECT_EQ(text, "") << "step " << step;
      expect_mean_gradient(net, step, context.size);
    } else {
      EXPECT_THAT(text, HasSubstr("of another step")) << "step " << step;
    }
  }
}
TEST(FailedPass, PassesOfDifferentNumbersAreNotFolded) {
  expect_ranks_pass("goes_on_after_plain_backward", 2, "one");
  for (const int size : {1, 2}) expect_ranks_pass("goes_on_after_plain_backward", size, "all");
}

// Argument: "one" or "all", and network(), if any. In step 1 backward fails at the input, after all buckets are
// launched, so that the other rank finishes its pass.
RANK_PROGRAM(goes_on_after_a_late_error) {
  std::istringstream argument(context.argument);
  std::string port;
  argument >> context.argument >> port;
  const auto world = join_over(context, port);
  Pair net;
  const DistributedDataParallel ddp(net.ptr(), world);
  for (int step = 0; step < 4; ++step) {
    net->zero_grad();
    const Tensor data = (input(context.rank) + step).requires_grad_(), doubled = data * 2;
    if (step == 1 && fails_here(context)) {
      doubled.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("a user's own"); });
    }
    const std::string text =
        failure([&] { net->second->forward(net->first->forward(doubled)).square().mean().backward(); });
    if (step == 1 && fails_here(context)) {
      EXPECT_THAT(text, HasSubstr("a user's own"));
    } else if (step < 2 || context.argument == "all") {
      EXPECT_EQ(text, "") << "step " << step;
    } else {
      EXPECT_THAT(text, HasSubstr("of another step")) << "step " << step << " of rank " << context.rank;
    }
  }
}
TEST(FailedPass, OneThatOtherRanksHaveFinishedIsNotGoneOnAfter) {
  for (const std::string who : {"one", "all"}) {
    expect_ranks_pass("goes_on_after_a_late_error", 2, who);
    expect_ranks_pass("goes_on_after_a_late_error", 2, who + ' ' + network());
  }
}

// What rank 0 throws is no std::exception.
RANK_PROGRAM(throws_a_number) {
  const auto world = join_world(context);
  torch::nn::BatchNorm1d norm(4);
  DistributedDataParallel ddp(norm.ptr(), world);
  const auto loss = [&](bool fails) {
    const Tensor value = norm->forward(input(context.rank)).square().mean();
    if (fails) throw 42;
    return value;
  };
  const auto step = [&](bool fails) { ddp.run(one_lane_each(*world), [&](size_t) { return loss(fails); }); };
  if (context.rank == 0) EXPECT_THROW(step(true), int);
  EXPECT_TRUE(context.rank > 0 || at::equal(norm->running_mean, at::zeros({4}))) << "as before the step";
  const std::string text = failure([&] { step(false); });
  if (context.size == 1) {
    EXPECT_EQ(text, "");
    EXPECT_THROW(ddp.join([&] { loss(true); }), int);
    norm->zero_grad();
    loss(false).backward();
    norm->zero_grad();
    EXPECT_EQ(failure([&] { step(false); }), "") << "nothing is under way";
  } else {
    EXPECT_THAT(text, HasSubstr("rank 0")) << "on rank " << context.rank;
    EXPECT_THAT(text, HasSubstr("gave up: an exception that is no std::exception"));
  }
}
TEST(FailedPass, AnythingThatIsThrownEndsTheStepAndIsTold) {
  for (const int size : {1, 2}) expect_ranks_pass("throws_a_number", size);
}

}  // namespace
}  // namespace lockstep::parallel
