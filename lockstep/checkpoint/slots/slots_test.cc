#include "lockstep/checkpoint/slots/slots.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

struct TwoRanks {
  explicit TwoRanks(int ranks = 2) : memory(Slots::create(ranks)), slots(memory.get()) {}

  void fill(int slot, int64_t step, int ranks = 2) const {
    for (int rank = 0; rank < ranks; ++rank) slots.begin(slot, rank, 1000, 1);
    for (int rank = 0; rank < ranks; ++rank) slots.end(slot, rank, step);
  }
  int64_t newest() const { return slots.newest() ? slots.newest()->step : -1; }

  Descriptor memory;
  Slots slots;
};

TEST(Slots, ASlotIsWholeWhenAllRanksAreDone) {
  const TwoRanks of;
  EXPECT_EQ(of.newest(), -1);
  of.slots.begin(0, 0, 1000, 1);
  of.slots.end(0, 0, 5);
  EXPECT_EQ(of.newest(), -1);
  of.slots.begin(0, 1, 1000, 1);
  EXPECT_EQ(of.newest(), -1);
  of.slots.end(0, 1, 5);
  EXPECT_EQ(of.newest(), 5);
  of.slots.begin(0, 1, 1000, 1);  // the next filling, by whichever rank comes first
  EXPECT_EQ(of.newest(), -1);
}

TEST(Slots, AStepZeroIsAStep) {
  const TwoRanks of;
  of.fill(1, 0);
  EXPECT_EQ(of.newest(), 0);
}

TEST(Slots, TheNewestWholeOneIsNotWrittenOver) {
  const TwoRanks of;
  of.fill(0, 1);
  EXPECT_EQ(of.slots.choose(), 1);
  of.fill(1, 2);
  EXPECT_EQ(of.slots.choose(), 0);
  of.slots.begin(0, 0, 1000, 1);  // torn
  EXPECT_EQ(of.newest(), 2);
  EXPECT_EQ(of.slots.choose(), 0);
}

TEST(Slots, APinnedOneIsNotWrittenOver) {
  const TwoRanks of;
  of.fill(0, 1);
  of.slots.pin(0, Purpose::kSave);
  EXPECT_EQ(of.slots.choose(), 1);
  of.fill(1, 2);
  EXPECT_EQ(of.slots.choose(), 1) << "the newest, but the other is pinned";
  of.slots.pin(1, Purpose::kBest);
  EXPECT_FALSE(of.slots.choose());
  ASSERT_TRUE(of.slots.asked());
  EXPECT_EQ(of.slots.asked()->step, 1) << "the older one first";
  of.slots.unpin(0);
  EXPECT_EQ(of.slots.asked()->purpose, Purpose::kBest);
  of.slots.unpin(1);
  EXPECT_FALSE(of.slots.asked());
}

TEST(Slots, WhatIsPinnedAndTornIsNotAskedFor) {
  const TwoRanks of;
  of.slots.begin(0, 0, 1000, 1);
  of.slots.pin(0, Purpose::kSave);
  of.slots.end(0, 0, 3);
  EXPECT_FALSE(of.slots.asked());
}

TEST(Slots, OtherRanksBeginAnew) {
  const TwoRanks of;
  of.fill(0, 7);
  of.slots.begin(1, 0, 1000, 1);
  of.slots.pin(1, Purpose::kSave);
  of.slots.end(1, 0, 8);  // rank 1 has died before it began
  of.slots.begin_anew(2);
  EXPECT_EQ(of.newest(), -1) << "they may go on from an earlier step, and would jump forward";
  EXPECT_EQ(of.slots.choose(), 0) << "none is announced any longer";
  of.slots.begin(1, 1, 1000, 1);
  of.slots.end(1, 1, 8);
  EXPECT_EQ(of.newest(), -1) << "what an earlier rank 0 has copied does not count";
  of.slots.begin(1, 0, 1000, 1);
  of.slots.end(1, 0, 8);
  EXPECT_EQ(of.newest(), 8);
  of.slots.begin_anew(1);
  EXPECT_EQ(of.slots.header().ranks.load(), 1U);
}

// Those of an attempt before are none of the memory that is left.
TEST(Slots, CountThePagesThatAreThere) {
  const TwoRanks of;
  constexpr size_t kPage = 4096;
  EXPECT_EQ(of.slots.resident(100 * kPage), 0u);
  std::memset(of.slots.room(0).data(), 1, 8 * kPage);
  std::memset(of.slots.room(1).data(), 1, 3 * kPage);
  EXPECT_EQ(of.slots.resident(100 * kPage), 11 * kPage);
  EXPECT_EQ(of.slots.resident(5 * kPage), 8 * kPage);
  const Logger log = Logger::from_environment("");
  EXPECT_FALSE(Slots::have_room(uint64_t{1} << 50, log));
  EXPECT_TRUE(Slots::have_room(uint64_t{1} << 50, log, uint64_t{3} << 50));
  EXPECT_FALSE(Slots::have_room(uint64_t{1} << 50, log, uint64_t{3} << 50, uint64_t{1} << 50));
}

TEST(Slots, KeepTheSumsOfOneFilling) {
  const TwoRanks of;
  const auto fill = [&](int64_t step, uint32_t crc) {
    for (const int rank : {0, 1}) {
      of.slots.begin(0, rank, 1000, 1);
      const std::vector<ByteSum> sums(static_cast<size_t>(rank + 1), {.offset = 64, .bytes = 9, .crc = crc});
      if (crc != 0) of.slots.leave_sums(0, rank, 1100, 2, sums);
    }
    for (const int rank : {0, 1}) of.slots.end(0, rank, step);
    return of.slots.sums_of(of.slots.newest().value());
  };
  const auto sums = fill(3, 77);
  ASSERT_EQ(sums.size(), 3U);
  for (const ByteSum& each : sums) EXPECT_TRUE(each.offset == 64 && each.bytes == 9 && each.crc == 77);
  EXPECT_TRUE(fill(4, 0).empty()) << "an earlier filling's";
}

TEST(Slots, AreFoundByTheEnvironment) {
  const Descriptor memory = Slots::create(3);
  setenv(Slots::kVariable, std::to_string(memory.get()).c_str(), 1);
  const auto slots = Slots::inherited();
  ASSERT_TRUE(slots);
  EXPECT_EQ(slots->header().ranks.load(), 3U);
  const Descriptor other = create_memfd("lockstep-board", 1 << 20);
  setenv(Slots::kVariable, std::to_string(other.get()).c_str(), 1);
  EXPECT_FALSE(Slots::inherited()) << "a stale number";
  unsetenv(Slots::kVariable);
  EXPECT_FALSE(Slots::inherited());
  EXPECT_THROW(Slots(other.get()), BugError);
}

// Two processes fill slots in turn, and one is killed after each part of its share. What is then taken for whole is.
TEST(Slots, ATornOneIsNeverTakenForWhole) {
  constexpr size_t kPart = 64 << 10, kParts = 16, kShare = kPart * kParts;
  for (size_t killed_at = 0; killed_at <= 2 * kParts + 2; ++killed_at) {
    const TwoRanks of;
    const auto copy = [&](const Slots& slots, int rank, int64_t step, size_t& left) {
      const int slot = static_cast<int>(step % 2);
      const auto die = [&] {
        if (left-- == 0 && rank == 1) raise(SIGKILL);
      };
      slots.begin(slot, rank, 2 * kShare, 1);
      for (size_t part = 0; part < kParts; ++part, die()) {
        std::memset(slots.room(slot).data() + static_cast<size_t>(rank) * kShare + part * kPart, static_cast<int>(step),
                    kPart);
      }
      slots.end(slot, rank, step);
      die();
    };
    for (const int rank : {0, 1}) {
      const pid_t child = fork();
      if (child == 0) {
        const Slots slots(of.memory.get());  // a fork has no mapping of its parent's
        size_t left = killed_at;
        for (const int64_t step : {1, 2}) copy(slots, rank, step, left);
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(WIFSIGNALED(status), rank == 1 && killed_at < 2 * kParts + 2) << killed_at;
    }
    const auto newest = of.slots.newest();
    const auto complete = static_cast<int64_t>(killed_at < kParts ? 0 : killed_at < 2 * kParts + 1 ? 1 : 2);
    ASSERT_EQ(newest ? newest->step : 0, complete) << killed_at;
    if (!newest) continue;
    const auto bytes = of.slots.room(newest->slot).first(newest->bytes);
    for (size_t at = 0; at < bytes.size(); at += 4096) ASSERT_EQ(bytes[at], static_cast<char>(newest->step)) << at;
  }
}

TEST(Slots, ARingWakesWhoSleeps) {
  const TwoRanks of;
  const uint32_t seen = of.slots.header().bell.load();
  of.slots.ring();
  of.slots.sleep(seen, 60'000'000'000);  // it has rung since
  EXPECT_NE(of.slots.header().bell.load(), seen);
}

TEST(Slots, WaitsAsLongAsThereIsProgress) {
  const Descriptor memory = Slots::create(1);
  const Slots slots(memory.get());
  int looks = 0, beats = 0;
  EXPECT_TRUE(slots.wait_until([&] { return ++looks > 4; }, [&] { ++beats; }));
  EXPECT_EQ(beats, 0) << "nothing was written";
  const auto never_with_progress = [&] {
    if (++looks < 40) slots.header().progress.fetch_add(1);
    return false;
  };
  EXPECT_FALSE(slots.wait_until(
      never_with_progress, [&] { ++beats; }, /*patience=*/0.05));
  EXPECT_GT(beats, 10);
}

TEST(Slots, HaveRoomWhereBothFilesFit) {
  EXPECT_TRUE(Slots::have_room(1, Logger::from_environment("")));
  EXPECT_FALSE(Slots::have_room(uint64_t{1} << 50, Logger::from_environment("")));
}

}  // namespace
}  // namespace lockstep::checkpoint
