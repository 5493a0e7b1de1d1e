// A stand-in for the GPU's graph does the recorded work again when it is replayed, and writes the results into the
// recorded tensors, as the device does. It tells nothing about CUDA: `./run test cuda` does.
#include "lockstep/parallel/lane_graph.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/sgd.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/world/world.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;

struct Calls {
  int rehearsed = 0, recorded = 0, replayed = 0, made = 0;
  bool fails = false, has_room = true;
  std::vector<Tensor> kept = {};                         // what a recording does not change
  std::function<std::vector<Tensor>()> again = nullptr;  // the work of a replay; null: what was recorded
};

class StandIn final : public comm::DeviceGraph {
 public:
  explicit StandIn(Calls& calls) : calls_(calls) {}
  std::vector<Tensor> rehearse(const Work& work) override {
    ++calls_.rehearsed;
    return work();
  }
  std::vector<Tensor> record(const Work& work) override {
    ++calls_.recorded;
    if (calls_.fails) throw ConfigError("operation not permitted when stream is capturing");
    std::vector<Tensor> before;
    for (const Tensor& each : calls_.kept) before.push_back(each.clone());
    results_ = work();
    for (size_t i = 0; i < before.size(); ++i) calls_.kept[i].copy_(before[i]);
    for (const Tensor& result : results_) result.zero_();
    work_ = calls_.again ? calls_.again : work;
    return results_;
  }
  void forget() override { work_ = nullptr; }
  bool has_room_beside() override { return calls_.has_room; }
  void replay() override {
    ++calls_.replayed;
    const auto now = work_();
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < results_.size(); ++i) results_[i].copy_(now[i]);
  }

 private:
  Calls& calls_;
  Work work_;
  std::vector<Tensor> results_;
};

comm::MakeDeviceGraph standing_in(Calls& calls) {
  return [&calls] {
    ++calls.made;
    return std::make_unique<StandIn>(calls);
  };
}

// y = w · x for a batch that stays where it is.
struct Line {
  Tensor x = at::ones({4}), w = at::ones({}).requires_grad_();
  std::function<Tensor()> loss = [this] { return (w * x).mean(); };
};

TEST(LaneGraph, TriesRehearsesRecordsAndReplays) {
  Calls calls;
  Line line;
  LaneGraph graph({line.w}, {}, standing_in(calls));
  EXPECT_FALSE(graph.run(4, line.loss, 1));
  EXPECT_FALSE(graph.run(4, line.loss, 1));
  EXPECT_EQ(calls.rehearsed, 0);
  for (int step = 2; step < 6; ++step) {
    line.x.fill_(step);
    const auto outcome = graph.run(4, line.loss, /*factor=*/8 * step);
    ASSERT_TRUE(outcome) << step;
    EXPECT_EQ(outcome->loss.item<float>(), step);
    EXPECT_EQ(outcome->gradients.at(0).item<float>(), 8 * step * step) << "of the loss times the factor of this step";
    EXPECT_FALSE(outcome->loss.requires_grad());
  }
  EXPECT_TRUE(calls.rehearsed == 1 && calls.recorded == 1 && calls.replayed == 3);
  EXPECT_TRUE(graph.is_recorded());
}

TEST(LaneGraph, AnotherNumberOfSamplesIsLeftToTheCaller) {
  Calls calls;
  Line line;
  LaneGraph graph({line.w}, {}, standing_in(calls));
  for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
  EXPECT_FALSE(graph.run(3, line.loss, 1));
  EXPECT_TRUE(graph.run(4, line.loss, 1));
  EXPECT_EQ(calls.recorded, 1);
}

TEST(LaneGraph, OtherMemoryIsRecordedAnew) {
  Calls calls;
  Line line;
  const Tensor buffer = at::zeros({2});
  LaneGraph graph({line.w}, {buffer}, standing_in(calls));
  for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
  buffer.set_data(at::ones({2}));
  for (int step = 0; step < 2; ++step) EXPECT_FALSE(graph.run(4, line.loss, 1));
  for (int step = 0; step < 2; ++step) EXPECT_TRUE(graph.run(4, line.loss, 1));
  EXPECT_EQ(calls.recorded, 2);
}

TEST(LaneGraph, MakesRoomWhereTooLittleMemoryIsLeft) {
  Calls calls;
  Line line;
  LaneGraph graph({line.w}, {}, standing_in(calls));
  for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
  graph.make_room();
  EXPECT_TRUE(graph.is_recorded());
  calls.has_room = false;
  EXPECT_FALSE(graph.run(3, line.loss, 1));
  EXPECT_FALSE(graph.is_recorded()) << "an epoch's last batch needs the memory";
  for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
  EXPECT_TRUE(graph.is_recorded());
  graph.make_room();
  EXPECT_FALSE(graph.is_recorded());
  for (int evaluation = 0; evaluation < 40; ++evaluation) {
    for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
    graph.make_room();
  }
  EXPECT_EQ(graph.refusal(), "") << "recordings that make room are no waste";
}

TEST(LaneGraph, ALargerBatchIsRecordedAnew) {
  Calls calls;
  Line line;
  LaneGraph graph({line.w}, {}, standing_in(calls));
  for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
  EXPECT_FALSE(graph.run(5, line.loss, 1));
  for (int step = 0; step < 3; ++step) graph.run(5, line.loss, 1);
  EXPECT_EQ(calls.recorded, 2);
  EXPECT_FALSE(graph.run(4, line.loss, 1));
}

// Such as weights that are replaced at every evaluation.
TEST(LaneGraph, RecordingsThatNeverLastComeToAnEnd) {
  Calls calls;
  Line line;
  const Tensor buffer = at::zeros({2});
  LaneGraph graph({line.w}, {buffer}, standing_in(calls));
  for (int i = 0; i < 40; ++i) {
    const Tensor other = at::ones({2});  // at an address of its own: the last is still there
    buffer.set_data(other);
    for (int step = 0; step < 4; ++step) graph.run(4, line.loss, 1);
  }
  EXPECT_EQ(calls.recorded, 32);
  EXPECT_EQ(calls.made, 1) << "each has a stream, whose memory libraries keep";
  EXPECT_THAT(graph.refusal(), HasSubstr("have changed soon after each of 32 recordings"));
}

TEST(LaneGraph, WhatCanNotBeRecordedIsLeftToTheCallerForGood) {
  Calls calls{.fails = true};
  Line line;
  LaneGraph graph({line.w}, {}, standing_in(calls));
  for (int step = 0; step < 6; ++step) EXPECT_EQ(graph.run(4, line.loss, 1).has_value(), step == 2) << step;
  EXPECT_EQ(calls.recorded, 1);
  EXPECT_THAT(graph.refusal(), HasSubstr("operation not permitted"));
}

// A training by replays has the bits of one without: gradients, momenta, BatchNorm's statistics, an overflow.
TEST(LaneGraph, ReplayedStepsAreStepsAsEver) {
  const auto world = std::make_shared<World>(
      rendezvous::Place{.rank = 0, .size = 1, .local_rank = 0, .local_size = 1, .launcher = "test", .rendezvous = ""},
      NodeMemory::create(1), WorldOptions{.backend = "single"});
  struct Outcome {
    std::vector<double> losses;
    std::vector<Tensor> weights;
  };
  const auto train = [&](Calls* calls) {
    at::manual_seed(3);
    torch::nn::Sequential net(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 3));
    const Tensor x = at::randn({16, 6}), labels = at::arange(16).remainder(3);
    optim::SGD sgd(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    amp::MixedPrecision mixed({&*net}, {&sgd},
                              {.opt_level = amp::OptLevel::kO1, .dtype = at::kBFloat16, .loss_scale = 8});
    DdpOptions options;
    if (calls != nullptr) options.device_graph = standing_in(*calls);
    DistributedDataParallel ddp(net.ptr(), world, options);
    const auto loss_of = [&](size_t) { return at::cross_entropy_loss(net->forward(x).to(at::kFloat), labels); };
    if (calls != nullptr) {
      calls->kept = net->buffers();
      calls->again = [&] {
        const amp::AutocastScope autocast = mixed.autocast();
        const Tensor loss = loss_of(0);
        std::vector<Tensor> results = torch::autograd::grad({loss * 8}, net->parameters());
        results.insert(results.begin(), loss.detach());
        return results;
      };
    }
    Outcome outcome;
    for (int64_t step = 0; step < 8; ++step) {
      const amp::CastCacheScope casts;
      x.mul_(1.01);
      net->zero_grad();
      const auto result = ddp.run({.number = step, .samples = 16, .lanes = {{0, 16}}}, loss_of, mixed);
      mixed.step(sgd, result);
      outcome.losses.push_back(result.loss);
    }
    for (const Tensor& each : net->parameters()) outcome.weights.push_back(each.detach().clone());
    for (const Tensor& each : net->buffers()) outcome.weights.push_back(each.clone());
    return outcome;
  };
  Calls calls;
  const Outcome plain = train(nullptr), replayed = train(&calls);
  EXPECT_EQ(calls.replayed, 5);
  EXPECT_EQ(replayed.losses, plain.losses);
  for (size_t i = 0; i < plain.weights.size(); ++i) EXPECT_TRUE(at::equal(replayed.weights[i], plain.weights[i])) << i;
}

}  // namespace
}  // namespace lockstep::parallel
