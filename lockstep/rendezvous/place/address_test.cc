#include "lockstep/rendezvous/place/address.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

TEST(ParseAddress, TakesAddressesApart) {
  EXPECT_EQ(parse_address("tcp://node-1.cluster:80").host, "node-1.cluster");
  EXPECT_EQ(parse_address("tcp://node-1.cluster:80").port, 80);
  EXPECT_EQ(parse_address("tcp://[::1]:29500").host, "::1");
  EXPECT_EQ(parse_address("tcp://[fe80::1%eth0]:65535").port, 65535);
  EXPECT_EQ(parse_address("file:///tmp/a b").path, "/tmp/a b");
  for (const char* wrong :
       {"", "tcp", "tcp://", "tcp://host", "tcp://host:", "tcp://host:0", "tcp://host:65536", "tcp://host:1x",
        "tcp://:1", "tcp://::1:29500", "tcp://[]:1", "tcp://[::1]", "tcp://[::1:80", "tcp://a/b:1", "file://relative",
        "file:///", "file:///folder/", "env://", "/tmp/x"}) {
    EXPECT_THROW(parse_address(wrong), ConfigError) << wrong;
  }
}

TEST(TcpAddress, BracketsIpv6) {
  EXPECT_EQ(tcp_address("node", "1"), "tcp://node:1");
  EXPECT_EQ(tcp_address("::1", "1"), "tcp://[::1]:1");
  EXPECT_EQ(parse_address(tcp_address("::1", "1")).host, "::1");
}

TEST(DerivedPort, IsTheJobs) {
  EXPECT_EQ(derived_port("a"), derived_port("a"));
  EXPECT_NE(derived_port("a"), derived_port("b"));
  for (const char* job : {"", "1", "2", "3"}) {
    EXPECT_GE(parse_number(derived_port(job)), 20000);
    EXPECT_LT(parse_number(derived_port(job)), 30000);
  }
}

TEST(RendezvousAddress, ANameIsOfThisMachineAloneOnlyIfItSaysSo) {
  for (const char* host : {"localhost", "127.0.0.1", "127.0.1.1", "::1"}) EXPECT_TRUE(names_loopback(host)) << host;
  for (const char* host : {"node0", "10.0.0.1", "localhost.cluster"}) EXPECT_FALSE(names_loopback(host)) << host;
}

}  // namespace
}  // namespace lockstep::rendezvous
