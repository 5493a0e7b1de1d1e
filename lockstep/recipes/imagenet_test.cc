#include "lockstep/recipes/imagenet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::recipes {
namespace {

ImagenetOptions small(Arch arch) {
  ImagenetOptions options;
  options.arch = arch;
  options.size = 32;
  return options;
}

const Imagenet kResnet(small(Arch::kResnet18)), kMobilenet(small(Arch::kMobilenetV2));

TEST(Imagenet, JoinsDataModelAndLoss) {
  for (const Imagenet* recipe : {&kResnet, &kMobilenet}) {
    const auto data = recipe->open_data({.seed = 1});
    const auto model = recipe->make_model(1, *data.train);
    const auto batch = data::read_batch(*data.train, std::vector<int64_t>{0, 1, 2, 3});
    const at::Tensor output = model.forward(batch);
    EXPECT_EQ(output.sizes(), at::IntArrayRef({4, 10}));
    EXPECT_NEAR(recipe->loss(output, batch).item<double>(), std::log(10.0), 2);
  }
}

TEST(Imagenet, WeightsAreAFunctionOfTheSeed) {
  const auto data = kResnet.open_data({.seed = 1});
  const auto weights = [&](uint64_t seed) { return kResnet.make_model(seed, *data.train).module->parameters()[0]; };
  EXPECT_TRUE(at::equal(weights(1), weights(1)));
  EXPECT_FALSE(at::equal(weights(1), weights(2)));
}

TEST(Imagenet, CountsTheFirstAndTheFirstFive) {
  // The right class is first, second, fifth and sixth of ten.
  const at::Tensor scores = at::arange(10, 0, -1).to(at::kFloat).repeat({4, 1});
  const at::Tensor target = at::tensor({0, 1, 4, 5}, at::kLong);
  const auto sums = kResnet.measure(scores, data::Batch::of({}, target));
  EXPECT_EQ(sums, (std::vector<double>{1, 3}));
  const auto metrics = kResnet.metrics(sums, 4);
  EXPECT_EQ(metrics["top1"].get<double>(), 0.25);
  EXPECT_EQ(metrics["top5"].get<double>(), 0.75);
}

TEST(Imagenet, ScoresThatAreNoNumbersAreWrong) {
  const at::Tensor scores = at::full({3, 10}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(kResnet.measure(scores, data::Batch::of({}, at::zeros({3}, at::kLong))), (std::vector<double>{0, 0}));
}

TEST(Imagenet, DataThatAreNoImagesAreRefused) {
  EXPECT_THROW(kResnet.open_data({.path = "/no/such/folder"}), DataError);
}

}  // namespace
}  // namespace lockstep::recipes
