// A network that is cut into stages, with its micro-batches.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace lockstep::parallel {

inline const std::vector<int64_t> kSamples = {4, 4, 4, 2};  // of micro-batches: the last one is smaller

inline torch::nn::Sequential whole_net(double dropout = 0) {
  at::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 3).padding(1)), torch::nn::BatchNorm2d(6),
                            torch::nn::ReLU(), torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 8, 3).stride(2)),
                            torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Dropout(dropout),
                            torch::nn::Linear(72, 16), torch::nn::ReLU(), torch::nn::Linear(16, 5));
  net->train();
  return net;
}

inline at::Tensor images_of(int64_t step, size_t micro_batch) {
  at::manual_seed(1000 + static_cast<uint64_t>(step) * 10 + micro_batch);
  return at::rand({kSamples[micro_batch], 1, 8, 8});
}
inline at::Tensor labels_of(int64_t step, size_t micro_batch) {
  return (images_of(step, micro_batch).flatten(1).sum(1) * 10).to(at::kLong).remainder(5);
}
inline at::Tensor loss_of(const at::Tensor& outputs, int64_t step, size_t micro_batch) {
  return at::cross_entropy_loss(outputs, labels_of(step, micro_batch));
}

inline double share_of(size_t micro_batch) {
  return static_cast<double>(kSamples[micro_batch]) /
         static_cast<double>(std::accumulate(kSamples.begin(), kSamples.end(), int64_t{0}));
}

}  // namespace lockstep::parallel
