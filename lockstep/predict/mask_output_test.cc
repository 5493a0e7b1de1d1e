#include "lockstep/predict/mask_output.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/datasets/write_png.h"

namespace lockstep::predict {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

class MaskOutputTest : public ::testing::Test {
 protected:
  MaskOutputTest() {
    image::Pixels pixels;
    pixels.reshape({2, 2}, 1);
    for (int y = 0; y < 2; ++y) *pixels.at(0, y) = *pixels.at(1, y) = 100;
    datasets::write_png(image_, pixels);
  }

  testing_support::TempDir dir_;
  std::string image_ = dir_ / "a.png", folder_ = dir_ / "masks";
};

TEST_F(MaskOutputTest, WritesTheMaskAndTheOverlay) {
  const MaskOutput output(folder_, {"a"}, /*turned=*/true);
  at::Tensor scores = at::zeros({3, 2, 2});
  scores[2][0][0] = 1;
  EXPECT_EQ(output.add(0, image_, scores), image_ + ": " + folder_ + "/a_mask.png, class 1 0.0 %, class 2 25.0 %\n");
  EXPECT_TRUE(fs::exists(folder_ + "/a_mask.png"));
  EXPECT_TRUE(fs::exists(folder_ + "/a_overlay.png"));
  EXPECT_NO_THROW(MaskOutput(folder_, Names{"a"}, true)) << "its own from before";
}

TEST_F(MaskOutputTest, OfOneClassHasAShareToo) {
  const MaskOutput output(folder_, {"a"}, true);
  const at::Tensor scores = at::tensor({1.0f, 1.0f, -1.0f, 1.0f}).view({1, 2, 2});
  EXPECT_THAT(output.add(0, image_, scores), HasSubstr("a_mask.png, class 1 75.0 %"));
}

TEST_F(MaskOutputTest, ScoresThatAreNoNumbersAreAnError) {
  const MaskOutput output(folder_, {"a"}, true);
  EXPECT_THROW(output.add(0, image_, at::full({2, 2, 2}, std::numeric_limits<float>::quiet_NaN())), DataError);
  EXPECT_FALSE(fs::exists(folder_ + "/a_mask.png"));
}

TEST_F(MaskOutputTest, MasksThatPeopleHaveDrawnStay) {
  fs::create_directory(folder_);
  std::ofstream(folder_ + "/a_mask.png") << "by hand";
  EXPECT_THAT(refusal([&] { MaskOutput(folder_, Names{"b", "a"}, true); }), HasSubstr("a_mask.png is there already"));
}

}  // namespace
}  // namespace lockstep::predict
