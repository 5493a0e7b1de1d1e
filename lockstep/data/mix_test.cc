#include "lockstep/data/mix.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/data/beta.h"
#include "lockstep/data/tensor_dataset.h"

namespace lockstep::data {
namespace {

using ::lockstep::testing_support::refusal;

constexpr LaneDraw kDraw{.seed = 3, .epoch = 1, .step = 4, .lane = 2};

at::Tensor images(int64_t rows, at::ScalarType dtype = at::kFloat, bool channels_last = false) {
  const at::Tensor all = at::rand({rows, 3, 12, 10}, at::TensorOptions(at::kFloat)) * 200;
  return all.to(dtype).contiguous(channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

Batch batch_of(const at::Tensor& data) { return Batch::of(data, at::arange(data.size(0)) * 7 % 5); }

const TensorDataset& five_classes() {
  static const TensorDataset data(at::zeros({5, 3, 12, 10}), at::arange(5));
  return data;
}

Batch mixed(const MixOptions& options, const at::Tensor& data, const LaneDraw& draw = kDraw) {
  Batch batch = batch_of(data.clone());
  mix(options)->apply(batch, five_classes(), draw);
  return batch;
}

// torchvision's, of what was given to mixed(): `label.roll(1, 0).mul_(1.0 - lam).add_(label.mul(lam))`.
at::Tensor targets_of(int64_t rows, double lambda) {
  const at::Tensor label = at::one_hot(batch_of(images(rows)).target(), 5).to(at::kFloat);
  return label.roll(1, 0).mul(1 - lambda).add(label.mul(lambda));
}

// The share of row 0's own class, which is class 0. Of up to five rows no two are of one class.
double lambda_of(const Batch& batch) { return batch.target()[0][0].item<double>(); }

// torchvision.transforms.v2.MixUp: `rolled = inpt.roll(1, 0).mul(1.0 - lam); rolled.add_(inpt.mul(lam))`.
TEST(MixUp, IsTorchvisions) {
  for (const bool channels_last : {false, true}) {
    const at::Tensor before = images(5, at::kFloat, channels_last);
    const Batch batch = mixed({.mixup = 0.7}, before);
    RandomStream random = kDraw.stream(1);
    const double lambda = beta_variate(0.7, random);
    EXPECT_EQ(lambda_of(batch), static_cast<float>(lambda));
    EXPECT_TRUE(at::equal(batch.data(), before.roll(1, 0).mul(1 - lambda).add(before.mul(lambda))));
    EXPECT_EQ(batch.data().strides(), before.strides());
    EXPECT_EQ(batch.target().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(batch.target(), targets_of(5, lambda))) << batch.target();
    EXPECT_EQ(batch.tensors.size(), 2u) << "a data set's own fields are not in the way";
  }
}

TEST(MixUp, OfSixteenBitsIsRoundedOnce) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const at::Tensor before = images(4, dtype);
    const Batch batch = mixed({.mixup = 1}, before);
    RandomStream random = kDraw.stream(1);
    const auto lambda = beta_variate(1, random);
    const at::Tensor wide = before.to(at::kFloat);
    EXPECT_TRUE(at::equal(batch.data(), wide.roll(1, 0).mul(1 - lambda).add(wide.mul(lambda)).to(dtype)));
  }
}

// torchvision.transforms.v2.CutMix, whose random numbers are ours.
TEST(CutMix, IsTorchvisions) {
  std::set<double> lambdas;
  for (int step = 0; step < 50; ++step) {
    for (const auto dtype : {at::kFloat, at::kByte, at::kBFloat16}) {
      const LaneDraw draw{.seed = 1, .step = step, .lane = 0};
      const at::Tensor before = images(3, dtype, /*channels_last=*/step % 2 == 1);
      const Batch batch = mixed({.cutmix = 1}, before, draw);
      RandomStream random = draw.stream(2);
      const double lambda = beta_variate(1, random), r = 0.5 * std::sqrt(1 - lambda);
      const int64_t width = 10, height = 12, x = random.below(10), y = random.below(12);
      const auto half_width = static_cast<int64_t>(r * width), half_height = static_cast<int64_t>(r * height);
      const int64_t x1 = std::max<int64_t>(x - half_width, 0), x2 = std::min(x + half_width, width);
      const int64_t y1 = std::max<int64_t>(y - half_height, 0), y2 = std::min(y + half_height, height);
      at::Tensor wanted = before.clone();
      wanted.slice(2, y1, y2).slice(3, x1, x2).copy_(before.roll(1, 0).slice(2, y1, y2).slice(3, x1, x2));
      ASSERT_TRUE(at::equal(batch.data(), wanted)) << step;
      const double left = 1 - static_cast<double>((x2 - x1) * (y2 - y1)) / (width * height);
      ASSERT_TRUE(at::equal(batch.target(), targets_of(3, left))) << "λ is the real box's";
      lambdas.insert(left);
    }
  }
  EXPECT_GT(lambdas.size(), 20u);
  EXPECT_EQ(lambdas.count(0), 0u);
}

TEST(Mix, OfBothIsOneOfThemByACoin) {
  int cuts = 0;
  for (int step = 0; step < 200; ++step) {
    const LaneDraw draw{.seed = 2, .step = step, .lane = 1};
    const at::Tensor before = images(2);
    const Batch both = mixed({.mixup = 0.4, .cutmix = 1}, before, draw);
    const bool cut = at::equal(both.data(), mixed({.cutmix = 1}, before, draw).data());
    if (!cut) ASSERT_TRUE(at::equal(both.data(), mixed({.mixup = 0.4}, before, draw).data())) << step;
    cuts += cut ? 1 : 0;
  }
  EXPECT_NEAR(cuts, 100, 30);
  EXPECT_EQ(mix({.mixup = 0.2, .cutmix = 1})->text(), "MixUp 0.2 or CutMix 1, by a coin for each lane's batch");
  EXPECT_EQ(mix({.mixup = 0.2})->text(), "MixUp 0.2");
  EXPECT_EQ(mix({.cutmix = 0.5})->text(), "CutMix 0.5");
}

TEST(Mix, DependsOnSeedEpochStepAndLane) {
  const at::Tensor before = images(2);
  std::set<double> lambdas = {lambda_of(mixed({.mixup = 1}, before))};
  for (LaneDraw other : std::to_array<LaneDraw>({{4, 1, 4, 2}, {3, 2, 4, 2}, {3, 1, 5, 2}, {3, 1, 4, 3}})) {
    EXPECT_TRUE(lambdas.insert(lambda_of(mixed({.mixup = 1}, before, other))).second);
  }
  EXPECT_EQ(lambdas.count(lambda_of(mixed({.mixup = 1}, before))), 1u);
}

TEST(Mix, OfALaneOfOneOrNoSampleChangesNone) {
  for (const MixOptions options : {MixOptions{.mixup = 1}, MixOptions{.cutmix = 1}}) {
    const at::Tensor one = images(1), none = images(0);
    const Batch alone = mixed(options, one);
    EXPECT_TRUE(at::allclose(alone.data(), one));
    EXPECT_EQ(alone.target().sizes(), at::IntArrayRef({1, 5}));
    EXPECT_FLOAT_EQ(alone.target()[0][0].item<float>(), 1);
    const Batch empty = mixed(options, none);
    EXPECT_EQ(empty.data().sizes(), none.sizes());
    EXPECT_EQ(empty.target().sizes(), at::IntArrayRef({0, 5}));
    EXPECT_EQ(empty.target().scalar_type(), at::kFloat);
  }
}

// The loss of an ordinary loop, which knows nothing of mixing.
TEST(Mix, ChangesWhatAnOrdinaryLossSees) {
  for (const double smoothing : {0.0, 0.1}) {
    const Batch batch = mixed({.mixup = 0.8}, images(5));
    const double lambda = lambda_of(batch);
    EXPECT_GT(lambda, 0.01);
    EXPECT_LT(lambda, 0.99);
    const at::Tensor classes = batch_of(images(5)).target(), scores = at::linspace(-3, 4, 25).sin().mul(3).view({5, 5});
    const auto loss = [&](const at::Tensor& target) {
      return at::cross_entropy_loss(scores, target, {}, at::Reduction::Mean, -100, smoothing);
    };
    const at::Tensor wanted = lambda * loss(classes) + (1 - lambda) * loss(classes.roll(1, 0));
    EXPECT_TRUE(at::allclose(loss(batch.target()), wanted, 1e-5)) << smoothing;
    EXPECT_FALSE(at::allclose(loss(batch.target()), loss(classes), 1e-2)) << smoothing;
  }
}

TEST(Mix, OfTwoOfOneClassIsThatClass) {
  Batch batch = Batch::of(images(2), at::full({2}, 3, at::kLong));
  mix({.mixup = 1})->apply(batch, five_classes(), kDraw);
  EXPECT_TRUE(at::allclose(batch.target(), at::one_hot(at::full({2}, 3, at::kLong), 5).to(at::kFloat), 1e-6));
}

TEST(Mix, NamesAClassThatTheDataSetDoesNotHave) {
  for (const int64_t wrong : {-100, -1, 5}) {
    Batch batch = Batch::of(images(2), at::tensor({int64_t{0}, wrong}));
    try {
      mix({.mixup = 1})->apply(batch, five_classes(), kDraw);
      ADD_FAILURE() << wrong;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), cat("a sample that is mixed is of class ", wrong, ", and the data set has 5 classes"));
    }
  }
}

// A data set of such fields, of which nothing is read.
struct Fields final : Dataset {
  explicit Fields(std::vector<Field> given, int64_t how_many = 5) : all(std::move(given)), count(how_many) {}
  int64_t size() const override { return 1; }
  std::vector<Field> fields() const override { return all; }
  void read(int64_t, const Draw&, std::span<const at::Tensor>, ReadStats&) const override {}
  std::string fingerprint() const override { return "fields"; }
  std::string description() const override { return "fields"; }
  int64_t classes() const override { return count; }
  std::vector<Field> all;
  int64_t count;
};

TEST(Mix, RefusesWhatCantBeMixed) {
  EXPECT_THROW(mix({}), ConfigError);
  EXPECT_THROW(mix({.mixup = -0.1}), ConfigError);
  EXPECT_THROW(mix({.cutmix = std::nan("")}), ConfigError);
  EXPECT_THROW(mix({.mixup = 1e-310}), ConfigError) << "its variates are no numbers";
  const Field classes{.name = "target", .dtype = at::kLong, .shape = {}};
  const Field pixels{.name = "data", .dtype = at::kFloat, .shape = {3, 8, 8}};
  const auto refused = [](const MixOptions& options, const Fields& data) {
    EXPECT_THROW(mix(options)->check(data), ConfigError) << data.all.size();
  };
  mix({.mixup = 1})->check(Fields({pixels, classes}));
  refused({.mixup = 1}, Fields({pixels}));
  refused({.mixup = 1}, Fields({pixels, {.name = "target", .dtype = at::kLong, .shape = {8, 8}}}));
  refused({.cutmix = 1}, Fields({{.name = "data", .dtype = at::kFloat, .shape = {64}}, classes}));
  const Field stored{.name = "data", .dtype = at::kByte, .shape = {3, 8, 8}};
  refused({.mixup = 1}, Fields({stored, classes}));
  mix({.cutmix = 1})->check(Fields({stored, classes}));
  mix({.cutmix = 1})->check(Fields({pixels, classes, {.name = "lambda", .dtype = at::kFloat, .shape = {}}}));
  mix({.cutmix = 1})->check(Fields({pixels, classes, {.name = "embedding", .dtype = at::kFloat, .shape = {64}}}));
  EXPECT_THAT(
      refusal([&] {
        mix({.cutmix = 1})->check(Fields({pixels, classes, {.name = "mask", .dtype = at::kLong, .shape = {8, 8}}}));
      }),
      ::testing::StartsWith("CutMix 1: the field \"mask\" [8, 8] of these data would not be mixed with their"));
  EXPECT_EQ(refusal([&] {
              mix({.mixup = 1})->check(Fields({pixels, classes}, 0));
            }),
            "MixUp 1: mixes classes, and these data don't say how many there are (Dataset::classes())");
}

}  // namespace
}  // namespace lockstep::data
