#include "lockstep/launch/strays.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lockstep/base/shared_memory.h"
#include "lockstep/launch/testing/alive.h"

namespace lockstep::launch {
namespace {

// Starts a shell that leaves a daemon behind, in a session of its own, and ends. Returns the daemon's number.
pid_t daemon_of(const std::string& script) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const pid_t shell = fork();
  if (shell == 0) {
    dup2(writer.get(), STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", ("setsid sh -c 'echo $$; exec >/dev/null; " + script + "' &").c_str(), nullptr);
    _exit(1);
  }
  writer = Descriptor();
  waitpid(shell, nullptr, 0);
  char text[32] = {};
  EXPECT_GT(read(reader.get(), text, sizeof text - 1), 0);
  return std::atoi(text);
}

TEST(Strays, DaemonsAreEndedWithAllThatTheyHaveStarted) {
  pid_t before = fork();
  if (before == 0) {
    pause();
    _exit(0);
  }
  {
    const Strays strays;
    const pid_t daemon = daemon_of("sleep 100 & sleep 100");
    EXPECT_TRUE(alive(daemon));
    strays.end({});
    EXPECT_TRUE(gone_within({daemon}, 0.1));
  }
  EXPECT_TRUE(alive(before)) << "was there before";
  kill(before, SIGKILL);
  waitpid(before, nullptr, 0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no remains";
}

TEST(Strays, RemainsOfDaemonsAreTaken) {
  const Strays strays;
  const pid_t daemon = daemon_of("exit 0");
  for (int i = 0; i < 1000 && alive(daemon); ++i) usleep(1000);
  strays.reap({daemon});
  EXPECT_EQ(kill(daemon, 0), 0) << "a rank's are its owner's";
  strays.reap({});
  EXPECT_EQ(kill(daemon, 0), -1);
}

}  // namespace
}  // namespace lockstep::launch
