// BatchNorm (Ioffe and Szegedy, 2015) together with what follows it, a residual and an activation: y = act(bn(x) + r).
// Forward reads x twice and writes y, backward reads dy and x twice and writes dx; libtorch's three layers go over
// memory about three times as often.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>

#include "lockstep/nn/activation.h"

namespace lockstep::nn {

// Of one input's channels: how many values each has, their mean and the sum of their squared deviations. fp64 [C] each,
// on the input's device.
struct Moments {
  int64_t count = 0;
  at::Tensor mean, m2;
};

// Joins what BatchNorm takes over its batch with other lanes' parts of the same batch (SyncBatchNorm). Called in the
// forward, and in the backward, of each use, in the order of the uses; from the thread that runs them.
class StatisticsExchange {
 public:
  virtual ~StatisticsExchange() = default;
  virtual Moments join(const Moments& own) = 0;       // forward: of all lanes; own.count is 0 where there are no values
  virtual at::Tensor add(const at::Tensor& own) = 0;  // backward: fp64 [2, C], Σdy and Σdy·x̂ of own values -> of all
  virtual bool keeps_statistics() const = 0;  // whether this use updates the running ones: one lane of a process does
};

// weight, bias: [C] or undefined (1 and 0). running_mean, running_var: [C], or undefined where none are kept; eval mode
// (not training) normalises by them if there are any, else by the batch.
struct BatchNormArguments {
  at::Tensor weight, bias, running_mean, running_var;
  bool training = true;
  double momentum = 0.1;  // what share of the running statistics a batch replaces
  double eps = 1e-5;
};

// x: [N, C], [N, C, L], [N, C, H, W] or [N, C, D, H, W] of fp32, bf16, fp16 or fp64; any device. The result has its
// shape, dtype and memory format. residual: like x, or undefined. Differentiable once, by x, weight, bias and residual;
// the activation's derivative is taken before y is rounded where there is no residual. Updates running statistics (the
// variance unbiased) in place. Gradients of weight and bias are of own values alone, as is data parallelism's way.
// CPU tensors whose channels lie innermost (channels_last, or [N, C]) go through kernels of ours, whose sums are
// bitwise the same at any number of threads; a second derivative through those, or with an exchange, is a BugError.
// Throws DataError where training has one value a channel (over all lanes), or shapes don't fit.
at::Tensor batch_norm(const at::Tensor& x, const BatchNormArguments& arguments,
                      Activation activation = Activation::kNone, const at::Tensor& residual = {},
                      std::shared_ptr<StatisticsExchange> exchange = nullptr);

// torch::nn::BatchNorm2d, of the same state and options, whose forward takes what follows along.
class BatchNorm2dImpl : public torch::nn::BatchNorm2dImpl {
 public:
  using torch::nn::BatchNorm2dImpl::BatchNorm2dImpl;
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::kNone, const at::Tensor& residual = {});
  // For the uses from now on; nullptr: statistics of the batch alone.
  void set_exchange(std::shared_ptr<StatisticsExchange> exchange) { exchange_ = std::move(exchange); }
  const std::shared_ptr<StatisticsExchange>& exchange() const { return exchange_; }
  // Without the exchange.
  std::shared_ptr<torch::nn::Module> clone(const std::optional<at::Device>& device = std::nullopt) const override;

 private:
  double next_momentum();

  std::shared_ptr<StatisticsExchange> exchange_;
};
TORCH_MODULE(BatchNorm2d);

}  // namespace lockstep::nn
