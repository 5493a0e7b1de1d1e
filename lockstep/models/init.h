// Initial weights as a pure function of a seed. Parameter number n draws from the stream (seed, kInit, n) in the order
// of its elements. Its memory format, the process and libtorch's own generator play no part.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "lockstep/base/philox.h"

namespace lockstep::models {

// The stream of a model's parameter number `parameter`, counted in the order of Module::parameters().
inline RandomStream init_stream(uint64_t seed, uint64_t parameter) {
  return RandomStream(seed, Purpose::kInit, 0, parameter);
}

// The number of inputs of one output (`in`) and of outputs of one input (`out`): [out, in, kernel…] -> in · kernel, out
// · kernel. Throws BugError for fewer than two dimensions.
struct Fans {
  int64_t in;
  int64_t out;
};
Fans fans_of(const at::Tensor& weight);

// Draws from the normal distribution of deviation √(2 / fan), for a layer that a ReLU follows (He et al., 2015).
enum class Fan { kIn, kOut };
void kaiming_normal_(at::Tensor weight, RandomStream stream, Fan fan = Fan::kIn);

// Draws from the normal distribution of mean 0.
void normal_(at::Tensor weight, double deviation, RandomStream stream);

// Draws uniformly within ± √(6 / (fan-in + fan-out)) (Glorot and Bengio, 2010).
void xavier_uniform_(at::Tensor weight, RandomStream stream);

// 1 / √(fan-in). torch.nn.Linear and the convolutions by default draw weights and biases uniformly within ± this bound.
double default_bound(const at::Tensor& weight);

// Draws uniformly within ± bound.
void uniform_(at::Tensor weight, double bound, RandomStream stream);

// Draws a network's convolutions and linear layers, and the biases that follow their weights, uniformly within ± the
// weight's default_bound(). Norms stay as they are.
void draw_as_torch(const torch::nn::Module& net, uint64_t seed);

}  // namespace lockstep::models
