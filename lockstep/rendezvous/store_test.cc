#include "lockstep/rendezvous/store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/comm/quiet_c10d.h"
#include "support/ports.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing_support::has_ipv6;
using testing_support::ListeningPort;

class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "storeXXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

Place at(int rank, const std::string& address, const std::string& job = "job") {
  return {.rank = rank,
          .size = 2,
          .local_rank = rank,
          .local_size = 2,
          .launcher = "arguments",
          .rendezvous = address,
          .job = job};
}

Deadline in(milliseconds time) { return Deadline(time); }

template <typename E>
std::string refusal(const Place& place, milliseconds timeout = milliseconds(300)) {
  const comm::QuietC10d quiet;
  try {
    Store store(place, in(timeout));
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

// A command's second program begins on rank 1 while rank 0 is still in the first.
TEST(Store, OfALaterProgramIsWaitedForBesideThatOfAnEarlierOne) {
  const comm::QuietC10d quiet;
  const std::string address = cat("tcp://127.0.0.1:", free_port());
  const auto of = [&](int rank, int program) {
    Place place = at(rank, address);
    place.program = program;
    return place;
  };
  auto earlier = std::make_unique<Store>(of(0, 1), in(seconds(20)));
  earlier->set("key", "earlier", in(seconds(20)));
  auto late = std::async(std::launch::async, [&] {
    Store one(of(1, 2), in(seconds(20)));
    return one.get("key", in(seconds(20))).value_or("none");
  });
  EXPECT_EQ(late.wait_for(milliseconds(400)), std::future_status::timeout);
  earlier.reset();
  Store zero(of(0, 2), in(seconds(20)));
  zero.set("key", "later", in(seconds(20)));
  EXPECT_EQ(late.get(), "later");
}

void exchange(const std::string& address) {
  const comm::QuietC10d quiet;
  Store zero(at(0, address), in(seconds(20)));
  Store one(at(1, address), in(seconds(20)));
  Store other(at(1, address, "another job"), in(seconds(20)));
  EXPECT_EQ(one.get("key", in(milliseconds(50))), std::nullopt);
  zero.set("key", "first", in(seconds(20)));
  EXPECT_EQ(one.get("key", in(seconds(20))), "first");
  zero.set("key", "second", in(seconds(20)));
  EXPECT_EQ(one.get("key", in(seconds(20))), "second");
  EXPECT_EQ(other.get("key", in(milliseconds(50))), std::nullopt);
  other.close();
  one.close();
  zero.close();
}

TEST(Store, ServesAtATcpAddress) {
  exchange(cat("tcp://127.0.0.1:", free_port()));
  exchange(cat("tcp://localhost:", free_port()));
}

TEST(Store, ServesAtAnIpv6Address) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  exchange(cat("tcp://[::1]:", free_port()));
}

TEST(Store, LivesInAFileThatRankZeroTakesAway) {
  const Folder folder;
  exchange("file://" + folder.file("store"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("store")));
}

TEST(Store, WhatAnEarlierRunLeftIsWrittenOver) {
  const Folder folder;
  const std::string address = "file://" + folder.file("store");
  Store(at(0, address), in(seconds(20))).set("key", "old", in(seconds(20)));
  Store one(at(1, address), in(seconds(20)));
  EXPECT_EQ(one.get("key", in(seconds(20))), "old");
  Store zero(at(0, address), in(seconds(20)));
  zero.set("key", "new", in(seconds(20)));
  EXPECT_EQ(one.get("key", in(seconds(20))), "new");
}

TEST(Store, FilesThatAreNoStoresAreLeftAlone) {
  const Folder folder;
  const std::string path = folder.file("thesis.tex");
  for (const std::string text : {"My thesis, and years of work", "x"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(refusal<ConfigError>(at(0, "file://" + path)),
                HasSubstr("thesis.tex: the file exists and is not a store"));
    EXPECT_EQ(std::filesystem::file_size(path), text.size());
  }
  EXPECT_THAT(refusal<ConfigError>(at(1, "file:///dev/null")), HasSubstr("no regular one"));
  EXPECT_THAT(refusal<ConfigError>(at(1, "file:///no/such/folder/x")), HasSubstr("no folder /no/such/folder"));
}

TEST(Store, AFileThatAnotherRankIsAboutToBeginIsWaitedFor) {
  const Folder folder;
  const Descriptor file(open(folder.file("store").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(file.get(), LOCK_EX), 0);
  ASSERT_EQ(write(file.get(), "\x09", 1), 1);
  auto other = std::async(std::launch::async,
                          [&] { return refusal<Error>(at(1, "file://" + folder.file("store")), seconds(20)); });
  EXPECT_EQ(other.wait_for(milliseconds(100)), std::future_status::timeout);
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  ASSERT_EQ(flock(file.get(), LOCK_UN), 0);
  EXPECT_EQ(other.get(), "no error");
}

TEST(Store, APortInUseIsNamed) {
  const ListeningPort taken;
  EXPECT_THAT(refusal<CommError>(at(0, cat("tcp://127.0.0.1:", taken.port()))),
              HasSubstr(cat("can't listen on port ", taken.port(), ": Address already in use")));
}

TEST(Store, ServersThatAreMissingSilentOrUnknownAreNamedInTime) {
  const Stopwatch watch;
  EXPECT_THAT(refusal<CommError>(at(1, cat("tcp://127.0.0.1:", free_port()))), HasSubstr("why rank 0 is missing"));
  const ListeningPort silent;
  EXPECT_THAT(refusal<CommError>(at(1, cat("tcp://127.0.0.1:", silent.port()))), HasSubstr("answers as a store would"));
  EXPECT_THAT(refusal<CommError>(at(1, "tcp://no-such-host.invalid:1")), HasSubstr("the host is unknown"));
  EXPECT_THAT(refusal<CommError>(at(0, cat("tcp://no-such-host.invalid:", free_port()))),
              HasSubstr("the host is unknown"));
  EXPECT_LT(watch.seconds(), 15);
}

TEST(Store, AStoreThatGoesIsACommError) {
  const comm::QuietC10d quiet;
  const std::string address = cat("tcp://127.0.0.1:", free_port());
  Store zero(at(0, address), in(seconds(20)));
  Store one(at(1, address), in(seconds(20)));
  zero.close();
  EXPECT_THROW(one.get("key", in(seconds(20))), CommError);
}

}  // namespace
}  // namespace lockstep::rendezvous
