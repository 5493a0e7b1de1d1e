#include "lockstep/compat/apex/parallel.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <string>
#include <vector>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/compat/apex/amp.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "support/worlds.h"

namespace lockstep::apex::parallel {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

TEST(ApexParallel, KeywordsBecomeOptions) {
  const auto resolved = resolve({.message_size = 1 << 20,
                                 .delay_allreduce = true,
                                 .allreduce_always_fp32 = true,
                                 .gradient_average = false,
                                 .gradient_predivide_factor = 2});
  EXPECT_EQ(resolved.buckets.bucket_mb, 4);
  EXPECT_EQ(resolved.buckets.first_bucket_mb, 4);
  EXPECT_TRUE(resolved.delay_allreduce && resolved.allreduce_always_fp32 && !resolved.gradient_average);
  EXPECT_EQ(resolved.gradient_predivide_factor, 2);
  EXPECT_THAT(refusal([] { resolve({.message_size = 0}); }), HasSubstr("message_size 0"));
  const Tensor end = at::ones({2});
  EXPECT_THAT(refusal([&] { resolve({.delay_allreduce = true, .allreduce_trigger_params = {end}}); }),
              HasSubstr("give only one of them"));
  resolve({.retain_allreduce_buffers = true,
           .num_allreduce_streams = 2,
           .allreduce_communicators = {nullptr},
           .gradient_average_split_factor = 2,
           .prof = true});
}

Tensor filled(int value) { return at::full({1, 2}, value, at::kFloat); }

// Rank r's gradient is r + 1: of a loss that is linear in the weight.
RANK_PROGRAM(apex_ddp) {
  const auto world = join_world(context);
  torch::nn::Linear net(torch::nn::LinearOptions(2, 1).bias(false));
  DistributedDataParallel ddp(net.ptr(), world);
  const Tensor x = filled(context.rank + 1);
  const auto grad = [&] { return net->weight.grad(); };
  ddp.disable_allreduce();
  ddp.disable_allreduce();
  ddp.backward(net->forward(x).sum());
  EXPECT_TRUE(at::equal(grad(), x)) << "this rank's own";
  ddp.enable_allreduce();
  ddp.backward(net->forward(x).sum());
  EXPECT_TRUE(at::allclose(grad(), at::full({1, 2}, context.size + 1.0f))) << "the mean of twice each rank's";
}
TEST(ApexParallel, AllReduceIsSwitchedOffAndOn) {
  for (const int size : {1, 3}) expect_ranks_pass("apex_ddp", size);
}

// Two micro-batches a step in mixed precision, of which the second folds. The argument is the level.
RANK_PROGRAM(apex_accumulation) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 2), alone(4, 2);
  alone->weight.set_data(net->weight.detach().clone());
  alone->bias.set_data(net->bias.detach().clone());
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.1}});
  torch::optim::SGD by_one(alone->parameters(), 0.1);
  amp::InitializeOptions options{.opt_level = context.argument};
  if (context.argument != "O0") options.loss_scale = 128.0;
  const auto amp = amp::initialize(*net, *sgd, options);
  DistributedDataParallel ddp(net.ptr(), world);
  const auto loss_of = [&](torch::nn::Linear& of, int64_t step, int part, int rank) {
    at::manual_seed(static_cast<uint64_t>(100 * step + 10 * part + rank));
    const Tensor x = at::randn({8, 4}), y = at::randn({8, 2});
    return at::mse_loss(of.get() == net.get() ? amp->forward(of, x) : of->forward(x), y);
  };
  const auto backward = [&](const Tensor& loss, bool delay) {
    const auto scaled = amp->scale_loss(loss, *sgd, {.delay_unscale = delay});
    scaled.backward();
  };
  for (int64_t step = 0; step < 3; ++step) {
    const bool plain = step == 2;  // the first micro-batch without amp
    ddp.disable_allreduce();
    if (plain) loss_of(net, step, 0, context.rank).backward();
    if (!plain) backward(loss_of(net, step, 0, context.rank), /*delay=*/true);
    ddp.enable_allreduce();
    backward(loss_of(net, step, 1, context.rank), /*delay=*/false);
    amp->step(*sgd);
    amp->zero_grad(*sgd);
    by_one.zero_grad();
    for (int rank = 0; rank < context.size; ++rank) {
      ((loss_of(alone, step, 0, rank) + loss_of(alone, step, 1, rank)) / context.size).backward();
    }
    by_one.step();
    const Tensor rows = world->communicator().all_gather(net->weight.detach().to(at::kFloat));
    EXPECT_TRUE(at::equal(rows[0], rows[context.size - 1])) << "step " << step;
    EXPECT_TRUE(at::allclose(rows[0], alone->weight, 2e-2, 2e-3)) << "step " << step;
  }
  ddp.disable_allreduce();
  EXPECT_THAT(refusal([&] { backward(loss_of(net, 3, 0, context.rank), /*delay=*/false); }),
              HasSubstr("gradients that are not folded yet; set delay_unscale"));
}
TEST(ApexParallel, AmpAccumulatesWithoutAllReduce) {
  for (const char* level : {"O0", "O1", "O2"}) {
    SCOPED_TRACE(level);
    for (const int size : {1, 2}) expect_ranks_pass("apex_accumulation", size, level);
  }
}

// One rank's loss overflows, and all ranks skip. The argument is the level, and whose optimizer it is.
RANK_PROGRAM(apex_overflow) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(4, 2);
  const bool ours = context.argument.ends_with("ours");
  const auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.1}});
  torch::optim::SGD plain(net->parameters(), 0.1);
  torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
  const auto amp = amp::initialize(*net, sgd, {.opt_level = context.argument.substr(0, 2)});
  DistributedDataParallel ddp(net.ptr(), world);
  const Tensor before = net->weight.detach().clone();
  for (const bool overflow : {true, false}) {
    const double factor = overflow && context.rank == 1 ? HUGE_VAL : 1e-3;
    {
      const auto scaled = amp->scale_loss(amp->forward(net, at::ones({8, 4})).mean() * factor, sgd);
      scaled.backward();
    }
    if (overflow) EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("is not finite"));
    EXPECT_EQ(amp->step(sgd).skipped, overflow);
    EXPECT_EQ(at::equal(amp->master_params(sgd)[0].to(net->weight.scalar_type()), before), overflow);
    EXPECT_EQ(amp->loss_scale(), 32768);
    amp->zero_grad(sgd);
  }
}
TEST(ApexParallel, AnOverflowOfOneRankSkipsOnAll) {
  for (const char* argument : {"O1 ours", "O1", "O2 ours", "O2"}) {
    SCOPED_TRACE(argument);
    expect_ranks_pass("apex_overflow", 2, argument);
  }
}

RANK_PROGRAM(apex_buckets) {
  const auto world = join_world(context);
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::Linear(3, 4), torch::nn::Linear(4, 1));
  const auto buckets = [&](const DistributedDataParallelOptions& options) {
    const DistributedDataParallel ddp(net.ptr(), world, options);
    std::vector<std::string> labels;
    for (size_t i = 0; i < ddp.reducer().buckets(); ++i) labels.push_back(ddp.reducer().log(i).label);
    return labels;
  };
  EXPECT_THAT(buckets({}), ElementsAre("bucket 1/1 (2.bias …)"));
  EXPECT_THAT(buckets({.message_size = 16}), ElementsAre("bucket 1/2 (2.bias …)", "bucket 2/2 (0.bias …)"));
  const auto first = net->ptr<torch::nn::LinearImpl>(0), second = net->ptr<torch::nn::LinearImpl>(1);
  const DistributedDataParallelOptions options{.message_size = 1,
                                               .allreduce_trigger_params = {second->bias, first->bias}};
  EXPECT_THAT(buckets(options),
              ElementsAre("bucket 1/3 (2.bias …)", "bucket 2/3 (1.weight …)", "bucket 3/3 (0.weight)"));
  EXPECT_THAT(refusal([&] { buckets({.allreduce_trigger_params = {at::ones({2})}}); }),
              HasSubstr("of the 1 parameters that end buckets 0 are the module's"));
}
TEST(ApexParallel, MessageSizeAndTriggersCutBuckets) {
  for (const int size : {1, 2}) expect_ranks_pass("apex_buckets", size);
}

// Apex: g is multiplied by 1 / factor, added over ranks, and the sum multiplied by factor / ranks, or left alone.
RANK_PROGRAM(apex_predivide) {
  const auto world = join_world(context);
  at::manual_seed(3);
  const Tensor gradients = at::randn({context.size, 1, 501});
  constexpr double kFactor = 3;
  for (const bool average : {true, false}) {
    torch::nn::Linear net(torch::nn::LinearOptions(501, 1).bias(false));
    DistributedDataParallel ddp(net.ptr(), world, {.gradient_average = average, .gradient_predivide_factor = kFactor});
    (net->weight * gradients[context.rank]).sum().backward();
    Tensor sum = gradients[0] * (1 / kFactor);
    for (int rank = 1; rank < context.size; ++rank) sum = sum + gradients[rank] * (1 / kFactor);
    if (average) sum = sum * (kFactor / context.size);
    EXPECT_TRUE(at::equal(net->weight.grad(), sum)) << "average " << average;
    EXPECT_FALSE(at::equal(sum, gradients.sum(0) / (average ? context.size : kFactor))) << "the order shows";
  }
}
TEST(ApexParallel, PredivideHasApexsOrder) { expect_ranks_pass("apex_predivide", 3); }

// The first layer's gradient comes last: by then the other layers' buckets are under way, unless they are delayed.
RANK_PROGRAM(apex_delay) {
  const auto world = join_world(context);
  const auto begun = [&] { return world->self().sequence.load(); };
  for (const bool delay : {false, true}) {
    torch::nn::Linear first(2, 3), second(3, 4), third(4, 1);
    torch::nn::Sequential net(first, second, third);
    DistributedDataParallel ddp(net.ptr(), world, {.message_size = 1, .delay_allreduce = delay});
    ASSERT_EQ(ddp.reducer().buckets(), 6u);
    uint64_t before = begun(), during = before;
    first->weight.register_hook([&](const Tensor&) { during = begun(); });
    net->forward(filled(context.rank + 1)).sum().backward();
    if (delay) EXPECT_EQ(during, before) << "no fold before backward's end";
    if (!delay) EXPECT_GE(during, before + 4) << "those of the second and the third layer";
    EXPECT_GE(begun(), before + 6) << "all of them in the end";
  }
}
TEST(ApexParallel, DelayAllReduceFoldsWhenBackwardIsOver) { expect_ranks_pass("apex_delay", 2); }

RANK_PROGRAM(apex_reducer) {
  const auto world = join_world(context);
  at::manual_seed(static_cast<uint64_t>(context.rank));
  torch::nn::Linear net(2, 1);
  Reducer reducer(net.ptr(), world);
  at::manual_seed(0);
  EXPECT_TRUE(at::equal(net->weight, torch::nn::Linear(2, 1)->weight)) << "rank 0's";
  net->weight.mutable_grad() = filled(context.rank);
  reducer.reduce();
  EXPECT_TRUE(at::equal(net->weight.grad(), at::full({1, 2}, (context.size - 1) / 2.0f)));
  EXPECT_FALSE(net->bias.grad().defined());
}
TEST(ApexParallel, AReducerAverages) {
  for (const int size : {1, 2}) expect_ranks_pass("apex_reducer", size);
}

RANK_PROGRAM(apex_syncbn) {
  const auto world = join_world(context);
  EXPECT_THAT(create_syncbn_process_group(*world, 0), IsEmpty());
  EXPECT_THAT(refusal([&] { create_syncbn_process_group(*world, 3); }), HasSubstr("does not divide 4 ranks"));
  const auto group = create_syncbn_process_group(*world, 2);
  if (context.rank < 2) EXPECT_THAT(group, ElementsAre(0, 1));
  if (context.rank >= 2) EXPECT_THAT(group, ElementsAre(2, 3));
  torch::nn::BatchNorm1d norm(2);
  convert_syncbn_model(*norm, *world, group);
  EXPECT_EQ(lockstep::parallel::find_sync_group(*norm)->ranks(), 2);
}
TEST(ApexParallel, BatchNormGroupsAreNeighbours) { expect_ranks_pass("apex_syncbn", 4); }

}  // namespace
}  // namespace lockstep::apex::parallel
