#include "lockstep/launch/etcd/own_etcd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/etcd/epoch.h"
#include "lockstep/launch/etcd/etcd_client.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

class OwnEtcdTest : public ::testing::Test {
 protected:
  OwnEtcdTest() { setenv("TMPDIR", dir_.path().c_str(), /*overwrite=*/1); }
  ~OwnEtcdTest() override { unsetenv("TMPDIR"); }
  std::unique_ptr<OwnEtcd> start() {
    return OwnEtcd::start("127.0.0.1", port_, [] { return false; });
  }
  EtcdClient client() const { return EtcdClient({.endpoints = {cat("http://127.0.0.1:", port_)}}); }
  // The values of keys, once it answers; for as long as it may take to start.
  std::vector<EtcdValue> list(const std::string& prefix) const {
    for (const Stopwatch watch;;) {
      try {
        return client().list(prefix);
      } catch (const CommError&) {
        if (watch.seconds() > 20) throw;
      }
    }
  }
  std::optional<pid_t> server_pid() const {
    const std::string mark = cat("--listen-client-urls=http://127.0.0.1:", port_);
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string words = file_content(entry.path() / "cmdline").value_or("");
      if (words.starts_with("etcd") && words.find(mark) != std::string::npos) return std::stoi(entry.path().filename());
    }
    return std::nullopt;
  }
  void client_answers() const {
    list("/");
    usleep(3'000'000);  // those that have lost the port are gone
  }
  int folders() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      count += entry.path().filename().string().starts_with("lockstep-etcd-");
    }
    return count;
  }

  const testing_support::TempDir dir_;
  const int port_ = free_port();
};

TEST_F(OwnEtcdTest, AnswersUntilItsLauncherEndsIt) {
  auto etcd = start();
  ASSERT_TRUE(etcd);
  client().put("/lockstep/r/epoch", "1");
  EXPECT_EQ(list("/lockstep/r/").size(), 1U);
  EXPECT_EQ(start(), nullptr) << "somebody listens there";
  EXPECT_EQ(folders(), 1);
  etcd.reset();
  EXPECT_THROW(client().list("/"), CommError);
  EXPECT_EQ(folders(), 0);
}

TEST_F(OwnEtcdTest, IsStartedAnewWithWhatItHeld) {
  const auto etcd = start();
  ASSERT_TRUE(etcd);
  client().put("/lockstep/r/epoch", "1");
  const auto server = server_pid();
  ASSERT_TRUE(server);
  kill(*server, SIGTERM);
  EXPECT_EQ(list("/lockstep/r/").size(), 1U);
}

TEST_F(OwnEtcdTest, RemovesWhatKilledLaunchersHaveLeft) {
  fs::create_directory(dir_ / "lockstep-etcd-killed");
  for (const char* file : {"data", "lock"}) std::ofstream(dir_ / cat("lockstep-etcd-killed/", file)) << "x";
  const auto etcd = start();
  EXPECT_FALSE(fs::exists(dir_ / "lockstep-etcd-killed"));
  EXPECT_EQ(folders(), 1) << "its own";
}

// Each makes a folder and looks for left ones at the same time; one gets the port.
TEST_F(OwnEtcdTest, OneOfManyThatStartAtOnceRunsIt) {
  constexpr int kMany = 6;
  std::vector<pid_t> children;
  for (int i = 0; i < kMany; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      const auto etcd = start();
      for (const Stopwatch watch; etcd && watch.seconds() < 6;) usleep(10'000);
      _exit(etcd ? 1 : 0);
    }
  }
  client_answers();
  EXPECT_EQ(folders(), 1) << "the others have removed their own, and no other";
  int servers = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    servers += WEXITSTATUS(status);
  }
  EXPECT_EQ(servers, 1);
}

TEST_F(OwnEtcdTest, ServesUntilTheNodesOfItsRunHaveLeft) {
  const auto etcd = start();
  ASSERT_TRUE(etcd);
  const auto serves = [&](int last) {
    const Stopwatch watch;
    etcd->serve_until_left(
        last, [&] { return watch.seconds() > 1; }, [](const std::string&) {});
    return watch.seconds() > 1;
  };
  EXPECT_FALSE(serves(3)) << "nobody is there";
  Node node{.id = "a", .host = "h", .address = "a", .ports = {}, .before = 0};
  client().put("/lockstep/r/nodes/a", node.encode());
  EXPECT_TRUE(serves(3));
  node.before = 3;
  client().put("/lockstep/r/nodes/a", node.encode());
  EXPECT_FALSE(serves(3)) << "it is of the next run";
  EXPECT_TRUE(serves(0)) << "no epoch was seen";
  node.before = 0;
  client().put("/lockstep/another/nodes/b", node.encode());
  EXPECT_TRUE(serves(3)) << "another job has come here, too";
}

TEST_F(OwnEtcdTest, HearsAStopWhileItStarts) {
  EXPECT_EQ(OwnEtcd::start("127.0.0.1", port_, [] { return true; }), nullptr);
  EXPECT_EQ(folders(), 0);
}

}  // namespace
}  // namespace lockstep::launch
