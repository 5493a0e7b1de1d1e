// A world of one has to leave what a fold alone and copies leave; the order of sums is device_fold_test's.
#include "lockstep/comm/plugins/nccl/nccl_collectives.h"

#include <ATen/ATen.h>

#include "lockstep/comm/plugins/nccl/nccl_world.h"

namespace lockstep::comm {
namespace {

at::Tensor on_gpu(int64_t elements, at::ScalarType dtype = at::kFloat) {
  return at::arange(elements, at::kInt).remainder(100).to(dtype).to(at::kCUDA);
}

void check_reductions(bool same_bits) {
  const auto comm = testing::make_nccl_world({.same_bits = same_bits});
  EXPECT_EQ(comm->same_bits(), same_bits);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kShort, at::kByte}) {
    for (const int64_t elements : {0, 1, 1000, 100'000}) {
      const at::Tensor before = on_gpu(elements, dtype), tensor = before.clone();
      comm->all_reduce(tensor, ReduceOp::kSum);
      comm->reduce(tensor, 0, ReduceOp::kMax);
      EXPECT_TRUE(at::equal(tensor, before)) << dtype << ' ' << elements;
      const auto op = c10::isFloatingType(dtype) ? ReduceOp::kMean : ReduceOp::kSum;
      EXPECT_TRUE(at::equal(comm->reduce_scatter(before.view({1, elements}), op), before));
    }
  }
}

TEST(NcclCollectives, ReductionsByTheTree) {
  LOCKSTEP_NEEDS_GPU();
  check_reductions(true);
}

TEST(NcclCollectives, ReductionsByNccl) {
  LOCKSTEP_NEEDS_GPU();
  check_reductions(false);
}

TEST(NcclCollectives, Movements) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  for (const auto dtype : {at::kFloat, at::kBool, at::kShort, at::kComplexFloat}) {
    const at::Tensor tensor = on_gpu(999, dtype), rows = tensor.view({1, 999});
    comm->broadcast(tensor, 0);
    EXPECT_TRUE(at::equal(comm->all_gather(tensor), rows));
    EXPECT_TRUE(at::equal(comm->all_gather_uneven(tensor).at(0), tensor));
    EXPECT_TRUE(at::equal(comm->all_to_all(rows), rows));
    EXPECT_TRUE(at::equal(comm->gather(tensor, 0), rows));
    const at::Tensor out = at::empty_like(tensor);
    comm->scatter(rows, out, 0);
    EXPECT_TRUE(at::equal(out, tensor));
  }
}

TEST(NcclCollectives, AFoldRoundsToItsWireAndTakesSquareSums) {
  LOCKSTEP_NEEDS_GPU();
  const auto comm = testing::make_nccl_world();
  const at::Tensor values = at::rand({2, 3, 5, 7}, at::kCUDA).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor rounded = values.to(at::kBFloat16).to(at::kFloat),
                   sums = at::zeros({2}, values.options().dtype(at::kDouble));
  comm->fold({values, at::ones({3}, at::kCUDA)}, {.label = "test", .square_sums = sums, .wire = at::kBFloat16})->wait();
  EXPECT_TRUE(at::equal(values, rounded));
  EXPECT_TRUE(at::allclose(sums[0], rounded.to(at::kDouble).square().sum()));
  EXPECT_DOUBLE_EQ(sums[1].item<double>(), 3) << "the square of a root";
}

}  // namespace
}  // namespace lockstep::comm
