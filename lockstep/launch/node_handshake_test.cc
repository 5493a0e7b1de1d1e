// Launchers of several nodes, each on a thread.
#include "lockstep/launch/node_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/launch/environment.h"
#include "lockstep/launch/node_sockets.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::launch {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Outcome {
  NodeTable table;
  std::string error;
  int code = 0;
};

class Handshake : public testing::Test {
 protected:
  NodeHandshake node(int number, std::vector<int> ports = {1}) {
    return {.nodes = 2,
            .node = number,
            .host = "127.0.0.1",
            .port = port_,
            .job = "job",
            .ports = std::move(ports),
            .timeout = milliseconds(20000),
            .say = [this](const std::string& line) {
              const std::lock_guard lock(mutex_);
              said_ += line + '\n';
            }};
  }

  static std::future<Outcome> start(NodeHandshake own) {
    return std::async(std::launch::async, [own = std::move(own)] {
      Outcome outcome;
      try {
        outcome.table = shake_hands(own);
      } catch (const Error& error) {
        outcome.error = error.what();
        outcome.code = error.exit_code();
      }
      return outcome;
    });
  }

  int port_ = free_port();
  std::mutex mutex_;
  std::string said_;
};

TEST_F(Handshake, RanksAreNumberedByNode) {
  auto second = node(1, {7, 8});
  second.address = "10.0.0.9";
  auto late = start(std::move(second));
  const Outcome zero = start(node(0, {5})).get(), one = late.get();
  EXPECT_EQ(zero.error, "");
  EXPECT_EQ(zero.table.first_rank, 0);
  EXPECT_EQ(zero.table.world_size, 3);
  EXPECT_EQ(one.table.node, 1);
  EXPECT_EQ(one.table.first_rank, 1);
  EXPECT_THAT(one.table.endpoints, ElementsAre("127.0.0.1:5", "10.0.0.9:7", "10.0.0.9:8"));
  EXPECT_EQ(one.table.endpoints, zero.table.endpoints);
}

TEST_F(Handshake, NodesAreNumberedAsTheyCome) {
  const auto any = [&] {
    auto own = node(NodeHandshake::kAsTheyCome);
    own.nodes = 4;
    return own;
  };
  std::vector<std::future<Outcome>> started;
  auto third = any();
  third.node = 2;
  started.push_back(start(std::move(third)));
  for (int i = 0; i < 3; ++i) started.push_back(start(any()));
  std::vector<int> numbers;
  for (auto& each : started) {
    const Outcome outcome = each.get();
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.table.first_rank, outcome.table.node);
    numbers.push_back(outcome.table.node);
  }
  EXPECT_EQ(numbers[0], 2);
  EXPECT_THAT(numbers, testing::UnorderedElementsAre(0, 1, 2, 3));
}

// The kernel refuses both of two that begin to listen at one moment, five times in 200,000.
TEST_F(Handshake, NodesThatComeAtOnceFindOneAmongThem) {
  for (int round = 0; round < 100; ++round) {
    port_ = free_port();
    std::latch together(2);
    const auto come = [&] {
      return std::async(std::launch::async, [&, own = node(NodeHandshake::kAsTheyCome)] {
        together.arrive_and_wait();
        return shake_hands(own).node;
      });
    };
    auto one = come(), other = come();
    EXPECT_EQ(one.get() + other.get(), 1);
  }
}

TEST_F(Handshake, TwoNodesWithOneNumberAreNamedOnAll) {
  auto host = node(0);
  host.nodes = 3;
  auto first = node(1), second = node(1);
  first.nodes = second.nodes = 3;
  auto a = start(std::move(first)), b = start(std::move(second)), zero = start(std::move(host));
  for (const Outcome& outcome : {a.get(), b.get(), zero.get()}) {
    EXPECT_EQ(outcome.code, ConfigError::kExitCode);
    EXPECT_THAT(outcome.error, HasSubstr("two nodes say --node-rank 1: 127.0.0.1 and 127.0.0.1"));
  }
}

TEST_F(Handshake, TwoNodesZero) {
  auto a = start(node(0)), b = start(node(0));
  for (const Outcome& outcome : {a.get(), b.get()}) {
    EXPECT_EQ(outcome.code, ConfigError::kExitCode);
    EXPECT_THAT(outcome.error, HasSubstr("two nodes say --node-rank 0"));
  }
}

TEST_F(Handshake, NumbersOfNodesThatDiffer) {
  auto other = node(1);
  other.nodes = 3;
  auto b = start(std::move(other)), a = start(node(0));
  for (const Outcome& outcome : {a.get(), b.get()}) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("--nnodes 3"), HasSubstr("--nnodes 2")));
  }
}

TEST_F(Handshake, StrangersAndOtherJobsArePassedOver) {
  auto zero = start(node(0));
  rendezvous::TcpSocket stranger;
  for (int i = 0; i < 200 && !stranger.descriptor; ++i) {
    stranger = rendezvous::connect_to("127.0.0.1", port_, milliseconds(1000));
    if (!stranger.descriptor) std::this_thread::sleep_for(milliseconds(10));
  }
  send_line(stranger.descriptor, "GET / HTTP/1.1\n", milliseconds(1000));
  auto other = node(1);
  other.job = "another";
  const Outcome refused = start(std::move(other)).get();
  EXPECT_EQ(refused.code, ConfigError::kExitCode);
  EXPECT_THAT(refused.error, HasSubstr("is of job job, and this one of job another"));
  EXPECT_EQ(start(node(1)).get().error, "");
  EXPECT_EQ(zero.get().error, "");
  EXPECT_THAT(said_, AllOf(HasSubstr("what no launcher sends"), HasSubstr("a node of job another")));
}

TEST_F(Handshake, AMasterThatNobodyAnswersAtIsNamedMeanwhileAndAtTheEnd) {
  auto own = node(1);
  own.timeout = milliseconds(3500);
  const Outcome outcome = start(std::move(own)).get();
  EXPECT_EQ(outcome.code, CommError::kExitCode);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr(cat("no launcher answers at 127.0.0.1:", port_)),
                                   HasSubstr("Connection refused"), HasSubstr("correct --master-addr")));
  EXPECT_THAT(said_, HasSubstr(cat("waiting for node 0 at 127.0.0.1:", port_, ": Connection refused")));
}

TEST_F(Handshake, NodesThatDoNotComeAreNamed) {
  auto own = node(0);
  own.nodes = 4;
  own.timeout = milliseconds(3500);
  auto some = node(2);
  some.nodes = 4;
  auto guest = start(std::move(some));
  const Outcome outcome = start(std::move(own)).get();
  EXPECT_EQ(outcome.code, CommError::kExitCode);
  EXPECT_THAT(outcome.error, HasSubstr("for nodes 1, 3 of 4"));
  EXPECT_EQ(guest.get().error, outcome.error);
  EXPECT_THAT(said_, HasSubstr(cat("waiting at 127.0.0.1:", port_, " for nodes 1, 3 of 4 (3 s)")));
}

TEST_F(Handshake, ANodeThatGoesMakesRoomForItself) {
  auto own = node(0);
  own.nodes = 3;
  auto zero = start(std::move(own));
  auto brief = node(1);
  brief.nodes = 3;
  brief.timeout = milliseconds(700);
  EXPECT_EQ(start(std::move(brief)).get().code, CommError::kExitCode);
  auto again = node(1), last = node(2);
  again.nodes = last.nodes = 3;
  auto a = start(std::move(again)), b = start(std::move(last));
  EXPECT_EQ(a.get().error, "");
  EXPECT_EQ(b.get().error, "");
  EXPECT_EQ(zero.get().table.world_size, 3);
}

TEST_F(Handshake, APortOfAnotherProgramIsNamed) {
  const rendezvous::TcpSocket other = rendezvous::listen_at("127.0.0.1", port_);
  const Outcome outcome = start(node(0)).get();
  EXPECT_EQ(outcome.code, ConfigError::kExitCode);
  EXPECT_THAT(outcome.error, HasSubstr("another program listens there; give a port that is free"));
}

TEST(ThisMachine, IsKnownByItsNamesAndAddresses) {
  EXPECT_TRUE(rendezvous::is_this_machine("localhost"));
  EXPECT_TRUE(rendezvous::is_this_machine("127.0.0.1"));
  EXPECT_FALSE(rendezvous::is_this_machine("192.0.2.77"));
  EXPECT_FALSE(rendezvous::is_this_machine("no-such-host.invalid"));
}

}  // namespace
}  // namespace lockstep::launch
