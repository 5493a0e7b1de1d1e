#include "lockstep/apps/commands/data_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <typename Options>
std::string refused(const std::vector<std::string>& words) {
  return testing_support::refusal([&] { Command<Options>().read(words); });
}

TEST(DataCommands, AreReadAndWrittenAsTheSameWords) {
  const testing_support::TempDir dir;
  Command<PackCommand> pack;
  EXPECT_EQ(pack.read({"--size", "256", dir.path(), "out", "--shuffle=off", "--skip-bad", "3"}), std::nullopt);
  EXPECT_EQ(pack.options().pack.data, dir.path());
  EXPECT_EQ(pack.options().pack.out, "out");
  EXPECT_EQ(pack.options().pack.skip_bad, 3);
  EXPECT_THAT(pack.arguments(), ElementsAre("pack", dir.path(), "out", "--size=256", "--shuffle=off", "--skip-bad=3"));
  Command<DataCommand> data;
  EXPECT_EQ(data.read({dir.path(), "--sheet", "a.png", "--augment", "strong", "--json"}), std::nullopt);
  EXPECT_EQ(data.options().survey.sheet, "a.png");
  EXPECT_THAT(data.arguments(), ElementsAre("data", dir.path(), "--sheet=a.png", "--augment=strong", "--json"));
}

TEST(DataCommands, DrawingIsReadAndWrittenAsTheSameWords) {
  Command<DrawCommand> draw;
  EXPECT_EQ(draw.read({"masks", "cells", "--samples", "30", "--seed=4"}), std::nullopt);
  EXPECT_EQ(draw.options().draw.kind, datasets::DrawnKind::kMasks);
  EXPECT_EQ(draw.options().draw.out, "cells");
  EXPECT_THAT(draw.arguments(), ElementsAre("draw", "masks", "cells", "--samples=30", "--seed=4"));
  EXPECT_EQ(refused<DrawCommand>({"cells", "there"}), "lockstep draw cells: expected shapes or masks");
  EXPECT_THAT(refused<DrawCommand>({"masks"}), StartsWith("lockstep draw: expected two words"));
}

TEST(DataCommands, HaveHelp) {
  EXPECT_THAT(Command<PackCommand>().read({"--help"}).value(), HasSubstr("--skip-bad N"));
  EXPECT_THAT(Command<DataCommand>().read({"--help"}).value(), HasSubstr("--sheet FILE.png"));
}

TEST(DataCommands, BadLines) {
  const testing_support::TempDir dir;
  EXPECT_THAT(refused<PackCommand>({dir.path()}), StartsWith("lockstep pack: expected two words, DIR and OUT"));
  EXPECT_THAT(refused<PackCommand>({dir / "none", "out"}), HasSubstr("none"));
  EXPECT_THAT(refused<PackCommand>({dir.path(), "out", "--quality", "80"}),
              HasSubstr("all images are kept as they are"));
  EXPECT_THAT(refused<PackCommand>({dir.path(), "out", "--codec", "webp"}), StartsWith("--codec webp: expected "));
  EXPECT_THAT(refused<DataCommand>({}), StartsWith("data: DIR is missing"));
  EXPECT_THAT(refused<DataCommand>({dir.path(), "--verify", "--quick"}), HasSubstr("leave --quick out"));
}

}  // namespace
}  // namespace lockstep::apps
