#include "lockstep/apps/commands/checkpoint_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <typename Options>
std::string refused(const std::vector<std::string>& words) {
  return testing_support::refusal([&] { Command<Options>().read(words); });
}

TEST(CheckpointCommands, AreRead) {
  Command<VerifyOptions> verify;
  EXPECT_EQ(verify.read({"a", "--json", "b"}), std::nullopt);
  EXPECT_THAT(verify.options().paths, ElementsAre("a", "b"));
  EXPECT_TRUE(verify.options().json);
  Command<DiffOptions> diff;
  EXPECT_EQ(diff.read({"a", "b", "--most", "3"}), std::nullopt);
  EXPECT_THAT(diff.arguments(), ElementsAre("diff", "a", "b", "--most=3"));
}

TEST(CheckpointCommands, ListMoreForScripts) {
  EXPECT_EQ(DiffOptions{}.listed(), 20u);
  EXPECT_EQ(DiffOptions{.most = 5}.listed(), 5u);
  EXPECT_GT(DiffOptions{.json = true}.listed(), 1'000'000u);
}

TEST(CheckpointCommands, BadLines) {
  EXPECT_THAT(refused<VerifyOptions>({}), StartsWith("verify: RUN or FILE is missing"));
  EXPECT_THAT(refused<DiffOptions>({"a"}), StartsWith("lockstep diff: expected two words, A and B"));
  EXPECT_THAT(refused<DiffOptions>({"a", "b", "--mots", "3"}), HasSubstr("did you mean --most?"));
}

TEST(CheckpointCommands, HaveHelp) {
  EXPECT_THAT(Command<VerifyOptions>().read({"--help"}).value(), HasSubstr("--json"));
  EXPECT_THAT(Command<DiffOptions>().read({"--help"}).value(), HasSubstr("--most N"));
}

}  // namespace
}  // namespace lockstep::apps
