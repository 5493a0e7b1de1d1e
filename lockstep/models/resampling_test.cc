#include "lockstep/models/resampling.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace lockstep::models {
namespace {

using Function = std::function<at::Tensor(const at::Tensor&)>;

// Both compute the same, forward and backward.
void expect_equal(const std::vector<int64_t>& sizes, const Function& products, const Function& libtorchs) {
  const at::Tensor x = at::randn(sizes).requires_grad_(), same = x.detach().clone().requires_grad_();
  const at::Tensor found = products(x), wanted = libtorchs(same);
  EXPECT_TRUE(at::allclose(found, wanted, 1e-5, 1e-6)) << at::IntArrayRef(sizes);
  const at::Tensor gradient = at::randn_like(wanted);
  found.backward(gradient);
  wanted.backward(gradient);
  EXPECT_TRUE(at::allclose(x.grad(), same.grad(), 1e-5, 1e-6)) << at::IntArrayRef(sizes);
}

TEST(Resampling, ProductsOfMatricesUpsampleAsLibtorchDoes) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3, 5, 8}, {1, 4, 1, 3}}) {
    for (const Aligned aligned : {Aligned::kCorners, Aligned::kEdges}) {
      expect_equal(
          sizes, [&](const at::Tensor& x) { return upsample_twice_by_products(x, aligned); },
          [&](const at::Tensor& x) { return upsample_twice(x, aligned); });
    }
  }
}

TEST(Resampling, AlignedEdgesUndoAMeanOfTwoByTwo) {
  const at::Tensor slope = at::arange(16, at::kFloat).reshape({1, 1, 1, 16}).expand({1, 1, 4, 16});
  const at::Tensor back = upsample_twice(at::avg_pool2d(slope, 2), Aligned::kEdges);
  EXPECT_TRUE(at::allclose(back.slice(3, 1, 15), slope.slice(3, 1, 15))) << "but at the border";
}

TEST(Resampling, ProductsOfMatricesPoolAsLibtorchDoes) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 3, 1, 8}, {1, 4, 13, 7}}) {
    expect_equal(
        sizes, [](const at::Tensor& x) { return average_pool_by_products(x, 6); },
        [](const at::Tensor& x) { return average_pool_to(x, 6); });
  }
}

}  // namespace
}  // namespace lockstep::models
