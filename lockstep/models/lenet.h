// LeNet as Paddle's course has it: two 5×5 convolutions of 20 channels, each with ReLU and a 2×2 max-pool, and one
// fully connected layer. 20,350 parameters for 28×28 grey digits.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "lockstep/nn/staged.h"

namespace lockstep::models {

struct LeNetOptions {
  int64_t classes = 10;
  int64_t in_channels = 1;
  int64_t image_size = 28;  // pixels a side, a multiple of 4
};

// Parameters: conv1.weight [20, in_channels, 5, 5], conv1.bias, conv2.weight [20, 20, 5, 5], conv2.bias,
// fc.weight [classes, 20 · (image_size / 4)²], fc.bias. fp32, requiring gradients.
class LeNetImpl : public torch::nn::Module {
 public:
  // Throws ConfigError for an option that no network can have. The weights are a pure function of options and seed:
  // convolutions normal with deviation √(2 / fan-in), fc Xavier uniform, biases 0.
  LeNetImpl(const LeNetOptions& options, uint64_t seed);

  // [N, in_channels, image_size, image_size] -> logits [N, classes], in the images' dtype or, under autocast, in
  // autocast's. Throws DataError for images of another shape.
  at::Tensor forward(const at::Tensor& images);
  // What forward() does, in layers.
  std::vector<nn::Layer> layers() const;

 private:
  LeNetOptions options_;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(LeNet);

}  // namespace lockstep::models
