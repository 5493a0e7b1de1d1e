#include "support/ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "support/rank_template.h"

extern char** environ;

namespace lockstep::testing_support {
namespace {

std::map<std::string, RankProgram>& programs() {
  static std::map<std::string, RankProgram> all;
  return all;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What a rank does instead of running tests.
int run_as_rank(const std::string& name) {
  const auto memory = env("LOCKSTEP_NODE_MEMORY");  // not there under another launcher
  RankContext context{.rank = static_cast<int>(env_int("LOCKSTEP_TEST_RANK", 0, 1000).value_or(0)),
                      .size = static_cast<int>(env_int("LOCKSTEP_TEST_SIZE", 1, 1000).value_or(1)),
                      .memory = memory ? NodeMemory::from_env(*memory) : NodeMemory{},
                      .argument = env("LOCKSTEP_TEST_ARGUMENT").value_or("")};
  try {
    programs().at(name)(context);
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
  return testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
}

// As a program of its own.
pid_t spawn_rank(const NewRank& rank, std::string name) {
  std::vector<std::string> lines = rank.environment;
  std::vector<char*> env_pointers;
  for (auto& line : lines) env_pointers.push_back(line.data());
  env_pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, rank.output, 1);
  posix_spawn_file_actions_adddup2(&actions, rank.output, 2);
  for (const int each : rank.descriptors) posix_spawn_file_actions_adddup2(&actions, each, each);
  char* arguments[] = {name.data(), nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments, env_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw IoError("posix_spawn: ", errno_text(error));
  return pid;
}

}  // namespace

RegisterRankProgram::RegisterRankProgram(const char* name, RankProgram program) {
  programs()[name] = std::move(program);
}

Ranks::Ranks(const std::string& program, int size, const std::string& argument,
             const std::map<std::string, std::string>& environment)
    : memory_(NodeMemory::create(size)), ranks_(static_cast<size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) start(program, rank, argument, environment);
}

Ranks::~Ranks() {
  for (auto& rank : ranks_) {
    if (!rank.ended && rank.pid > 0) {
      kill(rank.pid, SIGKILL);
      waitpid(rank.pid, nullptr, 0);
    }
    unlink(rank.output_path.c_str());
  }
}

void Ranks::start(const std::string& program, int rank, const std::string& argument,
                  const std::map<std::string, std::string>& environment) {
  Rank& self = ranks_[static_cast<size_t>(rank)];
  self.output_path = testing::TempDir() + "ranks." + std::to_string(getpid()) + "." + std::to_string(rank);
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  variables["LOCKSTEP_TEST_PROGRAM"] = program;
  variables["LOCKSTEP_TEST_RANK"] = std::to_string(rank);
  variables["LOCKSTEP_TEST_SIZE"] = std::to_string(ranks_.size());
  variables["LOCKSTEP_TEST_ARGUMENT"] = argument;
  variables["LOCKSTEP_NODE_MEMORY"] = memory_.to_env();
  variables["OMP_NUM_THREADS"] = "1";
  for (const auto& [name, value] : environment) variables[name] = value;
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + '=' + value);
  std::vector<int> descriptors = {memory_.board.get(), memory_.comm.get()};
  for (const auto& pool : memory_.pools) descriptors.push_back(pool.get());
  const Descriptor output(open(self.output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const NewRank asked{lines, output.get(), descriptors};
  const auto forked = fork_rank(asked);
  self.pid = forked ? *forked : spawn_rank(asked, program);
}

void Ranks::signal(int rank, int number) { kill(ranks_[static_cast<size_t>(rank)].pid, number); }

// Collects whoever has ended; whether all have.
bool Ranks::reap(double seconds) {
  bool all = true;
  for (auto& rank : ranks_) {
    int status = 0;
    if (!rank.ended && waitpid(rank.pid, &status, WNOHANG) == rank.pid) {
      rank.ended = true;
      rank.result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      rank.result.seconds = seconds;
      rank.result.output = read_file(rank.output_path);
    }
    all = all && rank.ended;
  }
  return all;
}

std::vector<RankResult> Ranks::wait(std::chrono::seconds timeout) {
  const auto elapsed = [this] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  };
  const double deadline = elapsed() + static_cast<double>(timeout.count());
  while (!reap(elapsed())) {
    if (elapsed() > deadline) {
      for (auto& rank : ranks_) {
        if (!rank.ended) kill(rank.pid, SIGKILL);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::vector<RankResult> results;
  for (const auto& rank : ranks_) results.push_back(rank.result);
  return results;
}

void expect_ranks_pass(const std::string& program, int size, const std::string& argument) {
  const auto results = Ranks(program, size, argument).wait();
  ASSERT_EQ(results.size(), static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    const auto& result = results[static_cast<size_t>(rank)];
    EXPECT_EQ(result.exit_code, 0) << program << ", rank " << rank << " of " << size << ":\n" << result.output;
  }
}

}  // namespace lockstep::testing_support

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (lockstep::testing_support::serve_as_template()) return 0;
  if (const auto program = lockstep::env("LOCKSTEP_TEST_PROGRAM")) {
    return lockstep::testing_support::run_as_rank(*program);
  }
  return RUN_ALL_TESTS();
}
