#include "lockstep/launch/etcd/testing/etcd_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/etcd/etcd_client.h"

namespace lockstep::testing_support {
namespace {

void await_answer(const std::vector<std::string>& endpoints) {
  launch::EtcdClient client_of({.endpoints = endpoints});
  for (int tries = 0; tries < 300; ++tries) {
    try {
      client_of.list("/");
      return;
    } catch (const Error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ADD_FAILURE() << "etcd does not start (Debian: etcd-server) at " << endpoints.front();
}

}  // namespace

EtcdServer::EtcdServer() : EtcdServer(Options{}) { await_answer({endpoint()}); }

EtcdServer::EtcdServer(const Options& options) : port_(free_port()) {
  const std::string client = cat(options.scheme, "://127.0.0.1:", port_);
  const std::string peer = cat("http://127.0.0.1:", options.peer_port != 0 ? options.peer_port : free_port());
  const std::string cluster = options.cluster.empty() ? cat(options.name, '=', peer) : options.cluster;
  std::vector<std::string> words = {"etcd",
                                    "--name=" + options.name,
                                    "--data-dir=" + folder_.path(),
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
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open((folder_.path() + ".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(log, 1);
    dup2(log, 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
}

EtcdServer::~EtcdServer() {
  kill();
  unlink((folder_.path() + ".log").c_str());
}

void EtcdServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string EtcdServer::endpoint() const { return cat("127.0.0.1:", port_); }
void EtcdServer::stop() { ::kill(pid_, SIGSTOP); }
void EtcdServer::go_on() { ::kill(pid_, SIGCONT); }

EtcdCluster::EtcdCluster() {
  const std::vector<std::string> names = {"a", "b", "c"};
  std::vector<int> ports;
  std::string cluster;
  for (const std::string& name : names) {
    ports.push_back(free_port());
    cluster += cat(cluster.empty() ? "" : ",", name, "=http://127.0.0.1:", ports.back());
  }
  for (size_t i = 0; i < names.size(); ++i) {
    members_.push_back(
        std::make_unique<EtcdServer>(EtcdServer::Options{.name = names[i], .peer_port = ports[i], .cluster = cluster}));
  }
  for (const auto& member : members_) await_answer({member->endpoint()});
}

std::string EtcdCluster::endpoints() const {
  std::string all;
  for (const auto& member : members_) all += cat(all.empty() ? "" : ",", member->endpoint());
  return all;
}

}  // namespace lockstep::testing_support
