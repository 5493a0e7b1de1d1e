// What the tests of loops share: one layer, inputs that differ by rank, and the mean over ranks as one process computes
// it.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <exception>
#include <fstream>
#include <string>

#include "lockstep/base/free_ports.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "support/worlds.h"

namespace lockstep::parallel {

inline torch::nn::Linear linear(uint64_t seed) {
  at::manual_seed(seed);
  return torch::nn::Linear(4, 3);
}

inline at::Tensor input(int rank) { return at::arange(8, at::kFloat).view({2, 4}) * 0.1 + rank; }

inline at::Tensor loss_of(torch::nn::Linear& net, int rank, double factor = 1) {
  return net->forward(input(rank)).square().mean() * factor;
}

inline at::Tensor mean_over_ranks(torch::nn::Linear& net, int ranks, double factor = 1) {
  at::Tensor sum = loss_of(net, 0, factor);
  for (int rank = 1; rank < ranks; ++rank) sum = sum + loss_of(net, rank, factor);
  return sum / ranks;
}

inline void expect_gradient(const torch::nn::Linear& net, const torch::nn::Linear& alone, double tolerance = 1e-5) {
  EXPECT_TRUE(at::allclose(net->weight.grad(), alone->weight.grad(), tolerance, tolerance / 10));
  EXPECT_TRUE(at::allclose(net->bias.grad(), alone->bias.grad(), tolerance, tolerance / 10));
}

// Over shared memory, where a gradient stays where backward made it, or over Gloo, where it is a part of its bucket.
// `port` is network(), or empty.
inline std::shared_ptr<World> join_over(testing_support::RankContext& context, const std::string& port) {
  if (port.empty()) return testing_support::join_world(context);
  unsetenv("LOCKSTEP_NODE_MEMORY");
  return init(
      {.backend = "gloo", .rank = context.rank, .world_size = context.size, .init_method = "tcp://127.0.0.1:" + port});
}
inline std::shared_ptr<World> join_over(testing_support::RankContext& context) {
  return join_over(context, context.argument);
}
inline std::string network() { return std::to_string(free_port()); }

// A step of one lane a rank.
inline StepPlan one_lane_each(const World& world, int64_t number = 0) {
  return {.number = number, .samples = world.size(), .lanes = {{world.rank(), 1}}};
}

// A step of so many lanes, of one sample each.
inline StepPlan plan_of_lanes(const World& world, int64_t number, int lanes) {
  StepPlan step{.number = number, .samples = lanes, .lanes = {}};
  const auto own = world.own_lanes(lanes);
  for (int lane = own.first; lane < own.last; ++lane) step.lanes.push_back({lane, 1});
  return step;
}

// Whether all ranks hold the same bits. A collective.
inline bool same_on_all_ranks(const at::Tensor& tensor, const World& world) {
  const at::Tensor rows = world.communicator().all_gather(tensor.detach().contiguous());
  return at::equal(rows, rows.narrow(0, 0, 1).expand_as(rows));
}

// The text of what act() throws. Where one rank's mistake is told to the others, it is in theirs, too.
template <typename Act>
std::string failure(Act&& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// What rank 0 of a rank program writes to the file that its argument names.
inline std::string written_by(const std::string& program, int ranks) {
  const std::string path = testing::TempDir() + program + '.' + std::to_string(getpid());
  testing_support::expect_ranks_pass(program, ranks, path);
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  unlink(path.c_str());
  EXPECT_FALSE(text.empty());
  return text;
}

}  // namespace lockstep::parallel
