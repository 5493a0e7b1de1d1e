#include "lockstep/datasets/drawn/synthetic_digits.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <array>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::datasets {
namespace {

std::vector<int64_t> numbers(int64_t first, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

at::Tensor draw(uint64_t seed, uint32_t split, uint64_t index) {
  at::Tensor image = at::empty({28, 28});
  draw_digit(seed, split, index, std::span<float, 784>(image.mutable_data_ptr<float>(), 784));
  return image;
}

TEST(SyntheticDigits, HasTheSizeOfMnist) {
  const data::Splits splits = synthetic_digits();
  EXPECT_EQ(splits.train->size(), 60000);
  EXPECT_EQ(splits.test->size(), 10000);
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.train->description(), "digits drawn on the spot (seed 0), train, 60000 images of 28×28");
  EXPECT_THROW(synthetic_digits({.train_size = 0}), ConfigError);
}

TEST(SyntheticDigits, IsAFunctionOfSeedSplitAndIndex) {
  const at::Tensor image = draw(1, 0, 5);
  EXPECT_TRUE(at::equal(image, draw(1, 0, 5)));
  EXPECT_FALSE(at::equal(image, draw(2, 0, 5)));
  EXPECT_FALSE(at::equal(image, draw(1, 1, 5)));
  EXPECT_FALSE(at::equal(image, draw(1, 0, 6)));
  const data::Splits splits = synthetic_digits({.seed = 1});
  EXPECT_TRUE(at::equal(data::read_batch(*splits.train, numbers(3, 4), 7).data()[2][0], image));
}

TEST(SyntheticDigits, DrawsAllDigitsAboutEquallyOften) {
  const at::Tensor counts = at::bincount(data::read_batch(*synthetic_digits().train, numbers(0, 5000)).target());
  ASSERT_EQ(counts.size(0), 10);
  EXPECT_GT(counts.min().item<int64_t>(), 400);
  EXPECT_LT(counts.max().item<int64_t>(), 600);
}

TEST(SyntheticDigits, AreInkOnAnEmptyGround) {
  const at::Tensor data = data::read_batch(*synthetic_digits().train, numbers(0, 500)).data().view({500, 784});
  EXPECT_GT(std::get<0>(data.max(1)).min().item<float>(), .3f);
  EXPECT_LT(data.mean(1).max().item<float>(), .5f);
  EXPECT_GT(data.mean(1).min().item<float>(), .01f);
}

// What is worth training on: a linear model learns much of it, but not all.
TEST(SyntheticDigits, LeaveALinearModelWanting) {
  const data::Splits splits = synthetic_digits();
  torch::manual_seed(0);
  torch::nn::Linear net(784, 10);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(.05).momentum(.9));
  for (int64_t step = 0; step < 400; ++step) {
    const data::Batch batch = data::read_batch(*splits.train, numbers(step * 128, 128));
    const auto loss = torch::nn::functional::cross_entropy(net(batch.data().flatten(1)), batch.target());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  const data::Batch test = data::read_batch(*splits.test, numbers(0, 3000));
  const auto right = (net(test.data().flatten(1)).argmax(1) == test.target()).sum().item<int64_t>();
  EXPECT_GT(right, 3000 * .70);
  EXPECT_LT(right, 3000 * .90);
}

}  // namespace
}  // namespace lockstep::datasets
