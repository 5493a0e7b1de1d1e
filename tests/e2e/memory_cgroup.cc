#include "memory_cgroup.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "lockstep/base/text.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

bool put(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

}  // namespace

MemoryCgroup::MemoryCgroup(uint64_t bytes) {
  for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    const std::string path = cat(root, "/lockstep-test-", getpid());
    std::error_code error;
    if (!fs::create_directory(path, error)) continue;
    for (const char* limit : {"/memory.limit_in_bytes", "/memory.max"}) {
      if (fs::exists(path + limit) && put(path + limit, cat(bytes))) path_ = path;
    }
    if (is_there()) {
      if (fs::exists(path + "/memory.swap.max")) put(path + "/memory.swap.max", "0");
      return;
    }
    fs::remove(path, error);
  }
}

MemoryCgroup::~MemoryCgroup() {
  if (!is_there()) return;
  std::ifstream left(processes());
  for (pid_t pid = 0; left >> pid;) kill(pid, SIGKILL);
  std::error_code error;
  for (int tries = 0; tries < 100 && !fs::remove(path_, error); ++tries) usleep(20'000);
}

std::vector<std::string> MemoryCgroup::entered_by(std::vector<std::string> command) const {
  const std::string script = "echo $$ > " + processes() + " && exec \"$@\"";
  command.insert(command.begin(), {"/bin/sh", "-c", script, "enter"});
  return command;
}

int64_t MemoryCgroup::kills() const {
  for (const char* name : {"/memory.events", "/memory.oom_control"}) {
    std::ifstream file(path_ + name);
    std::string key;
    for (int64_t count = 0; file >> key >> count;) {
      if (key == "oom_kill") return count;
    }
  }
  return 0;
}

bool MemoryCgroup::fill_until_it_kills(pid_t victim) const {
  constexpr size_t kPiece = 4 << 20;
  constexpr int kMostPieces = 4096;
  const int64_t before = kills();
  put(cat("/proc/", victim, "/oom_score_adj"), "1000");
  const pid_t child = fork();
  if (child == 0) {
    if (!put(processes(), cat(getpid()))) _exit(1);
    for (int piece = 0; piece < kMostPieces && kills() == before; ++piece) {
      void* memory = mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) _exit(1);
      std::memset(memory, 1, kPiece);
    }
    _exit(kills() == before ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return kills() > before;
}

}  // namespace lockstep::e2e
