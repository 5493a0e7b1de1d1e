// The networks of `bench step`, and data of their shapes.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/apps/commands/bench_command.h"
#include "lockstep/nn/staged.h"

namespace lockstep::worker {

struct BenchNetwork {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::function<std::vector<nn::Layer>()> layers;
  at::Tensor images;  // [N, channels, H, W], with the samples of all replicas of a process
  at::Tensor labels;  // int64 [N], or [N, H, W] for a network that labels pixels
  int64_t classes = 0;
};

BenchNetwork make_bench_network(const apps::BenchOptions& options);

}  // namespace lockstep::worker
