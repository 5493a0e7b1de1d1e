// Whether a gradient may be written to in place: by this rank as it adds lanes, and by other ranks in a fold.
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::parallel {

// Returns whether nothing else can see the gradient's memory, and the gradient covers all of it in the layout of
// `like`. False for views, and for what the backward of cat returns.
bool owns_its_memory(const at::Tensor& gradient, const at::Tensor& like);

// Returns the gradient itself where it owns its memory; else a dense copy in the parameter's layout.
at::Tensor owned(at::Tensor gradient, const at::Tensor& parameter);

// Gives a parameter's .grad memory of its own, where it has another's: libtorch takes over what backward hands it,
// which may be one memory for several parameters, and would add the next pass to it once for each. Leaves sparse ones
// alone.
void own_gradient(const at::Tensor& parameter);

}  // namespace lockstep::parallel
