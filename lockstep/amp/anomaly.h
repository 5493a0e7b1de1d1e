// Where the first value that is not finite came from: the layer and the operator, in forward and in backward.
#pragma once

#include <ATen/record_function.h>
#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>

namespace lockstep::amp {

namespace internal {
class AnomalySearch;
}

// While it lives, looks at what every operator on this thread returns, and remembers the first that returned NaN or
// infinity from finite inputs. It sees libtorch's layers, ours and plain functions alike, for it watches the
// dispatcher (at::RecordFunction); values that code without operators wrote are noticed by the operator that reads
// them next, and named by the layer that allocated them. Backward is watched where it runs on this thread: on the CPU.
// An infinity that was asked for (masked_fill with -inf) is no anomaly. A watch within another on the same thread is
// that one again. The module outlives it. Costs a pass over each operator's results.
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
  std::optional<at::CallbackHandle> callback_;  // none within another watch
};

}  // namespace lockstep::amp
