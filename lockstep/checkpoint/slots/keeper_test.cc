#include "lockstep/checkpoint/slots/keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/files/atomic_file.h"
#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/files/zip_writer.h"
#include "lockstep/checkpoint/names/step_files.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string content_of(int64_t step) { return std::string(200'000, static_cast<char>('a' + step)); }

std::string file_of(int64_t step) {
  StringSink sink;
  ZipWriter writer(sink);
  writer.add("archive/data/0", content_of(step));
  writer.finish();
  return sink.content;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class KeeperTest : public testing::Test {
 protected:
  KeeperTest() : memory_(Slots::create(1)), slots_(std::make_shared<Slots>(memory_.get())) {}

  // Leaves a step's image in a slot, as a rank does. Returns the slot.
  int put(int64_t step, Purpose purpose) const {
    const int slot = slots_->choose().value();
    ZipLayout layout;
    const ZipEntry& entry = layout.add("archive/data/0", content_of(step).size());
    slots_->begin(slot, 0, layout.end(), 1);
    const std::string header = local_header(entry);
    std::memcpy(slots_->room(slot).data(), header.data(), header.size());
    std::memcpy(slots_->room(slot).data() + entry.content, content_of(step).data(), entry.bytes);
    if (purpose != Purpose::kSnapshot) slots_->pin(slot, purpose);
    slots_->end(slot, 0, step);
    return slot;
  }
  void wait(const Keeper& keeper) const {
    for (const Stopwatch watch; !keeper.at_rest() && watch.seconds() < 30;) usleep(1000);
    ASSERT_TRUE(keeper.at_rest());
  }
  Keeper::Options options() { return {.folder = folder_, .keep_last = 2}; }
  // Fails as often as `failures_` says, then writes.
  Keeper::Options failing() {
    Keeper::Options chosen = options();
    chosen.write = [this](const std::string& path, std::span<const char> pages, size_t bytes, const auto&) {
      if (failures_-- > 0) throw IoError(path, ": the disk is lost");
      std::ofstream(path, std::ios::binary) << std::string_view(pages.data(), bytes);
    };
    return chosen;
  }
  std::string path(int64_t step) const { return folder_ + "/" + step_file_name(step); }

  testing_support::TempDir dir_;
  std::string folder_ = dir_ / "checkpoints";
  Descriptor memory_;
  std::shared_ptr<Slots> slots_;
  std::atomic<int> failures_ = 0;
};

TEST_F(KeeperTest, SavesWhatIsPinned) {
  std::vector<std::string> saved;
  Keeper::Options chosen = options();
  chosen.on_saved = [&](const std::string& path) { saved.push_back(path); };
  {
    const Keeper keeper(slots_, chosen);
    put(4, Purpose::kSnapshot);
    put(5, Purpose::kSave);
    wait(keeper);
    put(6, Purpose::kBest);
    wait(keeper);
  }
  EXPECT_THAT(saved, ElementsAre(path(5), path(6)));
  EXPECT_FALSE(fs::exists(path(4)));
  EXPECT_TRUE(read(path(5)) == file_of(5));
  EXPECT_TRUE(read(path(6)) == file_of(6));
  EXPECT_EQ(fs::read_symlink(folder_ + "/last.pt"), step_file_name(6));
  EXPECT_EQ(fs::read_symlink(folder_ + "/best.pt"), step_file_name(6));
  EXPECT_EQ(slots_->header().ended.load(), 2U);
  EXPECT_EQ(slots_->header().failed_in_row.load(), 0U);
}

TEST_F(KeeperTest, KeepsTheLast) {
  const Keeper keeper(slots_, options());
  for (int64_t step = 1; step <= 4; ++step) {
    put(step, step == 1 ? Purpose::kBest : Purpose::kSave);
    wait(keeper);
  }
  EXPECT_TRUE(fs::exists(path(1))) << "the best";
  EXPECT_FALSE(fs::exists(path(2)));
  EXPECT_TRUE(fs::exists(path(3)) && fs::exists(path(4)));
}

TEST_F(KeeperTest, AFailureIsToldAndTheEarlierCheckpointStays) {
  const Keeper keeper(slots_, failing());
  put(1, Purpose::kSave);
  wait(keeper);
  failures_ = 2;
  for (const int64_t step : {2, 3}) {
    put(step, Purpose::kSave);
    wait(keeper);
  }
  EXPECT_EQ(slots_->header().failed_in_row.load(), 2U);
  EXPECT_THAT(slots_->header().error.get(), HasSubstr(path(3) + ": the disk is lost"));
  EXPECT_EQ(fs::read_symlink(folder_ + "/last.pt"), step_file_name(1));
  EXPECT_TRUE(read(path(1)) == file_of(1));
  put(4, Purpose::kSave);
  wait(keeper);
  EXPECT_EQ(slots_->header().failed_in_row.load(), 0U);
  EXPECT_EQ(slots_->header().failed.load(), 2U) << "who looks only now learns of them";
  EXPECT_TRUE(read(path(4)) == file_of(4));
}

TEST_F(KeeperTest, AFullDiskIsToldFromALostOne) {
  bool full = false;
  Keeper::Options chosen = options();
  chosen.write = [&](const std::string& path, std::span<const char>, size_t, const auto&) {
    if (full) throw DiskFullError(path, ": no space");
    throw IoError(path, ": the disk is lost");
  };
  const Keeper keeper(slots_, chosen);
  for (const bool now : {false, true, false}) {
    full = now;
    put(1, Purpose::kSave);
    wait(keeper);
    EXPECT_EQ(slots_->header().disk_full.load(), now ? 1U : 0U);
  }
}

TEST_F(KeeperTest, TellsWhichBestIsOnTheDisk) {
  const Keeper keeper(slots_, failing());
  put(1, Purpose::kBest);
  wait(keeper);
  failures_ = 1;
  put(2, Purpose::kBest);
  wait(keeper);
  put(3, Purpose::kSave);
  wait(keeper);
  EXPECT_EQ(slots_->header().saved_best.load(), 2U);
  EXPECT_EQ(slots_->header().lost_best.load(), 3U);
  EXPECT_EQ(fs::read_symlink(folder_ + "/best.pt"), step_file_name(1));
}

TEST_F(KeeperTest, AFolderThatIsNoLongerTheRunsIsLeftAlone) {
  Keeper::Options chosen = options();
  chosen.check_folder = [] { throw IoError("the folder was removed"); };
  const Keeper keeper(slots_, chosen);
  put(1, Purpose::kSave);
  wait(keeper);
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_EQ(slots_->header().failed_in_row.load(), 1U);
}

TEST_F(KeeperTest, TheNewestSnapshotIsSavedOnce) {
  Keeper keeper(slots_, options());
  EXPECT_FALSE(keeper.ask_newest());
  put(7, Purpose::kSave);
  wait(keeper);
  const auto there = keeper.ask_newest();
  ASSERT_TRUE(there);
  EXPECT_TRUE(there->was_there);
  EXPECT_EQ(there->step, 7);
  const int slot = put(8, Purpose::kSnapshot);
  slots_->begin(static_cast<int>(1 - slot), 0, 1, 1);  // a torn one of a later step
  const auto saved = keeper.ask_newest();
  ASSERT_TRUE(saved);
  wait(keeper);
  EXPECT_EQ(saved->step, 8);
  EXPECT_TRUE(read(saved->path) == file_of(8));
  EXPECT_EQ(fs::read_symlink(folder_ + "/last.pt"), step_file_name(8));
}

TEST_F(KeeperTest, ASnapshotThatIsOlderThanTheCheckpointsIsNotSaved) {
  Keeper keeper(slots_, options());
  put(3, Purpose::kSnapshot);
  fs::create_directories(folder_);
  std::ofstream(path(5)) << "later";
  const auto there = keeper.ask_newest();
  ASSERT_TRUE(there);
  EXPECT_TRUE(there->was_there);
  EXPECT_EQ(there->path, path(5));
  wait(keeper);
  EXPECT_FALSE(fs::exists(path(3)));
}

TEST_F(KeeperTest, AnImageThatIsNoneIsNotSaved) {
  const Keeper keeper(slots_, options());
  const int slot = *slots_->choose();
  slots_->begin(slot, 0, 4096, 1);
  slots_->pin(slot, Purpose::kSave);
  slots_->end(slot, 0, 1);
  wait(keeper);
  EXPECT_THAT(slots_->header().error.get(), HasSubstr("no entry at byte 0"));
  EXPECT_FALSE(fs::exists(path(1)));
}

// It ends in the middle of a file if need be, and is not interrupted by the owner's signals.
TEST_F(KeeperTest, TakesNoSignals) {
  std::atomic<bool> blocked = false;
  Keeper::Options chosen = options();
  chosen.write = [&](const std::string&, auto, size_t, const auto&) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1;
  };
  const Keeper keeper(slots_, chosen);
  put(1, Purpose::kSave);
  wait(keeper);
  EXPECT_TRUE(blocked);
}

}  // namespace
}  // namespace lockstep::checkpoint
