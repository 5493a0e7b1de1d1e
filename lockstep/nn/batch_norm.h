// BatchNorm (Ioffe and Szegedy, 2015) fused with a residual and an activation: y = act(bn(x) + r). Forward reads x
// twice and writes y; backward reads dy and x twice and writes dx. libtorch's three layers go over memory about three
// times as often.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>

#include "lockstep/nn/activation.h"

namespace lockstep::nn {

// The moments of one input's channels: the number of values of each, fp64 [1], their means and the sums of their
// squared deviations, fp64 [C]. All are on the input's device, so that nothing waits for it.
struct Moments {
  at::Tensor count, mean, m2;
};

// Joins BatchNorm's statistics with those of other lanes, which hold other parts of the same batch (SyncBatchNorm).
// Each use of a layer calls it in the forward and in the backward, in the order of the uses, on the thread that runs
// them.
class StatisticsExchange {
 public:
  virtual ~StatisticsExchange() = default;
  // In the forward: the moments over all lanes. own.count holds 0 where a lane has no values.
  virtual Moments join(const Moments& own) = 0;
  // In the backward: the sum over all lanes of fp64 [2, C], which is Σdy and Σdy·x̂ of a lane's own values.
  virtual at::Tensor add(const at::Tensor& own) = 0;
  // Whether this use updates the running statistics: one lane of each process does.
  virtual bool keeps_statistics() const = 0;
};

// weight, bias: [C], or undefined (1 and 0). running_mean, running_var: [C], or undefined where none are kept. Eval
// mode (not training) normalises by the running statistics if there are any, else by the batch's.
struct BatchNormArguments {
  at::Tensor weight, bias, running_mean, running_var;
  bool training = true;
  double momentum = 0.1;  // the share of the running statistics that a batch replaces
  double eps = 1e-5;
};

// x: [N, C], [N, C, L], [N, C, H, W] or [N, C, D, H, W] of fp32, bf16, fp16 or fp64, on any device. residual: like x,
// or undefined. The result has x's shape, dtype and memory format. Updates the running statistics (the variance
// unbiased) in place.
//
// Differentiable by x, weight, bias and residual. On the CPU and without a residual the activation's derivative is
// taken before y is rounded. The gradients of weight and bias cover the lane's own values alone, as data parallelism
// expects.
//
// CPU tensors whose channels lie innermost (channels_last, or [N, C]) go through our own kernels, whose sums are
// bitwise the same at any number of threads. On other devices an exchange's statistics are fp32 (device_passes.h), and
// nothing waits for the device. A backward that is to be differentiated itself (create_graph) is made of
// libtorch's operations; with an exchange it is that of the joined batch. Throws DataError where training has one value
// a channel (over all lanes), or shapes don't fit.
at::Tensor batch_norm(const at::Tensor& x, const BatchNormArguments& arguments,
                      Activation activation = Activation::kNone, const at::Tensor& residual = {},
                      std::shared_ptr<StatisticsExchange> exchange = nullptr);

// torch::nn::BatchNorm2d with the same state and options, whose forward also takes an activation and a residual.
class BatchNorm2dImpl : public torch::nn::BatchNorm2dImpl {
 public:
  using torch::nn::BatchNorm2dImpl::BatchNorm2dImpl;
  at::Tensor forward(const at::Tensor& x, Activation activation = Activation::kNone, const at::Tensor& residual = {});
  // Sets the exchange for all later uses; nullptr: each normalises by its own batch alone.
  void set_exchange(std::shared_ptr<StatisticsExchange> exchange) { exchange_ = std::move(exchange); }
  const std::shared_ptr<StatisticsExchange>& exchange() const { return exchange_; }
  // A copy without the exchange.
  std::shared_ptr<torch::nn::Module> clone(const std::optional<at::Device>& device = std::nullopt) const override;

 private:
  double next_momentum();

  std::shared_ptr<StatisticsExchange> exchange_;
};
TORCH_MODULE(BatchNorm2d);

}  // namespace lockstep::nn
