#include "lockstep/train/options/eval_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/train/options/testing/recipes.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

int turns_of(const EvalCommand& command) {
  return dynamic_cast<const testing_support::Spiral&>(*command.recipe()).turns;
}

TEST(EvalCommand, TakesFromTheRecordWhatTheLineDoesNotSay) {
  const lockstep::testing_support::TempDir dir;
  const std::string file = dir / "a.pt";
  std::ofstream(file) << "x";
  EvalCommand plain("my_program", testing_support::recipes());
  EXPECT_EQ(plain.read({"spiral", "--load", file}), std::nullopt);
  plain.take_recorded({{"turns", "7"}});
  EXPECT_EQ(turns_of(plain), 7);
  EvalCommand given("my_program", testing_support::recipes());
  EXPECT_EQ(given.read({"spiral", "--load", file, "--turns", "3"}), std::nullopt);
  given.take_recorded({{"turns", "7"}});
  EXPECT_EQ(turns_of(given), 3);
}

TEST(EvalCommand, NeedsAFile) {
  EvalCommand command("my_program", testing_support::recipes());
  EXPECT_THAT(lockstep::testing_support::refusal([&] { command.read({"spiral"}); }), HasSubstr("--load"));
}

}  // namespace
}  // namespace lockstep::train
