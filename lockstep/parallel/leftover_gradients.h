// The gradients that are in .grad when a step of lanes begins, and to which it adds (Reducer::begin_step()).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::parallel {

// Parameters are numbered from 0. An undefined tensor stands for no gradient.
class LeftoverGradients {
 public:
  void begin_step(size_t parameters);  // forgets those of the step before
  void clear() noexcept;

  // A gradient that all ranks have alike. It owns its memory, or is sparse; add_common() adds it to the folded one.
  void set_common(size_t parameter, at::Tensor gradient) { common_[parameter] = std::move(gradient); }
  // This rank's own, which the step adds to that of its first lane.
  void set_local(size_t parameter, at::Tensor gradient) { local_[parameter] = std::move(gradient); }

  at::Tensor local(size_t parameter) const { return parameter < local_.size() ? local_[parameter] : at::Tensor(); }
  std::vector<size_t> local_ones() const;  // the parameters that have one
  // Adds those that all ranks have to the folded gradients, by parameter. Returns whether there are any.
  bool add_common(std::vector<at::Tensor>& gradients) const;

 private:
  std::vector<at::Tensor> common_, local_;  // by parameter; empty in passes by hand
};

}  // namespace lockstep::parallel
