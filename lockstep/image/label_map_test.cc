#include "lockstep/image/label_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "lockstep/base/error.h"

namespace lockstep::image {
namespace {

TEST(LabelMap, MapsValuesToTheirPlaces) {
  const LabelMap map({0, 7, 255, 0x00ff00, 0xffffff});
  const std::vector<uint32_t> values = {255, 0, 7, 0xffffff, 0x00ff00, 0};
  Pixels classes;
  map.map(values, {3, 2}, "mask", classes);
  EXPECT_EQ(classes.size(), (Size{3, 2}));
  EXPECT_EQ(classes.at(0, 0)[0], 2);
  EXPECT_EQ(classes.at(1, 0)[0], 0);
  EXPECT_EQ(classes.at(2, 0)[0], 1);
  EXPECT_EQ(classes.at(0, 1)[0], 4);
  EXPECT_EQ(classes.at(1, 1)[0], 3);
}

std::string refusal(const LabelMap& map, uint32_t value) {
  Pixels classes;
  try {
    map.map(std::vector<uint32_t>{0, 0, 0, value}, {2, 2}, "masks/3.png", classes);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(LabelMap, NamesAPixelWhoseValueIsNone) {
  EXPECT_EQ(refusal(LabelMap({0, 255}), 7),
            "masks/3.png: pixel (1, 1) has the value 7, and the classes' values are 0, 255; correct the mask");
  EXPECT_NE(refusal(LabelMap({0, 255}), 256), "");
  EXPECT_NE(refusal(LabelMap({0, 70000}), 69999), "");
  EXPECT_EQ(refusal(LabelMap({0, 70000}), 70000), "");
}

TEST(LabelMap, ValuesAscendAndAreAFew) {
  EXPECT_THROW(LabelMap({}), DataError);
  EXPECT_THROW(LabelMap({0, 0}), DataError);
  EXPECT_THROW(LabelMap({5, 1}), DataError);
  std::vector<uint32_t> values(256);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_EQ(LabelMap(values).values().size(), 256u);
  values.push_back(256);
  EXPECT_THROW(LabelMap{values}, DataError);
}

}  // namespace
}  // namespace lockstep::image
