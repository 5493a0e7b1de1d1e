#include "lockstep/rendezvous/place/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"

namespace lockstep::rendezvous {
namespace {

using testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

Place find(const Environment& environment, const PlaceRequest& request = {}) {
  return find_place(request, [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  });
}

std::string mistake(const Environment& environment, const PlaceRequest& request = {}) {
  try {
    find(environment, request);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Environment kTorchrun = {
    {"RANK", "2"},
    {"WORLD_SIZE", "4"},
    {"LOCAL_RANK", "2"},
    {"LOCAL_WORLD_SIZE", "4"},
    {"MASTER_ADDR", "127.0.0.1"},
    {"MASTER_PORT", "29500"},
};
const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const Environment kHydra = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Environment kSrun = {{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"},
                           {"SLURM_NTASKS", "4"},  {"SLURM_LOCALID", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "4"}};

struct Case {
  const char* name;
  Environment environment;
  PlaceRequest request;
  Place expected;  // job is not compared, nor the rendezvous where it is "*"
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

Place place(int rank, int size, int local_rank, int local_size, const char* launcher, const char* address) {
  return {.rank = rank,
          .size = size,
          .local_rank = local_rank,
          .local_size = local_size,
          .launcher = launcher,
          .rendezvous = address};
}

std::vector<Case> cases() {
  const char* const tcp = "tcp://127.0.0.1:29500";
  return {
      {"nothing", {}, {}, place(0, 1, 0, 1, "none", "")},
      {"torchrun", kTorchrun, {}, place(2, 4, 2, 4, "torchrun", tcp)},
      {"torchrun, several nodes",
       with(kTorchrun, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}),
       {},
       place(2, 4, 0, 2, "torchrun", tcp)},
      {"an operator that sets no local rank",
       with(kTorchrun, {{"LOCAL_RANK", ""}, {"LOCAL_WORLD_SIZE", ""}}),
       {},
       place(2, 4, 2, 4, "torchrun", tcp)},
      {"a local rank that tells of several nodes",
       with(kTorchrun, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", ""}}),
       {},
       place(2, 4, 0, 1, "torchrun", tcp)},
      {"IPv6", with(kTorchrun, {{"MASTER_ADDR", "::1"}}), {}, place(2, 4, 2, 4, "torchrun", "tcp://[::1]:29500")},
      {"ours", with(kTorchrun, {{"LOCKSTEP_NODE_MEMORY", "3,4,5"}}), {}, place(2, 4, 2, 4, "lockstep", tcp)},
      {"ours needs no rendezvous",
       with(kTorchrun, {{"LOCKSTEP_NODE_MEMORY", "3,4,5"}, {"MASTER_ADDR", ""}}),
       {},
       place(2, 4, 2, 4, "lockstep", "")},
      {"torchrun within srun", with(kSrun, kTorchrun), {}, place(2, 4, 2, 4, "torchrun", tcp)},
      {"a world of one", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {}, place(0, 1, 0, 1, "torchrun", "")},
      {"Open MPI", kOpenMpi, {}, place(1, 3, 1, 3, "mpirun", "*")},
      {"Open MPI within a batch job", with(kSrun, kOpenMpi), {}, place(1, 3, 1, 3, "mpirun", "*")},
      {"Open MPI with a rendezvous address",
       with(kOpenMpi, {{"MASTER_ADDR", "head"}, {"MASTER_PORT", "1234"}}),
       {},
       place(1, 3, 1, 3, "mpirun", "tcp://head:1234")},
      {"MPICH", kHydra, {}, place(1, 2, 1, 2, "mpirun", "*")},
      {"srun", kSrun, {}, place(3, 4, 3, 4, "srun", "*")},
      {"srun with its PMI", with(kSrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), {}, place(3, 4, 3, 4, "srun", "*")},
      {"srun on nodes of 2, 2 and 1",
       with(kSrun, {{"SLURM_NTASKS", "5"},
                    {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                    {"SLURM_STEP_NODELIST", "node[1-3]"},
                    {"SLURM_NODEID", "1"},
                    {"SLURM_LOCALID", "1"}}),
       {},
       place(3, 5, 1, 2, "srun", "*")},
      {"srun, the last of those nodes",
       with(kSrun, {{"SLURM_NTASKS", "5"},
                    {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                    {"SLURM_STEP_NODELIST", "node[1-3]"},
                    {"SLURM_NODEID", "2"},
                    {"SLURM_PROCID", "4"},
                    {"SLURM_LOCALID", "0"}}),
       {},
       place(4, 5, 0, 1, "srun", "*")},
      {"salloc's shell", {{"SLURM_JOB_ID", "77"}, {"SLURM_NTASKS", "4"}}, {}, place(0, 1, 0, 1, "none", "")},
      {"a batch script", with(kSrun, {{"SLURM_STEP_ID", ""}}), {}, place(0, 1, 0, 1, "none", "")},
      {"an interactive step", with(kSrun, {{"SLURM_STEP_ID", "4294967290"}}), {}, place(0, 1, 0, 1, "none", "")},
      {"arguments",
       {},
       {.rank = 1, .size = 2, .init_method = "tcp://localhost:5000"},
       place(1, 2, 1, 2, "arguments", "tcp://localhost:5000")},
      {"arguments and a file",
       {},
       {.rank = 1, .size = 2, .init_method = "file:///tmp/meet"},
       place(1, 2, 1, 2, "arguments", "file:///tmp/meet")},
      {"arguments over the environment", kTorchrun, {.rank = 1, .size = 2}, place(1, 2, 1, 2, "arguments", tcp)},
      {"one argument, the rest from the environment", kTorchrun, {.rank = 3}, place(3, 4, 3, 4, "arguments", tcp)},
      {"a place by environment, a rendezvous by argument",
       kTorchrun,
       {.init_method = "file:///tmp/meet"},
       place(2, 4, 2, 4, "torchrun", "file:///tmp/meet")},
  };
}

class FindPlace : public testing::TestWithParam<Case> {};

TEST_P(FindPlace, IsAsExpected) {
  const auto& [name, environment, request, expected] = GetParam();
  const Place found = find(environment, request);
  EXPECT_EQ(found.rank, expected.rank);
  EXPECT_EQ(found.size, expected.size);
  EXPECT_EQ(found.local_rank, expected.local_rank);
  EXPECT_EQ(found.local_size, expected.local_size);
  EXPECT_EQ(found.launcher, expected.launcher);
  if (expected.rendezvous == "*") {
    const Address address = parse_address(found.rendezvous);
    EXPECT_EQ(address.host, expected.local_size < expected.size ? "node1" : "127.0.0.1");
    EXPECT_GE(address.port, 20000);
    EXPECT_LT(address.port, 30000);
  } else {
    EXPECT_EQ(found.rendezvous, expected.rendezvous);
  }
}

INSTANTIATE_TEST_SUITE_P(Launchers, FindPlace, testing::ValuesIn(cases()));

TEST(FindPlaceRendezvous, DependsOnTheJobAlone) {
  const auto address = [](const Environment& base, const Environment& more, int64_t parent = 1) {
    return find(with(base, more), {.parent = parent}).rendezvous;
  };
  EXPECT_EQ(address(kSrun, {}), address(kSrun, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}));
  EXPECT_NE(address(kSrun, {}), address(kSrun, {{"SLURM_STEP_ID", "1"}}));
  EXPECT_NE(address(kSrun, {}), address(kSrun, {{"SLURM_JOB_ID", "78"}}));
  EXPECT_NE(address(kOpenMpi, {{"PMIX_NAMESPACE", "a"}}), address(kOpenMpi, {{"PMIX_NAMESPACE", "b"}}));
  EXPECT_EQ(address(kOpenMpi, {{"PMIX_NAMESPACE", "a"}}, 1), address(kOpenMpi, {{"PMIX_NAMESPACE", "a"}}, 2));
  EXPECT_NE(address(kOpenMpi, {{"OMPI_MCA_ess_base_jobid", "1"}}),
            address(kOpenMpi, {{"OMPI_MCA_ess_base_jobid", "2"}}));
  EXPECT_EQ(address(kHydra, {}, 5), address(kHydra, {{"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}}, 5));
  EXPECT_NE(address(kHydra, {}, 5), address(kHydra, {}, 6));
}

TEST(FindPlaceRendezvous, TheAgentOfTorchrunHostsTheStore) {
  EXPECT_FALSE(find(kTorchrun).launcher_hosts);
  const auto hosted = with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "0"}});
  EXPECT_TRUE(find(hosted).launcher_hosts);
  EXPECT_FALSE(find(hosted, {.init_method = "tcp://localhost:1"}).launcher_hosts);
  EXPECT_NE(find(hosted).job, find(with(hosted, {{"TORCHELASTIC_RESTART_COUNT", "1"}})).job);
  EXPECT_NE(find(hosted).job, find(with(hosted, {{"WORLD_SIZE", "16"}})).job) << "a node came or left";
}

TEST(FindPlaceMistakes, AreNamed) {
  EXPECT_THAT(mistake({{"RANK", "0"}}), HasSubstr("RANK is set but WORLD_SIZE is not"));
  EXPECT_THAT(mistake({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE is set but RANK is not"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"WORLD_SIZE", "many"}})),
              HasSubstr("WORLD_SIZE=many: expected a whole number"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"WORLD_SIZE", "4x"}})), HasSubstr("WORLD_SIZE=4x"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"WORLD_SIZE", "99999999999999999999"}})), HasSubstr("WORLD_SIZE=9999"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"RANK", "-1"}})), HasSubstr("RANK=-1"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"RANK", "4"}})), HasSubstr("rank 4 in a world of 4"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"LOCAL_RANK", "4"}})), HasSubstr("local rank 4 of 4"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"LOCAL_RANK", "1"}})), HasSubstr("can't be local rank 1 of 4"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}})), HasSubstr("of 8"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"MASTER_PORT", ""}})), HasSubstr("MASTER_PORT is not set"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"MASTER_ADDR", ""}})), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(mistake(with(kTorchrun, {{"MASTER_PORT", "70000"}})), HasSubstr("port is no number from 1 to 65535"));
  EXPECT_THAT(mistake(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}})), HasSubstr("SLURM_STEP_TASKS_PER_NODE=2(x"));
  EXPECT_THAT(mistake(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "2,"}, {"SLURM_NODEID", "3"}})), HasSubstr("=2,"));
  EXPECT_THAT(mistake({{"LOCKSTEP_NODE_MEMORY", "3,4,5"}}), HasSubstr("only the launcher sets it"));
  const auto ours = with(kTorchrun, {{"LOCKSTEP_NODE_MEMORY", "3,4,5"}});
  EXPECT_THAT(mistake(ours, {.rank = 1, .size = 8}),
              HasSubstr("rank 1 of 8 was asked for, and the launcher has started this process as rank 2 of 4"));
  EXPECT_THAT(mistake(ours, {.size = 2}), HasSubstr("leave rank and world size out"));
  EXPECT_THAT(mistake({}, {.rank = 1}), HasSubstr("a rank was given without a world size"));
  EXPECT_THAT(mistake({}, {.size = 2}), HasSubstr("a world size was given without a rank"));
  EXPECT_THAT(mistake({}, {.rank = 2, .size = 2, .init_method = "tcp://a:1"}), HasSubstr("rank 2 in a world of 2"));
  EXPECT_THAT(mistake({}, {.rank = -3, .size = 2}), HasSubstr("rank -3"));
  EXPECT_THAT(mistake({}, {.rank = 0, .size = 0}), HasSubstr("world size 0"));
  EXPECT_THAT(mistake({}, {.rank = 0, .size = 2}), HasSubstr("does not know where to meet"));
  EXPECT_THAT(mistake({}, {.init_method = "http://x"}), HasSubstr("http://x: unknown kind of address"));
}

TEST(FindPlace, KnowsTheHostOfRank0WhereSlurmSaysIt) {
  const Environment nodes =
      with(kSrun, {{"SLURM_NTASKS", "8"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}, {"MASTER_ADDR", ""}});
  const auto address = [&](const char* list) { return find(with(nodes, {{"SLURM_STEP_NODELIST", list}})).rendezvous; };
  EXPECT_THAT(address("gpu[03-04,07]"), HasSubstr("tcp://gpu03:"));
  EXPECT_THAT(address("gpu[11,13]"), HasSubstr("tcp://gpu11:"));
  EXPECT_THAT(address("alpha,beta[1-2]"), HasSubstr("tcp://alpha:"));
  EXPECT_THAT(address("alpha"), HasSubstr("tcp://alpha:"));
  EXPECT_THAT(mistake(nodes), HasSubstr("MASTER_ADDR is not set: set it to the host of rank 0"));
}

}  // namespace
}  // namespace lockstep::rendezvous
