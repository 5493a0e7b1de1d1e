#include "lockstep/parallel/reducer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/comm/single_communicator.h"
#include "lockstep/parallel/gradients/ownership.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

struct ReducerTest : testing::Test {
  comm::SingleCommunicator comm;
  Tensor weight = at::ones({3}).requires_grad_(), bias = at::ones({3}).requires_grad_(), frozen = at::ones({3});
  Reducer reducer{{{"weight", weight}, {"bias", bias}, {"frozen", frozen}}, comm};

  void lane(const Tensor& factor, size_t number = 0) {
    reducer.set_lane(number);
    (weight * factor + bias * frozen).sum().backward();
  }
};

TEST_F(ReducerTest, LanesAddUpInTheLastOne) {
  const Tensor x[] = {at::randn({3}), at::randn({3}), at::randn({3})};
  reducer.begin_step(3);
  lane(x[0]);
  EXPECT_FALSE(weight.grad().defined()) << "moved away until the last lane";
  lane(x[1], 1);
  lane(x[2], 2);
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), (x[0] + x[1]) + x[2]));
  EXPECT_TRUE(at::equal(bias.grad(), at::full({3}, 3.0f)));
  EXPECT_NEAR(reducer.square_sum(), weight.grad().square().sum().item<double>() + 27, 1e-4);
}

TEST_F(ReducerTest, LanesMayComeInAnyOrder) {
  const Tensor x[] = {at::randn({3}), at::randn({3}), at::randn({3})};
  reducer.begin_step(3);
  for (const size_t number : {2, 0, 1}) lane(x[number], number);
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), (x[0] + x[1]) + x[2]));
}

TEST_F(ReducerTest, AnEmptyLaneAddsZero) {
  const Tensor x = at::randn({3});
  reducer.begin_step(2);
  lane(x);
  reducer.set_lane(1);
  reducer.empty_lane();
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), x));
}

TEST_F(ReducerTest, GradientsAddUpUntilAnUpdateHasUsedThem) {
  const Tensor x = at::randn({3});
  const auto step = [&](int64_t number) {
    reducer.begin_step(1, {.number = number});
    lane(x);
    reducer.finish();
  };
  step(5);
  step(5);
  EXPECT_TRUE(at::equal(weight.grad(), x + x)) << "two losses of one step";
  EXPECT_NEAR(reducer.square_sum(), weight.grad().square().sum().item<double>() + 12, 1e-4);
  {
    const at::NoGradGuard no_grad;
    weight.add_(0);
    bias.add_(0);
  }
  step(6);
  EXPECT_TRUE(at::equal(weight.grad(), x)) << "updated";
  weight.grad().zero_();
  bias.grad().zero_();
  step(7);
  EXPECT_TRUE(at::equal(weight.grad(), x)) << "set to 0";
  EXPECT_THAT(refusal([&] { step(8); }),
              HasSubstr("step 8: .grad of weight still holds the gradient of step 7; call the module's zero_grad()"));
  reducer.drop();
  weight.mutable_grad() = at::full({3}, 10.0f);
  bias.mutable_grad() = Tensor();
  step(8);
  EXPECT_TRUE(at::equal(weight.grad(), x + 10)) << "set by hand";
  EXPECT_TRUE(at::equal(bias.grad(), at::ones({3})));
}

TEST_F(ReducerTest, WhatWasNotFiniteIsDroppedByTheNextStep) {
  reducer.begin_step(1, {.number = 1});
  lane(at::full({3}, std::numeric_limits<float>::infinity()));
  reducer.finish();
  reducer.begin_step(1, {.number = 1});
  lane(at::ones({3}));
  reducer.finish();
  EXPECT_FALSE(std::isfinite(reducer.square_sum())) << "another loss of the same step hides no overflow";
  reducer.begin_step(1, {.number = 2});
  lane(at::ones({3}));
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), at::ones({3})));
}

TEST_F(ReducerTest, APassByHandFoldsWhatIsInGrad) {
  const Tensor x[] = {at::randn({3}), at::randn({3})};
  lane(x[0]);  // as under no_sync()
  EXPECT_TRUE(at::equal(weight.grad(), x[0]));
  reducer.begin_pass({.scale = 0.5});
  lane(x[1]);
  EXPECT_FALSE(weight.grad().defined()) << "installed by finish_pass() alone";
  reducer.finish_pass();
  EXPECT_TRUE(at::equal(weight.grad(), (x[0] + x[1]) * 0.5));
  weight.mutable_grad() = bias.mutable_grad() = Tensor();
  reducer.begin_step(1);
  lane(x[0]);
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), x[0])) << "a step of lanes is not scaled";
}

struct ByHandTest : testing::Test {
  comm::SingleCommunicator comm;
  Tensor weight = at::ones({3}).requires_grad_(), bias = at::ones({3}).requires_grad_();
  int begun = 0, ended = 0;
  bool folds = true;
  Reducer reducer{{{"weight", weight}, {"bias", bias}},
                  comm,
                  {},
                  {.begin =
                       [this] {
                         ++begun;
                         return folds ? std::optional(PassSettings{.scale = 0.5}) : std::nullopt;
                       },
                   .end = [this] { ++ended; }}};
};

TEST_F(ByHandTest, AnyBackwardIsFoldedInTheEnginesCallback) {
  const Tensor x = at::randn({3});
  (weight * x + bias).sum().backward();
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(at::equal(weight.grad(), x * 0.5));
  (weight * x + bias).sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), (x * 0.5 + x) * 0.5)) << "of what is in .grad, as PyTorch has it";
  folds = false;
  bias.mutable_grad() = Tensor();
  (weight * x + bias).sum().backward();
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(at::equal(bias.grad(), at::ones({3}))) << "not folded";
}

TEST_F(ByHandTest, AnErrorEndsThePassAndTheNextOneIsSound) {
  EXPECT_THAT(refusal([&] { weight.sum().backward(); }), HasSubstr("no gradient for bias"));
  EXPECT_FALSE(weight.grad().defined());
  const auto failing = weight.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("a user's own"); });
  EXPECT_THROW((bias * (weight * 2)).sum().backward(), std::runtime_error);
  weight.remove_hook(failing);
  weight.mutable_grad() = bias.mutable_grad() = Tensor();
  (weight + bias).sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({3}, 0.5f)));
  EXPECT_TRUE(at::equal(bias.grad(), at::full({3}, 0.5f)));
}

TEST_F(ReducerTest, OutsideOfStepsHooksDoNothing) {
  (weight * 2).sum().backward();
  (weight * 2).sum().backward();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({3}, 4.0f)));
}

TEST_F(ReducerTest, TheFirstThatIsNotFiniteIsNamed) {
  reducer.begin_step(1);
  lane(at::ones({3}));
  reducer.finish();
  EXPECT_EQ(reducer.first_not_finite(), "");
  weight.mutable_grad() = bias.mutable_grad() = Tensor();
  reducer.begin_step(1);
  lane(at::tensor({1.f, std::numeric_limits<float>::infinity(), 1.f}));
  reducer.finish();
  EXPECT_EQ(reducer.first_not_finite(), "weight");
  EXPECT_FALSE(std::isfinite(reducer.square_sum()));
}

TEST_F(ReducerTest, AParameterWithoutGradientIsNamed) {
  reducer.begin_step(1);
  weight.sum().backward();
  EXPECT_THAT(refusal([&] { reducer.finish(); }), HasSubstr("no gradient for bias:"));
  reducer.drop();
  EXPECT_FALSE(weight.grad().defined());
}

TEST_F(ReducerTest, SecondDerivativesAreRefused) {
  reducer.begin_step(1);
  const Tensor loss = (weight * weight).sum() + bias.sum();
  EXPECT_THAT(refusal([&] { loss.backward({}, std::nullopt, /*create_graph=*/true); }), HasSubstr("create_graph"));
}

TEST_F(ReducerTest, AParameterFrozenLaterIsNamed) {
  bias.requires_grad_(false);
  EXPECT_THAT(refusal([&] { reducer.begin_step(1); }), HasSubstr("bias required a gradient"));
}

TEST_F(ReducerTest, ALayerUsedTwiceGetsOneGradient) {
  reducer.begin_step(1);
  const Tensor first = weight * 2, second = first * weight + bias;  // two uses, one backward
  second.sum().backward();
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({3}, 4.0f)));
}

TEST_F(ReducerTest, SeveralForwardsBeforeOneBackward) {
  reducer.begin_step(1);
  const Tensor one = (weight * 2 + bias).sum(), other = (weight * 3).sum();
  (one + other).backward();
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), at::full({3}, 5.0f)));
}

TEST(ReducerOptions, AParameterUnderTwoNamesIsTakenOnce) {
  comm::SingleCommunicator comm;
  const Tensor tied = at::ones({3}).requires_grad_();
  Reducer reducer({{"encoder.weight", tied}, {"decoder.weight", tied}}, comm);
  reducer.begin_step(1);
  (tied * tied).sum().backward();
  reducer.finish();
  EXPECT_EQ(reducer.square_sum(), 12);
}

TEST(ReducerOptions, FindUnusedGivesNoGradientToWhatNoLaneUses) {
  comm::SingleCommunicator comm;
  const Tensor a = at::ones({3}).requires_grad_(), b = at::ones({3}).requires_grad_(),
               c = at::ones({3}).requires_grad_();
  Reducer reducer({{"a", a}, {"b", b}, {"c", c}}, comm, {.find_unused_parameters = true});
  for (int step = 0; step < 2; ++step) {  // the second with other parameters
    a.mutable_grad() = b.mutable_grad() = Tensor();
    reducer.begin_step(2);
    const Tensor losses[] = {(a * 2).sum(), (a + (step == 0 ? b : c)).sum()};
    for (size_t lane = 0; lane < 2; ++lane) {
      reducer.set_lane(lane);
      reducer.expect(losses[lane]);
      losses[lane].backward();
    }
    reducer.finish();
    EXPECT_TRUE(at::equal(a.grad(), at::full({3}, 3.0f)));
    EXPECT_EQ(b.grad().defined(), step == 0);
    EXPECT_EQ(c.grad().defined(), step == 1);
    EXPECT_TRUE(at::equal((step == 0 ? b : c).grad(), at::ones({3})));
  }
}

TEST(ReducerOptions, AStaticGraphIsKnownFromItsFirstStep) {
  comm::SingleCommunicator comm;
  const Tensor a = at::ones({3}).requires_grad_(), b = at::ones({3}).requires_grad_();
  Reducer reducer({{"a", a}, {"b", b}}, comm, {.static_graph = true});
  const auto step = [&](const Tensor& loss) {
    a.mutable_grad() = Tensor();
    reducer.begin_step(1);
    reducer.expect(loss);
    loss.backward();
    reducer.end_lane();
    reducer.finish();
  };
  for (int i = 0; i < 3; ++i) {
    step((a * 2).sum());
    EXPECT_TRUE(at::equal(a.grad(), at::full({3}, 2.0f)));
    EXPECT_FALSE(b.grad().defined());
  }
  EXPECT_THAT(refusal([&] { step((a + b).sum()); }), HasSubstr("static_graph: b got a gradient"));
}

TEST(ReducerOptions, AStaticGraphIsNotWalkedOver) {
  comm::SingleCommunicator comm;
  const Tensor a = at::ones({3}).requires_grad_(), b = at::ones({3}).requires_grad_();
  const auto walks = [&](const DdpOptions& options) {
    Reducer reducer({{"a", a}, {"b", b}}, comm, options);
    for (int step = 0; step < 3; ++step) {
      a.mutable_grad() = Tensor();
      reducer.begin_step(1);
      const Tensor loss = (a * 2).sum();
      reducer.expect(loss);
      loss.backward();
      reducer.end_lane();
      reducer.finish();
    }
    return reducer.walks();
  };
  EXPECT_EQ(walks({.find_unused_parameters = true}), 3u) << "one a lane";
  EXPECT_EQ(walks({.static_graph = true}), 0u);
  EXPECT_EQ(walks({.find_unused_parameters = true, .static_graph = true}), 0u) << "the first step's gradients tell";
}

TEST(ReducerOptions, SparseGradientsOfLanesAreAdded) {
  comm::SingleCommunicator comm;
  const Tensor table = at::randn({6, 2}).requires_grad_(), dense = at::ones({2}).requires_grad_();
  Reducer reducer({{"table", table, /*sparse=*/true}, {"dense", dense}}, comm);
  reducer.begin_step(3);
  const std::vector<std::vector<int64_t>> words = {{1, 3, 1}, {5, 3}};
  for (size_t lane = 0; lane < 2; ++lane) {
    reducer.set_lane(lane);
    const Tensor rows = at::embedding(table, at::tensor(words[lane], at::kLong), -1, false, /*sparse=*/true);
    (rows * dense).sum().backward();
  }
  reducer.set_lane(2);
  reducer.empty_lane();
  reducer.finish();
  ASSERT_TRUE(table.grad().is_sparse());
  const Tensor expected = at::zeros({6, 2});
  for (const int64_t row : {1, 3, 1, 5, 3}) expected[row] += 1;
  EXPECT_TRUE(at::equal(table.grad().to_dense(), expected));
  EXPECT_NEAR(reducer.square_sum(), expected.square().sum().item<double>() + dense.grad().square().sum().item<double>(),
              1e-4);
}

TEST(ReducerOptions, HalfGradientsMayBeAddedInFp32) {
  comm::SingleCommunicator comm;
  const Tensor half = at::ones({5}, at::kBFloat16).requires_grad_();
  Reducer reducer({{"half", half}}, comm,
                  {.delay_allreduce = true, .allreduce_always_fp32 = true, .gradient_predivide_factor = 4});
  reducer.begin_step(1);
  (half * 3).sum().backward();
  reducer.finish();
  EXPECT_EQ(half.grad().scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(half.grad(), at::full({5}, 3, at::kBFloat16)));
  EXPECT_EQ(reducer.square_sum(), 45);
}

TEST(ReducerTensors, WhatBackwardMadeIsFoldedWithoutACopy) {
  comm::SingleCommunicator comm;
  const Tensor linear = at::randn({4, 3}).requires_grad_(), kernel = at::randn({2, 1, 3, 3}).requires_grad_();
  Reducer reducer({{"linear", linear}, {"kernel", kernel}}, comm);
  const void *linear_born = nullptr, *kernel_born = nullptr;
  linear.register_hook([&](const Tensor& gradient) { linear_born = gradient.data_ptr(); });
  kernel.register_hook([&](const Tensor& gradient) { kernel_born = gradient.data_ptr(); });
  reducer.begin_step(1);
  (at::linear(at::randn({5, 3}), linear).sum() + at::conv2d(at::randn({2, 1, 8, 8}), kernel).sum()).backward();
  reducer.finish();
  EXPECT_EQ(linear.grad().data_ptr(), linear_born);
  EXPECT_EQ(kernel.grad().data_ptr(), kernel_born);
}

TEST_F(ReducerTest, AGradientThatSharesMemoryIsCopied) {
  reducer.begin_step(1);
  const Tensor both = at::cat({weight, bias});  // its backward gives views of one tensor
  (both * at::arange(6)).sum().backward();
  reducer.finish();
  EXPECT_TRUE(at::equal(weight.grad(), at::arange(3, at::kFloat)));
  EXPECT_TRUE(at::equal(bias.grad(), at::arange(3, 6, at::kFloat)));
  EXPECT_TRUE(owns_its_memory(weight.grad(), weight));
}

}  // namespace
}  // namespace lockstep::parallel
