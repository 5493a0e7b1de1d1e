#include "lockstep/compat/apex/multi_tensor_apply.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::apex::multi_tensor_apply {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing_support::refusal;

struct MultiTensorApplyTest : testing::Test {
  Tensor flag = at::zeros({1}, at::kInt);
  Tensor x = at::tensor({3.0f, 4.0f}), y = at::tensor({1.0f, 2.0f}), out = at::zeros({2});
  Tensor infinite = at::full({2}, std::numeric_limits<float>::infinity());

  int flagged() {
    const int value = flag.item<int>();
    flag.zero_();
    return value;
  }
};

TEST_F(MultiTensorApplyTest, Scales) {
  EXPECT_TRUE(multi_tensor_applier.available);
  multi_tensor_applier(amp_C::multi_tensor_scale, flag, {{x}, {out}}, 0.5);
  EXPECT_TRUE(at::equal(out, x * 0.5));
  EXPECT_EQ(flagged(), 0);
  multi_tensor_applier(amp_C::multi_tensor_scale, flag, {{infinite}, {out}}, 0.5);
  multi_tensor_applier(amp_C::multi_tensor_scale, flag, {{x}, {out}}, 0.5);
  EXPECT_EQ(flagged(), 1) << "until it is cleared";
}

TEST_F(MultiTensorApplyTest, AddsAndLooksWhereItIsTold) {
  multi_tensor_applier(amp_C::multi_tensor_axpby, flag, {{x}, {y}, {out}}, 2.0, 3.0, -1);
  EXPECT_TRUE(at::equal(out, x * 2 + y * 3));
  EXPECT_EQ(flagged(), 0);
  const int expected[] = {1, 0, 1};
  for (const int arg : {-1, 0, 1}) {
    const Tensor second = infinite.clone();
    multi_tensor_applier(amp_C::multi_tensor_axpby, flag, {{x}, {second}, {second}}, 1.0, 1.0, arg);
    EXPECT_EQ(flagged(), expected[arg + 1]) << arg;
  }
}

TEST_F(MultiTensorApplyTest, Measures) {
  const auto [total, each] = multi_tensor_applier(amp_C::multi_tensor_l2norm, flag, {{x, y * 0, x}}, true);
  EXPECT_TRUE(at::allclose(total, at::full({1}, std::sqrt(50.0f))));
  EXPECT_TRUE(at::equal(each, at::tensor({5.0f, 0.0f, 5.0f})));
  EXPECT_EQ(amp_C::multi_tensor_l2norm(1, flag, {{x}}).second.numel(), 0);
}

TEST_F(MultiTensorApplyTest, RefusesOtherLists) {
  EXPECT_THAT(refusal([&] { multi_tensor_applier(amp_C::multi_tensor_scale, flag, {{x}}, 1.0); }),
              HasSubstr("multi_tensor_scale: 1 lists of tensors, not 2"));
  EXPECT_THAT(refusal([&] {
                amp_C::multi_tensor_axpby(1, flag, {{x}, {y}, {out}}, 1, 1, 2);
              }),
              HasSubstr("arg_to_check 2"));
}

}  // namespace
}  // namespace lockstep::apex::multi_tensor_apply
