#include "lockstep/base/free_ports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace lockstep {
namespace {

TEST(FreePorts, AreDifferentAndNoPortsOfConnections) {
  int connections = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> connections;
  std::vector<int> ports = free_ports(200);
  for (const int port : ports) {
    EXPECT_GT(port, 1023);
    if (connections > 20'000) EXPECT_LT(port, connections);
  }
  std::ranges::sort(ports);
  EXPECT_EQ(std::ranges::adjacent_find(ports), ports.end());
}

}  // namespace
}  // namespace lockstep
