// A network cut into stages, on real ranks, against the whole one that adds up the same micro-batches.
#include "lockstep/parallel/pipeline/pipeline.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/world/testing/nodes.h"
#include "pipeline_nets.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::init_on_nodes;
using testing_support::join_world;
using testing_support::nodes;
using testing_support::Ranks;
using Tensors = Pipeline::Tensors;

constexpr int64_t kSteps = 40;
// What one process does, whose micro-batches add up.
struct Trained {
  std::vector<double> losses;
  torch::nn::Sequential net;
};
Trained train_whole() {
  Trained trained{.losses = {}, .net = whole_net()};
  const auto optimizer = optim::make_optimizer("sgd", trained.net->parameters(), {{"lr", 0.05}, {"momentum", 0.9}});
  for (int64_t step = 0; step < kSteps; ++step) {
    trained.net->zero_grad();
    double sum = 0;
    for (size_t i = 0; i < kSamples.size(); ++i) {
      const Tensor loss = loss_of(trained.net->forward(images_of(step, i)), step, i);
      sum += loss.item<double>() * share_of(i);
      (loss * share_of(i)).backward();
    }
    optimizer->update({});
    trained.losses.push_back(sum);
  }
  return trained;
}

PipelineOptions options_of(const std::string& words) {
  PipelineOptions options;
  if (words.find("gpipe") != words.npos) options.schedule = PipelineSchedule::kGPipe;
  options.recompute = words.find("recompute") != words.npos;
  return options;
}

// This rank's stage, trained.
void train_stages(const std::shared_ptr<World>& world, const PipelineOptions& options) {
  torch::nn::Sequential stage = stage_of(whole_net(), world->size(), world->rank());
  Pipeline pipeline(
      stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; }, options);
  const auto optimizer = optim::make_optimizer("sgd", stage->parameters(), {{"lr", 0.05}, {"momentum", 0.9}});
  const Trained whole = train_whole();
  const bool in_turns = options.schedule == PipelineSchedule::k1F1B;
  for (int64_t step = 0; step < kSteps; ++step) {
    stage->zero_grad();
    const auto result = pipeline.run(
        {.number = step, .samples = kSamples}, [&](size_t i) { return Tensors{images_of(step, i)}; },
        [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0], step, i); });
    optimizer->update({});
    EXPECT_EQ(result.loss, whole.losses[static_cast<size_t>(step)]) << "step " << step;
    EXPECT_EQ(result.most_held, in_turns ? std::min<int>(4, world->size() - world->rank()) : 4);
  }
  const auto expected = whole.net->named_parameters();
  for (const auto& each : stage->named_parameters()) {
    EXPECT_TRUE(at::equal(each.value(), expected[each.key()])) << each.key();
  }
  const auto buffers = whole.net->named_buffers();
  for (const auto& each : stage->named_buffers())
    EXPECT_TRUE(at::equal(each.value(), buffers[each.key()])) << each.key();
}

RANK_PROGRAM(stages_over_shm) { train_stages(join_world(context), options_of(context.argument)); }
RANK_PROGRAM(stages_over_gloo) { train_stages(init_on_nodes(context), {.schedule = PipelineSchedule::k1F1B}); }
RANK_PROGRAM(gpipe_over_gloo) { train_stages(init_on_nodes(context), {.schedule = PipelineSchedule::kGPipe}); }

TEST(PipelineParity, HasTheBitsOfTheWholeNetwork) {
  for (const char* options : {"1f1b", "gpipe", "1f1b recompute"}) {
    for (const int ranks : {1, 2, 4}) expect_ranks_pass("stages_over_shm", ranks, options);
  }
}

TEST(PipelineParity, AndSoItDoesBetweenHosts) {
  for (const char* program : {"stages_over_gloo", "gpipe_over_gloo"}) {
    expect_ranks_pass(program, 2, nodes("gloo", {1, 1}));
    expect_ranks_pass(program, 4, nodes("gloo", {2, 2}));
  }
}

// Two pipelines of two stages, each over half of the micro-batches.
RANK_PROGRAM(replicas_of_stages) {
  const auto world = join_world(context);
  const int replica = world->rank() / 2, stage_number = world->rank() % 2;
  const auto group = [&](int color, int key) {
    return std::make_shared<World>(world, std::shared_ptr<comm::Communicator>(world->communicator().split(color, key)));
  };
  const auto stages = group(replica, stage_number), replicas = group(stage_number, replica);
  torch::nn::Sequential stage = stage_of(whole_net(), 2, stage_number);
  if (replica == 1) at::NoGradGuard(), stage->parameters()[0].data().add_(1);  // the first one's counts
  Pipeline pipeline(stage.ptr(), stages, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; },
                    {.replicas = replicas});
  const auto optimizer = optim::make_optimizer("sgd", stage->parameters(), {{"lr", 0.05}});
  torch::nn::Sequential whole = whole_net();
  for (const auto& each : whole->modules(false)) {
    if (auto* norm = each->as<torch::nn::BatchNorm2d>()) norm->eval();  // whose statistics are the first replica's
  }
  for (const auto& each : stage->modules(false)) {
    if (auto* norm = each->as<torch::nn::BatchNorm2d>()) norm->eval();
  }
  const auto alone = optim::make_optimizer("sgd", whole->parameters(), {{"lr", 0.05}});
  const std::vector<size_t> own = replica == 0 ? std::vector<size_t>{0, 1} : std::vector<size_t>{2, 3};
  for (int64_t step = 0; step < 10; ++step) {
    stage->zero_grad();
    whole->zero_grad();
    const auto result = pipeline.run(
        {.number = step, .samples = {kSamples[own[0]], kSamples[own[1]]}},
        [&](size_t i) { return Tensors{images_of(step, own[i])}; },
        [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0], step, own[i]); });
    optimizer->update({});
    double sum = 0;
    for (size_t i = 0; i < kSamples.size(); ++i) {
      const Tensor loss = loss_of(whole->forward(images_of(step, i)), step, i) * share_of(i);
      sum += loss.item<double>();
      loss.backward();
    }
    double squares = 0;
    for (const Tensor& each : whole->parameters()) squares += each.grad().square().sum().item<double>();
    alone->update({});
    EXPECT_NEAR(result.loss, sum, 1e-5);
    EXPECT_NEAR(result.square_sum, squares, 1e-5 * squares + 1e-9);
  }
  const auto expected = whole->named_parameters();
  for (const auto& each : stage->named_parameters()) {
    EXPECT_LT((each.value() - expected[each.key()]).abs().max().item<double>(), 1e-5) << each.key();
  }
}
TEST(PipelineParity, ReplicasHaveTheValuesOfTheWholeNetwork) { expect_ranks_pass("replicas_of_stages", 4); }

// Activations that pass a stage by, whole numbers among them.
RANK_PROGRAM(several_tensors) {
  const auto world = join_world(context);
  at::manual_seed(5);
  torch::nn::Linear net(4, 4);
  const Tensor weight = net->weight.detach().clone();
  Pipeline pipeline(net.ptr(), world, [&](const Tensors& in) {
    return Tensors{net->forward(in[0]), in[1] + net->bias.sum(), in[2]};
  });
  const Tensor x = at::rand({3, 4}), skip = at::rand({3, 2}), labels = at::arange(3);
  const auto result = pipeline.run(
      {.number = 0, .samples = {3}},
      [&](size_t) {
        return Tensors{x, skip, labels};
      },
      [&](const Tensors& out, size_t) { return at::cross_entropy_loss(out[0], out[2]) + out[1].square().mean(); });
  // The same by itself, with each stage's own leaves.
  std::vector<Tensor> weights, biases;
  Tensor a = x, b = skip;
  for (int stage = 0; stage < context.size; ++stage) {
    weights.push_back(weight.clone().requires_grad_());
    biases.push_back(net->bias.detach().clone().requires_grad_());
    a = at::linear(a, weights.back(), biases.back());
    b = b + biases.back().sum();
  }
  const Tensor loss = at::cross_entropy_loss(a, labels) + b.square().mean();
  loss.backward();
  EXPECT_FLOAT_EQ(static_cast<float>(result.loss), loss.item<float>());
  const auto rank = static_cast<size_t>(context.rank);
  EXPECT_TRUE(at::allclose(net->weight.grad(), weights[rank].grad(), 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(net->bias.grad(), biases[rank].grad(), 1e-6, 1e-7));
}
TEST(PipelineParity, SeveralTensorsPassAStage) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("several_tensors", ranks);
}

// What a stage only passes on is copied: its owner may write to it again while it is under way.
RANK_PROGRAM(reused_buffers) {
  const auto world = join_world(context);
  torch::nn::Linear net(4, 4);
  const Tensor mask = at::zeros({4});
  size_t computed = 0;
  Pipeline pipeline(net.ptr(), world, [&](const Tensors& in) {
    if (context.rank > 0) return Tensors{net->forward(in[0]), in[1]};
    mask.fill_(static_cast<double>(computed++));
    return Tensors{net->forward(in[0]), mask};
  });
  pipeline.run(
      {.number = 0, .samples = {1, 1, 1, 1, 1, 1}},
      [](size_t) {
        return Tensors{at::ones({1, 4})};
      },
      [&](const Tensors& outputs, size_t i) {
        EXPECT_TRUE(at::equal(outputs[1], at::full({4}, static_cast<double>(i)))) << i;
        return outputs[0].mean();
      });
}
TEST(PipelineParity, BuffersThatAreUsedAgainArriveAsTheyWere) {
  for (const int ranks : {2, 3}) expect_ranks_pass("reused_buffers", ranks);
}

// A weight that the loss does not reach has no gradient, in a stage before, too.
RANK_PROGRAM(unused_outputs) {
  const auto world = join_world(context);
  torch::nn::Linear used(4, 4), unused(4, 4);
  torch::nn::ModuleDict both;
  both->update({{"used", used.ptr()}, {"unused", unused.ptr()}});
  Pipeline pipeline(both.ptr(), world, [&](const Tensors& in) {
    if (context.rank > 0) return Tensors{used->forward(in[0]), in[1]};
    return Tensors{used->forward(in[0]), unused->forward(in[0])};
  });
  pipeline.run(
      {.number = 0, .samples = {2}},
      [](size_t) {
        return Tensors{at::ones({2, 4})};
      },
      [](const Tensors& outputs, size_t) { return outputs[0].mean(); });
  EXPECT_TRUE(used->weight.grad().defined());
  EXPECT_FALSE(unused->weight.grad().defined());
}
TEST(PipelineParity, WhatTheLossDoesNotReachHasNoGradient) {
  for (const int ranks : {1, 2, 3}) expect_ranks_pass("unused_outputs", ranks);
}

// Dropout draws the same numbers for a stage and micro-batch whatever the schedule, and leaves the thread's own alone.
RANK_PROGRAM(stages_with_dropout) {
  const auto world = join_world(context);
  std::vector<std::vector<Tensor>> gradients;
  for (const char* options : {"1f1b", "gpipe", "1f1b recompute"}) {
    torch::nn::Sequential stage = stage_of(whole_net(0.5), world->size(), world->rank());
    Pipeline pipeline(
        stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; }, options_of(options));
    at::manual_seed(9);
    const Tensor expected = at::rand({1});
    at::manual_seed(9);
    pipeline.run(
        {.number = 2, .samples = kSamples},
        [&](size_t i) {
          return Tensors{at::full({kSamples[i], 1, 8, 8}, 0.5)};
        },
        [&](const Tensors& outputs, size_t) { return outputs[0].square().mean(); });
    EXPECT_TRUE(at::equal(at::rand({1}), expected));
    std::vector<Tensor>& of = gradients.emplace_back();
    for (const Tensor& each : stage->parameters()) of.push_back(each.grad().clone());
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i])) << i;
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[2][i])) << i;
  }
}
TEST(PipelineParity, DropoutDoesNotDependOnTheSchedule) {
  for (const int ranks : {1, 2}) expect_ranks_pass("stages_with_dropout", ranks);
}

// Outputs alone: those of the whole network.
RANK_PROGRAM(inferring_stages) {
  const auto world = join_world(context);
  torch::nn::Sequential whole = whole_net(), stage = stage_of(whole_net(), world->size(), world->rank());
  whole->eval();
  stage->eval();
  Pipeline pipeline(stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; });
  size_t seen = 0;
  pipeline.infer(
      kSamples.size(), [&](size_t i) { return Tensors{images_of(3, i)}; },
      [&](const Tensors& outputs, size_t i) {
        EXPECT_EQ(i, seen++);
        EXPECT_FALSE(outputs[0].requires_grad());
        EXPECT_TRUE(at::equal(outputs[0], whole->forward(images_of(3, i)).detach()));
      });
  EXPECT_EQ(seen, pipeline.is_last() ? kSamples.size() : 0);
  if (context.argument != "mistake") return;
  pipeline.infer(
      1,
      [](size_t) {
        return Tensors{at::ones({1, 1, 8, 8})};
      },
      [](const Tensors&, size_t) { throw DataError("no such class"); });
}
TEST(PipelineParity, InfersAsTheWholeNetwork) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("inferring_stages", ranks);
  for (const auto& result : Ranks("inferring_stages", 2, "mistake").wait()) {
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("micro-batch 0, stage 1: no such class"));
  }
}

// Replicas of a stage that has one weight under two names, over shared memory.
RANK_PROGRAM(tied_replicas) {
  const auto world = join_world(context);
  const auto own =
      std::make_shared<World>(world, std::shared_ptr<comm::Communicator>(world->communicator().split(context.rank)));
  at::manual_seed(5);
  torch::nn::Linear tied(4, 4);
  torch::nn::ModuleDict both;
  both->update({{"encoder", tied.ptr()}, {"decoder", tied.ptr()}});
  Pipeline pipeline(both.ptr(), own,
                    [&](const Tensors& in) { return Tensors{tied->forward(at::tanh(tied->forward(in[0])))}; },
                    {.replicas = world});
  pipeline.run(
      {.number = 0, .samples = {2}},
      [](size_t) {
        return Tensors{at::ones({2, 4})};
      },
      [](const Tensors& outputs, size_t) { return outputs[0].square().mean(); });
  const Tensor folded = tied->weight.grad().clone();
  tied->zero_grad();
  tied->forward(at::tanh(tied->forward(at::ones({2, 4})))).square().mean().backward();
  EXPECT_TRUE(at::allclose(folded, tied->weight.grad(), 1e-5, 1e-7));
}
TEST(PipelineParity, AWeightUnderTwoNamesIsFoldedOnce) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("tied_replicas", ranks);
}

}  // namespace
}  // namespace lockstep::parallel
