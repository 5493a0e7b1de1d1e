#include "lockstep/recipes/mnist.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::recipes {
namespace {

TEST(Mnist, JoinsDataModelLossAndMetrics) {
  const Mnist mnist;
  const auto data = mnist.open_data({.seed = 1});
  EXPECT_EQ(data.train->size(), 60000);
  EXPECT_EQ(data.test->size(), 10000);
  const auto model = mnist.make_model(1, *data.train);
  std::vector<int64_t> indices(20);
  std::iota(indices.begin(), indices.end(), 0);
  const auto batch = data::read_batch(*data.train, indices);
  const at::Tensor output = model.forward(batch);
  EXPECT_EQ(output.sizes(), at::IntArrayRef({20, 10}));
  const at::Tensor loss = mnist.loss(output, batch);
  EXPECT_NEAR(loss.item<double>(), std::log(10.0), 1.5);
  const auto sums = mnist.measure(output, batch);
  const double accuracy = output.argmax(1).eq(batch.target()).to(at::kDouble).mean().item<double>();
  EXPECT_EQ(mnist.metrics(sums, 20)["accuracy"].get<double>(), accuracy);
}

TEST(Mnist, SquaredErrorIsThatOfTheProbabilities) {
  MnistOptions options;
  options.loss = DigitLoss::kMse;
  const Mnist mnist(options);
  at::Tensor scores = at::zeros({2, 10});
  scores[0][3] = 100;  // sure, and right; the second sample's classes are all alike
  const auto batch = data::Batch::of({}, at::tensor({3, 4}, at::kLong));
  EXPECT_NEAR(mnist.loss(scores, batch).item<double>(), (0 + 0.9 * 0.9 + 9 * 0.1 * 0.1) / 2, 1e-6);
}

TEST(Mnist, TrainingDigitsAreWarpedWhereThatIsAskedForAndOthersAreNot) {
  MnistOptions options;
  options.augment = DigitAugment::kStandard;
  const auto plain = Mnist().open_data({.seed = 1}), warped = Mnist(options).open_data({.seed = 1});
  EXPECT_EQ(plain.train->transforms(), "");
  EXPECT_NE(warped.train->transforms(), "");
  EXPECT_EQ(warped.test->transforms(), "");
}

TEST(Mnist, WeightsAreAFunctionOfTheSeed) {
  const Mnist mnist;
  const auto data = mnist.open_data({.seed = 1});
  const auto weights = [&](uint64_t seed) { return mnist.make_model(seed, *data.train).module->parameters()[0]; };
  EXPECT_TRUE(at::equal(weights(1), weights(1)));
  EXPECT_FALSE(at::equal(weights(1), weights(2)));
}

}  // namespace
}  // namespace lockstep::recipes
