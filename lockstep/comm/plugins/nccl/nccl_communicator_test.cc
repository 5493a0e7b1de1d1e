#include <ATen/ATen.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl/nccl_world.h"
#include "lockstep/comm/plugins/nccl_plugin.h"

namespace lockstep::comm {
namespace {

TEST(NcclCommunicator, SaysWhatItIs) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  EXPECT_EQ(comm->rank(), 0);
  EXPECT_EQ(comm->size(), 1);
  EXPECT_STREQ(comm->backend(), "nccl");
  EXPECT_TRUE(comm->shares(at::ones({1}, at::kCUDA)));
  EXPECT_FALSE(comm->shares(at::ones({1})));
}

TEST(NcclCommunicator, LeavesCpuTensorsBarriersAndMessagesToTheHost) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  const at::Tensor here = at::ones({5});
  comm->all_reduce(here, ReduceOp::kSum);
  EXPECT_TRUE(at::equal(here, at::ones({5})));
  comm->barrier();
  const at::Tensor sent = at::rand({100}, at::kCUDA), received = at::zeros({100}, at::kCUDA);
  comm->send(sent, 0, 3);
  comm->receive(received, 0, 3);
  EXPECT_TRUE(at::equal(sent, received));
}

TEST(NcclCommunicator, GroupsAreWorldsOfTheirOwn) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  EXPECT_EQ(comm->split(-1), nullptr);
  const auto group = comm->split(0);
  ASSERT_NE(group, nullptr);
  const at::Tensor tensor = at::ones({1000}, at::kCUDA);
  const auto work = comm->start(calls::all_reduce(tensor));
  group->all_reduce(tensor, ReduceOp::kSum);
  work->wait();
  EXPECT_EQ(tensor.sum().item<float>(), 1000);
}

TEST(NcclCommunicator, ComparingSignaturesLeavesTheResultsAlone) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  const at::Tensor tensor = at::ones({8}, at::kCUDA);
  for (int k = 0; k < 200; ++k) comm->all_reduce(tensor, ReduceOp::kSum);
  EXPECT_EQ(tensor.sum().item<float>(), 8);
}

}  // namespace
}  // namespace lockstep::comm
