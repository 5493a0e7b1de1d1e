// ShuffleNetV2 1.0× (Ma et al., "ShuffleNet V2: practical guidelines for efficient CNN architecture design", 2018),
// with torchvision's names, shapes and initial distributions. 2,278,604 parameters at 1,000 classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/models/layers.h"
#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct ShuffleNetV2Options {
  int64_t classes = 1000;
};

// With stride 1, half of the channels pass and the other half goes through a 1×1, a depthwise 3×3 and a 1×1
// convolution. With stride 2, all go through these, and through a depthwise and a 1×1 one beside them. The halves are
// interleaved then. [N, in, H, W] -> [N, out, H/s, W/s] with stride s; in = out with stride 1.
class ShuffleUnitImpl : public torch::nn::Module {
 public:
  ShuffleUnitImpl(int64_t in, int64_t out, int64_t stride);
  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor beside(const at::Tensor& x);
  at::Tensor through(const at::Tensor& x);

  nn::Conv2d beside_depthwise_{nullptr}, beside_project_{nullptr};
  nn::BatchNorm2d beside_norm1_{nullptr}, beside_norm2_{nullptr};
  nn::Conv2d expand_{nullptr}, depthwise_{nullptr}, project_{nullptr};
  nn::BatchNorm2d norm1_{nullptr}, norm2_{nullptr}, norm3_{nullptr};
};
TORCH_MODULE(ShuffleUnit);

// Parameters: conv1.0.weight [24, 3, 3, 3], conv1.1.*, stage2.0.branch1.0.weight …, stage4.3.branch2.6.*,
// conv5.0.weight [1024, 464, 1, 1], conv5.1.*, fc.weight [classes, 1024], fc.bias. fp32, requiring gradients.
class ShuffleNetV2Impl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions and fc uniform within ± 1 / √(fan-in), BatchNorms 1 and 0.
  ShuffleNetV2Impl(const ShuffleNetV2Options& options, uint64_t seed);

  // [N, 3, H, W] -> logits [N, classes], in the images' dtype or, under autocast, in autocast's. Throws DataError for
  // images of another shape.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 private:
  ConvNorm first_{nullptr};
  std::vector<ShuffleUnit> units_;
  ConvNorm last_{nullptr};
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ShuffleNetV2);

}  // namespace lockstep::models
