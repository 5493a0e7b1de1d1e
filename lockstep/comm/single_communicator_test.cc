#include "lockstep/comm/single_communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

// The suite that every backend passes is in communicator_test.cc; here is what a world of one does besides.
TEST(SingleCommunicator, LeavesValuesAndNeverSharesResults) {
  SingleCommunicator comm;
  const at::Tensor t = at::randn({3, 4});
  const at::Tensor before = t.clone();
  comm.all_reduce(t, ReduceOp::kMean);
  EXPECT_TRUE(at::equal(t, before));
  const at::Tensor gathered = comm.all_gather(t);
  gathered.zero_();
  EXPECT_TRUE(at::equal(t, before));
}

TEST(SingleCommunicator, FoldsAreDoneAtOnceAndSummed) {
  SingleCommunicator comm;
  const at::Tensor sums = at::empty({2}, at::kDouble);
  const auto work = comm.fold({at::full({10}, 2.0f), at::ones({4})}, {.label = "test", .square_sums = sums});
  EXPECT_TRUE(work->done());
  EXPECT_EQ(sums[0].item<double>(), 40);
  EXPECT_EQ(sums[1].item<double>(), 4);
}

TEST(SingleCommunicator, AReceiveMayComeBeforeItsSend) {
  SingleCommunicator comm;
  const at::Tensor got = at::zeros({4});
  const auto received = comm.irecv(got, 0, 4), other = comm.irecv(at::zeros({2}), 0, 4);
  EXPECT_FALSE(received->done());
  comm.send(at::ones({4}), 0, 3);
  try {
    received->wait();
    ADD_FAILURE() << "no error";
  } catch (const DesyncError& error) {
    EXPECT_STREQ(error.what(), "rank 0 waits in receive from rank 0 (tag 4), a message to itself that was not sent");
  }
  comm.isend(at::ones({4}), 0, 4)->wait();
  received->wait();
  EXPECT_EQ(got.sum().item<float>(), 4);
  EXPECT_THROW(comm.send(at::ones({4}), 0, 4), DesyncError) << "the second receive expects [2]";
}

TEST(SingleCommunicator, KnowsNoOtherRank) { EXPECT_THROW(SingleCommunicator().broadcast(at::ones({1}), 1), BugError); }

}  // namespace
}  // namespace lockstep::comm
