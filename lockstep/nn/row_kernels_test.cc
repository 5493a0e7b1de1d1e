#include "lockstep/nn/row_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::nn {
namespace {

TEST(RowKernels, SumInFp32AndRoundOnce) {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    for (const int64_t count : {1, 15, 16, 40, 64}) {
      const at::Tensor rows = at::randn({5, count}).to(dtype);
      at::Tensor expected = rows[0].to(at::kFloat), out = at::empty({count}, dtype);
      for (int64_t k = 1; k < 5; ++k) expected = expected + rows[k].to(at::kFloat);
      std::vector<const uint16_t*> pointers;
      for (int64_t k = 0; k < 5; ++k) pointers.push_back(static_cast<const uint16_t*>(rows[k].const_data_ptr()));
      auto* const to = static_cast<uint16_t*>(out.data_ptr());
      sum_rows(pointers, static_cast<size_t>(count), dtype == at::kBFloat16, to);
      EXPECT_TRUE(at::equal(out, expected.to(dtype))) << dtype << " " << count;
      sum_rows({}, static_cast<size_t>(count), dtype == at::kBFloat16, to);
      EXPECT_TRUE(at::equal(out, at::zeros_like(out)));
    }
  }
}

TEST(RowKernels, ScaleEachElement) {
  at::manual_seed(2);
  for (const int64_t count : {7, 40}) {
    const at::Tensor rows = at::randn({5, count}).to(at::kBFloat16), scales = at::randn({5, count});
    at::Tensor out = at::empty({count}, at::kBFloat16);
    std::vector<const uint16_t*> pointers;
    std::vector<const float*> factors;
    for (int64_t k = 0; k < 5; ++k) {
      pointers.push_back(static_cast<const uint16_t*>(rows[k].const_data_ptr()));
      factors.push_back(scales[k].const_data_ptr<float>());
    }
    sum_scaled_rows(pointers, factors, static_cast<size_t>(count), true, static_cast<uint16_t*>(out.data_ptr()));
    const at::Tensor expected = (rows.to(at::kDouble) * scales.to(at::kDouble)).sum(0);
    EXPECT_LE((out.to(at::kDouble) - expected).abs().max().item().toDouble(), 0.01);
  }
}

}  // namespace
}  // namespace lockstep::nn
