#include "lockstep/optim/kernels/step.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/kernels/average.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

const SgdRule kRule{.multiplier = 0.5,
                    .lr = 0.25,
                    .weight_decay = 0,
                    .momentum = 0.5,
                    .undamped = 1,
                    .nesterov = false,
                    .first = false};

// Sizes around vectors and blocks.
TEST(Step, RoundsNarrowTypesOnlyWhereItStores) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    for (const int64_t size : {1, 1023, 1024, 1025, 4096, 4097, 10000}) {
      at::manual_seed(size);
      const at::Tensor p = at::randn({size}).to(dtype);
      const at::Tensor g = at::randn({size}).to(dtype);
      const at::Tensor buffer = at::randn({size}).to(dtype);
      const at::Tensor exact_buffer = buffer.to(at::kFloat) * 0.5 + g.to(at::kFloat) * 0.5;
      const at::Tensor exact = p.to(at::kFloat) - exact_buffer * 0.25;
      step_parameter(kRule, {p, g, {&buffer}});
      EXPECT_TRUE(at::equal(buffer, exact_buffer.to(dtype))) << dtype << size;
      EXPECT_TRUE(at::equal(p, exact.to(dtype))) << dtype << size;
    }
  }
}

TEST(Step, GivesTheSameBitsWithAnyNumberOfThreads) {
  at::manual_seed(1);
  const at::Tensor p = at::randn({200003});
  const at::Tensor g = at::randn({200003});
  const at::Tensor buffer = at::randn({200003});
  const int before = at::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const at::Tensor copy = p.clone();
    const at::Tensor buffer_copy = buffer.clone();
    step_parameter(kRule, {copy, g, {&buffer_copy}});
    results.push_back(copy);
  }
  at::set_num_threads(before);
  EXPECT_FALSE(at::equal(results[0], p));
  EXPECT_TRUE(at::equal(results[0], results[1]));
  EXPECT_TRUE(at::equal(results[0], results[2]));
}

TEST(Step, AveragesTheWeightsAsTheyAreStored) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    at::manual_seed(2);
    const at::Tensor p = at::randn({1500}).to(dtype), g = at::randn({1500}).to(dtype), s = at::randn({1500}).to(dtype);
    const at::Tensor average = at::randn({1500}).to(dtype == at::kDouble ? at::kDouble : at::kFloat);
    for (const double share : {0.125, 0.25, 0.75, 1.0}) {
      const at::Tensor alone = average.clone(), before = average.clone();
      step_parameter(kRule, {p, g, {&s}, &average}, {.average_share = share});
      average_parameter(p, alone, share);
      EXPECT_TRUE(at::equal(average, alone)) << dtype << share;
      EXPECT_TRUE(at::allclose(average, before.lerp(p.to(before.scalar_type()), share), 0, share == 0.25 ? 0 : 1e-6))
          << dtype << share;
    }
  }
}

TEST(Step, KnowsItsDtypes) {
  const at::Tensor whole = at::ones({3}, at::kInt);
  EXPECT_THROW(step_parameter(kRule, {whole, whole, {&whole}}), BugError);
}

}  // namespace
}  // namespace lockstep::optim
