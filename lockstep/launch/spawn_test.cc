// What is refused before any process is started; tests/spawn has the rest.
#include "lockstep/launch/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

void nothing(int /*rank*/, const SpawnArguments& /*arguments*/) {}
LOCKSTEP_SPAWNABLE(nothing);

TEST(Spawn, NeedsItsLineInMain) {
  try {
    spawn(nothing);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("main() must be within lockstep::spawn_main()"));
  }
}

}  // namespace
}  // namespace lockstep
