// DistributedDataParallel on several ranks against one process on the joined batch, and each of its options against its
// definition.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/power_sgd.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

// Two layers, the first one used twice, the second one at will.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear inner{nullptr}, outer{nullptr};
  NetImpl() {
    at::manual_seed(3);
    inner = register_module("inner", torch::nn::Linear(6, 6));
    outer = register_module("outer", torch::nn::Linear(6, 2));
  }
  Tensor forward(const Tensor& x, bool all = true) {
    const Tensor y = at::relu(inner->forward(at::relu(inner->forward(x))));
    return all ? outer->forward(y) : y;
  }
};
TORCH_MODULE(Net);

constexpr int64_t kRows = 4;  // a batch has

Tensor batch(int64_t number) {
  at::manual_seed(100 + static_cast<uint64_t>(number));
  return at::randn({kRows, 6});
}

Tensor loss_of(Net& net, int64_t number, bool all = true) { return net->forward(batch(number), all).square().mean(); }

// Of one process, whose loss is `loss`.
std::vector<Tensor> gradients_alone(const std::function<Tensor(Net&)>& loss) {
  Net net;
  loss(net).backward();
  std::vector<Tensor> gradients;
  for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad());
  return gradients;
}

void expect_gradients(Net& net, const std::vector<Tensor>& expected, double tolerance = 1e-6) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto name = net->named_parameters().keys()[i];
    const Tensor got = net->parameters()[i].grad();
    ASSERT_EQ(got.defined(), expected[i].defined()) << name;
    if (got.defined()) {
      EXPECT_TRUE(at::allclose(got, expected[i], 1e-4, tolerance)) << name;
    }
  }
}

Tensor mean_loss(Net& net, int ranks) {
  Tensor sum = loss_of(net, 0);
  for (int rank = 1; rank < ranks; ++rank) sum = sum + loss_of(net, rank);
  return sum / ranks;
}

RANK_PROGRAM(options_that_change_nothing) {
  const auto world = join_world(context);
  const auto expected = gradients_alone([&](Net& net) { return mean_loss(net, context.size); });
  for (const DdpOptions& options :
       {DdpOptions{}, DdpOptions{.static_graph = true}, DdpOptions{.find_unused_parameters = true},
        DdpOptions{.delay_allreduce = true}, DdpOptions{.gradient_predivide_factor = 2.0},
        DdpOptions{.buckets = {.bucket_mb = 1e-5, .first_bucket_mb = 1e-5}},
        DdpOptions{.comm_hook = make_hook("plain", [](const GradBucket&bucket, comm::Communicator&comm) {
                     return comm.fold(bucket.gradients, {.label = bucket.label});
                   })}}) {
    Net net;
    DistributedDataParallel ddp(net.ptr(), world, options);
    for (int pass = 0; pass < 2; ++pass) {
      net->zero_grad();
      ddp.backward(loss_of(net, context.rank));
      expect_gradients(net, expected);
    }
    const CommLog log = ddp.comm_log();
    EXPECT_EQ(log.bytes, (6 * 6 + 6 + 6 * 2 + 2) * 4);
    EXPECT_GE(log.in_flight, 0);
    EXPECT_LE(log.overlap(), 1);
  }
  Net net;
  DistributedDataParallel sums(net.ptr(), world, {.gradient_average = false});
  sums.backward(loss_of(net, context.rank));
  expect_gradients(net, gradients_alone([&](Net& alone) { return mean_loss(alone, context.size) * context.size; }));
}

TEST(DataParallel, OptionsThatOnlySayHow) {
  for (const int size : {1, 2, 3}) expect_ranks_pass("options_that_change_nothing", size);
}

RANK_PROGRAM(unused_on_some_ranks) {
  const auto world = join_world(context);
  Net net;
  DistributedDataParallel ddp(net.ptr(), world, {.find_unused_parameters = true});
  // The outer layer is used on rank 1 alone; then on none.
  ddp.backward(loss_of(net, context.rank, context.rank == 1));
  const auto partly = [&](Net& alone) {
    Tensor sum = loss_of(alone, 0, false);
    for (int rank = 1; rank < context.size; ++rank) sum = sum + loss_of(alone, rank, rank == 1);
    return sum / context.size;
  };
  expect_gradients(net, gradients_alone(partly));
  net->zero_grad();
  ddp.backward(loss_of(net, context.rank, false));
  EXPECT_FALSE(net->outer->weight.grad().defined());
  EXPECT_TRUE(net->inner->weight.grad().defined());
}

TEST(DataParallel, ParametersUnusedOnSomeRanks) { expect_ranks_pass("unused_on_some_ranks", 3); }

RANK_PROGRAM(forwards_and_passes) {
  const auto world = join_world(context);
  Net net;
  DistributedDataParallel ddp(net.ptr(), world);
  const int r = context.rank;
  // Several forwards before one backward.
  const Tensor first = loss_of(net, 2 * r), second = loss_of(net, 2 * r + 1);
  ddp.backward(first + second);
  const auto expected = gradients_alone([&](Net& alone) { return mean_loss(alone, 2 * context.size) * 2; });
  expect_gradients(net, expected);
  // The same as two passes, the forward within no_sync and before it.
  for (const bool forward_within : {true, false}) {
    net->zero_grad();
    const Tensor before = loss_of(net, 2 * r);
    {
      const auto scope = ddp.no_sync();
      ddp.backward(forward_within ? loss_of(net, 2 * r) : before);
    }
    ddp.backward(loss_of(net, 2 * r + 1));
    expect_gradients(net, expected);
  }
}

TEST(DataParallel, SeveralForwardsAndPasses) { expect_ranks_pass("forwards_and_passes", 2); }

RANK_PROGRAM(uneven_inputs) {
  const auto world = join_world(context);
  for (const bool by_all : {true, false}) {
    Net net;
    DistributedDataParallel ddp(net.ptr(), world);
    const int turns = 1 + context.rank;  // rank 0 runs out first
    int done = 0;
    ddp.join(
        [&] {
          for (int turn = 0; turn < turns; ++turn, ++done) {
            net->zero_grad();
            ddp.backward(loss_of(net, 10 * turn + context.rank));
            const int going = context.size - turn;
            const auto expected = gradients_alone([&](Net& alone) {
              Tensor sum = loss_of(alone, 10 * turn + turn);
              for (int rank = turn + 1; rank < context.size; ++rank) sum = sum + loss_of(alone, 10 * turn + rank);
              return sum / (by_all ? context.size : going);
            });
            expect_gradients(net, expected);
          }
          const at::NoGradGuard no_grad;
          net->inner->bias.fill_(context.rank);
        },
        {.divide_by_initial_world_size = by_all});
    EXPECT_EQ(done, turns);
    EXPECT_EQ(net->inner->bias[0].item<float>(), context.size - 1) << "of the rank that went on longest";
  }
  Net net;
  DistributedDataParallel ddp(net.ptr(), world);
  try {
    ddp.join(
        [&] {
          for (int turn = 0; turn < 1 + context.rank; ++turn) ddp.backward(loss_of(net, turn));
        },
        {.throw_on_early_termination = true});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("run out of data"));
  }
}

TEST(DataParallel, RanksMayRunOutOfInputs) { expect_ranks_pass("uneven_inputs", 3); }

RANK_PROGRAM(compression) {
  const auto world = join_world(context);
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    Net net;
    DistributedDataParallel ddp(net.ptr(), world, {.comm_hook = compress_hook(type)});
    EXPECT_TRUE(ddp.same_bits());
    ddp.backward(loss_of(net, context.rank));
    // Two ranks: each leaf rounded, their sum rounded.
    std::vector<Tensor> sum;
    for (int rank = 0; rank < 2; ++rank) {
      const auto leaves = gradients_alone([&](Net& alone) { return loss_of(alone, rank); });
      for (size_t i = 0; i < leaves.size(); ++i) {
        const Tensor leaf = (leaves[i] * 0.5).to(type).to(at::kFloat);
        if (rank == 0) sum.push_back(leaf);
        if (rank == 1) sum[i] = (sum[i] + leaf).to(type).to(at::kFloat);
      }
    }
    for (size_t i = 0; i < sum.size(); ++i) EXPECT_TRUE(at::equal(net->parameters()[i].grad(), sum[i])) << i;
  }
}

TEST(DataParallel, CompressionEqualsItsDefinition) { expect_ranks_pass("compression", 2); }

RANK_PROGRAM(low_rank) {
  const auto world = join_world(context);
  auto net = torch::nn::Linear(torch::nn::LinearOptions(24, 32).bias(false));
  DistributedDataParallel ddp(
      net.ptr(), world, {.comm_hook = power_sgd_hook({.matrix_approximation_rank = 2, .start_powerSGD_iter = 1})});
  EXPECT_FALSE(ddp.same_bits());
  // The gradient of rank r is A_r B: of rank 2, and so is the mean over ranks, which therefore comes through whole.
  at::manual_seed(1);
  const Tensor b = at::randn({2, 24});
  Tensor mean = at::zeros({32, 24}), own;
  for (int rank = 0; rank < context.size; ++rank) {
    const Tensor a = at::randn({32, 2});
    if (rank == context.rank) own = at::matmul(a, b);
    mean += at::matmul(a, b) / context.size;
  }
  for (int pass = 0; pass < 4; ++pass) {  // the first is folded whole
    net->zero_grad();
    ddp.backward((net->weight * own).sum());
    EXPECT_TRUE(at::allclose(net->weight.grad(), mean, 1e-3, 1e-4)) << pass;
  }
}

TEST(DataParallel, PowerSgdPassesLowRankGradientsWhole) { expect_ranks_pass("low_rank", 3); }

// An embedding with sparse gradients, tied to nothing, and a dense layer; argument: the file for the state's bits.
RANK_PROGRAM(sparse) {
  const auto world = join_world(context);
  struct Words : torch::nn::Module {
    torch::nn::Embedding table{nullptr};
    torch::nn::Linear fc{nullptr};
    Words() {
      at::manual_seed(5);
      table = register_module("table", torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 3).sparse(true)));
      fc = register_module("fc", torch::nn::Linear(3, 1));
    }
  };
  const auto net = std::make_shared<Words>();
  DistributedDataParallel ddp(net, world);
  const int own = 4 / context.size;
  StepPlan step{.number = 0, .samples = 4 * 5, .lanes = {}};
  for (int i = 0; i < own; ++i) step.lanes.push_back({context.rank * own + i, 5});
  const auto words = [](int lane) { return at::arange(5, at::kLong) * (lane + 1) % 20; };
  const auto lane_loss = [&](Words& model, int lane) {
    return model.fc->forward(model.table->forward(words(lane))).square().mean();
  };
  const auto result = ddp.run(step, [&](size_t i) { return lane_loss(*net, step.lanes[i].index); });
  Words alone;
  Tensor loss = lane_loss(alone, 0);
  for (int lane = 1; lane < 4; ++lane) loss = loss + lane_loss(alone, lane);
  (loss / 4).backward();
  const Tensor got = net->table->weight.grad();
  ASSERT_TRUE(got.is_sparse());
  EXPECT_TRUE(at::allclose(got.to_dense(), alone.table->weight.grad().to_dense(), 1e-5, 1e-7));
  EXPECT_NEAR(result.square_sum,
              got._values().square().sum().item<double>() + net->fc->weight.grad().square().sum().item<double>() +
                  net->fc->bias.grad().square().sum().item<double>(),
              1e-6);
  if (context.rank == 0) std::ofstream(context.argument) << std::hexfloat << got.to_dense().flatten() << result.loss;
}

std::string written_by(const std::string& program, int ranks) {
  const std::string path = testing::TempDir() + "data_parallel." + std::to_string(getpid());
  expect_ranks_pass(program, ranks, path);
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  unlink(path.c_str());
  EXPECT_GT(text.size(), 100u);
  return text;
}

TEST(DataParallel, SparseGradientsHaveTheSameBits) {
  const std::string reference = written_by("sparse", 1);
  for (const int ranks : {2, 4}) EXPECT_EQ(written_by("sparse", ranks), reference) << ranks;
}

// Apex's options, with four lanes of bf16 and fp32 gradients that no power of two divides; argument: the bits' file.
RANK_PROGRAM(apex) {
  const auto world = join_world(context);
  struct Mixed : torch::nn::Module {
    Tensor wide, narrow;
    Mixed() {
      wide = register_parameter("wide", at::ones({500}));
      narrow = register_parameter("narrow", at::ones({500}, at::kBFloat16));
    }
  };
  const auto net = std::make_shared<Mixed>();
  DistributedDataParallel ddp(net, world, {.allreduce_always_fp32 = true, .gradient_predivide_factor = 3});
  at::manual_seed(11);
  const Tensor wide = at::randn({4, 500}), narrow = at::randn({4, 500});
  const auto own = world->own_lanes(4);
  StepPlan step{.number = 0, .samples = 4, .lanes = {}};
  for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 1});
  ddp.run(step, [&](size_t i) {
    const int lane = step.lanes[i].index;
    return (net->wide * wide[lane]).sum() + (net->narrow.to(at::kFloat) * narrow[lane]).sum();
  });
  EXPECT_TRUE(at::allclose(net->wide.grad(), wide.mean(0), 1e-5, 1e-6));
  // Each lane's gradient is bf16's; their sum is fp32's, and rounded once.
  const Tensor leaves = (narrow * 0.25).to(at::kBFloat16).to(at::kFloat);
  EXPECT_EQ(net->narrow.grad().scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(net->narrow.grad().to(at::kFloat), leaves.sum(0), 1.0 / 256, 1e-6));
  const Tensor by_nodes = ((leaves[0] + leaves[1]).to(at::kBFloat16).to(at::kFloat) +
                           (leaves[2] + leaves[3]).to(at::kBFloat16).to(at::kFloat))
                              .to(at::kBFloat16);
  EXPECT_FALSE(at::equal(net->narrow.grad(), by_nodes)) << "as it would be without the option";
  if (context.rank == 0) {
    std::ofstream file(context.argument);
    for (const Tensor& grad : {net->wide.grad(), net->narrow.grad().to(at::kFloat)}) {
      for (int64_t i = 0; i < grad.numel(); ++i) file << std::hexfloat << grad.const_data_ptr<float>()[i] << ' ';
    }
  }
}

TEST(DataParallel, ApexsOptionsHaveTheSameBits) {
  const std::string reference = written_by("apex", 1);
  for (const int ranks : {2, 4}) EXPECT_EQ(written_by("apex", ranks), reference) << ranks;
}

RANK_PROGRAM(made_anew) {
  const auto world = join_world(context);
  Net net;
  auto ddp = std::make_unique<DistributedDataParallel>(net.ptr(), world);
  ddp = std::make_unique<DistributedDataParallel>(net.ptr(), world);  // the second is made before the first is gone
  ddp->backward(loss_of(net, context.rank));
  expect_gradients(net, gradients_alone([&](Net& alone) { return mean_loss(alone, context.size); }));
  net->zero_grad();
  {
    const auto scope = ddp->no_sync();
    ddp->backward(loss_of(net, context.rank));
  }
  StepPlan step{.number = 0, .samples = context.size * kRows, .lanes = {{context.rank, kRows}}};
  ddp->run(step, [&](size_t) { return loss_of(net, context.rank); });  // adds the mean of what no_sync left
  expect_gradients(net, gradients_alone([&](Net& alone) { return mean_loss(alone, context.size) * 2; }));
}

TEST(DataParallel, MayBeMadeAnew) { expect_ranks_pass("made_anew", 2); }

RANK_PROGRAM(not_finite) {
  const auto world = join_world(context);
  Net net;
  DistributedDataParallel ddp(net.ptr(), world);
  Tensor loss = loss_of(net, context.rank);
  if (context.rank == 1) loss = loss + net->outer->bias.sum() * std::numeric_limits<float>::quiet_NaN();
  ddp.backward(loss);
  EXPECT_EQ(ddp.reducer().first_not_finite(), "outer.bias") << "on rank " << context.rank;
}

TEST(DataParallel, ANanOnOneRankIsNamedOnAll) { expect_ranks_pass("not_finite", 2); }

RANK_PROGRAM(skips_a_step) {
  const auto world = join_world(context);
  Net net;
  DistributedDataParallel ddp(net.ptr(), world);
  for (int64_t number = 0; number < 3; ++number) {
    if (context.rank == 1 && number == 1) continue;
    net->zero_grad();
    StepPlan step{.number = number, .samples = 2 * kRows, .lanes = {{context.rank, kRows}}};
    ddp.run(step, [&](size_t) { return loss_of(net, context.rank); });
  }
  world->communicator().barrier();
}

TEST(DataParallel, ARankThatSkipsAStepIsNamed) {
  for (const auto& result : Ranks("skips_a_step", 2).wait()) {
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("of another step"));
    EXPECT_THAT(result.output, HasSubstr("rank 1"));
    EXPECT_LT(result.seconds, 25);
  }
}

}  // namespace
}  // namespace lockstep::parallel
