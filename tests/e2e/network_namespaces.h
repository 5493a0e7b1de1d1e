// Hosts on one machine: network namespaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program.h"
#include "runs.h"

namespace lockstep::e2e {

// Why namespaces can't be made here; empty if they can.
std::string why_no_hosts();

// Debian's `ip`; "" if it is not there. ip() runs it with these arguments, and throws IoError with what it says.
std::string ip_path();
void ip(const std::string& arguments);

// Some hosts at one switch, each by a cable of its own.
class Hosts {
 public:
  explicit Hosts(int count);  // throws IoError
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  std::string address(int host) const;
  std::unique_ptr<Program> start(int host, const Words& command) const;

  // Takes a host's cable out of the switch, and puts it back.
  void unplug(int host) const;
  void plug(int host) const;

 private:
  void make(const std::string& id, int count);
  void remove();
  std::string port_of(int host) const;

  std::string switch_;
  std::vector<std::string> names_;
};

}  // namespace lockstep::e2e
