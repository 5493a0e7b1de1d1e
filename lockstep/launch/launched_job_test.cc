#include "lockstep/launch/launched_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "lockstep/base/text.h"

namespace lockstep::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<LaunchedJob> jobs_of(const std::map<std::string, std::string>& variables) {
  return find_jobs([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
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
  EXPECT_EQ(names_of(first), "slurm 4711 of alps");
  EXPECT_FALSE(is_restart(names_of(first), first)) << "a second command of the same start";
  EXPECT_TRUE(is_restart(names_of(first), again));
  EXPECT_FALSE(is_restart(names_of(first), other));
  EXPECT_FALSE(is_restart("", again)) << "a folder of nobody's job";
}

TEST(LaunchedJob, TorchrunsIsKnownByItsAgentAndNotByItsRunId) {
  const std::map<std::string, std::string> variables = {{"TORCHELASTIC_RUN_ID", "none"},
                                                        {"TORCHELASTIC_RESTART_COUNT", "0"}};
  auto later = variables;
  later["TORCHELASTIC_RESTART_COUNT"] = "2";
  const auto first = jobs_of(variables), again = jobs_of(later);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(first[0].name, HasSubstr(cat("torchrun agent ", getppid(), " (")));
  EXPECT_TRUE(first[0].one_command && !first[0].restarted);
  EXPECT_EQ(names_of(again), names_of(first));
  EXPECT_TRUE(is_restart(names_of(first), again));
  EXPECT_FALSE(is_restart(names_of(first), first));
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

TEST(LaunchedJob, OneOfSeveralIsEnough) {
  const auto first = jobs_of({{"SLURM_JOB_ID", "7"}, {"TORCHELASTIC_RESTART_COUNT", "0"}});
  const auto again = jobs_of({{"SLURM_JOB_ID", "7"}, {"TORCHELASTIC_RESTART_COUNT", "1"}});
  EXPECT_THAT(first, SizeIs(2));
  EXPECT_TRUE(is_restart(names_of(first), again));
}

}  // namespace
}  // namespace lockstep::launch
