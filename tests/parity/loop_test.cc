// What a loop of one's own has beside ddp and amp, on real ranks.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/loop/evaluate.h"
#include "lockstep/loop/make_loader.h"
#include "lockstep/loop/state.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "support/worlds.h"

namespace lockstep::loop {
namespace {

using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

// Sample i is a point of fractions that add up to other bits in another order.
struct Points final : data::Dataset {
  int64_t size() const override { return 333; }
  std::vector<data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {2}}, {.name = "target", .dtype = at::kFloat, .shape = {1}}};
  }
  std::string fingerprint() const override { return "points"; }
  std::string description() const override { return "points"; }
  void read(int64_t index, const Draw&, std::span<const at::Tensor> rows, data::ReadStats&) const override {
    const auto number = static_cast<double>(index);
    rows[0][0] = std::sin(number);
    rows[0][1] = std::cos(3 * number);
    rows[1][0] = std::sin(2 * number);  // a regression: there are no classes
  }
};

Sums squares(torch::nn::Linear& net, const data::Batch& batch) {
  return {{"loss", at::mse_loss(net->forward(batch.data()), batch.target(), at::Reduction::Sum).item<double>()}};
}

RANK_PROGRAM(exact_evaluation) {
  const auto world = join_world(context);
  at::manual_seed(1);
  torch::nn::Linear net(2, 1);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  const Measured found = evaluate(ddp, Points(), [&](const auto& batch) { return squares(net, batch); }, {.chunk = 50});
  EXPECT_EQ(found.samples, 333);
  double alone = 0;
  for (int64_t first = 0; first < 333; first += 50) {
    std::vector<int64_t> indices;
    for (int64_t i = first; i < std::min<int64_t>(333, first + 50); ++i) indices.push_back(i);
    alone += squares(net, data::read_batch(Points(), indices)).at("loss");
  }
  EXPECT_EQ(found.sum("loss"), alone);  // to the last bit, at any number of ranks
  // Two chunks: at 4 ranks some have none, and know the names all the same.
  const auto two = [](const data::Batch& batch) -> Sums { return {{"n", batch.size()}, {"ones", 1}}; };
  EXPECT_EQ(evaluate(ddp, Points(), two, {.chunk = 200}).sums, (Sums{{"n", 333}, {"ones", 2}}));
  // What one rank's function throws, all ranks throw.
  EXPECT_THAT(refusal([&] {
                evaluate(ddp, Points(),
                         [&](const data::Batch& batch) -> Sums {
                           if (world->rank() == world->size() - 1) throw ConfigError("no such metric");
                           return squares(net, batch);
                         },
                         {.chunk = 10});
              }),
              HasSubstr(cat("rank ", world->size() - 1, ": no such metric")));
}
TEST(Loop, EvaluationIsExactAtAnyWorldSize) {
  for (const int size : {1, 2, 4}) expect_ranks_pass("exact_evaluation", size);
}

// Argument: what has chosen the threads before the first step. The launcher's number depends on the ranks'.
RANK_PROGRAM(threads_of_an_evaluation) {
  const auto world = join_world(context);
  const std::string& by = context.argument;
  torch::nn::Linear net(2, 1);
  parallel::DistributedDataParallel ddp(net.ptr(), world, {.keep_threads = by == "kept"});
  const int before = at::get_num_threads(), by_lanes = std::max(1, usable_cores() / 2);
  if (by == "loader") make_loader(*world, std::make_shared<Points>(), {.lanes = 2, .batch_size = 7, .seed = 3});
  int within = 0;
  const auto count = [&](const data::Batch&) -> Sums {
    within = at::get_num_threads();
    return {{"n", 1}};
  };
  evaluate(ddp, Points(), count, {.chunk = 50, .lanes = by == "lanes" ? 2 : 0});
  EXPECT_EQ(within, by == "nothing" ? 1 : by == "kept" || by == "environment" ? before : by_lanes);
  EXPECT_EQ(at::get_num_threads(), by == "nothing" ? before : within);
  parallel::StepPlan plan{.samples = 2, .lanes = {{0, 1}, {1, 1}}};
  if (context.size == 2) plan.lanes = {{context.rank, 1}};
  ddp.run(plan, [&](size_t) { return net->forward(at::ones({1, 2})).mean(); });
  const int stepped = at::get_num_threads();
  evaluate(ddp, Points(), count, {.chunk = 50});
  EXPECT_EQ(within, stepped) << "as before the first step of a resumed loop that has a loader";
  if (by == "loader") EXPECT_EQ(stepped, by_lanes);
}
TEST(Loop, AnEvaluationsThreadsDoNotDependOnTheNumberOfRanks) {
  for (const char* by : {"nothing", "loader", "lanes", "kept", "environment"}) {
    std::map<std::string, std::string> environment = {{"OMP_NUM_THREADS", "3"}, {"MKL_NUM_THREADS", "3"}};
    if (by != std::string("environment")) environment.emplace("LOCKSTEP_THREADS", "auto");
    for (const int ranks : {1, 2}) {
      for (const auto& result : testing_support::Ranks("threads_of_an_evaluation", ranks, by, environment).wait()) {
        EXPECT_EQ(result.exit_code, 0) << by << result.output;
      }
    }
  }
}

// Argument: what sets the threads for other lanes than the steps'.
RANK_PROGRAM(threads_for_other_lanes) {
  const auto world = join_world(context);
  torch::nn::Linear net(2, 1), other(2, 1);
  parallel::DistributedDataParallel kept(other.ptr(), world, {.keep_threads = true}), ddp(net.ptr(), world);
  const auto count = [&](const data::Batch&) -> Sums { return {{"n", 1}}; };
  const auto step = [&](parallel::DistributedDataParallel& of, torch::nn::Linear& layer, int lanes) {
    parallel::StepPlan plan{.samples = lanes, .lanes = {}};
    const auto own = world->own_lanes(lanes);
    for (int lane = own.first; lane < own.last; ++lane) plan.lanes.push_back({lane, 1});
    of.run(plan, [&](size_t) { return layer->forward(at::ones({1, 2})).mean(); });
    return at::get_num_threads();
  };
  const auto threads_of = [](int lanes) { return std::max(1, usable_cores() / lanes); };
  const int before = at::get_num_threads();
  const auto points = std::make_shared<Points>();
  const data::SamplerOptions few{.lanes = context.size, .batch_size = 7, .seed = 3};
  make_loader(*world, points, few, {.workers = 0, .keep_threads = true});
  EXPECT_EQ(step(kept, other, context.size), before);
  evaluate(kept, Points(), count, {.chunk = 50, .lanes = 1});
  EXPECT_EQ(at::get_num_threads(), before);
  // One lane has another number of threads than four even on two cores; a loader of one can't be shared by two ranks.
  if (context.argument == "evaluation") evaluate(ddp, Points(), count, {.chunk = 50, .lanes = 1});
  if (context.argument == "loader") make_loader(*world, points, few);
  EXPECT_EQ(at::get_num_threads(), threads_of(context.argument == "loader" ? context.size : 1));
  EXPECT_EQ(step(kept, other, context.size), at::get_num_threads());
  EXPECT_EQ(step(ddp, net, 4), threads_of(4));
  make_loader(*world, points, few);
  evaluate(ddp, Points(), count, {.chunk = 50, .lanes = 1});
  EXPECT_EQ(at::get_num_threads(), threads_of(4)) << "what run() has chosen stays";
  EXPECT_EQ(step(ddp, net, 4), threads_of(4));
  std::thread([&] {
    at::set_num_threads(before);
    EXPECT_EQ(step(kept, other, context.size), before);
  }).join();
}
TEST(Loop, TheStepsThreadsAreByTheirOwnLanes) {
  for (const char* by : {"loader", "evaluation"}) {
    // The launcher's number for a rank a core, which no proposal for one lane is by chance.
    const std::map<std::string, std::string> environment = {
        {"OMP_NUM_THREADS", "1"}, {"MKL_NUM_THREADS", "1"}, {"LOCKSTEP_THREADS", "auto"}};
    for (const int ranks : {1, 2}) {
      for (const auto& result : testing_support::Ranks("threads_for_other_lanes", ranks, by, environment).wait()) {
        EXPECT_EQ(result.exit_code, 0) << by << result.output;
      }
    }
  }
}

// A forward outside of run(), as for precise statistics: ranks have their own until rank 0's are brought.
RANK_PROGRAM(evaluation_after_a_forward) {
  const auto world = join_world(context);
  torch::nn::BatchNorm1d net(2);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  const auto measured = [&] {
    const auto sum_of = [&](const data::Batch& batch) -> Sums {
      return {{"s", net->forward(batch.data()).square().sum().item<double>()}};
    };
    return evaluate(ddp, Points(), sum_of, {.chunk = 50}).mean("s");
  };
  net->forward(at::arange(8, at::kFloat).view({4, 2}) * (1 + context.rank));
  const double found = measured();
  ddp.sync_buffers();
  EXPECT_EQ(measured(), found);
  net->eval();
  double alone = 0;
  for (int64_t first = 0; first < 333; first += 50) {
    std::vector<int64_t> indices;
    for (int64_t i = first; i < std::min<int64_t>(333, first + 50); ++i) indices.push_back(i);
    alone += net->forward(data::read_batch(Points(), indices).data()).square().sum().item<double>();
  }
  EXPECT_EQ(found, alone / 333) << "by the statistics that a checkpoint has";
}
TEST(Loop, AnEvaluationIsByRankZerosBuffers) { expect_ranks_pass("evaluation_after_a_forward", 2); }

// An average of the weights, sharded as the optimizer is.
RANK_PROGRAM(sharded_average) {
  const auto world = join_world(context);
  const auto train = [&](torch::nn::Linear& net, parallel::ShardedOptimizer& optimizer, int steps) {
    for (int i = 0; i < steps; ++i) {
      for (auto& parameter : net->parameters()) parameter.mutable_grad() = parameter.detach() + i;
      optimizer.update({});
    }
  };
  at::manual_seed(1);
  torch::nn::Linear net(40, 30), resumed(40, 30);
  const auto make = [&](torch::nn::Linear& of) {
    return std::make_unique<parallel::ShardedOptimizer>(optim::make_optimizer("adamw", of->parameters(), {{"lr", 0.1}}),
                                                        world->communicator());
  };
  const auto one = make(net), two = make(resumed);
  one->keep_average(0.9);
  two->keep_average(0.9);
  parallel::DistributedDataParallel first(net.ptr(), world), second(resumed.ptr(), world);
  train(net, *one, 3);
  int64_t step = 3;
  checkpoint::CheckpointStore store(context.argument);
  State(*world, step, {{"model", first}, {"optimizer", *one}}).save(store);
  world->communicator().barrier();
  EXPECT_TRUE(State(*world, step, {{"model", second}, {"optimizer", *two}}).load(store));
  world->communicator().barrier();
  train(net, *one, 2);
  train(resumed, *two, 2);
  const auto wanted = one->averages(), found = two->averages();
  if (context.rank > 0) return world->communicator().barrier();
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(wanted[i], found[i]) && !at::equal(wanted[i], net->weight));
  world->communicator().barrier();
}
TEST(Loop, AShardedAverageContinues) {
  const std::string folder = testing::TempDir() + "sharded_average." + std::to_string(getpid());
  expect_ranks_pass("sharded_average", 2, folder);
  std::filesystem::remove_all(folder);
}

// Argument: "folder kind". Ranks that draw their own numbers do so again, and the same at each resume; others draw as
// one.
RANK_PROGRAM(random_numbers_go_on) {
  const auto world = join_world(context);
  const auto space = context.argument.find(' ');
  const bool own = context.argument.substr(space + 1) == "own";
  at::manual_seed(1);
  torch::nn::Linear net(2, 1);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  int64_t step = 0;
  State state(*world, step, {{"model", ddp}});
  checkpoint::CheckpointStore store(context.argument.substr(0, space));
  at::manual_seed(own ? 7 + static_cast<uint64_t>(context.rank) : 7);
  state.save(store);
  world->communicator().barrier();
  const at::Tensor expected = at::rand({1}, at::kDouble);
  std::vector<double> drawn;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(state.load(store));
    drawn.push_back(at::rand({1}, at::kDouble).item<double>());
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  if (context.rank == 0 || !own) EXPECT_EQ(drawn[0], expected.item<double>());
  const auto all = world->communicator().all_gather(at::full({1}, drawn[0], at::kDouble));
  EXPECT_EQ(all[0].item<double>() == all[1].item<double>(), !own);
}
TEST(Loop, RandomNumbersOfEachRankGoOn) {
  for (const char* kind : {"own", "equal"}) {
    const std::string folder = cat(testing::TempDir(), "random_numbers.", getpid(), kind);
    expect_ranks_pass("random_numbers_go_on", 2, cat(folder, ' ', kind));
    std::filesystem::remove_all(folder);
  }
}

// Trains from the store's newest checkpoint to step 6 or `last`, and saves. Argument: "folder last".
RANK_PROGRAM(train_and_save) {
  const auto world = join_world(context);
  const auto space = context.argument.find(' ');
  const int64_t last = std::stoll(context.argument.substr(space + 1));
  at::manual_seed(1 + static_cast<uint64_t>(last));  // the weights are the checkpoint's
  torch::nn::Linear net(2, 1);
  parallel::DistributedDataParallel ddp(net.ptr(), world);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  data::Loader loader = make_loader(*world, std::make_shared<Points>(), {.lanes = 4, .batch_size = 7, .seed = 3});
  int64_t step = 0;
  double noise = 0;
  State state(*world, step, {{"model", ddp}, {"optimizer", optimizer}, {"sampler", loader}, {"noise", noise}});
  checkpoint::CheckpointStore store(context.argument.substr(0, space));
  EXPECT_EQ(state.load(store), last != 2);
  while (step < last) {
    const auto batch = loader.next();
    ddp.run(step, batch,
            [&](const data::LaneBatch& lane) { return at::mse_loss(net->forward(lane.data()), lane.target()); });
    optimizer.step();
    optimizer.zero_grad();
    noise += at::rand({1}).item<double>();  // of the generator, outside of lanes
    ++step;
  }
  state.save(store);
  std::ofstream(cat(context.argument.substr(0, space), "/", context.rank, ".", last))
      << checkpoint::weights_sha256(*net) << ' ' << noise;
}
std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
TEST(Loop, ContinuesAtAnotherWorldSizeWithTheSameBits) {
  const std::string folder = testing::TempDir() + "loop_test." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  for (const auto& sizes : {std::vector{1, 1, 1}, std::vector{2, 4, 1}}) {
    const std::string run = cat(folder, "/", sizes[0]);
    std::filesystem::create_directories(run);
    for (int part = 0; part < 3; ++part) expect_ranks_pass("train_and_save", sizes[part], cat(run, ' ', 2 + 2 * part));
  }
  const std::string one = text_of(folder + "/1/0.6");
  EXPECT_GT(one.size(), 64u);
  EXPECT_EQ(text_of(folder + "/2/0.6"), one);
  EXPECT_EQ(text_of(folder + "/2/3.4"), text_of(folder + "/1/0.4"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::loop
