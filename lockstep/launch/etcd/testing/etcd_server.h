// An etcd of a test: Debian's etcd-server, with a folder and ports of its own.
#pragma once

#include <sys/types.h>

#include <string>

#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::testing_support {

class EtcdServer {
 public:
  EtcdServer();  // returns when it answers; fails the test if it does not
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string endpoint() const;  // "127.0.0.1:PORT"
  void stop();                   // SIGSTOP, as a machine that stands still
  void go_on();

 private:
  TempDir folder_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace lockstep::testing_support
