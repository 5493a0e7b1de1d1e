#include "lockstep/launch/etcd/testing/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/etcd/etcd_client.h"

namespace lockstep::testing_support {
namespace {

int free_port() {
  const int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(socket_);
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

EtcdServer::EtcdServer() : port_(free_port()) {
  const std::string client = cat("http://127.0.0.1:", port_), peer = cat("http://127.0.0.1:", free_port());
  std::vector<std::string> words = {"etcd",
                                    "--data-dir=" + folder_.path(),
                                    "--listen-client-urls=" + client,
                                    "--advertise-client-urls=" + client,
                                    "--listen-peer-urls=" + peer,
                                    "--initial-advertise-peer-urls=" + peer,
                                    "--initial-cluster=default=" + peer,
                                    "--unsafe-no-fsync"};
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
  launch::EtcdClient client_of({.endpoints = {endpoint()}});
  for (int tries = 0; tries < 300; ++tries) {
    try {
      client_of.list("/");
      return;
    } catch (const Error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ADD_FAILURE() << "etcd does not start (Debian: etcd-server); its log: " << folder_.path() << ".log";
}

EtcdServer::~EtcdServer() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  unlink((folder_.path() + ".log").c_str());
}

std::string EtcdServer::endpoint() const { return cat("127.0.0.1:", port_); }
void EtcdServer::stop() { kill(pid_, SIGSTOP); }
void EtcdServer::go_on() { kill(pid_, SIGCONT); }

}  // namespace lockstep::testing_support
