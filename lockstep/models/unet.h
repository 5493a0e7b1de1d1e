// U-Net (Ronneberger et al., 2015) with the names, shapes and initial distributions of Pytorch-UNet, upsampling by
// transposed convolutions. 31,037,698 parameters for 3 channels, 2 classes and its width of 64.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/models/layers.h"

namespace lockstep::models {

struct UNetOptions {
  int64_t in_channels = 3;
  int64_t classes = 2;
  int64_t width = 64;  // channels of the first level; each further level has twice as many
};

// Two 3×3 convolutions, each with BatchNorm and ReLU: [N, in, H, W] -> [N, out, H, W].
class DoubleConvImpl : public torch::nn::Module {
 public:
  DoubleConvImpl(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x);

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
};
TORCH_MODULE(DoubleConv);

// A 2×2 max-pool and a DoubleConv to twice the channels: [N, in, H, W] -> [N, 2·in, ⌊H/2⌋, ⌊W/2⌋].
class DownImpl : public torch::nn::Module {
 public:
  explicit DownImpl(int64_t in);
  at::Tensor forward(const at::Tensor& x);

 private:
  DoubleConv conv_{nullptr};
};
TORCH_MODULE(Down);

// Upsamples x [N, in, h, w], pads it to the size of `skip` [N, in/2, H, W], concatenates both (skip's channels first)
// and applies a DoubleConv: [N, in/2, H, W].
class UpImpl : public torch::nn::Module {
 public:
  explicit UpImpl(int64_t in);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip);

 private:
  torch::nn::ConvTranspose2d up_;
  DoubleConv conv_;
};
TORCH_MODULE(Up);

// Parameters, at width 64: inc.double_conv.0.weight [64, in_channels, 3, 3], inc.double_conv.1.*,
// inc.double_conv.3.weight …, down1.maxpool_conv.1.double_conv.0.weight …, up1.up.weight [1024, 512, 2, 2],
// up1.up.bias, up1.conv.double_conv.* …, outc.conv.weight [classes, 64, 1, 1], outc.conv.bias. fp32, requiring
// gradients.
class UNetImpl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions and their biases uniform within ± 1 / √(fan-in), BatchNorms 1 and 0.
  UNetImpl(const UNetOptions& options, uint64_t seed);

  // [N, in_channels, H, W] -> logits [N, classes, H, W], in the images' dtype or, under autocast, in autocast's. Sides
  // are at least 16; what is lost of a side that is no multiple of 16 is padded on the way up. Throws DataError for
  // images of another shape.
  at::Tensor forward(const at::Tensor& images);

 private:
  int64_t in_channels_;
  DoubleConv inc_{nullptr};
  std::vector<Down> downs_;
  std::vector<Up> ups_;
  torch::nn::Conv2d outc_{nullptr};
};
TORCH_MODULE(UNet);

}  // namespace lockstep::models
