#include "lockstep/image/mask_value.h"

#include <gtest/gtest.h>

namespace lockstep::image {
namespace {

TEST(MaskValue, IsTheLevelOfGreyAndElseAColourOfItsOwn) {
  EXPECT_EQ(mask_value(0, 0, 0), 0u);
  EXPECT_EQ(mask_value(255, 255, 255), 255u);
  EXPECT_EQ(mask_value(255, 0, 0), 0xffff0000u);
  EXPECT_EQ(mask_value(0, 0, 7), 0xff000007u) << "not the level 7";
}

TEST(MaskValue, IsWrittenAsPeopleWriteColours) {
  EXPECT_EQ(text_of_mask_value(mask_value(7, 7, 7)), "7");
  EXPECT_EQ(text_of_mask_value(mask_value(255, 128, 1)), "#ff8001");
  EXPECT_EQ(text_of_mask_value(mask_value(0, 0, 1)), "#000001");
  EXPECT_EQ(text_of_mask_value(70000), "70000") << "an integer of an npy file";
  EXPECT_EQ(text_of_mask_value(0xffffffff), "4294967295") << "white would be 255";
}

}  // namespace
}  // namespace lockstep::image
