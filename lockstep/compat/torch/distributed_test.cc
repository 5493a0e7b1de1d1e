#include "lockstep/compat/torch/distributed.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/testing/refusal.h"
#include "support/worlds.h"

namespace lockstep::pytorch::distributed {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::refusal;

TEST(Distributed, BeforeItBeginsThereIsOneRank) {
  EXPECT_TRUE(is_available());
  EXPECT_FALSE(is_initialized());
  EXPECT_EQ(get_rank(), 0);
  EXPECT_EQ(get_world_size(), 1);
  EXPECT_THAT(refusal([] { barrier(); }), HasSubstr("call init_process_group first"));
  EXPECT_THAT(refusal([] { get_backend(); }), HasSubstr("call init_process_group first"));
}

RANK_PROGRAM(joins_by_keywords) {
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const InitProcessGroupOptions options{.backend = "gloo",
                                        .init_method = context.argument,
                                        .timeout = std::chrono::seconds(30),
                                        .world_size = context.size,
                                        .rank = context.rank,
                                        .group_name = "any"};
  InitProcessGroupOptions wrong = options;
  wrong.backend = "gloop";
  EXPECT_THAT(refusal([&] { init_process_group(wrong); }), HasSubstr("gloop"));
  init_process_group(options);  // a call that failed has joined nothing
  EXPECT_TRUE(is_initialized());
  EXPECT_EQ(get_rank(), context.rank);
  EXPECT_EQ(get_world_size(), context.size);
  EXPECT_EQ(get_backend(), "gloo");
  EXPECT_EQ(joined_world()->rank(), context.rank);
  const Tensor sum = at::ones({3});
  all_reduce(sum);
  EXPECT_TRUE(at::equal(sum, at::full({3}, context.size)));
  EXPECT_THAT(refusal([&] { init_process_group(options); }), HasSubstr("joins a world once"));
  barrier();
  destroy_process_group();
  EXPECT_FALSE(is_initialized());
  EXPECT_EQ(get_rank(), 0);
  EXPECT_EQ(get_world_size(), 1);
  EXPECT_THAT(refusal([&] { init_process_group(options); }), HasSubstr("joins a world once"));
}
TEST(Distributed, JoinsByTorchsKeywords) {
  expect_ranks_pass("joins_by_keywords", 2, cat("tcp://127.0.0.1:", free_port()));
}

Tensor of(int value) { return at::full({2}, value, at::kFloat); }

RANK_PROGRAM(reduces) {
  init_process_group(join_world(context));
  const int rank = get_rank(), size = get_world_size();
  Tensor x = of(rank + 1).requires_grad_();
  all_reduce(x, ReduceOp::MAX);
  EXPECT_TRUE(at::equal(x.detach(), of(size))) << "a parameter, too";
  x = of(rank);
  all_reduce(x, ReduceOp::AVG);
  EXPECT_TRUE(at::equal(x, at::full({2}, (size - 1) / 2.0)));
  const Tensor whole = at::ones({2}, at::kLong);
  EXPECT_THAT(refusal([&] { all_reduce(whole, ReduceOp::AVG); }),
              HasSubstr("all_reduce: AVG of Long would be rounded"));
  EXPECT_THAT(refusal([&] { reduce(whole, 0, ReduceOp::AVG); }), HasSubstr("reduce: AVG of Long"));
  x = of(rank + 1);
  reduce(x, size - 1, ReduceOp::PRODUCT);
  EXPECT_TRUE(at::equal(x, of(rank == size - 1 ? (size == 3 ? 6 : 1) : rank + 1)));
  std::vector<Tensor> inputs;
  for (int k = 0; k < size; ++k) inputs.push_back(of(10 * k + rank));
  const Tensor mine = of(0), also = of(0);
  reduce_scatter(mine, inputs);
  EXPECT_TRUE(at::equal(mine, of(10 * rank * size + size * (size - 1) / 2)));
  reduce_scatter_tensor(also, at::cat(inputs));
  EXPECT_TRUE(at::equal(also, mine));
  EXPECT_THAT(refusal([&] { reduce_scatter(mine, {}); }), HasSubstr("reduce_scatter: a list of 0 tensors"));
  EXPECT_THAT(refusal([&] { broadcast(x, size); }), HasSubstr("is not in the group"));
}
RANK_PROGRAM(goes_around) {
  init_process_group(join_world(context));
  const int rank = get_rank(), size = get_world_size();
  const Tensor from_before = of(-1);
  Work sent = isend(of(rank).requires_grad_(), (rank + 1) % size, {}, /*tag=*/2);
  Work received = irecv(from_before, (rank + size - 1) % size, {}, /*tag=*/2);
  EXPECT_TRUE(received.wait());
  EXPECT_TRUE(sent.wait());
  EXPECT_TRUE(sent.is_completed() && received.is_completed());
  EXPECT_TRUE(at::equal(from_before, of((rank + size - 1) % size)));
  const Group last = new_group({size - 1});
  if (rank != 0) return;
  EXPECT_THAT(refusal([&] { (void)isend(of(1), 0, last); }), HasSubstr("isend: rank 0 is not in the group"));
}
TEST(Distributed, MessagesWithoutWaiting) { expect_ranks_pass("goes_around", 3); }

TEST(Distributed, Reduces) {
  for (const int size : {1, 3}) expect_ranks_pass("reduces", size);
}

RANK_PROGRAM(moves) {
  init_process_group(join_world(context));
  const int rank = get_rank(), size = get_world_size();
  const Tensor x = of(rank);
  broadcast(x, size - 1);
  EXPECT_TRUE(at::equal(x, of(size - 1)));
  std::vector<Tensor> list;
  for (int k = 0; k < size; ++k) list.push_back(of(-1));
  all_gather(list, of(rank));
  const Tensor joined = at::empty({size, 2});
  all_gather_into_tensor(joined, of(rank));
  for (int k = 0; k < size; ++k) {
    EXPECT_TRUE(at::equal(list[k], of(k)));
    EXPECT_TRUE(at::equal(joined[k], of(k)));
  }
  EXPECT_THAT(refusal([&] { all_gather_into_tensor(at::empty({1}), of(rank)); }), HasSubstr("an output of Float [1]"));
  const Tensor wide = at::empty({size, 2}, at::kDouble), narrow = of(rank);
  EXPECT_THAT(refusal([&] { all_gather_into_tensor(wide, narrow); }), HasSubstr("an output of Double"));
  EXPECT_THAT(refusal([&] { reduce_scatter_tensor(wide[0], joined); }), HasSubstr("an output of Double"));
  EXPECT_THAT(refusal([&] { all_to_all_single(wide, joined); }), HasSubstr("an output of Double"));
  list[0] = wide[0];
  for (const Tensor& other : {wide[0], at::empty({1})}) {
    list[0] = other;
    EXPECT_THAT(refusal([&] { all_gather(list, narrow); }), HasSubstr("where Float [2] is expected"));
    EXPECT_THAT(refusal([&] { reduce_scatter(narrow, list); }), HasSubstr("where Float [2] is expected"));
  }
  list[0] = of(0);
  const bool is_root = rank == size - 1;
  gather(of(rank + 10), is_root ? list : std::vector<Tensor>(), size - 1);
  for (int k = 0; k < size; ++k) EXPECT_TRUE(at::equal(list[k], of(is_root ? k + 10 : k)));
  scatter(x, is_root ? list : std::vector<Tensor>(), size - 1);
  EXPECT_TRUE(at::equal(x, of(rank + 10)));
  if (rank == 0 && size > 1) send(of(77), 1, {}, /*tag=*/5);
  if (rank == 1) recv(x, 0, {}, 5);
  EXPECT_TRUE(at::equal(x, of(rank == 1 ? 77 : rank + 10)));
}
TEST(Distributed, Moves) {
  for (const int size : {1, 3}) expect_ranks_pass("moves", size);
}

// Rank r sends r + 1 elements to each.
RANK_PROGRAM(exchanges) {
  init_process_group(join_world(context));
  const int rank = get_rank(), size = get_world_size();
  std::vector<Tensor> inputs, outputs;
  for (int k = 0; k < size; ++k) {
    inputs.push_back(at::full({1, rank + 1}, 10 * rank + k));
    outputs.push_back(at::zeros({k + 1, 1}, at::kLong));
  }
  all_to_all(outputs, inputs);
  for (int k = 0; k < size; ++k) EXPECT_TRUE(at::equal(outputs[k], at::full({k + 1, 1}, 10 * k + rank)));
  const Tensor out = at::empty({size}, at::kLong);
  all_to_all_single(out, at::arange(size) + 10 * rank);
  EXPECT_TRUE(at::equal(out, at::arange(size) * 10 + rank));
  EXPECT_THAT(refusal([&] { all_to_all_single(out, at::empty({3 * size + 1})); }),
              HasSubstr("can't be divided among 3 ranks"));
}
TEST(Distributed, ExchangesUnevenTensors) { expect_ranks_pass("exchanges", 3); }

RANK_PROGRAM(groups) {
  init_process_group(join_world(context));
  const int rank = get_rank();
  const Group outer = new_group({2, 0}), all = new_group();
  const int number = rank == 2 ? 0 : rank == 0 ? 1 : -1;
  EXPECT_EQ(get_rank(outer), number);
  EXPECT_EQ(get_world_size(outer), number < 0 ? -1 : 2);
  EXPECT_EQ(get_rank(all), rank);
  const Tensor x = of(rank);
  if (number < 0) {
    EXPECT_THAT(refusal([&] { all_reduce(x, ReduceOp::SUM, outer); }), HasSubstr("rank 1 is not in the group"));
  } else {
    broadcast(x, 2, outer);
    EXPECT_TRUE(at::equal(x, of(2))) << "named by its rank in the world";
    EXPECT_THAT(refusal([&] { broadcast(x, 1, outer); }), HasSubstr("rank 1 is not in the group"));
  }
  barrier(all);
  EXPECT_THAT(refusal([] { new_group({0, 7}); }), HasSubstr("rank 7"));
  EXPECT_THAT(refusal([] { new_group({1, 1}); }), HasSubstr("2 times"));
}
TEST(Distributed, GroupsOfSomeRanks) { expect_ranks_pass("groups", 3); }

}  // namespace
}  // namespace lockstep::pytorch::distributed
