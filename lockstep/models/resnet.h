// ResNet-18 (He et al., "Deep residual learning for image recognition", 2016), with torchvision's names, shapes and
// initial distributions. 11,689,512 parameters at 1,000 classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/models/layers.h"

namespace lockstep::models {

struct ResNetOptions {
  int64_t classes = 1000;
};

// Two 3×3 convolutions and a shortcut around them: the input, or a 1×1 convolution of it where the shapes differ. [N,
// in, H, W] -> [N, out, H/s, W/s] with stride s.
class BasicBlockImpl : public torch::nn::Module {
 public:
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride);
  at::Tensor forward(const at::Tensor& x);

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  ConvNorm downsample_{nullptr};
};
TORCH_MODULE(BasicBlock);

// Parameters: conv1.weight [64, 3, 7, 7], bn1.*, layer1.0.conv1.weight …, layer4.1.bn2.bias, fc.weight [classes, 512],
// fc.bias; layer2.0, layer3.0 and layer4.0 have downsample.0.weight and downsample.1.*. fp32, requiring gradients.
class ResNet18Impl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions normal with deviation √(2 / fan-out), BatchNorms 1 and 0, fc uniform within ± 1 / √512.
  ResNet18Impl(const ResNetOptions& options, uint64_t seed);

  // [N, 3, H, W] -> logits [N, classes], in the images' dtype or, under autocast, in autocast's. Throws DataError for
  // images of another shape.
  at::Tensor forward(const at::Tensor& images);

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<BasicBlock> blocks_;
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet18);

}  // namespace lockstep::models
