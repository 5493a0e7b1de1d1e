#include "lockstep/recipes/unet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::recipes {
namespace {

const UNet kUNet = [] {
  UNetOptions options;
  options.size = 32;
  return UNet(options);
}();

data::Batch with(const at::Tensor& target) { return data::Batch::of({}, target); }

// Scores that are sure of these classes.
at::Tensor sure_of(const at::Tensor& target) {
  return at::one_hot(target, 4).permute({0, 3, 1, 2}).to(at::kFloat) * 100;
}

data::Batch some_masks() {
  return data::read_batch(*kUNet.open_data({.seed = 1}).train, std::vector<int64_t>{0, 1, 2});
}

TEST(UNetRecipe, ANetworkOfOtherThanOneOrThreeChannelsTakesNoFiles) {
  EXPECT_THROW(kUNet.input_opener({.channels = 2}), ConfigError);
  EXPECT_THROW(kUNet.input_opener({.channels = 4}), ConfigError);
}

TEST(UNetRecipe, JoinsDataModelAndLoss) {
  const auto data = kUNet.open_data({.seed = 1});
  const auto model = kUNet.make_model(1, *data.train);
  const auto batch = data::read_batch(*data.train, std::vector<int64_t>{0, 1});
  const at::Tensor output = model.forward(batch);
  EXPECT_EQ(output.sizes(), at::IntArrayRef({2, 4, 32, 32}));
  EXPECT_GT(kUNet.loss(output, batch).item<double>(), 0.5);
}

TEST(UNetRecipe, NoLossAndFullDiceForTheMaskItself) {
  const at::Tensor target = some_masks().target();
  EXPECT_NEAR(kUNet.loss(sure_of(target), with(target)).item<double>(), 0, 1e-6);
  const auto metrics = kUNet.metrics(kUNet.measure(sure_of(target), with(target)), 3);
  EXPECT_EQ(metrics["dice"].get<double>(), 1);
  EXPECT_EQ(metrics["dice_per_class"].get<std::vector<double>>(), std::vector<double>(4, 1));
}

// So that lanes' losses, weighted by their samples, are the global batch's.
TEST(UNetRecipe, TheLossIsAMeanOverImages) {
  const at::Tensor target = some_masks().target(), output = at::randn({3, 4, 32, 32});
  const auto loss = [&](int64_t first, int64_t last) {
    return kUNet.loss(output.slice(0, first, last), with(target.slice(0, first, last))).item<double>();
  };
  EXPECT_NEAR(loss(0, 3), (loss(0, 1) + 2 * loss(1, 3)) / 3, 1e-6);
}

TEST(UNetRecipe, DiceIsOfAllPixelsTogether) {
  at::Tensor mask = at::zeros({1, 2, 4}, at::kLong), found = at::zeros({1, 2, 4}, at::kLong);
  mask[0][0].fill_(1);               // four pixels of class 1
  found[0][0].slice(0, 2).fill_(1);  // two of them are found,
  found[0][1][0] = 1;                // and one that is none
  const auto metrics = kUNet.metrics(kUNet.measure(sure_of(found), with(mask)), 1);
  const auto dice = metrics["dice_per_class"].get<std::vector<double>>();
  EXPECT_DOUBLE_EQ(dice[0], 2. * 3 / (5 + 4));
  EXPECT_DOUBLE_EQ(dice[1], 2. * 2 / (3 + 4));
  EXPECT_DOUBLE_EQ(metrics["dice"].get<double>(), (dice[1] + 1 + 1) / 3);
}

TEST(UNetRecipe, DataThatAreNoImagesAreRefused) {
  EXPECT_THROW(kUNet.open_data({.path = "/no/such/folder"}), DataError);
}

}  // namespace
}  // namespace lockstep::recipes
