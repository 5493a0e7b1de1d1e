#include "lockstep/launch/launched_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<LaunchedJob> jobs_of(const std::map<std::string, std::string>& variables,
                                 const std::string& command = "train a") {
  const auto look_up = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return find_jobs(look_up, command);
}

TEST(LaunchedJob, NoLauncherHasNone) {
  EXPECT_THAT(jobs_of({}), IsEmpty());
  EXPECT_EQ(names_of({}), "");
  EXPECT_FALSE(is_restart("", {}));
}

TEST(LaunchedJob, SlurmsIsKnownByItsNumber) {
  const auto first = jobs_of({{"SLURM_JOB_ID", "4711"}, {"SLURM_CLUSTER_NAME", "alps"}});
  const auto again = jobs_of({{"SLURM_JOB_ID", "4711"}, {"SLURM_CLUSTER_NAME", "alps"}, {"SLURM_RESTART_COUNT", "1"}});
  const auto other = jobs_of({{"SLURM_JOB_ID", "4712"}, {"SLURM_CLUSTER_NAME", "alps"}, {"SLURM_RESTART_COUNT", "1"}});
  EXPECT_THAT(names_of(first), StartsWith("slurm 4711 of alps, command "));
  EXPECT_FALSE(is_restart(names_of(first), first)) << "a second command of the same start";
  EXPECT_TRUE(is_restart(names_of(first), again));
  EXPECT_FALSE(is_restart(names_of(first), other));
  EXPECT_FALSE(is_restart("", again)) << "a folder of nobody's job";
}

TEST(LaunchedJob, SlurmsMayHaveSeveralCommands) {
  const std::map<std::string, std::string> variables = {{"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "1"}};
  const auto again = jobs_of(variables), other = jobs_of(variables, "train b");
  const std::string named = names_of(jobs_of({{"SLURM_JOB_ID", "7"}}));
  EXPECT_TRUE(is_restart(named, again));
  EXPECT_FALSE(is_restart(named, jobs_of({{"SLURM_JOB_ID", "7"}}))) << "a second one of the same start";
  EXPECT_FALSE(is_restart(named, other));
  EXPECT_TRUE(is_of_job(named, other));
  EXPECT_TRUE(is_of_command(named, again));
  EXPECT_FALSE(is_of_command(named, other));
  EXPECT_FALSE(is_of_job(named, jobs_of({{"SLURM_JOB_ID", "8"}})));
}

// What a script computes at each start.
TEST(LaunchedJob, SlurmsMayAskForAnotherLength) {
  const auto at_start = [](const char* restarts, const std::string& words) {
    std::string line = words + ' ';
    std::replace(line.begin(), line.end(), ' ', '\0');
    return jobs_of({{"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", restarts}}, line);
  };
  const std::string named = names_of(at_start("1", "train --steps 12 --lr 1"));
  const auto computed = [&](const char* restarts, const std::string& words) {
    return is_restart_of_other_length(named, at_start(restarts, words));
  };
  EXPECT_TRUE(computed("2", "train --steps 24 --lr 1"));
  EXPECT_TRUE(computed("2", "train --lr 1 --epochs=3"));
  EXPECT_FALSE(computed("2", "train --steps 24 --lr 2"));
  EXPECT_FALSE(computed("2", "train --steps 24 --lr"));
  EXPECT_FALSE(computed("2", "train --steps 12 --lr 1")) << "it is the same";
  EXPECT_FALSE(computed("1", "train --steps 24 --lr 1")) << "of the same start";
  EXPECT_FALSE(is_restart(named, at_start("2", "train --steps 24 --lr 1")));
  EXPECT_TRUE(is_restart(named, at_start("2", "train --steps 12 --lr 1")));
  EXPECT_TRUE(is_of_job(named, at_start("2", "train --steps 24 --lr 1")));
  EXPECT_FALSE(is_restart_of_other_length("slurm 7 of one cluster, command a", at_start("2", "train")))
      << "as earlier versions have written it";
}

TEST(LaunchedJob, TorchrunsIsKnownByItsAgentAndNotByItsRunId) {
  const std::map<std::string, std::string> variables = {{"TORCHELASTIC_RUN_ID", "none"},
                                                        {"TORCHELASTIC_RESTART_COUNT", "0"}};
  auto later = variables;
  later["TORCHELASTIC_RESTART_COUNT"] = "2";
  const auto first = jobs_of(variables), again = jobs_of(later);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(first[0].name, HasSubstr(cat("torchrun agent ", getppid(), " (")));
  EXPECT_TRUE(first[0].one_command && !first[0].restarted());
  EXPECT_EQ(names_of(again), names_of(first));
  EXPECT_TRUE(is_restart(names_of(first), again));
  EXPECT_TRUE(is_restart(names_of(first), first)) << "torchrun doesn't count a start after a change of its nodes";
  const auto other_command = jobs_of(variables, "train b");  // of the same script
  EXPECT_FALSE(is_restart(names_of(first), other_command));
  const auto counted = jobs_of(later, "train b");
  EXPECT_FALSE(is_restart(names_of(first), counted));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t other_agent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const std::string name = names_of(jobs_of(variables));
    _exit(write(ends[1], name.data(), name.size()) == std::ssize(name) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  std::string name(1000, '\0');
  name.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ends[0], name.data(), name.size()))));
  EXPECT_THAT(name, HasSubstr(cat("torchrun agent ", other_agent, " (")));
  EXPECT_FALSE(is_restart(name, again)) << "of another agent with the same run id";
}

// The agents of several nodes, of which one may be gone at the next start.
TEST(LaunchedJob, AnyAgentOfTheOtherRanksIsEnough) {
  const auto own = jobs_of({{"TORCHELASTIC_RESTART_COUNT", "0"}});
  auto elsewhere = own;
  elsewhere[0].name = "torchrun agent 7 (8) on node2";
  auto all = own;
  add_others(all, {names_of(own), names_of(elsewhere), names_of(elsewhere), ""});
  EXPECT_THAT(all, SizeIs(2));
  EXPECT_TRUE(is_restart(names_of(all), elsewhere));
  EXPECT_TRUE(is_restart(names_of(elsewhere), all));
  EXPECT_FALSE(is_restart(names_of(elsewhere), own));
  std::vector<LaunchedJob> none;
  add_others(none, {names_of(elsewhere)});
  EXPECT_THAT(none, IsEmpty());
}

TEST(LaunchedJob, ItsLineIsForPeople) {
  const std::string words("train\0--out\0two\nlines\0", 22);
  EXPECT_EQ(jobs_of({{"SLURM_JOB_ID", "7"}}, words).at(0).line, "train --out two\\nlines");
}

TEST(LaunchedJob, AWorkerOfOurFrontIsPartOfNone) {
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_THAT(find_jobs(), SizeIs(1));
  setenv("LOCKSTEP_RUN_LOCK", "5", 1);
  EXPECT_THAT(find_jobs(), IsEmpty());
  unsetenv("LOCKSTEP_RUN_LOCK");
  unsetenv("SLURM_JOB_ID");
}

TEST(LaunchedJob, OneOfSeveralIsEnough) {
  const auto first = jobs_of({{"SLURM_JOB_ID", "7"}, {"TORCHELASTIC_RESTART_COUNT", "0"}});
  const auto again = jobs_of({{"SLURM_JOB_ID", "7"}, {"TORCHELASTIC_RESTART_COUNT", "1"}});
  EXPECT_THAT(first, SizeIs(2));
  EXPECT_TRUE(is_restart(names_of(first), again));
}

}  // namespace
}  // namespace lockstep::launch
