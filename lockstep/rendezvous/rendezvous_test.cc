#include "lockstep/rendezvous/rendezvous.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/descriptor_passing.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/comm/quiet_c10d.h"
#include "lockstep/rendezvous/handshake.h"
#include "lockstep/rendezvous/store.h"
#include "lockstep/world/world.h"
#include "support/ports.h"
#include "support/ranks.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing_support::has_ipv6;
using testing_support::ListeningPort;
using testing_support::RankContext;
using testing_support::RankResult;
using testing_support::Ranks;
using Environment = std::map<std::string, std::string>;

// Lets the ranks begin together, through the memory that these tests otherwise do without: how long processes take to
// start must not count.
void start_together(RankContext& context) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const Mapping memory(context.memory.comm.get());
  auto* const started = memory.at<std::atomic<int>>(0);
  started->fetch_add(1);
  while (started->load() < context.size) usleep(1000);
}

void expect_sum(World& world, int size) {
  ASSERT_EQ(world.size(), size);
  EXPECT_STREQ(world.communicator().backend(), "shm");
  const at::Tensor mine = at::full({1000}, world.rank() + 1, at::kFloat);
  world.communicator().all_reduce(mine, comm::ReduceOp::kSum);
  EXPECT_TRUE(at::equal(mine, at::full({1000}, size * (size + 1) / 2, at::kFloat)));
}

// Expects the exit code of every rank, and all of its output.
void expect_all(const std::vector<RankResult>& results, int exit_code, const testing::Matcher<std::string>& output) {
  for (size_t rank = 0; rank < results.size(); ++rank) {
    EXPECT_EQ(results[rank].exit_code, exit_code) << "rank " << rank << ": " << results[rank].output;
    EXPECT_THAT(results[rank].output, output) << "rank " << rank;
    EXPECT_LT(results[rank].seconds, 40) << "rank " << rank;
  }
}

std::string tcp() { return cat("tcp://127.0.0.1:", free_port()); }
std::string temporary_file() { return cat(testing::TempDir(), "meet.", getpid(), '.', free_port()); }

RANK_PROGRAM(meets_by_arguments) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const auto world = init({.rank = context.rank, .world_size = context.size, .init_method = context.argument});
  EXPECT_EQ(world->rank(), context.rank);
  expect_sum(*world, context.size);
}

TEST(Meet, ByTcp) { expect_all(Ranks("meets_by_arguments", 4, tcp()).wait(), 0, ""); }

TEST(Meet, ByIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  expect_all(Ranks("meets_by_arguments", 2, cat("tcp://[::1]:", free_port())).wait(), 0, "");
}

TEST(Meet, ByFile) {
  const std::string path = temporary_file();
  expect_all(Ranks("meets_by_arguments", 4, "file://" + path).wait(), 0, "");
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is left behind";
}

TEST(Meet, ByAFileThatACrashedRunLeft) {
  const std::string path = temporary_file();
  Store({.rank = 0, .size = 2, .local_size = 2, .launcher = "arguments", .rendezvous = "file://" + path},
        Deadline(std::chrono::seconds(20)))
      .set("socket/0", "lockstep-0123456789abcdef elsewhere gone", Deadline(std::chrono::seconds(20)));
  ASSERT_TRUE(std::filesystem::exists(path));
  expect_all(Ranks("meets_by_arguments", 2, "file://" + path).wait(), 0, "");
  EXPECT_FALSE(std::filesystem::exists(path));
}

RANK_PROGRAM(meets_like_torchrun) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  for (const char* name : {"RANK", "LOCAL_RANK"}) setenv(name, std::to_string(context.rank).c_str(), 1);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) setenv(name, std::to_string(context.size).c_str(), 1);
  const auto world = init();
  EXPECT_EQ(world->place().launcher, "torchrun");
  expect_sum(*world, context.size);
}

TEST(Meet, AsTorchrunSays) {
  const Environment environment = {{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", std::to_string(free_port())}};
  expect_all(Ranks("meets_like_torchrun", 2, "", environment).wait(), 0, "");
}

// Goes on in a child in a PID namespace of its own, whose exit code this process takes over.
void enter_pid_namespace() {
  if (unshare(CLONE_NEWPID) != 0) throw IoError("unshare: ", errno_text(errno));
  const pid_t child = fork();
  if (child == 0) return;
  int status = 0;
  waitpid(child, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

bool may_make_pid_namespaces() {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWPID) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

RANK_PROGRAM(meets_from_two_pid_namespaces) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const bool one_node = context.argument == "one node";
  setenv("RANK", std::to_string(context.rank).c_str(), 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_RANK", one_node ? std::to_string(context.rank).c_str() : "0", 1);
  setenv("LOCAL_WORLD_SIZE", one_node ? "2" : "1", 1);
  if (context.rank == 1) enter_pid_namespace();
  const auto world = init({.timeout = std::chrono::seconds(30)});
  EXPECT_STREQ(world->communicator().backend(), "hierarchical");
  const at::Tensor one = at::full({1}, 1.0f);
  world->communicator().all_reduce(one, comm::ReduceOp::kSum);
  EXPECT_EQ(one.item<float>(), 2);
}

TEST(Meet, RanksInDifferentPidNamespacesAreNotOneNode) {
  if (!may_make_pid_namespaces()) GTEST_SKIP() << "this user may not make PID namespaces";
  const auto environment = [] {
    return Environment{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", std::to_string(free_port())}};
  };
  expect_all(Ranks("meets_from_two_pid_namespaces", 2, "two nodes", environment()).wait(), 0, "");
  expect_all(Ranks("meets_from_two_pid_namespaces", 2, "one node", environment()).wait(), ConfigError::kExitCode,
             HasSubstr("or in another network or PID namespace), but they are said to be on one node"));
}

TEST(Meet, AtTheStoreOfTorchrunsAgentAttemptAfterAttempt) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore store("127.0.0.1", options);
  Environment environment = {{"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", std::to_string(store.getPort())},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "none"}};
  for (const char* attempt : {"0", "1"}) {
    environment["TORCHELASTIC_RESTART_COUNT"] = attempt;
    expect_all(Ranks("meets_like_torchrun", 2, "", environment).wait(), 0, "");
  }
}

// argument: the rendezvous. One more rank is expected than there are; the first `first` ranks are missing.
void meet_short_of_one(RankContext& context, int first) {
  start_together(context);
  init({.rank = context.rank + first,
        .world_size = context.size + 1,
        .init_method = context.argument,
        .timeout = milliseconds(1000)});
  ADD_FAILURE() << "no error";
}
RANK_PROGRAM(the_last_is_missing) { meet_short_of_one(context, 0); }
RANK_PROGRAM(the_first_is_missing) { meet_short_of_one(context, 1); }

TEST(Meet, AMissingRankIsNamedByAll) {
  for (const std::string& address : {tcp(), "file://" + temporary_file()}) {
    const auto results = Ranks("the_last_is_missing", 2, address).wait();
    expect_all(results, 69,
               AllOf(HasSubstr("error: rank "), testing::ContainsRegex("waited (0[.][3-9]|1([.][0-9])?) s at "),
                     HasSubstr(cat(" s at ", address, " for rank 2 of 3; see "))));
    if (address[0] == 'f') EXPECT_EQ(unlink(address.c_str() + 7), 0);
  }
}

TEST(Meet, AMissingRankZeroIsNamedByAll) {
  const std::string by_tcp = tcp(), path = temporary_file();
  expect_all(Ranks("the_first_is_missing", 2, by_tcp).wait(), 69,
             AllOf(HasSubstr(cat("waited at ", by_tcp, " for rank 0")), HasSubstr("see why rank 0 is missing")));
  expect_all(Ranks("the_first_is_missing", 2, "file://" + path).wait(), 69,
             HasSubstr(cat(" s at file://", path, " for rank 0 of 3; see ")));
  unlink(path.c_str());
}

RANK_PROGRAM(other_world_sizes) {
  start_together(context);
  init({.rank = context.rank, .world_size = context.rank == 1 ? 3 : 2, .init_method = context.argument});
  ADD_FAILURE() << "no error";
}

TEST(Meet, DisagreementIsNamedOnBothSides) {
  expect_all(
      Ranks("other_world_sizes", 2, tcp()).wait(), 2,
      AllOf(HasSubstr("error: rank 1 (pid "), HasSubstr("in a world of 3 ranks"), HasSubstr("rank 0 in a world of 2")));
}

RANK_PROGRAM(port_in_use) {
  start_together(context);
  init({.rank = 0, .world_size = 2, .init_method = context.argument});
  ADD_FAILURE() << "no error";
}

TEST(Meet, APortInUseIsNamed) {
  const ListeningPort taken;
  expect_all(Ranks("port_in_use", 1, cat("tcp://127.0.0.1:", taken.port())).wait(), 69,
             HasSubstr(cat("rank 0 can't listen on port ", taken.port())));
}

RANK_PROGRAM(dies_before_it_has_a_communicator) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const Place place = find_place({.rank = context.rank, .size = context.size, .init_method = context.argument},
                                 [](const char* name) { return env(name); });
  NodeMemory memory = share_node_memory(place, std::chrono::seconds(20));
  if (context.rank == 1) raise(SIGKILL);
  const World world(place, std::move(memory), {.backend = "shm", .timeout = std::chrono::seconds(20)});
  world.communicator().barrier();
  ADD_FAILURE() << "no error";
}

RANK_PROGRAM(dies_after_the_rendezvous) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const auto world = init({.rank = context.rank, .world_size = context.size, .init_method = context.argument});
  expect_sum(*world, context.size);
  if (context.rank == 1) raise(SIGKILL);
  world->communicator().barrier();
  ADD_FAILURE() << "no error";
}

TEST(Meet, WhoDiesAfterwardsIsNamed) {
  for (const char* program : {"dies_before_it_has_a_communicator", "dies_after_the_rendezvous"}) {
    auto results = Ranks(program, 3, tcp()).wait();
    EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
    results.erase(results.begin() + 1);
    // Of two survivors the second may see the first end before it sees that rank 1 did.
    for (const auto& result : results) {
      EXPECT_EQ(result.exit_code, 69) << result.output;
      EXPECT_THAT(result.output, HasSubstr("died while rank "));
      EXPECT_THAT(result.output, HasSubstr("waited for it at barrier"));
    }
    EXPECT_THAT(results[0].output + results[1].output, HasSubstr("rank 1 (pid "));
  }
}

RANK_PROGRAM(another_user) {
  start_together(context);
  if (context.rank == 1) ASSERT_EQ(seteuid(65534), 0);
  init({.rank = context.rank, .world_size = 2, .init_method = context.argument, .timeout = milliseconds(1000)});
  ADD_FAILURE() << "no error";
}

TEST(Meet, AnotherUserGetsNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can play two users";
  const auto results = Ranks("another_user", 2, tcp()).wait();
  EXPECT_EQ(results[0].exit_code, 69);
  EXPECT_THAT(results[0].output, HasSubstr("for rank 1 of 2"));
  EXPECT_EQ(results[1].exit_code, 2);
  EXPECT_THAT(results[1].output, HasSubstr("rank 1 runs as user 65534, rank 0 (pid "));
}

// What this process's node is called in the store.
std::string own_node() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const auto name = [](const char* link) { return std::filesystem::read_symlink(link).string(); };
  return cat(boot, '/', name("/proc/self/ns/net"), '/', name("/proc/self/ns/pid"));
}

// The result of rank 1 of 2 when the test plays rank 0. It writes `value` to the store, in which "SOCKET" stands for
// the name of a socket on which it answers with `answer`.
std::string join_impostor(const std::string& value, const std::string& answer, std::vector<int> descriptors = {}) {
  const comm::QuietC10d quiet;
  const Place zero{.size = 2, .local_size = 2, .launcher = "arguments", .rendezvous = tcp()};
  Place one = zero;
  one.rank = one.local_rank = 1;
  const Deadline deadline(std::chrono::seconds(20));
  Store store(zero, deadline);
  const std::string name = cat("lockstep-", free_port());
  const Descriptor listener = listen_abstract(name);
  store.set("socket/0", value == "SOCKET" ? cat(name, ' ', own_node(), " host") : value, deadline);
  std::future<std::string> outcome = std::async(std::launch::async, [&]() -> std::string {
    try {
      share_node_memory(one, milliseconds(700));
      return "met";
    } catch (const Error& error) {
      return cat(error.exit_code(), ' ', error.what());
    }
  });
  while (outcome.wait_for(milliseconds(1)) != std::future_status::ready) {
    const Descriptor peer = accept_next(listener.get());
    if (peer) send_packet(peer.get(), answer, descriptors);
  }
  return outcome.get();
}

TEST(Meet, ImpostorsAreNoHarm) {
  const std::string memory = Notice{.kind = NoticeKind::kMemory}.encode();
  EXPECT_THAT(join_impostor("lockstep-1 elsewhere other-host", ""), HasSubstr("2 rank 1 runs on "));
  EXPECT_THAT(join_impostor("lockstep-1 elsewhere other-host", ""), HasSubstr("rank 0 on other-host"));
  EXPECT_THAT(join_impostor("rubbish", ""), HasSubstr("for rank 0 of 2"));
  EXPECT_THAT(join_impostor(std::string(100000, 'x'), ""), HasSubstr("for rank 0 of 2"));
  EXPECT_THAT(join_impostor("SOCKET", "HTTP/1.1 400"), HasSubstr(cat("69 rank 0 (pid ", getpid(), ") died")));
  EXPECT_THAT(join_impostor("SOCKET", memory), HasSubstr("passed 0 descriptors where 4 are expected"));
  EXPECT_THAT(join_impostor("SOCKET", memory, {0, 1, 2}), HasSubstr("passed 3 descriptors"));
}

RANK_PROGRAM(under_another_launcher) {
  const auto world = init();
  expect_sum(*world, 3);
  EXPECT_EQ(world->place().launcher, context.argument);
}

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// Starts three of this program by `command`; they must all have been there, for each expects the sum.
void expect_rendezvous_under(const char* launcher, const std::string& command) {
  const std::string log = temporary_file();
  const std::string line = cat("env LOCKSTEP_TEST_PROGRAM=under_another_launcher LOCKSTEP_TEST_ARGUMENT=", launcher,
                               " OMP_NUM_THREADS=1 timeout 60 ", command, ' ',
                               std::filesystem::read_symlink("/proc/self/exe").string(), " >", log, " 2>&1");
  EXPECT_EQ(std::system(line.c_str()), 0) << line << '\n' << std::ifstream(log).rdbuf();
  unlink(log.c_str());
}

TEST(Interop, TorchrunStartsRanks) {
  if (!runs("torchrun --help")) GTEST_SKIP() << "no torchrun in PATH";
  expect_rendezvous_under("torchrun", "torchrun --standalone --no-python --nproc-per-node 3");
  expect_rendezvous_under("torchrun", cat("torchrun --no-python --nproc-per-node 3 --master-port ", free_port()));
}

TEST(Interop, OpenMpiStartsRanks) {
  if (!runs("mpirun.openmpi --version")) GTEST_SKIP() << "no Open MPI in PATH";
  expect_rendezvous_under("mpirun", "mpirun.openmpi --allow-run-as-root --oversubscribe -n 3");
}

TEST(Interop, MpichStartsRanks) {
  if (!runs("mpiexec.hydra --version")) GTEST_SKIP() << "no MPICH in PATH";
  expect_rendezvous_under("mpirun", "mpiexec.hydra -n 3");
}

}  // namespace
}  // namespace lockstep::rendezvous
