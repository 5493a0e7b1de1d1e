#include "lockstep/launch/spawn.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/testing/alive.h"
#include "lockstep/world/world.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path + ".part", std::ios::binary) << text;
  std::filesystem::rename(path + ".part", path);
}

bool eventually(const std::function<bool()>& condition) {
  for (const Stopwatch watch; watch.seconds() < 20; usleep(2000)) {
    if (condition()) return true;
  }
  return false;
}

using launch::alive;

// Arguments: a folder, then a number that every rank adds its own to.
void add_up(int rank, const SpawnArguments& arguments) {
  const auto world = init();
  const at::Tensor sum = at::full({3}, std::stod(arguments[1]) + rank, at::kDouble);
  world->communicator().all_reduce(sum, comm::ReduceOp::kSum);
  write(cat(arguments[0], '/', world->rank()), cat(world->size(), ' ', sum[0].item<double>()));
}
LOCKSTEP_SPAWNABLE(add_up);

// Rank 1 goes wrong, as the argument says; the others wait for it.
void go_wrong(int rank, const SpawnArguments& arguments) {
  const auto world = init();
  if (rank == 1) {
    if (arguments[0] == "throw") throw DataError("sample 7 is damaged");
    if (arguments[0] == "exit") std::exit(3);
    raise(SIGKILL);
  }
  world->communicator().barrier();
}
LOCKSTEP_SPAWNABLE(go_wrong);

void sleep_long(int /*rank*/, const SpawnArguments& /*arguments*/) { sleep(600); }
LOCKSTEP_SPAWNABLE(sleep_long);

void tell_command(int /*rank*/, const SpawnArguments& arguments) { write(arguments[0], read("/proc/self/cmdline")); }
LOCKSTEP_SPAWNABLE(tell_command);

// A parent that is killed: it spawns sleepers in turn, and leaves their numbers.
void spawn_sleepers(int /*rank*/, const SpawnArguments& arguments) {
  const Spawned sleepers = spawn(sleep_long, {}, 2, /*join=*/false);
  write(arguments[0], cat(sleepers.pids()[0], ' ', sleepers.pids()[1]));
  sleep(600);
}
LOCKSTEP_SPAWNABLE(spawn_sleepers);

void unregistered(int /*rank*/, const SpawnArguments& /*arguments*/) {}

class Spawn : public testing::Test {
 protected:
  Spawn() {
    std::string folder = testing::TempDir() + "/spawn-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~Spawn() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

// The line and the code that spawn() ends with.
std::pair<std::string, int> failure_of(const std::string& how) {
  try {
    spawn(go_wrong, {how}, 3);
  } catch (const Error& error) {
    return {error.what(), error.exit_code()};
  }
  return {"", 0};
}

TEST_F(Spawn, RanksMeetInInit) {
  spawn(add_up, {folder_, "10.5"}, 2);
  EXPECT_EQ(read(file("0")), "2 22");
  EXPECT_EQ(read(file("1")), "2 22");
}

TEST_F(Spawn, IsSafeWhileThreadsAllocateAndSpawn) {
  std::atomic<bool> stop = false;
  std::atomic<int64_t> bytes = 0;
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!stop) bytes += std::ssize(std::vector<char>(100'000, 'x'));
    });
  }
  std::vector<std::thread> spawning;
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directory(file(name));
    spawning.emplace_back([this, name] { spawn(add_up, {file(name), "1"}, 2); });
  }
  for (auto& thread : spawning) thread.join();
  stop = true;
  for (auto& thread : busy) thread.join();
  EXPECT_EQ(read(file("a/1")), "2 3");
  EXPECT_EQ(read(file("b/0")), "2 3");
}

TEST_F(Spawn, TheFirstFailureIsTheCallersError) {
  const Stopwatch watch;
  const auto [line, code] = failure_of("throw");
  EXPECT_THAT(line, MatchesRegex("spawn: rank 1 \\(pid [0-9]+\\) failed: sample 7 is damaged"));
  EXPECT_EQ(code, DataError::kExitCode);
  EXPECT_LT(watch.seconds(), 15);
}

TEST_F(Spawn, ExitCodesAndSignalsAreTold) {
  const auto [exit_line, exit_code] = failure_of("exit");
  EXPECT_THAT(exit_line, MatchesRegex("spawn: rank 1 \\(pid [0-9]+\\) exited with code 3"));
  EXPECT_EQ(exit_code, 3);
  const auto [kill_line, kill_code] = failure_of("kill");
  EXPECT_THAT(kill_line, MatchesRegex("spawn: rank 1 \\(pid [0-9]+\\) was killed by SIGKILL"));
  EXPECT_EQ(kill_code, 128 + SIGKILL);
}

TEST_F(Spawn, WithoutJoinThereIsAHandle) {
  Spawned adding = spawn(add_up, {folder_, "1"}, 2, /*join=*/false);
  EXPECT_EQ(adding.pids().size(), 2u);
  adding.wait();
  EXPECT_EQ(read(file("0")), "2 3");

  Spawned failing = spawn(go_wrong, {"exit"}, 2, /*join=*/false);
  EXPECT_THROW(failing.wait(), Error);
}

TEST_F(Spawn, TerminateEndsThem) {
  Spawned sleepers = spawn(sleep_long, {}, 2, /*join=*/false);
  EXPECT_TRUE(alive(sleepers.pids()[0]) && alive(sleepers.pids()[1]));
  const Stopwatch watch;
  sleepers.terminate();
  EXPECT_LT(watch.seconds(), 5);
  EXPECT_FALSE(alive(sleepers.pids()[0]) || alive(sleepers.pids()[1]));
  sleepers.wait();
}

TEST_F(Spawn, TheyGoWithTheirHandleNotWithTheThreadThatSpawned) {
  std::optional<Spawned> sleepers;
  std::thread([&sleepers] { sleepers.emplace(spawn(sleep_long, {}, 2, /*join=*/false)); }).join();
  const auto pids = sleepers->pids();
  usleep(50'000);
  EXPECT_TRUE(alive(pids[0]) && alive(pids[1]));
  sleepers.reset();
  EXPECT_FALSE(alive(pids[0]) || alive(pids[1]));
}

TEST_F(Spawn, TheyGoWithTheirParent) {
  const Spawned parent = spawn(spawn_sleepers, {file("pids")}, 1, /*join=*/false);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file("pids")); }));
  pid_t first = 0, second = 0;
  std::istringstream(read(file("pids"))) >> first >> second;
  EXPECT_TRUE(alive(first) && alive(second));
  kill(parent.pids()[0], SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(first) && !alive(second); }));
}

TEST_F(Spawn, RanksHaveTheCommandLineOfTheirParent) {
  spawn(tell_command, {file("command")});
  EXPECT_EQ(read(file("command")), read("/proc/self/cmdline"));
}

TEST_F(Spawn, MistakesAreRefused) {
  EXPECT_THROW(spawn(unregistered), ConfigError);
  EXPECT_THROW(spawn(sleep_long, {}, 0), ConfigError);
  EXPECT_THROW(spawn(sleep_long, {}, 65), ConfigError);
  EXPECT_THROW(spawn(sleep_long, {std::string("a\0b", 3)}), ConfigError);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::spawn_main([&] {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  });
}
