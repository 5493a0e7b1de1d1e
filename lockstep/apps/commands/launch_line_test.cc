#include "lockstep/apps/commands/launch_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/apps/commands/launch_options.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

LaunchLine split(const Words& words) {
  static const LaunchCommand command;
  return split_launch_line(words, command.rows().shapes());
}

TEST(LaunchLine, EndsWhereTheProgramBegins) {
  const LaunchLine line = split({"--nproc_per_node=2", "--master-addr", "a", "--standalone", "-m", "-r", "3", "-t0:1",
                                 "pkg.train", "--nnodes", "7", "-m", "--", "x"});
  EXPECT_THAT(line.options, ElementsAre("--nproc-per-node=2", "--master-addr=a", "--standalone", "--module",
                                        "--redirects=3", "--tee=0:1"));
  EXPECT_THAT(line.program, ElementsAre("pkg.train", "--nnodes", "7", "-m", "--", "x"));
  EXPECT_THAT(split({"--nproc", "2", "--", "-weird"}).program, ElementsAre("-weird"));
  EXPECT_THAT(split({"--help"}).options, ElementsAre("--help"));
  EXPECT_THAT(split({"-h"}).options, ElementsAre("--help"));
}

TEST(LaunchLine, RemembersHowTheLocalRankWasSpelled) {
  EXPECT_EQ(split({"--local-rank", "p"}).local_rank_as, "--local-rank");
  EXPECT_EQ(split({"--local_rank", "p"}).local_rank_as, "--local_rank");
  EXPECT_EQ(split({"--local_ranks_filter=0", "p"}).local_rank_as, "");
}

TEST(LaunchLine, BlanksBesideTheEqualsSignAreNamed) {
  const auto refused = [](const Words& words) { return testing_support::refusal([&] { split(words); }); };
  const char* const advice = "--nproc_per_node: there is a blank beside its \"=\"; type --nproc_per_node=4";
  EXPECT_EQ(refused({"--nproc_per_node", "=", "4", "x"}), advice);
  EXPECT_EQ(refused({"--nproc_per_node", "=4", "x"}), advice);
  EXPECT_EQ(refused({"--nproc_per_node=", "4", "x"}), advice);
  EXPECT_EQ(refused({"--nproc_per_node="}),
            "--nproc_per_node: there is a blank beside its \"=\"; type --nproc_per_node=VALUE");
}

TEST(LaunchLine, MisspeltOptionsGetTheNearestOne) {
  const auto refused = [](const Words& words) { return testing_support::refusal([&] { split(words); }); };
  EXPECT_EQ(refused({"--nporc_per_node", "2", "x"}),
            "--nporc_per_node: unknown option; did you mean --nproc-per-node?");
  EXPECT_EQ(refused({"--master_prot=2", "x"}), "--master_prot: unknown option; did you mean --master-port?");
  EXPECT_EQ(refused({"--max-restrat", "2", "x"}), "--max-restrat: unknown option; did you mean --max-restart?");
  EXPECT_THAT(refused({"--frobnicate", "x"}), HasSubstr("launch --help lists the options"));
  EXPECT_THAT(refused({"-q", "x"}), HasSubstr("-q: unknown option"));
}

}  // namespace
}  // namespace lockstep::apps
