#include "lockstep/launch/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Not;
using testing::StartsWith;

TEST(Environment, IsWhatTorchrunSets) {
  const auto variables = rank_environment(
      {"PATH=/bin", "RANK=9", "OMP_NUM_THREADS=32"},
      {.rank = 2, .world_size = 3, .master_port = 4711, .threads = 5, .node_memory = "3,4,5", .columns = 100});
  EXPECT_THAT(variables, testing::UnorderedElementsAre(
                             "PATH=/bin", "RANK=2", "LOCAL_RANK=2", "GROUP_RANK=0", "WORLD_SIZE=3",
                             "LOCAL_WORLD_SIZE=3", "TORCHELASTIC_USE_AGENT_STORE=False", "MASTER_ADDR=127.0.0.1",
                             "MASTER_PORT=4711", "OMP_NUM_THREADS=5", "MKL_NUM_THREADS=5", "LOCKSTEP_NODE_MEMORY=3,4,5",
                             "GOMP_SPINCOUNT=30000", "LOCKSTEP_PROGRESS=tty", "COLUMNS=100"));
}

TEST(Environment, ThreadsWaitAwakeForAShortTimeUnlessToldOtherwise) {
  EXPECT_THAT(rank_environment({}, {.threads = 1}), Not(Contains(StartsWith("GOMP_SPINCOUNT="))));
  EXPECT_THAT(rank_environment({"GOMP_SPINCOUNT=7"}, {.threads = 2}), Contains("GOMP_SPINCOUNT=7"));
  EXPECT_THAT(rank_environment({"OMP_WAIT_POLICY=active"}, {.threads = 2}), Not(Contains(StartsWith("GOMP_SPIN"))));
}

TEST(Environment, TheLockIsThisRunsAndNoOther) {
  EXPECT_THAT(rank_environment({}, {.run_lock = 7}), Contains("LOCKSTEP_RUN_LOCK=7"));
  EXPECT_THAT(rank_environment({"LOCKSTEP_RUN_LOCK=9"}, {}), testing::Not(Contains(StartsWith("LOCKSTEP_RUN_LOCK"))));
}

TEST(Environment, WithoutATerminal) {
  const auto variables = rank_environment({"COLUMNS=7"}, {});
  EXPECT_THAT(variables, Contains("LOCKSTEP_PROGRESS=plain"));
  EXPECT_THAT(variables, Contains("COLUMNS=7"));
}

TEST(Environment, ColoursAreForTerminalsAlone) {
  const auto plain = rank_environment({"TERM=xterm-256color"}, {.plain = true});
  EXPECT_THAT(plain, Contains("TERM=dumb"));
  EXPECT_THAT(plain, Contains("NO_COLOR=1"));
  EXPECT_THAT(rank_environment({"TERM=xterm-256color"}, {.columns = 80}), Contains("TERM=xterm-256color"));
}

TEST(Environment, LinesAreAskedForOfPipesAlone) {
  const auto piped = rank_environment({}, {.by_line = true});
  EXPECT_THAT(piped, Contains("LOCKSTEP_OUTPUT=lines"));
  EXPECT_THAT(piped, Contains("PYTHONUNBUFFERED=1"));
  EXPECT_THAT(rank_environment({"PYTHONUNBUFFERED=x"}, {.by_line = true}), Contains("PYTHONUNBUFFERED=x"));
  EXPECT_THAT(rank_environment({}, {.columns = 80}), Not(Contains(StartsWith("LOCKSTEP_OUTPUT="))));
}

TEST(Environment, ThreadsThatAreSetMayStay) {
  const auto variables = rank_environment({"OMP_NUM_THREADS=32"}, {.threads = 5, .keep_threads = true});
  EXPECT_THAT(variables, Contains("OMP_NUM_THREADS=32"));
  EXPECT_THAT(variables, Not(Contains(StartsWith("MKL_NUM_THREADS")))) << "MKL follows OMP_NUM_THREADS";
  EXPECT_THAT(rank_environment({"MKL_NUM_THREADS=3"}, {.threads = 5, .keep_threads = true}),
              AllOf(Contains("MKL_NUM_THREADS=3"), Contains("OMP_NUM_THREADS=5")));
  EXPECT_THAT(variables, testing::Not(Contains("LOCKSTEP_THREADS=auto")));
  EXPECT_THAT(rank_environment({}, {.threads = 5, .keep_threads = true}), Contains("LOCKSTEP_THREADS=auto"));
  EXPECT_THAT(rank_environment({"LOCKSTEP_THREADS=auto"}, {.threads = 5}),
              testing::Not(Contains("LOCKSTEP_THREADS=auto")))
      << "asked for";
}

TEST(Environment, OwnHasPath) { EXPECT_THAT(own_environment(), Contains(StartsWith("PATH="))); }

TEST(Environment, VariablesAreSetAndUnset) {
  std::vector<std::string> variables = {"A=1", "AB=2"};
  set_variable(variables, "A", 3);
  EXPECT_THAT(variables, testing::UnorderedElementsAre("A=3", "AB=2"));
  unset_variable(variables, "A");
  EXPECT_FALSE(has_variable(variables, "A"));
  EXPECT_TRUE(has_variable(variables, "AB"));
}

}  // namespace
}  // namespace lockstep::launch
