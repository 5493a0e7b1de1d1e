// Loops around a pipeline, on real ranks: mixed precision, clipping, runs that add up.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/pipeline/pipeline.h"
#include "pipeline_nets.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;
using Tensors = Pipeline::Tensors;

// fp16 with a loss scale: the verdict is one on all stages, where one alone has an infinite gradient.
RANK_PROGRAM(stages_in_mixed_precision) {
  const auto world = join_world(context);
  torch::nn::Sequential stage = stage_of(whole_net(), world->size(), world->rank());
  const auto optimizer = optim::make_optimizer("adamw", stage->parameters(), {{"lr", 0.01}});
  amp::MixedPrecision mixed({stage.ptr().get()}, {*optimizer}, {.dtype = at::kHalf});
  Pipeline pipeline(stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; });
  bool overflows = false;
  stage->parameters()[0].register_hook([&](const Tensor& gradient) {
    return overflows && context.rank == context.size - 1 ? gradient * HUGE_VAL : gradient;
  });
  double first = 0, last = 0;
  for (int64_t step = 0; step < 30; ++step) {
    overflows = step == 3;
    const auto result = pipeline.run(
        {.number = step, .samples = kSamples}, [&](size_t i) { return Tensors{images_of(step % 2, i)}; },
        [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0].to(at::kFloat), step % 2, i); }, mixed);
    const auto report = mixed.step(*optimizer, result, {.max_norm = 5});
    EXPECT_EQ(report.skipped, step == 3);
    mixed.zero_grad(*optimizer);
    (step == 0 ? first : last) = result.loss;
  }
  EXPECT_EQ(mixed.loss_scale(), 32768);
  EXPECT_LT(last, 0.7 * first);
}
TEST(PipelineParity, MixedPrecisionSkipsOnAllStagesTogether) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("stages_in_mixed_precision", ranks);
}

// Embeddings of one sample: libtorch gives both weights one memory, in which neither a fold nor a later run may add
// twice. argument: "replicas" or the runs of one step.
RANK_PROGRAM(shared_memory) {
  const auto world = join_world(context);
  struct EmbeddingsImpl : torch::nn::Module {
    Tensor position = register_parameter("position", at::zeros({3})), kind = register_parameter("kind", at::zeros({3}));
  };
  const auto stage = std::make_shared<EmbeddingsImpl>();
  const auto own =
      std::make_shared<World>(world, std::shared_ptr<comm::Communicator>(world->communicator().split(context.rank)));
  PipelineOptions options;
  if (context.argument == "replicas") options.replicas = world;
  const auto forward = [&](const Tensors& in) {
    return Tensors{in[0] + stage->position.unsqueeze(0) + stage->kind.unsqueeze(0)};
  };
  Pipeline pipeline(stage, own, forward, options);
  const int runs = context.argument == "replicas" ? 1 : 2;
  for (int run = 0; run < runs; ++run) {
    pipeline.run(
        {.number = 0, .samples = {1, 1}},
        [](size_t) {
          return Tensors{at::ones({1, 3})};
        },
        [&](const Tensors& outputs, size_t i) {
          return (outputs[0] * at::full({1, 3}, i + 1.0)).sum();
        });
  }
  for (const Tensor& each : {stage->position, stage->kind}) {
    EXPECT_TRUE(each.grad().equal(at::full({3}, 1.5 * runs))) << each.grad();
  }
}
TEST(PipelineParity, GradientsThatShareMemoryAreAddedOnce) {
  expect_ranks_pass("shared_memory", 1, "twice");
  expect_ranks_pass("shared_memory", 2, "replicas");
}

// A first stage whose layers one micro-batch leaves out, as LayerDrop does.
RANK_PROGRAM(left_out_layers) {
  const auto world = join_world(context);
  torch::nn::Linear net(3, 3);
  int calls = 0;
  Pipeline pipeline(net.ptr(), world, [&](const Tensors& in) {
    return context.rank == 0 && calls++ == 1 ? in : Tensors{net->forward(in[0])};
  });
  pipeline.run(
      {.number = 0, .samples = {1, 1}},
      [](size_t) {
        return Tensors{at::ones({1, 3})};
      },
      [](const Tensors& outputs, size_t) { return outputs[0].sum(); });
  EXPECT_TRUE(net->weight.grad().defined());
}
TEST(PipelineParity, AMicroBatchMayLeaveTheFirstStagesLayersOut) { expect_ranks_pass("left_out_layers", 2); }

// Clipped by the norm of all stages, as the whole network is.
RANK_PROGRAM(clipped_stages) {
  const auto world = join_world(context);
  torch::nn::Sequential whole = whole_net(), stage = stage_of(whole_net(), world->size(), world->rank());
  const auto alone = optim::make_optimizer("sgd", whole->parameters(), {{"lr", 1.0}});
  const auto optimizer = optim::make_optimizer("sgd", stage->parameters(), {{"lr", 1.0}});
  amp::MixedPrecision mixed({stage.ptr().get()}, {*optimizer}, {.opt_level = amp::OptLevel::kO0});
  Pipeline pipeline(stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; });
  const auto result = pipeline.run(
      {.number = 0, .samples = kSamples}, [&](size_t i) { return Tensors{images_of(0, i)}; },
      [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0], 0, i); }, mixed);
  for (size_t i = 0; i < kSamples.size(); ++i)
    (loss_of(whole->forward(images_of(0, i)), 0, i) * share_of(i)).backward();
  const double norm = std::sqrt(result.square_sum);
  const auto report = mixed.step(*optimizer, result, {.max_norm = norm / 3});
  EXPECT_NEAR(report.gradient_norm, optim::clip_grad_norm(whole->parameters(), norm / 3), 1e-5);
  alone->update({});
  const auto expected = whole->named_parameters();
  for (const auto& each : stage->named_parameters()) {
    EXPECT_TRUE(at::allclose(each.value(), expected[each.key()], 1e-4, 1e-6)) << each.key();
  }
  // Gradients of one stage that changed have no norm that the others know.
  stage->zero_grad();
  const auto next = pipeline.run(
      {.number = 1, .samples = kSamples}, [&](size_t i) { return Tensors{images_of(1, i)}; },
      [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0], 1, i); }, mixed);
  stage->parameters()[0].grad().mul_(0.5);
  EXPECT_THAT(refusal([&] { mixed.step(*optimizer, next); }), HasSubstr("are those of all ranks"));
}
TEST(PipelineParity, StagesAreClippedByOneNorm) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("clipped_stages", ranks);
}

// A loop that never calls zero_grad(), by the library's optimizer; libtorch's SGD leaves no trace, and is told.
RANK_PROGRAM(without_zero_grad) {
  const auto world = join_world(context);
  std::vector<std::vector<Tensor>> weights;
  for (const bool zeroes : {true, false}) {
    torch::nn::Sequential stage = stage_of(whole_net(), world->size(), world->rank());
    Pipeline pipeline(stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; });
    const auto optimizer = optim::make_optimizer("sgd", stage->parameters(), {{"lr", 0.05}});
    for (int64_t step = 0; step < 5; ++step) {
      if (zeroes) stage->zero_grad();
      pipeline.run(
          {.number = step, .samples = kSamples}, [&](size_t i) { return Tensors{images_of(step, i)}; },
          [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0], step, i); });
      optimizer->update({});
    }
    std::vector<Tensor>& of = weights.emplace_back();
    for (const Tensor& each : stage->parameters()) of.push_back(each.detach().clone());
  }
  for (size_t i = 0; i < weights[0].size(); ++i) EXPECT_TRUE(at::equal(weights[0][i], weights[1][i])) << i;
}
TEST(PipelineParity, LoopsNeedNoZeroGrad) {
  for (const int ranks : {1, 2}) expect_ranks_pass("without_zero_grad", ranks);
}

// Losses of one step, or steps before one update.
RANK_PROGRAM(accumulated_steps) {
  const auto world = join_world(context);
  torch::nn::Sequential stage = stage_of(whole_net(), world->size(), world->rank());
  Pipeline pipeline(stage.ptr(), world, [&](const Tensors& in) { return Tensors{stage->forward(in[0])}; });
  std::vector<Tensor> once;
  for (const int runs : {1, 2}) {
    stage->zero_grad();
    for (int run = 0; run < runs; ++run) {
      pipeline.run(
          {.number = 0, .samples = kSamples}, [&](size_t i) { return Tensors{images_of(0, i)}; },
          [&](const Tensors& outputs, size_t i) { return loss_of(outputs[0], 0, i); });
    }
    for (size_t i = 0; i < stage->parameters().size(); ++i) {
      const Tensor& gradient = stage->parameters()[i].grad();
      if (runs == 1) once.push_back(gradient.clone());
      if (runs == 2) EXPECT_TRUE(at::allclose(gradient, 2 * once[i], 1e-5, 1e-7)) << i;
    }
  }
}
TEST(PipelineParity, RunsAddUp) {
  for (const int ranks : {1, 2}) expect_ranks_pass("accumulated_steps", ranks);
}

}  // namespace
}  // namespace lockstep::parallel
