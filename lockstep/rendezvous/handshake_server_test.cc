#include "lockstep/rendezvous/handshake_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Place place_of(int rank, int size) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .launcher = "arguments",
          .rendezvous = "tcp://host:1"};
}

// Rank 0 of `size` gathers in a thread; the test plays the others, packet by packet.
class TestServer {
 public:
  explicit TestServer(int size, milliseconds timeout = std::chrono::seconds(20))
      : place_(place_of(0, size)), memory_(NodeMemory::create(size)), listener_(listen_abstract(name_)) {
    outcome_ = std::async(std::launch::async, [this, timeout]() -> std::string {
      HandshakeServer server(place_, memory_, listener_);
      try {
        server.gather(Deadline(timeout));
        server.release();
        return "met";
      } catch (const Error& error) {
        server.give_up(error);
        return cat(error.exit_code(), ' ', error.what());
      }
    });
  }

  Descriptor connect() { return connect_abstract(name_); }
  Descriptor come(const Place& place) {
    Descriptor peer = connect();
    send_packet(peer.get(), Hello::encode(place));
    return peer;
  }
  std::string outcome() { return outcome_.get(); }

 private:
  std::string name_ = cat("lockstep-test-", getpid(), '-', count_++);
  Place place_;
  NodeMemory memory_;
  Descriptor listener_;
  std::future<std::string> outcome_;
  static inline int count_ = 0;
};

Packet receive(const Descriptor& connection) {
  const Deadline deadline(std::chrono::seconds(20));
  while (!deadline.passed()) {
    if (auto packet = receive_packet(connection.get(), Notice::kMostBytes)) return std::move(*packet);
  }
  ADD_FAILURE() << "nothing heard";
  return {};
}

Notice receive_notice(const Descriptor& connection) {
  const auto notice = Notice::decode(receive(connection).bytes);
  EXPECT_TRUE(notice.has_value());
  return notice.value_or(Notice{});
}

void expect_given_up(const Descriptor& connection, int exit_code, const char* text) {
  const Notice notice = receive_notice(connection);
  EXPECT_EQ(notice.kind, NoticeKind::kGivenUp);
  EXPECT_EQ(notice.exit_code, exit_code);
  EXPECT_THAT(notice.reason, HasSubstr(text));
}

TEST(HandshakeServer, SixtyFourRanksMeet) {
  TestServer server(64);
  std::vector<Descriptor> peers;
  for (int rank = 63; rank > 0; --rank) {
    peers.push_back(server.come(place_of(rank, 64)));
    const Packet packet = receive(peers.back());
    EXPECT_EQ(Notice::decode(packet.bytes)->kind, NoticeKind::kMemory);
    EXPECT_EQ(packet.descriptors.size(), 66u);
  }
  EXPECT_EQ(server.outcome(), "met");
  for (const auto& peer : peers) EXPECT_EQ(receive_notice(peer).kind, NoticeKind::kGo);
}

TEST(HandshakeServer, StrangersAreNoHarm) {
  TestServer server(2);
  const Descriptor garbage = server.connect(), longer = server.connect(), notice = server.connect();
  send_packet(garbage.get(), "GET / HTTP/1.1");
  send_packet(longer.get(), Hello::encode(place_of(1, 2)) + "more");
  send_packet(notice.get(), Notice{.kind = NoticeKind::kGo}.encode());
  for (const auto* stranger : {&garbage, &longer, &notice}) {
    const Packet answer = receive(*stranger);
    EXPECT_EQ(answer.bytes, "");
    EXPECT_TRUE(answer.descriptors.empty());
  }
  std::vector<Descriptor> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(server.connect());
  const Descriptor peer = server.come(place_of(1, 2));
  EXPECT_EQ(receive_notice(peer).kind, NoticeKind::kMemory);
  EXPECT_EQ(receive_notice(peer).kind, NoticeKind::kGo);
  EXPECT_EQ(server.outcome(), "met");
}

TEST(HandshakeServer, OtherWorldsAreNamedToAll) {
  TestServer server(3);
  const Descriptor right = server.come(place_of(1, 3));
  EXPECT_EQ(receive_notice(right).kind, NoticeKind::kMemory);
  const Descriptor wrong = server.come(place_of(2, 4));
  for (const auto* peer : {&right, &wrong}) expect_given_up(*peer, 2, "in a world of 4 ranks");
  EXPECT_THAT(server.outcome(), AllOf(HasSubstr("2 rank 2 (pid "), HasSubstr("rank 0 in a world of 3")));
}

TEST(HandshakeServer, ARankCanComeOnce) {
  TestServer server(3);
  const Descriptor first = server.come(place_of(1, 3));
  EXPECT_EQ(receive_notice(first).kind, NoticeKind::kMemory);
  const Descriptor second = server.come(place_of(1, 3));
  for (const auto* peer : {&first, &second}) expect_given_up(*peer, 2, "say that they are rank 1 of 3");
  EXPECT_THAT(server.outcome(), HasSubstr("two processes"));
}

TEST(HandshakeServer, RanksOutOfRangeAreRefused) {
  for (const int rank : {-1, 0, 3, 1 << 30}) {
    TestServer server(3);
    const Descriptor peer = server.come(place_of(rank, 3));
    expect_given_up(peer, 2, cat("rank ", rank).c_str());
    EXPECT_THAT(server.outcome(), HasSubstr("2 "));
  }
}

TEST(HandshakeServer, OtherVersionsAreRefused) {
  TestServer server(2);
  Hello hello;
  hello.version = 9;
  const Descriptor peer = server.connect();
  send_packet(peer.get(), {reinterpret_cast<const char*>(&hello), sizeof hello});
  expect_given_up(peer, 2, "speaks version 9");
}

TEST(HandshakeServer, WhoIsMissingIsNamed) {
  TestServer server(5, milliseconds(300));
  const Descriptor peer = server.come(place_of(2, 5));
  EXPECT_EQ(receive_notice(peer).kind, NoticeKind::kMemory);
  expect_given_up(peer, 69, "at tcp://host:1 for ranks 1, 3-4 of 5");
  EXPECT_THAT(server.outcome(), HasSubstr("69 rank 0: waited 0.3"));
}

TEST(HandshakeServer, WhoDiesIsNamed) {
  TestServer server(4);
  const Descriptor other = server.come(place_of(2, 4));
  EXPECT_EQ(receive_notice(other).kind, NoticeKind::kMemory);
  {
    const Descriptor peer = server.come(place_of(1, 4));
    EXPECT_EQ(receive_notice(peer).kind, NoticeKind::kMemory);
  }
  expect_given_up(other, 69, "rank 1 (pid ");
  EXPECT_THAT(server.outcome(), HasSubstr("died while the ranks met at tcp://host:1"));
}

TEST(HandshakeServer, WhoGivesUpIsHeard) {
  TestServer server(3);
  const Descriptor peer = server.come(place_of(2, 3));
  EXPECT_EQ(receive_notice(peer).kind, NoticeKind::kMemory);
  send_packet(peer.get(), Notice{.kind = NoticeKind::kGivenUp, .exit_code = 69, .reason = "enough"}.encode());
  EXPECT_EQ(server.outcome(), "69 enough");
}

TEST(MissingRanks, AreThoseWithoutAPid) {
  const NodeMemory memory = NodeMemory::create(4);
  const Mapping mapping(memory.board.get());
  Board* const board = Board::attach(mapping.data());
  board->ranks[1].pid.store(7);
  EXPECT_THAT(missing_ranks(*board, 4), ElementsAre(0, 2, 3));
  EXPECT_THAT(missing_text(place_of(1, 4), {3}, 1.5),
              HasSubstr("rank 1: waited 1.5 s at tcp://host:1 for rank 3 of 4"));
}

}  // namespace
}  // namespace lockstep::rendezvous
