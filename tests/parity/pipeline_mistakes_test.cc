// Mistakes in pipelines, on real ranks: each is an error that names the stage, on all ranks.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <csignal>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/parallel/pipeline/pipeline.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;
using testing_support::refusal;
using Tensors = Pipeline::Tensors;

// argument: the mistake.
RANK_PROGRAM(mistaken_pipeline) {
  const auto world = join_world(context);
  const bool mine = context.rank == 1;
  const std::string& mistake = context.argument;
  if (mistake == "killed" && mine) raise(SIGKILL);
  at::manual_seed(5);
  torch::nn::Linear net(4, 4);
  Pipeline pipeline(net.ptr(), world, [&](const Tensors& in) {
    if (mistake == "throws" && mine) throw ConfigError("no such layer");
    if (mistake == "cut" && mine) return Tensors{net->forward(in[0]).detach()};
    if (mistake == "nothing" && mine) return Tensors();
    if (mistake == "dropped" && context.rank == 0) return Tensors{net->forward(in[0]), in[0] + net->bias};
    if (mistake == "last" && context.rank == context.size - 1) return Tensors();
    return Tensors{net->forward(in[0])};
  });
  const int64_t number = mistake == "number" && mine ? 8 : 7;
  std::vector<int64_t> samples = {2, 2};
  if (mistake == "count" && mine) samples.push_back(2);
  if (mistake == "empty") samples = {2, 0};
  if (mistake == "others") samples = {2, 3};
  if (mistake == "frozen" && mine) net->bias.requires_grad_(false);
  const double loss_scale = mistake == "scale" && mine ? 8 : 4;
  pipeline.run(
      {.number = number, .samples = samples},
      [](size_t) {
        return Tensors{at::ones({2, 4})};
      },
      [&](const Tensors& outputs, size_t micro_batch) {
        if (mistake == "backward" && micro_batch == 1) outputs[0].mean().backward({}, /*keep_graph=*/true);
        if (mistake == "nested")
          pipeline.infer(
              1, [](size_t) { return Tensors(); }, [](const Tensors&, size_t) {});
        return mistake == "detached" ? outputs[0].detach().mean() : outputs[0].mean();
      },
      loss_scale);
}
TEST(PipelineMistakes, AreNamedOnAllRanks) {
  for (const auto& [mistake, text] :
       {std::pair{"throws", "step 7, micro-batch 0, stage 1: no such layer"},
        {"cut",
         "step 7, micro-batch 0, stage 1: the stage has weights that are trained, and its outputs have no graph"},
        {"others", "step 7, micro-batch 1, stage 0: PipelineStep::samples says 3 samples, and the inputs are [2, 4]"},
        {"backward", "step 7, micro-batch 1, stage 2: a backward() within the stage's or the loss's function"},
        {"nested", "pipeline: run() or infer() within a step's function"},
        {"nothing", "stage 1 returns 0 tensors"},
        {"dropped",
         "step 7: stage 1 neither uses nor returns output 1 of stage 0, [2, 4], whose gradient would be lost"},
        {"last", "stage 2 returns 0 tensors"},
        {"number", "stage 0 is at micro-batch 0 of 2 of step 7, and stage 1 at 0 of 2 of step 8"},
        {"count", "stage 0 is at micro-batch 0 of 2 of step 7, and stage 1 at 0 of 3 of step 7"},
        {"empty", "a micro-batch without samples"},
        {"detached", "step 7, micro-batch 0, stage 2: the loss has no graph"},
        {"frozen", "step 7, stage 1: 1 weights are trained now, and 2 were"},
        {"scale", "stage 0 has a loss scale of 4, and stage 1 of 8"},
        {"killed", "rank 1"}}) {
    for (const auto& result : Ranks("mistaken_pipeline", 3, mistake).wait()) {
      if (result.exit_code == 137 || result.exit_code == -SIGKILL) continue;
      EXPECT_NE(result.exit_code, 0) << mistake;
      EXPECT_THAT(result.output, HasSubstr(text)) << mistake;
    }
  }
}

// Loops that can't be right. argument: the mistake.
RANK_PROGRAM(mistaken_loop) {
  const auto world = join_world(context);
  at::manual_seed(5);
  torch::nn::Linear net(4, 4);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  amp::MixedPrecision mixed({net.get()}, {sgd}, {.dtype = at::kHalf, .num_losses = 2});
  Pipeline pipeline(net.ptr(), world, [&](const Tensors& in) { return Tensors{net->forward(in[0])}; });
  const auto run = [&](int64_t number, int loss_id) {
    return pipeline.run(
        {.number = number, .samples = {2}},
        [](size_t) {
          return Tensors{at::ones({2, 4})};
        },
        [](const Tensors& outputs, size_t) { return outputs[0].to(at::kFloat).square().mean(); }, mixed, loss_id);
  };
  const auto result = run(0, 0);
  if (context.argument == "losses") run(0, 1);
  if (context.argument == "unused") run(1, 0);
  if (context.argument == "unscale") mixed.unscale(sgd, result);
}
TEST(PipelineMistakes, OfLoops) {
  for (const auto& [mistake, text] :
       {std::pair{"losses", ".grad holds gradients of loss 0, and those of loss 1 can't be added"},
        {"unused", "still holds the gradient of step 0"},
        {"unscale", "unscale() where each rank has some gradients alone"}}) {
    for (const auto& result : Ranks("mistaken_loop", 2, mistake).wait()) {
      EXPECT_EQ(result.exit_code, 2) << mistake;
      EXPECT_THAT(result.output, HasSubstr(text)) << mistake;
    }
  }
}

// Two pipelines of one stage each, as replicas. argument: the mistake.
RANK_PROGRAM(mistaken_replicas) {
  const auto world = join_world(context);
  const auto own =
      std::make_shared<World>(world, std::shared_ptr<comm::Communicator>(world->communicator().split(context.rank)));
  at::manual_seed(5);
  torch::nn::Linear net(4, 4);
  const std::string& mistake = context.argument;
  const Tensor temperature = at::ones({1}).requires_grad_();
  if (mistake == "wiring") {  // the stages of one pipeline taken for replicas
    Pipeline(net.ptr(), world, [&](const Tensors& in) { return Tensors{net->forward(in[0])}; }, {.replicas = world});
    return;
  }
  Pipeline pipeline(net.ptr(), own, [&](const Tensors& in) { return Tensors{net->forward(in[0])}; },
                    {.replicas = world});
  if (mistake == "loaded" && context.rank == 1) net->weight.data().mul_(0.5);
  if (mistake == "leftover" && context.rank == 1) net->weight.mutable_grad() = at::ones({4, 4});
  if (mistake == "zeroed") net->weight.mutable_grad() = at::zeros({4, 4});
  for (int64_t step = 0; step < 3; ++step) {
    pipeline.run(
        {.number = step, .samples = {2}},
        [](size_t) {
          return Tensors{at::ones({2, 4})};
        },
        [&](const Tensors& outputs, size_t) {
          const Tensor loss = outputs[0].square().mean();
          return mistake == "temperature" ? loss * temperature.sum() : loss;
        });
    net->zero_grad();
    const at::NoGradGuard no_grad;
    temperature.add_(1);
  }
}
TEST(PipelineMistakes, OfReplicas) {
  for (const auto& [mistake, text] : {std::pair{"wiring", "option stage 1 of 2 where rank 0 has option stage 0 of 2"},
                                      {"loaded", "differ"},
                                      {"leftover", "has what no run() has left"},
                                      {"temperature", "reaches a tensor of shape [1] that is trained"}}) {
    for (const auto& result : Ranks("mistaken_replicas", 2, mistake).wait()) {
      EXPECT_NE(result.exit_code, 0) << mistake;
      EXPECT_THAT(result.output, HasSubstr(text)) << mistake;
    }
  }
  for (const char* right : {"none", "zeroed"}) expect_ranks_pass("mistaken_replicas", 2, right);
}

}  // namespace
}  // namespace lockstep::parallel
