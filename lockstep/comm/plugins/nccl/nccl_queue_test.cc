// The queue is inside the plug-in, and is seen through what it makes of works.
#include <ATen/ATen.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/plugins/nccl/nccl_world.h"

namespace lockstep::comm {
namespace {

TEST(NcclQueue, WorksEndInOrderAndTellHowLongTheyTook) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  const at::Tensor tensor = at::ones({1 << 22}, at::kCUDA);
  std::vector<std::shared_ptr<Work>> works;
  for (int k = 0; k < 20; ++k) works.push_back(comm->start(calls::all_reduce(tensor)));
  EXPECT_TRUE(works.back()->wait_for(std::chrono::seconds(20)));
  for (const auto& work : works) EXPECT_TRUE(work->done());
  const auto elapsed = works.back()->elapsed();
  EXPECT_GT(elapsed.count(), 0);
  EXPECT_EQ(works.back()->elapsed(), elapsed);
}

TEST(NcclQueue, ADroppedWorkStillEnds) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  const at::Tensor tensor = at::ones({1000}, at::kCUDA);
  for (int k = 0; k < 50; ++k) comm->start(calls::broadcast(tensor, 0));
  comm->barrier();
  EXPECT_EQ(tensor.sum().item<float>(), 1000);
}

TEST(NcclQueue, AfterAnAbortCallsThrow) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  const at::Tensor tensor = at::ones({1000}, at::kCUDA);
  comm->all_reduce(tensor, ReduceOp::kSum);
  comm->abort("enough");
  EXPECT_THROW(
      {
        for (int k = 0; k < 1000; ++k) comm->start(calls::all_reduce(tensor))->wait_for(std::chrono::seconds(1));
      },
      CommError);
}

}  // namespace
}  // namespace lockstep::comm
