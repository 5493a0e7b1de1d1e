#include "lockstep/comm/network/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Store = c10::intrusive_ptr<c10d::Store>;

const WatchGroup kAll{"world", {0, 1}};

Store store_of_two() {
  Store store = c10::make_intrusive<c10d::HashStore>();
  for (const int rank : {0, 1}) {
    Bulletin bulletin(store, rank);
    bulletin.announce();
    bulletin.announce(kAll);
  }
  return store;
}

Watch::Options options_of(int rank) {
  return {.rank = rank, .ranks = {{0, 0, "a"}, {1, 0, "b"}}, .period = milliseconds(20)};
}

WatchedCall barrier(std::chrono::nanoseconds timeout) {
  return {
      .group = kAll, .number = 1, .signature = signature_of(calls::barrier()), .label = "barrier", .timeout = timeout};
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return cat(error.exit_code(), ' ', error.what());
  }
}

TEST(Watch, WarnsOnceAfterATenth) {
  std::vector<std::string> warnings;
  auto options = options_of(0);
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  Watch watch(options, std::make_unique<Bulletin>(store_of_two(), 0));
  const uint64_t wait = watch.enter(barrier(std::chrono::seconds(2)));
  watch.warn_if_late(wait);
  EXPECT_TRUE(warnings.empty());
  std::this_thread::sleep_for(milliseconds(300));
  watch.warn_if_late(wait);
  watch.warn_if_late(wait);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("barrier, call #0: has waited 0.3 s for rank 1: rank 1 (b)"));
  EXPECT_THAT(warnings[0], HasSubstr("gives up after 2 s (the timeout)"));
}

TEST(Watch, ARankThatIsSilentIsToldFromASlowOne) {
  const Store store = store_of_two();
  Watch watch(options_of(0), std::make_unique<Bulletin>(store, 0));
  const uint64_t wait = watch.enter(barrier(std::chrono::seconds(3)));
  std::this_thread::sleep_for(milliseconds(3300));
  const std::string text = text_of(watch.explain(wait, MeshError(MeshError::Cause::kTimeout, {1}, "late")));
  EXPECT_THAT(text, HasSubstr("69 rank 0: barrier, call #0: waited 3.3 s for rank 1: rank 1 (b) has given no sign of "
                              "life for 3."));
}

TEST(Watch, ABrokenConnectionNamesThePeer) {
  Watch watch(options_of(0), std::make_unique<Bulletin>(store_of_two(), 0));
  const uint64_t wait = watch.enter(barrier(std::chrono::seconds(3)));
  const std::string text = text_of(watch.explain(wait, MeshError(MeshError::Cause::kBroken, {1}, "reset by peer")));
  EXPECT_THAT(text, HasSubstr("the connection to rank 1 (b) broke (reset by peer)"));
}

// Long before the ranks' messages could tell.
TEST(Watch, TheNodesBoardTellsOfADeadPeerAtOnce) {
  const NodeMemory memory = NodeMemory::create(2);
  const Mapping mapping(memory.board.get());
  Board* const board = Board::attach(mapping.data());
  BoardRank& peer = board->ranks[1];
  auto options = options_of(0);
  options.ranks = {{0, 0, "a"}, {0, 1, "a"}};
  options.board = board;
  options.period = std::chrono::seconds(5);
  const auto explained = [&] {
    Watch watch(options, std::make_unique<Bulletin>(store_of_two(), 0));
    const uint64_t wait = watch.enter(barrier(std::chrono::seconds(30)));
    const Stopwatch took;
    const std::string text = text_of(watch.explain(wait, MeshError(MeshError::Cause::kBroken, {1}, "reset by peer")));
    EXPECT_LT(took.seconds(), 5);
    return text;
  };
  peer.pid.store(getpid());
  peer.fail(74, "a.pt: no space left");
  EXPECT_EQ(explained(), "69 rank 0: barrier, call #0: rank 1 (a) failed: a.pt: no space left");
  peer.state.store(RankState::kRunning);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  peer.pid.store(child);
  EXPECT_EQ(explained(), cat("69 rank 0: barrier, call #0: rank 1 (a) (pid ", child, ") died"));
}

TEST(Watch, GivingUpEndsTheOthersLongWaits) {
  const Store store = store_of_two();
  std::atomic<bool> stopped = false;
  auto options = options_of(0);
  options.stop_waits = [&] { stopped = true; };
  Watch first(options, std::make_unique<Bulletin>(store, 0)),
      second(options_of(1), std::make_unique<Bulletin>(store, 1));
  const uint64_t wait = first.enter(barrier(std::chrono::seconds(10)));
  second.give_up("disk full");
  for (int i = 0; i < 100 && !stopped; ++i) std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(stopped);
  EXPECT_EQ(text_of(first.explain(wait, MeshError(MeshError::Cause::kAborted, {}, ""))),
            "69 rank 1 (b) gave up: disk full");
}

// Others may compare their calls on a group on which this rank did not wait long.
TEST(Watch, ARankThatLearnsOfADifferenceOnOneGroupPostsItsCallsOnAll) {
  const Store store = store_of_two();
  const WatchGroup others{"others", {0, 1}};
  Watch first(options_of(0), std::make_unique<Bulletin>(store, 0)),
      second(options_of(1), std::make_unique<Bulletin>(store, 1));
  first.announce(others);
  second.announce(others);
  WatchedCall call = barrier(std::chrono::seconds(20));
  second.note({.group = others, .number = 7, .signature = call.signature, .label = "barrier"});
  first.enter(call);
  call.signature.elements = 3;
  second.enter(call);
  const Stopwatch waited;
  while (!(first.verdict() && second.verdict()) && waited.seconds() < 20) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_THAT(text_of(second.verdict()), HasSubstr("rank 0 called barrier #0"));
  Bulletin reader(store, 0);
  while (reader.learners() < 2 && waited.seconds() < 20) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(reader.posts(others)[1].newest(), 7u);
}

TEST(Watch, AStoreThatIsGoneLeavesTheConnectionsOwnWord) {
  class Gone final : public c10d::HashStore {
   public:
    bool check(const std::vector<std::string>&) override { throw std::runtime_error("gone"); }
    void set(const std::string&, const std::vector<uint8_t>&) override { throw std::runtime_error("gone"); }
  };
  Watch watch(options_of(0), std::make_unique<Bulletin>(c10::make_intrusive<Gone>(), 0));
  const uint64_t wait = watch.enter(barrier(std::chrono::seconds(1)));
  EXPECT_THAT(text_of(watch.explain(wait, MeshError(MeshError::Cause::kTimeout, {1}, "late"))),
              HasSubstr("s for rank 1: rank 1 (b) has not been heard of"));
  watch.give_up("and this does not hang");
}

// Rank 1 posts nothing and beats, as one that saves for long.
TEST(Watch, ATimeoutBeginsAnewWithTheProgressOfThoseThatAreMissing) {
  const Store store = store_of_two();
  const NodeMemory memory = NodeMemory::create(1), other = NodeMemory::create(1);
  const Mapping mapping(memory.board.get()), other_mapping(other.board.get());
  auto options = options_of(0), others = options_of(1);
  options.board = Board::attach(mapping.data());
  others.board = Board::attach(other_mapping.data());
  Watch watch(options, std::make_unique<Bulletin>(store, 0)), peer(others, std::make_unique<Bulletin>(store, 1));
  EXPECT_EQ(watch.longest_left().count(), 0);
  const auto blocked = watch.block(barrier(milliseconds(3000)));
  const uint64_t wait = watch.enter(barrier(milliseconds(3000)));
  EXPECT_GT(watch.left(wait).count(), 0);
  EXPECT_GT(watch.longest_left().count(), 0);
  const Stopwatch waited;
  while (waited.seconds() < 5) {
    others.board->ranks[0].beat_ns.store(monotonic_ns());
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_GT(watch.left(wait).count(), 0);
  EXPECT_GT(options.board->ranks[0].beat_ns.load(), 0) << "it is this rank's progress too";
  EXPECT_LE(options.board->ranks[0].beat_ns.load(), others.board->ranks[0].beat_ns.load());
  while (watch.left(wait).count() > 0 && waited.seconds() < 30) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_LE(watch.left(wait).count(), 0) << "rank 1 does not beat any more";
  options.board->paused_ns.store(60'000'000'000);
  EXPECT_GT(watch.left(wait).count(), 0) << "a pause of this node does not count";
  watch.leave(wait);
  EXPECT_EQ(watch.left(wait).count(), 0);
}

}  // namespace
}  // namespace lockstep::comm
