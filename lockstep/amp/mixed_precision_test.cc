#include "lockstep/amp/mixed_precision.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>
#include <torch/ordered_dict.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/optim/rules/adam.h"
#include "lockstep/optim/rules/make_optimizer.h"

namespace lockstep::amp {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

torch::nn::Sequential make_net() {
  at::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 1));
}

// Without casts of operations a model of 16 bits takes inputs of 16 bits, and gives such.
TEST(MixedPrecision, InputsAndOutputsAreCastAsAskedFor) {
  auto net = make_net();
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.05}});
  MixedPrecision mixed({&*net}, {sgd.get()},
                       {.opt_level = OptLevel::kO2,
                        .dtype = at::kBFloat16,
                        .cast_ops = false,
                        .keep_batchnorm_fp32 = false,
                        .cast_model_outputs = at::kHalf});
  const Tensor x = at::randn({16, 4});
  EXPECT_EQ(mixed.cast_inputs(x).scalar_type(), at::kBFloat16);
  EXPECT_EQ(mixed.cast_inputs(at::ones({2}, at::kLong)).scalar_type(), at::kLong);
  const Tensor y = mixed.forward([&] { return net->forward(mixed.cast_inputs(x)); });
  EXPECT_EQ(y.scalar_type(), at::kHalf);
  EXPECT_EQ(mixed.cast_outputs(at::ones({2}, at::kLong)).scalar_type(), at::kLong);
  EXPECT_THROW(net->forward(x), c10::Error) << "nothing else casts";
  y.to(at::kFloat).square().sum().backward();
  const Tensor before = mixed.master_params(*sgd)[0].clone();
  mixed.step(*sgd, {.square_sum = 1, .loss_scale = 1});
  EXPECT_FALSE(at::equal(mixed.master_params(*sgd)[0], before));
}

// By libtorch's lists for the CPU, on which softmax is not (docs/amp-op-lists.md).
TEST(MixedPrecision, DtypesOfSoftmaxAtEveryLevel) {
  for (const auto level : {OptLevel::kO0, OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    for (const auto dtype : {at::kBFloat16, at::kHalf}) {
      torch::nn::Linear net(4, 3);
      const MixedPrecision mixed({net.get()}, {}, {.opt_level = level, .dtype = dtype});
      const auto narrow = level == OptLevel::kO0 ? at::kFloat : dtype;
      const Tensor out = mixed.forward(
          [&](const Tensor& x) {
            const Tensor y = net->forward(x);
            EXPECT_EQ(at::softmax(y, 1).scalar_type(), narrow) << name_of(level);
            EXPECT_EQ(at::log_softmax(y, 1).scalar_type(), narrow) << name_of(level);
            EXPECT_EQ(at::cross_entropy_loss(y, at::zeros({2}, at::kLong)).scalar_type(), at::kFloat) << name_of(level);
            return y;
          },
          at::ones({2, 4}));
      EXPECT_EQ(out.scalar_type(), at::kFloat) << name_of(level);
      EXPECT_EQ(at::softmax(out, 1).scalar_type(), at::kFloat) << "outside of forward()";
    }
  }
}

TEST(MixedPrecision, TuplesListsAndDictsAreCast) {
  torch::nn::Linear net(4, 3);
  const MixedPrecision mixed({net.get()}, {}, {.opt_level = OptLevel::kO2});
  const Tensor x = at::ones({2, 4}), n = at::ones({2}, at::kLong);
  const auto is_narrow = [](const Tensor& t) { return t.scalar_type() == at::kBFloat16; };
  const auto is_long = [](const Tensor& t) { return t.scalar_type() == at::kLong; };
  const auto [a, b, number] = mixed.cast_inputs(std::tuple(x, n, 7));
  EXPECT_TRUE(is_narrow(a) && is_long(b) && number == 7);
  const auto list = mixed.cast_inputs(std::vector{x, n, Tensor()});
  EXPECT_TRUE(is_narrow(list[0]) && is_long(list[1]) && !list[2].defined());
  const auto map = mixed.cast_inputs(std::map<std::string, std::vector<Tensor>>{{"x", {x}}, {"n", {n}}});
  EXPECT_TRUE(is_narrow(map.at("x")[0]) && is_long(map.at("n")[0]));
  EXPECT_TRUE(is_narrow(mixed.cast_inputs(std::unordered_map<int, Tensor>{{1, x}}).at(1)));
  torch::OrderedDict<std::string, Tensor> ordered;
  ordered.insert("x", x);
  EXPECT_TRUE(is_narrow(mixed.cast_inputs(ordered)["x"]) && ordered["x"].is_same(x));
  c10::Dict<std::string, Tensor> dict;
  dict.insert("x", x);
  dict.insert("n", n);
  const auto cast_dict = mixed.cast_inputs(dict);
  EXPECT_TRUE(is_narrow(cast_dict.at("x")) && is_long(cast_dict.at("n")) && dict.at("x").is_same(x));
  const auto cast_list = mixed.cast_inputs(c10::List<Tensor>({x, n}));
  EXPECT_TRUE(is_narrow(cast_list.get(0)) && is_long(cast_list.get(1)));
  EXPECT_TRUE(is_narrow(mixed.cast_inputs(std::pair(std::optional(x), std::array{n, x})).second[1]));
  EXPECT_EQ(mixed.cast_inputs(std::optional<Tensor>()), std::nullopt);

  const auto out = mixed.forward(
      [&](const std::map<std::string, Tensor>& in, bool twice) {
        const Tensor y = net->forward(in.at("x"));
        EXPECT_TRUE(is_narrow(y) && twice);
        return std::tuple(y, std::vector{y, in.at("n")}, std::map<std::string, Tensor>{{"y", y}});
      },
      std::map<std::string, Tensor>{{"x", x}, {"n", n}}, true);
  EXPECT_EQ(std::get<0>(out).scalar_type(), at::kFloat);
  EXPECT_EQ(std::get<1>(out)[0].scalar_type(), at::kFloat);
  EXPECT_TRUE(is_long(std::get<1>(out)[1]));
  EXPECT_EQ(std::get<2>(out).at("y").scalar_type(), at::kFloat);
}

TEST(MixedPrecision, ForwardTakesModulesAndTheirHolders) {
  auto sequential = make_net();
  const MixedPrecision mixed({&*sequential}, {}, {.opt_level = OptLevel::kO2, .cast_ops = false});
  const Tensor x = at::randn({16, 4});
  EXPECT_EQ(mixed.forward(sequential, x).scalar_type(), at::kFloat);
  torch::nn::Linear linear(4, 3);
  const MixedPrecision other({linear.get()}, {}, {.opt_level = OptLevel::kO3, .cast_ops = false});
  EXPECT_EQ(other.forward(linear, x).sizes(), at::IntArrayRef({16, 3}));
  EXPECT_EQ(other.forward(*linear, x).scalar_type(), at::kFloat);
  EXPECT_EQ(other.forward(linear.ptr(), x).scalar_type(), at::kFloat);
}

// Those of lockstep/optim, sharded ones and libtorch's take the same calls; libtorch's Adagrad has state from the
// start.
TEST(MixedPrecision, LibtorchsAdagradStepsAsOurs) {
  for (const auto level : {OptLevel::kO1, OptLevel::kO2, OptLevel::kO3}) {
    std::vector<Tensor> results;
    for (const bool ours : {true, false}) {
      at::manual_seed(3);
      torch::nn::Linear net(4, 3);
      torch::optim::Adagrad libtorchs(net->parameters(),
                                      torch::optim::AdagradOptions(0.1).initial_accumulator_value(0.5));
      const auto fused =
          optim::make_optimizer("adagrad", net->parameters(), {{"lr", 0.1}, {"initial_accumulator_value", 0.5}});
      const optim::OptimizerRef optimizer = ours ? optim::OptimizerRef(*fused) : optim::OptimizerRef(libtorchs);
      MixedPrecision mixed({net.get()}, {optimizer}, {.opt_level = level});
      for (int step = 0; step < 4; ++step) {
        mixed.forward(net, at::ones({2, 4})).square().sum().backward();
        mixed.step(optimizer, {.square_sum = 1, .loss_scale = 1});
        mixed.zero_grad(optimizer);
      }
      results.push_back(mixed.master_params(optimizer)[0].detach().to(at::kFloat));
    }
    EXPECT_TRUE(at::allclose(results[0], results[1], level == OptLevel::kO3 ? 0.05 : 1e-5)) << name_of(level);
  }
}

// DistributedDataParallel's broadcast, or a checkpoint, changes the weights before the first step.
TEST(MixedPrecision, MastersBeginWithTheWeightsOfTheFirstStep) {
  for (const bool ours : {true, false}) {
    torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
    auto fused = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
    torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(1.0));
    torch::optim::Optimizer& sgd = ours ? static_cast<torch::optim::Optimizer&>(*fused) : plain;
    MixedPrecision mixed({&*net}, {&sgd}, {.opt_level = OptLevel::kO2});
    const auto weights = net->parameters();
    {
      const at::NoGradGuard no_grad;
      Tensor weight = weights[0];
      weight.fill_(3);
    }
    net->forward(at::ones({1, 4}, at::kBFloat16)).sum().backward();
    mixed.step(sgd, {.square_sum = 4, .loss_scale = 1});
    EXPECT_TRUE(at::equal(mixed.master_params(sgd)[0], at::full({1, 4}, 2.0f))) << ours;
    mixed.load_masters(sgd, {at::full({1, 4}, 1.001f)});
    EXPECT_TRUE(at::equal(mixed.master_params(sgd)[0], at::full({1, 4}, 1.001f))) << ours;
    EXPECT_TRUE(at::equal(weights[0], at::full({1, 4}, 1.001f).to(at::kBFloat16))) << ours;
    mixed.zero_grad(sgd);
    net->forward(at::ones({1, 4}, at::kBFloat16)).sum().backward();
    mixed.step(sgd, {.square_sum = 4, .loss_scale = 1});
    EXPECT_TRUE(at::allclose(mixed.master_params(sgd)[0], at::full({1, 4}, 0.001f), 1e-3)) << ours;
    EXPECT_THAT(refusal([&] { mixed.load_masters(sgd, {}); }), HasSubstr("0 masters given, the optimizer steps 1"));
  }
}

// As a loop by hand that forgets mixed.step(): nothing would be trained.
TEST(MixedPrecision, AStepOfTheOptimizerByItselfIsAnErrorWhereItHasMasters) {
  torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(1.0));
  MixedPrecision mixed({&*net}, {&sgd}, {.opt_level = OptLevel::kO2});
  for (int step = 0; step < 2; ++step) {
    sgd.zero_grad();
    mixed.forward(net, at::ones({1, 4})).sum().backward();
    EXPECT_THAT(refusal([&] { sgd.step(); }), HasSubstr("step by amp's step()"));
    mixed.step(sgd, {.square_sum = 4, .loss_scale = 1});
  }
  const at::NoGradGuard no_grad;  // an evaluation leaves them alone
  sgd.zero_grad();
  mixed.forward(net, at::ones({1, 4}));
  EXPECT_FALSE(mixed.master_params(sgd)[0].grad().defined());
}

// A resume by the optimizer's own state does this.
TEST(MixedPrecision, MastersThatTheOptimizerLoadedStay) {
  torch::nn::Linear net(torch::nn::LinearOptions(4, 1).bias(false));
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 1.0}});
  MixedPrecision mixed({&*net}, {sgd.get()}, {.opt_level = OptLevel::kO2});
  sgd->load_masters({at::full({1, 4}, 1.001f)});
  net->forward(at::zeros({1, 4}, at::kBFloat16)).sum().backward();
  mixed.step(*sgd, {.square_sum = 0, .loss_scale = 1});
  EXPECT_TRUE(at::equal(mixed.master_params(*sgd)[0], at::full({1, 4}, 1.001f)));
}

TEST(MixedPrecision, SeveralOptimizersShareOneVerdict) {
  torch::nn::Linear one(torch::nn::LinearOptions(4, 1).bias(false)), two(torch::nn::LinearOptions(4, 1).bias(false));
  auto fused = optim::make_optimizer("sgd", one->parameters(), {{"lr", 1.0}});
  torch::optim::SGD plain(two->parameters(), torch::optim::SGDOptions(1.0));
  MixedPrecision mixed({one.get(), two.get()}, {fused.get(), &plain}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf});
  const auto w1 = one->parameters(), w2 = two->parameters();
  const Tensor before1 = w1[0].detach().clone(), before2 = w2[0].detach().clone();
  const auto fill = [&](float value) {
    for (auto parameter : {w1[0], w2[0]}) parameter.mutable_grad() = at::full({1, 4}, value);
  };
  fill(HUGE_VALF);
  EXPECT_TRUE(mixed.step({fused.get(), &plain}, {.square_sum = HUGE_VAL, .loss_scale = 65536}).skipped);
  EXPECT_EQ(mixed.loss_scale(), 32768) << "once";
  fill(32768);
  mixed.step({fused.get(), &plain}, {.square_sum = 8.0 * 32768 * 32768, .loss_scale = 32768});
  EXPECT_TRUE(at::allclose(w1[0], before1 - 1));
  EXPECT_TRUE(at::allclose(w2[0], before2 - 1));
  EXPECT_THAT(refusal([&] {
                mixed.step({fused.get(), &plain}, {.square_sum = 1, .loss_scale = 1});
              }),
              HasSubstr("those of a loss times 1, and the loss scale is 32768"));
}

// What the verdict needs is read after the update was queued, and the outcome is that of reading it before.
TEST(MixedPrecision, StepsAheadOfALateVerdict) {
  struct Net {
    torch::nn::Sequential module = make_net();
    optim::AdamW adamw = optim::AdamW(module->parameters(), {.lr = 0.05});
    MixedPrecision mixed = MixedPrecision({&*module}, {&adamw}, {.opt_level = OptLevel::kO1, .dtype = at::kHalf});
    void set_gradients(double value) {
      for (const Tensor& each : module->parameters()) each.mutable_grad() = at::full_like(each, value);
    }
  };
  Net waits, ahead;
  ahead.adamw.step_as_on_gpus();
  waits.adamw.step_as_on_gpus();
  for (const double gradient : {1., HUGE_VAL, 2.}) {
    const double scale = waits.mixed.loss_scale();
    waits.set_gradients(gradient * scale);
    ahead.set_gradients(gradient * scale);
    const Tensor before = ahead.module->parameters()[0].clone();
    bool had_stepped = false;
    const LateNumber late([&] {
      had_stepped = !at::equal(ahead.module->parameters()[0], before);
      return gradient * gradient;
    });
    const bool overflows = !std::isfinite(gradient);
    const StepReport report = ahead.mixed.step(
        ahead.adamw,
        {.square_sum = late, .loss_scale = scale, .overflow = at::full({1}, overflows ? 1.0F : 0.0F, at::kFloat)}, {});
    EXPECT_EQ(had_stepped, !overflows);
    EXPECT_EQ(report.skipped, overflows);
    waits.mixed.step(waits.adamw, {.square_sum = gradient * gradient, .loss_scale = scale}, {});
    EXPECT_EQ(ahead.mixed.loss_scale(), waits.mixed.loss_scale());
    for (size_t i = 0; i < ahead.module->parameters().size(); ++i) {
      EXPECT_TRUE(at::equal(ahead.module->parameters()[i], waits.module->parameters()[i])) << gradient << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::amp
