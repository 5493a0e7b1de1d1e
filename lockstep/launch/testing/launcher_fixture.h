// Runs a launcher in a process of its own, with shells or board_worker as its ranks.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/launcher.h"

namespace lockstep::launch {

inline std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class LauncherTest : public testing::Test {
 protected:
  LauncherTest() {
    std::string folder = testing::TempDir() + "/launch-XXXXXX";
    folder_ = mkdtemp(folder.data());
    std::filesystem::create_directories(folder_ + "/logs");
    std::filesystem::create_directories(folder_ + "/errors");
    std::filesystem::create_directories(folder_ + "/pids");
  }

  Launcher::Options shell(int nproc, const std::string& script) {
    setenv("FOLDER", folder_.c_str(), 1);
    return {.command = {"/bin/sh", "-c", script}, .nproc = nproc};
  }
  Launcher::Options board_worker(int nproc, const std::string& mode, const std::string& file = "") {
    return {.command = {LOCKSTEP_BIN_DIR "/lockstep_launch_board_worker", mode, file}, .nproc = nproc};
  }

  // Runs the launcher in a process of its own, as the front is one; `meanwhile` gets its number.
  int run(Launcher::Options options, const std::function<void(pid_t)>& meanwhile = {}) {
    const pid_t front = fork();
    if (front == 0) {
      setpgid(0, 0);  // as a shell with job control starts it
      _exit(as_front(std::move(options)));
    }
    if (meanwhile) meanwhile(front);
    int status = 0;
    waitpid(front, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int as_front(Launcher::Options options) const {
    const Descriptor out(open((folder_ + "/out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    const Descriptor err(open((folder_ + "/err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    if (options.out_fd == STDOUT_FILENO) options.out_fd = out.get();
    options.err_fd = err.get();
    try {
      Launcher launcher(options);
      const int code = launcher.run();
      if (launcher.ended_by_plain_mistake()) std::ofstream(folder_ + "/plain") << "yes";
      return code;
    } catch (const Error& error) {
      std::ofstream(folder_ + "/err") << error.what();
      return error.exit_code();
    }
  }
  std::string out() const { return content(folder_ + "/out"); }
  std::string err() const { return content(folder_ + "/err"); }

  // The numbers that `count` scripts have left in pids/.
  std::vector<pid_t> pids(size_t count) const {
    std::vector<pid_t> found;
    for (const Stopwatch watch; found.size() < count && watch.seconds() < 10; usleep(2000)) {
      found.clear();
      for (const auto& file : std::filesystem::directory_iterator(folder_ + "/pids")) {
        const std::string text = content(file.path());
        if (!text.empty() && text.back() == '\n') found.push_back(std::stoi(text));
      }
    }
    EXPECT_EQ(found.size(), count);
    return found;
  }

  std::string folder_;
};

}  // namespace lockstep::launch
