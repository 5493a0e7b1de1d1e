#include "lockstep/compat/apex/amp.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::apex::amp {
namespace {

using at::Tensor;
using lockstep::amp::name_of;
using lockstep::amp::OptLevel;
using testing::HasSubstr;
using testing_support::refusal;

torch::nn::Sequential make_net() {
  at::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 1));
}

// The loss of one step on fixed data, by scale_loss() and step().
double train_step(Amp& amp, torch::nn::Sequential& net, torch::optim::Optimizer& optimizer, double factor = 1) {
  at::manual_seed(3);
  const Tensor x = at::randn({16, 4}), y = x.sum(1, true);
  const Tensor loss = at::mse_loss(amp.forward(net, x), y) * factor;
  {
    const auto scaled = amp.scale_loss(loss, optimizer);
    scaled.backward();
  }
  amp.step(optimizer);
  amp.zero_grad(optimizer);
  return loss.item<double>();
}

struct Case {
  OptLevel level;
  at::ScalarType dtype;
  bool ours;  // the optimizer
};

struct InitializeTest : testing::TestWithParam<Case> {};

TEST_P(InitializeTest, Trains) {
  const auto [level, dtype, ours] = GetParam();
  auto net = make_net();
  std::unique_ptr<torch::optim::Optimizer> sgd;
  if (ours) {
    sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.05}});
  } else {
    sgd = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.05));
  }
  const auto amp = initialize(*net, *sgd, {.opt_level = name_of(level), .dtype = dtype});
  const double first = train_step(*amp, net, *sgd);
  double last = 0;
  for (int step = 0; step < 60; ++step) last = train_step(*amp, net, *sgd);
  EXPECT_LT(last, 0.1 * first);
  EXPECT_EQ(net->parameters()[0].scalar_type(), level >= OptLevel::kO2 ? dtype : at::kFloat);
  EXPECT_EQ(net->parameters()[2].scalar_type(), level == OptLevel::kO3 ? dtype : at::kFloat) << "BatchNorm's";
  const auto stepped = amp->master_params(*sgd);
  EXPECT_EQ(stepped[0].scalar_type(), level == OptLevel::kO3 ? dtype : at::kFloat);
  if (level == OptLevel::kO2) {
    EXPECT_TRUE(at::equal(stepped[0].to(dtype), net->parameters()[0]));
    EXPECT_FALSE(at::equal(stepped[0], net->parameters()[0].to(at::kFloat))) << "more exact";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Levels, InitializeTest,
    testing::Values(Case{OptLevel::kO0, at::kBFloat16, true}, Case{OptLevel::kO1, at::kBFloat16, true},
                    Case{OptLevel::kO2, at::kBFloat16, true}, Case{OptLevel::kO3, at::kBFloat16, true},
                    Case{OptLevel::kO1, at::kHalf, true}, Case{OptLevel::kO2, at::kHalf, true},
                    Case{OptLevel::kO3, at::kHalf, true}, Case{OptLevel::kO1, at::kHalf, false},
                    Case{OptLevel::kO2, at::kHalf, false}, Case{OptLevel::kO2, at::kBFloat16, false},
                    Case{OptLevel::kO0, at::kBFloat16, false}, Case{OptLevel::kO3, at::kHalf, false},
                    Case{OptLevel::kO3, at::kBFloat16, false}),
    [](const auto& of) {
      return cat(name_of(of.param.level), c10::toString(of.param.dtype), of.param.ours ? "" : "LibtorchsOptimizer");
    });

TEST(Amp, AnOverflowSkipsOneStep) {
  for (const bool ours : {true, false}) {
    auto net = make_net();
    auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.05}});
    torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(0.05));
    torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
    const auto amp = initialize(*net, sgd, {.opt_level = "O2", .dtype = at::kHalf});
    const Tensor before = amp->master_params(sgd)[0].clone();
    train_step(*amp, net, sgd, std::numeric_limits<double>::infinity());
    EXPECT_EQ(amp->loss_scale(), 32768);
    EXPECT_TRUE(at::equal(amp->master_params(sgd)[0], before));
    for (int step = 0; step < 10; ++step) train_step(*amp, net, sgd);  // until the scale fits fp16
    EXPECT_FALSE(at::equal(amp->master_params(sgd)[0], before));
  }
}

// Two losses of one optimizer, each with a scale of its own, and an accumulation.
TEST(Amp, LossesAddUpUnscaled) {
  for (const auto level : {OptLevel::kO1, OptLevel::kO2}) {
    for (const bool ours : {true, false}) {
      torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
      const auto parameters = net->parameters();
      auto fused = optim::make_optimizer("sgd", parameters, {{"lr", 1.0}});
      torch::optim::SGD plain(parameters, torch::optim::SGDOptions(1.0));
      torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
      {
        const at::NoGradGuard no_grad;
        parameters[0].zero_();
      }
      const auto amp = initialize(*net, sgd, {.opt_level = name_of(level), .dtype = at::kHalf, .num_losses = 2});
      auto state = amp->state_dict();
      state["loss_scaler0"]["scale"] = state["loss_scaler0"]["loss_scale"] = 1024;
      state["loss_scaler1"]["scale"] = state["loss_scaler1"]["loss_scale"] = 256;
      amp->load_state_dict(state);
      const auto loss = [&] { return amp->forward(net, at::ones({1, 4})).sum(); };
      {
        const auto scaled = amp->scale_loss(loss(), sgd, {.loss_id = 0, .delay_unscale = true});
        scaled.backward();
      }
      EXPECT_THAT(refusal([&] { amp->step(sgd); }), HasSubstr("delay_unscale"));
      {
        const auto scaled = amp->scale_loss(loss(), sgd, {.loss_id = 0});
        scaled.backward();
      }
      {
        const auto scaled = amp->scale_loss(loss() * 2, sgd, {.loss_id = 1});
        EXPECT_EQ(scaled.loss().item<double>(), 0);
        scaled.backward();
      }
      amp->step(sgd);
      EXPECT_TRUE(at::equal(amp->master_params(sgd)[0], at::full({1, 4}, -4.0f))) << name_of(level) << ours;
    }
  }
}

TEST(Amp, AnOverflowLowersTheScaleOfItsLossAlone) {
  for (const auto level : {OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    for (const bool ours : {true, false}) {
      torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
      auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
      torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(1.0));
      torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
      const auto amp = initialize(*net, sgd, {.opt_level = name_of(level), .loss_scale = "dynamic", .num_losses = 2});
      const Tensor before = amp->master_params(sgd)[0].detach().clone();
      for (const int loss_id : {0, 1}) {
        const Tensor output = amp->forward(net, at::ones({1, 4}));
        const double factor = loss_id == 0 ? std::numeric_limits<double>::infinity() : 0.001;
        const auto scaled = amp->scale_loss(output.to(at::kFloat).sum() * factor, sgd, {.loss_id = loss_id});
        scaled.backward();
      }
      amp->step(sgd);
      EXPECT_EQ(amp->loss_scale(0), 32768) << name_of(level) << ours;
      EXPECT_EQ(amp->loss_scale(1), 65536) << name_of(level) << ours;
      EXPECT_TRUE(at::equal(amp->master_params(sgd)[0], before));
    }
  }
}

// Gradients of 16 bits: those of the first loss, scaled by 1, would be far out of range in the second's scale, and
// small ones of a second loss would be lost in that of a first.
TEST(Amp, ScalesFarApartLoseNothing) {
  for (const auto level : {OptLevel::kO2, OptLevel::kO3}) {
    for (const auto& [first, second] : {std::pair(1.0, 65536.0), std::pair(65536.0, 1.0)}) {
      torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
      const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
      {
        const at::NoGradGuard no_grad;
        net->weight.zero_();
      }
      const auto amp = initialize(*net, *sgd, {.opt_level = name_of(level), .loss_scale = "dynamic", .num_losses = 2});
      auto state = amp->state_dict();
      state["loss_scaler0"]["scale"] = state["loss_scaler0"]["loss_scale"] = first;
      state["loss_scaler1"]["scale"] = state["loss_scaler1"]["loss_scale"] = second;
      amp->load_state_dict(state);
      for (const int loss_id : {0, 1}) {
        const double factor = amp->loss_scale(loss_id) == 1 ? 2 : 0.5;
        const Tensor output = net->forward(at::ones({1, 4}, at::kHalf)).to(at::kFloat);
        const auto scaled = amp->scale_loss(output.sum() * factor, *sgd, {.loss_id = loss_id});
        scaled.backward();
      }
      EXPECT_FALSE(amp->step(*sgd).skipped);
      EXPECT_EQ(amp->loss_scale(0), first);
      EXPECT_EQ(amp->loss_scale(1), second);
      const Tensor stepped = amp->master_params(*sgd)[0].to(at::kFloat);
      EXPECT_TRUE(at::equal(stepped, at::full({1, 4}, -2.5f))) << name_of(level) << ' ' << first;
    }
  }
}

TEST(Amp, EveryOptimizerOfOursBeginsAtO2) {
  for (const auto& name : optim::optimizer_names()) {
    auto net = make_net();
    const auto optimizer = optim::make_optimizer(name, net->parameters(), {});
    const auto amp = initialize(*net, *optimizer, {.opt_level = "O2", .loss_scale = 128.0});
    const Tensor before = amp->master_params(*optimizer)[0].clone();
    train_step(*amp, net, *optimizer);
    EXPECT_FALSE(at::equal(amp->master_params(*optimizer)[0], before)) << name;
  }
}

TEST(Amp, AScaleOfOneLooksForOverflowsToo) {
  for (const bool ours : {true, false}) {
    auto net = make_net();
    auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.05}});
    torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(0.05));
    torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
    const auto amp = initialize(*net, sgd, {.opt_level = "O1", .dtype = at::kHalf, .loss_scale = 1.0});
    const Tensor before = net->parameters()[0].detach().clone();
    train_step(*amp, net, sgd, std::numeric_limits<double>::infinity());
    EXPECT_TRUE(at::equal(net->parameters()[0], before)) << ours;
  }
}

TEST(Amp, ScalesALossOfSeveralModelsAndOptimizers) {
  for (const auto level : {OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    torch::nn::Linear one(torch::nn::LinearOptions(4, 4).bias(false)), two(torch::nn::LinearOptions(4, 1).bias(false));
    auto fused = optim::make_optimizer("sgd", one->parameters(), {{"lr", 1.0}});
    torch::optim::SGD plain(two->parameters(), torch::optim::SGDOptions(1.0));
    const auto amp = initialize({one.get(), two.get()}, {fused.get(), &plain},
                                {.opt_level = name_of(level), .loss_scale = "dynamic"});
    const auto step = [&](double factor) {
      const Tensor output =
          amp->forward([&](const Tensor& x) { return two->forward(one->forward(x)); }, at::ones({1, 4}));
      {
        const auto scaled = amp->scale_loss(output.sum() * factor, {fused.get(), &plain});
        scaled.backward();
      }
      const bool skipped[] = {amp->step(*fused).skipped, amp->step(plain).skipped};
      EXPECT_EQ(skipped[0], skipped[1]);
      amp->zero_grad(*fused);
      amp->zero_grad(plain);
      return skipped[0];
    };
    EXPECT_TRUE(step(std::numeric_limits<double>::infinity()));
    EXPECT_EQ(amp->loss_scale(), 32768) << "one decision for both";
    const Tensor before1 = amp->master_params(*fused)[0].clone(), before2 = amp->master_params(plain)[0].clone();
    EXPECT_FALSE(step(0.125));
    EXPECT_FALSE(at::equal(amp->master_params(*fused)[0], before1)) << name_of(level);
    EXPECT_FALSE(at::equal(amp->master_params(plain)[0], before2)) << name_of(level);
  }
}

TEST(Amp, ClipsMasters) {
  for (const bool ours : {true, false}) {
    torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
    auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
    torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(1.0));
    torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
    const auto amp = initialize(*net, sgd, {.opt_level = "O2", .dtype = at::kHalf, .loss_scale = 1024.0});
    const Tensor before = amp->master_params(sgd)[0].clone();
    {
      const auto scaled = amp->scale_loss(net->forward(at::ones({1, 4}, at::kHalf)).sum(), sgd);
      scaled.backward();
    }
    EXPECT_NEAR(amp->step(sgd, {.max_norm = 0.5}).gradient_norm, 2, 1e-3);
    EXPECT_TRUE(at::allclose(amp->master_params(sgd)[0], before - 0.25, 1e-4)) << ours;
  }
}

// A direct step would take infinities, or step masters that nobody rounds into the model.
TEST(Amp, AStepAfterAnOverflowCantHappenByAccident) {
  for (const auto level : {OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    for (const bool ours : {true, false}) {
      SCOPED_TRACE(cat(name_of(level), ours ? " ours" : " libtorch's"));
      auto net = make_net();
      auto fused = optim::make_optimizer("adam", net->parameters(), {});
      torch::optim::Adam plain(net->parameters());
      torch::optim::Optimizer& adam = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
      const auto amp = initialize(*net, adam, {.opt_level = name_of(level), .loss_scale = "dynamic"});
      const Tensor before = net->parameters()[0].detach().clone();
      {
        const auto scaled = amp->scale_loss(amp->forward(net, at::randn({16, 4})).sum() * HUGE_VAL, adam);
        scaled.backward();
      }
      if (!ours) torch::nn::utils::clip_grad_norm_(amp->master_params(adam), 1);  // as Apex's loops clip
      EXPECT_THAT(refusal([&] { adam.step(); }), HasSubstr("is not finite; amp's step(), in place of the optimizer's"));
      EXPECT_TRUE(amp->step(adam).skipped);
      EXPECT_TRUE(at::equal(net->parameters()[0], before));
      amp->zero_grad(adam);
      train_step(*amp, net, adam);
    }
  }
}

TEST(Amp, StepsWithoutScaleLossAreRefusedWhereMastersWouldGetNoGradients) {
  auto net = make_net();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  const auto amp = initialize(*net, sgd, {.opt_level = "O2"});
  amp->forward(net, at::randn({16, 4})).sum().backward();
  EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("is of an fp32 master"));
  EXPECT_THAT(refusal([&] { amp->step(sgd); }), HasSubstr("backward the loss within scale_loss() before"));
}

// One that is forgotten adds up, as in PyTorch.
TEST(Amp, GradientsThatAreNotDroppedAddUp) {
  for (const auto level : {OptLevel::kO1, OptLevel::kO2}) {
    torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
    const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
    const auto amp = initialize(*net, *sgd, {.opt_level = name_of(level), .loss_scale = 128.0});
    const Tensor before = amp->master_params(*sgd)[0].detach().clone();
    for (int step = 0; step < 2; ++step) {
      const auto scaled = amp->scale_loss(amp->forward(net, at::ones({1, 4})).sum(), *sgd);
      scaled.backward();
    }
    amp->step(*sgd);
    EXPECT_TRUE(at::allclose(amp->master_params(*sgd)[0], before - 2)) << name_of(level);
    sgd->zero_grad();                                                                                       // not amp's
    for (const Tensor& weight : net->parameters()) weight.mutable_grad() = at::ones_like(weight.detach());  // unscaled
    {
      const auto scaled = amp->scale_loss(amp->forward(net, at::ones({1, 4})).sum(), *sgd);
      scaled.backward();
    }
    amp->step(*sgd);
    EXPECT_TRUE(at::allclose(amp->master_params(*sgd)[0], before - 4)) << name_of(level);
  }
}

// softmax and its kin are on Apex's list of what is computed in fp32. At O2 and O3 nothing is cast within the model.
TEST(Amp, DtypesOfSoftmaxAtEveryLevel) {
  for (const auto level : {OptLevel::kO0, OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    torch::nn::Linear net(4, 3);
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
    const auto amp = initialize(*net, sgd, {.opt_level = name_of(level)});
    const auto within = level >= OptLevel::kO2 ? at::kHalf : at::kFloat;
    const Tensor out = amp->forward(
        [&](const Tensor& x) {
          const Tensor y = net->forward(x);
          EXPECT_EQ(y.scalar_type(), level == OptLevel::kO0 ? at::kFloat : at::kHalf) << name_of(level);
          EXPECT_EQ(at::softmax(y, 1).scalar_type(), within) << name_of(level);
          EXPECT_EQ(at::log_softmax(y, 1).scalar_type(), within) << name_of(level);
          EXPECT_EQ(at::cross_entropy_loss(y, at::zeros({2}, at::kLong)).scalar_type(), within) << name_of(level);
          return y;
        },
        at::ones({2, 4}));
    EXPECT_EQ(out.scalar_type(), at::kFloat) << name_of(level);
    EXPECT_EQ(at::softmax(out, 1).scalar_type(), at::kFloat) << "outside of forward()";
  }
}

TEST(Amp, StateIsApexsAndTorchs) {
  auto net = make_net();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  const auto amp = initialize(*net, sgd, {.opt_level = "O1", .dtype = at::kHalf});
  const auto state = amp->state_dict();
  EXPECT_EQ(state.size(), 1u) << "Apex takes no other keys";
  EXPECT_EQ(state.at("loss_scaler0").at("loss_scale"), 65536);
  EXPECT_EQ(state.at("loss_scaler0").at("unskipped"), 0);
  EXPECT_EQ(state.at("loss_scaler0").at("_growth_tracker"), 0);
  amp->load_state_dict({{"loss_scaler0", {{"loss_scale", 512}, {"unskipped", 7}}}});
  EXPECT_EQ(amp->loss_scale(), 512);
  EXPECT_EQ(amp->scaler().state().good_steps, 7);
  auto other = state;
  other["loss_scaler0"]["opt_level"] = 2;
  EXPECT_THAT(refusal([&] { amp->load_state_dict(other); }), HasSubstr("a state of level O2, this is O1"));
  other = state;
  other["loss_scaler0"]["half"] = 0;
  EXPECT_THAT(refusal([&] { amp->load_state_dict(other); }), HasSubstr("a state of bf16"));
  other = state;
  other["loss_scaler1"] = other["loss_scaler0"];
  EXPECT_THAT(refusal([&] { amp->load_state_dict(other); }), HasSubstr("a state of 2 losses, this has num_losses 1"));
}

TEST(Amp, RefusesWhatItCantCast) {
  const InitializeOptions o2{.opt_level = "O2"};
  auto net = make_net(), other = make_net();
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  EXPECT_THAT(refusal([&] { initialize(*other, sgd, o2); }),
              HasSubstr("parameter 0 of optimizer 0 [8, 4] is of none of the models"));
  EXPECT_EQ(other->parameters()[0].scalar_type(), at::kFloat) << "nothing has changed";
  EXPECT_THAT(refusal([&] { initialize(*net, sgd, {.num_losses = 0}); }), HasSubstr("num_losses 0"));
  {
    const auto amp = initialize(*net, sgd, {.opt_level = "O1"});
    EXPECT_THAT(refusal([&] { initialize(*net, sgd, o2); }),
                HasSubstr("a model (0.weight) is in mixed precision already"));
    EXPECT_THAT(refusal([&] { amp->loss_scale(1); }), HasSubstr("loss_id 1"));
    torch::optim::SGD stranger(net->parameters(), torch::optim::SGDOptions(0.1));
    EXPECT_THAT(refusal([&] { amp->step(stranger); }), HasSubstr("not given with the models"));
  }
  net->to(at::kHalf);
  EXPECT_THAT(refusal([&] { initialize(*net, sgd, o2); }), HasSubstr("0.weight is Half already"));
}

}  // namespace
}  // namespace lockstep::apex::amp
