#include "lockstep/parallel/pipeline/stage_plan.h"

#include <ATen/ops/relu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three layers: a convolution over many pixels, whose few weights are used for each of them, and two matrices.
class NetImpl : public torch::nn::Module {
 public:
  NetImpl() : torch::nn::Module("Net") {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)));
    wide = register_module("wide", torch::nn::Linear(8 * 16 * 16, 4));
    last = register_module("last", torch::nn::Linear(4, 2));
  }
  std::vector<nn::Layer> layers() {
    return {nn::layer_of(conv, [](auto& own, const at::Tensor& x) { return own->forward(x); }),
            nn::layer_of(wide, [](auto& own, const at::Tensor& x) { return own->forward(x.flatten(1)); }),
            nn::layer_of(last, [](auto& own, const at::Tensor& x) { return own->forward(x); })};
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear wide{nullptr}, last{nullptr};
};

class StagePlanTest : public ::testing::Test {
 protected:
  StagePlan plan(int stages) { return plan_stages(*net_, layers_, {1, 16, 16}, stages); }

  std::shared_ptr<NetImpl> net_ = std::make_shared<NetImpl>();
  std::vector<nn::Layer> layers_ = net_->layers();
};

TEST_F(StagePlanTest, CutsByTheWorkOfTheLayers) {
  const StagePlan two = plan(2);
  EXPECT_THAT(two.first, ElementsAre(0, 1));
  EXPECT_EQ(two.text(), "layers 1, 2-3");
  EXPECT_EQ(two.stage(*net_, 1).named_parameters().keys(),
            (std::vector<std::string>{"wide.weight", "wide.bias", "last.weight", "last.bias"}));
  EXPECT_THAT(stages_of(two, net_->parameters()), ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_TRUE(net_->is_training()) << "as it was";
}

TEST_F(StagePlanTest, RefusesWhatHasNoSuchStages) {
  const auto refused = [](const auto& act) { return ::lockstep::testing_support::refusal<ConfigError>(act); };
  EXPECT_THAT(refused([&] { plan(4); }), HasSubstr("4 stages, and the network has 3 layers"));
  const StagePlan two = plan(2);
  EXPECT_THAT(refused([&] { stages_of(two, {at::zeros({2})}); }), HasSubstr("is in none of the network's layers"));
  layers_[2].modules.push_back(net_->conv.ptr());
  EXPECT_THAT(refused([&] { stages_of(plan(2), net_->parameters()); }), HasSubstr("share a weight of shape"));
}

}  // namespace
}  // namespace lockstep::parallel
