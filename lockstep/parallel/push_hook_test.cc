#include "lockstep/parallel/push_hook.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"
#include "support/worlds.h"

namespace lockstep::parallel {
namespace {

using testing_support::expect_ranks_pass;
using testing_support::join_world;

// Two of a bucket's gradients go to rank 0 as one row, one by itself to the last rank, one has no elements.
RANK_PROGRAM(pushes_to_owners) {
  const auto world = join_world(context);
  const int last = context.size - 1;
  const std::vector<at::Tensor> weights = {at::zeros({2, 3, 1, 2}).contiguous(at::MemoryFormat::ChannelsLast),
                                           at::zeros({0}), at::zeros({5}), at::zeros({4, 4})};
  const std::vector<int> owners = {0, 0, last, 0};
  const auto hook = push_hook(weights, owners);
  EXPECT_TRUE(hook->same_bits());
  at::manual_seed(3);
  std::vector<at::Tensor> own, sums;
  for (const at::Tensor& weight : weights) {
    own.push_back(at::randn_like(weight) * (context.rank + 1));
    sums.push_back(own.back().clone());
  }
  world->communicator().fold(sums, {.label = "the same"})->wait();
  for (const auto wait : {+[](comm::Work& work) { work.wait(); },
                          +[](comm::Work& work) {
                            while (!work.wait_for(std::chrono::milliseconds(1))) {
                            }
                          },
                          +[](comm::Work& work) {
                            while (!work.done()) {
                            }
                          }}) {
    std::vector<at::Tensor> pushed;
    for (const at::Tensor& each : own) pushed.push_back(each.clone());
    const auto work =
        hook->begin({.label = "bucket 1/1", .parameters = weights, .gradients = pushed}, world->communicator());
    wait(*work);
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] != context.rank) continue;
      EXPECT_TRUE(at::equal(pushed[i], sums[i])) << "the fold's bits, of weight " << i;
    }
    world->communicator().barrier();
  }
}

TEST(PushHook, EachOwnerHasTheFoldsSums) {
  for (const int size : {1, 2, 3, 5}) expect_ranks_pass("pushes_to_owners", size);
}

// As over a network, where the owner adds.
TEST(PushHook, WithoutCommonMemoryTheOwnerAdds) {
  comm::SingleCommunicator comm;
  const std::vector<at::Tensor> weights = {at::zeros({2}), at::zeros({3})};
  const std::vector<at::Tensor> gradients = {at::ones({2}), at::full({3}, 2.0f)};
  push_hook(weights, {0, 0})->begin({.label = "b", .parameters = weights, .gradients = gradients}, comm)->wait();
  EXPECT_TRUE(at::equal(gradients[0], at::ones({2})));
  EXPECT_TRUE(at::equal(gradients[1], at::full({3}, 2.0f)));
}

TEST(PushHook, AStrangersGradientIsAMistake) {
  comm::SingleCommunicator comm;
  const at::Tensor own = at::zeros({2}), other = at::zeros({3});
  const auto hook = push_hook({own}, {0});
  EXPECT_THROW(hook->begin({.label = "bucket", .parameters = {other}, .gradients = {at::ones({3})}}, comm),
               ConfigError);
  EXPECT_THROW(push_hook({other}, {}), ConfigError);
}

}  // namespace
}  // namespace lockstep::parallel
