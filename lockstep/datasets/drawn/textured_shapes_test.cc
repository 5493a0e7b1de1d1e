#include "lockstep/datasets/drawn/textured_shapes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::datasets {
namespace {

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

at::Tensor draw(uint64_t seed, uint32_t split, uint64_t index, int side = 32) {
  at::Tensor image = at::empty({3, side, side});
  draw_textured_shape(seed, split, index, side, {image.mutable_data_ptr<float>(), static_cast<size_t>(image.numel())});
  return image;
}

TEST(TexturedShapes, AreAFunctionOfSeedSplitAndIndex) {
  const at::Tensor image = draw(1, 0, 5);
  EXPECT_TRUE(at::equal(image, draw(1, 0, 5)));
  EXPECT_FALSE(at::equal(image, draw(2, 0, 5)));
  EXPECT_FALSE(at::equal(image, draw(1, 1, 5)));
  EXPECT_FALSE(at::equal(image, draw(1, 0, 15)));
  const data::Splits splits = textured_shapes({.seed = 1, .side = 32});
  EXPECT_TRUE(at::equal(data::read_batch(*splits.train, std::vector<int64_t>{3, 5}, 7).data()[1], image));
}

TEST(TexturedShapes, HoldEveryClassEquallyOften) {
  const auto test = textured_shapes({.side = 16}).test;
  const at::Tensor counts = at::bincount(data::read_batch(*test, numbers(test->size())).target());
  EXPECT_TRUE(at::equal(counts, at::full({kTexturedClasses}, test->size() / kTexturedClasses, at::kLong)));
}

// Two images of a class share neither place nor colours: the nearest mean image tells little.
TEST(TexturedShapes, ClassesAreNotTheirMeanImages) {
  const auto data = textured_shapes({.side = 16, .train_size = 2000}).train;
  const data::Batch batch = data::read_batch(*data, numbers(2000));
  const at::Tensor images = batch.data().flatten(1), known = images.slice(0, 0, 1500), asked = images.slice(0, 1500);
  std::vector<at::Tensor> means;
  for (int64_t label = 0; label < kTexturedClasses; ++label) {
    means.push_back(known.index_select(0, batch.target().slice(0, 0, 1500).eq(label).nonzero().squeeze(1)).mean(0));
  }
  const at::Tensor guess = at::cdist(asked, at::stack(means)).argmin(1);
  EXPECT_LT(guess.eq(batch.target().slice(0, 1500)).sum().item<int64_t>(), 150);
}

TEST(TexturedShapes, RefuseWhatCantBeDrawn) {
  EXPECT_THROW(textured_shapes({.side = 15}), ConfigError);
  EXPECT_THROW(textured_shapes({.train_size = 0}), ConfigError);
  EXPECT_EQ(textured_shapes().train->description(),
            "textured shapes drawn on the spot (seed 0), train, 5120 images of 64×64");
}

}  // namespace
}  // namespace lockstep::datasets
