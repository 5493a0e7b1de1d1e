#include "lockstep/compat/torch/data_parallel.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"
#include "support/worlds.h"

namespace lockstep::pytorch {
namespace {

using at::Tensor;
using distributed::Group;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

TEST(TorchDataParallel, KeywordsBecomeOptions) {
  const auto resolved = resolve({.broadcast_buffers = false,
                                 .init_sync = false,
                                 .bucket_cap_mb = 25,
                                 .find_unused_parameters = true,
                                 .static_graph = true,
                                 .dim = 0,
                                 .check_reduction = true,
                                 .gradient_as_bucket_view = true});
  EXPECT_EQ(resolved.buckets.bucket_mb, 25);
  EXPECT_EQ(resolved.buckets.first_bucket_mb, 25);
  EXPECT_TRUE(resolved.find_unused_parameters && resolved.static_graph);
  EXPECT_FALSE(resolved.broadcast_buffers || resolved.broadcast_state);
  EXPECT_EQ(resolve({}).buckets.bucket_mb, lockstep::parallel::BucketOptions{}.bucket_mb);
  EXPECT_THAT(refusal([] { resolve({.bucket_cap_mb = 0}); }), HasSubstr("bucket_cap_mb 0"));
}

TEST(TorchDataParallel, DeviceIdsAreTheModules) {
  const torch::nn::Linear net(2, 1);
  const DistributedDataParallelOptions gpu{.device_ids = {1}}, two{.device_ids = {0, 1}};
  EXPECT_EQ(gpu.device_ids[0].device, c10::Device("cuda:1"));
  EXPECT_EQ(input_device({}, *net), std::nullopt);
  EXPECT_EQ(input_device({.device_ids = {c10::Device("cpu")}}, *net), c10::Device("cpu"));
  EXPECT_THAT(refusal([&] { input_device(gpu, *net); }), HasSubstr("device_ids is cuda:1, and weight is on cpu"));
  EXPECT_THAT(refusal([&] { input_device(two, *net); }), HasSubstr("device_ids has 2 devices"));
}

Tensor filled(int value) { return at::full({1, 2}, value, at::kFloat); }

RANK_PROGRAM(torch_keywords) {
  distributed::init_process_group(join_world(context));
  at::manual_seed(static_cast<uint64_t>(context.rank));
  torch::nn::Linear net(2, 1), own(2, 1);
  const Tensor before = own->weight.clone();
  DistributedDataParallel small(net, {.bucket_cap_mb = 1e-6});
  EXPECT_EQ(small.reducer().buckets(), 2u) << "weight and bias";
  DistributedDataParallel ddp(net, {.output_device = c10::Device("meta"), .bucket_cap_mb = 1});
  EXPECT_EQ(ddp.reducer().buckets(), 1u);
  EXPECT_TRUE(ddp(filled(1)).is_meta()) << "output_device";
  DistributedDataParallel there(net, {.device_ids = {c10::Device("cpu")}});
  EXPECT_THROW(there(at::empty({1, 2}, at::kMeta)), c10::Error) << "inputs are moved: nothing can be copied from meta";
  there(filled(context.rank + 1)).sum().backward();
  EXPECT_TRUE(at::allclose(net->weight.grad(), at::full({1, 2}, (context.size + 1) / 2.0f)));
  const DistributedDataParallel apart(own, {.init_sync = false});
  EXPECT_TRUE(at::equal(own->weight, before)) << "its own, on every rank";
}
TEST(TorchDataParallel, KeywordsAct) { expect_ranks_pass("torch_keywords", 2); }

// Even and odd ranks train models of their own.
RANK_PROGRAM(torch_process_group) {
  distributed::init_process_group(join_world(context));
  const Group even = distributed::new_group({0, 2}), odd = distributed::new_group({1, 3});
  const Group& mine = context.rank % 2 == 0 ? even : odd;
  at::manual_seed(static_cast<uint64_t>(context.rank));
  torch::nn::Linear net(2, 1);
  EXPECT_THAT(refusal([&] { DistributedDataParallel(net, {.process_group = context.rank % 2 == 0 ? odd : even}); }),
              HasSubstr("is not in the group"));
  DistributedDataParallel ddp(net, {.process_group = mine});
  at::manual_seed(static_cast<uint64_t>(context.rank % 2));
  EXPECT_TRUE(at::equal(net->weight, torch::nn::Linear(2, 1)->weight)) << "of the group's first rank";
  EXPECT_EQ(ddp.world().size(), 2);
  EXPECT_EQ(ddp.world().rank(), context.rank / 2);
  ddp(filled(context.rank)).sum().backward();
  EXPECT_TRUE(at::allclose(net->weight.grad(), filled(context.rank % 2 + 1))) << "the mean of 0 and 2, of 1 and 3";
  // Steps of lanes, too.
  const lockstep::parallel::StepPlan step{.number = 0, .samples = 2, .lanes = {{context.rank / 2, 1}}};
  net->zero_grad();
  ddp.run(step, [&](size_t) { return net->forward(filled(context.rank)).sum(); });
  EXPECT_TRUE(at::allclose(net->weight.grad(), filled(context.rank % 2 + 1)));
}
TEST(TorchDataParallel, AProcessGroupFoldsAmongItsRanks) { expect_ranks_pass("torch_process_group", 4); }

}  // namespace
}  // namespace lockstep::pytorch
