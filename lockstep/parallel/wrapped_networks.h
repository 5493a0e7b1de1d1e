// The networks that are wrapped in DistributedDataParallel, of which a step may use several: a GAN's discriminator
// takes part in the steps of its generator.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "lockstep/parallel/buffer_keeper.h"
#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/sync_group.h"
#include "lockstep/world/world.h"

namespace lockstep::parallel {

// A wrapped network, registered for the process as long as the object lives.
class WrappedNetwork {
 public:
  // A module that is wrapped already, or one with the same parameters, is wrapped anew, and the wrapper before is left
  // out from then on. Throws ConfigError for a parameter that another module shares which is wrapped.
  WrappedNetwork(std::shared_ptr<World> world, const torch::nn::Module& module, BufferKeeper& buffers,
                 std::shared_ptr<SyncGroup> sync);
  ~WrappedNetwork();
  // Throws as the constructor does; nothing is registered.
  static void check(const torch::nn::Module& module);
  WrappedNetwork(const WrappedNetwork&) = delete;
  WrappedNetwork& operator=(const WrappedNetwork&) = delete;

  // False once the module has been wrapped anew.
  bool is_registered() const;
  // The number of the network among those of its world, from 0. One that is wrapped anew keeps its number.
  uint32_t number() const { return number_; }
  BufferKeeper& buffers() const { return buffers_; }
  const std::shared_ptr<SyncGroup>& sync() const { return sync_; }
  const torch::nn::Module& module() const { return module_; }
  bool is_of(const World& world) const { return world_.get() == &world; }

  // Whether it is a parameter that required a gradient when the module was wrapped.
  bool shares(const at::Tensor& parameter) const;

  // The networks of this one's world, in the order of their numbers.
  std::vector<WrappedNetwork*> all() const;

  // Throws ConfigError for a parameter that requires a gradient now and did not when the module was wrapped.
  void check_parameters() const;

  // Whether a step of lanes is under way in which this network takes part.
  void set_in_step(bool in_step) { in_step_ = in_step, in_function_ = false; }
  bool is_in_step() const { return in_step_; }
  // Whether the lane under way is in the step's function, rather than in the backward that follows it.
  void set_in_function(bool in_function) { in_function_ = in_function; }
  bool is_in_function() const { return in_function_; }

  // Takes all gradients out of .grad, and puts them back in place of those that a step of other networks has left.
  void set_gradients_aside();
  void put_gradients_back() noexcept;
  // Adds the parameters that have a gradient, between the two.
  void add_reached(std::unordered_set<const c10::TensorImpl*>& reached) const;
  bool is_set_aside() const { return !aside_.empty(); }

  // Whether gradients of a pass without sync wait for one that folds.
  void set_unfolded(bool unfolded) { unfolded_ = unfolded; }
  bool is_unfolded() const { return unfolded_; }

 private:
  static WrappedNetwork* wrapped_before(const torch::nn::Module& module);

  std::shared_ptr<World> world_;
  const torch::nn::Module& module_;
  std::vector<NamedParameter> parameters_;              // that required a gradient
  std::unordered_set<const c10::TensorImpl*> wrapped_;  // of them
  BufferKeeper& buffers_;
  std::shared_ptr<SyncGroup> sync_;
  uint32_t number_ = 0;
  std::vector<at::Tensor> aside_;  // by parameter
  bool in_step_ = false, in_function_ = false, unfolded_ = false;
};

// The buffers of all wrapped networks of a world, of the layers that are in training mode: a BatchNorm there writes to
// its own.
std::vector<at::Tensor> training_buffers(const World& world);

// Whether it is a trained parameter of a wrapped network of any world.
bool is_wrapped(const at::Tensor& parameter);

// Whether one of these parameters belongs to a wrapped network whose gradients are unfolded.
bool are_unfolded(const std::vector<at::Tensor>& parameters);

}  // namespace lockstep::parallel
