#include "lockstep/train/options/eval_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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

TEST(EvalCommand, TellsTheRunsDataFromThoseThatTheLineNames) {
  const lockstep::testing_support::TempDir dir;
  std::filesystem::create_directories(dir / "run/checkpoints");
  std::filesystem::create_directories(dir / "own");
  std::filesystem::create_directories(dir / "other");
  std::ofstream(dir / "run/checkpoints/step-000001.pt") << "x";
  std::ofstream(dir / "run/config.toml") << "recipe = \"spiral\"\ndata = \"" << (dir / "own") << "\"\nskip-bad = 3\n";
  EvalCommand own("my_program", testing_support::recipes());
  own.read({dir / "run"});
  EXPECT_EQ(own.options().data, "");
  EXPECT_EQ(own.options().run_data, dir / "own");
  EXPECT_EQ(own.options().data_path(), dir / "own");
  EXPECT_EQ(own.options().run_skip_bad, 3);
  EXPECT_EQ(own.options().skip_bad, std::nullopt);
  EXPECT_THAT(own.arguments(), ::testing::Not(::testing::Contains("--data"))) << "ranks know it from the folder, too";
  EvalCommand other("my_program", testing_support::recipes());
  other.read({dir / "run", "--data", dir / "other"});
  EXPECT_EQ(other.options().data_path(), dir / "other");
  EXPECT_EQ(other.options().run_data, dir / "own");
}

TEST(EvalCommand, NeedsAFile) {
  EvalCommand command("my_program", testing_support::recipes());
  EXPECT_THAT(lockstep::testing_support::refusal([&] { command.read({"spiral"}); }), HasSubstr("--load"));
}

}  // namespace
}  // namespace lockstep::train
