// Loops as PyTorch users write them, on real ranks: each gradient is the mean over ranks of all that was computed, as
// one process computes it on the joined batch.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/philox.h"
#include "lockstep/base/testing/refusal.h"
#include "loops.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

RANK_PROGRAM(plain_backward) {
  const auto world = join_world(context);
  auto net = linear(1), alone = linear(1);
  const DistributedDataParallel ddp(net.ptr(), world);
  torch::optim::SGD optimizer(net->parameters(), 0.1), by_one(alone->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(net, context.rank).backward();
    optimizer.step();
    by_one.zero_grad();
    mean_over_ranks(alone, context.size).backward();
    by_one.step();
  }
  EXPECT_TRUE(at::allclose(net->weight, alone->weight, 1e-5, 1e-6));
}
TEST(AnyLoop, PlainBackwardIsFolded) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("plain_backward", size);
}

// The root's backward needs what it has sent.
RANK_PROGRAM(activation_is_sent) {
  const auto world = join_world(context);
  auto net = linear(1);
  const Tensor sent = context.rank == 0 ? at::sigmoid(net->forward(at::ones({2, 4}))) : at::empty({2, 3});
  world->communicator().broadcast(sent, 0);
  if (context.rank == 0) {
    (sent * sent).mean().backward();
    EXPECT_TRUE(net->weight.grad().defined());
  } else {
    EXPECT_GT(sent.min().item<float>(), 0);
  }
}
TEST(AnyLoop, AnActivationThatWasSentHasItsBackward) {
  for (const int size : {1, 2}) expect_ranks_pass("activation_is_sent", size);
}

RANK_PROGRAM(several_losses) {
  const auto world = join_world(context);
  auto net = linear(1), alone = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  const int r = context.rank, w = context.size;
  loss_of(net, r).backward();
  loss_of(net, r, 3).backward();
  mean_over_ranks(alone, w).backward();
  mean_over_ranks(alone, w, 3).backward();
  expect_gradient(net, alone);
  net->zero_grad();
  alone->zero_grad();
  {
    const auto scope = ddp.no_sync();
    loss_of(net, r).backward();
  }
  loss_of(net, r, 5).backward();
  mean_over_ranks(alone, w, 6).backward();
  expect_gradient(net, alone);
  // Steps of lanes add up, too, and to what was set by hand.
  net->weight.mutable_grad() = at::full({3, 4}, 2.0f + static_cast<float>(r));
  net->bias.mutable_grad() = at::zeros({3});
  const StepPlan step{.number = 0, .samples = w, .lanes = {{r, 1}}};
  for (const double factor : {2.0, 7.0}) ddp.run(step, [&](size_t) { return loss_of(net, r, factor); });
  alone->zero_grad();
  mean_over_ranks(alone, w, 9).backward();
  alone->weight.mutable_grad() += 2 + (w - 1) / 2.0;
  expect_gradient(net, alone);
}
TEST(AnyLoop, SeveralLossesAddUp) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("several_losses", size);
}

RANK_PROGRAM(two_wrappers) {
  const auto world = join_world(context);
  at::manual_seed(3);
  torch::nn::Linear encoder(4, 5), decoder(5, 2);
  at::manual_seed(3);
  torch::nn::Linear alone_encoder(4, 5), alone_decoder(5, 2);
  DistributedDataParallel first(encoder.ptr(), world), second(decoder.ptr(), world);
  const auto loss = [](torch::nn::Linear& one, torch::nn::Linear& two, int rank) {
    return two->forward(one->forward(input(rank)).relu()).square().mean();
  };
  Tensor sum = at::zeros({});
  for (int rank = 0; rank < context.size; ++rank) sum = sum + loss(alone_encoder, alone_decoder, rank) / context.size;
  sum.backward();
  loss(encoder, decoder, context.rank).backward();
  expect_gradient(encoder, alone_encoder);
  expect_gradient(decoder, alone_decoder);
  encoder->zero_grad();
  decoder->zero_grad();
  const StepPlan step{.number = 0, .samples = context.size, .lanes = {{context.rank, 1}}};
  DistributedDataParallel::run_together({&first, &second}, step,
                                        [&](size_t) { return loss(encoder, decoder, context.rank); });
  expect_gradient(encoder, alone_encoder);
  expect_gradient(decoder, alone_decoder);
}
TEST(AnyLoop, OneLossThroughTwoWrappersFoldsBoth) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("two_wrappers", size);
}

// Two networks of several buckets each, of which a rank reaches what no other does.
struct PartsImpl : torch::nn::Module {
  torch::nn::Linear always{nullptr}, sometimes{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  explicit PartsImpl(uint64_t seed) {
    at::manual_seed(seed);
    always = register_module("always", torch::nn::Linear(4, 4));
    sometimes = register_module("sometimes", torch::nn::Linear(4, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
  }
  Tensor forward(const Tensor& x, bool all) {
    const Tensor y = norm->forward(always->forward(x));
    return all ? sometimes->forward(y) : y;
  }
};
TORCH_MODULE(Parts);

RANK_PROGRAM(reached_by_some) {
  const auto world = join_world(context);
  Parts encoder(1), decoder(2), alone_encoder(1), alone_decoder(2);
  const DdpOptions options{.buckets = {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5}, .find_unused_parameters = true};
  DistributedDataParallel first(encoder.ptr(), world, options), second(decoder.ptr(), world, options);
  const auto loss = [&](Parts& one, Parts& two, int rank, int turn) {
    return two->forward(one->forward(input(rank), rank == turn), rank != turn).pow(3).mean();
  };
  for (int turn = 0; turn < 2; ++turn) {
    for (Parts* each : {&encoder, &decoder, &alone_encoder, &alone_decoder}) (*each)->zero_grad();
    Tensor sum = at::zeros({});
    for (int rank = 0; rank < context.size; ++rank) {
      sum = sum + loss(alone_encoder, alone_decoder, rank, turn) / context.size;
    }
    sum.backward();
    const Tensor own = loss(encoder, decoder, context.rank, turn);
    if (turn == 0) own.backward();
    if (turn == 1) second.backward(own);
    for (const auto& [net, alone] : {std::pair(encoder, alone_encoder), std::pair(decoder, alone_decoder)}) {
      EXPECT_TRUE(at::allclose(net->always->weight.grad(), alone->always->weight.grad(), 1e-4, 1e-6));
      EXPECT_TRUE(at::allclose(net->sometimes->weight.grad(), alone->sometimes->weight.grad(), 1e-4, 1e-6));
    }
  }
}
TEST(AnyLoop, TwoWrappersFoldInOneOrderWhateverARankReaches) {
  for (const int size : {2, 4}) expect_ranks_pass("reached_by_some", size);
}

struct Complex : torch::nn::Module {
  Tensor weight = register_parameter("weight", at::complex(at::ones({3}), at::ones({3}) * 2));
};

RANK_PROGRAM(complex_parameters) {
  const auto world = join_over(context);
  const auto net = std::make_shared<Complex>();
  DistributedDataParallel ddp(net, world);
  const auto loss = [&](int rank) { return at::real(net->weight * net->weight * at::arange(3)).sum() * (rank + 1); };
  const auto expected = [&](double factor) { return net->weight.detach().conj() * 2 * at::arange(3) * factor; };
  const double mean = (context.size + 1) / 2.0;
  loss(context.rank).backward();
  EXPECT_TRUE(at::allclose(net->weight.grad(), expected(mean)));
  const StepPlan step{.number = 0, .samples = context.size, .lanes = {{context.rank, 1}}};
  net->zero_grad();
  StepResult result;
  for (int run = 0; run < 2; ++run) result = ddp.run(step, [&](size_t) { return loss(context.rank); });
  EXPECT_TRUE(at::allclose(net->weight.grad(), expected(2 * mean)));
  EXPECT_NEAR(result.square_sum, at::view_as_real(expected(2 * mean).resolve_conj()).square().sum().item<double>(),
              1e-2);
}
TEST(AnyLoop, ComplexParametersAreFolded) {
  for (const int size : {1, 2}) expect_ranks_pass("complex_parameters", size);
  expect_ranks_pass("complex_parameters", 2, network());
}

RANK_PROGRAM(complex_loop) {
  const auto world = join_over(context);
  const auto net = std::make_shared<Complex>();
  torch::optim::SGD optimizer(net->parameters(), /*lr=*/0.25);
  DistributedDataParallel ddp(net, world);
  const auto loss = [&](double factor) { return at::real(net->weight * at::arange(3)).sum() * factor; };
  const Tensor begin = net->weight.detach().clone();
  double factors = 0;
  for (int step = 0; step < 3; ++step) {
    loss(context.rank + 1).backward();
    {
      const auto scope = ddp.no_sync();
      loss(4).backward();  // adds in place to what the pass has installed
    }
    loss(step).backward();
    factors += (context.size + 1) / 2.0 + 4 + step;
    EXPECT_TRUE(at::allclose(at::real(net->weight.grad()), at::arange(3) * ((context.size + 1) / 2.0 + 4 + step)));
    optimizer.step();
    optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
  }
  EXPECT_TRUE(at::allclose(net->weight, begin - at::arange(3) * (0.25 * factors)));
}
TEST(AnyLoop, ComplexParametersTakePartInEveryCallOfALoop) {
  for (const int size : {1, 2}) expect_ranks_pass("complex_loop", size);
  expect_ranks_pass("complex_loop", 2, network());
}

// A network that is trained and evaluated within another's lanes: each lane begins with the buffers of the step's
// start, and lane 0's stay. The argument names the file for the gradients' bits.
RANK_PROGRAM(evaluated_within) {
  const auto world = join_world(context);
  auto net = linear(1);
  torch::nn::BatchNorm1d norm(3);
  DistributedDataParallel ddp(net.ptr(), world), critic(norm.ptr(), world);
  const auto own = world->own_lanes(4);
  std::ofstream file;
  if (context.rank == 0) file.open(context.argument);
  Tensor start = at::zeros({3});  // the mean after the steps so far, each with lane 0's batch alone
  const auto after = [&](const Tensor& out) { return start * 0.9 + out.mean(0).detach() * 0.1; };
  for (int64_t number = 0; number < 3; ++number) {
    StepPlan step{.number = number, .samples = 8, .lanes = {}};
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 2});
    const auto out_of = [&](int lane) { return net->forward(input(lane) * static_cast<double>(number + 1)); };
    net->zero_grad();
    ddp.run(step, [&](size_t i) {
      norm->train();
      const Tensor out = out_of(step.lanes[i].index);
      const Tensor loss = norm->forward(out).square().mean();
      EXPECT_TRUE(at::allclose(norm->running_mean, after(out), 1e-5, 1e-6)) << "lane " << step.lanes[i].index;
      norm->eval();
      return loss + norm->forward(out).square().mean();
    });
    start = after(out_of(0));
    EXPECT_TRUE(at::allclose(norm->running_mean, start, 1e-5, 1e-6)) << "step " << number;
    EXPECT_FALSE(norm->weight.grad().defined()) << "not stepped";
    const Tensor gradient = net->weight.grad().flatten();
    for (int64_t i = 0; i < gradient.numel(); ++i) file << std::hexfloat << gradient[i].item<float>() << ' ';
  }
}
TEST(AnyLoop, BuffersOfAllNetworksFollowTheLanes) {
  const std::string reference = written_by("evaluated_within", 1);
  for (const int size : {2, 4}) EXPECT_EQ(written_by("evaluated_within", size), reference) << size << " ranks";
}

// Rank 0 runs out of data first; the buffers are those of the rank that went on longest.
RANK_PROGRAM(joined_buffers) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::BatchNorm1d norm(4);
  DistributedDataParallel ddp(norm.ptr(), world);
  const int turns = 1 + 2 * context.rank;
  ddp.join([&] {
    for (int turn = 0; turn < turns; ++turn) {
      norm->zero_grad();
      norm->forward(input(context.rank)).square().mean().backward();
    }
  });
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1 + 2 * (context.size - 1));
}
TEST(AnyLoop, JoinEndsWithTheBuffersOfTheLongestRank) { expect_ranks_pass("joined_buffers", 3); }

// The weights are rounded copies of fp32 masters, which the optimizer steps.
RANK_PROGRAM(joined_masters) {
  const auto world = join_world(context);
  auto net = linear(1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  amp::MixedPrecision mixed({net.get()}, {sgd},
                            {.opt_level = amp::OptLevel::kO2, .dtype = at::kBFloat16, .loss_scale = 1.0});
  DistributedDataParallel ddp(net.ptr(), world);
  const auto step = [&] {
    net->forward(input(context.rank).to(at::kBFloat16)).to(at::kFloat).square().mean().backward();
    mixed.step(sgd, amp::FoldedGradients{.square_sum = ddp.reducer().square_sum(), .loss_scale = 1});
    mixed.zero_grad(sgd);
  };
  const auto expect_same = [&] {
    for (const auto& master : mixed.masters_of(net->parameters())) EXPECT_TRUE(same_on_all_ranks(master, *world));
    EXPECT_TRUE(same_on_all_ranks(net->weight.view(at::kShort), *world));
  };
  ddp.join([&] {
    for (int turn = 0; turn < 2 + 10 * context.rank; ++turn) step();
  });
  expect_same();
  step();
  expect_same();
}
TEST(AnyLoop, JoinEndsWithTheMastersOfTheLongestRank) { expect_ranks_pass("joined_masters", 2); }

RANK_PROGRAM(sync_outside) {
  const auto world = join_world(context);
  auto net = linear(1);
  torch::nn::BatchNorm1d norm(3);
  convert_sync_batchnorm(*norm, world->communicator());
  DistributedDataParallel ddp(net.ptr(), world), critic(norm.ptr(), world);
  const int first = 2 * context.rank;
  const StepPlan step{.number = 0, .samples = 4 * context.size, .lanes = {{first, 2}, {first + 1, 2}}};
  EXPECT_THAT(failure([&] {
                ddp.run(step, [&](size_t i) { return norm->forward(net->forward(input(static_cast<int>(i)))).mean(); });
              }),
              HasSubstr("the layers of one network alone take part"));
}
TEST(AnyLoop, SyncBatchNormOfAnotherNetworkIsRefusedWithSeveralLanes) {
  for (const int size : {1, 2}) expect_ranks_pass("sync_outside", size);
}

// Rank 1 has no samples in the step's last lane, and knows no order of the networks.
RANK_PROGRAM(ragged_together) {
  const auto world = join_world(context);
  auto encoder = linear(1);
  at::manual_seed(3);
  torch::nn::Linear decoder(3, 2);
  DistributedDataParallel first(encoder.ptr(), world), second(decoder.ptr(), world);
  const StepPlan step{.number = 0, .samples = 2, .lanes = {{context.rank, context.rank == 0 ? 2 : 0}}};
  DistributedDataParallel::run_together(
      {&first, &second}, step, [&](size_t) { return decoder->forward(encoder->forward(input(0))).square().mean(); });
  auto alone = linear(1);
  at::manual_seed(3);
  torch::nn::Linear alone_decoder(3, 2);
  alone_decoder->forward(alone->forward(input(0))).square().mean().backward();
  expect_gradient(encoder, alone);
  expect_gradient(decoder, alone_decoder);
}
TEST(AnyLoop, ARankWithoutSamplesStepsSeveralNetworks) { expect_ranks_pass("ragged_together", 2); }

RANK_PROGRAM(half_losses) {
  const auto world = join_world(context);
  auto net = linear(1);
  DistributedDataParallel ddp(net.ptr(), world);
  const StepPlan step{.number = 0, .samples = 2, .lanes = {{context.rank, 1}}};
  const auto result = ddp.run(
      step, [&](size_t) { return loss_of(net, context.rank, 10).to(at::kHalf); }, 65536);
  EXPECT_TRUE(std::isfinite(result.square_sum)) << "a loss of 10 times 32768 is not in fp16, its gradient is";
}
TEST(AnyLoop, AHalfLossTimesItsScaleIsFinite) { expect_ranks_pass("half_losses", 2); }

}  // namespace
}  // namespace lockstep::parallel
