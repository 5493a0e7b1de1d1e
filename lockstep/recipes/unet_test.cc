#include "lockstep/recipes/unet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/models/resampling.h"

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

TEST(UNetRecipe, ANetworkOfMoreThanFourChannelsTakesNoFiles) {
  EXPECT_THROW(kUNet.input_opener({.channels = 5}), ConfigError);
}

TEST(UNetRecipe, JoinsDataModelAndLoss) {
  const auto data = kUNet.open_data({.seed = 1});
  const auto model = kUNet.make_model(1, *data.train);
  const auto batch = data::read_batch(*data.train, std::vector<int64_t>{0, 1});
  const at::Tensor output = model.forward(batch);
  EXPECT_EQ(output.sizes(), at::IntArrayRef({2, 4, 32, 32}));
  EXPECT_GT(kUNet.loss(output, batch).item<double>(), 0.5);
}

TEST(UNetRecipe, AtHalfSizeItHasAllPixelsScoresOfTheSameWeights) {
  UNetOptions options;
  options.size = 32;
  options.width = 4;
  const UNet whole(options);
  options.half_size = true;
  const UNet half(options);
  const auto data = half.open_data({.seed = 1});
  const auto batch = data::read_batch(*data.train, std::vector<int64_t>{0, 1});
  const auto model = half.make_model(1, *data.train);
  const at::Tensor output = model.forward(batch);
  EXPECT_EQ(output.sizes(), at::IntArrayRef({2, 4, 32, 32}));
  const auto names = whole.make_model(1, *data.train).module->named_parameters().keys();
  EXPECT_EQ(model.module->named_parameters().keys(), names);
  // Of an image of even squares the network sees the squares.
  const at::Tensor squares = at::rand({1, 3, 16, 16}),
                   doubled = squares.repeat_interleave(2, 2).repeat_interleave(2, 3);
  const auto fresh = half.make_model(1, *data.train), other = whole.make_model(1, *data.train);
  fresh.module->eval();
  other.module->eval();
  const at::Tensor scores = fresh.forward(data::Batch::of(doubled)), few = other.forward(data::Batch::of(squares));
  EXPECT_TRUE(at::allclose(scores, models::upsample_twice(few, models::Aligned::kEdges), 1e-4, 1e-5));
}

// The mean over all eight ways in which a square can lie does not depend on how it lies; training sees it as it is.
TEST(UNetRecipe, OverEightViewsItMattersNotHowAnImageLies) {
  for (const int classes : {1, 2}) {
    UNetOptions options;
    options.size = 32;
    options.width = 4;
    options.classes = classes;
    const at::Tensor images = at::rand({4, 3, 32, 32});
    const auto data = std::make_shared<data::TensorDataset>(images, at::arange(2, at::kLong).repeat({4, 32, 16}),
                                                            data::TensorDatasetOptions{});
    const auto plain = UNet(options).make_model(1, *data);
    options.views = 8;
    const auto model = UNet(options).make_model(1, *data);
    EXPECT_TRUE(model.forward(data::Batch::of(images)).equal(plain.forward(data::Batch::of(images)))) << "in training";
    model.module->eval();
    plain.module->eval();
    const auto probabilities = [&](const train::Model& of, const at::Tensor& seen) {
      const at::Tensor scores = of.forward(data::Batch::of(seen));
      return classes == 1 ? scores.sigmoid() : scores.softmax(1);
    };
    const at::Tensor mean = probabilities(model, images);
    EXPECT_FALSE(at::allclose(mean, probabilities(plain, images), 1e-3, 1e-3));
    EXPECT_TRUE(at::allclose(probabilities(model, images.flip(3)), mean.flip(3), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(probabilities(model, images.flip(2)), mean.flip(2), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(probabilities(model, images.transpose(2, 3)), mean.transpose(2, 3), 1e-4, 1e-5));
    // Two views are an image and its mirror's.
    options.views = 2;
    const auto twice = UNet(options).make_model(1, *data);
    twice.forward(data::Batch::of(images));  // the same statistics
    twice.module->eval();
    const at::Tensor both = (probabilities(plain, images) + probabilities(plain, images.flip(3)).flip(3)) / 2;
    EXPECT_TRUE(at::allclose(probabilities(twice, images), both, 1e-4, 1e-5));
  }
}

// Cross entropy and Dice loss add up by --dice-weight.
TEST(UNetRecipe, DiceHasAWeight) {
  const at::Tensor target = some_masks().target(), output = at::rand({3, 4, target.size(1), target.size(2)});
  const auto loss = [&](double weight) {
    UNetOptions options;
    options.dice_weight = weight;
    return UNet(options).loss(output, with(target)).item<double>();
  };
  const double entropy = loss(0), both = loss(1);
  EXPECT_GT(both, entropy);
  EXPECT_NEAR(loss(0.25), entropy + 0.25 * (both - entropy), 1e-6);
  EXPECT_NEAR(both, kUNet.loss(output, with(target)).item<double>(), 0);
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

// Values of the dice_score.py and train.py of Pytorch-UNet, under PyTorch 2.11 in fp32.
TEST(UNetRecipe, MilesialsLossAndScoreAreTheirs) {
  struct Case {
    int64_t images, outputs;
    double loss, score;
  };
  for (const Case& its :
       {Case{3, 3, 1.8247535228729248, 0.19230793416500092}, Case{1, 2, 1.3192410469055176, 6.666666507726404e-08},
        Case{3, 1, 1.3629941940307617, 0.3571428954601288}}) {
    UNetOptions options;
    options.dice = Dice::kMilesial;
    const UNet unet(options);
    const int64_t numbers = its.images * its.outputs * 30, classes = std::max<int64_t>(2, its.outputs);
    const at::Tensor output = (at::arange(numbers) * 37 % 101).to(at::kFloat) / 25 - 2;
    at::Tensor target = (at::arange(its.images * 30) * 7 % 11 % classes).reshape({its.images, 6, 5});
    if (its.images == 3) target[2].zero_();
    const at::Tensor scores = output.reshape({its.images, its.outputs, 6, 5});
    EXPECT_NEAR(unet.loss(scores, with(target)).item<double>(), its.loss, 1e-6) << its.outputs;
    const auto metrics = unet.metrics(unet.measure(scores, with(target)), its.images);
    EXPECT_NEAR(metrics["dice"].get<double>(), its.score, 1e-6) << its.outputs;
  }
}

TEST(UNetRecipe, OneOutputIsASigmoidOfTwoClasses) {
  at::Tensor mask = at::zeros({1, 2, 4}, at::kLong), found = at::full({1, 1, 2, 4}, -100.);
  mask[0][0].fill_(1);
  found[0][0][0].slice(0, 2).fill_(100);  // two of four
  const auto metrics = kUNet.metrics(kUNet.measure(found, with(mask)), 1);
  EXPECT_EQ(metrics["dice_per_class"].get<std::vector<double>>(), std::vector<double>{2. * 2 / (2 + 4)});
  EXPECT_EQ(metrics["dice"].get<double>(), 2. * 2 / (2 + 4));
  const at::Tensor sure = mask.unsqueeze(1).to(at::kFloat) * 200 - 100;
  EXPECT_NEAR(kUNet.loss(sure, with(mask)).item<double>(), 0, 1e-6);
}

TEST(UNetRecipe, ClassesAreTheMasksOrMoreOrOneForTwo) {
  const auto outputs = [](int classes) {
    UNetOptions options;
    options.size = 32;
    options.width = 1;
    options.classes = classes;
    const UNet unet(options);
    const auto data = unet.open_data({.seed = 1});  // of four classes
    return unet.make_model(1, *data.train).forward(data::read_batch(*data.train, std::vector<int64_t>{0})).size(1);
  };
  EXPECT_EQ(outputs(4), 4);
  EXPECT_EQ(outputs(6), 6);
  EXPECT_THROW(outputs(3), ConfigError);
  EXPECT_THROW(outputs(1), ConfigError) << "of four classes";
}

TEST(UNetRecipe, DataThatAreNoImagesAreRefused) {
  EXPECT_THROW(kUNet.open_data({.path = "/no/such/folder"}), DataError);
}

}  // namespace
}  // namespace lockstep::recipes
