// torch.nn.parallel.DistributedDataParallel's keywords and form, over lockstep/parallel.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/compat/torch/distributed.h"
#include "lockstep/parallel/distributed_data_parallel.h"

namespace lockstep::pytorch {

// A device, or the GPU of a number.
struct DeviceId {
  DeviceId(int number) : device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(number)) {}
  DeviceId(c10::Device of) : device(of) {}
  c10::Device device;
};

struct DistributedDataParallelOptions {
  std::vector<DeviceId> device_ids = {};       // none, or the one that the module is on: forward moves inputs there
  std::optional<DeviceId> output_device = {};  // forward moves outputs there; unset: they stay where they are
  bool broadcast_buffers = true;               // all ranks have rank 0's buffers after each step
  bool init_sync = true;                       // rank 0's parameters and buffers go to all ranks at construction
  distributed::Group process_group = {};       // the ranks that share gradients; the world by default
  std::optional<double> bucket_cap_mb = {};    // the size of every bucket in 2^20 bytes; unset: BucketOptions'
  bool find_unused_parameters = false;
  bool static_graph = false;

  // Taken without effect. PyTorch has none either for `dim` with one device a process, and for `check_reduction`.
  int dim = 0;
  bool check_reduction = false;
  bool gradient_as_bucket_view = false;  // where .grad can be a view of its bucket, it is
};

// The same in Lockstep's own options. Throws ConfigError for a bucket_cap_mb that is not above 0.
lockstep::parallel::DdpOptions resolve(const DistributedDataParallelOptions& options);

// Returns the device of device_ids, if any. Throws ConfigError for several, and for one that the module is not on.
std::optional<c10::Device> input_device(const DistributedDataParallelOptions& options, const torch::nn::Module& module);

// `Net`: a torch::nn::Module with a forward(). One thread.
//   pytorch::DistributedDataParallel ddp(net, {.device_ids = {0}});
//   loss(ddp(x), y).backward();
template <typename Net>
class DistributedDataParallel : public lockstep::parallel::DistributedDataParallel {
 public:
  // After init_process_group(). A collective of the group, as the base's. Throws ConfigError on a rank outside of it.
  explicit DistributedDataParallel(const torch::nn::ModuleHolder<Net>& module,
                                   const DistributedDataParallelOptions& options = {})
      : DistributedDataParallel(module.ptr(), options) {}
  explicit DistributedDataParallel(std::shared_ptr<Net> module, const DistributedDataParallelOptions& options = {})
      : lockstep::parallel::DistributedDataParallel((input_device(options, *module), module),
                                                    distributed::joined_world(options.process_group), resolve(options)),
        net_(std::move(module)),
        input_device_(input_device(options, *net_)),
        output_device_(options.output_device) {}

  // Calls the module's forward. Tensors among the inputs, and an output that is a tensor, are moved as the options say.
  template <typename... Inputs>
  auto forward(Inputs&&... inputs) {
    auto output = net_->forward(to_input_device(std::forward<Inputs>(inputs))...);
    if constexpr (std::is_same_v<decltype(output), at::Tensor>) {
      if (output_device_) return output.to(output_device_->device);
    }
    return output;
  }
  template <typename... Inputs>
  auto operator()(Inputs&&... inputs) {
    return forward(std::forward<Inputs>(inputs)...);
  }

 private:
  template <typename Input>
  decltype(auto) to_input_device(Input&& input) const {
    if constexpr (std::is_same_v<std::decay_t<Input>, at::Tensor>) {
      return input_device_ ? input.to(*input_device_) : input;
    } else {
      return std::forward<Input>(input);
    }
  }

  std::shared_ptr<Net> net_;
  std::optional<c10::Device> input_device_;
  std::optional<DeviceId> output_device_;
};

}  // namespace lockstep::pytorch
