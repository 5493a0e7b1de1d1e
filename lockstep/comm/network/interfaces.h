// This machine's network interfaces, and the choice among them.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

struct NetworkInterface {
  std::string name;
  std::string address;  // its first IPv4 address, else IPv6
  bool loopback = false;
};

// Those that are up and have an address, one entry each.
std::vector<NetworkInterface> network_interfaces();

// The interfaces that `names` ("eth0", "eth0,eth1") lists; without names the one that reaches `peer` (a host name or
// address). Throws ConfigError that lists what there is for one that this machine lacks, or if nothing reaches the
// peer.
std::vector<NetworkInterface> choose_interfaces(const std::string& names, const std::string& peer);

}  // namespace lockstep::comm
