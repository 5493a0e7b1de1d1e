#include "lockstep/parallel/gradients/ownership.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

TEST(OwnsItsMemory, ToldFromViewsAndSharers) {
  const at::Tensor like = at::empty({4, 6});
  EXPECT_TRUE(owns_its_memory(at::ones({4, 6}), like));
  EXPECT_FALSE(owns_its_memory(at::ones({5, 6}).narrow(0, 0, 4), like)) << "part of a larger storage";
  EXPECT_FALSE(owns_its_memory(at::ones({6, 4}).t(), like)) << "another layout";
  EXPECT_FALSE(owns_its_memory(at::ones({1, 6}).expand({4, 6}), like)) << "overlapping";
  const at::Tensor shared = at::ones({4, 6});
  const at::Tensor view = shared.view({24});
  EXPECT_FALSE(owns_its_memory(shared, like)) << "a second owner";
}

TEST(Owned, CopiesWhatItMust) {
  const at::Tensor like = at::empty({4, 6});
  at::Tensor mine = at::ones({4, 6});
  const void* data = mine.data_ptr();
  EXPECT_EQ(owned(std::move(mine), like).data_ptr(), data);
  const at::Tensor base = at::rand({6, 4});
  const at::Tensor copy = owned(base.t(), like);
  EXPECT_TRUE(owns_its_memory(copy, like));
  EXPECT_TRUE(at::equal(copy, base.t()));
}

TEST(Owned, SparseGradientsBecomeDense) {
  const at::Tensor table = at::randn({5, 2}).requires_grad_();
  at::embedding(table, at::tensor({1, 3, 1}), /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true)
      .sum()
      .backward();
  const at::Tensor sparse = table.grad();
  ASSERT_TRUE(sparse.is_sparse());
  EXPECT_FALSE(owns_its_memory(sparse, table));
  EXPECT_TRUE(at::equal(owned(sparse, table), sparse.to_dense()));
}

TEST(OwnGradient, TakesApartWhatTwoShare) {
  const at::Tensor both = at::ones({2, 3}), rows = at::empty({2, 3}), flat = at::empty({6});
  rows.mutable_grad() = both.view({2, 3}), flat.mutable_grad() = both.view({6});
  own_gradient(rows);
  EXPECT_NE(rows.grad().data_ptr(), both.data_ptr());
  EXPECT_TRUE(rows.grad().equal(both));
  const at::Tensor alone = at::empty({3});
  alone.mutable_grad() = at::ones({3});
  const void* data = alone.grad().data_ptr();
  own_gradient(alone), own_gradient(at::empty({3}));
  EXPECT_EQ(alone.grad().data_ptr(), data);
}

}  // namespace
}  // namespace lockstep::parallel
