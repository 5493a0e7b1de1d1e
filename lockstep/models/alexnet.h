// AlexNet in the form for one GPU (Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
// 2014), with torchvision's names, shapes and initial distributions. 61,100,840 parameters at 1,000 classes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct AlexNetOptions {
  int64_t classes = 1000;
  double dropout = 0.5;  // probability for each feature before the first two layers of the classifier, in [0, 1)
};

// Parameters: features.0.weight [64, 3, 11, 11], features.0.bias, features.3.*, features.6.*, features.8.*,
// features.10.*, classifier.1.weight [4096, 9216], classifier.1.bias, classifier.4.*, classifier.6.weight [classes,
// 4096], classifier.6.bias. fp32, requiring gradients.
class AlexNetImpl : public torch::nn::Module {
 public:
  static constexpr int64_t kLeastSide = 63;  // pixels, of which the last pooling leaves one

  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // all uniform within ± 1 / √(fan-in).
  AlexNetImpl(const AlexNetOptions& options, uint64_t seed);

  // [N, 3, H, W] -> logits [N, classes], in the images' dtype or, under autocast, in autocast's. In training, dropout
  // draws from libtorch's generator. Throws DataError for images of another shape, or with sides below kLeastSide.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 private:
  double dropout_;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::Linear> classifier_;
};
TORCH_MODULE(AlexNet);

}  // namespace lockstep::models
