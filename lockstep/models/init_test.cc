#include "lockstep/models/init.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::models {
namespace {

double deviation(const at::Tensor& x) { return x.std().item().toDouble(); }

TEST(Fans, CountTheKernel) {
  const Fans fans = fans_of(at::empty({20, 3, 5, 5}));
  EXPECT_EQ(fans.in, 75);
  EXPECT_EQ(fans.out, 500);
  EXPECT_EQ(fans_of(at::empty({10, 980})).in, 980);
  EXPECT_THROW(fans_of(at::empty({20})), BugError);
}

TEST(Init, KaimingNormalHasItsDeviation) {
  const at::Tensor weight = at::empty({100, 20, 5, 5});
  kaiming_normal_(weight, init_stream(1, 0));
  EXPECT_NEAR(deviation(weight), std::sqrt(2.0 / 500), 0.001);
  EXPECT_NEAR(weight.mean().item().toDouble(), 0, 0.001);
}

TEST(Init, KaimingNormalTakesEitherFan) {
  const at::Tensor weight = at::empty({100, 20, 5, 5});
  kaiming_normal_(weight, init_stream(1, 0), Fan::kOut);
  EXPECT_NEAR(deviation(weight), std::sqrt(2.0 / 2500), 0.001);
  normal_(weight, 0.01, init_stream(1, 0));
  EXPECT_NEAR(deviation(weight), 0.01, 0.0001);
  EXPECT_DOUBLE_EQ(default_bound(weight), 1 / std::sqrt(500.0));
}

TEST(Init, XavierUniformFillsItsRange) {
  const at::Tensor weight = at::empty({100, 500});
  xavier_uniform_(weight, init_stream(1, 0));
  const double limit = std::sqrt(6.0 / 600);
  EXPECT_LE(weight.abs().max().item().toDouble(), limit);
  EXPECT_NEAR(weight.max().item().toDouble(), limit, limit / 1000);
  EXPECT_NEAR(weight.min().item().toDouble(), -limit, limit / 1000);
  EXPECT_NEAR(deviation(weight), limit / std::sqrt(3.0), limit / 100);
}

struct Layers : torch::nn::Module {
  Layers() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(20, 100, 5).groups(2)));
    norm = register_module("norm", torch::nn::BatchNorm2d(100));
    linear = register_module("linear", torch::nn::Linear(400, 300));
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear linear{nullptr};
};

TEST(Init, DrawsAsTorchDoes) {
  Layers net, other;
  draw_as_torch(net, 3);
  draw_as_torch(other, 3);
  const auto limit = [](const at::Tensor& x) { return x.abs().max().item<double>(); };
  EXPECT_NEAR(limit(net.conv->weight), 1 / std::sqrt(250.0), 1e-4);
  EXPECT_NEAR(limit(net.conv->bias), 1 / std::sqrt(250.0), 5e-3);
  EXPECT_NEAR(limit(net.linear->weight), 1 / std::sqrt(400.0), 1e-4);
  EXPECT_NEAR(limit(net.linear->bias), 1 / std::sqrt(400.0), 5e-3);
  EXPECT_TRUE(at::equal(net.norm->weight, at::ones({100})));
  EXPECT_TRUE(at::equal(net.norm->bias, at::zeros({100})));
  EXPECT_TRUE(at::equal(net.linear->bias, other.linear->bias));
}

TEST(Init, IsAPureFunctionOfSeedAndParameter) {
  const auto draw = [](uint64_t seed, uint64_t parameter) {
    const at::Tensor weight = at::empty({8, 3, 3, 3});
    kaiming_normal_(weight, init_stream(seed, parameter));
    return weight;
  };
  EXPECT_TRUE(at::equal(draw(1, 0), draw(1, 0)));
  EXPECT_FALSE(at::equal(draw(1, 0), draw(2, 0)));
  EXPECT_FALSE(at::equal(draw(1, 0), draw(1, 1)));
}

TEST(Init, DoesNotFollowStrides) {
  const at::Tensor plain = at::empty({8, 3, 3, 3}).requires_grad_();
  const at::Tensor last = at::empty({8, 3, 3, 3}, at::MemoryFormat::ChannelsLast).to(at::kDouble);
  kaiming_normal_(plain, init_stream(1, 0));
  kaiming_normal_(last, init_stream(1, 0));
  EXPECT_TRUE(at::equal(plain.to(at::kDouble), last));
}

}  // namespace
}  // namespace lockstep::models
