#include "lockstep/checkpoint/formats/value_view.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using testing_support::error_of;

class ValueViewTest : public testing::Test {
 protected:
  const Value root_ = Dict{{"optimizer", Dict{{"param_groups", List{Dict{{"lr", "0.1"}, {"betas", Tuple{{0.5, 1}}}}}},
                                              {"state", Dict{{0, Dict{{"step", at::ones({})}}}}}}},
                           {"flag", true},
                           {"epoch", 4.0},
                           {"none", Value()}};
  const ValueView view_{root_, "run.pt"};
};

TEST_F(ValueViewTest, ReachesEveryKindOfValue) {
  EXPECT_EQ(view_["epoch"].integer(), 4);
  EXPECT_TRUE(view_["flag"].boolean());
  const ValueView group = view_["optimizer"]["param_groups"].items().at(0);
  EXPECT_EQ(group["lr"].text(), "0.1");
  EXPECT_EQ(group["betas"].items().at(1).number(), 1.0);
  EXPECT_EQ(view_["optimizer"]["state"][0]["step"].tensor().item<float>(), 1);
}

TEST_F(ValueViewTest, SaysWhereAndWhat) {
  const ValueView group = view_["optimizer"]["param_groups"].items().at(0);
  EXPECT_EQ(error_of<DataError>([&] { group["lr"].number(); }),
            "run.pt: optimizer/param_groups/0/lr: expected a number, found a string");
  EXPECT_EQ(error_of<DataError>([&] { group["lr"].tensor(); }),
            "run.pt: optimizer/param_groups/0/lr: expected a tensor, found a string");
  EXPECT_EQ(error_of<DataError>([&] { view_["model"]; }), "run.pt: has no \"model\"");
  EXPECT_EQ(error_of<DataError>([&] { view_["flag"]["x"]; }), "run.pt: flag: expected a dict, found true or false");
  EXPECT_EQ(error_of<DataError>([&] { view_["flag"].items(); }), "run.pt: flag: expected a list, found true or false");
  EXPECT_EQ(error_of<DataError>([&] { view_["none"].text(); }), "run.pt: none: expected a string, found None");
}

TEST_F(ValueViewTest, FindsWhatMayBeAbsent) {
  EXPECT_TRUE(view_.find("flag").has_value());
  EXPECT_FALSE(view_.find("none").has_value());
  EXPECT_FALSE(view_.find("missing").has_value());
}

TEST(ValueView, TakesWholeNumbersOnlyWhereTheyAreMeant) {
  for (const double number : {0.5, 0x1p63, -0x1p64, std::nan(""), HUGE_VAL}) {
    const Value value(number);
    EXPECT_THROW(ValueView(value, "f").integer(), DataError) << number;
  }
  const Value boolean(true);  // not 1
  EXPECT_THROW(ValueView(boolean, "f").integer(), DataError);
  EXPECT_THROW(ValueView(boolean, "f").number(), DataError);
}

TEST(ValueView, KeysOfTheFileStayOnOneLine) {
  const Value value = Dict{{"a\nb", 1}};
  EXPECT_EQ(error_of<DataError>([&] { ValueView(value, "f")["a\nb"].text(); }),
            "f: a?b: expected a string, found a whole number");
}

}  // namespace
}  // namespace lockstep::checkpoint
