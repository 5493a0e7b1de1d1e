// Etcds of a test: Debian's etcd-server, with folders and ports of their own.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::testing_support {

class EtcdServer {
 public:
  // How it is reached beside plain HTTP; and the members of its cluster, where it is not alone.
  struct Options {
    std::string scheme = "http";
    std::vector<std::string> more = {};  // further words of its command line
    std::string name = "default";
    int peer_port = 0;         // 0: any
    std::string cluster = {};  // "a=http://127.0.0.1:1,b=…"
  };

  EtcdServer();                                 // returns when it answers; fails the test if it does not
  explicit EtcdServer(const Options& options);  // returns at once
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string endpoint() const;  // "127.0.0.1:PORT"
  void stop();                   // SIGSTOP, as a machine that stands still
  void go_on();
  void kill();

  bool await_answer();  // false: it has ended, or says nothing for half a minute
  void fail() const;    // the test, with the last of its log

 private:
  void begin(const Options& options);
  std::string log() const;

  TempDir folder_;
  int port_ = 0;
  pid_t pid_ = -1;
};

// Three members.
class EtcdCluster {
 public:
  EtcdCluster();  // returns when it answers; fails the test if it does not

  std::string endpoints() const;  // "127.0.0.1:PORT,…"
  EtcdServer& member(size_t index) { return *members_.at(index); }

 private:
  std::vector<std::unique_ptr<EtcdServer>> members_;
};

}  // namespace lockstep::testing_support
