// Parameter servers and their workers, each a process of its own: examples/parameter_server.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/free_ports.h"
#include "lockstep/base/testing/long_test.h"
#include "network_namespaces.h"
#include "program.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::HasSubstr;

// The processes of one job.
class Job {
 public:
  Job(int servers, int workers, const std::string& mode, int staleness, Words data = {})
      : workers_(workers), data_(std::move(data)) {
    for (int i = 0; i < servers; ++i) {
      const std::string address = "127.0.0.1:" + std::to_string(free_port());
      addresses_ += (i > 0 ? "," : "") + address;
      servers_.push_back(start({"serve", address, std::to_string(workers), mode, std::to_string(staleness),
                                std::to_string(i), std::to_string(servers)}));
    }
  }
  std::unique_ptr<Program> work(int number, int steps) const {
    return start(Words{"work", std::to_string(number), std::to_string(workers_), addresses_, std::to_string(steps)} +
                 data_);
  }
  Program& server(size_t i) { return *servers_[i]; }

 private:
  static std::unique_ptr<Program> start(const Words& words) {
    return std::make_unique<Program>(
        Program::Options{.command = Words{bin_folder() + "/example_parameter_server"} + words});
  }
  int workers_;
  Words data_;
  std::string addresses_;
  std::vector<std::unique_ptr<Program>> servers_;
};

double accuracy_in(const std::string& text) {
  const size_t at = text.find("accuracy ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + 9));
}

TEST(ParameterServer, SynchronousWorkersLearn) {
  LOCKSTEP_LONG_TEST_IF(true);
  Job job(2, 2, "sync", 0);
  const auto one = job.work(0, 100), other = job.work(1, 100);
  const Result first = one->wait(), second = other->wait();
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_GT(accuracy_in(first.out), 0.8);
  for (const size_t i : {0U, 1U}) {
    EXPECT_EQ(job.server(i).wait().out, "100 updates of 2 workers, 0 lost, staleness 0, 0 late\n");
  }
}

// The killed worker's steps are missing, and nothing else.
TEST(ParameterServer, AKilledWorkerCostsItsOwnStepsAlone) {
  Job job(2, 3, "async", 4);
  std::vector<std::unique_ptr<Program>> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(job.work(i, 120));
  const auto victim = job.work(2, 100'000);
  ASSERT_TRUE(eventually([&] { return !victim->all_gone(std::chrono::milliseconds(0)); }));
  ASSERT_TRUE(eventually([&] { return victim->out().find("step 20:") != std::string::npos; }));
  victim->signal(SIGKILL);
  for (auto& worker : workers) {
    const Result result = worker->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("step 120: loss "));
  }
  const Result server = job.server(0).wait();
  EXPECT_THAT(server.out, HasSubstr(" of 3 workers, 1 lost, staleness "));
  EXPECT_THAT(server.err, HasSubstr("worker 2 is gone: "));
}

TEST(ParameterServer, AKilledServerIsNamedByAllWorkers) {
  Job job(2, 2, "sync", 0);
  const auto one = job.work(0, 100'000), other = job.work(1, 100'000);
  ASSERT_TRUE(eventually([&] { return one->out().find("step 20:") != std::string::npos; }));
  job.server(1).signal(SIGKILL);
  for (const auto& worker : {one.get(), other.get()}) {
    const Result result = worker->wait();
    EXPECT_EQ(result.exit_code, 69);
    EXPECT_THAT(result.err, HasSubstr("error: parameter server 1 of 2 (127.0.0.1:"));
    EXPECT_THAT(result.err, HasSubstr("is gone while worker "));
  }
  EXPECT_EQ(job.server(0).wait().exit_code, 0);
}

// Four asynchronous workers, one of which is killed and starts again.
TEST(ParameterServer, AsynchronousWorkersLearnMnist) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::string mnist = LOCKSTEP_SOURCE_DIR "/../shared/data/mnist";
  if (!std::filesystem::exists(mnist)) GTEST_SKIP() << "no MNIST at ../shared/data/mnist";
  Job job(2, 4, "async", 8, {mnist});
  std::vector<std::unique_ptr<Program>> workers;
  for (int i = 0; i < 4; ++i) workers.push_back(job.work(i, 1500));
  ASSERT_TRUE(eventually([&] { return workers[3]->out().find("step 300:") != std::string::npos; }, kHang));
  workers[3]->signal(SIGKILL);
  workers[3]->wait();
  workers[3] = job.work(3, 1000);
  double accuracy = 0;
  for (auto& worker : workers) {
    const Result result = worker->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    accuracy = std::max(accuracy, accuracy_in(result.out));
  }
  EXPECT_GT(accuracy, 0.975);
  long updates = 0, staleness = 0;
  int came = 0, lost = 0;
  const Result server = job.server(0).wait();
  ASSERT_EQ(std::sscanf(server.out.c_str(), "%ld updates of %d workers, %d lost, staleness %ld", &updates, &came, &lost,
                        &staleness),
            4)
      << server.out;
  EXPECT_TRUE(came == 5 && lost == 1) << server.out;
  EXPECT_GT(updates, 5500);
  EXPECT_TRUE(staleness > 0 && staleness <= 8) << staleness;
}

// A server and a worker on one host, and a worker on the other, which is killed where that costs its own steps alone.
TEST(ParameterServer, WorkersOnTwoHosts) {
  LOCKSTEP_LONG_TEST_IF(true);
  const std::string why = why_no_hosts();
  if (!why.empty()) GTEST_SKIP() << "no network namespaces here: " << why;
  const Hosts hosts(2);
  const std::string program = bin_folder() + "/example_parameter_server", address = hosts.address(0) + ":4000";
  for (const std::string mode : {"sync", "async"}) {
    SCOPED_TRACE(mode);
    const bool is_killed = mode == "async";
    const auto server = hosts.start(0, {program, "serve", address, "2", mode, "4"});
    const auto one = hosts.start(0, {program, "work", "0", "2", address, "60"});
    const auto other = hosts.start(1, {program, "work", "1", "2", address, is_killed ? "100000" : "60"});
    if (is_killed) {
      ASSERT_TRUE(eventually([&] { return other->out().find("step 20:") != std::string::npos; }));
      for (const pid_t pid : other->processes("example_paramet")) kill(pid, SIGKILL);
    }
    const Result first = one->wait(), second = other->wait();
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_GT(accuracy_in(first.out), is_killed ? 0.3 : 0.7);
    const std::string report = server->wait().out;
    if (is_killed) {
      EXPECT_THAT(report, HasSubstr(" of 2 workers, 1 lost, staleness "));
    } else {
      EXPECT_EQ(second.exit_code, 0) << second.err;
      EXPECT_EQ(report, "60 updates of 2 workers, 0 lost, staleness 0, 0 late\n");
    }
  }
}

}  // namespace
}  // namespace lockstep::e2e
