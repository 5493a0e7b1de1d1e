// Layers that are divided among ranks, and branches that different ranks compute, against the whole network.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/utils/clip_grad.h>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/tensor/layers.h"
#include "lockstep/parallel/tensor/regions.h"
#include "lockstep/world/testing/nodes.h"
#include "support/worlds.h"

namespace lockstep::parallel::tensor {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::init_on_nodes;
using testing_support::join_world;
using testing_support::nodes;
using testing_support::Ranks;
using testing_support::refusal;

constexpr int64_t kSteps = 40;

Tensor images_of(int64_t step) {
  at::manual_seed(100 + static_cast<uint64_t>(step));
  return at::rand({6, 1, 8, 8});
}
Tensor labels_of(int64_t step) { return (images_of(step).flatten(1).sum(1) * 10).to(at::kLong).remainder(5); }

// A small AlexNet: two towers, then Linear layers with most of the weights.
struct WholeImpl : torch::nn::Module {
  torch::nn::Conv2d first{nullptr}, towers{nullptr};
  torch::nn::Linear wide{nullptr}, narrow{nullptr}, last{nullptr};
  WholeImpl() {
    at::manual_seed(3);
    first = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3)));
    towers = register_module("towers", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).groups(4).stride(2)));
    wide = register_module("wide", torch::nn::Linear(32, 64));
    narrow = register_module("narrow", torch::nn::Linear(64, 16));
    last = register_module("last", torch::nn::Linear(16, 5));
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = at::relu(towers->forward(at::relu(first->forward(x))));
    return last->forward(at::relu(narrow->forward(at::relu(wide->forward(features.flatten(1))))));
  }
};
TORCH_MODULE(Whole);

struct DividedImpl : torch::nn::Module {
  ChannelParallelConv2d first{nullptr}, towers{nullptr};
  ColumnParallelLinear wide{nullptr};
  RowParallelLinear narrow{nullptr};
  torch::nn::Linear last{nullptr};
  DividedImpl(const Whole& whole, comm::Communicator& comm) {
    first = register_module("first", ChannelParallelConv2d(whole->first, comm));
    towers = register_module("towers", ChannelParallelConv2d(whole->towers, comm, /*join=*/true));
    wide = register_module("wide", ColumnParallelLinear(whole->wide, comm));
    narrow = register_module("narrow", RowParallelLinear(whole->narrow, comm));
    last = register_module("last", whole->last);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = at::relu(towers->forward(at::relu(first->forward(x))));
    return last->forward(at::relu(narrow->forward(at::relu(wide->forward(features.flatten(1))))));
  }
};
TORCH_MODULE(Divided);

double most_different(const Tensor& own, const Tensor& whole, int64_t dim, int rank) {
  const Tensor part = own.size(dim) == whole.size(dim) ? whole : whole.narrow(dim, own.size(dim) * rank, own.size(dim));
  return (own - part).abs().max().item<double>();
}

void train_divided(const std::shared_ptr<World>& world) {
  comm::Communicator& comm = world->communicator();
  Whole base, whole;
  Divided divided(base, comm);
  const auto alone = optim::make_optimizer("sgd", whole->parameters(), {{"lr", 0.05}, {"momentum", 0.9}});
  const auto optimizer = optim::make_optimizer("sgd", divided->parameters(), {{"lr", 0.05}, {"momentum", 0.9}});
  for (int64_t step = 0; step < kSteps; ++step) {
    whole->zero_grad();
    divided->zero_grad();
    const Tensor expected = at::cross_entropy_loss(whole->forward(images_of(step)), labels_of(step));
    const Tensor loss = at::cross_entropy_loss(divided->forward(images_of(step)), labels_of(step));
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5) << "step " << step;
    expected.backward();
    loss.backward();
    alone->update({});
    optimizer->update({});
  }
  const int rank = world->rank();
  EXPECT_LT(most_different(divided->first->conv->weight, whole->first->weight, 0, rank), 1e-5);
  EXPECT_LT(most_different(divided->towers->conv->weight, whole->towers->weight, 0, rank), 1e-5);
  EXPECT_LT(most_different(divided->wide->weight, whole->wide->weight, 0, rank), 1e-5);
  EXPECT_LT(most_different(divided->wide->bias, whole->wide->bias, 0, rank), 1e-5);
  EXPECT_LT(most_different(divided->narrow->weight, whole->narrow->weight, 1, rank), 1e-5);
  EXPECT_LT(most_different(divided->narrow->bias, whole->narrow->bias, 0, rank), 1e-5);
  EXPECT_LT(most_different(divided->last->weight, whole->last->weight, 0, rank), 1e-5);
}

RANK_PROGRAM(divided_over_shm) { train_divided(join_world(context)); }
RANK_PROGRAM(divided_over_gloo) { train_divided(init_on_nodes(context)); }
TEST(TensorParallel, HasTheValuesOfTheWholeNetwork) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("divided_over_shm", ranks);
  expect_ranks_pass("divided_over_gloo", 2, nodes("gloo", {1, 1}));
}

// The gradient of a gradient's norm, through divided layers and beside them.
RANK_PROGRAM(penalty) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  at::manual_seed(8);
  torch::nn::Linear first(4, 8), second(8, 3);
  ColumnParallelLinear column(first, comm);
  RowParallelLinear row(second, comm);
  const auto penalty = [](const Tensor& output, const Tensor& x) {
    const auto gradient = torch::autograd::grad({output.square().sum()}, {x}, {}, true, true)[0];
    return gradient.square().sum() + output.sum();
  };
  const Tensor x = at::rand({5, 4}).requires_grad_();
  penalty(second->forward(at::tanh(first->forward(x))) + x.narrow(1, 0, 3).pow(3), x).backward();
  penalty(row->forward(at::tanh(column->forward(x))) + x.narrow(1, 0, 3).pow(3), x).backward();
  const auto rank = context.rank;
  const int64_t size = 8 / context.size;
  EXPECT_TRUE(at::allclose(column->weight.grad(), first->weight.grad().narrow(0, rank * size, size), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(row->weight.grad(), second->weight.grad().narrow(1, rank * size, size), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(row->bias.grad(), second->bias.grad(), 1e-4, 1e-5));
  std::vector<Tensor> weights = column->parameters();
  for (const Tensor& each : row->parameters()) weights.push_back(each);
  double squares = 0;
  for (const auto& each : {first, second}) {
    for (const Tensor& weight : each->parameters()) squares += weight.grad().square().sum().item<double>();
  }
  EXPECT_NEAR(gradient_square_sum(weights, comm), squares, 1e-4 * squares);
  if (context.size > 1) {
    EXPECT_THAT(refusal([&] { gradient_square_sum(first->parameters(), comm); }), HasSubstr("not their masters"));
  }
}
TEST(TensorParallel, HasSecondDerivativesAndOneNorm) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("penalty", ranks);
}

// A BatchNorm of each rank's own features between divided layers. argument: whether it is marked as a part.
RANK_PROGRAM(norm_between) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  at::manual_seed(8);
  torch::nn::Linear first(4, 8), second(8, 3), last(3, 2), own_last(3, 2);
  torch::nn::BatchNorm1d norm(8), own_norm(8 / context.size);
  ColumnParallelLinear column(first, comm);
  RowParallelLinear row(second, comm);
  if (context.rank == 0) {
    const at::NoGradGuard no_grad;
    own_last->weight.copy_(last->weight), own_last->bias.copy_(last->bias);
  }
  agree(*own_last, comm);
  if (context.argument == "marked") mark_parts(*own_norm, comm);
  if (context.argument == "marked") {  // its statistics are this rank's, too
    own_norm->running_mean.fill_(context.rank);
    agree(*own_norm, comm);
    EXPECT_EQ(own_norm->running_mean[0].item<int>(), context.rank);
  }
  const auto square = [](const Tensor& output) { return (output * 3).square().mean(); };
  const Tensor x = at::rand({5, 4});
  square(last->forward(second->forward(at::tanh(norm->forward(first->forward(x)))))).backward();
  square(own_last->forward(row->forward(at::tanh(own_norm->forward(column->forward(x)))))).backward();
  std::vector<Tensor> weights, wholes;
  for (const auto& module :
       std::vector<std::shared_ptr<torch::nn::Module>>{column.ptr(), own_norm.ptr(), row.ptr(), own_last.ptr()}) {
    for (const Tensor& each : module->parameters()) weights.push_back(each);
  }
  for (const auto& module :
       std::vector<std::shared_ptr<torch::nn::Module>>{first.ptr(), norm.ptr(), second.ptr(), last.ptr()}) {
    for (const Tensor& each : module->parameters()) wholes.push_back(each);
  }
  const double expected = torch::nn::utils::clip_grad_norm_(wholes, 0.1);
  if (context.argument != "marked" && context.size > 1) {
    EXPECT_THAT(refusal([&] { gradient_square_sum(weights, comm); }), HasSubstr("mark_parts() a layer"));
    return;
  }
  EXPECT_NEAR(clip_grad_norm(weights, 0.1, comm), expected, 1e-4 * expected);
  EXPECT_TRUE(at::allclose(own_last->weight.grad(), last->weight.grad(), 1e-4, 1e-6));
  const int64_t size = 8 / context.size;
  EXPECT_TRUE(
      at::allclose(own_norm->weight.grad(), norm->weight.grad().narrow(0, context.rank * size, size), 1e-4, 1e-6));
}
TEST(TensorParallel, LayersOfOwnFeaturesArePartsOnceMarked) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("norm_between", ranks, "marked");
  expect_ranks_pass("norm_between", 2, "unmarked");
}

// A weight that the list has twice, and gradients of a part and of an equal weight in one memory.
RANK_PROGRAM(clipped_once) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  at::manual_seed(8);
  torch::nn::Linear tied(4, 4), part(1, 4);
  ColumnParallelLinear wide(torch::nn::Linear(4, 4), comm);
  mark_parts(*part, comm);
  const Tensor equal = at::zeros({4}).requires_grad_(true);
  const at::Tensor x = at::ones({1, 4});
  (wide->forward(tied->forward(tied->forward(x))).sum() * 3).backward();
  ((equal.unsqueeze(0) + part->bias.unsqueeze(0)) * at::full({1, 4}, 2)).sum().backward();
  ASSERT_EQ(equal.grad().const_data_ptr(), part->bias.grad().const_data_ptr());
  const std::vector<Tensor> weights = {tied->weight, tied->weight, wide->weight, equal, part->bias};
  std::vector<Tensor> before;
  for (const Tensor& each : weights) before.push_back(each.grad().clone());
  const double norm = clip_grad_norm(weights, 0.1, comm), factor = optim::clip_factor(norm, 0.1);
  EXPECT_LT(factor, 0.1);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(at::allclose(weights[i].grad(), before[i] * factor, 1e-5, 1e-9)) << i;
  }
  EXPECT_THAT(refusal([&] { clip_grad_norm(weights, -1, comm); }), HasSubstr("is not 0 or more"));
}
TEST(TensorParallel, ClippingScalesEachGradientOnce) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("clipped_once", ranks);
}

// Rank 0's whole layer counts, frozen and of its dtype, and making it draws no numbers.
RANK_PROGRAM(other_wholes) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  at::manual_seed(static_cast<uint64_t>(context.rank));  // forgotten
  torch::nn::Linear linear(4, 4);
  torch::nn::Conv2d conv(2, 4, 3);
  linear->weight.requires_grad_(false);
  conv->to(at::kDouble);
  at::manual_seed(1);
  const Tensor expected = at::rand({1});
  at::manual_seed(1);
  const ColumnParallelLinear column(linear, comm);
  const RowParallelLinear row(linear, comm);
  const ChannelParallelConv2d channels(conv, comm);
  EXPECT_TRUE(at::equal(at::rand({1}), expected));
  EXPECT_FALSE(column->weight.requires_grad() || row->weight.requires_grad());
  EXPECT_TRUE(column->bias.requires_grad() && channels->conv->weight.requires_grad());
  EXPECT_EQ(channels->conv->weight.scalar_type(), at::kDouble);
  const std::pair<Tensor, Tensor> wholes[] = {{join_parts(column->weight, 0, comm), linear->weight},
                                              {join_parts(row->weight, 1, comm), linear->weight},
                                              {row->bias, linear->bias},
                                              {join_parts(channels->conv->weight, 0, comm), conv->weight}};
  for (const auto& [joined, own] : wholes) {
    const Tensor of_first = own.detach().clone();
    comm.broadcast(of_first, 0);
    EXPECT_TRUE(at::equal(joined, of_first));
  }
}
TEST(TensorParallel, TheFirstRanksLayerCounts) { expect_ranks_pass("other_wholes", 2); }

// Data parallelism over the ranks of one group would add up the gradients of different parts.
RANK_PROGRAM(wrapped_parts) {
  const auto world = join_world(context);
  ColumnParallelLinear layer(torch::nn::Linear(4, 4), world->communicator());
  DistributedDataParallel ddp(layer.ptr(), world);
}
TEST(TensorParallel, PartsAreNotFoldedWithEachOther) {
  expect_ranks_pass("wrapped_parts", 1);
  for (const auto& result : Ranks("wrapped_parts", 2).wait()) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.output, HasSubstr("part 1 of 2 where rank 0 has parameter weight [2, 4] float, part 0 of 2"));
  }
}

// Data parallelism over ranks that hold the same parts, in mixed precision: a rank knows its own part's norm and
// overflow alone. argument: what is asked for.
RANK_PROGRAM(mixed_parts) {
  const auto world = join_world(context);
  const auto alone =
      std::make_shared<World>(world, std::shared_ptr<comm::Communicator>(world->communicator().split(context.rank)));
  ColumnParallelLinear layer(torch::nn::Linear(4, 4), world->communicator());
  const auto sgd = optim::make_optimizer("sgd", layer->parameters(), {{"lr", 0.1}});
  const bool narrow = context.argument == "fp16";
  amp::MixedPrecision mixed({layer.ptr().get()}, {*sgd}, {.dtype = narrow ? at::kHalf : at::kBFloat16});
  DistributedDataParallel ddp(layer.ptr(), alone);
  const auto result = ddp.run(
      {.number = 0, .samples = 2, .lanes = {{0, 2}}},
      [&](size_t) {
        return layer->forward(at::ones({2, 4})).to(at::kFloat).square().mean();
      },
      mixed);
  mixed.step(*sgd, result, {.max_norm = context.argument == "clip" ? 1.0 : 0.0});
}
TEST(TensorParallel, PartsHaveNoVerdictOfTheirOwn) {
  expect_ranks_pass("mixed_parts", 2, "bf16");
  for (const char* asked : {"fp16", "clip"}) {
    for (const auto& result : Ranks("mixed_parts", 2, asked).wait()) {
      EXPECT_NE(result.exit_code, 0);
      EXPECT_THAT(result.output, HasSubstr("knows its own part's norm and overflow alone")) << asked;
    }
  }
}

// A body that both ranks have, a head for boxes on one and for classes on the other.
RANK_PROGRAM(branches) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  at::manual_seed(4);
  torch::nn::Linear body(8, 6), boxes(6, 4), classes(6, 3), own_body(8, 6), own_boxes(6, 4), own_classes(6, 3);
  const std::pair<torch::nn::Linear, torch::nn::Linear> copies[] = {
      {own_body, body}, {own_boxes, boxes}, {own_classes, classes}};
  for (auto [to, from] : copies) {
    const at::NoGradGuard no_grad;
    to->weight.copy_(from->weight);
    to->bias.copy_(from->bias);
  }
  const auto box_loss = [](torch::nn::Linear head, const Tensor& features) {
    return (head->forward(features) - 1).square().mean();
  };
  const auto class_loss = [](torch::nn::Linear head, const Tensor& features) {
    return at::cross_entropy_loss(head->forward(features), at::arange(5).remainder(3));
  };
  const Tensor x = at::rand({5, 8});
  const Tensor features = at::relu(body->forward(x));
  const Tensor whole = box_loss(boxes, features) + class_loss(classes, features);
  whole.backward();
  const Tensor shared = enter(at::relu(own_body->forward(x)), comm);
  const Tensor loss = leave(context.rank == 0 ? box_loss(own_boxes, shared) : class_loss(own_classes, shared), comm);
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), whole.item<double>(), 1e-5);
  EXPECT_TRUE(at::allclose(own_body->weight.grad(), body->weight.grad(), 1e-5, 1e-6));
  const auto& [own_head, head] = copies[context.rank + 1];
  EXPECT_TRUE(at::allclose(own_head->weight.grad(), head->weight.grad(), 1e-5, 1e-6));
}
TEST(TensorParallel, BranchesOnDifferentRanksEqualTheWholeNetwork) { expect_ranks_pass("branches", 2); }

// Each function beside its inverse, along every dimension.
RANK_PROGRAM(regions) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  at::manual_seed(6);
  const Tensor x = at::rand({4, 8, 4}).requires_grad_(), weight = at::rand({4, 8, 4});
  for (const int64_t dim : {0, 1, 2, -1}) {
    const Tensor part = take_part(x, dim, comm);
    EXPECT_EQ(part.size(dim), x.size(dim) / context.size);
    const Tensor whole = join_parts(part, dim, comm);
    EXPECT_TRUE(at::equal(whole, x));
    x.mutable_grad().reset();
    (whole * weight).sum().backward();
    EXPECT_TRUE(at::equal(x.grad(), weight)) << dim;
  }
  EXPECT_TRUE(at::equal(leave(x.detach(), comm), x * context.size));
}
TEST(TensorParallel, PartsJoinToTheWhole) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("regions", ranks);
}

RANK_PROGRAM(undividable) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  EXPECT_THAT(refusal([&] { ColumnParallelLinear(torch::nn::Linear(4, 5), comm); }),
              HasSubstr("a Linear layer's outputs of 5 can't be divided among 2 ranks"));
  EXPECT_THAT(refusal([&] { RowParallelLinear(torch::nn::Linear(5, 4), comm); }),
              HasSubstr("a Linear layer's inputs of 5"));
  EXPECT_THAT(
      refusal([&] { ChannelParallelConv2d(torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 6, 3).groups(3)), comm); }),
      HasSubstr("a convolution's 3 groups can't be divided among 2 ranks"));
  EXPECT_THAT(refusal([&] { take_part(at::ones({2, 3}), 1, comm); }), HasSubstr("dimension 1 of a tensor [2, 3]"));
}
TEST(TensorParallel, WhatCanNotBeDividedIsNamed) { expect_ranks_pass("undividable", 2); }

}  // namespace
}  // namespace lockstep::parallel::tensor
