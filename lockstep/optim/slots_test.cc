#include "lockstep/optim/slots.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/memory_order.h"

namespace lockstep::optim {
namespace {

using testing::HasSubstr;

constexpr SlotSpec kSpecs[] = {
    {.name = "step", .kind = SlotKind::kCounter}, {.name = "exp_avg"}, {.name = "extra", .needed = false}};

Slots load(std::vector<NamedTensor> tensors, const at::Tensor& parameter = at::zeros({2, 3})) {
  Copies copies;
  const Slots slots =
      load_slots("adam: state of fc.weight", kSpecs, parameter, {.index = 0, .tensors = std::move(tensors)}, copies);
  copy_plainly(copies);
  return slots;
}

std::string error_of(std::vector<NamedTensor> tensors) {
  try {
    load(std::move(tensors));
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("fc.weight"));
    return error.what();
  }
  return "no error";
}

TEST(Slots, LoadCopiesLaidOutAsTheParameter) {
  const at::Tensor parameter = at::zeros({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor average = at::rand({2, 3, 4, 4}, at::kDouble);
  const Slots slots = load({{"exp_avg", average}, {"step", at::scalar_tensor(7, at::kLong)}}, parameter);
  EXPECT_TRUE(same_memory_order(slots[1], parameter));
  EXPECT_EQ(slots[1].scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(slots[1], average.to(at::kFloat)));
  EXPECT_EQ(slots[0].scalar_type(), at::kFloat);
  EXPECT_EQ(slots[0].item().toDouble(), 7);
  EXPECT_FALSE(slots[2].defined());
}

TEST(Slots, NothingIsAState) {
  EXPECT_FALSE(load({})[0].defined());
  EXPECT_FALSE(load({{"exp_avg", at::Tensor()}})[1].defined());
}

TEST(Slots, WhatDoesNotFitIsNamed) {
  const at::Tensor step = at::scalar_tensor(1, at::kFloat);
  const at::Tensor average = at::zeros({2, 3});
  EXPECT_THAT(error_of({{"momentum_buffer", average}}), HasSubstr("keeps step, exp_avg, extra"));
  EXPECT_THAT(error_of({{"step", step}, {"exp_avg", at::zeros({3, 2})}}), HasSubstr("[3, 2]"));
  EXPECT_THAT(error_of({{"step", step}, {"exp_avg", at::zeros({2, 3}, at::kInt)}}), HasSubstr("exp_avg"));
  EXPECT_THAT(error_of({{"step", step}}), HasSubstr("lacks \"exp_avg\""));
  EXPECT_THAT(error_of({{"exp_avg", average}}), HasSubstr("lacks \"step\""));
  EXPECT_THAT(error_of({{"exp_avg", average}, {"exp_avg", average}}), HasSubstr("twice"));
}

TEST(Slots, ACountOfStepsIsAWholeNumber) {
  const at::Tensor average = at::zeros({2, 3});
  for (const double bad : {-1.0, 0.5, std::numeric_limits<double>::quiet_NaN(), 1e30}) {
    EXPECT_THAT(error_of({{"exp_avg", average}, {"step", at::scalar_tensor(bad)}}), HasSubstr("count of steps")) << bad;
  }
  EXPECT_THAT(error_of({{"exp_avg", average}, {"step", at::zeros({2})}}), HasSubstr("count of steps"));
}

TEST(Slots, ANumberMayBeAny) {
  const SlotSpec specs[] = {{.name = "mu_product", .kind = SlotKind::kNumber}};
  const NamedTensor product{"mu_product", at::scalar_tensor(0.25, at::kDouble)};
  Copies copies;
  const Slots slots = load_slots("nadam", specs, at::zeros({2, 3}), {.index = 0, .tensors = {product}}, copies);
  EXPECT_EQ(slots[0].scalar_type(), at::kFloat);
  EXPECT_EQ(slots[0].item<float>(), 0.25F);
  const NamedTensor many{"mu_product", at::zeros({2, 3})};
  EXPECT_THROW(load_slots("nadam", specs, at::zeros({2, 3}), {.index = 0, .tensors = {many}}, copies), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
