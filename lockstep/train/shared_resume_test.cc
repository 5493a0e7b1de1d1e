#include "lockstep/train/shared_resume.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/testing/least_state.h"
#include "support/worlds.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr auto state = testing_support::least_state;

// Saves steps 10, 11, … until the test ends.
class WritingRun {
 public:
  explicit WritingRun(const RunFiles& files) : store_(files.checkpoints(), {.keep_last = 3}) {
    store_.save(9, state(9));
    thread_ = std::jthread([this](const std::stop_token& stop) {
      for (int64_t step = 10; !stop.stop_requested(); ++step) {
        store_.save(step, state(step));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  }

 private:
  checkpoint::CheckpointStore store_;
  std::jthread thread_;
};

RANK_PROGRAM(reads_a_run_under_way) {
  const auto world = ::lockstep::testing_support::join_world(context);
  for (int i = 0; i < 20; ++i) {
    for (const std::string& resume : {context.argument, RunFiles{context.argument}.last()}) {
      const ResumedCheckpoint read = read_resumed(resume, *world, {}, context.argument);
      const std::string own = cat(read.state.step, ' ', read.file);
      for (const auto& each : comm::gather_texts(world->communicator(), own)) EXPECT_EQ(each, own);
      EXPECT_EQ(fs::path(read.file).filename(), checkpoint::step_file_name(read.state.step));
    }
  }
}

TEST(SharedResume, RanksReadTheSameCheckpointOfARunUnderWay) {
  const ::lockstep::testing_support::TempDir dir;
  const RunFiles files{dir / "run"};
  const WritingRun run(files);
  ::lockstep::testing_support::expect_ranks_pass("reads_a_run_under_way", 3, files.folder);
}

}  // namespace
}  // namespace lockstep::train
