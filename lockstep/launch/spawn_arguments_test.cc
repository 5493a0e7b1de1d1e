#include "lockstep/launch/spawn_arguments.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

TEST(SpawnArguments, ComeBackAsTheyWere) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {""}, {"0.1", "a b\n=c", "", "12:34"}, {std::string(90'000, 'x')}}) {
    EXPECT_EQ(unpack_arguments(pack_arguments(arguments)), arguments);
  }
}

TEST(SpawnArguments, WhatCantBePassedIsRefused) {
  EXPECT_THROW(pack_arguments({std::string("a\0b", 3)}), ConfigError);
  EXPECT_THROW(pack_arguments({std::string(100'001, 'x')}), ConfigError);
}

TEST(SpawnArguments, WhatOthersWroteIsRefused) {
  for (const char* bad : {"x", "3", "3:ab", ":", "-1:", "2:ab3", "99999999999999999999:a"}) {
    EXPECT_THROW(unpack_arguments(bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace lockstep::launch
