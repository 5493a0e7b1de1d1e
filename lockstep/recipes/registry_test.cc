#include "lockstep/recipes/registry.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::recipes {
namespace {

TEST(Registry, FindsByName) {
  for (const char* name : {"mnist", "imagenet", "unet"}) EXPECT_EQ(find_recipe(name)->name(), name);
  EXPECT_THROW(find_recipe("mnits"), ConfigError);
}

TEST(Registry, PassesOnWhatIsChosen) {
  const auto recipe = find_recipe("imagenet", {.arch = config::Arch::kMobilenetV2, .size = 32});
  EXPECT_EQ(recipe->arch(), "mobilenet_v2");
  EXPECT_EQ(recipe->open_data("", 1).train->sample_shape(), std::vector<int64_t>({3, 32, 32}));
  EXPECT_EQ(find_recipe("imagenet")->arch(), "resnet18");
  EXPECT_EQ(find_recipe("mnist")->arch(), "");
}

}  // namespace
}  // namespace lockstep::recipes
