// Activation checkpointing in data parallelism: by nn::checkpoint, and by a custom Function that runs a backward of its
// own within backward, as PyTorch's reentrant checkpoint does.
#include "lockstep/nn/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "lockstep/base/hash.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

using Function = std::function<Tensor(const Tensor&)>;

// As a user writes it: forward without a graph, and a backward of its own in backward.
class Reentrant : public torch::autograd::Function<Reentrant> {
 public:
  struct Holder : torch::CustomClassHolder {
    lockstep::parallel::Function function;
  };
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, c10::intrusive_ptr<Holder> holder) {
    context->save_for_backward({x});
    context->saved_data["holder"] = c10::IValue::make_capsule(holder);
    return holder->function(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto holder = c10::static_intrusive_pointer_cast<Holder>(context->saved_data["holder"].toCapsule());
    const c10::AutoGradMode with_graph(true);
    const Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    torch::autograd::backward({holder->function(x)}, {gradients[0]});
    return {x.grad(), Tensor()};
  }
};

Tensor reentrant(const Function& function, const Tensor& x) {
  auto holder = c10::make_intrusive<Reentrant::Holder>();
  holder->function = function;
  return Reentrant::apply(x, holder);
}

enum class Way { kPlain, kCheckpoint, kReentrant };

// Three blocks, of which two are one module, and a parameter that nothing uses.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    at::manual_seed(3);
    first = register_module("first", torch::nn::Linear(6, 6));
    shared = register_module("shared", torch::nn::Linear(6, 6));
    drop = register_module("drop", torch::nn::Dropout(0.3));
    norm = register_module("norm", nn::BatchNorm2d(6));
    head = register_module("head", torch::nn::Linear(6, 2));
    idle = register_parameter("idle", at::ones({2}));
  }
  Tensor forward(const Tensor& x) {
    const auto block = [this](torch::nn::Linear layer) {
      return [this, layer](const Tensor& in) mutable { return drop->forward(layer->forward(in).tanh()); };
    };
    const auto normalised = [this](const Tensor& in) { return norm->forward(in.unsqueeze(2).unsqueeze(3)).flatten(1); };
    Tensor y = through(block(first), x.detach().requires_grad_());
    y = through(block(shared), y);
    if (with_norm) y = through(normalised, y);
    return head->forward(through(block(shared), y));
  }
  Tensor through(const Function& function, const Tensor& x) const {
    if (way == Way::kCheckpoint) return nn::checkpoint(function, x);
    return way == Way::kReentrant ? reentrant(function, x) : function(x);
  }

  Way way = Way::kPlain;
  bool with_norm = true;
  torch::nn::Linear first{nullptr}, shared{nullptr}, head{nullptr};
  torch::nn::Dropout drop{nullptr};
  nn::BatchNorm2d norm{nullptr};
  Tensor idle;
};
TORCH_MODULE(Net);

constexpr int kLanes = 4;
constexpr int64_t kSamples = 3;

std::string bits_of(const torch::nn::Module& net) {
  Sha256 hash;
  for (const auto& tensors : {net.parameters(), net.buffers()}) {
    for (const auto& tensor : tensors) hash.update(tensor.contiguous().data_ptr(), tensor.nbytes());
  }
  return hash.hex();
}

// Some steps of lanes; returns the weights' bits.
std::string trained(const std::shared_ptr<World>& world, Way way, const DdpOptions& options, bool sync) {
  Net net;
  net->way = way;
  if (sync) convert_sync_batchnorm(*net, world->communicator());
  for (const Tensor& hooked : {net->first->weight, net->norm->weight}) {
    hooked.register_hook([](const Tensor& gradient) { return gradient * 0.5; });
  }
  DistributedDataParallel ddp(net.ptr(), world, options);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  const Tensor data = at::randn({kLanes * kSamples, 6});
  const auto own = world->own_lanes(kLanes);
  for (int64_t number = 0; number < 3; ++number) {
    StepPlan step{.number = number, .samples = kLanes * kSamples, .lanes = {}};
    for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, kSamples});
    optimizer.zero_grad();
    ddp.run(step, [&](size_t i) {
      return net->forward(data.narrow(0, kSamples * step.lanes[i].index, kSamples)).square().mean();
    });
    EXPECT_FALSE(net->idle.grad().defined());
    optimizer.step();
  }
  return bits_of(*net);
}

// libtorch's BatchNorm counts its batches itself, and averages over all of them.
RANK_PROGRAM(counted_once) {
  const auto world = join_world(context);
  std::vector<Tensor> without;
  for (const bool with : {false, true}) {
    torch::nn::BatchNorm1d norm(torch::nn::BatchNorm1dOptions(6).momentum(std::nullopt));
    convert_sync_batchnorm(*norm, world->communicator());
    const DistributedDataParallel ddp(norm.ptr(), world);
    const Function function = [&](const Tensor& x) { return norm->forward(x); };
    const Function twice = [&](const Tensor& x) { return nn::checkpoint(function, x.tanh()); };
    for (int pass = 0; pass < 3; ++pass) {
      const Tensor x = ((at::arange(12, at::kFloat) + context.rank + pass).view({2, 6}).sin()).requires_grad_();
      (with ? nn::checkpoint(twice, x) : function(x.tanh())).pow(3).mean().backward();
    }
    const std::vector<Tensor> statistics = {norm->running_mean, norm->running_var, norm->num_batches_tracked,
                                            norm->weight.grad()};
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 3);
    for (size_t i = 0; i < without.size(); ++i) EXPECT_TRUE(at::equal(statistics[i], without[i])) << i;
    without = statistics;
  }
}
TEST(ActivationCheckpoint, AConvertedBatchNormCountsABatchOnce) {
  for (const int ranks : {1, 2}) expect_ranks_pass("counted_once", ranks);
}

// Argument: the file that rank 0 writes the bits to.
RANK_PROGRAM(checkpointed) {
  const auto world = join_world(context);
  const DdpOptions finding{.seed = 4, .find_unused_parameters = true}, fixed{.seed = 4, .static_graph = true};
  for (const bool sync : {false, true}) {
    const std::string plain = trained(world, Way::kPlain, finding, sync);
    EXPECT_EQ(trained(world, Way::kPlain, fixed, sync), plain);
    EXPECT_EQ(trained(world, Way::kCheckpoint, finding, sync), plain);
    EXPECT_EQ(trained(world, Way::kCheckpoint, fixed, sync), plain);
    if (context.rank == 0) std::ofstream(context.argument, std::ios::app) << plain << '\n';
  }
}

std::string bits_on(int ranks) {
  const std::string path = testing::TempDir() + "checkpoint." + std::to_string(getpid());
  expect_ranks_pass("checkpointed", ranks, path);
  std::ifstream file(path);
  const std::string bits((std::istreambuf_iterator<char>(file)), {});
  unlink(path.c_str());
  EXPECT_EQ(bits.size(), 2 * 65u);
  return bits;
}

TEST(ActivationCheckpoint, HasTheBitsOfTheRunWithoutItOnAnyNumberOfRanks) {
  const std::string reference = bits_on(1);
  for (const int ranks : {2, 4}) EXPECT_EQ(bits_on(ranks), reference) << ranks;
}

// Gradients of passes by hand, without the drawing layers: the user's Function keeps no random state.
std::vector<Tensor> by_hand(const std::shared_ptr<World>& world, Way way, const DdpOptions& options, bool known) {
  Net net;
  net->way = way;
  net->with_norm = false;
  net->drop->eval();
  DistributedDataParallel ddp(net.ptr(), world, options);
  for (int pass = 0; pass < 3; ++pass) {
    net->zero_grad();
    const Tensor loss = net->forward(at::randn({kSamples, 6}) + world->rank()).square().mean();
    known ? ddp.backward(loss) : loss.backward();
  }
  std::vector<Tensor> gradients;
  for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad());
  return gradients;
}

RANK_PROGRAM(reentrant_passes) {
  const auto world = join_world(context);
  const DdpOptions finding{.find_unused_parameters = true}, fixed{.static_graph = true};
  for (const bool known : {false, true}) {
    at::manual_seed(8);
    const auto plain = by_hand(world, Way::kPlain, finding, known);
    for (const Way way : {Way::kPlain, Way::kCheckpoint, Way::kReentrant}) {
      at::manual_seed(8);
      const auto got = by_hand(world, way, fixed, known);
      for (size_t i = 0; i < plain.size(); ++i) {
        ASSERT_EQ(got[i].defined(), plain[i].defined()) << i;
        if (got[i].defined()) EXPECT_TRUE(at::equal(got[i], plain[i])) << i << " way " << static_cast<int>(way);
      }
    }
  }
}
TEST(ActivationCheckpoint, AStaticGraphFoldsAReentrantNetOnce) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("reentrant_passes", ranks);
}

// The same in steps of lanes; the bits are those of the net without.
RANK_PROGRAM(reentrant_steps) {
  const auto world = join_world(context);
  const auto own = world->own_lanes(kLanes);
  const auto gradients = [&](Way way, const DdpOptions& options) {
    Net net;
    net->way = way;
    net->with_norm = false;
    net->drop->eval();
    DistributedDataParallel ddp(net.ptr(), world, options);
    for (int64_t number = 0; number < 3; ++number) {
      StepPlan step{.number = number, .samples = kLanes, .lanes = {}};
      for (int lane = own.first; lane < own.last; ++lane) {
        // Lane 3 has no samples in the first step.
        step.lanes.push_back({lane, number == 0 && lane == 3 ? 0 : 1});
      }
      if (number == 0) step.samples = kLanes - 1;
      net->zero_grad();
      ddp.run(step, [&](size_t i) { return (net->forward(at::ones({1, 6})) * (step.lanes[i].index + 1)).sum(); });
    }
    return std::vector<Tensor>{net->first->weight.grad(), net->shared->weight.grad(), net->head->weight.grad()};
  };
  const auto plain = gradients(Way::kPlain, {.find_unused_parameters = true});
  const auto got = gradients(Way::kReentrant, {.static_graph = true});
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(got[i], plain[i])) << i;
}
TEST(ActivationCheckpoint, AStaticGraphFoldsAReentrantNetInSteps) {
  for (const int ranks : {1, 2, 4}) expect_ranks_pass("reentrant_steps", ranks);
}

RANK_PROGRAM(reentrant_without) {
  const auto world = join_world(context);
  Net net;
  net->way = Way::kReentrant;
  net->with_norm = false;
  net->idle.requires_grad_(false);
  const DistributedDataParallel ddp(net.ptr(), world);
  EXPECT_THAT(refusal([&] {
                net->forward(at::ones({1, 6})).sum().backward();
              }),
              HasSubstr("set static_graph, or checkpoint that part by lockstep::nn::checkpoint"));
}
TEST(ActivationCheckpoint, WithoutAStaticGraphASecondGradientSaysWhatToDo) {
  expect_ranks_pass("reentrant_without", 1);
}

// Each parameter is used once: a pass that begins within another's node ends with the outer one.
RANK_PROGRAM(reentrant_once) {
  const auto world = join_world(context);
  torch::nn::Linear first(4, 4), second(4, 4);
  struct Both : torch::nn::Module {};
  const auto both = std::make_shared<Both>();
  both->register_module("first", first);
  both->register_module("second", second);
  at::manual_seed(1);
  const Tensor x = at::randn({2, 4}) + context.rank;
  DistributedDataParallel ddp(both, world);
  const auto loss = [&](bool with) {
    const Function inner = [&](const Tensor& in) { return second->forward(in).tanh(); };
    const Tensor hidden = first->forward(x);
    return (with ? reentrant(inner, hidden) : inner(hidden)).square().sum();
  };
  loss(false).backward();
  const Tensor plain[] = {first->weight.grad().clone(), second->weight.grad().clone()};
  both->zero_grad();
  loss(true).backward();
  EXPECT_TRUE(at::equal(first->weight.grad(), plain[0]));
  EXPECT_TRUE(at::equal(second->weight.grad(), plain[1]));
}
TEST(ActivationCheckpoint, APassWithinAPassEndsWithIt) {
  for (const int ranks : {1, 2}) expect_ranks_pass("reentrant_once", ranks);
}

}  // namespace
}  // namespace lockstep::parallel
