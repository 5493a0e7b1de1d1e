// The hooks that backward calls after it has accumulated a parameter's gradient in .grad.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

class GradientHooks {
 public:
  // Called on backward's thread with the parameter's number in the list that the constructor gets.
  using OnGradient = std::function<void(size_t parameter)>;

  // Hooks of another object of this class are replaced. A parameter that requires no gradient keeps a hook that it got
  // while it did, or of the user's: it belongs to another network, too. Throws ConfigError for one that requires a
  // gradient and has a post-accumulate-grad hook of the user's.
  GradientHooks(std::vector<NamedParameter> parameters, OnGradient on_gradient);
  ~GradientHooks();  // removes the hooks that have not been replaced
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  class Hook;

  std::vector<NamedParameter> parameters_;
  OnGradient on_gradient_;
};

}  // namespace lockstep::parallel
