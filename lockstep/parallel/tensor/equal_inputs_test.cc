#include "lockstep/parallel/tensor/equal_inputs.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::parallel::tensor {
namespace {

// By how much the fingerprints differ, in parts of the norm.
double difference(const at::Tensor& a, const at::Tensor& b) {
  const Fingerprint one = fingerprint(a), other = fingerprint(b);
  return std::max(std::abs(one.sum - other.sum), std::abs(one.norm - other.norm)) / one.norm;
}

TEST(Fingerprint, AnotherOrderOfManySamplesIsSeen) {
  at::manual_seed(1);
  const at::Tensor features = at::rand({16, 9216});
  // Pictures whose neighbours are alike.
  const at::Tensor pictures = (at::rand({16, 3, 1, 1}) + at::arange(224).div(448)).expand({16, 3, 224, 224});
  for (const at::Tensor& batch : {features, pictures}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor values = batch.to(type);
      EXPECT_GT(difference(values, values.flip(0)), 0.1) << batch.sizes() << type;
      const at::Tensor swapped = at::cat({values.narrow(0, 1, 1), values.narrow(0, 0, 1), values.narrow(0, 2, 14)});
      EXPECT_GT(difference(values, swapped), 0.03) << batch.sizes() << type;
    }
  }
}

TEST(Fingerprint, RoundingIsNot) {
  at::manual_seed(1);
  const at::Tensor values = at::rand({16, 9216}) - 0.5;
  EXPECT_EQ(difference(values, values.clone()), 0);
  EXPECT_LT(difference(values, values * (1 + 1e-5 * at::rand_like(values))), 5e-5);
  EXPECT_LT(difference(values, values.to(at::kBFloat16)), 1e-2);
}

TEST(Fingerprint, OneNumberCounts) {
  EXPECT_EQ(std::abs(fingerprint(at::arange(1, 2)).sum), 1);
  EXPECT_EQ(fingerprint(at::arange(0)).norm, 0);
}

}  // namespace
}  // namespace lockstep::parallel::tensor
