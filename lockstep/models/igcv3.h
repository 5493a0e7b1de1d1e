// IGCV3-D 1.0× (Sun et al., "IGCV3: interleaved low-rank group convolutions for efficient deep neural networks", 2018),
// as its authors' repository (homles11/IGCV3) defines it, with names in the manner of MobileNetV2's. 3,491,688
// parameters at 1,000 classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/models/layers.h"
#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct Igcv3Options {
  int64_t classes = 1000;
};

// A 1×1 convolution of two groups to `expand` times the channels, a depthwise 3×3 one, and a linear 1×1 one of two
// groups to `out` channels. Channels are interleaved after the first and restored after the last, so that each group
// sees both of the other. The input is added where the shapes allow. [N, in, H, W] -> [N, out, H/s, W/s] with stride s.
class InterleavedBlockImpl : public torch::nn::Module {
 public:
  InterleavedBlockImpl(int64_t in, int64_t out, int64_t stride, int64_t expand);
  at::Tensor forward(const at::Tensor& x);

 private:
  bool adds_input_;
  ConvNorm expand_{nullptr};
  ConvNorm depthwise_{nullptr};
  ConvNorm project_{nullptr};
};
TORCH_MODULE(InterleavedBlock);

// Parameters: features.0.0.weight [32, 3, 3, 3], features.0.1.*, features.1.conv.0.0.weight [32, 16, 1, 1] …,
// features.33.1.bias, classifier.weight [classes, 1280], classifier.bias. fp32, requiring gradients.
class Igcv3Impl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions and the classifier normal with deviation √(2 / fan-in), BatchNorms 1 and 0, the classifier's bias 0.
  Igcv3Impl(const Igcv3Options& options, uint64_t seed);

  // [N, 3, H, W] -> logits [N, classes], in the images' dtype or, under autocast, in autocast's. Throws DataError for
  // images of another shape.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 private:
  ConvNorm first_{nullptr};
  std::vector<InterleavedBlock> blocks_;
  ConvNorm last_{nullptr};
  torch::nn::Linear classifier_{nullptr};
};
TORCH_MODULE(Igcv3);

}  // namespace lockstep::models
