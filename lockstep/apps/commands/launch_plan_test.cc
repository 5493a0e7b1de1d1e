#include "lockstep/apps/commands/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apps {
namespace {

using launch::LogLayout;
using launch::NodeHandshake;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

LaunchPlan plan(
    const Words& words, CountGpus gpus = [] { return 0; }, const Environment& environment = {}) {
  const auto lookup = [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  LaunchCommand command;
  command.read(words, lookup);
  return plan_launch(command.options(),
                     {.cores = 6, .gpus = gpus, .variables = lookup, .is_own = [](const std::string& host) {
                        return host == "10.0.0.2";
                      }});
}

int four() { return 4; }
int none() { return 0; }

std::string refused(const Words& words, CountGpus gpus = none, const Environment& environment = {}) {
  return testing_support::refusal([&] { plan(words, gpus, environment); });
}

TEST(LaunchPlan, Programs) {
  EXPECT_THAT(plan({"./a.out", "x"}).command, ElementsAre("./a.out", "x"));
  EXPECT_THAT(plan({"train.py", "x"}).command, ElementsAre("python3", "train.py", "x"));
  EXPECT_THAT(plan({"-m", "pkg", "x"}).command, ElementsAre("python3", "-m", "pkg", "x"));
  EXPECT_THAT(plan({"--run-path", "script", "x"}).command, ElementsAre("python3", "script", "x"));
  EXPECT_THAT(plan({"--no-python", "train.py"}).command, ElementsAre("train.py"));
  EXPECT_THAT(plan({"train.py"}, none, {{"PYTHON_EXEC", "/opt/python"}}).command,
              ElementsAre("/opt/python", "train.py"));
  EXPECT_THAT(refused({"-m", "--no-python", "p"}), HasSubstr("--module and --no-python"));
}

TEST(LaunchPlan, NumaBindingGivesCpusByTheGpusOfLocalRanks) {
  const auto cpus = [](const Words& words, std::vector<int> (*gpu_nodes)()) {
    LaunchCommand command;
    const auto lookup = [](const char*) -> std::optional<std::string> { return std::nullopt; };
    command.read(words, lookup);
    LaunchMachine machine{.cores = 8, .gpus = none, .variables = lookup};
    machine.gpu_nodes = gpu_nodes;
    machine.topology = [] { return Topology::synthetic("package:2 [numa] core:2 pu:1"); };
    return plan_launch(command.options(), machine).layout.cpus;
  };
  using Nodes = std::vector<int>;
  const Words node = {"--numa-binding", "node", "--nproc-per-node", "2", "p"};
  EXPECT_THAT(cpus({"--nproc-per-node", "2", "p"}, [] { return Nodes{1, 0}; }), IsEmpty());
  EXPECT_THAT(cpus(node, [] { return Nodes{1, 0, 0}; }), ElementsAre(ElementsAre(2, 3), ElementsAre(0, 1)));
  EXPECT_THAT(cpus(node, [] { return Nodes{}; }), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(cpus({"--numa-binding=exclusive", "--nproc-per-node", "2", "p"},
                   [] {
                     return Nodes{1, 1};
                   }),
              ElementsAre(ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(testing_support::refusal([&] { cpus(node, [] { return Nodes{0}; }); }),
              HasSubstr("--numa-binding node: 2 processes, and 1 GPU is visible; type --nproc-per-node 1 or fewer"));
}

TEST(LaunchPlan, AVirtualLocalRankNeedsAGpuEach) {
  const Words words = {"--nproc-per-node", "3", "--virtual-local-rank", "p"};
  EXPECT_THAT(refused(words, four, {{"CUDA_VISIBLE_DEVICES", "4,5"}}),
              HasSubstr("--virtual-local-rank: 3 processes need a GPU each, and CUDA_VISIBLE_DEVICES=4,5 lists 2"));
  EXPECT_EQ(plan(words, four, {{"CUDA_VISIBLE_DEVICES", "4,5,6"}}).nproc, 3);
  EXPECT_EQ(plan(words, four).nproc, 3);
}

TEST(LaunchPlan, FlagsWithoutEffect) {
  EXPECT_THAT(plan({"p"}).without_effect, IsEmpty());
  EXPECT_THAT(plan({"--start_method", "fork", "--monitor-interval=2", "p"}).without_effect,
              ElementsAre("--monitor-interval 2", "--start-method fork"));
  EXPECT_THAT(plan({"--run_mode", "collective", "--log_level", "INFO", "--elastic_level=1", "p"}).without_effect,
              ElementsAre("--run-mode collective", "--log-level INFO", "--elastic-level 1"));
}

TEST(LaunchPlan, TheLocalRankAsAnArgument) {
  EXPECT_EQ(plan({"train.py"}).layout.local_rank_option, "");
  EXPECT_EQ(plan({"--use-env", "train.py"}).layout.local_rank_option, "");
  const LaunchPlan asked = plan({"--local_rank", "-m", "pkg", "x"});
  EXPECT_EQ(asked.layout.local_rank_option, "--local_rank");
  EXPECT_EQ(asked.layout.option_place, 3);
  EXPECT_THAT(refused({"--use-env", "--local-rank", "p"}), HasSubstr("--use-env and --local-rank"));
}

TEST(LaunchPlan, Processes) {
  EXPECT_EQ(plan({"p"}).nproc, 1);
  EXPECT_EQ(plan({"--nproc", "3", "p"}).nproc, 3);
  EXPECT_EQ(plan({"--nproc-per-node", "auto", "p"}, four).nproc, 4);
  EXPECT_EQ(plan({"--nproc-per-node", "auto", "p"}, none).nproc, 6);
  EXPECT_EQ(plan({"--nproc-per-node", "cpu", "p"}, four).nproc, 6);
  EXPECT_EQ(plan({"--nproc-per-node", "gpu", "p"}, four).nproc, 4);
  EXPECT_EQ(plan({"p"}, none, {{"PET_NPROC_PER_NODE", "2"}}).nproc, 2);
  EXPECT_THAT(refused({"--nproc-per-node", "gpu", "p"}), HasSubstr("no GPU is visible here"));
  EXPECT_THAT(refused({"--nproc-per-node", "xpu", "p"}),
              HasSubstr("--nproc-per-node xpu: expected a number from 1 to 64, auto"));
  EXPECT_THAT(refused({"--nproc", "65", "p"}), HasSubstr("--nproc 65: expected a whole number from 1 to 64"));
  EXPECT_THAT(refused({"--nproc", "2", "--nproc-per-node", "2", "p"}), HasSubstr("they say the same"));
}

TEST(LaunchPlan, Devices) {
  const LaunchPlan two = plan({"--devices", "2,3", "p"}, four);
  EXPECT_EQ(two.nproc, 2);
  EXPECT_THAT(two.layout.devices, ElementsAre("2", "3"));
  EXPECT_EQ(plan({"--gpus", "2,3", "--nproc_per_node", "1", "p"}, four).nproc, 1);
  EXPECT_THAT(plan({"--gpus", "GPU-b", "p"}, four, {{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}}).layout.devices,
              ElementsAre("GPU-b"));
  const LaunchPlan on_cpu = plan({"--devices", "0,1", "p"});
  EXPECT_EQ(on_cpu.nproc, 2);
  EXPECT_TRUE(on_cpu.layout.on_cpu);
  EXPECT_THAT(on_cpu.layout.devices, IsEmpty());
  EXPECT_EQ(plan({"--job_id", "j", "p"}, four).nproc, 4) << "Paddle's default is all GPUs";
  EXPECT_EQ(refused({"--gpus", "0,1", "p"}),
            "--gpus 0,1: GPU 0 is not visible; none is; type --devices 0,1 to run on the CPU");
  EXPECT_EQ(refused({"--devices", "3,4", "p"}, four),
            "--devices 3,4: GPU 4 is not visible; 0,1,2,3 are; type --devices 0,1,2,3");
  EXPECT_THAT(
      refused({"--gpus", "0", "p"}, four, {{"CUDA_VISIBLE_DEVICES", "6,7"}}),
      AllOf(HasSubstr("GPU 0 is not visible; 6,7 are (CUDA_VISIBLE_DEVICES=6,7)"), HasSubstr("type --gpus 6,7")));
  EXPECT_THAT(refused({"--devices", "0,1", "--nproc_per_node", "3", "p"}, four),
              HasSubstr("these are 2, for 3 processes"));
  EXPECT_THAT(refused({"--devices", "0", "--gpus", "0", "p"}, four), HasSubstr("they say the same"));
}

TEST(LaunchPlan, Logs) {
  EXPECT_EQ(plan({"--log-dir", "d", "p"}).layout.logs.kind, LogLayout::Kind::kRank);
  EXPECT_EQ(plan({"--log_dir", "d", "--devices", "0", "p"}).layout.logs.kind, LogLayout::Kind::kWorker);
  EXPECT_EQ(plan({"--log_dir", "d", "--redirects", "3", "p"}).layout.logs.kind, LogLayout::Kind::kTorchrun);
  EXPECT_EQ(plan({"--log_dir", "d", "-t", "0:1", "p"}).layout.logs.kind, LogLayout::Kind::kTorchrun);
  EXPECT_THAT(plan({"--nproc", "3", "--local-ranks-filter", "0,2", "p"}).layout.logs.shown, ElementsAre(0, 2));
  EXPECT_THAT(refused({"--duplicate-stdout-filters", "a", "p"}), HasSubstr("add --tee 3"));
}

TEST(LaunchPlan, OneNode) {
  const auto layout = [](const Words& words) { return plan(words + Words{"p"}).layout; };
  EXPECT_EQ(layout({}).master_addr, "127.0.0.1");
  EXPECT_EQ(layout({}).master_port, 0) << "a free one";
  EXPECT_EQ(layout({"--master-port", "7"}).master_port, 7);
  EXPECT_EQ(layout({"--rdzv-id", "j"}).run_id, "j");
  EXPECT_EQ(layout({"--standalone"}).master_addr, "localhost");
  EXPECT_NE(layout({"--standalone"}).run_id, layout({"--standalone"}).run_id);
  EXPECT_EQ(layout({"--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"}).master_addr, "localhost");
  EXPECT_EQ(layout({"--master", "10.0.0.2:7"}).master_port, 7);
  EXPECT_EQ(plan({"p"}).handshake, std::nullopt);
  EXPECT_THAT(refused({"--node-rank", "1", "p"}), HasSubstr("with --nnodes 1 the nodes are 0 alone"));
}

TEST(LaunchPlan, SeveralNodes) {
  const auto meets = [](const Words& words, const Environment& environment = {}) {
    return *plan(words + Words{"p"}, none, environment).handshake;
  };
  const NodeHandshake fixed =
      meets({"--nnodes", "3", "--node-rank", "2", "--master-addr", "a", "--rdzv-conf", "timeout=5"});
  EXPECT_EQ(fixed.nodes, 3);
  EXPECT_EQ(fixed.node, 2);
  EXPECT_EQ(fixed.host, "a");
  EXPECT_EQ(fixed.port, 29500);
  EXPECT_EQ(fixed.timeout, std::chrono::seconds(5));
  const NodeHandshake c10d =
      meets({"--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "a", "--rdzv-id", "j"});
  EXPECT_EQ(c10d.node, NodeHandshake::kAsTheyCome);
  EXPECT_EQ(c10d.port, 29400);
  EXPECT_EQ(c10d.job, "j");
  EXPECT_EQ(meets({"--nnodes", "2"}, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}).node, 1);
  EXPECT_EQ(
      meets({}, {{"PET_NNODES", "2"}, {"PET_NODE_RANK", "1"}, {"PET_MASTER_ADDR", "m"}, {"PET_MASTER_PORT", "5"}}).port,
      5);
  EXPECT_EQ(meets({"--nnodes", "2", "--master", "a:5"}).node, NodeHandshake::kAsTheyCome);
  EXPECT_EQ(plan({"--started_port", "7000", "--nproc_per_node", "2", "p"}).layout.endpoints,
            (std::vector<std::string>{"127.0.0.1:7000", "127.0.0.1:7001"}));
  const LaunchPlan by_ips = plan({"--ips", "10.0.0.1,10.0.0.2", "--start_port", "70", "--nproc_per_node", "2", "p"});
  EXPECT_EQ(by_ips.handshake->node, 1);
  EXPECT_EQ(by_ips.handshake->host, "10.0.0.1");
  EXPECT_THAT(by_ips.layout.endpoints, ElementsAre("10.0.0.1:70", "10.0.0.1:71", "10.0.0.2:70", "10.0.0.2:71"));
}

// As torchrun's documentation has it.
TEST(LaunchPlan, NodesOfC10dThatStartAnewMeetAtAnEtcdOfOneOfThem) {
  const auto elastic = [](const Words& words) {
    return *plan(Words{"--rdzv-backend", "c10d", "--rdzv-endpoint", "a"} + words + Words{"p"}).elastic;
  };
  const ElasticPlan fixed = elastic({"--nnodes", "2", "--max-restarts", "3", "--rdzv-id", "100"});
  EXPECT_EQ(fixed.own_etcd->host, "a");
  EXPECT_EQ(fixed.own_etcd->port, 29400);
  EXPECT_THAT(fixed.etcd.endpoints, ElementsAre("http://a:29400"));
  EXPECT_EQ(fixed.limits.least, 2);
  EXPECT_EQ(fixed.limits.max_restarts, 3);
  const ElasticPlan range = elastic({"--nnodes", "1:4", "--node-rank", "1", "--master-port", "7"});
  EXPECT_EQ(range.limits.least, 1);
  EXPECT_EQ(range.limits.most, 4);
  const LaunchPlan named = plan({"--rdzv-backend", "c10d", "--rdzv-endpoint", "a:7", "--nnodes", "1:4", "p"});
  EXPECT_EQ(named.layout.run_id, "none");
  EXPECT_EQ(named.elastic->own_etcd->port, 7);
  EXPECT_EQ(plan({"--rdzv-backend", "c10d", "--rdzv-endpoint", "a:7", "--max-restarts", "3", "p"}).elastic,
            std::nullopt)
      << "one node";
  EXPECT_THAT(refused({"--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "a:0", "p"}),
              HasSubstr("need a port"));
}

TEST(LaunchPlan, NodesOfEtcdAreDividedByTheLanesOfOurWorker) {
  const auto lanes = [](const std::vector<std::string>& program) {
    std::vector<std::string> line = {"--rdzv-backend", "etcd", "--rdzv-endpoint", "a", "--rdzv-id", "j"};
    line.insert(line.end(), program.begin(), program.end());
    return plan(line).elastic->limits.lanes;
  };
  EXPECT_EQ(lanes({"bin/lockstep-worker", "train", "mnist", "--lanes", "4"}), 4);
  EXPECT_EQ(lanes({"lockstep-worker", "train", "mnist", "--lanes=8", "--seed", "1"}), 8);
  EXPECT_EQ(lanes({"lockstep-worker", "train", "mnist"}), 0);
  EXPECT_EQ(lanes({"lockstep-worker", "train", "mnist", "--lanes", "many"}), 0) << "the ranks refuse it";
  EXPECT_EQ(lanes({"./own", "--lanes", "4"}), 0) << "whatever that means there";
}

TEST(LaunchPlan, WhatCantBeIsRefused) {
  EXPECT_THAT(refused({"--nnodes", "2", "p"}), HasSubstr("which of them is this one? Type --node-rank 0 here"));
  EXPECT_THAT(refused({"--nnodes", "2", "--node-rank", "2", "p"}), HasSubstr("with --nnodes 2 the nodes are 0 to 1"));
  EXPECT_THAT(refused({"--nnodes", "1:2", "p"}), HasSubstr("meet at etcd; type --rdzv-backend etcd"));
  EXPECT_THAT(refused({"--nnodes", "2", "--rdzv-backend", "c10d", "p"}), HasSubstr("Type --rdzv-endpoint HOST:PORT"));
  EXPECT_THAT(refused({"--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "a:0", "p"}),
              HasSubstr("need a port"));
  EXPECT_THAT(refused({"--rdzv-backend", "etcd-v2", "p"}), HasSubstr("where is etcd? Type --rdzv-endpoint"));
  EXPECT_THAT(refused({"--rdzv-backend", "etcd", "--rdzv-endpoint", "a", "p"}), HasSubstr("type --rdzv-id NAME"));
  EXPECT_THAT(refused({"--nnodes", "1:2", "p"}), HasSubstr("meet at etcd; type --rdzv-backend etcd"));
  EXPECT_THAT(refused({"--rdzv-backend", "zookeeper", "p"}), HasSubstr("expected static, c10d or etcd"));
  EXPECT_THAT(refused({"--standalone", "--nnodes", "2", "p"}), HasSubstr("standalone is one node"));
  EXPECT_THAT(refused({"--nnodes", "2", "--job_id", "j", "p"}), HasSubstr("Type --master HOST:PORT"));
  EXPECT_THAT(refused({"--master", "a:5", "--ips", "a,b", "p"}), HasSubstr("leave one of them out"));
  EXPECT_THAT(refused({"--start_port", "5", "--started_port", "6", "p"}), HasSubstr("both are the first port"));
  EXPECT_THAT(refused({"--nnodes", "2", "--master", "a:5", "--start_port", "6", "p"}), HasSubstr("goes with --ips"));
  EXPECT_THAT(refused({"--nnodes", "2", "--master", "etcd:a:1", "p"}), HasSubstr("expected etcd://HOST:PORT"));
  EXPECT_THAT(refused({"--ips", "10.0.0.1,10.0.0.3", "p"}), HasSubstr("none of them is this machine's; type --rank K"));
  EXPECT_THAT(refused({"--ips", "10.0.0.1,10.0.0.2", "--nnodes", "3", "p"}), HasSubstr("these are 2 nodes"));
  EXPECT_THAT(refused({"--nnodes", "2", "--node-rank", "0", "--max-restarts", "1", "p"}),
              AllOf(HasSubstr("--max-restarts 1"), HasSubstr("or c10d and HOST:29400")));
  EXPECT_THAT(refused({"--master-addr", "a:29400", "--nnodes", "2", "--node-rank", "0", "p"}),
              HasSubstr("type --master-addr a --master-port 29400"));
  EXPECT_THAT(refused({"--numa-binding", "near", "p"}), HasSubstr("--numa-binding near"));
  EXPECT_THAT(refused({"--signals-to-handle", "SIGFOO", "p"}), HasSubstr("SIGFOO"));
}

}  // namespace
}  // namespace lockstep::apps
