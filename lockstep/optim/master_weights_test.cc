// How optimizers step masters: masters_test.cc.
#include "lockstep/optim/master_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors weights() {
  return {at::full({2, 3, 4, 4}, 1.5, at::kBFloat16).requires_grad_(), at::ones({3}), at::ones({5}, at::kHalf)};
}

TEST(MasterWeights, AreOfNarrowWeightsAndFollowTheLayout) {
  const Tensors w = weights();
  MasterWeights masters(w);
  ASSERT_EQ(masters.all().size(), 3u);
  EXPECT_EQ(masters.all()[0].scalar_type(), at::kFloat);
  EXPECT_FALSE(masters.all()[0].requires_grad());
  EXPECT_TRUE(masters.all()[0].eq(1.5).all().item<bool>());
  EXPECT_FALSE(masters.all()[1].defined());
  masters.all()[0].copy_(at::arange(96).view({2, 3, 4, 4}) + 0.001);
  masters.round_into(w);
  const at::Tensor turned = w[0].detach().contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(masters.prepare(0, turned).strides(), turned.strides());
  EXPECT_EQ(masters.all()[0][0][0][0][3].item<float>(), 3.001F);
  EXPECT_TRUE(masters.prepare(3, w[2]).defined()) << "of a group that was added";
}

TEST(MasterWeights, FollowWeightsThatOthersWrite) {
  const Tensors w = weights();
  MasterWeights masters(w);
  masters.all()[0].fill_(1.501);  // rounds to 1.5
  EXPECT_TRUE(masters.prepare(0, w[0]).eq(1.501F).all().item<bool>()) << "the weight is its rounded copy";
  const at::NoGradGuard no_grad;
  w[0][0].fill_(3);
  EXPECT_TRUE(masters.prepare(0, w[0])[0].eq(3).all().item<bool>());
  EXPECT_TRUE(masters.prepare(0, w[0])[1].eq(1.501F).all().item<bool>());
}

TEST(MasterWeights, LoadCopiesAndRounds) {
  const Tensors w = weights();
  MasterWeights masters(w);
  const at::Tensor saved = at::full({2, 3, 4, 4}, 1.001);
  masters.load("sgd", w, {saved, at::Tensor(), at::Tensor()});
  saved.zero_();
  EXPECT_TRUE(masters.all()[0].eq(1.001F).all().item<bool>());
  EXPECT_TRUE(w[0].eq(1).all().item<bool>());
  EXPECT_TRUE(masters.all()[2].eq(1).all().item<bool>());
}

TEST(MasterWeights, AreFoundByTheirWeights) {
  const Tensors w = weights();
  const at::Tensor late = at::ones({2}, at::kHalf), stranger = at::ones({2}, at::kHalf);
  const auto is_found = [](const at::Tensor& weight, const at::Tensor& master) {
    const Tensors found = MasterWeights::kept_of(Tensors{weight});
    return found.size() == 1 && found[0].is_same(master);
  };
  {
    MasterWeights masters(w);
    EXPECT_TRUE(is_found(w[0], masters.all()[0]) && is_found(w[2], masters.all()[2]));
    EXPECT_EQ(MasterWeights::kept_of(Tensors{w[2], w[1], w[0], stranger}).size(), 2u) << "a wide weight has none";
    masters.prepare(4, late);  // of a group whose first parameter has no gradient yet
    EXPECT_TRUE(is_found(late, masters.all()[4]));
    masters.prepare(0, w[0].detach().contiguous(at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(is_found(w[0], masters.all()[0])) << "laid out anew";
    const MasterWeights others({w[0]});
    EXPECT_EQ(MasterWeights::kept_of(w).size(), 3u) << "two optimizers";
  }
  EXPECT_TRUE(MasterWeights::kept_of(Tensors{w[0], w[2], late}).empty());
}

TEST(MasterWeights, SayWhatDoesNotFit) {
  const Tensors w = weights();
  MasterWeights masters(w);
  EXPECT_THROW(masters.load("sgd", w, {at::ones({3})}), ConfigError);
  EXPECT_THROW(masters.load("sgd", w, {at::ones({3}), {}, {}}), ConfigError);
  EXPECT_THROW(masters.load("sgd", w, {{}, at::ones({3}), {}}), ConfigError) << "a wide weight has none";
  EXPECT_TRUE(w[0].eq(1.5).all().item<bool>());
}

}  // namespace
}  // namespace lockstep::optim
