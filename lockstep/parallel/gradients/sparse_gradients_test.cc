#include "lockstep/parallel/gradients/sparse_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;

struct SparseGradientsTest : testing::Test {
  comm::SingleCommunicator comm;
  Tensor dense = at::ones({2}).requires_grad_(), table = at::zeros({6, 2}).requires_grad_();
  SparseGradients gradients{{{"dense", dense}, {"table", table, /*sparse=*/true}}};

  // One gradient of 1 in each of these rows.
  Tensor ones_at(const std::vector<int64_t>& rows) {
    const Tensor indices = at::tensor(rows, at::kLong);
    return at::sparse_coo_tensor(indices.unsqueeze(0), at::ones({indices.numel(), 2}), table.sizes());
  }
};

TEST_F(SparseGradientsTest, LanesAreAddedAndScaled) {
  gradients.push(1, 2, ones_at({5, 3}));
  gradients.push(1, 0, ones_at({1, 3, 1}));
  gradients.push(1, 1, Tensor());
  EXPECT_EQ(gradients.lanes(1), 3u);
  std::vector<Tensor> sums(2);
  gradients.fold(0.5, comm, sums);
  EXPECT_FALSE(sums[0].defined()) << "a dense parameter's";
  const Tensor expected = at::zeros({6, 2});
  for (const int64_t row : {1, 3, 1, 5, 3}) expected[row] += 0.5;
  EXPECT_TRUE(at::equal(sums[1].to_dense(), expected));
  EXPECT_EQ(gradients.lanes(1), 0u);
}

TEST_F(SparseGradientsTest, ALaneGivesOnce) {
  gradients.push(1, 0, ones_at({2}));
  EXPECT_THROW(gradients.push(1, 0, ones_at({2})), BugError);
  gradients.clear();
  EXPECT_NO_THROW(gradients.push(1, 0, Tensor()));
}

TEST_F(SparseGradientsTest, LooksAtGradients) {
  EXPECT_EQ(gradients.add_square_sums(7), 7) << "no gradient yet";
  table.mutable_grad() = ones_at({1, 4}).coalesce();
  EXPECT_EQ(gradients.add_square_sums(7), 11);
  EXPECT_EQ(gradients.first_not_finite(), std::nullopt);
  table.mutable_grad() = (ones_at({1}) * std::numeric_limits<float>::infinity()).coalesce();
  EXPECT_EQ(gradients.first_not_finite(), 1u);
}

}  // namespace
}  // namespace lockstep::parallel
