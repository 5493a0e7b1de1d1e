// Inputs of divided layers that are not equal on all ranks, as they have to be.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/parallel/tensor/layers.h"
#include "support/worlds.h"

namespace lockstep::parallel::tensor {
namespace {

using testing::HasSubstr;
using testing_support::expect_ranks_pass;
using testing_support::join_world;
using testing_support::Ranks;

// argument: what the ranks have different.
RANK_PROGRAM(unequal_inputs) {
  const auto world = join_world(context);
  comm::Communicator& comm = world->communicator();
  const auto rank = static_cast<uint64_t>(context.rank);
  at::manual_seed(context.argument == "seed" ? rank : 1);
  torch::nn::Linear body(4, 4);
  if (context.argument == "agreed") {
    if (context.rank == 1) body->weight.data().fill_(3);
    agree(*body, comm);
  }
  ColumnParallelLinear wide(torch::nn::Linear(4, 4), comm);
  RowParallelLinear narrow(torch::nn::Linear(4, 4), comm, /*divide=*/true);
  at::manual_seed(context.argument == "data" || context.argument == "row" ? rank : 2);
  const int64_t samples = context.argument == "sizes" ? 5 + context.rank : 5;
  const bool is_right = context.argument == "none" || context.argument == "agreed";
  for (int step = 0; step < (is_right ? 20 : 1); ++step) {
    at::Tensor input = at::rand({samples, 4});
    if (context.argument == "order" && rank == 1) input = input.flip(0);
    if (context.argument != "row") wide->forward(body->forward(input)).sum().backward();
    narrow->forward(input).sum().backward();
  }
}
TEST(TensorParallel, InputsThatDifferAreNamed) {
  for (const char* what : {"seed", "data", "sizes", "order", "row"}) {
    for (const auto& result : Ranks("unequal_inputs", 2, what).wait()) {
      EXPECT_EQ(result.exit_code, 2) << what;
      EXPECT_THAT(result.output, HasSubstr("is not equal on all ranks")) << what;
    }
  }
  for (const char* right : {"none", "agreed"}) expect_ranks_pass("unequal_inputs", 2, right);
}

}  // namespace
}  // namespace lockstep::parallel::tensor
