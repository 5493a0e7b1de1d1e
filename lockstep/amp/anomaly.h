// The search for the first value that is not finite: it names the layer and the operator, in forward and in backward.
#pragma once

#include <ATen/record_function.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>

namespace c10 {
class DebugInfoGuard;
}

namespace lockstep::amp {

namespace internal {
class AnomalySearch;
}

// Checks the results of every operator on this thread as long as it exists, and remembers the first operator that
// returned NaN or infinity from finite inputs. It sees libtorch's layers, this project's and plain functions alike,
// since it watches the dispatcher (at::RecordFunction). Values written by code without operators are noticed by the
// operator that reads them next, and are reported under the layer that allocated them. Backward is watched on whatever
// thread autograd runs it for this one, on a GPU as on the CPU. An infinity that was asked for (masked_fill with -inf)
// is no anomaly. A watch within another one on the same thread shares that one's search. The module outlives it. Costs
// a pass over each operator's results.
class AnomalyWatch {
 public:
  explicit AnomalyWatch(const torch::nn::Module& module);
  ~AnomalyWatch();
  AnomalyWatch(const AnomalyWatch&) = delete;
  AnomalyWatch& operator=(const AnomalyWatch&) = delete;

  // "layer3.0.conv1 (aten::conv2d)"; "aten::relu after layer3.0.bn1" for an operator without parameters; "the input";
  // "backward of layer3.0.conv1 (ConvolutionBackward0)". Nothing while all is finite.
  std::optional<std::string> found() const;

 private:
  std::shared_ptr<internal::AnomalySearch> search_;
  // None within another watch.
  std::unique_ptr<c10::DebugInfoGuard> info_;
  std::optional<at::CallbackHandle> callback_;
};

}  // namespace lockstep::amp
