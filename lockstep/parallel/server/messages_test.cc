#include "lockstep/parallel/server/messages.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <stdexcept>
#include <thread>

#include "lockstep/base/clock.h"

namespace lockstep::parallel {
namespace {

struct Pair {
  int ends[2] = {-1, -1};
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0); }
};

TEST(Messages, CrossWholeInPartsThatTheNetworkMakes) {
  const Pair pair;
  Connection one{Descriptor(pair.ends[0])}, other{Descriptor(pair.ends[1])};
  const at::Tensor values = at::rand({1 << 20}), found = at::empty({1 << 20});
  const std::string more = "behind it";
  std::thread sender([&] {
    one.send({.kind = MessageKind::kPush, .clock = 7, .samples = 3, .lr = 0.5}, bytes_of(values), bytes_of(more));
    one.send({.kind = MessageKind::kHello, .clock = 1}, bytes_of(more));
  });
  const MessageHead head = other.receive();
  EXPECT_TRUE(head.kind == MessageKind::kPush && head.clock == 7 && head.samples == 3 && head.lr == 0.5);
  ASSERT_EQ(head.bytes, values.nbytes() + more.size());
  other.receive_bytes(bytes_of(found));
  std::string behind(more.size(), ' ');
  other.receive_bytes(bytes_of(behind));
  EXPECT_TRUE(found.equal(values));
  EXPECT_EQ(behind, more);
  EXPECT_EQ(other.receive_text(other.receive()), more);
  sender.join();
  EXPECT_EQ(one.bytes(), other.bytes());
}

TEST(Messages, TheOtherEndsEndAndItsRubbishAreLosses) {
  for (const bool closes : {true, false}) {
    const Pair pair;
    Connection one{Descriptor(pair.ends[0])};
    const Descriptor other(pair.ends[1]);
    const std::string rubbish(sizeof(MessageHead), 'x');
    if (closes) {
      shutdown(other.get(), SHUT_RDWR);
    } else {
      ASSERT_EQ(::send(other.get(), rubbish.data(), rubbish.size(), 0), static_cast<ssize_t>(rubbish.size()));
    }
    EXPECT_THROW(one.receive(), ConnectionLost);
  }
  const Pair pair;
  Connection one{Descriptor(pair.ends[0])};
  MessageHead head{.kind = MessageKind::kHello};
  head.bytes = uint64_t{1} << 60;
  EXPECT_THROW(one.receive_text(head), ConnectionLost) << "no memory of that size";
}

TEST(Messages, AWaitAsksNowAndThenWhetherToGoOnAndKnowsWhenBytesMoved) {
  const Pair pair;
  int asked = 0;
  Connection one(Descriptor(pair.ends[0]), [&] {
    if (++asked == 2) throw std::runtime_error("enough");
  });
  const Descriptor other(pair.ends[1]);
  const int64_t before = one.moved_ns();
  EXPECT_THROW(one.receive(), std::runtime_error);
  EXPECT_EQ(one.moved_ns(), before);
  one.send({.kind = MessageKind::kBye});
  EXPECT_GT(one.moved_ns(), before);
}

TEST(Messages, OneThatIsClosedForAllEndsItsWait) {
  const Pair pair;
  Connection one{Descriptor(pair.ends[0])};
  const Descriptor other(pair.ends[1]);
  std::thread closer([&] { one.close_for_all(); });
  EXPECT_THROW(one.receive(), ConnectionLost);
  closer.join();
}

}  // namespace
}  // namespace lockstep::parallel
