#include "lockstep/datasets/warped_images.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/grey_images.h"

namespace lockstep::datasets {
namespace {

// An image of 9×9 pixels whose middle is white.
std::shared_ptr<const data::Dataset> dot() {
  std::vector<uint8_t> pixels(81, 0);
  pixels[40] = 255;
  return make_dataset(
      {.pixels = std::move(pixels), .labels = {7}, .rows = 9, .columns = 9, .classes = 10, .name = "dot"});
}

at::Tensor read(const data::Dataset& images, const Draw& draw) {
  const at::Tensor pixels = at::full({1, 9, 9}, -1.f), target = at::zeros({}, at::kLong);
  data::ReadStats stats;
  images.read(0, draw, std::vector{pixels, target}, stats);
  EXPECT_EQ(target.item<int64_t>(), 7);
  return pixels;
}

TEST(WarpedImages, AreMovedByTheDrawAlone) {
  const auto images = warped(dot(), {.translate_x = 0.3, .translate_y = 0.3});
  std::vector<int64_t> places;
  for (uint32_t epoch = 0; epoch < 20; ++epoch) {
    const at::Tensor pixels = read(*images, {.seed = 3, .epoch = epoch});
    EXPECT_TRUE(at::equal(pixels, read(*images, {.seed = 3, .epoch = epoch})));
    EXPECT_EQ(pixels.sum().item<float>(), 1) << "it is moved by whole pixels";
    places.push_back(pixels.argmax().item<int64_t>());
  }
  std::sort(places.begin(), places.end());
  EXPECT_GT(std::unique(places.begin(), places.end()) - places.begin(), 5);
}

TEST(WarpedImages, StayAsTheyAreWhereNothingIsToBeDoneAndForEvaluations) {
  EXPECT_TRUE(at::equal(read(*warped(dot(), {}), {}), read(*dot(), {})));
  const auto images = warped(dot(), {.degrees = 90, .shear = 30});
  EXPECT_TRUE(at::equal(read(*images->for_evaluation(), {}), read(*dot(), {})));
  EXPECT_EQ(images->fingerprint(), dot()->fingerprint());
  EXPECT_EQ(images->transforms(), "RandomAffine 90°, shear 30°");
}

}  // namespace
}  // namespace lockstep::datasets
