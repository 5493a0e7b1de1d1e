// MobileNetV2 (Sandler et al., "Inverted residuals and linear bottlenecks", 2018), with torchvision's names, shapes and
// initial distributions. 3,504,872 parameters at 1,000 classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/models/layers.h"
#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct MobileNetV2Options {
  int64_t classes = 1000;
  double dropout = 0.2;  // probability for each feature before the classifier, in [0, 1)
};

// A 1×1 convolution to `expand` times the channels (left out where that is 1), a depthwise 3×3 one, and a linear 1×1
// one to `out` channels. The input is added where the shapes allow. [N, in, H, W] -> [N, out, H/s, W/s] with stride s.
class InvertedResidualImpl : public torch::nn::Module {
 public:
  InvertedResidualImpl(int64_t in, int64_t out, int64_t stride, int64_t expand);
  at::Tensor forward(const at::Tensor& x);

 private:
  bool adds_input_;
  ConvNorm expand_{nullptr};
  ConvNorm depthwise_{nullptr};
  nn::Conv2d project_{nullptr};
  nn::BatchNorm2d norm_{nullptr};
};
TORCH_MODULE(InvertedResidual);

// Parameters: features.0.0.weight [32, 3, 3, 3], features.0.1.*, features.1.conv.0.0.weight …, features.18.1.bias,
// classifier.1.weight [classes, 1280], classifier.1.bias. fp32, requiring gradients.
class MobileNetV2Impl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions normal with deviation √(2 / fan-out), BatchNorms 1 and 0, the classifier normal with 0.01, its bias 0.
  MobileNetV2Impl(const MobileNetV2Options& options, uint64_t seed);

  // [N, 3, H, W] -> logits [N, classes], in the images' dtype or, under autocast, in autocast's. In training, dropout
  // draws from libtorch's generator. Throws DataError for images of another shape.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 private:
  double dropout_;
  ConvNorm first_{nullptr};
  std::vector<InvertedResidual> blocks_;
  ConvNorm last_{nullptr};
  torch::nn::Linear classifier_{nullptr};
};
TORCH_MODULE(MobileNetV2);

}  // namespace lockstep::models
