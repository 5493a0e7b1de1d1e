// How optimizers move averages: fused_optimizer_test.cc.
#include "lockstep/optim/weight_averages.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(WeightAverages, BeginAsACopyAndFollowTheLayout) {
  WeightAverages averages(0.75, 1);
  const at::Tensor weight = at::ones({2, 3, 4, 4});
  EXPECT_FALSE(averages.all()[0].defined());
  EXPECT_EQ(averages.prepare(0, weight), 1);
  EXPECT_TRUE(at::equal(averages.all()[0], weight));
  averages.all()[0].copy_(at::arange(96).view({2, 3, 4, 4}));
  const at::Tensor turned = weight.contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(averages.prepare(0, turned), 0.25);
  EXPECT_EQ(averages.all()[0].strides(), turned.strides());
  EXPECT_EQ(averages.all()[0][0][0][0][3].item<float>(), 3);
  EXPECT_EQ(averages.prepare(2, weight), 1) << "of a group that was added";
}

TEST(WeightAverages, GiveTheWeightsTheirValuesAndTheirOwnBack) {
  const Tensors weights = {at::ones({3}).requires_grad_(), at::ones({2})};
  WeightAverages averages(0.5, 2);
  averages.prepare(0, weights[0]);
  averages.all()[0].detach().fill_(7);
  averages.exchange(weights);
  EXPECT_TRUE(weights[0].eq(7).all().item<bool>());
  EXPECT_TRUE(weights[1].eq(1).all().item<bool>()) << "it has none yet";
  averages.exchange(weights);
  EXPECT_TRUE(weights[0].eq(1).all().item<bool>());
  EXPECT_TRUE(averages.all()[0].eq(7).all().item<bool>());
}

// An average of 16 bits would stay where it is: 0.001 of the way is less than half of what tells two of them apart.
TEST(WeightAverages, AreFp32OfNarrowWeights) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const Tensors weights = {at::full({5}, 1.5, type)};
    WeightAverages averages(0.999, 1);
    averages.prepare(0, weights[0]);
    const at::Tensor average = averages.all()[0];
    EXPECT_EQ(average.scalar_type(), at::kFloat);
    average.fill_(1 + 1.0 / 4096);
    averages.exchange(weights);
    EXPECT_TRUE(weights[0].eq(1).all().item<bool>()) << "rounded";
    averages.exchange(weights);
    EXPECT_TRUE(weights[0].eq(1.5).all().item<bool>());
    EXPECT_TRUE(averages.all()[0].eq(1 + 1.0 / 4096).all().item<bool>()) << "not rounded";
    averages.load("sgd", weights, {average.to(type)});
    EXPECT_EQ(averages.all()[0].scalar_type(), at::kFloat) << "older checkpoints have 16 bits";
  }
}

// Its changes to the averages would be gone with the next exchange.
TEST(WeightAverages, AreNotStepped) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  SGD optimizer({weight}, {.lr = 1});
  optimizer.keep_average(0.5);
  const auto step = [&] {
    weight.mutable_grad() = at::ones({3});
    optimizer.step();
  };
  step();
  step();
  EXPECT_FALSE(optimizer.has_exchanged_averages());
  optimizer.exchange_averages();
  EXPECT_TRUE(optimizer.has_exchanged_averages());
  EXPECT_THAT(testing_support::refusal(step),
              testing::HasSubstr("sgd: an update while the weights have the values of their averages"));
  EXPECT_THROW(optimizer.keep_average(0.9), ConfigError);
  optimizer.exchange_averages();
  step();
  EXPECT_EQ(weight[0].item<float>(), -2);
}

TEST(WeightAverages, LoadCopies) {
  const Tensors weights = {at::ones({3}), at::ones({2})};
  const at::Tensor saved = at::full({3}, 5.0);
  WeightAverages averages(0.5, 2);
  averages.load("sgd", weights, {saved, at::Tensor()});
  saved.zero_();
  EXPECT_TRUE(averages.all()[0].eq(5).all().item<bool>());
  EXPECT_EQ(averages.prepare(0, weights[0]), 0.5);
  EXPECT_EQ(averages.prepare(1, weights[1]), 1);
}

TEST(WeightAverages, SayWhatDoesNotFit) {
  EXPECT_THROW(WeightAverages(1.5, 1), ConfigError);
  EXPECT_THROW(WeightAverages(-1, 1), ConfigError);
  WeightAverages averages(0.5, 1);
  EXPECT_THROW(averages.load("sgd", {at::ones({3})}, {at::ones({2})}), ConfigError);
  EXPECT_THROW(averages.load("sgd", {at::ones({3})}, {}), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
