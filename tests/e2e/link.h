// A network link between two hosts (network namespaces) with delay, loss and a switch, in user space: a TUN device at
// each end, and a thread that carries packets between them. Needs no kernel module, where netem does.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "lockstep/base/shared_memory.h"

namespace lockstep::e2e {

class Link {
 public:
  struct Options {
    std::chrono::milliseconds delay{0};  // each way
    double loss = 0;                     // share of packets
  };

  // One device, called `device`, in each of two namespaces (`ip netns`). Throws IoError.
  Link(const std::string& first, const std::string& second, const std::string& device, Options options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void cut() { cut_ = true; }  // from now on all packets are lost

 private:
  void carry();

  Options options_;
  Descriptor ends_[2];
  std::atomic<bool> cut_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep::e2e
