// Ranks as real processes, for tests: each runs a rank program, which the test names, in a copy of the test program
// (rank_template.h). Expectations in a rank program count: a rank in which one fails exits with 1.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/node_memory.h"

namespace lockstep::testing_support {

struct RankContext {
  int rank;
  int size;
  NodeMemory memory;
  std::string argument;  // what the test passed on
};

using RankProgram = std::function<void(RankContext&)>;

// Use RANK_PROGRAM(name) { … context.rank … } at namespace scope.
struct RegisterRankProgram {
  RegisterRankProgram(const char* name, RankProgram program);
};

#define RANK_PROGRAM(name)                                                                                   \
  static void rank_program_##name(::lockstep::testing_support::RankContext& context);                        \
  static const ::lockstep::testing_support::RegisterRankProgram register_##name(#name, rank_program_##name); \
  static void rank_program_##name([[maybe_unused]] ::lockstep::testing_support::RankContext& context)

struct RankResult {
  int exit_code = -1;  // 128 + N for signal N
  double seconds = 0;  // from the start of the ranks to this one's end
  std::string output;  // stdout and stderr
};

// The ranks of one program, started at construction and killed at destruction.
class Ranks {
 public:
  Ranks(const std::string& program, int size, const std::string& argument = "",
        const std::map<std::string, std::string>& environment = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void signal(int rank, int number);
  const NodeMemory& memory() const { return memory_; }

  // Waits until all have ended; kills what is left after the timeout (their exit code is then 137).
  std::vector<RankResult> wait(std::chrono::seconds timeout = std::chrono::seconds(60));

 private:
  struct Rank {
    pid_t pid = -1;
    std::string output_path;
    RankResult result;
    bool ended = false;
  };

  void start(const std::string& program, int rank, const std::string& argument,
             const std::map<std::string, std::string>& environment);
  bool reap(double seconds);

  NodeMemory memory_;
  std::vector<Rank> ranks_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Runs the ranks and expects all of them to exit with 0; shows what they printed where not.
void expect_ranks_pass(const std::string& program, int size, const std::string& argument = "");

}  // namespace lockstep::testing_support
