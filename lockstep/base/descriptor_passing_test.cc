#include "lockstep/base/descriptor_passing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

std::string unused_name() {
  static int count = 0;
  return cat("lockstep-test-", getpid(), '-', count++);
}

struct Pair {
  Descriptor listener, near, far;

  Pair() {
    const std::string name = unused_name();
    listener = listen_abstract(name);
    near = connect_abstract(name);
    far = accept_next(listener.get());
  }
};

TEST(DescriptorPassing, PacketsKeepTheirBounds) {
  const Pair pair;
  EXPECT_FALSE(receive_packet(pair.far.get(), 100).has_value());
  EXPECT_TRUE(send_packet(pair.near.get(), "one"));
  EXPECT_TRUE(send_packet(pair.near.get(), "second"));
  EXPECT_EQ(receive_packet(pair.far.get(), 100)->bytes, "one");
  EXPECT_EQ(receive_packet(pair.far.get(), 3)->bytes, "sec");
  EXPECT_FALSE(receive_packet(pair.far.get(), 100).has_value());
}

TEST(DescriptorPassing, DescriptorsOfSixtyFourRanksArrive) {
  const Pair pair;
  std::vector<Descriptor> made;
  std::vector<int> numbers;
  for (size_t i = 0; i < 66; ++i) {
    made.push_back(create_memfd("test", i + 1));
    numbers.push_back(made.back().get());
  }
  ASSERT_TRUE(send_packet(pair.near.get(), "memory", numbers));
  const auto packet = receive_packet(pair.far.get(), 100);
  ASSERT_EQ(packet->descriptors.size(), 66u);
  for (size_t i = 0; i < 66; ++i) {
    struct stat status {};
    ASSERT_EQ(fstat(packet->descriptors[i].get(), &status), 0);
    EXPECT_EQ(static_cast<size_t>(status.st_size), i + 1);
    EXPECT_NE(packet->descriptors[i].get(), numbers[i]);
  }
}

TEST(DescriptorPassing, TooFewFreeDescriptorsAreAnError) {
  const Pair pair;
  const Descriptor memory = create_memfd("test", 1);
  ASSERT_TRUE(send_packet(pair.near.get(), "memory", std::vector<int>(40, memory.get())));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(memory.get()) + 10;
  setrlimit(RLIMIT_NOFILE, &few);
  EXPECT_THROW(receive_packet(pair.far.get(), 100), IoError);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(DescriptorPassing, AGonePeerIsSeenAfterItsLastWords) {
  Pair pair;
  send_packet(pair.far.get(), "never read");
  send_packet(pair.near.get(), "farewell");
  pair.near = Descriptor();
  EXPECT_EQ(receive_packet(pair.far.get(), 100)->bytes, "farewell");
  EXPECT_EQ(receive_packet(pair.far.get(), 100)->bytes, "");
  EXPECT_FALSE(send_packet(pair.far.get(), "hello?"));
}

TEST(DescriptorPassing, NamesAreTakenOrFree) {
  const std::string name = unused_name();
  EXPECT_FALSE(connect_abstract(name));
  {
    const Descriptor listener = listen_abstract(name);
    EXPECT_THROW(listen_abstract(name), IoError);
    EXPECT_FALSE(accept_next(listener.get()));
    EXPECT_TRUE(connect_abstract(name));
  }
  EXPECT_FALSE(connect_abstract(name)) << "a closed socket leaves nothing behind";
  EXPECT_THROW(listen_abstract(std::string(101, 'x')), BugError);
}

TEST(DescriptorPassing, TheKernelTellsWhoThePeerIs) {
  const Pair pair;
  EXPECT_EQ(peer_credentials(pair.far.get()).pid, getpid());
  EXPECT_EQ(peer_credentials(pair.near.get()).uid, geteuid());
  EXPECT_THROW(peer_credentials(-1), IoError);
}

}  // namespace
}  // namespace lockstep
