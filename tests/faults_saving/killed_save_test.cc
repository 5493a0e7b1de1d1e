// A save whose process is killed after any of its calls on files: what was saved before is there, or what it was
// saving.
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "saves.h"
#include "traced.h"

namespace lockstep::faults {
namespace {

using testing_support::TempDir;

// The number of calls that a save makes.
size_t calls_of_a_save(Writer writer) {
  const TempDir dir;
  const std::string run = dir / "run";
  copy_two_saves(run);
  size_t calls = 0;
  const Traced done = run_traced(
      run, [&] { return try_save(run, 3, Size::kLarge, writer); },
      [&](size_t, const DiskCall&) { return ++calls, kPass; });
  EXPECT_EQ(done.said, "saved");
  return calls;
}

// Kills a save after `call` calls, and says what it was about to do.
std::string save_and_kill(Writer writer, const std::string& run, size_t call) {
  std::string at;
  const Traced killed = run_traced(
      run, [&] { return try_save(run, 3, Size::kLarge, writer); },
      [&](size_t number, const DiskCall& each) {
        if (number == call) at = text_of(each);
        return Decision{.then_kill = number == call};
      });
  EXPECT_TRUE(killed.killed) << killed.said;
  return at;
}

class KilledSave : public ::testing::TestWithParam<Writer> {};
INSTANTIATE_TEST_SUITE_P(Writers, KilledSave, ::testing::Values(Writer::kRank, Writer::kKeeper),
                         [](const auto& each) { return name_of(each.param); });

TEST_P(KilledSave, LeavesAWholeCheckpointWhateverTheMoment) {
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  const size_t calls = calls_of_a_save(GetParam());
  ASSERT_GE(calls, 10u) << "the tracer sees too little";
  bool seen_old = false, seen_new = false;
  for (size_t call = 0; call < calls; ++call) {
    const TempDir dir;
    const std::string run = dir / "run";
    copy_two_saves(run);
    SCOPED_TRACE("after call " + std::to_string(call) + ": " + save_and_kill(GetParam(), run, call));
    ASSERT_EQ(wrong_in(run, 2, 3), "");
    const bool is_new = store_in(run).list().back().step == 3;
    (is_new ? seen_new : seen_old) = true;
    ASSERT_TRUE(std::filesystem::is_symlink(folder_in(run) + "/last.pt"));
    // The run goes on: the next save leaves nothing of the killed one.
    ASSERT_EQ(try_save(run, 4, Size::kLarge, GetParam()), "saved");
    ASSERT_EQ(wrong_in(run, 4, 4), "");
    ASSERT_EQ(left_over_in(run), "");
  }
  EXPECT_TRUE(seen_old && seen_new) << "no kill came before, or none after, the file had its name";
}

// The first save of a run makes the folder.
TEST_P(KilledSave, OfARunWithoutACheckpointLeavesNoneOrAWholeOne) {
  if (!can_trace()) GTEST_SKIP() << "processes can't be traced here (ptrace)";
  for (size_t call = 0;; ++call) {
    const TempDir dir;
    size_t calls = 0;
    const Traced done = run_traced(
        dir.path(), [&] { return try_save(dir.path(), 1, Size::kLarge, GetParam()); },
        [&](size_t number, const DiskCall&) {
          ++calls;
          return Decision{.then_kill = number == call};
        });
    if (!done.killed) {
      EXPECT_GE(call, 5u);
      break;
    }
    if (!store_in(dir.path()).list().empty()) ASSERT_EQ(wrong_in(dir.path(), 1, 1), "") << "after call " << call;
    ASSERT_EQ(try_save(dir.path(), 2, Size::kLarge, GetParam()), "saved") << "after call " << call;
    ASSERT_EQ(wrong_in(dir.path(), 2, 2), "") << "after call " << call;
  }
}

}  // namespace
}  // namespace lockstep::faults
