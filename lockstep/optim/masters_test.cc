// What every optimizer must do with fp32 masters of 16-bit weights.
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/testing/training.h"

namespace lockstep::optim {
namespace {

using testing::Tensors;

struct Case {
  std::string name;
  at::ScalarType dtype;
};

class Masters : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<FusedOptimizer> make(const Tensors& parameters) const {
    return make_optimizer(GetParam().name, parameters, options_);
  }
  Tensors weights() const {
    Tensors parameters = testing::weights(GetParam().dtype);
    parameters.push_back(at::randn({9001}).to(GetParam().dtype).requires_grad_());  // several pieces and blocks
    return parameters;
  }

  NamedOptions options_ = {{"lr", 0.03}, {"weight_decay", 0.01}};
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& name : optimizer_names()) {
    for (const auto dtype : {at::kBFloat16, at::kHalf}) all.push_back({name, dtype});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Masters, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name + '_' + c10::toString(info.param.dtype); });

// As fp32 weights that are given the 16-bit gradients, to the last bit.
TEST_P(Masters, StepInFp32AndTheWeightsAreTheirRoundedCopies) {
  const Tensors narrow = weights();
  Tensors wide;
  for (const at::Tensor& p : narrow) wide.push_back(p.detach().to(at::kFloat).requires_grad_());
  const auto a = make(narrow), b = make(wide);
  a->keep_masters();
  a->keep_average(0.75);
  b->keep_average(0.75);
  for (int step = 0; step < 6; ++step) {
    testing::set_gradients(narrow, step, 8);
    if (step == 2) narrow[1].mutable_grad().reset();
    if (step == 3) narrow[0].set_data(narrow[0].contiguous(at::MemoryFormat::ChannelsLast));
    if (step == 3) wide[0].set_data(wide[0].contiguous(at::MemoryFormat::ChannelsLast));
    for (size_t i = 0; i < wide.size(); ++i) {
      const at::Tensor& g = narrow[i].grad();
      wide[i].mutable_grad() = g.defined() ? g.to(at::kFloat) : g;
    }
    a->update({.grad_multiplier = 0.125, .clip_value = 1.5});
    b->update({.grad_multiplier = 0.125, .clip_value = 1.5});
    for (size_t i = 0; i < wide.size(); ++i) {
      EXPECT_TRUE(at::equal(a->masters()[i], wide[i])) << step << ' ' << i;
      EXPECT_TRUE(at::equal(narrow[i], wide[i].to(GetParam().dtype))) << step << ' ' << i;
      EXPECT_TRUE(at::equal(a->averages()[i], b->averages()[i])) << step << ' ' << i;
    }
  }
  const OptimizerState one = a->state_dict(), two = b->state_dict();
  ASSERT_EQ(one.parameters.size(), two.parameters.size());
  for (size_t p = 0; p < one.parameters.size(); ++p) {
    for (size_t t = 0; t < one.parameters[p].tensors.size(); ++t) {
      const at::Tensor& tensor = one.parameters[p].tensors[t].value;
      EXPECT_EQ(tensor.scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(tensor, two.parameters[p].tensors[t].value));
    }
  }
}

TEST_P(Masters, SurviveAResumeBitForBit) {
  const Tensors straight = weights();
  const auto a = make(straight);
  a->keep_masters();
  a->keep_average(0.75);
  testing::train(*a, straight, 0, 3);
  const Tensors resumed = weights();
  const auto b = make(resumed);
  b->keep_masters();
  b->keep_average(0.75);
  b->load_state_dict(a->state_dict());
  b->load_averages(a->averages());
  b->load_masters(a->masters());
  EXPECT_EQ(testing::difference(straight, resumed), 0) << "rounded from the masters";
  testing::train(*a, straight, 3, 6);
  testing::train(*b, resumed, 3, 6);
  EXPECT_EQ(testing::difference(a->masters(), b->masters()), 0);
  EXPECT_EQ(testing::difference(a->averages(), b->averages()), 0);
  EXPECT_EQ(testing::difference(straight, resumed), 0);
}

TEST_P(Masters, ChangePlacesWithTheAverages) {
  const Tensors p = weights();
  const auto optimizer = make(p);
  optimizer->keep_masters();
  optimizer->keep_average(0.75);
  testing::train(*optimizer, p, 0, 3);
  const at::Tensor master = optimizer->masters()[0].clone(), average = optimizer->averages()[0].clone();
  optimizer->exchange_averages();
  EXPECT_TRUE(at::equal(optimizer->masters()[0], average));
  EXPECT_TRUE(at::equal(p[0], average.to(GetParam().dtype)));
  optimizer->exchange_averages();
  EXPECT_TRUE(at::equal(optimizer->masters()[0], master));
  EXPECT_TRUE(at::equal(p[0], master.to(GetParam().dtype)));
}

TEST_P(Masters, AreMadeBeforeTheFirstStep) {
  const Tensors p = weights();
  const auto optimizer = make(p);
  EXPECT_TRUE(optimizer->masters().empty());
  EXPECT_THROW(optimizer->load_masters({}), ConfigError);
  testing::train(*optimizer, p, 0, 1);
  EXPECT_THROW(optimizer->keep_masters(), ConfigError);
  const auto loaded = make(p);
  loaded->load_state_dict(optimizer->state_dict());
  if (!optimizer->state_dict().parameters.empty()) EXPECT_THROW(loaded->keep_masters(), ConfigError);
}

TEST(Masters, AddUpWhatSixteenBitsLose) {
  const Tensors p = {at::ones({600}, at::kBFloat16).requires_grad_()};
  const auto optimizer = make_optimizer("sgd", p, {{"lr", 0.0001}});
  optimizer->keep_masters();
  for (int step = 0; step < 100; ++step) {
    p[0].mutable_grad() = at::ones_like(p[0]);
    optimizer->update({});
  }
  EXPECT_TRUE(at::equal(p[0], at::full({600}, 0.99).to(at::kBFloat16)));
}

TEST(Masters, StateFromTheStartIsMadeInFp32) {
  const Tensors p = testing::weights(at::kBFloat16);
  const auto optimizer = make_optimizer("adagrad", p, {{"initial_accumulator_value", 0.1}});
  optimizer->keep_masters();
  const at::Tensor sum = optimizer->state_dict().parameters[0].tensors[1].value;
  EXPECT_TRUE(at::equal(sum, at::full_like(sum, 0.1F)));
  EXPECT_EQ(sum.scalar_type(), at::kFloat);
}

TEST(Masters, WideWeightsHaveNone) {
  const Tensors p = {testing::weights()[0], testing::weights(at::kBFloat16)[1]}, reference = {testing::weights()[0]};
  const auto optimizer = make_optimizer("adamw", p), other = make_optimizer("adamw", reference);
  optimizer->keep_masters();
  ASSERT_EQ(optimizer->masters().size(), 2u);
  EXPECT_FALSE(optimizer->masters()[0].defined());
  EXPECT_TRUE(optimizer->masters()[1].defined());
  for (int step = 0; step < 3; ++step) {
    testing::set_gradients(p, step);
    reference[0].mutable_grad() = p[0].grad();
    optimizer->update({});
    other->update({});
  }
  EXPECT_TRUE(at::equal(p[0], reference[0]));
}

}  // namespace
}  // namespace lockstep::optim
