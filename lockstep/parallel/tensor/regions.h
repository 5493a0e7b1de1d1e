// Where a network's activations change between being equal on all ranks and being divided among them, as functions that
// autograd knows. Layers whose weights are divided are made of these (layers.h), and so are branches of a network that
// different ranks compute.
//
// The functions are those of Megatron-LM (Shoeybi et al., "Megatron-LM: training multi-billion parameter language
// models using model parallelism", 2019), where enter() is f and leave() is g. All ranks of `comm`, which outlives the
// graph, call them in the same order; each is a collective in its forward or in its backward. Sums add in the order of
// the fold's tree, those of 16-bit values in fp32. Derivatives of derivatives are right as well.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/comm/communicator.h"

namespace lockstep::parallel::tensor {

// Begins what each rank computes by itself from a tensor that is equal on all ranks: returns it, and in backward the
// sum of all ranks' gradients goes on.
at::Tensor enter(const at::Tensor& equal, comm::Communicator& comm);
// Ends it: returns the sum of all ranks' tensors, and in backward the gradient goes on to each.
at::Tensor leave(const at::Tensor& partial, comm::Communicator& comm);

// This rank's part of a tensor that is equal on all ranks: a dimension is divided. In backward the parts of all ranks'
// gradients are joined. Throws ConfigError where the dimension is no multiple of the number of ranks.
at::Tensor take_part(const at::Tensor& equal, int64_t dim, comm::Communicator& comm);
// Joins the parts. In backward each rank goes on with its part of the gradient, which is equal on all ranks.
at::Tensor join_parts(const at::Tensor& part, int64_t dim, comm::Communicator& comm);

}  // namespace lockstep::parallel::tensor
