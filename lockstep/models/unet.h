// U-Net (Ronneberger et al., 2015) with the names, shapes and initial distributions of Pytorch-UNet. 31,037,698
// parameters for 3 channels, 2 classes and its width of 64; 17,262,977 for one class with bilinear upsampling.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/models/layers.h"
#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct UNetOptions {
  int64_t in_channels = 3;
  int64_t classes = 2;
  int64_t width = 64;     // channels of the first level; each further level has twice as many
  bool bilinear = false;  // upsampling by interpolation, in place of transposed convolutions
};

// Two 3×3 convolutions, each with BatchNorm and ReLU: [N, in, H, W] -> [N, middle, H, W] -> [N, out, H, W].
class DoubleConvImpl : public torch::nn::Module {
 public:
  DoubleConvImpl(int64_t in, int64_t middle, int64_t out);
  at::Tensor forward(const at::Tensor& x);

 private:
  nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr};
};
TORCH_MODULE(DoubleConv);

// A 2×2 max-pool and a DoubleConv: [N, in, H, W] -> [N, out, ⌊H/2⌋, ⌊W/2⌋].
class DownImpl : public torch::nn::Module {
 public:
  DownImpl(int64_t in, int64_t out);
  at::Tensor forward(const at::Tensor& x);

 private:
  DoubleConv conv_{nullptr};
};
TORCH_MODULE(Down);

// Upsamples x to twice its sides and in/2 channels, pads it to the size of `skip` [N, in/2, H, W], concatenates both
// (skip's channels first) and applies a DoubleConv: [N, out, H, W]. x is [N, in, h, w] for a transposed convolution,
// [N, in/2, h, w] for bilinear upsampling.
class UpImpl : public torch::nn::Module {
 public:
  UpImpl(int64_t in, int64_t out, bool bilinear);
  at::Tensor forward(const at::Tensor& x, const at::Tensor& skip);

 private:
  torch::nn::ConvTranspose2d up_{nullptr};
  DoubleConv conv_{nullptr};
};
TORCH_MODULE(Up);

// Parameters, at width 64: inc.double_conv.0.weight [64, in_channels, 3, 3], inc.double_conv.1.*,
// inc.double_conv.3.weight …, down1.maxpool_conv.1.double_conv.0.weight …, up1.up.weight [1024, 512, 2, 2],
// up1.up.bias (no up1.up with bilinear upsampling), up1.conv.double_conv.* …, outc.conv.weight [classes, 64, 1, 1],
// outc.conv.bias. fp32, requiring gradients.
class UNetImpl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions and their biases uniform within ± 1 / √(fan-in), BatchNorms 1 and 0.
  UNetImpl(const UNetOptions& options, uint64_t seed);

  // [N, in_channels, H, W] -> logits [N, classes, H, W], in the images' dtype or, under autocast, in autocast's. Sides
  // are at least 16; what is lost of a side that is no multiple of 16 is padded on the way up. Throws DataError for
  // images of another shape.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 private:
  int64_t in_channels_;
  DoubleConv inc_{nullptr};
  std::vector<Down> downs_;
  std::vector<Up> ups_;
  torch::nn::Conv2d outc_{nullptr};
};
TORCH_MODULE(UNet);

}  // namespace lockstep::models
