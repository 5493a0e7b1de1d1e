// Data parallelism in one process: each forward scatters its batch over replicas of the network, which compute at the
// same time, on several devices or on the cores of one CPU, and gathers what they return: torch.nn.DataParallel.
//
//   auto net = std::make_shared<Net>();
//   DataParallel<Net> parallel(net, {.device_ids = on_cpu(4)});
//   auto loss = at::cross_entropy_loss(parallel.forward(images), labels);
//   loss.backward();                                                    // the gradients are net's
//
// docs/choosing.md sets it beside DistributedDataParallel, which is faster.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/parallel/replicas/replica_set.h"

namespace lockstep::parallel {

struct DataParallelOptions {
  // A replica on each, the first one where the network is. Empty: all of the process's GPUs; without one, the
  // network's device alone.
  std::vector<at::Device> device_ids = {};
  std::optional<at::Device> output_device = {};  // unset: that of the first replica
  int64_t dim = 0;                               // in which inputs are scattered and outputs gathered
  bool sync_batch_norm = false;                  // BatchNorm's statistics are those of the whole batch
};

// So many replicas on the CPU.
inline std::vector<at::Device> on_cpu(size_t replicas) { return std::vector<at::Device>(replicas, at::kCPU); }

// Throws ConfigError for a class without clone().
std::shared_ptr<torch::nn::Module> clone_of(const torch::nn::Module& network, const at::Device& device);

// What DataParallel has to be without the network's type. Used by one thread.
class Scatterer {
 public:
  using Tensors = std::vector<at::Tensor>;

  // Throws ConfigError for a network that can't be copied, and for options that do not go together.
  Scatterer(const std::shared_ptr<torch::nn::Module>& network, const ReplicaSet::Make& make,
            const DataParallelOptions& options);

  // Calls forward for each replica with its part of the inputs: as many samples as at::chunk gives, so that small
  // batches have fewer replicas. Returns the gathered outputs. Throws ConfigError for inputs of different sizes.
  Tensors run(const Tensors& inputs,
              const std::function<Tensors(torch::nn::Module& replica, const Tensors& inputs)>& forward);

 private:
  std::vector<Tensors> scattered(const Tensors& inputs) const;
  at::Tensor gathered(const Tensors& parts) const;

  DataParallelOptions options_;
  std::shared_ptr<ReplicaSet> replicas_;
};

// `Net`: a torch::nn::Module whose forward() takes tensors, and other values that all replicas get, and returns a
// tensor, a vector of tensors or a tuple of them. Its module is called `module` in state dicts, as PyTorch's. The
// replicas' options (a rate of dropout) are those of the network when this was made; parameters, buffers, and whether
// it trains, those of each forward.
template <typename Net>
class DataParallel : public torch::nn::Module {
 public:
  // Copies the network by clone().
  explicit DataParallel(std::shared_ptr<Net> net, const DataParallelOptions& options = {})
      : DataParallel(
            net, [net](const at::Device& device) { return std::dynamic_pointer_cast<Net>(clone_of(*net, device)); },
            options) {}
  explicit DataParallel(const torch::nn::ModuleHolder<Net>& net, const DataParallelOptions& options = {})
      : DataParallel(net.ptr(), options) {}
  // `make` makes another network like it, of a class that has no clone().
  DataParallel(std::shared_ptr<Net> net, const std::function<std::shared_ptr<Net>(const at::Device&)>& make,
               const DataParallelOptions& options)
      : torch::nn::Module("DataParallel"),
        net_(register_module("module", std::move(net))),
        scatterer_(
            net_, [make](const at::Device& device) -> std::shared_ptr<torch::nn::Module> { return make(device); },
            options) {}

  template <typename... Inputs>
  auto forward(const Inputs&... inputs) {
    using Output = decltype(std::declval<Net&>().forward(inputs...));
    Scatterer::Tensors tensors;
    (take(inputs, tensors), ...);
    return as<Output>(scatterer_.run(tensors, [&](torch::nn::Module& replica, const Scatterer::Tensors& parts) {
      size_t next = 0;
      // A braced list evaluates in order.
      const std::tuple<Given<Inputs>...> own{part(inputs, parts, next)...};
      return flat(std::apply([&](const auto&... each) { return dynamic_cast<Net&>(replica).forward(each...); }, own));
    }));
  }
  template <typename... Inputs>
  auto operator()(const Inputs&... inputs) {
    return forward(inputs...);
  }

 private:
  template <typename Input>
  static constexpr bool kIsTensor = std::is_base_of_v<at::TensorBase, Input>;
  template <typename Input>
  using Given = std::conditional_t<kIsTensor<Input>, at::Tensor, Input>;

  template <typename Input>
  static void take(const Input& input, Scatterer::Tensors& tensors) {
    if constexpr (kIsTensor<Input>) tensors.push_back(input);
  }
  template <typename Input>
  static Given<Input> part(const Input& input, const Scatterer::Tensors& parts, size_t& next) {
    if constexpr (kIsTensor<Input>) {
      return parts[next++];
    } else {
      return input;
    }
  }
  static Scatterer::Tensors flat(at::Tensor output) { return {std::move(output)}; }
  static Scatterer::Tensors flat(Scatterer::Tensors outputs) { return outputs; }
  template <typename... Outputs>
  static Scatterer::Tensors flat(const std::tuple<Outputs...>& outputs) {
    return std::apply([](const auto&... each) { return Scatterer::Tensors{each...}; }, outputs);
  }
  template <typename Output>
  static Output as(Scatterer::Tensors tensors) {
    if constexpr (std::is_same_v<Output, at::Tensor>) {
      return std::move(tensors[0]);
    } else if constexpr (std::is_same_v<Output, Scatterer::Tensors>) {
      return tensors;
    } else {
      return [&]<size_t... I>(std::index_sequence<I...>) { return Output{std::move(tensors[I])...}; }
      (std::make_index_sequence<std::tuple_size_v<Output>>());
    }
  }

  std::shared_ptr<Net> net_;
  Scatterer scatterer_;
};

}  // namespace lockstep::parallel
