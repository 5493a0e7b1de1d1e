// A snapshot one of whose ranks is killed while it copies, at every quarter of a megabyte: the torn slot is never taken
// for whole, and what is saved is the snapshot before it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/fill_slot.h"
#include "lockstep/checkpoint/formats/pt_image.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"
#include "saves.h"

namespace lockstep::faults {
namespace {

using checkpoint::Value;
using checkpoint::testing_support::read_file;
using testing_support::TempDir;

constexpr int kRanks = 2;
constexpr size_t kQuarter = 256 << 10;

Value state_of_step(int64_t step) {
  checkpoint::Dict model;
  for (const char* name : {"first", "second", "third"}) {
    model.set(name, at::arange(200'000, at::kFloat).add(static_cast<double>(step)));
  }
  return checkpoint::Dict{{"model", std::move(model)}, {"step", step}};
}

class TornSnapshot : public testing::Test {
 protected:
  TornSnapshot() {
    at::set_num_threads(1);  // the tests fork
    fill(0, 1, [](char*) {});
  }

  // Both ranks fill the slot with the step's image, each in a process of its own and at the same time. `prepare` is
  // called in that of rank `victim`. Returns whether it died.
  bool fill(int victim, int64_t step, const std::function<void(char* image)>& prepare) {
    const Value state = state_of_step(step);
    const checkpoint::PtImage image(state);
    bytes_ = image.bytes();
    const int slot = slots_->choose().value();
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(fork());
      if (ranks.back() != 0) continue;
      const rlimit none{0, 0};
      setrlimit(RLIMIT_CORE, &none);
      signal(SIGSEGV, SIG_DFL);
      const checkpoint::Slots own(memory_.get());
      if (rank == victim) prepare(own.room(slot).data());
      checkpoint::fill_slot(own, slot, image, {}, kRanks, rank);
      own.end(slot, rank, step);
      _exit(0);
    }
    bool died = false;
    for (int rank = 0; rank < kRanks; ++rank) {
      int status = 0;
      waitpid(ranks[static_cast<size_t>(rank)], &status, 0);
      died = died || WIFSIGNALED(status);
      EXPECT_TRUE(rank == victim || status == 0);
    }
    return died;
  }

  Descriptor memory_ = checkpoint::Slots::create(kRanks);
  std::shared_ptr<checkpoint::Slots> slots_ = std::make_shared<checkpoint::Slots>(memory_.get());
  size_t bytes_ = 0;
};

TEST_F(TornSnapshot, IsNeverTakenForWhole) {
  ASSERT_TRUE(slots_->newest());
  int torn = 0;
  int64_t step = 1;
  for (int victim = 0; victim < kRanks; ++victim) {
    for (size_t at = 0; at < bytes_; at += kQuarter) {
      // Who writes there is killed by the page.
      const bool died =
          fill(victim, ++step, [&](char* image) { mprotect(image + at, std::min(kQuarter, bytes_ - at), PROT_NONE); });
      if (!died) continue;  // it is another rank's, and the slot is whole
      ++torn;
      const auto newest = slots_->newest();
      ASSERT_TRUE(newest) << at;
      ASSERT_LT(newest->step, step) << "killed at " << at;
      const TempDir dir;
      checkpoint::Keeper keeper(slots_, {.folder = dir / "checkpoints", .keep_last = 2});
      const auto asked = keeper.ask_newest();
      ASSERT_TRUE(asked);
      while (!keeper.at_rest()) usleep(500);
      const std::string whole =
          checkpoint::CheckpointStore(dir / "expected").save(newest->step, state_of_step(newest->step));
      ASSERT_EQ(slots_->header().failed.load(), 0U) << slots_->header().error.get();
      EXPECT_TRUE(read_file(asked->path) == read_file(whole)) << "killed at " << at << ", step " << newest->step;
    }
  }
  EXPECT_GE(torn, 5) << "it was seldom killed";
}

}  // namespace
}  // namespace lockstep::faults
