// `lockstep launch` with the flags of torchrun, torch.distributed.launch and paddle.distributed.launch: what the
// programs see, where their output goes, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using Environment = std::map<std::string, std::string>;

// A port that nobody listened on a moment ago; another one for each call.
std::string next_port() {
  static int port = 23000 + getpid() % 5000;
  return std::to_string(++port);
}

class Launch : public ::testing::Test {
 protected:
  Launch() {
    write_file(probe_, "#!/bin/sh\nenv > \"$1/$PADDLE_TRAINER_ID\"\nshift\nfor word; do echo \"WORD $word\"; done\n");
    std::filesystem::permissions(probe_, std::filesystem::perms::owner_all);
  }

  Words launch_words(const Words& flags, const Words& arguments = {}) const {
    return Words{"launch"} + flags + Words{probe_, dir_ / "."} + arguments;
  }
  // Runs the probe under these flags; what the rank saw.
  Environment seen(int rank, const Words& flags) const {
    const Result result = lockstep(launch_words(flags));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return environment_of(rank);
  }
  Environment environment_of(int rank) const {
    Environment out;
    std::istringstream in(read_file(dir_ / std::to_string(rank)));
    for (std::string line; std::getline(in, line);)
      out[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    return out;
  }
  bool any_started() const { return std::filesystem::exists(dir_ / "0") || std::filesystem::exists(dir_ / "1"); }

  TempDir dir_;
  std::string probe_ = dir_ / "probe";
};

TEST_F(Launch, EverySpellingSetsTheSameVariables) {
  const std::vector<Words> spellings = {{"--nproc", "2"},
                                        {"--nproc-per-node=2"},
                                        {"--nproc_per_node", "2"},
                                        {"--nnodes=1:1", "--nproc-per-node", "2"},
                                        {"--standalone", "--nproc_per_node=2"},
                                        {"--use-env", "--nproc_per_node=2"},
                                        {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--nproc-per-node=2"},
                                        {"--nproc_per_node=2", "--start_method", "fork", "--monitor-interval=3"},
                                        {"--devices", "0,1"},
                                        {"--ips=127.0.0.1", "--nproc_per_node=2"}};
  for (const auto& flags : spellings) {
    const Environment env = seen(1, flags);
    for (const auto& [name, value] : Environment{{"RANK", "1"},
                                                 {"LOCAL_RANK", "1"},
                                                 {"WORLD_SIZE", "2"},
                                                 {"LOCAL_WORLD_SIZE", "2"},
                                                 {"GROUP_RANK", "0"},
                                                 {"GROUP_WORLD_SIZE", "1"},
                                                 {"ROLE_RANK", "1"},
                                                 {"ROLE_WORLD_SIZE", "2"},
                                                 {"ROLE_NAME", "default"},
                                                 {"TORCHELASTIC_RESTART_COUNT", "0"},
                                                 {"TORCHELASTIC_MAX_RESTARTS", "0"},
                                                 {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                                 {"PADDLE_TRAINER_ID", "1"},
                                                 {"PADDLE_TRAINERS_NUM", "2"},
                                                 {"PADDLE_LOCAL_RANK", "1"},
                                                 {"PADDLE_NNODES", "1"}}) {
      EXPECT_THAT(env, Contains(Pair(name, value))) << flags.front();
    }
    const std::string endpoints = env.at("PADDLE_TRAINER_ENDPOINTS");
    EXPECT_EQ(env.at("PADDLE_CURRENT_ENDPOINT"), endpoints.substr(endpoints.find(',') + 1));
    EXPECT_EQ(env.at("PADDLE_MASTER"), env.at("MASTER_ADDR") + ":" + env.at("MASTER_PORT"));
  }
}

TEST_F(Launch, FlagsHaveTheirEffect) {
  EXPECT_THAT(seen(0, {"--role", "trainer", "--rdzv-id", "job7", "--master-port", "29871"}),
              AllOf(Contains(Pair("ROLE_NAME", "trainer")), Contains(Pair("TORCHELASTIC_RUN_ID", "job7")),
                    Contains(Pair("MASTER_PORT", "29871"))));
  EXPECT_THAT(seen(1, {"--nproc_per_node=2", "--virtual-local-rank"}),
              AllOf(Contains(Pair("LOCAL_RANK", "0")), Contains(Pair("CUDA_VISIBLE_DEVICES", "1"))));
  const Environment by_ips = seen(0, {"--ips=127.0.0.1", "--start_port=29873", "--nproc_per_node=2"});
  EXPECT_THAT(by_ips, Contains(Pair("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:29873,127.0.0.1:29874")));
  EXPECT_THAT(by_ips, Contains(Pair("PADDLE_MASTER", "127.0.0.1:29873")));
}

TEST_F(Launch, TheProgramGetsItsOwnWordsUnchanged) {
  const Result plain = lockstep(
      launch_words({"--nproc_per_node=1"}, {"--nproc_per_node", "7", "-m", "--log_dir=x", "--", "${local_rank}"}));
  EXPECT_EQ(plain.out, "WORD --nproc_per_node\nWORD 7\nWORD -m\nWORD --log_dir=x\nWORD --\nWORD 0\n");
}

TEST_F(Launch, ModulesScriptsAndPythonsLocalRank) {
  write_file(dir_ / "words.py", "import sys; print(__name__, *sys.argv[1:])\n");
  const std::string folder = dir_ / ".";
  EXPECT_EQ(lockstep({"launch", "-m", "words", "a"}, folder).out, "__main__ a\n");
  EXPECT_EQ(lockstep({"launch", "words.py", "a"}, folder).out, "__main__ a\n");
  EXPECT_EQ(lockstep({"launch", "--run-path", dir_ / "words.py", "a"}, folder).out, "__main__ a\n");
  EXPECT_EQ(lockstep({"launch", "--local-rank", "words.py", "a"}, folder).out, "__main__ --local-rank=0 a\n");
  EXPECT_EQ(lockstep({"launch", "--local_rank", "-m", "words", "a"}, folder).out, "__main__ --local_rank=0 a\n");
}

TEST_F(Launch, VariablesOfTorchrunAreDefaults) {
  const Words command = lockstep_command(launch_words({})).command;
  const Result result =
      Program({.command = Words{"/usr/bin/env", "PET_NPROC_PER_NODE=2", "PET_ROLE=r"} + command}).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(environment_of(1), AllOf(Contains(Pair("WORLD_SIZE", "2")), Contains(Pair("ROLE_NAME", "r"))));
}

TEST_F(Launch, LogsLieWhereTheOriginalsHaveThem) {
  const std::string talk = dir_ / "talk";
  write_file(talk, "#!/bin/sh\necho \"out $RANK\"\necho \"err $RANK\" >&2\n");
  std::filesystem::permissions(talk, std::filesystem::perms::owner_all);
  const auto run = [&](const Words& flags) {
    return lockstep(Words{"launch", "--nproc_per_node=2"} + flags + Words{talk});
  };
  EXPECT_EQ(run({"--log_dir", dir_ / "own"}).exit_code, 0);
  EXPECT_THAT(read_file(dir_ / "own/rank1.log"), AllOf(HasSubstr("out 1\n"), HasSubstr("err 1\n")));
  EXPECT_EQ(run({"--log_dir", dir_ / "paddles", "--devices", "0,1"}).exit_code, 0);
  EXPECT_THAT(read_file(dir_ / "paddles/workerlog.1"), AllOf(HasSubstr("out 1\n"), HasSubstr("err 1\n")));

  const Result redirected = run(
      {"--log_dir", dir_ / "torch", "--rdzv_id", "j", "-r", "1:3", "-t", "0:1", "--duplicate-stdout-filters", "out"});
  EXPECT_EQ(redirected.exit_code, 0) << redirected.err;
  const auto folder = std::filesystem::directory_iterator(dir_ / "torch")->path();
  EXPECT_THAT(folder.filename().string(), StartsWith("j_"));
  const std::string attempt = folder.string() + "/attempt_0/";
  EXPECT_EQ(read_file(attempt + "0/stdout.log"), "out 0\n");
  EXPECT_FALSE(std::filesystem::exists(attempt + "0/stderr.log"));
  EXPECT_EQ(read_file(attempt + "1/stdout.log"), "out 1\n");
  EXPECT_EQ(read_file(attempt + "1/stderr.log"), "err 1\n");
  EXPECT_EQ(read_file(attempt + "filtered_stdout.log"), "[default0]:out 0\n");
  EXPECT_EQ(redirected.out, "[default0]:out 0\n");
  EXPECT_THAT(redirected.err, AllOf(HasSubstr("err 0"), Not(HasSubstr("err 1"))));

  const Result filtered = run({"--local-ranks-filter", "1"});
  EXPECT_EQ(filtered.out, "[rank 1] out 1\n");
  EXPECT_EQ(filtered.err, "[rank 1] err 1\n");
}

// Two launchers of this machine, each a node with its own ranks.
TEST_F(Launch, TwoNodesEndWithTheWeightsOfOne) {
  const std::string port = next_port(), run = dir_ / "run";
  const Words train = {bin_folder() + "/lockstep-worker"};
  const auto node = [&](const Words& flags, const std::string& nproc) {
    return lockstep_command(Words{"launch", "--nnodes=2", "--nproc-per-node", nproc} + flags + train +
                            train_words({"--steps", std::to_string(kSteps), "--out", run}));
  };
  Program first(node({"--node-rank=0", "--master-addr=127.0.0.1", "--master-port", port}, "2"));
  Program second(node({"--node-rank=1", "--master-addr=127.0.0.1", "--master-port", port}, "2"));
  for (Program* const each : {&first, &second}) {
    const Result result = each->wait(std::chrono::seconds(120));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(final_of(run).value("world_size", 0), 4);
  EXPECT_EQ(outcome_of(run), outcome_of(finished_run()));
}

// A script with two trainings. The second finds the launcher's shared memory used.
TEST_F(Launch, TwoProgramsOfOneCommandTrain) {
  const std::string script =
      "set -e; for run in a b; do " + bin_folder() + "/lockstep-worker \"$@\" --out \"$FOLDER/$run\"; done";
  const auto launch = [&](const Words& more) {
    std::filesystem::remove_all(dir_ / "runs");
    const Words shell = {"/usr/bin/env", "FOLDER=" + (dir_ / "runs"), "/bin/sh", "-c", script, "script"};
    return lockstep(Words{"launch", "--nproc-per-node", "2"} + shell +
                    train_words({"--steps", std::to_string(kSteps)}) + more);
  };
  const auto two = launch({});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.err,
              HasSubstr("an earlier program of this launch's command has used its shared memory, so ranks talk "
                        "by gloo"));
  for (const char* run : {"runs/a", "runs/b"}) EXPECT_EQ(outcome_of(dir_ / run), outcome_of(finished_run()));
  const auto refused = launch({"--backend", "shm"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("backend shm: an earlier program of this launch's command has used its shared memory"));
}

// Programs that join no world of several ranks leave the shared memory to the first that does. A later one may begin
// while another rank is in the one before.
TEST_F(Launch, ProgramsOfOneCommandMayBeginAtOtherTimes) {
  const std::string worker = bin_folder() + "/lockstep-worker";
  const std::string script = "set -e; " + worker + " convert " + finished_run() + " \"$FOLDER/copy-$RANK.pt\"\n" +
                             "late() { [ $RANK != $1 ] || sleep 1; }\n" + "late 1; " + worker +
                             " \"$@\" --out \"$FOLDER/a\"\n" + "late 0; " + worker + " \"$@\" --out \"$FOLDER/b\"\n";
  const Words shell = {"/usr/bin/env", "FOLDER=" + (dir_ / "runs"), "/bin/sh", "-c", script, "script"};
  std::filesystem::create_directories(dir_ / "runs");
  const auto done =
      lockstep(Words{"launch", "--nproc-per-node", "2"} + shell + train_words({"--steps", std::to_string(kSteps)}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  for (const char* run : {"runs/a", "runs/b"}) EXPECT_EQ(outcome_of(dir_ / run), outcome_of(finished_run()));
  const std::string warning = "an earlier program of this launch's command has used its shared memory";
  const size_t first = done.err.find(warning);
  ASSERT_NE(first, std::string::npos) << done.err;
  EXPECT_EQ(done.err.find(warning, first + 1), std::string::npos) << done.err;
}

TEST_F(Launch, NumaBindingBindsTheProcesses) {
  if (usable_cores() < 2) GTEST_SKIP() << "needs two cores";
  const auto launch = [](const std::string& mode) {
    return lockstep({"launch", "--numa-binding", mode, "--nproc-per-node", "2", "/bin/grep", "Cpus_allowed_list",
                     "/proc/self/status"});
  };
  const Result bound = launch("exclusive");
  EXPECT_EQ(bound.exit_code, 0) << bound.err;
  std::set<std::string> cpus;
  std::istringstream lines(bound.out);
  for (std::string line; std::getline(lines, line);) cpus.insert(line.substr(line.find('\t')));
  EXPECT_EQ(cpus.size(), 2u) << bound.out;
  const Result refused = launch("near");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--numa-binding near"));
}

TEST_F(Launch, NodesThatNumberThemselves) {
  for (const bool paddles : {false, true}) {
    const std::string at = "127.0.0.1:" + next_port();
    const Words flags =
        paddles ? Words{"--master", at} : Words{"--rdzv-backend=c10d", "--rdzv-endpoint", at, "--rdzv-id=j"};
    Program a(lockstep_command(launch_words(Words{"--nnodes=2", "--nproc_per_node=1"} + flags)));
    Program b(lockstep_command(launch_words(Words{"--nnodes=2", "--nproc_per_node=1"} + flags)));
    for (Program* const each : {&a, &b}) {
      const Result result = each->wait();
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_THAT(environment_of(1), AllOf(Contains(Pair("GROUP_RANK", "1")), Contains(Pair("PADDLE_NNODES", "2")),
                                         Contains(Pair("LOCAL_RANK", "0")), Contains(Pair("PADDLE_MASTER", at))));
    EXPECT_THAT(environment_of(0),
                Contains(Pair("PADDLE_TRAINER_ENDPOINTS", environment_of(1).at("PADDLE_TRAINER_ENDPOINTS"))));
  }
}

TEST_F(Launch, BadLinesAreOneLineAndStartNothing) {
  write_file(dir_ / "plain.txt", "text\n");
  struct Bad {
    Words words;
    const char* text;
    int code = 2;
  };
  const std::vector<Bad> all = {
      {{"--nproc_per_node", "=", "4"}, "type --nproc_per_node=4"},
      {{"--nporc-per-node=4"}, "did you mean --nproc-per-node?"},
      {{"--nnodes=2", "--node-rank=2", "--master-addr=a"}, "with --nnodes 2 the nodes are 0 to 1"},
      {{"--nnodes=1:4"}, "meet at etcd; type --rdzv-backend etcd"},
      {{"--rdzv-backend=etcd-v2"}, "where is etcd? Type --rdzv-endpoint"},
      {{"--devices=0", "--node_rank=0"}, "--node-rank is --rank there"},
      {{"--gpus", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}, "is not visible"},
      {{"--nproc-per-node=0"}, "expected a whole number from 1 to 64"},
      {{"--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", "--master-port", next_port(),
        "--rdzv-conf=join_timeout=1"},
       "no launcher answers at 127.0.0.1:",
       69},
      {{"--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", "--master-port", next_port(),
        "--rdzv-conf=join_timeout=1"},
       "for node 1 of 2",
       69},
      {{dir_ / "plain.txt"}, "make it executable"},
      {{dir_ / "missing.py"}, "missing.py: No such file"},
  };
  for (const Bad& bad : all) {
    const Result result = lockstep(launch_words(bad.words));
    EXPECT_EQ(result.exit_code, bad.code) << bad.words.front();
    EXPECT_THAT(result.err, AllOf(StartsWith("error: "), HasSubstr(bad.text)));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_FALSE(any_started()) << bad.words.front();
  }
}

TEST_F(Launch, TwoNodesWithOneNumberStartNothing) {
  const std::string port = next_port();
  const Words flags = {"--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", "--master-port", port};
  Program a(lockstep_command(launch_words(flags))), b(lockstep_command(launch_words(flags)));
  for (Program* const each : {&a, &b}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, StartsWith("error: two nodes say --node-rank 0: "));
  }
  EXPECT_FALSE(any_started());
}

TEST(DoctorEnv, SaysWhatARankUnderstands) {
  const std::string program = bin_folder() + "/lockstep";
  const Result result = lockstep({"launch", "--nproc=2", program, "doctor", "--env"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("launcher    lockstep"), HasSubstr("[rank 1] place       rank 1 of 2, local rank 1 of 2"),
                    HasSubstr("also seen   paddle: the same place")));
  const Result wrong =
      Program({.command = {"/usr/bin/env", "RANK=2", "WORLD_SIZE=2", program, "doctor", "--env", "--json"}}).wait();
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.out, HasSubstr("RANK=2 and WORLD_SIZE=2"));
}

}  // namespace
}  // namespace lockstep::e2e
