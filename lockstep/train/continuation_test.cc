#include "lockstep/train/continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/train/testing/least_state.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing_support::refusal;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto state = testing_support::least_state;

std::string record(int64_t step) { return cat(R"({"kind":"eval","split":"test","step":)", step, "}\n"); }

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A run of 4 steps with checkpoints of steps 2 and 4, and metrics of each step.
class Continuation : public ::testing::Test {
 protected:
  Continuation() {
    fs::create_directories(files_.folder);
    checkpoint::CheckpointStore store(files_.checkpoints());
    for (const int64_t step : {2, 4}) store.save(step, state(step));
    store.mark_best(4);
    std::ofstream metrics(files_.metrics());
    for (int step = 1; step <= 4; ++step) metrics << record(step);
    std::ofstream(files_.final_json()) << "{\"steps\": 4}";
  }
  std::string step_file(int64_t step) const { return files_.checkpoints() + "/" + checkpoint::step_file_name(step); }

  const ::lockstep::testing_support::TempDir dir_;
  const RunFiles files_{dir_ / "run"}, fork_{dir_ / "fork"};
};

TEST_F(Continuation, CuttingBackSaysWhatItDropped) {
  const Continued done = cut_back(files_, 2, step_file(2));
  EXPECT_THAT(done.dropped, ElementsAre("step-000004.pt", "best.pt", "metrics of steps 3 to 4", "final.json"));
  EXPECT_THAT(done.evaluated, ElementsAre("test"));
  EXPECT_TRUE(fs::exists(step_file(2)));
  EXPECT_FALSE(fs::exists(step_file(4)));
  EXPECT_THAT(cut_back(files_, 2, step_file(2)).dropped, IsEmpty());
}

TEST_F(Continuation, ARunThatWasKilledAfterItsEndKeepsItsResults) {
  std::ofstream(files_.metrics(), std::ios::app) << "{\"kind\":\"train\",\"step\":5}\n";
  EXPECT_THAT(cut_back(files_, 4, step_file(4)).dropped, ElementsAre("metrics of steps 5 to 5"));
  EXPECT_TRUE(fs::exists(files_.final_json()));
}

TEST_F(Continuation, AnInterruptedStateThatTheRunGoesOnFromIsNumbered) {
  checkpoint::write_pt(state(5), files_.interrupted());
  const ResumedCheckpoint from = read_resumed(files_.folder);
  EXPECT_EQ(from.state.step, 5);
  EXPECT_THAT(cut_back(files_, 5, from.file).dropped, IsEmpty());
  EXPECT_FALSE(fs::exists(files_.interrupted()));
  EXPECT_EQ(fs::read_symlink(files_.last()), "step-000005.pt");
  EXPECT_EQ(read_resumed(files_.folder).state.step, 5) << "a run that is killed before its first save";
}

TEST_F(Continuation, AnInterruptedStateIsTheSameHoweverItsPathIsSpelt) {
  checkpoint::write_pt(state(5), files_.interrupted());
  const auto from = read_resumed(files_.folder + "/");
  EXPECT_EQ(cut_back(files_, 5, from.file).dropped, std::vector<std::string>{});
  EXPECT_TRUE(fs::exists(step_file(5)));
}

TEST_F(Continuation, AnInterruptedStateThatTheRunDoesNotGoOnFromGoes) {
  checkpoint::write_pt(state(5), files_.interrupted());
  EXPECT_THAT(cut_back(files_, 4, step_file(4)).dropped, ElementsAre("INTERRUPTED.pt"));
}

TEST_F(Continuation, AnInterruptedStateCountsOnlyIfNoneIsOfALaterStep) {
  checkpoint::write_pt(state(3), files_.interrupted());
  EXPECT_EQ(read_resumed(files_.folder).file, step_file(4));
  checkpoint::write_pt(state(4), files_.interrupted());
  EXPECT_EQ(read_resumed(files_.folder).file, files_.interrupted());
}

TEST_F(Continuation, AnInterruptedStateThatIsNotTheNewestIsNotGoneBackTo) {
  checkpoint::write_pt(state(3), files_.interrupted());
  EXPECT_THAT(refusal([&] { refuse_going_back(files_, read_resumed(files_.interrupted()), files_.interrupted()); }),
              AllOf(HasSubstr("INTERRUPTED.pt: of step 3, and the run has a later checkpoint, " + step_file(4)),
                    HasSubstr("--overwrite")));
  for (const std::string& newest : {files_.folder, files_.last(), step_file(4)}) {
    EXPECT_EQ(refusal([&] { refuse_going_back(files_, read_resumed(newest), newest); }), "") << newest;
  }
}

TEST_F(Continuation, AFolderStandsForTheCheckpointThatAResumeWouldTake) {
  EXPECT_EQ(find_checkpoint("inspect", step_file(2)).file, step_file(2));
  checkpoint::write_pt(state(3), files_.interrupted());
  EXPECT_EQ(find_checkpoint("inspect", files_.folder).file, step_file(4)) << "not by its name";
  EXPECT_THAT(find_checkpoint("inspect", files_.folder).warnings, IsEmpty());
  checkpoint::write_pt(state(5), files_.interrupted());
  EXPECT_EQ(find_checkpoint("inspect", files_.folder).file, files_.interrupted());
  fs::remove(files_.interrupted());
  fs::resize_file(step_file(4), 100);
  const auto named = find_checkpoint("inspect", files_.folder);
  EXPECT_EQ(named.file, step_file(2));
  EXPECT_THAT(named.warnings, ElementsAre(AllOf(HasSubstr(step_file(4)), HasSubstr("taking " + step_file(2)))));
  EXPECT_THAT(refusal([&] { find_checkpoint("inspect", dir_.path()); }), HasSubstr("no checkpoint"));
}

TEST_F(Continuation, AnyFolderStandsForItsNewestCheckpoint) {
  for (const std::string& folder : {files_.folder, files_.checkpoints()}) {
    EXPECT_EQ(find_any_checkpoint("inspect", folder).file, step_file(4));
  }
  checkpoint::write_pt(state(5), files_.interrupted());
  EXPECT_EQ(find_any_checkpoint("inspect", files_.checkpoints()).file, files_.interrupted());
  fs::remove(files_.interrupted());
  checkpoint::write_pt(checkpoint::Dict{{"step", 9}}, step_file(9));  // as a loop of one's own may
  EXPECT_EQ(find_any_checkpoint("inspect", files_.folder).file, step_file(9));
  fs::resize_file(step_file(9), 100);
  EXPECT_EQ(find_any_checkpoint("inspect", files_.folder).file, step_file(4));
  EXPECT_THAT(find_any_checkpoint("inspect", files_.folder).warnings, ElementsAre(HasSubstr(step_file(9))));
  EXPECT_THAT(refusal([&] { find_any_checkpoint("inspect", dir_.path()); }), HasSubstr("no checkpoint"));
}

TEST_F(Continuation, ADamagedCheckpointIsKeptAside) {
  fs::resize_file(step_file(4), 100);
  const ResumedCheckpoint from = read_resumed(files_.folder);
  EXPECT_EQ(from.file, step_file(2));
  EXPECT_THAT(set_aside(from),
              ElementsAre(AllOf(HasSubstr("step-000004.pt: "), HasSubstr("step-000004.pt.damaged now"))));
  EXPECT_THAT(cut_back(files_, 2, from.file).dropped, Not(Contains("step-000004.pt")));
  EXPECT_EQ(fs::file_size(step_file(4) + ".damaged"), 100u);
}

TEST_F(Continuation, AForkStandsForItselfAndLeavesItsParentAlone) {
  const std::string metrics = text_of(files_.metrics());
  fs::create_directories(fork_.folder);
  const Continued done = take_over(fork_, read_resumed(step_file(2)));
  EXPECT_THAT(done.evaluated, ElementsAre("test"));
  EXPECT_EQ(text_of(fork_.metrics()), record(1) + record(2));
  const checkpoint::CheckpointStore store(fork_.checkpoints());
  ASSERT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.list()[0].step, 2);
  EXPECT_EQ(store.best(), std::nullopt) << "the parent's is of a later step";
  EXPECT_EQ(text_of(files_.metrics()), metrics);
  EXPECT_TRUE(fs::exists(step_file(4)) && fs::exists(files_.final_json()));
}

TEST_F(Continuation, AForkTakesTheBestSoFar) {
  checkpoint::CheckpointStore(files_.checkpoints()).mark_best(2);
  fs::create_directories(fork_.folder);
  take_over(fork_, read_resumed(step_file(4)));
  const checkpoint::CheckpointStore store(fork_.checkpoints());
  EXPECT_EQ(store.best(), 2);
  EXPECT_EQ(fs::read_symlink(fork_.checkpoints() + "/last.pt"), "step-000004.pt");
}

// The run goes on after the checkpoint was read: the link then leads to a later step.
TEST_F(Continuation, AForkIsOfTheCheckpointThatWasRead) {
  fs::create_directories(fork_.folder);
  const ResumedCheckpoint from = read_resumed(files_.last());
  EXPECT_EQ(from.file, step_file(4)) << "the name says which it is";
  checkpoint::CheckpointStore(files_.checkpoints(), {.keep_last = 1}).save(6, state(6));
  take_over(fork_, from);
  EXPECT_EQ(fs::read_symlink(fork_.last()), "step-000004.pt");
  EXPECT_EQ(read_resumed(fork_.last()).state.step, 4);
}

// A best.pt whose file was removed by hand is none.
TEST_F(Continuation, AForkOfARunWhoseBestIsGoneHasNone) {
  checkpoint::CheckpointStore(files_.checkpoints()).mark_best(2);
  fs::remove(step_file(2));
  fs::create_directories(fork_.folder);
  take_over(fork_, read_resumed(step_file(4)));
  EXPECT_EQ(checkpoint::CheckpointStore(fork_.checkpoints()).best(), std::nullopt);
  EXPECT_EQ(fs::read_symlink(fork_.last()), "step-000004.pt");
}

TEST_F(Continuation, AForkThatFailsLeavesNothing) {
  checkpoint::CheckpointStore(files_.checkpoints()).mark_best(2);
  const ResumedCheckpoint from = read_resumed(step_file(4));
  fs::create_directories(fork_.best() + "/in the way");
  EXPECT_THROW(take_over(fork_, from), IoError);
  EXPECT_TRUE(checkpoint::step_files_in(fork_.checkpoints()).empty());
  EXPECT_FALSE(fs::is_symlink(fork_.last()) || fs::exists(fork_.metrics()));
}

TEST_F(Continuation, AForkOfALoneCheckpointHasNoHistory) {
  fs::copy_file(step_file(2), dir_ / "lone.pt");
  fs::create_directories(fork_.folder);
  EXPECT_THAT(take_over(fork_, read_resumed(dir_ / "lone.pt")).evaluated, IsEmpty());
  EXPECT_FALSE(fs::exists(fork_.metrics()));
}

}  // namespace
}  // namespace lockstep::train
