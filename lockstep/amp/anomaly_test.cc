#include "lockstep/amp/anomaly.h"

#include <ATen/ATen.h>
#include <ATen/ThreadLocalState.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <limits>
#include <thread>

#include "lockstep/amp/autocast.h"

namespace lockstep::amp {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const Policy kHalf = {.level = OptLevel::kO1, .dtype = at::kHalf};

// Two convolutions with BatchNorm and ReLU, then a linear layer.
struct Net : torch::nn::Module {
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Linear fc{nullptr};

  Net() {
    conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3).padding(1)));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(4));
    conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 4, 3).padding(1)));
    fc = register_module("fc", torch::nn::Linear(4, 2));
  }
  at::Tensor forward(const at::Tensor& x) { return fc(conv2(torch::relu(bn1(conv1(x)))).mean({2, 3})); }
};

at::Tensor images() { return at::rand({2, 3, 8, 8}); }

void set(at::Tensor parameter, double value) {
  const at::NoGradGuard no_grad;
  parameter.fill_(value);
}

std::string found_in(Net& net, const at::Tensor& x, const Policy& policy = {}) {
  const AnomalyWatch watch(net);
  const AutocastScope scope(policy);
  net.forward(x).sum();
  return watch.found().value_or("nothing");
}

TEST(AnomalyWatch, AFinitePassHasNone) {
  Net net;
  EXPECT_EQ(found_in(net, images()), "nothing");
  EXPECT_EQ(found_in(net, images(), kHalf), "nothing");
}

TEST(AnomalyWatch, NamesTheLayerThatOverflows) {
  Net net;
  set(net.conv2->bias, 3e38);
  set(net.conv2->weight, 3e38);
  EXPECT_EQ(found_in(net, images()), "conv2 (aten::conv2d)");
  set(net.conv2->weight, 6e4);  // is finite in fp16, its sums are not
  set(net.conv2->bias, 0);
  EXPECT_EQ(found_in(net, images(), kHalf), "conv2 (aten::conv2d)");
}

TEST(AnomalyWatch, KnowsALayerByItsCastWeight) {
  Net net;
  set(net.conv2->weight, 0);
  set(net.conv2->bias, 10);
  set(net.fc->weight, 6e4);
  const CastCacheScope step;  // the second pass uses the first one's casts
  {
    const AutocastScope scope(kHalf);
    net.forward(images());
  }
  EXPECT_EQ(found_in(net, images(), kHalf), "fc (aten::addmm)");
}

TEST(AnomalyWatch, AnOperatorWithoutParametersIsNamedAfterTheLayerBefore) {
  Net net;
  const AnomalyWatch watch(net);
  at::log(at::zeros_like(net.forward(images())));
  EXPECT_EQ(watch.found(), "aten::log after fc");
}

TEST(AnomalyWatch, TheDataAndTheWeightsMayBeToBlame) {
  Net net;
  at::Tensor x = images();
  x[0][0][0][0] = kNan;
  EXPECT_EQ(found_in(net, x), "the input");
  set(net.conv2->weight, kNan);
  EXPECT_EQ(found_in(net, images()), "conv2.weight itself");
}

TEST(AnomalyWatch, StatisticsThatOverflowedAreOnlyAnEvaluationsBusiness) {
  Net net;
  set(net.bn1->running_var, std::numeric_limits<double>::infinity());
  {
    const AnomalyWatch watch(net);
    net.bn1->running_var.mul_(0.9).add_(1, 0.1);
    EXPECT_EQ(watch.found(), std::nullopt);
  }
  net.eval();
  set(net.bn1->running_var, kNan);
  EXPECT_EQ(found_in(net, images()), "bn1.running_var itself");
}

TEST(AnomalyWatch, BackwardIsWatchedToo) {
  Net net;
  {
    const AnomalyWatch watch(net);
    const at::Tensor y = net.forward(images());
    at::sqrt(y.sum() * 0).backward();  // finite, its derivative is not
    EXPECT_THAT(watch.found().value_or(""), HasSubstr("backward: SqrtBackward0"));
  }
  set(net.conv2->weight, 3e38);
  set(net.conv2->bias, 0);
  const AnomalyWatch watch(net);
  at::Tensor y = net.conv2(net.bn1(net.conv1(images())) * 1e-38);
  y.backward(at::full_like(y, 3));
  EXPECT_EQ(watch.found(), "backward of conv2 (ConvolutionBackward0)");
}

// As autograd's threads for GPUs have it: they take over the state of the thread that called backward().
TEST(AnomalyWatch, BackwardMayRunOnAnotherThread) {
  Net net;
  const AnomalyWatch watch(net);
  const at::Tensor y = at::sqrt(net.forward(images()).sum() * 0);
  const auto on_another_thread = [](const auto& act) {
    std::thread([&, state = at::ThreadLocalState()] {
      const at::ThreadLocalStateGuard guard(state);
      act();
    }).join();
  };
  std::thread([&] { at::log(at::zeros({2})); }).join();  // which nobody watches
  EXPECT_EQ(watch.found(), std::nullopt);
  on_another_thread([&] { y.backward(); });
  EXPECT_THAT(watch.found().value_or(""), HasSubstr("backward: SqrtBackward0"));
  on_another_thread([&] { EXPECT_NE(AnomalyWatch(net).found(), std::nullopt) << "it is the same search"; });
}

TEST(AnomalyWatch, NestsAndLeavesNothingBehind) {
  Net net;
  {
    const AnomalyWatch watch(net);
    EXPECT_EQ(found_in(net, images().div_(0)), "aten::div_");  // by a watch within
    EXPECT_EQ(watch.found(), "aten::div_");
  }
  EXPECT_FALSE(at::hasThreadLocalCallbacks());
  at::log(at::zeros({2}));
  EXPECT_EQ(found_in(net, images()), "nothing");
}

}  // namespace
}  // namespace lockstep::amp
