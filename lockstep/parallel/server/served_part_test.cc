#include "lockstep/parallel/server/served_part.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors parameters_of() {
  Tensors all;
  for (const int64_t size : {5, 4, 3}) all.push_back(at::arange(size, at::kFloat).requires_grad_(size != 4));
  all.push_back(at::arange(16, at::kFloat).view({1, 4, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast));
  all.back().requires_grad_(true);
  return all;
}

TEST(ServedPart, PartsAreAllThatIsTrainedOnce) {
  for (const int servers : {1, 2, 3, 5, 24}) {
    const Tensors from = parameters_of();
    Tensors to;
    for (const at::Tensor& each : from) to.push_back(at::full_like(each, -1).requires_grad_(each.requires_grad()));
    int64_t elements = 0;
    for (int i = 0; i < servers; ++i) {
      const ServedPart part(from, i, servers);
      const at::Tensor flat = at::empty({part.elements()}, at::kFloat);
      part.take(from, flat);
      part.give(to, flat);
      elements += part.elements();
      EXPECT_LE(part.elements(), (24 + servers - 1) / servers);
    }
    EXPECT_EQ(elements, 24);
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_TRUE(to[i].equal(from[i].requires_grad() ? from[i] : at::full_like(from[i], -1))) << i;
    }
  }
}

TEST(ServedPart, GradientsThatAreMissingAreToldFromZeros) {
  const Tensors all = parameters_of();
  all[0].mutable_grad() = at::zeros({5});
  all[3].mutable_grad() = at::ones({1, 4, 2, 2});
  const ServedPart part(all, 0, 1);
  const at::Tensor flat = at::full({24}, 7, at::kFloat);
  EXPECT_EQ(part.take_gradients(all, flat), std::string("\1\0\1", 3));
  EXPECT_EQ(flat.sum().item<double>(), 16);
  ASSERT_EQ(part.pieces(), 3U);
  EXPECT_TRUE(part.pieces_of(flat)[2].equal(at::ones({16})));
}

TEST(ServedPart, TellsOtherNetworksAndOtherFrozenWeights) {
  const Tensors all = parameters_of();
  Tensors thawed = parameters_of(), reshaped = parameters_of();
  thawed[0].requires_grad_(false), thawed[1].requires_grad_(true), thawed[2] = at::zeros({4}).requires_grad_(true);
  reshaped[3] = at::zeros({4, 4}).requires_grad_(true);
  EXPECT_EQ(ServedPart(all, 1, 2).text(), ServedPart(parameters_of(), 1, 2).text());
  for (const Tensors& other : {thawed, reshaped}) {
    EXPECT_EQ(ServedPart(other, 0, 1).elements(), 24);
    EXPECT_NE(ServedPart(other, 0, 1).text(), ServedPart(all, 0, 1).text());
  }
  EXPECT_NE(ServedPart(all, 0, 2).text(), ServedPart(all, 1, 2).text());
  EXPECT_THROW(ServedPart(all, 0, 25), ConfigError);
  EXPECT_THROW(ServedPart({at::ones({2}, at::kComplexFloat).requires_grad_()}, 0, 1), ConfigError);
}

}  // namespace
}  // namespace lockstep::parallel
