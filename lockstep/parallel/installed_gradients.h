// The gradients that a fold has written to .grad, to be told from others that are there when the next step begins.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <vector>

#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

class InstalledGradients {
 public:
  static constexpr int64_t kNoNumber = -1;        // of passes by hand
  static constexpr int64_t kBeforeWrapping = -2;  // of what is there when the network is wrapped

  static constexpr int kNoLoss = -1;  // of none of MixedPrecision's losses

  // Begins with the first parameter's gradient of step `number`, of loss `loss_id`.
  void begin(int64_t number, int loss_id = kNoLoss);
  void add(const NamedParameter& parameter, const at::Tensor& gradient);

  int64_t number() const { return number_; }  // of the step
  // Whether `gradient` is the one that was installed for parameter `index`.
  bool has(size_t index, const at::Tensor& gradient) const;
  // No longer counts the parameter's .grad as installed, which backward has added to: it is this rank's alone, in
  // memory of its own.
  void leave_to_rank(size_t index, const at::Tensor& parameter);
  // Whether the parameter was updated before step `number`, or the gradient is all 0. Throws ConfigError where the
  // parameter was written to between two runs of one step, whose gradients add up unless that was an update.
  bool is_used(size_t index, const NamedParameter& parameter, const at::Tensor& gradient, int64_t number) const;
  // Throws ConfigError: it is still there in step `number`, and was not used.
  [[noreturn]] void refuse_unused(const NamedParameter& parameter, int64_t number) const;
  // Throws ConfigError unless those of loss `loss_id` of step `number`, with a scale of its own, may be added to them.
  void check_loss(int loss_id, int64_t number) const;

 private:
  struct Installed {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> gradient;
    int64_t version;  // of the parameter
  };

  std::vector<Installed> installed_;  // by parameter
  int64_t number_ = kNoNumber;
  int loss_id_ = kNoLoss;
};

// Throws ConfigError unless a gradient in .grad has the loss scale of those that are about to be added to it.
void check_scale(const NamedParameter& parameter, double there, double added);

}  // namespace lockstep::parallel
