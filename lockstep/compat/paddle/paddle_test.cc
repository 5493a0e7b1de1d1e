#include "lockstep/compat/paddle/paddle.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"
#include "support/worlds.h"

namespace lockstep::paddle {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;

RANK_PROGRAM(paddles_loop) {
  const auto world = join_world(context);
  at::manual_seed(static_cast<uint64_t>(context.rank));
  torch::nn::Linear net(3, 2);
  DataParallel model(net.ptr(), world);
  torch::nn::Linear alone(3, 2);
  for (size_t i = 0; i < 2; ++i) alone->parameters()[i].set_data(net->parameters()[i].detach().clone());
  at::manual_seed(7);
  const Tensor data = at::randn({4 * context.size, 3});
  model.scale_loss(net->forward(data.narrow(0, 4 * context.rank, 4)).square().mean()).backward();
  model.apply_collective_grads();
  alone->forward(data).square().mean().backward();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::allclose(net->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-5, 1e-7));
  }
  net->zero_grad();
  (net->weight.sum() + (context.rank == 1 ? net->bias.sum() : net->weight.sum())).backward();
  try {
    model.apply_collective_grads();
    EXPECT_EQ(context.size, 1);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bias has a gradient on 1 of 3 ranks"));
  }
}

TEST(PaddlesLoop, EqualsOneProcessOnTheJoinedBatch) {
  for (const int size : {1, 3}) expect_ranks_pass("paddles_loop", size);
}

struct Variables {
  explicit Variables(std::vector<std::pair<const char*, const char*>> given) : values(std::move(given)) {
    for (const auto& [name, value] : values) setenv(name, value, 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values) unsetenv(name);
  }
  std::vector<std::pair<const char*, const char*>> values;
};

TEST(PaddlesEnv, ReadsWhatPaddlesLauncherSets) {
  const Variables set({{"PADDLE_TRAINERS_NUM", "2"},
                       {"PADDLE_TRAINER_ID", "1"},
                       {"FLAGS_selected_gpus", "3"},
                       {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:6171"},
                       {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170,127.0.0.1:6171"}});
  const Env env = Env::current();
  EXPECT_EQ(env.nranks, 2);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.dev_id, 3);
  EXPECT_EQ(env.current_endpoint, "127.0.0.1:6171");
  EXPECT_THAT(env.trainer_endpoints, ElementsAre("127.0.0.1:6170", "127.0.0.1:6171"));
}

TEST(PaddlesEnv, RefusesContradictions) {
  EXPECT_EQ(Env::current().nranks, 1) << "without variables";
  const Variables set({{"PADDLE_TRAINERS_NUM", "2"}, {"PADDLE_TRAINER_ID", "2"}});
  EXPECT_THROW(Env::current(), ConfigError);
  const Variables few({{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170"}});
  EXPECT_THROW(Env::current(), ConfigError);
}

}  // namespace
}  // namespace lockstep::paddle
