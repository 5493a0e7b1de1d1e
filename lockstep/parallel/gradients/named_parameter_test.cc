#include "lockstep/parallel/gradients/named_parameter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

TEST(NamedParameters, SparseEmbeddingsAreMarked) {
  const torch::nn::Sequential net(torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 2).sparse(true)),
                                  torch::nn::Embedding(5, 2), torch::nn::Linear(2, 1));
  const auto parameters = named_parameters(*net);
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].name, "0.weight");
  EXPECT_TRUE(parameters[0].sparse);
  for (size_t i = 1; i < 4; ++i) EXPECT_FALSE(parameters[i].sparse) << parameters[i].name;
  const torch::nn::EmbeddingBag bag(torch::nn::EmbeddingBagOptions(5, 2).sparse(true));
  EXPECT_TRUE(named_parameters(*bag).at(0).sparse) << "of the module itself";
}

TEST(NamedParameters, AModuleWithoutAnyIsRefused) {
  EXPECT_THROW(named_parameters(*torch::nn::Sequential()), ConfigError);
}

TEST(Trainable, LeavesOutFrozenOnesAndSecondNames) {
  const at::Tensor tied = at::ones({2}).requires_grad_(), frozen = at::ones({2}), last = at::ones({1}).requires_grad_();
  const auto kept = trainable({{"encoder", tied}, {"frozen", frozen}, {"decoder", tied}, {"last", last}});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].name, "encoder");
  EXPECT_EQ(kept[1].name, "last");
  EXPECT_TRUE(tensors_of(kept)[1].is_same(last));
}

TEST(Frozen, IsTheRest) {
  const at::Tensor trained = at::ones({2}).requires_grad_(), tied = at::ones({2});
  const auto kept = frozen({{"first", tied}, {"trained", trained}, {"second", tied}});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].name, "first");
}

TEST(AsComplex, IsTheSameMemoryAndNoView) {
  const at::Tensor real = as_real(at::complex(at::ones({3}), at::ones({3}) * 2));
  at::Tensor gradient = as_complex(real);
  EXPECT_TRUE(gradient.is_alias_of(real));
  EXPECT_TRUE(at::equal(at::imag(gradient), at::full({3}, 2.0f)));
  EXPECT_NO_THROW(gradient.detach_());
}

TEST(SomeOf, NamesThree) {
  EXPECT_EQ(some_of({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(some_of({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
}

}  // namespace
}  // namespace lockstep::parallel
