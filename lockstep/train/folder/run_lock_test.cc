#include "lockstep/train/folder/run_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/testing/file_size_limit.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunLockTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv(kRunLockVariable); }
  RunLock take() { return RunLock::take(dir_.path(), "--out runs/a"); }
  bool is_free() {
    return ::lockstep::testing_support::refusal([&] { take(); }).empty();
  }
  testing_support::TempDir dir_;
};

TEST_F(RunLockTest, ASecondOwnerIsRefusedByTheName) {
  {
    const RunLock lock = take();
    EXPECT_EQ(lock.warning(), "");
    EXPECT_THAT(::lockstep::testing_support::refusal([&] { take(); }),
                AllOf(HasSubstr("--out runs/a: a run is under way there (pid " + std::to_string(getpid()) + " on "),
                      HasSubstr("wait for its end")));
    EXPECT_THROW(take(), ConfigError);
  }
  EXPECT_TRUE(is_free()) << "it goes with its owner";
}

TEST_F(RunLockTest, ALookNamesTheOwner) {
  EXPECT_EQ(owner_of(dir_.path()), LockOwner{}) << "no lock";
  EXPECT_EQ(has_lock_open(getpid(), dir_.path()), false);
  {
    const RunLock lock = take();
    EXPECT_EQ(owner_of(dir_.path()), (LockOwner{.held = true, .pid = getpid(), .host = host_name()}));
    EXPECT_EQ(has_lock_open(getpid(), dir_.path()), true);
    EXPECT_EQ(has_lock_open(getppid(), dir_.path()).value_or(false), false);
  }
  EXPECT_EQ(owner_of(dir_.path()), LockOwner{}) << "it is free";
  EXPECT_TRUE(is_free()) << "and stays so";
}

// Who looks holds the lock for a moment.
TEST_F(RunLockTest, ALookKeepsNobodyOut) {
  static int calls = 0;
  const auto looked_at = [](int, int) {
    errno = EWOULDBLOCK;
    return ++calls < 4 ? -1 : 0;
  };
  EXPECT_NO_THROW(RunLock::take(dir_.path(), "--out runs/a", {.lock_file = looked_at}));
}

TEST_F(RunLockTest, LastsAsLongAsAnyProcessHoldsItsDescriptor) {
  std::optional<RunLock> front = take();
  std::optional<Descriptor> worker(fcntl(front->descriptor(), F_DUPFD_CLOEXEC, 0));  // as a child inherits it
  front.reset();
  EXPECT_FALSE(is_free());
  worker.reset();
  EXPECT_TRUE(is_free());
}

// A killed front's workers end a moment after it.
TEST_F(RunLockTest, WaitsForWhatAKilledOwnerHasLeft) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  constexpr int kNobody = 1 << 23;  // above the kernel's largest process number
  std::ofstream(dir_ / "lock") << "pid " << kNobody << " on " << host.data() << '\n';
  static int calls = 0;
  const auto free_at_last = [](int, int) {
    errno = EWOULDBLOCK;
    return ++calls < 3 ? -1 : 0;
  };
  EXPECT_NO_THROW(RunLock::take(dir_.path(), "--out runs/a", {.lock_file = free_at_last}));
  EXPECT_EQ(calls, 3);
  std::ofstream(dir_ / "lock") << "pid " << kNobody << " on " << host.data() << '\n';
  const auto held = [](int, int) {
    errno = EWOULDBLOCK;
    return -1;
  };
  EXPECT_THAT(::lockstep::testing_support::refusal([&] {
                RunLock::take(dir_.path(), "--out runs/a",
                              {.lock_file = held, .patience = std::chrono::milliseconds(0)});
              }),
              HasSubstr("has ended, but processes that it started have not"));
  std::ofstream(dir_ / "lock") << "pid " << kNobody << " on another-host\n";
  EXPECT_THROW(RunLock::take(dir_.path(), "--out runs/a", {.lock_file = held}), ConfigError) << "at once";
}

// An earlier start of the job, on a node that the others have given up.
TEST_F(RunLockTest, WaitsForAnOwnerThatGoesOnWhereItIsAskedTo) {
  std::optional<RunLock> owner = take();
  std::string said;
  RunLock::Means means{.patience_with_owner = std::chrono::seconds(60)};
  means.say = [&](const std::string& line) {
    said = line;
    owner.reset();
  };
  EXPECT_NO_THROW(RunLock::take(dir_.path(), "--out runs/a", means));
  EXPECT_THAT(said, HasSubstr("--out runs/a: waiting for an earlier start of this run to end (pid " +
                              std::to_string(getpid()) + " on "));
}

TEST_F(RunLockTest, AWaitForAnOwnerEndsWhereAStopIsAskedFor) {
  const RunLock owner = take();
  RunLock::Means means{.patience_with_owner = std::chrono::seconds(60)};
  means.stop_asked = [] { return true; };
  try {
    RunLock::take(dir_.path(), "--out runs/a", means);
    FAIL() << "it has an owner";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitStoppedOnRequest);
    EXPECT_THAT(error.what(), HasSubstr("asked to stop before an earlier start of this run has ended (pid "));
  }
}

TEST_F(RunLockTest, AnOwnerThatIsWaitedForInVainIsNamed) {
  const RunLock owner = take();
  const RunLock::Means means{.patience_with_owner = std::chrono::milliseconds(1)};
  try {
    RunLock::take(dir_.path(), "--out runs/a", means);
    FAIL() << "it has an owner";
  } catch (const CommError& error) {  // for a further start may find it free
    EXPECT_THAT(error.what(),
                HasSubstr("an earlier start of this run has not ended (pid " + std::to_string(getpid()) + " on "));
  }
}

TEST_F(RunLockTest, NamesTheJobsCommandsUntilOthersAreNamed) {
  const std::vector<JobCommand> none, one = {{.job = "slurm 4711 of alps", .line = "train a"}};
  EXPECT_EQ(RunLock::commands_of(dir_.path()), none);
  {
    RunLock lock = take();
    EXPECT_EQ(lock.commands(), none);
    lock.mark_ended();
    EXPECT_EQ(RunLock::commands_of(dir_.path()), none) << "of no job";
    lock.set_commands(one);
    EXPECT_EQ(RunLock::commands_of(dir_.path()), one);
    EXPECT_THAT(::lockstep::testing_support::refusal([&] { take(); }),
                HasSubstr("(pid " + std::to_string(getpid()) + " on "));
  }
  RunLock later = take();
  EXPECT_EQ(later.commands(), one) << "who only took the lock has not run there";
  later.mark_ended();
  auto two = later.commands();
  EXPECT_TRUE(two.at(0).ended);
  two.insert(two.begin(), {.job = "slurm 4711 of alps, b", .line = "train b"});
  later.set_commands(two);
  EXPECT_EQ(RunLock::commands_of(dir_.path()), two);
  later.set_commands({});
  EXPECT_EQ(RunLock::commands_of(dir_.path()), none);
}

TEST_F(RunLockTest, ForgetsTheOldestCommandsOfMany) {
  std::vector<JobCommand> many;
  for (int i = 0; i < 400; ++i) many.push_back({.job = std::to_string(i), .line = std::string(1000, 'x')});
  take().set_commands(many);
  const auto kept = RunLock::commands_of(dir_.path());
  ASSERT_GT(kept.size(), 200U);
  ASSERT_LT(kept.size(), many.size());
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], many[i]);
}

// Whichever byte is the first that the disk has no room for, and however often commands were named before.
TEST_F(RunLockTest, AFullDiskLeavesTheCommandsThatAreThere) {
  const std::vector<JobCommand> none, one = {{.job = "slurm 4711 of alps", .line = "train a"}},
                                      two = {{.job = "slurm 4711 of alps, b", .line = "train b", .ended = true},
                                             {.job = "slurm 4711 of alps", .line = "train a"}};
  for (int before = 1; before <= 3; ++before) {
    for (const auto& next : {none, one, two}) {
      for (rlim_t limit = 0, refused = 1; refused > 0; ++limit) {
        const testing_support::TempDir dir;
        RunLock lock = RunLock::take(dir.path(), "--out runs/a");
        for (int i = 0; i < before; ++i) lock.set_commands(i % 2 == before % 2 ? two : one);
        const auto kept = RunLock::commands_of(dir.path());
        refused = 0;
        try {
          const testing_support::FileSizeLimit full(limit);
          lock.set_commands(next);
        } catch (const IoError&) {
          refused = 1;
        }
        ASSERT_EQ(RunLock::commands_of(dir.path()), refused > 0 ? kept : next) << before << ", " << limit << " bytes";
        lock.set_commands(next);
        ASSERT_EQ(RunLock::commands_of(dir.path()), next) << "when there is room again";
      }
    }
  }
}

TEST_F(RunLockTest, TheFileDoesNotGrow) {
  const std::vector<JobCommand> one = {{.job = "slurm 4711 of alps", .line = "train a"}};
  RunLock lock = take();
  lock.set_commands(one);
  const auto size = std::filesystem::file_size(dir_ / "lock");
  for (int i = 0; i < 100; ++i) lock.set_commands(one);
  EXPECT_LE(std::filesystem::file_size(dir_ / "lock"), 2 * size);
}

// Earlier versions wrote a text over the last one and then cut that off, and the first of them wrote no end.
TEST_F(RunLockTest, ReadsFilesOfEarlierVersions) {
  const std::string begin = "pid 1 on here\njob a\nline train a\n", tail = "job b\nline train b\n";
  std::ofstream(dir_ / "lock") << begin << "end\n" << tail;
  EXPECT_EQ(RunLock::commands_of(dir_.path()).size(), 1U);
  std::ofstream(dir_ / "lock") << begin << tail;
  EXPECT_EQ(RunLock::commands_of(dir_.path()).size(), 2U);
}

TEST_F(RunLockTest, IsInheritedByItsDescriptor) {
  EXPECT_FALSE(RunLock::inherited(dir_.path()));
  const RunLock front = take();
  const int passed = fcntl(front.descriptor(), F_DUPFD, 0);
  setenv(kRunLockVariable, std::to_string(passed).c_str(), 1);
  const testing_support::TempDir other;
  EXPECT_THAT(::lockstep::testing_support::refusal([&] { RunLock::inherited(other.path()); }),
              HasSubstr("not the lock of"));
  const auto lock = RunLock::inherited(dir_.path());
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->descriptor(), passed);
  EXPECT_EQ(fcntl(passed, F_GETFD), FD_CLOEXEC) << "its own children do not hold it";
}

TEST_F(RunLockTest, AFileSystemWithoutLocksIsToldOf) {
  const auto none = [](int, int) {
    errno = ENOLCK;
    return -1;
  };
  const RunLock lock = RunLock::take(dir_.path(), "--out runs/a", {.lock_file = none});
  EXPECT_THAT(lock.warning(), HasSubstr("this file system has no locks"));
  EXPECT_GE(lock.descriptor(), 0) << "the workers know by it that the folder is prepared";
}

TEST_F(RunLockTest, AFolderThatCantBeWrittenIsNamed) {
  EXPECT_THROW(RunLock::take(dir_ / "none", "--out none"), IoError);
}

// The file was removed between its opening and its locking.
TEST_F(RunLockTest, TakesTheFileThatIsThere) {
  static std::string path;
  path = dir_ / "lock";
  const auto remove_first = [](int, int) {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove(path, ignored);
    path.clear();
    return 0;
  };
  const RunLock lock = RunLock::take(dir_.path(), "--out runs/a", {.lock_file = remove_first});
  EXPECT_TRUE(std::filesystem::exists(dir_ / "lock"));
}

}  // namespace
}  // namespace lockstep::train
