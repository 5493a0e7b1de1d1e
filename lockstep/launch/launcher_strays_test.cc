// Processes that the ranks start and leave behind: none outlives the run, however it ends.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "lockstep/launch/testing/alive.h"
#include "lockstep/launch/testing/launcher_fixture.h"

namespace lockstep::launch {
namespace {

using Options = Launcher::Options;

// Scripts that leave one process behind, which writes its number to pids/daemon<rank>.
constexpr const char* kInASession = "setsid sh -c 'echo $$ >$FOLDER/pids/daemon$RANK; exec sleep 100' & ";
constexpr const char* kInASessionWithoutEnvironment =
    "env -i setsid sh -c 'echo $$ >$0; exec sleep 100' $FOLDER/pids/daemon$RANK & ";
constexpr const char* kInTheGroupWithoutEnvironment =
    "env -i sh -c 'echo $$ >$0; exec sleep 100' $FOLDER/pids/daemon$RANK & ";
// Its parent ends before the rank does.
constexpr const char* kOrphan =
    "setsid sh -c \"env -i setsid sh -c 'echo \\$\\$ >\\$0; exec sleep 100' $FOLDER/pids/daemon$RANK &\"; ";
constexpr const char* kUntilItIsThere = "while [ ! -s $FOLDER/pids/daemon$RANK ]; do sleep 0.01; done; ";

class LauncherStraysTest : public LauncherTest {
 protected:
  // Runs until the ranks end, well or not.
  std::vector<pid_t> left_by(const std::string& script, int code = 0) {
    const Stopwatch watch;
    EXPECT_EQ(run(shell(2, script + kUntilItIsThere + cat("exit ", code))), code);
    EXPECT_LT(watch.seconds(), 60) << "although they hold standard output";
    return pids(2);
  }
  // Runs until the launcher is killed.
  std::vector<pid_t> left_by_kill9(const std::string& script) {
    std::vector<pid_t> all;
    run(shell(2, script + kUntilItIsThere + "wait; sleep 100"), [&](pid_t front) {
      all = pids(2);
      kill(front, SIGKILL);
    });
    return all;
  }
};

TEST_F(LauncherStraysTest, EndWithTheRun) {
  for (const char* script : {kInASession, kInASessionWithoutEnvironment, kInTheGroupWithoutEnvironment, kOrphan}) {
    SCOPED_TRACE(script);
    std::filesystem::remove_all(folder_ + "/pids");
    std::filesystem::create_directories(folder_ + "/pids");
    EXPECT_TRUE(gone_within(left_by(script), 2));
  }
}

TEST_F(LauncherStraysTest, EndWithARunThatFails) { EXPECT_TRUE(gone_within(left_by(kOrphan, 3), 2)); }

TEST_F(LauncherStraysTest, EndWithTheFrontsKill9) {
  for (const char* script : {kInASession, kInTheGroupWithoutEnvironment}) {
    SCOPED_TRACE(script);
    std::filesystem::remove_all(folder_ + "/pids");
    std::filesystem::create_directories(folder_ + "/pids");
    EXPECT_TRUE(gone_within(left_by_kill9(script), 2));
  }
}

// A process that ends as soon as it has started its like in a new session.
TEST_F(LauncherStraysTest, OneThatFleesIsCaught) {
  const std::string program = folder_ + "/flee";
  std::ofstream(program) << "[ -e $FOLDER/stop ] && exit; echo $$ >>$FOLDER/flights; sleep 0.02; setsid sh $0 &\n";
  EXPECT_EQ(run(shell(1, "sh $FOLDER/flee; while [ $(wc -l <$FOLDER/flights) -lt 5 ]; do sleep 0.01; done")), 0);
  const std::string flights = content(folder_ + "/flights");
  usleep(300'000);
  EXPECT_EQ(content(folder_ + "/flights"), flights) << "it goes on";
  std::ofstream(folder_ + "/stop") << "for the test's own end";
}

// It adopts what its children leave behind, as the launcher does.
TEST_F(LauncherStraysTest, OneThatAdoptsOthersTakesThemAlong) {
  EXPECT_EQ(run(board_worker(1, "adopt", folder_ + "/pids/adopted")), 0);
  EXPECT_TRUE(gone_within(pids(1), 2));
}

}  // namespace
}  // namespace lockstep::launch
