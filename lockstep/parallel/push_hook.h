// A parameter server's push: each gradient goes to the rank that keeps its parameter, and to no other.
//
//   auto whole = optim::make_optimizer("adamw", net->parameters());
//   const std::vector<at::Tensor> parameters = whole->all_parameters();  // in its order, each once
//   std::vector<int64_t> elements;
//   for (const at::Tensor& each : parameters) elements.push_back(each.numel());
//   const auto owners = plan_servers(elements, std::min(2, world->size()), world->size());  // two servers
//   ShardedOptimizer optimizer(std::move(whole), world->communicator(), owners);
//   amp::MixedPrecision mixed({net.get()}, {optimizer}, {});
//   DistributedDataParallel ddp(net.ptr(), world, {.comm_hook = push_hook(parameters, owners)});
//   …
//   const auto result = ddp.run(step, batch, loss_of, mixed);
//   mixed.step(optimizer, result, {.max_norm = 1});
//
// The owner's sum has the bits of the fold, at any number of ranks. After run() other ranks have no gradient of it, and
// gradients are held (optim/held_gradient.h), for a clip by hand would know a part of the norm. Without `mixed`:
//
//   optimizer.update({.grad_multiplier = optim::clip_factor(std::sqrt(result.square_sum), /*max_norm=*/1)});
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "lockstep/parallel/comm_hook.h"

namespace lockstep::parallel {

// `owners`: by parameter, its rank. `parameters` are all that the network trains, and live as long as the hook does.
// Throws ConfigError for another number of owners, and for one parameter with two;
// wrapping a network with it throws one for an owner that is no rank, and where ranks name other owners.
std::shared_ptr<CommHook> push_hook(const std::vector<at::Tensor>& parameters, const std::vector<int>& owners);

}  // namespace lockstep::parallel
