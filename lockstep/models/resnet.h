// ResNet-18, -34, -50, -101 and -152 (He et al., "Deep residual learning for image recognition", 2016), with
// torchvision's names, shapes and initial distributions. 11,689,512, 21,797,672, 25,557,032, 44,549,160 and 60,192,808
// parameters at 1,000 classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/models/layers.h"
#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct ResNetOptions {
  int64_t classes = 1000;
};

// Convolutions and a shortcut around them: the input, or a 1×1 convolution of it ("downsample") where the shapes
// differ. [N, in, H, W] -> [N, out, H/s, W/s] with stride s.
class ResidualBlock : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;

 protected:
  // Registered last, behind the convolutions, as torchvision's is.
  void add_downsample(int64_t in, int64_t out, int64_t stride);
  at::Tensor shortcut(const at::Tensor& x);

 private:
  ConvNorm downsample_{nullptr};
};

// Two 3×3 convolutions, the first with the stride. out = width.
class BasicBlock final : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 1;
  BasicBlock(int64_t in, int64_t width, int64_t stride);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
};

// A 1×1 convolution, a 3×3 one with the stride (as in torchvision, called v1.5; the paper has it in the 1×1 one), and a
// 1×1 one. out = 4 · width.
class Bottleneck final : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 4;
  Bottleneck(int64_t in, int64_t width, int64_t stride);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d bn3_;
};

// Parameters: conv1.weight [64, 3, 7, 7], bn1.*, layer1.0.conv1.weight … of four layers, fc.weight [classes, features],
// fc.bias; each layer's first block has downsample.0.weight and downsample.1.*, but layer1's with basic blocks. fp32,
// requiring gradients.
class ResNetImpl : public torch::nn::Module {
 public:
  // [N, 3, H, W] -> logits [N, classes], in the images' dtype or, under autocast, in autocast's. Throws DataError for
  // images of another shape.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 protected:
  struct Form {
    const char* name;
    bool bottleneck;
    std::array<int, 4> blocks;  // of each layer
  };

  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions normal with deviation √(2 / fan-out), BatchNorms 1 and 0, fc uniform within ± 1 / √features.
  ResNetImpl(const Form& form, const ResNetOptions& options, uint64_t seed);

 private:
  template <typename Block>
  int64_t add_blocks(const std::array<int, 4>& blocks);
  void draw_weights(uint64_t seed);

  const char* name_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  torch::nn::Linear fc_{nullptr};
};

// 512 features.
class ResNet18Impl final : public ResNetImpl {
 public:
  ResNet18Impl(const ResNetOptions& options, uint64_t seed)
      : ResNetImpl({"ResNet18", false, {2, 2, 2, 2}}, options, seed) {}
};
TORCH_MODULE(ResNet18);

class ResNet34Impl final : public ResNetImpl {
 public:
  ResNet34Impl(const ResNetOptions& options, uint64_t seed)
      : ResNetImpl({"ResNet34", false, {3, 4, 6, 3}}, options, seed) {}
};
TORCH_MODULE(ResNet34);

// 2,048 features.
class ResNet50Impl final : public ResNetImpl {
 public:
  ResNet50Impl(const ResNetOptions& options, uint64_t seed)
      : ResNetImpl({"ResNet50", true, {3, 4, 6, 3}}, options, seed) {}
};
TORCH_MODULE(ResNet50);

class ResNet101Impl final : public ResNetImpl {
 public:
  ResNet101Impl(const ResNetOptions& options, uint64_t seed)
      : ResNetImpl({"ResNet101", true, {3, 4, 23, 3}}, options, seed) {}
};
TORCH_MODULE(ResNet101);

class ResNet152Impl final : public ResNetImpl {
 public:
  ResNet152Impl(const ResNetOptions& options, uint64_t seed)
      : ResNetImpl({"ResNet152", true, {3, 8, 36, 3}}, options, seed) {}
};
TORCH_MODULE(ResNet152);

}  // namespace lockstep::models
