#include "lockstep/recipes/registry.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::recipes {
namespace {

TEST(Registry, FindsByName) {
  EXPECT_EQ(find_recipe("mnist")->name(), "mnist");
  EXPECT_THROW(find_recipe("mnits"), ConfigError);
}

}  // namespace
}  // namespace lockstep::recipes
