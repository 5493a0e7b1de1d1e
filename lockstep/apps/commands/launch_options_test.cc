#include "lockstep/apps/commands/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

LaunchOptions read(const Words& words, const Environment& environment = {}) {
  LaunchCommand command;
  const auto help = command.read(words, [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
  EXPECT_EQ(help, std::nullopt);
  return command.options();
}

std::string refused(const Words& words, const Environment& environment = {}) {
  return testing_support::refusal([&] { read(words, environment); });
}

TEST(LaunchOptions, AreTorchruns) {
  const LaunchOptions options = read({"--nnodes=2:2",
                                      "--nproc-per-node=auto",
                                      "--rdzv_backend=c10d",
                                      "--rdzv-endpoint",
                                      "a:1",
                                      "--rdzv_id",
                                      "j",
                                      "--rdzv_conf=timeout=3",
                                      "--max_restarts=3",
                                      "--monitor-interval",
                                      "5",
                                      "--start_method=fork",
                                      "--role",
                                      "r",
                                      "--log_dir",
                                      "logs",
                                      "-r",
                                      "3",
                                      "-t",
                                      "1",
                                      "--local_ranks_filter=0",
                                      "--node_rank=1",
                                      "--master_addr",
                                      "a",
                                      "--master_port=2",
                                      "--local_addr=b",
                                      "--logs-specs",
                                      "x",
                                      "--event_log_handler",
                                      "null",
                                      "--signals-to-handle=SIGTERM",
                                      "--virtual_local_rank",
                                      "--duplicate_stdout_filters=a",
                                      "--duplicate-stderr-filters",
                                      "b",
                                      "-m",
                                      "pkg.train",
                                      "-m",
                                      "x"});
  EXPECT_EQ(options.style, LaunchStyle::kTorchrun);
  EXPECT_EQ(options.nnodes, "2:2");
  EXPECT_EQ(options.nproc_per_node, "auto");
  EXPECT_EQ(options.rdzv_backend, "c10d");
  EXPECT_EQ(options.max_restarts, 3);
  EXPECT_EQ(options.node_rank, 1);
  EXPECT_EQ(options.master_port, 2);
  EXPECT_EQ(options.redirects, "3");
  EXPECT_TRUE(options.module);
  EXPECT_TRUE(options.virtual_local_rank);
  EXPECT_THAT(options.program, ElementsAre("pkg.train", "-m", "x"));
}

TEST(LaunchOptions, ArePaddles) {
  const LaunchOptions options =
      read({"--devices=0,1", "--ips", "a,b", "--start_port=6070", "--job_id", "j", "--rank=1", "--max_restart=2",
            "--log_dir", "log", "--nproc_per_node", "2", "--nnodes", "2", "train.py", "--devices", "x"});
  EXPECT_EQ(options.style, LaunchStyle::kPaddle);
  EXPECT_EQ(options.devices, "0,1");
  EXPECT_EQ(options.paddle_rank, 1);
  EXPECT_EQ(options.max_restarts, 2);
  EXPECT_THAT(options.program, ElementsAre("train.py", "--devices", "x"));
  EXPECT_EQ(read({"--selected_gpus=0,1", "--started_port", "6070", "p"}).selected_gpus, "0,1");
  EXPECT_EQ(read({"--log_dir", "d", "p"}).style, LaunchStyle::kTorchrun) << "both have it";
}

TEST(LaunchOptions, OfBothAreRefused) {
  EXPECT_EQ(refused({"--devices", "0", "--node_rank", "1", "p"}),
            "--devices is Paddle's and --node-rank is torchrun's; give those of one: --node-rank is --rank there");
  EXPECT_THAT(refused({"--tee", "3", "--gpus", "0", "p"}), HasSubstr("leave --tee out"));
}

TEST(LaunchOptions, VariablesAreDefaults) {
  const Environment pet = {{"PET_NNODES", "2"},
                           {"PET_NODE_RANK", "1"},
                           {"PET_STANDALONE", "0"},
                           {"PET_MODULE", "1"},
                           {"PET_NUMA_BINDING", "x"}};
  const LaunchOptions options = read({"p"}, pet);
  EXPECT_EQ(options.nnodes, "2");
  EXPECT_EQ(options.node_rank, 1);
  EXPECT_FALSE(options.standalone);
  EXPECT_TRUE(options.module);
  EXPECT_EQ(options.numa_binding, "") << "torchrun has no such variable";
  EXPECT_EQ(read({"--nnodes", "3", "p"}, pet).nnodes, "3");
  EXPECT_EQ(read({"--nproc", "3", "p"}, {{"PET_NPROC_PER_NODE", "7"}}).nproc_per_node, "");
  EXPECT_EQ(read({"--devices", "0", "p"}, pet).nnodes, "1") << "Paddle does not know them";
  EXPECT_THAT(refused({"p"}, {{"PET_STANDALONE", "false"}}), HasSubstr("PET_STANDALONE=false: expected 0 or 1"));
  EXPECT_EQ(refused({"p"}, {{"PET_NODE_RANK", "x"}}),
            "environment variable PET_NODE_RANK=x: --node-rank x: expected a whole number from 0 to 65536; set it so, "
            "or unset it");
}

// As with torchrun and Paddle, whose lines are put together by scripts.
TEST(LaunchOptions, OfAFlagThatIsGivenTwiceTheLastCounts) {
  EXPECT_EQ(read({"--nproc_per_node=2", "--nproc-per-node", "3", "p"}).nproc_per_node, "3");
  EXPECT_TRUE(read({"--standalone", "--standalone", "p"}).standalone);
  EXPECT_EQ(read({"--devices", "0,1", "--devices=2", "p"}).devices, "2");
}

TEST(LaunchOptions, StandaloneGoesBeforeVariablesOfAnotherMeetingPlace) {
  const Environment pet = {{"PET_RDZV_BACKEND", "etcd"}, {"PET_RDZV_ENDPOINT", "a:2379"}, {"PET_NNODES", "1"}};
  const LaunchOptions options = read({"--standalone", "p"}, pet);
  EXPECT_EQ(options.rdzv_backend, "static");
  EXPECT_EQ(options.rdzv_endpoint, "");
  EXPECT_EQ(read({"p"}, pet).rdzv_backend, "etcd");
}

TEST(LaunchOptions, BadLines) {
  EXPECT_THAT(refused({}), HasSubstr("launch: PROGRAM is missing"));
  EXPECT_THAT(refused({"--nproc", "2"}), HasSubstr("launch: PROGRAM is missing"));
  EXPECT_THAT(refused({"--start-method", "sponge", "p"}),
              HasSubstr("--start-method sponge: expected spawn, fork or forkserver"));
  EXPECT_THAT(refused({"--master-port", "70000", "p"}),
              HasSubstr("--master-port 70000: expected a whole number from 0 to 65535"));
  EXPECT_THAT(refused({"--role"}), HasSubstr("--role: expected a value"));
}

TEST(LaunchOptions, HelpNamesThem) {
  const auto help = LaunchCommand().read({"--nproc", "2", "--help"}, [](const char*) { return std::nullopt; });
  ASSERT_TRUE(help);
  EXPECT_THAT(*help, HasSubstr("--log-dir DIR"));
  EXPECT_THAT(*help, HasSubstr("--numa-binding node|socket|exclusive|core-complex"));
}

}  // namespace
}  // namespace lockstep::apps
