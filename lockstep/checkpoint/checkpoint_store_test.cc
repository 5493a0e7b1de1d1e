#include "lockstep/checkpoint/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
namespace fs = std::filesystem;

Value state(int64_t step) { return Dict{{"meta", Dict{{"step", step}}}}; }
int64_t step_in(const Value& value) { return ValueView(value, "file")["meta"]["step"].integer(); }

class CheckpointStoreTest : public testing::Test {
 protected:
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const auto& saved : CheckpointStore(folder_).list()) found.push_back(saved.step);
    return found;
  }
  TempDir dir_;
  std::string folder_ = dir_ / "run/checkpoints";
};

TEST_F(CheckpointStoreTest, SavesUnderTheStepAndLinksTheLast) {
  CheckpointStore store(folder_);
  EXPECT_EQ(store.save(500, state(500)), folder_ + "/step-000500.pt");
  store.save(1'000'000, state(1'000'000));
  EXPECT_EQ(step_in(read_pt(folder_ + "/last.pt")), 1'000'000);
  EXPECT_EQ(fs::read_symlink(folder_ + "/last.pt"), "step-1000000.pt");
  EXPECT_THAT(steps(), ElementsAre(500, 1'000'000));
}

TEST_F(CheckpointStoreTest, KeepsTheLastOnesAndTheBest) {
  CheckpointStore store(folder_, {.keep_last = 2});
  for (int64_t step = 1; step <= 5; ++step) {
    store.save(step, state(step));
    if (step == 2) store.mark_best(2);
  }
  EXPECT_THAT(steps(), ElementsAre(2, 4, 5));
  EXPECT_EQ(step_in(read_pt(folder_ + "/best.pt")), 2);
  store.mark_best(5);
  store.save(6, state(6));
  EXPECT_THAT(steps(), ElementsAre(5, 6));
}

TEST_F(CheckpointStoreTest, KeepsAllIfToldTo) {
  CheckpointStore store(folder_, {.keep_last = 0});
  for (int64_t step = 1; step <= 5; ++step) store.save(step, state(step));
  EXPECT_EQ(steps().size(), 5u);
}

TEST_F(CheckpointStoreTest, NeverRemovesWhatItJustSaved) {
  CheckpointStore store(folder_, {.keep_last = 1});
  store.save(100, state(100));
  store.save(50, state(50));  // a run that went back
  EXPECT_EQ(step_in(read_pt(folder_ + "/last.pt")), 50);
}

TEST_F(CheckpointStoreTest, CutsBack) {
  CheckpointStore store(folder_);
  for (int64_t step = 1; step <= 3; ++step) store.save(step, state(step));
  store.cut_back(1);
  EXPECT_THAT(steps(), ElementsAre(1));
  const auto folder = std::filesystem::path(store.list()[0].path).parent_path();
  EXPECT_TRUE(std::filesystem::exists(folder / "last.pt")) << "no link leads nowhere";
}

TEST_F(CheckpointStoreTest, AdoptsAnotherRunsCheckpoint) {
  CheckpointStore parent(dir_ / "parent"), store(folder_);
  parent.save(7, state(7));
  EXPECT_EQ(store.adopt(7, dir_ / "parent/last.pt"), folder_ + "/step-000007.pt");
  EXPECT_EQ(step_in(read_pt(folder_ + "/last.pt")), 7);
  EXPECT_FALSE(fs::is_symlink(folder_ + "/step-000007.pt")) << "it does not go with its parent";
  EXPECT_EQ(read_file(folder_ + "/step-000007.pt"), read_file(dir_ / "parent/step-000007.pt"));
  EXPECT_THROW(store.adopt(8, dir_ / "parent/none.pt"), IoError);
  EXPECT_THAT(steps(), ElementsAre(7));
  store.adopt(5, dir_ / "parent/last.pt");
  EXPECT_EQ(fs::read_symlink(folder_ + "/last.pt"), "step-000007.pt") << "the newest stays the last";
}

TEST_F(CheckpointStoreTest, KnowsTheBest) {
  CheckpointStore store(folder_);
  EXPECT_EQ(store.best(), std::nullopt);
  store.save(3, state(3));
  store.mark_best(3);
  EXPECT_EQ(store.best(), 3);
}

TEST_F(CheckpointStoreTest, LoadsTheNewestThatCanBeRead) {
  CheckpointStore store(folder_);
  EXPECT_FALSE(store.load_newest().has_value());
  for (int64_t step = 1; step <= 3; ++step) store.save(step, state(step));
  const std::string newest = folder_ + "/step-000003.pt";
  write_file(newest, read_file(newest).substr(0, 200));
  const auto loaded = store.load_newest();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->saved.step, 2);
  EXPECT_EQ(step_in(loaded->value), 2);
  EXPECT_THAT(loaded->damaged,
              ElementsAre(AllOf(Field(&CheckpointStore::Damaged::path, newest),
                                Field(&CheckpointStore::Damaged::why, HasSubstr("step-000003.pt: ")))));
}

// Its content may be good: a disk that comes and goes, another user's file.
TEST_F(CheckpointStoreTest, ANewestThatCantBeOpenedIsNotPassedOver) {
  CheckpointStore store(folder_);
  for (int64_t step = 1; step <= 2; ++step) store.save(step, state(step));
  const std::string newest = folder_ + "/step-000002.pt";
  fs::remove(newest);
  fs::create_symlink(newest, newest);  // to itself, for root may open anything
  EXPECT_THAT(error_of<IoError>([&] { store.load_newest(); }), HasSubstr("step-000002.pt: can't be opened"));
}

TEST_F(CheckpointStoreTest, SaysThatNoneCanBeRead) {
  CheckpointStore store(folder_);
  for (int64_t step = 1; step <= 2; ++step) {
    store.save(step, state(step));
    write_file(folder_ + "/step-00000" + std::to_string(step) + ".pt", "");
  }
  EXPECT_THAT(error_of<DataError>([&] { store.load_newest(); }),
              testing::AllOf(HasSubstr("none of 2 checkpoints"), HasSubstr("step-000002.pt: the file is empty")));
}

TEST_F(CheckpointStoreTest, CleansUpAfterAKilledWriter) {
  CheckpointStore store(folder_);
  store.save(1, state(1));
  write_file(folder_ + "/step-000002.pt.tmp", "half");
  write_file(folder_ + "/notes.pt.tmp", "the user's own");
  store.save(3, state(3));
  EXPECT_FALSE(fs::exists(folder_ + "/step-000002.pt.tmp"));
  EXPECT_TRUE(fs::exists(folder_ + "/notes.pt.tmp"));
}

// The next load would take them for the newest.
TEST_F(CheckpointStoreTest, RefusesToSaveBelowLaterOnes) {
  CheckpointStore store(folder_);
  EXPECT_NO_THROW(store.refuse_later(1));
  store.save(4, state(4));
  store.save(6, state(6));
  EXPECT_NO_THROW(store.refuse_later(6));
  EXPECT_THAT(error_of<ConfigError>([&] { store.refuse_later(5); }),
              AllOf(HasSubstr("step 5: "), HasSubstr("step-000006.pt is of a later step"), HasSubstr("cut_back(5)")));
  write_file(folder_ + "/step-000006.pt", "damaged");
  EXPECT_NO_THROW(store.refuse_later(5));
}

TEST_F(CheckpointStoreTest, OtherFilesAreNoCheckpoints) {
  CheckpointStore store(folder_);
  store.save(1, state(1));
  for (const char* name : {"step-.pt", "step-12.pt", "step-000001.pt.bak", "step-00000x.pt", "step--00001.pt"}) {
    write_file(folder_ + "/" + name, "x");
  }
  EXPECT_THAT(steps(), ElementsAre(1));
}

TEST_F(CheckpointStoreTest, SaysWhyItCantSave) {
  write_file(dir_ / "run", "a file in the folder's place");
  CheckpointStore store(folder_);
  EXPECT_THAT(error_of<IoError>([&] { store.save(1, state(1)); }), HasSubstr("can't be made"));
  EXPECT_THROW(CheckpointStore(dir_.path()).mark_best(9), BugError);
}

TEST_F(CheckpointStoreTest, WhatKilledWritersHaveLeftGoesBeforeTheRunGoesOn) {
  CheckpointStore store(folder_);
  store.save(1, state(1));
  for (const char* name : {"step-000002.pt.tmp", "INTERRUPTED.pt.tmp", "last.pt.tmp"}) {
    write_file(folder_ + "/" + name, "half");
  }
  write_file(folder_ + "/notes.tmp", "a user's own");
  store.cut_back(1);
  for (const char* name : {"step-000002.pt.tmp", "INTERRUPTED.pt.tmp", "last.pt.tmp"}) {
    EXPECT_FALSE(fs::exists(folder_ + "/" + name)) << name;
  }
  EXPECT_TRUE(fs::exists(folder_ + "/notes.tmp"));
  EXPECT_THAT(steps(), ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::checkpoint
