#include "lockstep/parallel/comm_log.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

TEST(CommLog, AddsUpBuckets) {
  comm::SingleCommunicator comm;
  const at::Tensor first = at::ones({3}).requires_grad_(), last = at::ones({5}).requires_grad_();
  Reducer reducer({{"first", first}, {"last", last}}, comm, {.buckets = {.bucket_mb = 1e-6, .first_bucket_mb = 1e-6}});
  ASSERT_EQ(reducer.buckets(), 2u);
  reducer.begin_step(1);
  (first.sum() + last.sum()).backward();
  reducer.finish();
  const CommLog log = comm_log_of(reducer);
  EXPECT_EQ(log.bytes, 8 * 4);
  EXPECT_EQ(log.waited, reducer.log(0).waited + reducer.log(1).waited);
  EXPECT_EQ(log.in_flight, reducer.log(0).in_flight + reducer.log(1).in_flight);
}

TEST(CommLog, TheBoardHasTheSumOfAllSteps) {
  BoardRank rank{};
  for (int step = 0; step < 2; ++step) add_to_board({.bytes = 100, .in_flight = 0.5, .waited = 0.25}, rank);
  EXPECT_EQ(rank.reduced_bytes.load(), 200u);
  EXPECT_EQ(rank.reduce_ns.load(), 1'000'000'000);
  EXPECT_EQ(rank.reduce_wait_ns.load(), 500'000'000);
}

TEST(CommLog, OverlapIsTheShareThatNobodyWaitedFor) {
  EXPECT_EQ((CommLog{.bytes = 1, .in_flight = 2, .waited = 0.5}).overlap(), 0.75);
  EXPECT_EQ(CommLog().overlap(), 0) << "before the first step";
}

}  // namespace
}  // namespace lockstep::parallel
