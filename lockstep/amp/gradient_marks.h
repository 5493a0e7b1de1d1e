// What a step has left in the .grad of its weights, to tell later whether that is still there as it was.
//
// PyTorch's clip_grad_norm_ in libtorch multiplies .data(), which has a version of its own: so some elements are
// compared as well.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace lockstep::amp {

// The weights of a network, which stay the same from step to step. Immutable.
class MarkedWeights {
 public:
  explicit MarkedWeights(std::vector<at::Tensor> weights);

  const std::vector<at::Tensor>& all() const { return weights_; }
  // Returns the number of a weight; -1 for another tensor.
  int64_t find(const at::Tensor& weight) const;

 private:
  std::vector<at::Tensor> weights_;
  std::unordered_map<const c10::TensorImpl*, int64_t> numbers_;
};

// One thread. Copies share what they know. Keeps no gradient's memory.
class GradientMarks {
 public:
  // The present gradients of all weights of these networks.
  explicit GradientMarks(std::vector<std::shared_ptr<const MarkedWeights>> networks);

  enum class Found {
    kUnknown,  // it is no weight of these networks
    kNone,     // it had no gradient, and has none
    kSame,
    kChanged,  // another tensor, or written since: what operators write they count. Writing to .data() is seen on a
               // CPU, if it changes one of three elements
    kGone,
  };
  Found look_at(const at::Tensor& weight) const;
  // Whether any weight's gradient is not the same, but for weights whose change is `expected`.
  bool have_changed(const std::function<bool(const at::Tensor& weight)>& expected) const;
  // Whether the weight has a gradient, and it is the same.
  bool is_marked(const at::Tensor& weight) const { return weight.grad().defined() && look_at(weight) == Found::kSame; }

  // That of square_sum_of_gradients() over all networks.
  double square_sum(double loss_scale) const;
  // How many weights have a gradient.
  int64_t gradients() const;

 private:
  struct Mark {
    Found look_at(const at::Tensor& gradient) const;

    c10::weak_intrusive_ptr<c10::TensorImpl> gradient;  // its address is not used again while this lives
    uint32_t version;
    uint64_t samples;  // of some elements
  };
  std::vector<std::shared_ptr<const MarkedWeights>> networks_;
  std::shared_ptr<const std::vector<std::vector<Mark>>> marks_;  // by network and weight
};

// The sum of squares of the weights' present gradients, held ones too, in double, as if each were of a loss times
// `loss_scale`: some may be unscaled already. Waits for a device.
double square_sum_of_gradients(std::span<const at::Tensor> weights, double loss_scale);

}  // namespace lockstep::amp
