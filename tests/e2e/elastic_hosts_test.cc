// Launchers on three hosts (network namespaces), which meet at a real etcd on a fourth.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "etcd_nodes.h"
#include "lockstep/base/testing/long_test.h"
#include "network_namespaces.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;

class ElasticHosts : public testing::Test {
 protected:
  static constexpr int kEtcd = 3;

  void SetUp() override {
    LOCKSTEP_LONG_TEST_IF(true);
    if (const std::string why = why_no_hosts(); !why.empty()) GTEST_SKIP() << "no network namespaces here: " << why;
    hosts_.emplace(4);
    const auto at_etcd = endpoint();
    etcd_host_ = hosts_->start(kEtcd, {"/usr/bin/etcd", "--data-dir=" + (dir_ / "etcd"), "--unsafe-no-fsync",
                                       "--listen-client-urls=" + at_etcd, "--advertise-client-urls=" + at_etcd});
    ASSERT_TRUE(eventually(
        [&] { return etcd_host_->err().find("ready to serve client requests") != std::string::npos; }, seconds(60)))
        << etcd_host_->err();
    start(0);
    ASSERT_TRUE(
        eventually([&] { return nodes_on_[0]->err().find("1 of 2 or more nodes") != std::string::npos; }, seconds(60)))
        << nodes_on_[0]->err();
    start(1);
    start(2);
    ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 10; }, seconds(60))) << nodes_on_[0]->err();
  }
  std::string endpoint() const { return cat("http://", hosts_->address(kEtcd), ":2379"); }
  void start(int host) {
    nodes_on_.push_back(
        hosts_->start(host, Words{bin_folder() + "/lockstep", "launch", "--rdzv-backend=etcd", "--rdzv-endpoint",
                                  endpoint(), "--rdzv-id=r", "--rdzv-conf=last_call_timeout=2,join_timeout=120",
                                  "--nnodes=2:3", "--max-restarts=3", "--local-addr=" + hosts_->address(host)} +
                                disturbed_run(run_, {"--save-every", "10"})));
  }
  std::string said() const {
    std::string all;
    for (const auto& node : nodes_on_) all += node->err();
    return all;
  }
  void expect_undisturbed_end() {
    EXPECT_EQ(steps_logged(run_), first_steps(kDisturbedSteps)) << "one epoch at a time has written";
    EXPECT_EQ(outcome_of(run_), undisturbed_outcome());
  }

  const TempDir dir_;
  const std::string run_ = dir_ / "run";
  std::optional<Hosts> hosts_;
  std::unique_ptr<Program> etcd_host_;
  std::vector<std::unique_ptr<Program>> nodes_on_;
};

TEST_F(ElasticHosts, OneThatIsCutOffIsDoneWithoutAndComesBack) {
  hosts_->unplug(0);
  EXPECT_TRUE(eventually([&] { return said().find("epoch 2") != std::string::npos; }, seconds(60))) << said();
  hosts_->plug(0);
  for (const auto& node : nodes_on_) {
    const Result result = node->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  expect_undisturbed_end();
}

// While the others go on, etcd stands still for three seconds, which changes nothing.
TEST_F(ElasticHosts, OneThatIsKilledIsDoneWithout) {
  nodes_on_[0]->signal(SIGKILL);
  nodes_on_[0]->wait();
  ASSERT_TRUE(eventually([&] { return said().find("epoch 2") != std::string::npos; }, seconds(60))) << said();
  const pid_t etcd = etcd_host_->processes("etcd").at(0);
  kill(etcd, SIGSTOP);
  std::this_thread::sleep_for(seconds(3));
  kill(etcd, SIGCONT);
  for (const int host : {1, 2}) {
    const Result result = nodes_on_[static_cast<size_t>(host)]->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_NE(said().find("restart 1 of 3"), std::string::npos) << said();
  EXPECT_EQ(said().find("restart 2"), std::string::npos) << said();
  expect_undisturbed_end();
}

}  // namespace
}  // namespace lockstep::e2e
