// Hosts on one machine: network namespaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program.h"
#include "runs.h"

namespace lockstep::e2e {

// Why namespaces can't be made here; empty if they can. With a switch between them, too, for Hosts.
std::string why_no_namespaces();
std::string why_no_hosts();

// Debian's `ip`; "" if it is not there. ip() runs it with these arguments, and throws IoError with what it says.
std::string ip_path();
void ip(const std::string& arguments);

// Network namespaces, which are deleted with their owner.
class Namespaces {
 public:
  Namespaces() = default;
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  // Makes one and returns its name. Throws IoError.
  std::string add(const std::string& name);

 private:
  std::vector<std::string> names_;
};

// Some hosts at one switch, each by a cable of its own.
class Hosts {
 public:
  explicit Hosts(int count);  // throws IoError

  std::string address(int host) const;
  std::unique_ptr<Program> start(int host, const Words& command) const;

  // Takes a host's cable out of the switch, and puts it back.
  void unplug(int host) const;
  void plug(int host) const;

 private:
  std::string port_of(int host) const;

  Namespaces namespaces_;
  std::string switch_;
  std::vector<std::string> names_;
};

}  // namespace lockstep::e2e
