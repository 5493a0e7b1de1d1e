#include "lockstep/loop/load_weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::loop {
namespace {

using ::lockstep::testing_support::refusal;
using ::lockstep::testing_support::TempDir;
using ::testing::HasSubstr;

torch::nn::Linear linear(uint64_t seed) {
  at::manual_seed(seed);
  return torch::nn::Linear(4, 3);
}

const amp::Options kO2{.opt_level = amp::OptLevel::kO2};

class LoadWeights : public ::testing::Test {
 protected:
  LoadWeights() {
    checkpoint::Dict state = checkpoint::state_dict(*saved_);
    checkpoint::write_pt(checkpoint::Dict{{"model", state}}, file_);
  }

  // Weights rounded, and masters exactly the file's.
  void expect_loaded(const torch::nn::Linear& net, amp::MixedPrecision& mixed, const optim::OptimizerRef& optimizer) {
    const auto masters = mixed.master_params(optimizer);
    const auto exact = saved_->parameters(), weights = net->parameters();
    ASSERT_EQ(masters.size(), exact.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_TRUE(at::equal(masters[i], exact[i]));
      EXPECT_EQ(weights[i].scalar_type(), at::kBFloat16);
      EXPECT_TRUE(at::equal(weights[i], exact[i].to(at::kBFloat16)));
    }
  }

  TempDir dir_;
  std::string file_ = dir_ / "a.pt";
  torch::nn::Linear saved_ = linear(1);
};

TEST_F(LoadWeights, BeforeAndAfterMixedPrecisionEndInTheSameState) {
  torch::nn::Linear before = linear(2), after = linear(3), libtorchs = linear(4);
  load_weights(*before, file_);
  optim::SGD one(before->parameters(), {.lr = 0.1}), other(after->parameters(), {.lr = 0.1});
  torch::optim::SGD third(libtorchs->parameters(), 0.1);
  amp::MixedPrecision first({before.get()}, {&one}, kO2), second({after.get()}, {&other}, kO2);
  amp::MixedPrecision with_libtorchs({libtorchs.get()}, {&third}, kO2);
  load_weights(*after, file_, {.mixed = &second});
  load_weights(*libtorchs, file_, {.mixed = &with_libtorchs});
  expect_loaded(before, first, one);
  expect_loaded(after, second, other);
  expect_loaded(libtorchs, with_libtorchs, third);
}

TEST_F(LoadWeights, MastersThatWouldBeRoundedAreRefused) {
  torch::nn::Linear net = linear(2);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const amp::MixedPrecision mixed({net.get()}, {&optimizer}, kO2);
  const at::Tensor weight = net->weight.detach().clone();
  EXPECT_THAT(refusal([&] { load_weights(*net, file_); }), HasSubstr("load it with {.mixed = &mixed}"));
  EXPECT_TRUE(at::equal(net->weight, weight));
}

TEST_F(LoadWeights, MastersOfAnOptimizersOwnAreExactToo) {
  torch::nn::Linear net = linear(2);
  net->to(at::kBFloat16);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  optimizer.keep_masters();
  load_weights(*net, file_);
  EXPECT_TRUE(at::equal(optimizer.masters()[0], saved_->weight));
}

TEST_F(LoadWeights, NamesThatOnlyOneSideHas) {
  checkpoint::write_pt(checkpoint::Dict{{"weight", saved_->weight.detach()}}, file_);
  torch::nn::Linear net = linear(2);
  EXPECT_THAT(refusal([&] { load_weights(*net, file_); }), HasSubstr("the file lacks bias [3]"));
  EXPECT_EQ(load_weights(*net, file_, {.strict = false}).missing, std::vector<std::string>{"bias"});
  EXPECT_TRUE(at::equal(net->weight, saved_->weight));
}

}  // namespace
}  // namespace lockstep::loop
