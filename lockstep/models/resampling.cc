#include "lockstep/models/resampling.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace lockstep::models {
namespace {

// [doubled, side]: row i has the shares of the input's pixels in the output's pixel i.
at::Tensor shares(int64_t side, Aligned aligned, const at::Tensor& like) {
  const int64_t doubled = 2 * side;
  at::Tensor weights = at::zeros({doubled, side}, at::kFloat);
  auto share = weights.accessor<float, 2>();
  for (int64_t i = 0; i < doubled; ++i) {
    const float at = aligned == Aligned::kCorners
                         ? static_cast<float>(i) * (static_cast<float>(side - 1) / static_cast<float>(doubled - 1))
                         : std::max(0.0f, (static_cast<float>(i) - 0.5f) / 2);
    const int64_t first = std::min(static_cast<int64_t>(at), side - 1), next = std::min(first + 1, side - 1);
    share[i][first] += 1 - (at - static_cast<float>(first));
    share[i][next] += at - static_cast<float>(first);
  }
  return weights.to(like.options());
}

// [out, in]: row i has the shares of the window of adaptive pooling's output i.
at::Tensor window_means(int64_t in, int64_t out, const at::Tensor& like) {
  at::Tensor means = at::zeros({out, in}, at::kFloat);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t first = i * in / out, end = ((i + 1) * in + out - 1) / out;
    means[i].narrow(0, first, end - first).fill_(1.0 / static_cast<double>(end - first));
  }
  return means.to(like.options());
}

// `rows` [H', H] and `columns` [W', W] have the shares of the pixels of x.
at::Tensor resampled(const at::Tensor& x, const at::Tensor& rows, const at::Tensor& columns) {
  return at::matmul(rows, at::matmul(x, columns.t()));
}

}  // namespace

at::Tensor upsample_twice(const at::Tensor& x, Aligned aligned) {
  if (!x.is_cpu()) return upsample_twice_by_products(x, aligned);
  return at::upsample_bilinear2d(x, at::OptionalIntArrayRef(), aligned == Aligned::kCorners, std::vector<double>{2, 2});
}

at::Tensor upsample_twice_by_products(const at::Tensor& x, Aligned aligned) {
  return resampled(x, shares(x.size(2), aligned, x), shares(x.size(3), aligned, x));
}

at::Tensor average_pool_to(const at::Tensor& x, int64_t side) {
  return x.is_cpu() ? at::adaptive_avg_pool2d(x, {side, side}) : average_pool_by_products(x, side);
}

at::Tensor average_pool_by_products(const at::Tensor& x, int64_t side) {
  return resampled(x, window_means(x.size(2), side, x), window_means(x.size(3), side, x));
}

}  // namespace lockstep::models
