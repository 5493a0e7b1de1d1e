// Launchers that meet as torchrun's do (--rdzv-backend c10d), start anew together, and come and go: the one whose
// address the endpoint is runs an etcd for all. Here each launcher stands for a node, and the first of them does.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <vector>

#include "etcd_nodes.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/base/text.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class C10dNodes : public testing::Test {
 protected:
  // The line of torchrun's documentation. Temporary files are in a folder of the test's.
  std::unique_ptr<Program> node(const Words& flags, const Words& program, const std::string& path = "") const {
    const Words line = Words{"launch",
                             "--nproc-per-node=1",
                             "--rdzv-id=100",
                             "--rdzv-backend=c10d",
                             cat("--rdzv-endpoint=127.0.0.1:", port_),
                             "--rdzv-conf=last_call_timeout=2,join_timeout=120",
                             "--local-addr=127.0.0.1"} +
                       flags + program;
    Program::Options options = lockstep_command(line);
    Words before = {"/usr/bin/env", "TMPDIR=" + dir_.path()};
    if (!path.empty()) before.push_back("PATH=" + path);
    options.command = before + options.command;
    return std::make_unique<Program>(options);
  }
  Words training() const { return disturbed_run(run_, {"--save-every", "10"}); }
  bool trains() const {
    return eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60));
  }
  void expect_nothing_left(const std::vector<const Program*>& ended) const {
    for (const Program* node : ended) EXPECT_TRUE(node->all_gone(seconds(5))) << "an etcd, perhaps";
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("etcd")));
    }
  }
  // Each ends with 0, having said this, and the run as one that nothing has met.
  void expect_undisturbed_end(const std::vector<Program*>& nodes, const testing::Matcher<std::string>& said) const {
    for (Program* node : nodes) {
      const Result result = node->wait();
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(result.err, said);
    }
    expect_nothing_left({nodes.begin(), nodes.end()});
    EXPECT_EQ(outcome_of(run_), undisturbed_outcome());
  }

  const int port_ = free_port();
  const TempDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(C10dNodes, StartAnewTogether) {
  const Words flags = {"--nnodes=2", "--max-restarts=3"};
  const auto a = node(flags, training()), b = node(flags, training());
  ASSERT_TRUE(trains()) << a->err() << b->err();
  kill(b->processes("lockstep-worker").at(0), SIGKILL);
  expect_undisturbed_end({a.get(), b.get()}, HasSubstr("restart 1 of 3"));
}

TEST_F(C10dNodes, GoOnWithoutOneThatIsKilled) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:2", "--max-restarts=3"};
  const auto a = node(flags, training());
  ASSERT_TRUE(eventually([&] { return a->err().find("1 of 1 or more nodes") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, training());
  ASSERT_TRUE(trains()) << a->err() << b->err();
  b->signal(SIGKILL);
  expect_undisturbed_end({a.get()}, HasSubstr("restart 1 of 3"));
  EXPECT_EQ(final_of(run_).value("world_size", 0), 1);
}

// As where a service is stopped: all of its processes get the signal, and the ranks have not saved yet.
TEST_F(C10dNodes, OutliveTheEndOfTheirEtcd) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=2", "--max-restarts=3"};
  const auto a = node(flags, training()), b = node(flags, training());
  ASSERT_TRUE(trains()) << a->err() << b->err();
  auto etcds = a->processes("etcd");
  for (const pid_t etcd : b->processes("etcd")) etcds.push_back(etcd);
  ASSERT_EQ(etcds.size(), 1U) << "one of them runs it";
  kill(etcds[0], SIGTERM);
  expect_undisturbed_end({a.get(), b.get()}, testing::Not(HasSubstr("restart 1")));
}

// Its ranks and its etcd end with it, and the others, which have nowhere to meet, end in time, a spare one, too.
TEST_F(C10dNodes, EndWithTheOneThatRunsEtcd) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:2", "--max-restarts=3"};
  const auto a = node(flags, training());
  ASSERT_TRUE(eventually([&] { return a->err().find("1 of 1 or more nodes") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, training());
  ASSERT_TRUE(trains()) << a->err() << b->err();
  const auto c = node(flags, training());
  ASSERT_TRUE(eventually([&] { return c->err().find("is a spare one") != std::string::npos; }, seconds(30)));
  a->signal(SIGKILL);
  EXPECT_TRUE(a->all_gone(seconds(10)));
  for (const auto& each : {b.get(), c.get()}) {
    const Result result = each->wait(seconds(120));
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_THAT(result.err, testing::ContainsRegex("error: etcd (was not told|does not answer)"));
  }
}

TEST_F(C10dNodes, SayWhatTheyNeed) {
  const Result result = node({"--nnodes=2", "--max-restarts=3"}, {"/bin/true"}, "/nowhere")->wait();
  expect_one_line(result, 2, "there is no program etcd in PATH; install it here (Debian: etcd-server)");
}

// A server that is no etcd, and says nothing.
TEST_F(C10dNodes, NameAPortThatSomebodyElseHas) {
  const Descriptor other(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port_));
  ASSERT_EQ(bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(other.get(), 8), 0);
  const Result result = node({"--nnodes=2", "--max-restarts=3", "--rdzv-conf=join_timeout=2"}, {"/bin/true"})->wait();
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_THAT(result.err, HasSubstr(cat("error: etcd does not answer (http://127.0.0.1:", port_)));
}

TEST_F(C10dNodes, AStopOfOneEndsAll) {
  const Words flags = {"--nnodes=2", "--max-restarts=3"};
  const auto a = node(flags, training()), b = node(flags, training());
  ASSERT_TRUE(trains()) << a->err() << b->err();
  a->signal(SIGTERM);
  for (const auto& each : {a.get(), b.get()}) EXPECT_EQ(each->wait().exit_code, 75) << each->err();
  expect_nothing_left({a.get(), b.get()});
}

}  // namespace
}  // namespace lockstep::e2e
