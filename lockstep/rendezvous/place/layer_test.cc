// Environments as launchers have set them (recorded, but for numbers of jobs and ports), and what they come to.
#include "lockstep/rendezvous/place/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/environment.h"

namespace lockstep::rendezvous {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

PlaceReport explain(const Environment& environment) {
  return explain_place(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      /*parent=*/1);
}

std::string error_of(const Environment& environment) { return explain(environment).error; }

Environment operator+(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

// torchrun 2.11, two nodes of two.
const Environment kTorchrun = {{"RANK", "3"},
                               {"LOCAL_RANK", "1"},
                               {"GROUP_RANK", "1"},
                               {"ROLE_RANK", "3"},
                               {"ROLE_NAME", "default"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"WORLD_SIZE", "4"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"ROLE_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RESTART_COUNT", "0"},
                               {"TORCHELASTIC_MAX_RESTARTS", "0"},
                               {"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
// paddle.distributed.launch 3.3, one node of two, on the CPU.
const Environment kPaddle = {{"PADDLE_MASTER", "127.0.0.1:35298"},
                             {"PADDLE_GLOBAL_SIZE", "2"},
                             {"PADDLE_LOCAL_SIZE", "2"},
                             {"PADDLE_GLOBAL_RANK", "1"},
                             {"PADDLE_LOCAL_RANK", "1"},
                             {"PADDLE_NNODES", "1"},
                             {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:35300"},
                             {"PADDLE_TRAINER_ID", "1"},
                             {"PADDLE_TRAINERS_NUM", "2"},
                             {"PADDLE_RANK_IN_NODE", "1"},
                             {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:35299,127.0.0.1:35300"},
                             {"PADDLE_DISTRI_BACKEND", "gloo"}};
// Paddle 1.8, two nodes of two GPUs: no local rank, no master.
const Environment kOldPaddle = {{"PADDLE_TRAINER_ID", "2"},
                                {"PADDLE_TRAINERS_NUM", "4"},
                                {"PADDLE_CURRENT_ENDPOINT", "10.0.0.2:6170"},
                                {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:6170,10.0.0.1:6171,10.0.0.2:6170,10.0.0.2:6171"},
                                {"FLAGS_selected_gpus", "4"}};
// srun of Slurm 23.11: 5 tasks on three nodes.
const Environment kSrun = {{"SLURM_JOB_ID", "77"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_PROCID", "3"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_NTASKS", "5"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                           {"SLURM_STEP_NODELIST", "node[07-08,12]"},
                           {"SLURM_STEP_NUM_NODES", "3"}};
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                              {"PMIX_NAMESPACE", "1234"}};
const Environment kHydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Environment kIntelMpi = kHydra + Environment{{"I_MPI_MPIRUN", "mpirun"}};
// The training operator 1.8: RANK counts pods.
const Environment kPyTorchJob = {{"RANK", "1"},
                                 {"WORLD_SIZE", "3"},
                                 {"MASTER_ADDR", "job-master-0"},
                                 {"MASTER_PORT", "23456"},
                                 {"PET_NODE_RANK", "1"},
                                 {"PET_NNODES", "3"},
                                 {"PET_MASTER_ADDR", "job-master-0"},
                                 {"PET_MASTER_PORT", "23456"},
                                 {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
const Environment kTrainer = {{"PET_NNODES", "2"},
                              {"PET_NPROC_PER_NODE", "1"},
                              {"PET_NODE_RANK", "1"},
                              {"PET_MASTER_ADDR", "job-node-0-0.job"},
                              {"PET_MASTER_PORT", "29400"},
                              {"JOB_COMPLETION_INDEX", "1"},
                              {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
const Environment kJobSet = {{"JOB_COMPLETION_INDEX", "2"},
                             {"WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "job-workers-0-0.job"},
                             {"MASTER_PORT", "3389"},
                             {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};

struct Case {
  const char* name;
  Environment environment;
  Place expected;  // its job is not compared, nor the port of an address that ends with "*"
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

std::vector<Case> cases() {
  const auto place = [](int rank, int size, int local_rank, int local_size, int node, const char* launcher,
                        const char* address, int gpu = -1) {
    return Place{.rank = rank,
                 .size = size,
                 .local_rank = local_rank,
                 .local_size = local_size,
                 .node = node,
                 .launcher = launcher,
                 .rendezvous = address,
                 .gpu = gpu};
  };
  return {
      {"torchrun", kTorchrun, place(3, 4, 1, 2, 1, "torchrun", "tcp://node1:29500")},
      {"Paddle", kPaddle, place(1, 2, 1, 2, -1, "paddle", "tcp://127.0.0.1:35298")},
      {"an older Paddle", kOldPaddle, place(2, 4, 0, 2, -1, "paddle", "tcp://10.0.0.1:6170", 4)},
      {"Paddle within PyTorchJob", kPyTorchJob + kPaddle, place(1, 2, 1, 2, -1, "paddle", "tcp://127.0.0.1:35298")},
      {"Slurm", kSrun, place(3, 5, 1, 2, 1, "srun", "tcp://node07:*")},
      {"Slurm with its PMI", kSrun + Environment{{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}},
       place(3, 5, 1, 2, 1, "srun", "tcp://node07:*")},
      {"torchrun within srun", kSrun + kTorchrun, place(3, 4, 1, 2, 1, "torchrun", "tcp://node1:29500")},
      {"mpirun within a batch job", kSrun + kOpenMpi, place(1, 3, 1, 3, -1, "mpirun", "tcp://127.0.0.1:*")},
      {"Open MPI", kOpenMpi, place(1, 3, 1, 3, -1, "mpirun", "tcp://127.0.0.1:*")},
      {"MPICH", kHydra, place(1, 2, 1, 2, -1, "mpirun", "tcp://127.0.0.1:*")},
      {"MPICH on two nodes", kHydra + Environment{{"PMI_SIZE", "4"}, {"MASTER_ADDR", "head"}, {"MASTER_PORT", "1234"}},
       place(1, 4, 1, 2, -1, "mpirun", "tcp://head:1234")},
      {"Intel MPI", kIntelMpi, place(1, 2, 1, 2, -1, "mpirun", "tcp://127.0.0.1:*")},
      {"PyTorchJob", kPyTorchJob, place(1, 3, 0, 1, 1, "PyTorchJob", "tcp://job-master-0:23456")},
      {"PyTorchJob's master, which is told localhost",
       kPyTorchJob + Environment{{"RANK", "0"}, {"MASTER_ADDR", "localhost"}},
       place(0, 3, 0, 1, 0, "PyTorchJob", "tcp://localhost:23456")},
      {"torchrun within PyTorchJob", kPyTorchJob + kTorchrun, place(3, 4, 1, 2, 1, "torchrun", "tcp://node1:29500")},
      {"Kubeflow Trainer", kTrainer, place(1, 2, 0, 1, 1, "Kubeflow Trainer", "tcp://job-node-0-0.job:29400")},
      {"torchrun within Kubeflow Trainer", kTrainer + kTorchrun, place(3, 4, 1, 2, 1, "torchrun", "tcp://node1:29500")},
      {"JobSet", kJobSet, place(2, 4, 0, 1, 2, "JobSet", "tcp://job-workers-0-0.job:3389")},
      {"an indexed job that says nothing of a world",
       {{"JOB_COMPLETION_INDEX", "2"}},
       place(0, 1, 0, 1, -1, "none", "")},
      {"ours, with a virtual local rank",
       kTorchrun + Environment{{"LOCKSTEP_NODE_MEMORY", "3,4,5"}, {"LOCAL_RANK", "0"}, {"LOCKSTEP_LOCAL_RANK", "1"}},
       place(3, 4, 1, 2, 1, "lockstep", "tcp://node1:29500")},
      {"an inner layer that is not complete", kSrun + Environment{{"RANK", "0"}},
       place(3, 5, 1, 2, 1, "srun", "tcp://node07:*")},
      {"an outer layer that is wrong",
       kTorchrun + Environment{{"PADDLE_TRAINER_ID", "x"}, {"PADDLE_TRAINERS_NUM", "2"}},
       place(3, 4, 1, 2, 1, "torchrun", "tcp://node1:29500")},
  };
}

class Layers : public testing::TestWithParam<Case> {};

TEST_P(Layers, ComeToTheInnermostThatIsComplete) {
  const auto& [name, environment, expected] = GetParam();
  const PlaceReport report = explain(environment);
  ASSERT_TRUE(report.place) << report.error;
  EXPECT_EQ(report.place->launcher, expected.launcher);
  EXPECT_EQ(report.place->rank, expected.rank);
  EXPECT_EQ(report.place->size, expected.size);
  EXPECT_EQ(report.place->local_rank, expected.local_rank);
  EXPECT_EQ(report.place->local_size, expected.local_size);
  EXPECT_EQ(report.place->node, expected.node);
  EXPECT_EQ(report.place->gpu, expected.gpu);
  if (expected.rendezvous.ends_with('*')) {
    EXPECT_THAT(report.place->rendezvous,
                testing::StartsWith(expected.rendezvous.substr(0, expected.rendezvous.size() - 1)));
  } else {
    EXPECT_EQ(report.place->rendezvous, expected.rendezvous);
  }
}

INSTANTIATE_TEST_SUITE_P(Recorded, Layers, testing::ValuesIn(cases()));

TEST(LayersSeen, AreAllNamed) {
  const PlaceReport report = explain(kSrun + kTorchrun + Environment{{"OMPI_COMM_WORLD_RANK", "0"}});
  ASSERT_EQ(report.layers.size(), 3);
  EXPECT_EQ(report.used, 0);
  EXPECT_THAT(report.layers, ElementsAre(Field(&Layer::launcher, "torchrun"), Field(&Layer::launcher, "mpirun"),
                                         Field(&Layer::launcher, "srun")));
  EXPECT_THAT(report.layers[1].missing, HasSubstr("OMPI_COMM_WORLD_RANK is set but OMPI_COMM_WORLD_SIZE is not"));
  EXPECT_THAT(report.layers[0].readings, testing::Contains(Reading{"RANK", "3"}));
}

TEST(LayersThatContradictThemselves, NameBothVariables) {
  const auto both = [](const char* one, const char* other) { return AllOf(HasSubstr(one), HasSubstr(other)); };
  EXPECT_THAT(error_of(kTorchrun + Environment{{"RANK", "4"}}), both("RANK=4", "WORLD_SIZE=4"));
  EXPECT_THAT(error_of(kTorchrun + Environment{{"LOCAL_RANK", "2"}}), both("LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"));
  EXPECT_THAT(error_of(kTorchrun + Environment{{"LOCAL_WORLD_SIZE", "8"}}), both("LOCAL_WORLD_SIZE=8", "WORLD_SIZE=4"));
  EXPECT_THAT(error_of(kTorchrun + Environment{{"RANK", "0"}}), both("RANK=0", "LOCAL_RANK=1"));
  EXPECT_THAT(error_of(kPaddle + Environment{{"PADDLE_TRAINERS_NUM", "3"}}),
              both("PADDLE_TRAINERS_NUM=3", "PADDLE_TRAINER_ENDPOINTS=127"));
  EXPECT_THAT(error_of(kPaddle + Environment{{"PADDLE_TRAINER_ID", "2"}}),
              both("PADDLE_TRAINER_ID=2", "PADDLE_TRAINERS_NUM=2"));
  EXPECT_THAT(error_of(kPaddle + Environment{{"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:1"}}),
              both("PADDLE_CURRENT_ENDPOINT=127.0.0.1:1", "PADDLE_TRAINER_ENDPOINTS="));
  EXPECT_THAT(error_of(kSrun + Environment{{"SLURM_NTASKS", "6"}}),
              both("SLURM_NTASKS=6", "SLURM_STEP_TASKS_PER_NODE=2(x2),1"));
  EXPECT_THAT(error_of(kSrun + Environment{{"SLURM_NODEID", "3"}}),
              both("SLURM_NODEID=3", "SLURM_STEP_TASKS_PER_NODE="));
  EXPECT_THAT(error_of(kSrun + Environment{{"SLURM_LOCALID", "2"}}),
              both("SLURM_LOCALID=2", "SLURM_STEP_TASKS_PER_NODE="));
  EXPECT_THAT(error_of(kOpenMpi + Environment{{"OMPI_COMM_WORLD_RANK", "3"}}),
              both("OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=3"));
  EXPECT_THAT(error_of(kHydra + Environment{{"MPI_LOCALRANKID", "0"}}), both("PMI_RANK=1", "MPI_LOCALRANKID=0"));
  EXPECT_THAT(error_of(kPyTorchJob + Environment{{"WORLD_SIZE", "6"}}), both("WORLD_SIZE=6", "PET_NNODES=3"));
  EXPECT_THAT(error_of(kTrainer + Environment{{"PET_NPROC_PER_NODE", "auto"}}),
              both("PET_NPROC_PER_NODE=auto", "start `lockstep launch` here"));
  EXPECT_THAT(error_of(kTrainer + Environment{{"PET_NODE_RANK", "2"}}), both("PET_NODE_RANK=2", "PET_NNODES=2"));
  EXPECT_THAT(error_of(kJobSet + Environment{{"JOB_COMPLETION_INDEX", "4"}}),
              both("JOB_COMPLETION_INDEX=4", "WORLD_SIZE=4"));
  EXPECT_THAT(error_of(kOldPaddle + Environment{{"FLAGS_selected_gpus", "a"}}), HasSubstr("FLAGS_selected_gpus=a"));
  EXPECT_THAT(error_of({{"PADDLE_TRAINER_ID", "0"}}),
              HasSubstr("PADDLE_TRAINER_ID is set but PADDLE_TRAINERS_NUM is not"));
  EXPECT_THAT(error_of(kSrun + Environment{{"SLURM_STEP_NODELIST", "n[1"}}), HasSubstr("SLURM_STEP_NODELIST=n[1"));
}

}  // namespace
}  // namespace lockstep::rendezvous
