#include "lockstep/parallel/gradients/sparse_fold.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

at::Tensor gradient_of(const at::Tensor& table, const at::Tensor& words) {
  const at::Tensor leaf = table.detach().requires_grad_();
  const at::Tensor rows = at::embedding(leaf, words, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true);
  (rows * at::arange(rows.numel(), at::kFloat).view(rows.sizes())).sum().backward();
  return leaf.grad();
}

TEST(SparseFold, IsTheDenseSum) {
  const at::Tensor table = at::randn({6, 2});
  const at::Tensor a = gradient_of(table, at::tensor({1, 3, 1})), b = gradient_of(table, at::tensor({5, 3}));
  comm::SingleCommunicator comm;
  const at::Tensor sum = fold_sparse({add_equal_rows(rows_of(a, "t")), add_equal_rows(rows_of(b, "t"))}, table, comm);
  EXPECT_TRUE(sum.is_coalesced());
  EXPECT_TRUE(at::equal(sum.to_dense(), a.to_dense() + b.to_dense()));
  EXPECT_TRUE(at::equal(sum.indices().select(0, 0), at::tensor({1, 3, 5}, at::kLong)));
  EXPECT_TRUE(at::equal(fold_sparse({}, table, comm).to_dense(), at::zeros({6, 2}))) << "no lane has any";
}

TEST(SparseFold, RowsAreAddedInTheirOrder) {
  const at::Tensor values = at::tensor({1e8f, 1.0f, -1e8f}).view({3, 1});
  const SparseRows sum = add_equal_rows({at::tensor({4, 4, 4}, at::kLong), values});
  EXPECT_EQ(sum.values.item<float>(), (1e8f + 1.0f) - 1e8f);
}

TEST(SparseFold, NamesWhatItCannotTake) {
  const at::Tensor both = at::randn({3, 2}).to_sparse();
  EXPECT_THROW(rows_of(both, "embedding.weight"), ConfigError);
}

}  // namespace
}  // namespace lockstep::parallel
