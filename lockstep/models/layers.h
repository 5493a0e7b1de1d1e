// The building blocks of the convolutional networks.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/nn/batch_norm.h"
#include "lockstep/nn/conv2d.h"

namespace lockstep::models {

// Returns `value`. Throws ConfigError unless it lies within 1 to `most`.
int64_t checked_option(const char* model, const char* what, int64_t value, int64_t most);
constexpr int64_t kMaxClasses = 1 << 20;
constexpr int64_t kMaxChannels = 1 << 14;

// Throws DataError unless images are [N, channels, H, W] with at least `side` pixels a side.
void check_images(const char* model, const at::Tensor& images, int64_t channels, int64_t side = 1);

// A convolution with an odd kernel, padded so that stride 1 keeps the size. It has no bias, for BatchNorm follows.
nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1);

// Interleaves the channels of so many groups: channel c of group g moves to c · groups + g. [N, C, H, W], in the memory
// format of x. The same with C / groups undoes it. Throws BugError unless groups divide the channels.
at::Tensor shuffle_channels(const at::Tensor& x, int64_t groups);

// Convolution "0" and BatchNorm "1". [N, in, H, W] -> activation(norm(conv(x)) + residual).
class ConvNormImpl : public torch::nn::Module {
 public:
  ConvNormImpl(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1);
  at::Tensor forward(const at::Tensor& x, nn::Activation activation, const at::Tensor& residual = {});

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
};
TORCH_MODULE(ConvNorm);

}  // namespace lockstep::models
