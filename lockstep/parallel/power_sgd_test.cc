#include "lockstep/parallel/power_sgd.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::parallel {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

const PowerSgdOptions kOptions{.matrix_approximation_rank = 2, .start_powerSGD_iter = 1, .random_seed = 3};

struct PowerSgd : testing::Test {
  PowerSgd() { at::manual_seed(3); }  // which libtorch's generator is not by itself
};

// A step of these buckets.
void reduce_buckets(CommHook& hook, const std::vector<std::vector<Tensor>>& buckets, double loss_scale = 1) {
  comm::SingleCommunicator comm;
  bool finite = true;
  for (size_t i = 0; i < buckets.size(); ++i) {
    hook.begin({.index = i, .label = "bucket", .gradients = buckets[i], .loss_scale = loss_scale}, comm)->wait();
    for (const Tensor& gradient : buckets[i]) finite = finite && gradient.isfinite().all().item<bool>();
  }
  hook.end_step(finite);
}
void reduce(CommHook& hook, const std::vector<Tensor>& gradients, double loss_scale = 1) {
  reduce_buckets(hook, std::vector<std::vector<Tensor>>{gradients}, loss_scale);
}

TEST_F(PowerSgd, MakesColumnsOrthonormal) {
  const Tensor matrix = at::randn({8, 3});
  orthogonalize(matrix, 0);
  EXPECT_TRUE(at::allclose(at::matmul(matrix.t(), matrix), at::eye(3), 1e-5, 1e-5));
}

TEST_F(PowerSgd, CompressesWhatGetsSmallerByIt) {
  EXPECT_TRUE(worth_compressing(64, 576, kOptions));
  EXPECT_FALSE(worth_compressing(4, 4, kOptions));
}

TEST_F(PowerSgd, StepsBeforeItsStartAreWhole) {
  const auto hook = power_sgd_hook(kOptions);
  const Tensor first = at::randn({32, 4, 3, 3}), before = first.clone();
  reduce(*hook, {first});
  EXPECT_TRUE(at::equal(first, before));
}

TEST_F(PowerSgd, AMatrixOfItsRankComesThroughWhole) {
  const auto hook = power_sgd_hook(kOptions);
  const Tensor matrix = at::matmul(at::randn({32, 2}), at::randn({2, 24}));
  reduce(*hook, {matrix.clone()});
  const Tensor gradient = matrix.clone(), bias = at::randn({5}), kept = bias.clone();
  reduce(*hook, {gradient, bias});
  EXPECT_TRUE(at::allclose(gradient, matrix, 1e-3, 1e-4));
  EXPECT_TRUE(at::equal(bias, kept)) << "vectors are folded whole";
}

// The definition in the header, written down with libtorch's own functions.
TEST_F(PowerSgd, EqualsItsDefinition) {
  const auto hook = power_sgd_hook(kOptions);
  reduce(*hook, {at::zeros({16, 12})});
  Tensor q, error = at::zeros({16, 12});
  for (int step = 0; step < 3; ++step) {
    const Tensor gradient = at::randn({16, 12}), m = gradient + error;
    const Tensor got = gradient.clone();
    reduce(*hook, {got});
    if (step > 0) {
      Tensor start = q.clone();
      orthogonalize(start, 0);
      Tensor p = at::matmul(m, start);
      orthogonalize(p, 0);
      EXPECT_TRUE(at::allclose(got, at::matmul(p, at::matmul(m.t(), p).t()), 1e-4, 1e-5)) << "step " << step;
    }
    // Of the result P Qᵀ, the rows' space is that of Q: enough to go on from.
    error = m - got;
    const auto [u, s, v] = at::svd(got);
    q = v.narrow(1, 0, 2);
  }
}

TEST_F(PowerSgd, TheErrorComesBack) {
  const auto hook = power_sgd_hook({.matrix_approximation_rank = 1, .start_powerSGD_iter = 1});
  const Tensor matrix = at::randn({12, 12});
  reduce(*hook, {matrix.clone()});
  Tensor sum = at::zeros({12, 12});
  constexpr int kSteps = 200;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor gradient = matrix.clone();
    reduce(*hook, {gradient});
    sum += gradient;
  }
  EXPECT_LT((sum / kSteps - matrix).norm().item<double>(), 0.1 * matrix.norm().item<double>())
      << "what a step leaves out, later ones bring";
}

TEST_F(PowerSgd, AnOverflowAndANewLossScaleLeaveNoTrace) {
  const auto plain = power_sgd_hook(kOptions), scaled = power_sgd_hook(kOptions);
  const Tensor first = at::randn({16, 12});
  reduce(*plain, {first.clone()});
  reduce(*scaled, {first * 8}, 8);
  for (const double scale : {8.0, 4.0, 4.0}) {
    const Tensor gradient = at::randn({16, 12}), expected = gradient.clone(), got = gradient * scale;
    reduce(*plain, {expected});
    reduce(*scaled, {got}, scale);
    EXPECT_TRUE(at::allclose(got / scale, expected, 1e-4, 1e-5));
    const Tensor infinite = at::full({16, 12}, std::numeric_limits<float>::infinity());
    reduce(*scaled, {infinite}, scale);
    EXPECT_FALSE(infinite.isfinite().any().item<bool>()) << "the scaler has to see it";
  }
}

CommHook::State copy_of_state(CommHook& hook) {
  CommHook::State state = hook.state_dict();
  for (auto& [name, tensor] : state) tensor = tensor.clone();
  return state;
}

bool equal_but_for_iteration(const CommHook::State& a, const CommHook::State& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && (x.first == "iteration" || at::equal(x.second, y.second));
  });
}

TEST_F(PowerSgd, AStepThatIsNotFiniteInOneBucketLeavesNoTraceOfTheOthers) {
  const Tensor infinite = at::full({5}, std::numeric_limits<float>::infinity());
  for (const bool warm : {true, false}) {
    PowerSgdOptions options = kOptions;
    options.warm_start = warm;
    const auto hook = power_sgd_hook(options);
    const auto matrix = [] { return at::randn({16, 12}); };
    const auto step = [&](const Tensor& last) {
      const CommHook::State before = copy_of_state(*hook);
      reduce_buckets(*hook, {{matrix()}, {matrix(), last}});
      return equal_but_for_iteration(before, hook->state_dict());
    };
    for (int i = 0; i < 2; ++i) EXPECT_EQ(step(at::ones({5})), i == 0);
    EXPECT_TRUE(step(infinite)) << "a vector, which is folded whole";
    EXPECT_TRUE(step(infinite));
    EXPECT_FALSE(step(at::ones({5})));
  }
}

TEST_F(PowerSgd, AStepThatFailsLeavesNoTrace) {
  const auto hook = power_sgd_hook(kOptions);
  for (int step = 0; step < 2; ++step) reduce(*hook, {at::randn({16, 12})});
  const CommHook::State before = copy_of_state(*hook);
  comm::SingleCommunicator comm;
  for (const bool begun_anew : {false, true}) {
    hook->begin({.index = 0, .label = "bucket", .gradients = {at::randn({16, 12})}}, comm)->wait();
    if (begun_anew) reduce(*hook, {at::full({16, 12}, std::numeric_limits<float>::infinity())});
    EXPECT_TRUE(equal_but_for_iteration(before, hook->state_dict()));
  }
}

TEST_F(PowerSgd, ItsStateGoesOnInAnother) {
  const auto first = power_sgd_hook(kOptions), second = power_sgd_hook(kOptions);
  std::vector<Tensor> gradients;
  for (int step = 0; step < 6; ++step) gradients.push_back(at::randn({16, 12}));
  for (int step = 0; step < 3; ++step) reduce(*first, {gradients[step].clone(), at::ones({3})}, 8);
  const CommHook::State saved = copy_of_state(*first);
  EXPECT_EQ(saved.at("iteration").item<int64_t>(), 3);
  EXPECT_EQ(saved.at("errors.0.0").sizes(), (std::vector<int64_t>{1, 16, 12}));
  second->load_state_dict(saved);
  for (int step = 3; step < 6; ++step) {
    const Tensor a = gradients[step].clone(), b = gradients[step].clone();
    reduce(*first, {a, at::ones({3})}, 4);
    reduce(*second, {b, at::ones({3})}, 4);
    EXPECT_TRUE(at::equal(a, b)) << "step " << step;
  }
}

TEST_F(PowerSgd, ErrorsOfMoreRanksAreAddedUp) {
  const auto hook = power_sgd_hook(kOptions);
  reduce(*hook, {at::randn({16, 12})});
  reduce(*hook, {at::randn({16, 12})});
  CommHook::State saved = hook->state_dict();
  const Tensor error = saved.at("errors.0.0").clone();
  saved["errors.0.0"] = at::cat({error, error * 2});
  hook->load_state_dict(saved);
  EXPECT_TRUE(at::allclose(hook->state_dict().at("errors.0.0"), error * 3));
}

TEST_F(PowerSgd, RefusesTheStateOfOthers) {
  const auto hook = power_sgd_hook(kOptions);
  EXPECT_THAT(refusal([&] { hook->load_state_dict({}); }), HasSubstr("no \"iteration\""));
  const Tensor one = at::ones({}, at::kLong);
  reduce(*hook, {at::randn({16, 12})});
  const size_t kept = hook->state_dict().size();
  for (const char* key : {"q", "q.0", "q.x.1", "q.0.1.2"}) {
    EXPECT_THAT(refusal([&] {
                  hook->load_state_dict({{"iteration", one}, {key, at::ones({3, 2})}});
                }),
                HasSubstr("of another hook"));
    EXPECT_EQ(hook->state_dict().size(), kept) << "what is refused changes nothing";
  }
  hook->load_state_dict({{"iteration", one}, {"q.0.0", at::ones({3, 2})}});
  EXPECT_THAT(refusal([&] { reduce(*hook, {at::randn({16, 12})}); }), HasSubstr("does not fit bucket"));
  EXPECT_TRUE(compress_hook(at::kHalf)->state_dict().empty());
  EXPECT_THAT(refusal([&] {
                compress_hook(at::kHalf)->load_state_dict({{"iteration", one}});
              }),
              HasSubstr("keeps no state"));
}

TEST_F(PowerSgd, RefusesWhatCannotBe) {
  EXPECT_THROW(power_sgd_hook({.matrix_approximation_rank = 0}), ConfigError);
  EXPECT_THROW(power_sgd_hook({.start_powerSGD_iter = 0}), ConfigError);
}

}  // namespace
}  // namespace lockstep::parallel
