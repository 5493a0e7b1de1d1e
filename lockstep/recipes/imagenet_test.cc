#include "lockstep/recipes/imagenet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::recipes {
namespace {

ImagenetOptions small(Arch arch) {
  ImagenetOptions options;
  options.arch = arch;
  options.size = arch == Arch::kAlexnet ? 64 : 32;
  return options;
}

const Imagenet kResnet(small(Arch::kResnet18));

TEST(Imagenet, JoinsDataModelAndLoss) {
  for (const auto& [arch, name] : words(Arch())) {
    const Imagenet recipe(small(arch));
    const auto data = recipe.open_data({.seed = 1});
    const auto model = recipe.make_model(1, *data.train);
    const auto batch = data::read_batch(*data.train, std::vector<int64_t>{0, 1, 2, 3});
    const at::Tensor output = model.forward(batch);
    EXPECT_EQ(output.sizes(), at::IntArrayRef({4, 10})) << name;
    EXPECT_NEAR(recipe.loss(output, batch).item<double>(), std::log(10.0), 2) << name;
  }
}

TEST(Imagenet, EachArchHasItsOwnNetworkAndWeightDecay) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::map<Arch, size_t> tensors = {
      {Arch::kResnet18, 62},      {Arch::kResnet34, 110},  {Arch::kResnet50, 161},
      {Arch::kResnet101, 314},    {Arch::kResnet152, 467}, {Arch::kMobilenetV2, 158},
      {Arch::kShufflenetV2, 170}, {Arch::kAlexnet, 16},    {Arch::kIgcv3, 296}};
  const std::set<Arch> mobile = {Arch::kMobilenetV2, Arch::kShufflenetV2, Arch::kIgcv3};
  const auto data = kResnet.open_data({.seed = 1});
  for (const auto& [arch, name] : words(Arch())) {
    const Imagenet recipe(small(arch));
    EXPECT_EQ(recipe.make_model(1, *data.train).module->parameters().size(), tensors.at(arch)) << name;
    EXPECT_EQ(recipe.defaults().weight_decay, mobile.contains(arch) ? 4e-5 : 1e-4) << name;
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

TEST(Imagenet, MixesTrainingBatchesAsItIsTold) {
  EXPECT_EQ(kResnet.batch_transform(), nullptr);
  ImagenetOptions options = small(Arch::kResnet18);
  options.cutmix = 1;
  EXPECT_EQ(Imagenet(options).batch_transform()->text(), "CutMix 1");
  options.mixup = 0.2;
  EXPECT_EQ(Imagenet(options).batch_transform()->text(), "MixUp 0.2 or CutMix 1, by a coin for each lane's batch");
}

TEST(Imagenet, LossHasTheSoftTargetsOfAMixedBatch) {
  ImagenetOptions options = small(Arch::kResnet18);
  options.mixup = 1;
  options.label_smoothing = 0.1;
  const Imagenet recipe(options);
  data::Batch batch = data::Batch::of(at::rand({4, 3, 32, 32}), at::arange(4));
  recipe.batch_transform()->apply(batch, *recipe.open_data({.seed = 1}).train, {.seed = 1});
  const at::Tensor scores = at::arange(40).to(at::kFloat).sin().view({4, 10});
  EXPECT_EQ(batch.target().sizes(), at::IntArrayRef({4, 10}));
  const at::Tensor smooth = batch.target() * 0.9 + 0.01;
  const at::Tensor wanted = -(smooth * scores.log_softmax(1)).sum() / 4;
  EXPECT_TRUE(at::allclose(recipe.loss(scores, batch), wanted));
  EXPECT_FALSE(at::allclose(recipe.loss(scores, batch), kResnet.loss(scores, batch))) << "smoothing shows";
  EXPECT_THROW(recipe.measure(scores, batch), ConfigError) << "such a batch has no accuracy";
}

// CIFAR's are normalised in a way of their own, which a packed folder alone tells.
TEST(Imagenet, AnImageToPredictForIsSeenAsTheRunSawItsOwn) {
  const auto transforms = [](const std::string& fingerprint, bool drawn = false) {
    return kResnet.input_opener({.fingerprint = fingerprint, .drawn = drawn})("x.png")->transforms();
  };
  const std::string photograph = transforms("files 3 xxh3 1");
  EXPECT_EQ(photograph, "Resize 36, CenterCrop 32; Float, mean 0.485 0.456 0.406, std 0.229 0.224 0.225");
  EXPECT_EQ(transforms(""), photograph) << "weights alone";
  EXPECT_EQ(transforms("recordio 3 xxh3 1"), photograph);
  EXPECT_EQ(transforms("shapes, seed 1, part 0", true), "Resize 36, CenterCrop 32; Float, mean 0 0 0, std 1 1 1");
  EXPECT_NE(transforms("CIFAR-10 50000 xxh3 1"), transforms("CIFAR-100 50000 xxh3 1"));
  EXPECT_THROW(transforms("packed 3 xxh3 1"), ConfigError);
}

TEST(Imagenet, DataThatAreNoImagesAreRefused) {
  EXPECT_THROW(kResnet.open_data({.path = "/no/such/folder"}), DataError);
}

}  // namespace
}  // namespace lockstep::recipes
