// The line of a program with recipes of its own; the whole line of lockstep train: recipes/options.
#include "lockstep/train/options/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/train/options/testing/recipes.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

TEST(TrainCommand, WritesTheLineThatItReads) {
  TrainCommand command("my_program", testing_support::recipes());
  EXPECT_EQ(command.read({"spiral", "--turns", "4", "--nproc", "2", "--lr=0.5"}, {.cores = 4}), std::nullopt);
  EXPECT_EQ(command.options().recipe, "spiral");
  EXPECT_EQ(command.options().parallel.nproc, 2);
  std::vector<std::string> arguments = command.arguments();
  ASSERT_EQ(arguments.at(0), "train");
  arguments.erase(arguments.begin());
  TrainCommand again("my_program", testing_support::recipes());
  EXPECT_EQ(again.read(arguments, {.cores = 4}), std::nullopt);
  EXPECT_EQ(again.arguments(), command.arguments());
  EXPECT_EQ(dynamic_cast<const testing_support::Spiral&>(*again.recipe()).turns, 4);
}

TEST(TrainCommand, AFlagThatIsTurnedOffStaysOffOnAResumedRun) {
  const std::string resumed = ::testing::TempDir() + "resumed.toml", wanted = ::testing::TempDir() + "wanted.toml";
  std::ofstream(resumed) << "recipe = \"spiral\"\nnesterov = true\nmomentum = 0.9\n";
  std::ofstream(wanted) << "nesterov = false\n";
  const FindResumedConfig find_resumed = [&](const TrainOptions&) { return resumed; };
  TrainCommand front("my_program", testing_support::recipes());
  front.read({"spiral", "--resume=runs/a", "--config=" + wanted}, {.cores = 4}, find_resumed);
  EXPECT_FALSE(front.options().optimizer.nesterov);
  std::vector<std::string> arguments = front.arguments();
  arguments.erase(arguments.begin());
  TrainCommand worker("my_program", testing_support::recipes());
  worker.read(arguments, {.cores = 4}, find_resumed);
  EXPECT_FALSE(worker.options().optimizer.nesterov);
  EXPECT_EQ(worker.options().optimizer.momentum, 0.9);
}

// As the message advises that refuses it without --resume.
TEST(TrainCommand, TheFileOfAForkIsRepeatedFromItsParent) {
  const std::string parents = ::testing::TempDir() + "parent.toml", forks = ::testing::TempDir() + "fork.toml";
  std::ofstream(parents) << "recipe = \"spiral\"\nload = \"first.pt\"\n";
  std::ofstream(forks) << parent_line("d/checkpoints/step-000005.pt") << "recipe = \"spiral\"\nload = \"first.pt\"\n";
  const FindResumedConfig find_resumed = [&](const TrainOptions&) { return parents; };
  TrainCommand front("my_program", testing_support::recipes());
  front.read({"--config", forks, "--resume", "d/checkpoints/step-000005.pt", "--out", "f"}, {.cores = 4}, find_resumed);
  EXPECT_EQ(front.options().weights.load, "") << "its weights come with --resume";
  EXPECT_EQ(front.options().loaded.load, "first.pt");
  std::vector<std::string> arguments = front.arguments();
  arguments.erase(arguments.begin());
  TrainCommand worker("my_program", testing_support::recipes());
  worker.read(arguments, {.cores = 4}, find_resumed);
  EXPECT_EQ(worker.options().loaded.load, "first.pt");
  TrainCommand other("my_program", testing_support::recipes());
  EXPECT_THROW(
      other.read({"--config", parents, "--resume", "d/checkpoints/step-000005.pt"}, {.cores = 4}, find_resumed),
      ConfigError);
}

TEST(TrainCommand, OfFilesAndAShareToHoldOutTheLaterPlacesCounts) {
  const std::string file = ::testing::TempDir() + "held.toml";
  const auto read = [&](std::vector<std::string> words) {
    TrainCommand command("my_program", testing_support::recipes());
    words.insert(words.end(), {"--out", "f"});
    command.read(words, {.cores = 4}, [&](const TrainOptions&) { return file; });
    return command.options().data;
  };
  std::ofstream(file) << "recipe = \"spiral\"\nhold-out = \"7.png\"\n";
  EXPECT_EQ(read({"--config", file, "--validation", "20"}).hold_out, "");
  EXPECT_EQ(read({"--config", file}).hold_out, "7.png");
  EXPECT_THROW(read({"spiral", "--hold-out", "7.png", "--validation", "20"}), ConfigError);
  std::ofstream(file) << "recipe = \"spiral\"\nvalidation = 95\nhold-out = \"7.png\"\n";
  const data::DataOptions old = read({"--resume", "d/checkpoints/step-000005.pt"});
  EXPECT_EQ(old.hold_out, "7.png") << "older versions recorded both";
  EXPECT_FALSE(old.validation);
}

TEST(TrainCommand, AnotherFormTakesNothingOfTheEarlierOnes) {
  const std::string file = ::testing::TempDir() + "form.toml";
  std::ofstream(file) << "recipe = \"spiral\"\nlanes = 4\nparallel = \"pipeline\"\nstages = 2\nnproc = 2\n";
  const auto read = [&](std::vector<std::string> words) {
    TrainCommand command("my_program", testing_support::recipes());
    words.insert(words.end(), {"--out", "f"});
    command.read(words, {.cores = 4}, [&](const TrainOptions&) { return file; });
    return command.options().parallel;
  };
  const std::string checkpoint = "d/checkpoints/step-000005.pt";
  EXPECT_EQ(read({"--config", file, "--parallel", "ddp"}).stages, 0);
  EXPECT_EQ(read({"--config", file, "--parallel", "ddp"}).nproc, 2) << "the user's file says it";
  EXPECT_THROW(read({"--config", file, "--parallel", "dp"}), ConfigError) << "nproc = 2 is the user's";
  EXPECT_EQ(read({"--config", file, "--parallel", "dp", "--nproc", "1"}).stages, 0);
  EXPECT_EQ(read({"--resume", checkpoint, "--parallel", "dp"}).nproc, 1);
  EXPECT_EQ(read({"--resume", checkpoint, "--parallel", "ddp"}).stages, 0);
  EXPECT_EQ(read({"--resume", checkpoint}).stages, 2);
  std::ofstream(file) << "recipe = \"spiral\"\nlanes = 4\nparallel = \"dp\"\nreplicas = 2\nnproc = 1\n";
  EXPECT_EQ(read({"--resume", checkpoint, "--parallel", "pipeline"}).nproc, 2);
  EXPECT_THROW(read({"--config", file, "--parallel", "ddp", "--replicas", "2"}), ConfigError);
  std::ofstream(file) << "recipe = \"spiral\"\nlanes = 4\nreplicas = 4\nstages = 2\n";
  EXPECT_EQ(read({"--config", file, "--parallel", "dp"}).replicas, 4) << "the file says it for the form of the line";
  EXPECT_EQ(read({"--config", file, "--parallel", "pipeline", "--nproc", "4"}).stages, 2);
  EXPECT_THROW(read({"--resume", checkpoint, "--parallel", "ddp", "--stages", "2"}), ConfigError);
}

TEST(TrainCommand, TheRingIsNoChoiceAndOldFilesAreRead) {
  EXPECT_THROW(
      TrainCommand("my_program", testing_support::recipes()).read({"spiral", "--algorithm", "ring"}, {.cores = 4}),
      ConfigError);
  const auto read = [](const char* algorithm) {
    const std::string old = ::testing::TempDir() + "old.toml";
    std::ofstream(old) << "recipe = \"spiral\"\nalgorithm = \"" << algorithm << "\"\n";
    return TrainCommand("my_program", testing_support::recipes()).read({"--config", old}, {.cores = 4});
  };
  EXPECT_EQ(read("fold"), std::nullopt);
  EXPECT_THROW(read("ring"), ConfigError);
}

TEST(TrainCommand, AHalfTypeWithoutMixedPrecisionIsRefused) {
  const auto read = [](const std::vector<std::string>& args) {
    TrainCommand command("my_program", testing_support::recipes());
    command.read(args, {.cores = 4});
    return command.arguments();
  };
  EXPECT_THROW(read({"spiral", "--dtype", "fp16"}), ConfigError);
  const auto arguments = read({"spiral", "--dtype", "fp16", "--amp", "O1"});
  EXPECT_NO_THROW(read({arguments.begin() + 1, arguments.end()})) << "nor do the ranks refuse what the front has read";
}

TEST(TrainCommand, AnEmptyFileNameIsRefused) {
  TrainCommand command("my_program", testing_support::recipes());
  EXPECT_THROW(command.read({"spiral", "--config="}, {.cores = 4}), ConfigError);
}

TEST(TrainCommand, HelpNamesTheProgramAndTheRecipesOptions) {
  TrainCommand command("my_program", testing_support::recipes());
  const std::string help = command.read({"spiral", "--help"}, {.cores = 4}).value_or("");
  EXPECT_THAT(help, HasSubstr("my_program train"));
  EXPECT_THAT(help, HasSubstr("--turns N"));
}

}  // namespace
}  // namespace lockstep::train
