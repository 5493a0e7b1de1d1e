// How optimizers step by sparse gradients.
#include "lockstep/optim/sparse_rows.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::optim {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using testing_support::refusal;

constexpr int64_t kWords = 20, kWidth = 6;

Tensor table() {
  at::manual_seed(4);
  return at::randn({kWords, kWidth}).requires_grad_();
}

// The gradient of an embedding of some words, one of them twice.
Tensor gradient_of(int step, at::ScalarType dtype = at::kFloat) {
  at::manual_seed(50 + step);
  const Tensor words = at::tensor({3, 7 + step, 3, 11}, at::kLong);
  return at::sparse_coo_tensor(words.unsqueeze(0), at::randn({4, kWidth}).to(dtype), {kWords, kWidth});
}

struct Case {
  const char* name;
  NamedOptions options;
  std::function<std::unique_ptr<torch::optim::Optimizer>(const Tensor&)> libtorchs;
};

std::vector<Case> cases() {
  return {{"sgd",
           {{"lr", 0.1}},
           [](const Tensor& p) {
             return std::make_unique<torch::optim::SGD>(std::vector{p}, torch::optim::SGDOptions(0.1));
           }},
          {"sgd",
           {{"lr", 0.1}, {"momentum", 0.9}},
           [](const Tensor& p) {
             return std::make_unique<torch::optim::SGD>(std::vector{p}, torch::optim::SGDOptions(0.1).momentum(0.9));
           }},
          {"adagrad", {{"lr", 0.1}, {"lr_decay", 0.01}, {"initial_accumulator_value", 0.1}}, [](const Tensor& p) {
             return std::make_unique<torch::optim::Adagrad>(
                 std::vector{p}, torch::optim::AdagradOptions(0.1).lr_decay(0.01).initial_accumulator_value(0.1));
           }}};
}

TEST(SparseRows, StepAsLibtorchsOptimizers) {
  for (const Case& c : cases()) {
    const Tensor ours = table(), theirs = table();
    const auto optimizer = make_optimizer(c.name, {ours}, c.options);
    const auto reference = c.libtorchs(theirs);
    for (int step = 0; step < 5; ++step) {
      ours.mutable_grad() = gradient_of(step);
      theirs.mutable_grad() = gradient_of(step);
      optimizer->step();
      reference->step();
      EXPECT_TRUE(at::allclose(ours, theirs, 1e-6, 1e-7))
          << c.name << ' ' << step << ' ' << (ours - theirs).abs().max();
    }
    EXPECT_TRUE(at::equal(ours[0], table()[0])) << "not reached";
  }
}

// Bit for bit as by a dense gradient with 0 elsewhere.
TEST(SparseRows, StepAsDenseGradientsDo) {
  for (const Case& c : cases()) {
    const Tensor sparse = table(), dense = table();
    const auto one = make_optimizer(c.name, {sparse}, c.options), two = make_optimizer(c.name, {dense}, c.options);
    for (auto* each : {one.get(), two.get()}) each->keep_average(0.5);
    for (int step = 0; step < 4; ++step) {
      sparse.mutable_grad() = gradient_of(step);
      dense.mutable_grad() = gradient_of(step).to_dense();
      for (auto* each : {one.get(), two.get()}) each->update({.grad_multiplier = 0.5, .clip_value = 0.6});
    }
    EXPECT_TRUE(at::equal(sparse, dense)) << c.name;
    EXPECT_TRUE(at::equal(one->averages()[0], two->averages()[0])) << c.name;
    const auto state = one->state_dict(), other = two->state_dict();
    ASSERT_EQ(state.parameters.size(), other.parameters.size());
    for (size_t i = 0; i < state.parameters.size(); ++i) {
      for (size_t t = 0; t < state.parameters[i].tensors.size(); ++t) {
        EXPECT_TRUE(at::equal(state.parameters[i].tensors[t].value, other.parameters[i].tensors[t].value)) << c.name;
      }
    }
  }
}

TEST(SparseRows, StepMastersAndRound) {
  for (const Case& c : cases()) {
    const Tensor narrow = table().detach().to(at::kBFloat16).requires_grad_();
    const Tensor wide = narrow.detach().to(at::kFloat).requires_grad_();
    const auto one = make_optimizer(c.name, {narrow}, c.options), two = make_optimizer(c.name, {wide}, c.options);
    one->keep_masters();
    for (int step = 0; step < 4; ++step) {
      narrow.mutable_grad() = gradient_of(step, at::kBFloat16).coalesce();
      wide.mutable_grad() = narrow.grad().to(at::kFloat);
      one->step();
      two->step();
      EXPECT_TRUE(at::equal(one->masters()[0], wide)) << c.name << step;
      EXPECT_TRUE(at::equal(narrow, wide.to(at::kBFloat16))) << c.name << step;
    }
  }
}

TEST(SparseRows, OtherOptimizersAndWeightDecayAreRefused) {
  const Tensor p = table();
  p.mutable_grad() = gradient_of(0);
  EXPECT_THAT(refusal([&] { make_optimizer("adam", {p})->step(); }),
              HasSubstr("adam: a parameter of shape [20, 6] has a sparse gradient, which sgd and adagrad take"));
  EXPECT_THAT(refusal([&] { make_optimizer("sgd", {p}, {{"weight_decay", 0.1}})->step(); }), HasSubstr("weight_decay"));
  EXPECT_TRUE(at::equal(p, table()));
}

TEST(SparseRows, AreClippedByNormAndValue) {
  const Tensor sparse = table(), dense = table(), other = at::zeros({3}).requires_grad_();
  sparse.mutable_grad() = gradient_of(1);
  dense.mutable_grad() = gradient_of(1).to_dense();
  other.mutable_grad() = at::ones({3});
  const double norm = clip_grad_norm(std::vector{sparse, other}, 1);
  other.mutable_grad() = at::ones({3});
  EXPECT_NEAR(norm, clip_grad_norm(std::vector{dense, other}, 1), 1e-5) << "equal rows are one";
  EXPECT_TRUE(at::allclose(sparse.grad().to_dense(), dense.grad()));
  clip_grad_value(std::vector{sparse, dense}, 0.1);
  EXPECT_TRUE(at::allclose(sparse.grad().to_dense(), dense.grad()));
  EXPECT_NEAR(dense.grad().abs().max().item<double>(), 0.1, 1e-6);
  EXPECT_THROW(clip_grad_value(std::vector{sparse}, -1), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
