#include "lockstep/parallel/step_checks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <set>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

TEST(StepChecks, FingerprintsTellWeightsApart) {
  const Tensor weight = at::arange(12, at::kFloat).view({3, 4}), half = at::ones({5}, at::kBFloat16);
  const std::vector<Tensor> weights = {weight, half, at::ones({0})};
  const double before = fingerprint(weights);
  EXPECT_EQ(fingerprint(weights), before);
  EXPECT_EQ(before, std::floor(before));
  EXPECT_LT(before, 1099511627776.0);
  weight.data()[2][3] = 0;
  EXPECT_NE(fingerprint(weights), before);
  weight.data()[2][3] = 11;
  EXPECT_EQ(fingerprint(weights), before);
  half.mul_(2);
  EXPECT_NE(fingerprint(weights), before);
}

TEST(StepChecks, AnotherFingerprintIsAnError) {
  check_same_weights(7, 21, 3, "rank 1");
  EXPECT_THAT(refusal([] { check_same_weights(7, 20, 3, "step 4, rank 1"); }),
              HasSubstr("step 4, rank 1: its weights and those of other ranks differ"));
}

TEST(StepChecks, ModesAreThoseOfAllModules) {
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::Dropout(0.5));
  const double training = modes_of(*net);
  EXPECT_EQ(training, std::floor(training));
  EXPECT_LT(training, 1099511627776.0);
  net->children()[1]->eval();
  const double part = modes_of(*net);
  net->eval();
  const double none = modes_of(*net);
  EXPECT_EQ(std::set<double>({training, part, none}).size(), 3U);
  net->train();
  EXPECT_EQ(modes_of(*net), training);
}

TEST(StepChecks, LossesThatAreNoneAreNamed) {
  const Tensor weight = at::ones({3}).requires_grad_();
  check_loss(weight.sum(), "step 3, lane 2");
  check_loss(weight.sum().view({1}), "step 3, lane 2");
  const auto mistake = [](const Tensor& loss) { return refusal([&] { check_loss(loss, "step 3, lane 2"); }); };
  EXPECT_THAT(mistake({}), HasSubstr("step 3, lane 2: the loss is an undefined tensor"));
  EXPECT_THAT(mistake(weight * 2), HasSubstr("step 3, lane 2: the loss is Float [3]; it returns the mean loss"));
  EXPECT_THAT(mistake(at::ones({}, at::kLong)), HasSubstr("the loss is Long []"));
  EXPECT_THAT(mistake(weight.detach().sum()), HasSubstr("the loss has no graph"));
  EXPECT_THAT(mistake(at::ones({3}, at::kMeta).requires_grad_().sum()), HasSubstr("the loss is on meta"));
}

}  // namespace
}  // namespace lockstep::parallel
