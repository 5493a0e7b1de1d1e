#include "lockstep/launch/kept_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/files/zip_layout.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;
using checkpoint::Slots;
using testing::HasSubstr;

// A launcher that does not know its ranks' run, and one rank.
class KeptSlotsTest : public testing::Test {
 protected:
  KeptSlotsTest() {
    fs::create_directories(run_ + "/checkpoints");
    kept_.begin_attempt(&board_, 1);
    rank_.tell_folder(run_ + "/checkpoints", 2);
    kept_.watch_folder();
  }
  ~KeptSlotsTest() override { kept_.begin_attempt(nullptr, 1); }

  void take_snapshot(int64_t step) const {
    const int slot = rank_.choose().value();
    const std::string content(5000, 'x');
    checkpoint::ZipLayout layout;
    const checkpoint::ZipEntry& entry = layout.add("archive/data/0", content.size());
    rank_.begin(slot, 0, layout.end(), 1);
    const std::string header = checkpoint::local_header(entry);
    std::memcpy(rank_.room(slot).data(), header.data(), header.size());
    std::memcpy(rank_.room(slot).data() + entry.content, content.data(), content.size());
    rank_.end(slot, 0, step);
  }
  // What the launcher does with it once the rank is gone. Returns why it is not on the disk.
  std::string save_newest() {
    const uint32_t failed = kept_.header().failed.load();
    const auto asked = kept_.keeper().ask_newest();
    EXPECT_TRUE(asked);
    for (const Stopwatch watch; !kept_.keeper().at_rest() && watch.seconds() < 30;) usleep(1000);
    return kept_.header().failed.load() > failed ? kept_.header().error.get() : "";
  }
  std::string file(int64_t step) const { return run_ + "/checkpoints/step-00000" + std::to_string(step) + ".pt"; }

  const testing_support::TempDir dir_;
  const std::string run_ = dir_ / "run";
  const NodeMemory memory_ = NodeMemory::create(1);
  const Mapping mapping_{memory_.board.get()};
  Board& board_ = *Board::attach(mapping_.data());
  KeptSlots kept_{1, {}};
  const Slots rank_{kept_.descriptor()};
};

TEST_F(KeptSlotsTest, AreWrittenWhereTheRanksHaveTold) {
  take_snapshot(5);
  kept_.hold_folder();
  EXPECT_EQ(save_newest(), "");
  EXPECT_TRUE(fs::exists(file(5)));
  EXPECT_EQ(board_.saved.get(), "checkpoint " + file(5));
  EXPECT_TRUE(train::owner_of(run_).held);
  kept_.begin_attempt(&board_, 1);
  EXPECT_FALSE(train::owner_of(run_).held) << "the next attempt's rank takes it";
}

TEST_F(KeptSlotsTest, AreNotWrittenWhereAnotherRunHasTheFolder) {
  take_snapshot(5);
  const train::RunLock other = train::RunLock::take(run_, "--out");
  kept_.hold_folder();
  EXPECT_THAT(save_newest(), HasSubstr("run"));
  EXPECT_FALSE(fs::exists(file(5)));
}

TEST_F(KeptSlotsTest, AreNotWrittenIntoAFolderInItsPlace) {
  take_snapshot(5);
  fs::rename(run_, dir_ / "moved");
  fs::create_directories(run_ + "/checkpoints");
  EXPECT_THAT(save_newest(), HasSubstr(run_));
  EXPECT_FALSE(fs::exists(file(5)));
}

}  // namespace
}  // namespace lockstep::launch
