#include "lockstep/train/options/recipe_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/train/options/testing/recipes.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

TEST(RecipeChoice, FindsTheRecipeAndDeclaresItsOptions) {
  const RecipeChoice choice(testing_support::recipes());
  EXPECT_EQ(choice.named_in({"--steps", "3", "moons"}), "moons");
  EXPECT_EQ(choice.named_in({"--steps", "3"}), "");
  config::OptionSet rows;
  const auto recipe = choice.choose("spiral", rows);
  rows.apply(std::vector<config::GivenOption>{{"turns", "5"}});
  EXPECT_EQ(dynamic_cast<const testing_support::Spiral&>(*recipe).turns, 5);
}

TEST(RecipeChoice, RefusesAnUnknownRecipeWithTheNearest) {
  const RecipeChoice choice(testing_support::recipes());
  config::OptionSet rows;
  EXPECT_THAT(lockstep::testing_support::refusal([&] { choice.choose("spirals", rows); }),
              HasSubstr("did you mean spiral?"));
}

TEST(RecipeChoice, RefusesTheOptionsOfOtherRecipes) {
  const RecipeChoice choice(testing_support::recipes());
  config::OptionSet rows;
  choice.choose("moons", rows);
  const std::vector<config::GivenOption> given = {{"turns", "5"}};
  EXPECT_THAT(lockstep::testing_support::refusal([&] { choice.refuse_others(given, "moons", rows); }),
              HasSubstr("--turns 5: goes with spiral only"));
}

TEST(RecipeChoice, KnowsThePresets) {
  const testing_support::Spiral spiral;
  EXPECT_TRUE(preset_options(spiral, "").empty());
  EXPECT_EQ(preset_options(spiral, "wide").size(), 2u);
  EXPECT_THAT(lockstep::testing_support::refusal([&] { preset_options(spiral, "wider"); }), HasSubstr("wide"));
}

}  // namespace
}  // namespace lockstep::train
