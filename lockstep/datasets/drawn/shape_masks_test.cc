#include "lockstep/datasets/drawn/shape_masks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::datasets {
namespace {

data::Batch some(const ShapeMasksOptions& options, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return data::read_batch(*shape_masks(options).train, numbers);
}

TEST(ShapeMasks, AreAFunctionOfSeedSplitAndIndex) {
  const data::Batch one = some({.seed = 1, .side = 32}, 4), other = some({.seed = 2, .side = 32}, 4);
  const data::Batch again = data::read_batch(*shape_masks({.seed = 1, .side = 32}).train, std::vector<int64_t>{2}, 5);
  EXPECT_TRUE(at::equal(again.data()[0], one.data()[2]));
  EXPECT_TRUE(at::equal(again.target()[0], one.target()[2]));
  EXPECT_FALSE(at::equal(one.data(), other.data()));
  const data::Batch test = data::read_batch(*shape_masks({.seed = 1, .side = 32}).test, std::vector<int64_t>{2});
  EXPECT_FALSE(at::equal(test.data()[0], one.data()[2]));
}

TEST(ShapeMasks, HoldGroundAndEveryShape) {
  const data::Batch batch = some({.side = 32}, 300);
  EXPECT_EQ(batch.target().sizes(), at::IntArrayRef({300, 32, 32}));
  const at::Tensor shares =
      at::bincount(batch.target().flatten(), {}, kMaskClasses).to(at::kDouble) / batch.target().numel();
  EXPECT_GT(shares[0].item<double>(), .5);
  for (int64_t shape = 1; shape < kMaskClasses; ++shape) {
    EXPECT_GT(shares[shape].item<double>(), .04) << shape;
    EXPECT_LT(shares[shape].item<double>(), .2) << shape;
  }
}

// Pixels on the two sides of a mask's edge differ more than neighbours within one class.
TEST(ShapeMasks, AgreeWithTheImages) {
  const data::Batch batch = some({.side = 64}, 100);
  const at::Tensor step = (batch.data().slice(3, 1) - batch.data().slice(3, 0, -1)).abs().mean(1);
  const at::Tensor edge = batch.target().slice(2, 1).ne(batch.target().slice(2, 0, -1));
  const double across = step.masked_select(edge).mean().item<double>();
  const double within = step.masked_select(edge.logical_not()).mean().item<double>();
  EXPECT_GT(across, 3 * within);
}

TEST(ShapeMasks, RefuseWhatCantBeDrawn) {
  EXPECT_THROW(shape_masks({.side = 8}), ConfigError);
  EXPECT_THROW(shape_masks({.test_size = 0}), ConfigError);
}

}  // namespace
}  // namespace lockstep::datasets
