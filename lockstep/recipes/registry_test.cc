#include "lockstep/recipes/registry.h"

#include <gtest/gtest.h>

#include "lockstep/recipes/options/recipe_options.h"

namespace lockstep::recipes {
namespace {

// The front describes what the worker trains.
TEST(Registry, IsWhatTheDescriptionsSay) {
  const auto recipes = make_recipes();
  const auto descriptions = describe_recipes();
  ASSERT_EQ(recipes.size(), descriptions.size());
  for (size_t i = 0; i < recipes.size(); ++i) {
    EXPECT_EQ(recipes[i]->name(), descriptions[i]->name());
    EXPECT_EQ(train::preset_names(*recipes[i]), train::preset_names(*descriptions[i]));
    EXPECT_EQ(recipes[i]->spellings().size(), descriptions[i]->spellings().size());
    config::OptionSet made, described;
    recipes[i]->declare(made);
    descriptions[i]->declare(described);
    EXPECT_EQ(made.record(), described.record());
    EXPECT_GT(recipes[i]->defaults().batch_size, 0);
  }
}

TEST(Registry, OptionsReachTheRecipe) {
  for (const auto& recipe : make_recipes()) {
    config::OptionSet options;
    recipe->declare(options);
    if (options.find("size") == nullptr) continue;
    const config::GivenOption size{"size", "32"};
    options.apply({&size, 1});
    EXPECT_EQ(recipe->open_data({.seed = 1}).train->sample_shape(), std::vector<int64_t>({3, 32, 32}))
        << recipe->name();
  }
}

}  // namespace
}  // namespace lockstep::recipes
