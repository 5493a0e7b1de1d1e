#include "lockstep/image/crops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "lockstep/base/draw.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;

Geometry plan(const std::shared_ptr<const Transform>& transform, Size image, uint64_t number = 0) {
  return *transform->plan(whole(image), Draw{1, 0, number}.stream(16));
}

TEST(RandomResizedCrop, AreasAndRatiosAreTorchvisions) {
  double area = 0, ratio = 0, left = 0;
  const int n = 20000;
  for (uint64_t i = 0; i < n; ++i) {
    const Geometry g = plan(random_resized_crop({224, 224}), {1000, 1000}, i);
    EXPECT_EQ(g.result(), (Size{224, 224}));
    const Rect& rect = g.source;
    ASSERT_TRUE(rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= 1000 && rect.y + rect.height <= 1000);
    area += rect.width * rect.height * 1e-6;
    ratio += std::log(static_cast<double>(rect.width) / rect.height);
    if (rect.width < 1000) left += static_cast<double>(rect.x) / (1000 - rect.width) / n;
  }
  // Less than the mean of 0.08 and 1: of large areas many have a side that is too long, and are drawn again.
  EXPECT_NEAR(area / n, 0.478, 0.006);
  EXPECT_NEAR(ratio / n, 0, 0.01);
  EXPECT_NEAR(left, 0.5, 0.02);
}

TEST(RandomResizedCrop, FallsBackToTheMiddle) {
  // No area of 0.9 and more fits a ratio of 3/4 to 4/3 here.
  const auto crop = random_resized_crop({10, 10}, {.scale_low = 0.9});
  EXPECT_EQ(plan(crop, {400, 100}).source, (Rect{133, 0, 133, 100}));
  EXPECT_EQ(plan(crop, {100, 400}).source, (Rect{0, 133, 100, 133}));
  EXPECT_EQ(plan(crop, {1, 1000}).source.size(), (Size{1, 1}));
}

TEST(RandomResizedCrop, HasTheRecordedRectangles) {
  uint64_t hash = kFnvSeed;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Rect rect = plan(random_resized_crop({224, 224}), {500, 375}, i).source;
    for (const int value : {rect.x, rect.y, rect.width, rect.height}) hash = fnv1a(hash, static_cast<uint64_t>(value));
  }
  EXPECT_EQ(hash, 14646932656468993688u);
}

TEST(RandomResizedCrop, OptionsAreRanges) {
  EXPECT_THROW(random_resized_crop({0, 5}), ConfigError);
  EXPECT_THROW(random_resized_crop({5, 5}, {.scale_low = 0.5, .scale_high = 0.4}), ConfigError);
  EXPECT_EQ(random_resized_crop({224, 224})->text(), "RandomResizedCrop 224");
  EXPECT_EQ(random_resized_crop({96, 64}, {.scale_low = 0.5})->text(), "RandomResizedCrop 96 x 64 (0.5 to 1)");
}

TEST(Resize, TheLongerSideIsCutOff) {
  EXPECT_EQ(plan(resize_shorter(256), {500, 375}).result(), (Size{341, 256}));
  EXPECT_EQ(plan(resize_shorter(256), {375, 500}).result(), (Size{256, 341}));
  EXPECT_EQ(plan(resize_shorter(256), {256, 256}).result(), (Size{256, 256}));
  EXPECT_EQ(plan(resize_to({7, 9}), {375, 500}).result(), (Size{7, 9}));
}

TEST(Resize, ASideThatIsTooLongIsRefused) {
  EXPECT_EQ(plan(resize_shorter(256), {1, 65536}).result(), (Size{256, 1 << 24}));
  EXPECT_THROW(plan(resize_shorter(256), {1, 65537}), DataError);
  EXPECT_THROW(plan(resize_shorter(256), {10000000, 1}), DataError);  // 2^31 and more
  EXPECT_THROW(resize_to({5, (1 << 24) + 1}), ConfigError);
  EXPECT_THROW(random_crop({5, 5}, (1 << 24) + 1), ConfigError);
}

TEST(CenterCrop, RoundsHalfToEvenAndFillsSmallImages) {
  EXPECT_EQ(plan(center_crop({224, 224}), {341, 256}).window, (Rect{58, 16, 224, 224}));  // 58.5
  EXPECT_EQ(plan(center_crop({224, 224}), {343, 227}).window, (Rect{60, 2, 224, 224}));   // 59.5, 1.5
  EXPECT_EQ(plan(center_crop({10, 10}), {7, 12}).window, (Rect{-1, 1, 10, 10}));
  const Geometry evaluation = *center_crop({224, 224})->plan(plan(resize_shorter(256), {500, 375}), Draw{}.stream(17));
  EXPECT_EQ(evaluation.resized, (Size{341, 256}));
  EXPECT_EQ(evaluation.result(), (Size{224, 224}));
}

TEST(RandomCrop, IsAnywhereInThePaddedImage) {
  std::set<int> columns, rows;
  for (uint64_t i = 0; i < 500; ++i) {
    const Rect window = plan(random_crop({32, 32}, 4), {32, 32}, i).window;
    columns.insert(window.x);
    rows.insert(window.y);
  }
  EXPECT_EQ(columns.size(), 9u);
  EXPECT_EQ(*columns.begin(), -4);
  EXPECT_EQ(*rows.rbegin(), 4);
  for (uint64_t i = 0; i < 100; ++i) {
    const Rect window = plan(random_crop({32, 8}), {20, 10}, i).window;  // too narrow: 12 more on each side
    ASSERT_TRUE(window.x >= -12 && window.x + 32 <= 32 && window.y >= 0 && window.y <= 2);
  }
}

// A plan and its way through pixels are the same.
TEST(Crops, ApplyIsThePlan) {
  Scratch scratch;
  for (const auto& transform :
       {random_resized_crop({20, 24}), resize_shorter(30), center_crop({50, 20}), random_crop({30, 30}, 3)}) {
    Sample sample{picture({47, 39}), picture({47, 39}, 1)};
    const Geometry g = *transform->plan(whole({47, 39}), Draw{1, 2, 3}.stream(16));
    Resizer resizer;
    Pixels image, mask;
    resizer.resize(sample.image, {0, 0, 47, 39}, g, Filter::kBilinear, image);
    resizer.resize(sample.mask, {0, 0, 47, 39}, g, Filter::kNearest, mask);
    transform->apply(sample, Draw{1, 2, 3}.stream(16), scratch);
    EXPECT_EQ(difference(sample.image, image), 0) << transform->text();
    EXPECT_EQ(difference(sample.mask, mask), 0) << transform->text();
  }
}

}  // namespace
}  // namespace lockstep::image
