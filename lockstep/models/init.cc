#include "lockstep/models/init.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::models {
namespace {

// The draws go through a contiguous tensor: their order must not follow the strides of `weight`.
template <typename Draw>
void fill(at::Tensor& weight, Draw draw) {
  at::NoGradGuard no_grad;
  at::Tensor values = at::empty(weight.sizes(), at::kFloat);
  float* value = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) value[i] = draw();
  weight.copy_(values);
}

}  // namespace

Fans fans_of(const at::Tensor& weight) {
  if (weight.dim() < 2) throw BugError("fan-in of a tensor of ", weight.dim(), " dimensions: at least 2 are needed");
  int64_t kernel = 1;
  for (int64_t d = 2; d < weight.dim(); ++d) kernel *= weight.size(d);
  return {.in = weight.size(1) * kernel, .out = weight.size(0) * kernel};
}

void kaiming_normal_(at::Tensor weight, RandomStream stream, Fan fan) {
  const Fans fans = fans_of(weight);
  normal_(weight, std::sqrt(2.0 / static_cast<double>(fan == Fan::kIn ? fans.in : fans.out)), stream);
}

void normal_(at::Tensor weight, double deviation, RandomStream stream) {
  const auto scale = static_cast<float>(deviation);
  fill(weight, [&] { return scale * stream.normal(); });
}

double default_bound(const at::Tensor& weight) { return 1 / std::sqrt(static_cast<double>(fans_of(weight).in)); }

void xavier_uniform_(at::Tensor weight, RandomStream stream) {
  const Fans fans = fans_of(weight);
  uniform_(weight, std::sqrt(6.0 / static_cast<double>(fans.in + fans.out)), stream);
}

void uniform_(at::Tensor weight, double bound, RandomStream stream) {
  const auto limit = static_cast<float>(bound);
  fill(weight, [&] { return stream.uniform(-limit, limit); });
}

void draw_as_torch(const torch::nn::Module& net, uint64_t seed) {
  uint64_t parameter = 0;
  double bound = 0;  // of the layer whose parameters these are; 0: they are a norm's
  for (const auto& p : net.named_parameters()) {
    if (p.key().ends_with(".weight")) bound = p.value().dim() > 1 ? default_bound(p.value()) : 0;
    const RandomStream stream = init_stream(seed, parameter++);
    if (bound > 0) uniform_(p.value(), bound, stream);
  }
}

}  // namespace lockstep::models
