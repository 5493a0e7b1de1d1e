#include "lockstep/base/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr size_t kPage = 4096;

size_t resident_bytes(int fd) {
  struct stat status {};
  fstat(fd, &status);
  return static_cast<size_t>(status.st_blocks) * 512;
}

TEST(SharedMemory, TwoMappingsSeeOneMemory) {
  const auto fd = create_memfd("test", 4 * kPage);
  const Mapping one(fd.get()), two(fd.get(), kPage);
  EXPECT_EQ(one.size(), 4 * kPage);
  *one.at<int>(40) = 7;
  EXPECT_EQ(*two.at<int>(40), 7);
}

TEST(SharedMemory, CantShrink) {
  const auto fd = create_memfd("test", 4 * kPage);
  EXPECT_NE(ftruncate(fd.get(), kPage), 0);
  EXPECT_EQ(ftruncate(fd.get(), 8 * kPage), 0);
}

TEST(SharedMemory, AShortFileIsRefused) {
  const auto fd = create_memfd("test", kPage);
  EXPECT_THROW(Mapping(fd.get(), 2 * kPage), IoError);
  EXPECT_THROW(Mapping(-1, kPage), IoError);
}

TEST(SharedMemory, CommitsAndGivesBack) {
  const auto fd = create_memfd("test", 1024 * kPage);
  EXPECT_EQ(resident_bytes(fd.get()), 0u);
  commit_memory(fd.get(), 0, 100 * kPage, "a test");
  EXPECT_EQ(resident_bytes(fd.get()), 100 * kPage);
  const Mapping memory(fd.get());
  *memory.at<int>(0) = 1;
  punch_hole(fd.get(), 0, 60 * kPage);
  EXPECT_EQ(resident_bytes(fd.get()), 40 * kPage);
  EXPECT_EQ(*memory.at<int>(0), 0);
}

TEST(SharedMemory, RunningOutIsAnErrorThatSaysSo) {
  const size_t too_much = size_t{1} << 46;
  const auto fd = create_memfd("test", too_much);
  try {
    commit_memory(fd.get(), 0, too_much, "the pool");
    FAIL() << "the machine gave 64 TiB";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("out of memory for the pool: asked for 64 TiB"));
  }
}

// Each rank sees enough for itself alone, and takes its memory some time after it has looked.
TEST(MemoryClaim, RanksThatAskAtOnceNeverGetMoreThanThereIs) {
  std::atomic<uint64_t> wanted = 0, got = 0;
  std::atomic<int64_t> left = 1000;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const MemoryClaim claim(&wanted, 70, [&] { return static_cast<uint64_t>(left.load()); });
        if (!claim.granted()) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        left -= 70;
        ++got;
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(got, 14u) << "of 1000 bytes 14 times 70";
  EXPECT_GE(left, 0);
  EXPECT_EQ(wanted, 0u);
}

TEST(MemoryClaim, AClaimOfADeadRankIsNotWaitedForForever) {
  std::atomic<uint64_t> wanted = 900;
  const Stopwatch watch;
  EXPECT_TRUE(MemoryClaim(&wanted, 500, [] { return uint64_t{1000}; }).granted());
  EXPECT_LT(watch.seconds(), 20);
  EXPECT_FALSE(MemoryClaim(&wanted, 1001, [] { return uint64_t{1000}; }).granted());
  EXPECT_EQ(wanted, 900u);
}

TEST(SharedMemory, AForkedChildIsLeftOutWhenAsked) {
  const auto fd = create_memfd("test", kPage);
  const Mapping memory(fd.get(), 0, Mapping::OnFork::kLeaveOut);
  const pid_t child = fork();
  if (child == 0) _exit(msync(memory.data(), kPage, MS_ASYNC) == 0 ? 1 : 0);  // fails where nothing is mapped
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace lockstep
