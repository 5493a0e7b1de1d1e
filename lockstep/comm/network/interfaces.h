// This machine's network interfaces, and the choice among them.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

struct NetworkInterface {
  std::string name;
  std::string address;  // its first IPv4 address, or IPv6 address if it has no IPv4 one
  bool loopback = false;
};

// The interfaces that are up and have an address, one entry each.
std::vector<NetworkInterface> network_interfaces();

// The interfaces that `names` lists ("eth0", "eth0,eth1"); if it is empty, the one that reaches `peer`, a host name or
// address. Throws ConfigError if this machine lacks a named interface, listing those that it has, or if none reaches
// the peer.
std::vector<NetworkInterface> choose_interfaces(const std::string& names, const std::string& peer);

}  // namespace lockstep::comm
