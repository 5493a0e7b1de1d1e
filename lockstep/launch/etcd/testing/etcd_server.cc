#include "lockstep/launch/etcd/testing/etcd_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/etcd/etcd_client.h"

namespace lockstep::testing_support {
namespace {

constexpr int kStarts = 3;  // with other ports each, for another process may take one before etcd does

bool answers(const std::string& endpoint) {
  try {
    launch::EtcdClient({.endpoints = {endpoint}}).list("/");
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

EtcdServer::EtcdServer() {
  for (int start = 0; start < kStarts; ++start) {
    begin({});
    if (await_answer()) return;
    kill();
  }
  fail();
}

EtcdServer::EtcdServer(const Options& options) { begin(options); }

void EtcdServer::begin(const Options& options) {
  const std::vector<int> ports = free_ports(2);
  port_ = ports[0];
  const std::string client = cat(options.scheme, "://127.0.0.1:", port_);
  const std::string peer = cat("http://127.0.0.1:", options.peer_port != 0 ? options.peer_port : ports[1]);
  const std::string cluster = options.cluster.empty() ? cat(options.name, '=', peer) : options.cluster;
  std::vector<std::string> words = {"etcd",
                                    "--name=" + options.name,
                                    cat("--data-dir=", folder_.path(), '/', port_),
                                    "--listen-client-urls=" + client,
                                    "--advertise-client-urls=" + client,
                                    "--listen-peer-urls=" + peer,
                                    "--initial-advertise-peer-urls=" + peer,
                                    "--initial-cluster=" + cluster,
                                    "--unsafe-no-fsync"};
  words.insert(words.end(), options.more.begin(), options.more.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log_path = log();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log_fd = open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log_fd, 1);
    dup2(log_fd, 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
}

EtcdServer::~EtcdServer() { kill(); }

bool EtcdServer::await_answer() {
  for (int tries = 0; tries < 300; ++tries) {
    if (answers(endpoint())) return true;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

void EtcdServer::fail() const {
  std::ifstream file(log());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ADD_FAILURE() << "etcd does not start (Debian: etcd-server) at " << endpoint() << "; its last words:\n"
                << text.substr(text.size() - std::min<size_t>(text.size(), 1'000));
}

void EtcdServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string EtcdServer::log() const { return folder_.path() + "/log"; }
std::string EtcdServer::endpoint() const { return cat("127.0.0.1:", port_); }
void EtcdServer::stop() {
  if (pid_ > 0) ::kill(pid_, SIGSTOP);
}
void EtcdServer::go_on() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

EtcdCluster::EtcdCluster() {
  const std::vector<std::string> names = {"a", "b", "c"};
  const std::vector<int> ports = free_ports(static_cast<int>(names.size()));
  std::string cluster;
  for (size_t i = 0; i < names.size(); ++i) {
    cluster += cat(cluster.empty() ? "" : ",", names[i], "=http://127.0.0.1:", ports[i]);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    members_.push_back(
        std::make_unique<EtcdServer>(EtcdServer::Options{.name = names[i], .peer_port = ports[i], .cluster = cluster}));
  }
  for (const auto& member : members_) {
    if (!member->await_answer()) member->fail();
  }
}

std::string EtcdCluster::endpoints() const {
  std::string all;
  for (const auto& member : members_) all += cat(all.empty() ? "" : ",", member->endpoint());
  return all;
}

}  // namespace lockstep::testing_support
