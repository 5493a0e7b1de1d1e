// What every optimizer must do, run for each of them.
#include "lockstep/optim/fused_optimizer.h"

#include <gtest/gtest.h>
#include <torch/optim.h>

#include <cmath>
#include <functional>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/rules/sgd.h"
#include "lockstep/optim/testing/training.h"

namespace lockstep::optim {
namespace {

using testing::difference;
using testing::set_gradients;
using testing::Tensors;
using testing::train;
using testing::weights;

// One of our optimizers, and libtorch's own with the same options, where it has one.
struct Case {
  std::string label;
  std::string name;
  NamedOptions options;
  std::function<std::unique_ptr<torch::optim::Optimizer>(Tensors)> libtorch = nullptr;
};

template <typename Optimizer, typename Options>
auto libtorch(Options options) {
  return [=](Tensors parameters) { return std::make_unique<Optimizer>(std::move(parameters), options); };
}

std::vector<Case> cases_with_options() {
  using torch::optim::AdagradOptions;
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  using torch::optim::RMSpropOptions;
  using torch::optim::SGDOptions;
  const std::pair<double, double> betas = {0.8, 0.95};
  return {
      {"sgd", "sgd", {{"lr", 0.1}}, libtorch<torch::optim::SGD>(SGDOptions(0.1))},
      {"momentum",
       "sgd",
       {{"lr", 0.1}, {"momentum", 0.9}, {"dampening", 0.1}, {"weight_decay", 0.01}},
       libtorch<torch::optim::SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.1).weight_decay(0.01))},
      {"nesterov",
       "sgd",
       {{"lr", 0.1}, {"momentum", 0.9}, {"nesterov", true}},
       libtorch<torch::optim::SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true))},
      {"adagrad",
       "adagrad",
       {{"lr", 0.1}, {"lr_decay", 0.1}, {"weight_decay", 0.01}, {"initial_accumulator_value", 0.1}},
       libtorch<torch::optim::Adagrad>(
           AdagradOptions(0.1).lr_decay(0.1).weight_decay(0.01).initial_accumulator_value(0.1))},
      {"adam",
       "adam",
       {{"lr", 0.1}, {"betas", betas}, {"weight_decay", 0.01}},
       libtorch<torch::optim::Adam>(AdamOptions(0.1).betas(betas).weight_decay(0.01))},
      {"amsgrad",
       "adam",
       {{"lr", 0.1}, {"eps", 1e-3}, {"amsgrad", true}},
       libtorch<torch::optim::Adam>(AdamOptions(0.1).eps(1e-3).amsgrad(true))},
      {"adamw", "adamw", {{"lr", 0.1}}, libtorch<torch::optim::AdamW>(AdamWOptions(0.1))},
      {"rmsprop", "rmsprop", {{"lr", 0.01}}, libtorch<torch::optim::RMSprop>(RMSpropOptions(0.01))},
      {"centered",
       "rmsprop",
       {{"lr", 0.01}, {"alpha", 0.9}, {"weight_decay", 0.01}, {"eps", 1e-3}, {"centered", true}},
       libtorch<torch::optim::RMSprop>(RMSpropOptions(0.01).alpha(0.9).weight_decay(0.01).eps(1e-3).centered(true))},
      {"rmsprop_momentum",
       "rmsprop",
       {{"lr", 0.01}, {"momentum", 0.9}, {"eps", 1e-3}, {"centered", true}},
       libtorch<torch::optim::RMSprop>(RMSpropOptions(0.01).momentum(0.9).eps(1e-3).centered(true))},
      {"nadam", "nadam", {{"lr", 0.1}, {"weight_decay", 0.01}}},
      {"lamb", "lamb", {{"lr", 0.03}, {"max_grad_norm", 0.0}}},
      {"lars", "lars", {{"lr", 10.0}, {"weight_decay", 0.01}}},
      {"novograd", "novograd", {{"lr", 0.03}, {"weight_decay", 0.01}}},
  };
}

// Every optimizer is checked, with its defaults where no options are given above.
std::vector<Case> cases() {
  std::vector<Case> all = cases_with_options();
  for (const std::string& name : optimizer_names()) {
    const auto is_of = [&](const Case& each) { return each.name == name; };
    if (std::none_of(all.begin(), all.end(), is_of)) all.push_back({name, name, {}});
  }
  return all;
}

std::vector<Case> cases_of_libtorch() {
  std::vector<Case> all = cases();
  std::erase_if(all, [](const Case& each) { return each.libtorch == nullptr; });
  return all;
}

class EveryOptimizer : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<FusedOptimizer> make(const Tensors& parameters) const {
    return make_optimizer(GetParam().name, parameters, GetParam().options);
  }
};
INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.label; });

class LibtorchsOptimizer : public EveryOptimizer {};
INSTANTIATE_TEST_SUITE_P(All, LibtorchsOptimizer, ::testing::ValuesIn(cases_of_libtorch()),
                         [](const auto& info) { return info.param.label; });

TEST_P(LibtorchsOptimizer, IsFollowed) {
  const Tensors ours = weights();
  const Tensors theirs = weights();
  const auto optimizer = make(ours);
  const auto reference = GetParam().libtorch(theirs);
  for (int step = 0; step < 10; ++step) {
    set_gradients(ours, step);
    set_gradients(theirs, step);
    torch::optim::Optimizer& base = *optimizer;
    base.step();
    reference->step();
    ASSERT_LT(difference(ours, theirs), 2e-6) << "step " << step;
  }
  EXPECT_GT(difference(ours, weights()), 0.05);
}

TEST_P(EveryOptimizer, ClipsByValueInThePassAsPyTorch) {
  const Tensors clipped = weights();
  const Tensors reference = weights();
  const auto a = make(clipped);
  const auto b = make(reference);
  for (int step = 0; step < 3; ++step) {
    set_gradients(clipped, step);
    a->update({.grad_multiplier = 0.5, .clip_value = 0.3});
    set_gradients(reference, step);
    for (const at::Tensor& p : reference) p.mutable_grad().mul_(0.5).clamp_(-0.3, 0.3);
    b->update({});
    EXPECT_LE(difference(clipped, reference), a->elementwise() ? 0 : 1e-6) << "norms are of the clipped";
  }
  set_gradients(clipped, 9);
  clipped[1].mutable_grad()[3] = std::numeric_limits<float>::quiet_NaN();
  a->update({.clip_value = 0.3});
  EXPECT_TRUE(clipped[1].isnan()[3].item<bool>()) << "it stays to be seen";
  EXPECT_EQ(clipped[1].isnan().sum().item<int64_t>(), a->elementwise() ? 1 : 7);
}

// AveragedModel's: a copy, then lerp with 1 - decay, of weights that got no gradient too; in fp32 of 16 bits.
TEST_P(EveryOptimizer, AveragesTheWeightsAsPyTorch) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const double decay : {0.99, 0.25}) {
      const Tensors averaged = weights(dtype);
      const Tensors plain = weights(dtype);
      const auto a = make(averaged);
      const auto b = make(plain);
      a->keep_average(decay);
      Tensors expected;
      for (int step = 0; step < 3; ++step) {
        for (const auto& [optimizer, parameters] : {std::pair(a.get(), averaged), std::pair(b.get(), plain)}) {
          set_gradients(parameters, step);
          if (step == 1) parameters[1].mutable_grad().reset();
          optimizer->update({});
        }
        for (size_t i = 0; i < plain.size(); ++i) {
          const at::Tensor now = plain[i].detach().to(dtype == at::kDouble ? at::kDouble : at::kFloat, false, true);
          if (step == 0) {
            expected.push_back(now);
          } else {
            expected[i] = expected[i].lerp(now, 1 - decay);
          }
          ASSERT_TRUE(at::equal(averaged[i], plain[i])) << "the weights know nothing of it";
          ASSERT_TRUE(at::equal(a->averages()[i], expected[i])) << dtype << ' ' << decay << ' ' << step << ' ' << i;
        }
      }
    }
  }
}

TEST_P(EveryOptimizer, GoesOnOverOtherParametersWithItsOptions) {
  const Tensors ours = weights(), others = weights();
  const auto optimizer = make(ours);
  optimizer->set_lr(0.05);
  const auto over = optimizer->over({others});
  EXPECT_EQ(over->name(), optimizer->name());
  train(*optimizer, ours, 0, 2);
  train(*over, others, 0, 2);
  EXPECT_EQ(difference(ours, others), 0);
}

TEST_P(EveryOptimizer, MultipliesTheGradientsInThePass) {
  const Tensors plain = weights();
  const Tensors scaled = weights();
  const auto a = make(plain);
  const auto b = make(scaled);
  for (int step = 0; step < 4; ++step) {
    set_gradients(plain, step);
    set_gradients(scaled, step, 65536);
    a->update({});
    b->update({.grad_multiplier = 1.0 / 65536});
  }
  EXPECT_EQ(difference(plain, scaled), 0);
}

TEST_P(EveryOptimizer, MaximizeIsTheStepOnNegatedGradients) {
  const Tensors up = weights();
  const Tensors down = weights();
  NamedOptions options = GetParam().options;
  options.push_back({"maximize", true});
  const auto a = make_optimizer(GetParam().name, up, options);
  const auto b = make(down);
  for (int step = 0; step < 4; ++step) {
    set_gradients(up, step);
    set_gradients(down, step, -1);
    a->update({});
    b->update({});
  }
  EXPECT_LT(difference(up, down), 1e-6);
}

TEST_P(EveryOptimizer, TheMemoryOrderDoesNotMatter) {
  const Tensors plain = weights();
  const Tensors mixed = weights();
  const auto a = make(plain);
  const auto b = make(mixed);
  for (int step = 0; step < 6; ++step) {
    set_gradients(plain, step);
    set_gradients(mixed, step);
    at::Tensor& gradient = mixed[0].mutable_grad();
    if (step == 1) gradient = gradient.contiguous(at::MemoryFormat::ChannelsLast);
    if (step == 2) gradient = gradient.transpose(0, 3).contiguous().transpose(0, 3);
    if (step == 3) mixed[0].set_data(mixed[0].contiguous(at::MemoryFormat::ChannelsLast));
    a->update({});
    b->update({});
  }
  EXPECT_TRUE(mixed[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  // Norms are added in the order of memory.
  EXPECT_LE(difference(plain, mixed), a->elementwise() ? 0 : 1e-6);
}

TEST_P(EveryOptimizer, ParametersWithoutGradientWaitForTheirs) {
  const Tensors parameters = weights();
  const Tensors reference = weights();
  const auto optimizer = make(parameters);
  const auto other = make({reference[1]});
  for (int step = 0; step < 4; ++step) {
    set_gradients(parameters, step);
    set_gradients(reference, step);
    if (step < 2) parameters[1].mutable_grad().reset();
    optimizer->update({});
    if (step < 2) {
      EXPECT_TRUE(at::equal(parameters[1], weights()[1]));
    } else {
      other->update({});
    }
  }
  EXPECT_TRUE(at::equal(parameters[1], reference[1]));
  EXPECT_FALSE(at::equal(parameters[0], weights()[0]));
}

TEST_P(EveryOptimizer, TrainsInOtherDtypes) {
  const Tensors exact = weights();
  train(*make(exact), exact, 0, 5);
  for (const auto& [dtype, tolerance] : {std::pair(at::kDouble, 1e-5), std::pair(at::kBFloat16, 0.1)}) {
    const Tensors parameters = weights(dtype);
    train(*make(parameters), parameters, 0, 5);
    EXPECT_LT(difference(parameters, exact), tolerance) << dtype;
  }
}

TEST_P(EveryOptimizer, GoesOnFromItsStateWithTheSameBits) {
  const Tensors straight = weights();
  const auto a = make(straight);
  train(*a, straight, 0, 3);
  Tensors resumed;
  for (const at::Tensor& p : straight) resumed.push_back(p.detach().clone().requires_grad_());
  const auto b = make_optimizer(GetParam().name, resumed);
  b->load_state_dict(a->state_dict());
  train(*a, straight, 3, 6);
  train(*b, resumed, 3, 6);
  EXPECT_EQ(difference(straight, resumed), 0);
}

TEST_P(EveryOptimizer, RunsAClosureWithGradientsOn) {
  const Tensors parameters = weights();
  const auto optimizer = make(parameters);
  at::NoGradGuard off;
  const at::Tensor loss = static_cast<torch::optim::Optimizer&>(*optimizer).step([&] {
    optimizer->zero_grad();
    at::Tensor sum = parameters[0].square().sum();
    sum.backward();
    return sum;
  });
  EXPECT_TRUE(loss.defined());
  EXPECT_FALSE(at::equal(parameters[0], weights()[0]));
}

TEST_P(EveryOptimizer, AGraphOfTheOldWeightsNotices) {
  const Tensors parameters = weights();
  const at::Tensor loss = parameters[0].square().sum();
  train(*make(parameters), parameters, 0, 1);
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST_P(EveryOptimizer, RefusesWhatAPassCannotTake) {
  const Tensors gaps = {at::randn({4, 6}).narrow(1, 0, 3).requires_grad_()};
  gaps[0].mutable_grad() = at::ones({4, 3});
  EXPECT_THROW(make(gaps)->update({}), ConfigError);

  const Tensors sparse = {at::randn({4, 3}).requires_grad_()};
  sparse[0].mutable_grad() = at::ones({4, 3}).to_sparse_csr();
  EXPECT_THROW(make(sparse)->update({}), ConfigError);

  const Tensors dense = weights();
  EXPECT_THROW(make(dense)->update({.grad_multiplier = -1}), BugError);
  EXPECT_THROW(make({}), ConfigError);
}

// libtorch's operations run on the CPU as well: there both ways are compared, with parameters of different numbers of
// steps, and with masters.
TEST_P(EveryOptimizer, StepsOnGpusAsOnTheCpu) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Tensors here = weights(dtype), there = weights(dtype);
    const auto a = make(here), b = make(there);
    b->step_as_on_gpus();
    for (const auto& optimizer : {a.get(), b.get()}) {
      optimizer->keep_masters();
      optimizer->keep_average(0.75);
    }
    for (int step = 0; step < 4; ++step) {
      for (const auto& [optimizer, parameters] : {std::pair(a.get(), here), std::pair(b.get(), there)}) {
        set_gradients(parameters, step);
        if (step == 1) parameters[1].mutable_grad().reset();
        optimizer->update({.grad_multiplier = 0.5, .clip_value = step == 2 ? 0.3 : HUGE_VAL});
      }
      const double tolerance = dtype == at::kBFloat16 ? 3e-2 : 1e-5;
      for (size_t i = 0; i < here.size(); ++i) {
        ASSERT_TRUE(at::allclose(there[i], here[i], tolerance, tolerance)) << dtype << ' ' << step << ' ' << i;
        ASSERT_TRUE(at::allclose(b->averages()[i], a->averages()[i], 1e-4, 1e-4)) << dtype << ' ' << step << ' ' << i;
        if (dtype != at::kBFloat16) continue;
        ASSERT_TRUE(at::allclose(b->masters()[i], a->masters()[i], 1e-4, 1e-4)) << step << ' ' << i;
        ASSERT_TRUE(at::equal(there[i], b->masters()[i].to(dtype))) << step << ' ' << i;
      }
    }
  }
}

// A step that the device skips leaves weights, masters and state as if it had not been asked for, and one that it does
// not skip is a step like any other.
TEST_P(EveryOptimizer, ADeviceSkipsAStepByItself) {
  const at::Tensor overflows = at::ones({1}), fine = at::zeros({1});
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensors here = weights(dtype), there = weights(dtype);
    const auto a = make(here), b = make(there);
    for (const auto& optimizer : {a.get(), b.get()}) {
      optimizer->step_as_on_gpus();
      optimizer->keep_masters();
    }
    if (!a->takes_overflow()) {
      EXPECT_THROW(a->update({.overflow = fine}), BugError);
      return;
    }
    for (int step = 0; step < 4; ++step) {
      set_gradients(here, step);
      set_gradients(there, step);
      a->update({});
      if (step != 1) {
        const bool had_stepped = b->has_stepped();
        b->update({.grad_multiplier = HUGE_VAL, .overflow = overflows});
        b->end_update(true);
        EXPECT_EQ(b->has_stepped(), had_stepped);
      }
      b->update({.overflow = fine});
      b->end_update(false);
      for (size_t i = 0; i < here.size(); ++i) {
        ASSERT_TRUE(at::equal(there[i], here[i])) << dtype << ' ' << step << ' ' << i;
        if (dtype == at::kBFloat16) ASSERT_TRUE(at::equal(b->masters()[i], a->masters()[i])) << step << ' ' << i;
      }
      const auto x = a->state_dict().parameters, y = b->state_dict().parameters;
      ASSERT_EQ(x.size(), y.size());
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t s = 0; s < x[i].tensors.size(); ++s) {
          ASSERT_TRUE(at::equal(x[i].tensors[s].value, y[i].tensors[s].value)) << step << ' ' << x[i].tensors[s].name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::optim
