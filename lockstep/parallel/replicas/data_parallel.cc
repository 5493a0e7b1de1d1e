#include "lockstep/parallel/replicas/data_parallel.h"

#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <torch/cuda.h>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

at::Device device_of(const torch::nn::Module& network) {
  for (const at::Tensor& parameter : network.parameters()) return parameter.device();
  return at::kCPU;
}

std::vector<at::Device> devices_for(const torch::nn::Module& network, const std::vector<at::Device>& asked) {
  if (!asked.empty()) return asked;
  std::vector<at::Device> devices;
  for (c10::DeviceIndex i = 0; i < torch::cuda::device_count(); ++i) {
    devices.emplace_back(at::kCUDA, i);
  }
  if (devices.empty()) devices.push_back(device_of(network));
  return devices;
}

}  // namespace

std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& network, const at::Device& device) {
  try {
    return network.clone(device);
  } catch (const c10::Error& error) {
    throw ConfigError(
        "DataParallel: ", network.name(),
        " can't be cloned; derive it from torch::nn::Cloneable, or give DataParallel a function that makes "
        "another one (",
        error.what_without_backtrace(), ")");
  }
}

Scatterer::Scatterer(const std::shared_ptr<torch::nn::Module>& network, const ReplicaSet::Make& make,
                     const DataParallelOptions& options)
    : options_(options) {
  options_.device_ids = devices_for(*network, options.device_ids);
  const at::Device first = options_.device_ids[0], own = device_of(*network);
  if (first != own) {
    throw ConfigError("DataParallel: ", network->name(), " is on ", own.str(), " and its first replica is to be on ",
                      first.str(), "; move the network there");
  }
  if (!options_.output_device) options_.output_device = first;
  replicas_ = std::make_shared<ReplicaSet>(network, make, options_.device_ids,
                                           ReplicaSetOptions{.sync = options_.sync_batch_norm});
}

// By replica, then input.
std::vector<Scatterer::Tensors> Scatterer::scattered(const Tensors& inputs) const {
  const int64_t dim = options_.dim;
  int64_t samples = -1;
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) continue;
    if (dim >= input.dim() || dim < -input.dim()) {
      throw ConfigError("DataParallel: an input has no dimension ", dim, " to be scattered in");
    }
    if (samples < 0) samples = input.size(dim);
    if (input.size(dim) == samples) continue;
    throw ConfigError("DataParallel: inputs of ", samples, " and of ", input.size(dim),
                      " samples; pass what all replicas need as a value that is no tensor");
  }
  if (samples < 0) throw ConfigError("DataParallel: forward has no tensor that could be scattered");
  if (samples == 0) throw ConfigError("DataParallel: a batch of no samples");
  const auto devices = static_cast<int64_t>(options_.device_ids.size());
  const int64_t each = (samples + devices - 1) / devices;  // at::chunk's
  std::vector<Tensors> parts(static_cast<size_t>((samples + each - 1) / each));
  for (const at::Tensor& input : inputs) {
    const std::vector<at::Tensor> chunks = input.defined() ? input.split(each, dim) : Tensors(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].push_back(chunks[i].defined() ? chunks[i].to(options_.device_ids[i]) : at::Tensor());
    }
  }
  return parts;
}

at::Tensor Scatterer::gathered(const Tensors& parts) const {
  Tensors here;
  for (const at::Tensor& part : parts) here.push_back(part.to(*options_.output_device));
  return here[0].dim() == 0 ? at::stack(here) : at::cat(here, options_.dim);
}

Scatterer::Tensors Scatterer::run(
    const Tensors& inputs, const std::function<Tensors(torch::nn::Module& replica, const Tensors& inputs)>& forward) {
  const std::vector<Tensors> parts = scattered(inputs);
  const std::vector<Tensors> outputs = replicas_->run(parts.size(), parts, forward);
  Tensors all;
  for (size_t k = 0; k < outputs[0].size(); ++k) {
    Tensors of_replicas;
    for (const Tensors& own : outputs) of_replicas.push_back(own[k]);
    all.push_back(gathered(of_replicas));
  }
  return all;
}

}  // namespace lockstep::parallel
