#include "lockstep/base/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/testing/refusal.h"

namespace lockstep {
namespace {

using testing::ElementsAre;

// 2 packages of 4 cores, each core of 2 threads.
Topology two_packages() { return Topology::synthetic("package:2 [numa] core:4 pu:2"); }

TEST(Topology, OneRankGetsAll) {
  EXPECT_EQ(two_packages().cores_of(0, 1).size(), 16u);
  EXPECT_EQ(two_packages().numa_node_of(0, 1), std::nullopt);
}

TEST(Topology, RanksGetWholePackages) {
  EXPECT_THAT(two_packages().cores_of(0, 2), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(two_packages().cores_of(1, 2), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_EQ(two_packages().numa_node_of(1, 2), 1);
}

TEST(Topology, RanksGetWholeCores) {
  EXPECT_THAT(two_packages().cores_of(0, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(two_packages().cores_of(7, 8), ElementsAre(14, 15));
  EXPECT_EQ(two_packages().numa_node_of(7, 8), 1);
}

TEST(Topology, NoRankSpansPackagesWhereOneWillDo) {
  for (int size = 2; size <= 16; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_TRUE(two_packages().numa_node_of(rank, size)) << rank << " of " << size;
    }
  }
}

TEST(Topology, MoreRanksThanCoresShareThem) {
  std::vector<int> uses(16, 0);
  for (int rank = 0; rank < 16; ++rank) {
    const auto cores = two_packages().cores_of(rank, 16);
    EXPECT_EQ(cores.size(), 2u);
    for (const int core : cores) ++uses[static_cast<size_t>(core)];
  }
  EXPECT_EQ(uses, std::vector<int>(16, 2));
}

TEST(Topology, RanksAreBoundToTheNodesOfTheirGpus) {
  const auto topology = Topology::synthetic("package:2 group:2 [numa] l3:1 core:2 pu:2");
  const std::vector<int> gpus = {3, 0, 3};
  EXPECT_THAT(topology.bound_to(CpuBinding::kNode, gpus, 3),
              ElementsAre(ElementsAre(12, 13, 14, 15), ElementsAre(0, 1, 2, 3), ElementsAre(12, 13, 14, 15)));
  EXPECT_THAT(topology.bound_to(CpuBinding::kSocket, gpus, 3)[0], ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(topology.bound_to(CpuBinding::kExclusive, gpus, 3),
              ElementsAre(ElementsAre(12, 13), ElementsAre(0, 1, 2, 3), ElementsAre(14, 15)));
}

TEST(Topology, TheFirstRanksOfANodeHaveOneCoreMore) {
  const auto topology = Topology::synthetic("package:1 [numa] core:5 pu:1");
  EXPECT_THAT(topology.bound_to(CpuBinding::kExclusive, {0, 0, 0}, 3),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_THAT(testing_support::refusal([&] {
                topology.bound_to(CpuBinding::kExclusive, {0, 0, 0, 0, 0, 0}, 6);
              }),
              testing::HasSubstr("6 processes and 5 cores are at one NUMA node"));
}

TEST(Topology, RanksOfANodeAreBoundToOneCoreComplexAfterTheOther) {
  const auto topology = Topology::synthetic("package:2 [numa] l3:2 core:2 pu:1");
  EXPECT_THAT(topology.bound_to(CpuBinding::kCoreComplex, {1, 1, 1, 0}, 4),
              ElementsAre(ElementsAre(4, 5), ElementsAre(6, 7), ElementsAre(4, 5), ElementsAre(0, 1)));
  EXPECT_THAT(Topology::synthetic("package:1 [numa] core:2 pu:2").bound_to(CpuBinding::kCoreComplex, {0}, 1),
              ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(Topology, WithoutGpusRanksAreSpread) {
  EXPECT_THAT(two_packages().bound_to(CpuBinding::kNode, {}, 2),
              ElementsAre(two_packages().cores_of(0, 2), two_packages().cores_of(1, 2)));
  EXPECT_THAT(two_packages().bound_to(CpuBinding::kExclusive, {}, 4),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9, 10, 11),
                          ElementsAre(12, 13, 14, 15)));
}

TEST(Topology, AGpuAtANodeWithoutCpusIsRefused) {
  EXPECT_THAT(testing_support::refusal([] {
                two_packages().bound_to(CpuBinding::kNode, {0, 5}, 2);
              }),
              testing::HasSubstr("the GPU of local rank 1 is at NUMA node 5, of which this process may use no CPU"));
}

TEST(Topology, SaysWhatThereIs) {
  EXPECT_EQ(two_packages().describe(), "2 packages, 2 NUMA nodes, 8 cores, 16 threads");
  EXPECT_EQ(Topology::synthetic("package:1 [numa] l3:2(size=33554432) core:4 pu:1").describe(),
            "1 package, 1 NUMA node, 8 cores, 8 threads; L3 2 x 32 MiB");
  EXPECT_THROW(Topology::synthetic("a heap of cores"), ConfigError);
}

// A process may use what any of its threads may, and a sanitizer has a thread of its own.
void set_affinity_of_all_threads(const cpu_set_t& cores) {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    ASSERT_EQ(sched_setaffinity(std::stoi(thread.path().filename()), sizeof cores, &cores), 0);
  }
}

TEST(Topology, OfThisMachineHoldsOnlyWhatThisProcessMayUse) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const auto cores = Topology::of_this_machine().cores_of(0, 1);
  EXPECT_EQ(cores.size(), static_cast<size_t>(CPU_COUNT(&before)));
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(cores.back()), &one);
  set_affinity_of_all_threads(one);
  EXPECT_THAT(Topology::of_this_machine().cores_of(0, 1), ElementsAre(cores.back()));
  set_affinity_of_all_threads(before);
}

TEST(Topology, PinsThisProcess) {
  cpu_set_t before, during;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const auto topology = Topology::of_this_machine();
  const int size = usable_cores();
  topology.pin_this_process(size - 1, size);
  sched_getaffinity(0, sizeof during, &during);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &during)) cores.push_back(core);
  }
  EXPECT_EQ(cores, topology.cores_of(size - 1, size));
  sched_setaffinity(0, sizeof before, &before);
}

TEST(Topology, PlacesMemoryOrSaysWhyNot) {
  constexpr size_t kBytes = size_t{1} << 20;
  const Mapping memory(create_memfd("lockstep-test", kBytes).get());
  const auto topology = Topology::of_this_machine();
  const int node = topology.numa_node_of(0, usable_cores()).value_or(0);
  const std::string refused = topology.bind_memory(memory.data(), kBytes, node);
  if (!refused.empty()) EXPECT_THAT(refused, testing::HasSubstr("errno"));
  std::fill_n(memory.data(), kBytes, std::byte{1});  // it can be used all the same
}

TEST(Topology, PinningARankSaysWhatItDid) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_THAT(pin_rank(0, usable_cores(), nullptr, 0), testing::StartsWith("CPU"));
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace lockstep
