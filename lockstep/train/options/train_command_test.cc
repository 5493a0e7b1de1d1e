// The line of a program with recipes of its own; the whole line of lockstep train: recipes/options.
#include "lockstep/train/options/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/train/options/testing/recipes.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

TEST(TrainCommand, WritesTheLineThatItReads) {
  TrainCommand command("my_program", testing_support::recipes());
  EXPECT_EQ(command.read({"spiral", "--turns", "4", "--nproc", "2", "--lr=0.5"}, 4), std::nullopt);
  EXPECT_EQ(command.options().recipe, "spiral");
  EXPECT_EQ(command.options().parallel.nproc, 2);
  std::vector<std::string> arguments = command.arguments();
  ASSERT_EQ(arguments.at(0), "train");
  arguments.erase(arguments.begin());
  TrainCommand again("my_program", testing_support::recipes());
  EXPECT_EQ(again.read(arguments, 4), std::nullopt);
  EXPECT_EQ(again.arguments(), command.arguments());
  EXPECT_EQ(dynamic_cast<const testing_support::Spiral&>(*again.recipe()).turns, 4);
}

TEST(TrainCommand, HelpNamesTheProgramAndTheRecipesOptions) {
  TrainCommand command("my_program", testing_support::recipes());
  const std::string help = command.read({"spiral", "--help"}, 4).value_or("");
  EXPECT_THAT(help, HasSubstr("my_program train"));
  EXPECT_THAT(help, HasSubstr("--turns N"));
}

}  // namespace
}  // namespace lockstep::train
