// Copies of a network that compute parts of one batch at the same time, and one graph of all of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/parallel/replicas/replica_exchange.h"
#include "lockstep/parallel/replicas/replica_threads.h"

namespace lockstep::parallel {

struct ReplicaSetOptions {
  bool sync = false;  // BatchNorm's statistics are those of the whole batch
  // Whether the replicas' gradients of 16 bits add up as DistributedDataParallel's lanes do, to the same bits: each sum
  // is rounded. Else they add up in fp32.
  bool as_lanes = false;
};

// Used by one thread. On the device of the network a replica's parameters are the network's memory; elsewhere, and so
// for buffers, they are copied before each forward. Replica 0 keeps what a forward writes into buffers; what others
// write is dropped.
class ReplicaSet : public std::enable_shared_from_this<ReplicaSet> {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Make = std::function<std::shared_ptr<torch::nn::Module>(const at::Device&)>;

  // `make` gives a copy of the network on a device, and may give it other values. Throws ConfigError where a copy has
  // other parameters or buffers than the network.
  ReplicaSet(std::shared_ptr<torch::nn::Module> network, const Make& make, std::vector<at::Device> devices,
             ReplicaSetOptions options = {});

  // Calls forward(replica, i) for 0 <= i < count, on as many threads, and returns the outputs by replica. Their graph
  // ends in `inputs` (of which forward is to use what take() gives it) and in the network's parameters; its backward
  // runs on the threads, too, and adds the replicas' gradients in the order of the fold's tree (comm/fold_tree.h).
  // Operations on the CPU draw from generators of the replicas' own, which one number of libtorch's generator keys.
  // What a replica throws names it.
  std::vector<Tensors> run(size_t count, const std::vector<Tensors>& inputs,
                           const std::function<Tensors(torch::nn::Module& replica, const Tensors& inputs)>& forward);

  const std::vector<at::Device>& devices() const { return devices_; }

 private:
  friend struct ReplicaCall;
  // How a forward found the network.
  struct Modes {
    std::vector<bool> trained;   // by parameter: it requires a gradient
    std::vector<bool> training;  // by part
  };
  struct Replica {
    std::shared_ptr<torch::nn::Module> module;
    Tensors parameters, buffers;  // as the network's
    std::vector<std::shared_ptr<torch::nn::Module>> parts;
  };

  Replica make_replica(const Make& make, size_t number) const;
  void check_network() const;
  void refresh(size_t count);
  Modes modes() const;
  void set_modes(size_t count, const Modes& modes);
  void compute(size_t count, const std::function<void(size_t)>& work);

  std::shared_ptr<torch::nn::Module> network_;
  std::vector<at::Device> devices_;
  ReplicaSetOptions options_;
  std::shared_ptr<ReplicaExchange> exchange_;  // null without sync
  Tensors parameters_, buffers_;               // the network's
  std::vector<std::shared_ptr<torch::nn::Module>> parts_;
  std::vector<Replica> replicas_;
  Modes modes_;  // the replicas'
  ReplicaThreads threads_;
};

}  // namespace lockstep::parallel
