// Gradients that an optimizer must not take as they are: those that still hold a loss scale, that are not finite, that
// belong to fp32 masters, or of which each rank has some alone. They look like any others, so libtorch's optimizers and
// clip_grad_norm_ would use them.
//
// A held gradient can be found, moved and dropped, but operators on it throw ConfigError, whoever calls them. It is
// marked by a dispatch key that libtorch leaves to code outside of it; operators on other tensors take no notice.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <string_view>

namespace lockstep::optim {

struct Hold {
  const char* why;        // the reason and the remedy, for the error: "is not finite; do …"; outlives the gradient
  double loss_scale = 1;  // the factor that is in the gradient
  // Operators may read the gradient and change it in place, as clipping does. They must not write it, or a tensor
  // computed from it, into another tensor, as an optimizer does.
  bool readable = false;
  bool divided = false;  // each rank has the gradients of some parameters alone
};

// Holds a gradient, dense or sparse, from now on. zero_() and detach() still work, for zero_grad() calls them.
void hold(const at::Tensor& gradient, const Hold& hold);
// Makes it an ordinary gradient again. Does nothing for one that is not held.
void release(const at::Tensor& gradient);
// Returns nullptr for a gradient that is not held. The hold lives as long as the gradient is held.
const Hold* hold_of(const at::Tensor& gradient);

// Holds a gradient of a loss that was multiplied by `loss_scale`, unless that is 1.
void hold_scaled(const at::Tensor& gradient, double loss_scale);
// The factor that is in a gradient: 1 for one that is not held.
double loss_scale_of(const at::Tensor& gradient);
// Holds a gradient that this rank has alone, with its loss scale, 1 or another.
void hold_divided(const at::Tensor& gradient, double loss_scale);
// Throws ConfigError that begins with `user` for a gradient that is held by another loss scale than the user takes out,
// or for another reason; for a divided one unless the user takes those.
void check_held(std::string_view user, const at::Tensor& gradient, double loss_scale, bool takes_divided = false);

// Within this scope operators take held gradients as any others. What they hold stays in them, so a step still takes
// the loss scale out: amp::MixedPrecision::unscale() is for code that changes gradients. This thread only; scopes nest.
class UseHeldGradients {
 public:
  UseHeldGradients();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace lockstep::optim
