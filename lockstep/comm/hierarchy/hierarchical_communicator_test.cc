#include "lockstep/comm/hierarchy/hierarchical_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "lockstep/base/error.h"
#include "lockstep/world/testing/nodes.h"
#include "support/ranks.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::Ranks;

RANK_PROGRAM(dies_on_another_node) {
  const auto world = testing_support::init_on_nodes(context, std::chrono::seconds(30));
  auto& comm = world->communicator();
  comm.barrier();
  if (context.rank == 3) raise(SIGKILL);
  const Stopwatch watch;
  try {
    comm.all_reduce(at::ones({10000}), ReduceOp::kSum);
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 3"));
    EXPECT_LT(watch.seconds(), 4);
    comm.abort(error.what());
  }
}

TEST(Hierarchical, ADeathOnAnotherNodeIsNamed) {
  const auto results = Ranks("dies_on_another_node", 4, testing_support::nodes("auto", {2, 2})).wait();
  EXPECT_EQ(results[3].exit_code, 128 + SIGKILL);
  for (const size_t rank : {0u, 1u, 2u}) EXPECT_EQ(results[rank].exit_code, 0) << results[rank].output;
}

RANK_PROGRAM(mixes_calls) {
  const auto world = testing_support::init_on_nodes(context, std::chrono::seconds(30));
  auto& comm = world->communicator();
  // Folds that are under way while a call over the network alone is waited for, in another order on every rank.
  for (int i = 0; i < 20; ++i) {
    const at::Tensor a = at::full({50000}, comm.rank() + i, at::kInt), b = at::full({3}, comm.rank(), at::kInt);
    const auto fold = comm.fold({a}, {.label = "test"});
    if (comm.rank() % 2 == 0) fold->wait();
    comm.broadcast(b, 1);
    fold->wait();
    EXPECT_EQ(a[49999].item<int>(), comm.size() * i + comm.size() * (comm.size() - 1) / 2);
    EXPECT_EQ(b[2].item<int>(), 1);
  }
}

TEST(Hierarchical, WaitingForTheNetworkGoesOnWithFolds) {
  expect_ranks_pass("mixes_calls", 4, testing_support::nodes("auto", {2, 2}));
}

}  // namespace
}  // namespace lockstep::comm
