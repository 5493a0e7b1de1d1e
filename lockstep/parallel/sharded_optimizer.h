// An optimizer whose state is sharded: each rank updates its slice of the weights and keeps the state of that slice
// alone (ZeRO stage 1: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
// 2020). It gives the same bits as the whole optimizer, at any number of ranks.
//
// Where all ranks can share CPU memory (one node), the weights themselves exist once: every rank's parameters are rank
// 0's memory, and an update costs no communication but two barriers. Elsewhere, and on GPUs, the updated slices are
// gathered, for which an update takes as much memory as the weights have, and a slice of it more.
//
//   DistributedDataParallel ddp(net, world);  // first: it checks that all ranks hold the same model
//   ShardedOptimizer optimizer(optim::make_optimizer("adamw", net->parameters()), world->communicator());
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/optim/fused_optimizer.h"

namespace lockstep::parallel {

// Parameters must be dense, on one device, and keep their memory format from here on. Other writes to shared weights
// (loading, initialising) are done by one rank, between barriers; all ranks' masters follow them at the next update.
// Each rank has its own buffers. Used by one thread.
class ShardedOptimizer final : public optim::AnyOptimizer {
 public:
  // Takes over the groups, options and state of `whole`, which is the same on all ranks and keeps no average yet. All
  // ranks get rank 0's weights and masters. It may be made before or after the model is wrapped for data parallelism.
  // `comm` outlives this. A collective. Throws ConfigError for an optimizer whose elements depend on each other, for
  // parameters with gaps or on several devices, and for those on GPUs where `comm` moves CPU memory alone.
  //
  // Shared parameters stay in rank 0's memory, also after this is destroyed. The memory stays mapped as long as a
  // parameter holds it, and keeps its values as long as rank 0 keeps its parameters.
  //
  // `owners`: by parameter, the rank that has all of it, and without which nobody need have its gradient; each rank's
  // own have one at each update. Empty: each rank has its slice of all parameters (shard_plan.h). One for each of
  // `whole`'s parameters, of which one with several names is one.
  ShardedOptimizer(std::unique_ptr<optim::FusedOptimizer> whole, comm::Communicator& comm,
                   const std::vector<int>& owners = {});

  // Whether the weights exist once for all ranks.
  bool shares_weights() const { return shared_; }

  std::string_view name() const override { return slices_->name(); }
  std::vector<at::Tensor> all_parameters() const override;
  bool has_stepped() const override { return slices_->has_stepped(); }
  void follow_parameters() override;
  void set_lr(double lr) override { slices_->set_lr(lr); }
  std::vector<double> lr_scales() const override { return slices_->lr_scales(); }
  void set_momentum(double momentum) override { slices_->set_momentum(momentum); }
  double lr() const override { return slices_->lr(); }

  // Updates the weights by .grad, which holds the folded gradients, equal on all ranks. It waits until every rank has
  // called it, so that no rank computes with the old weights any more, and returns when all weights are new. Drops
  // autocast's cached casts. A collective. Throws ConfigError where a parameter has been given other memory since, as
  // torch::load, to() and set_data() do, and where an owner has no gradient.
  void update(const optim::Update& update) override;

  // What this rank has of state_dict(), masters() and averages(), which are collectives where this is none. A tensor
  // that the ranks have together is one of the device meta, with the whole one's sizes, strides and dtype, and this
  // rank's part of it, a row of the elements from `first` on in their memory, is among the slices. The next update
  // changes them.
  struct Slice {
    at::Tensor whole, own;
    int64_t first = 0;
  };
  struct OwnParts {
    optim::OptimizerState state;
    std::vector<at::Tensor> masters, averages;
    std::vector<Slice> slices;
  };
  OwnParts own_parts() const;

  // The ranks on which state_dict(), masters() and averages() are whole; rank 0 unless this is called. In ascending
  // order, the same on all ranks. Each takes the memory of the whole state then.
  void gather_on(std::vector<int> ranks);

  optim::OptimizerState state_dict() const override;
  void load_state_dict(const optim::OptimizerState& state, std::span<const std::string> names = {}) override;

  void keep_average(double decay) override;
  bool keeps_average() const override { return slices_->keeps_average(); }
  std::vector<at::Tensor> averages() const override;
  void load_averages(const std::vector<at::Tensor>& averages) override;
  void exchange_averages() override;
  bool has_exchanged_averages() const override { return slices_->has_exchanged_averages(); }

  void keep_masters() override { slices_->keep_masters(); }
  std::vector<at::Tensor> masters() const override;
  void load_masters(const std::vector<at::Tensor>& masters) override;

 private:
  struct Shard {
    at::Tensor parameter;
    size_t group = 0;              // of the optimizer
    std::vector<int64_t> bounds;   // plan_shards()
    at::Tensor slice;              // this rank's elements, a view of the parameter's memory
    const void* memory = nullptr;  // of the parameter, when its slice was cut
  };

  void share_weights();
  void cut_slices(const optim::FusedOptimizer& whole);
  void take_state(const optim::FusedOptimizer& whole);
  at::Tensor slice_of(const Shard& shard, const at::Tensor& laid_out) const;
  at::Tensor gathered(const Shard& shard, const at::Tensor& slice) const;
  at::Tensor gathered_on(int root, const Shard& shard, const at::Tensor& slice) const;
  bool gathers() const;
  std::vector<at::Tensor> gathered(std::vector<at::Tensor> slices) const;
  std::vector<at::Tensor> scattered(const char* what, std::vector<at::Tensor> whole) const;
  void check_memory() const;
  void update_slices(const optim::Update& update);
  void tell_writes();
  void follow_writes();
  void begin_writing();
  void end_writing();
  void gather_weights();

  comm::Communicator& comm_;
  bool has_owners_;
  std::vector<Shard> shards_;                      // by parameter, numbered through all groups
  std::unique_ptr<optim::FusedOptimizer> slices_;  // the optimizer over the slices; some slices may be empty
  bool shared_ = false;
  // Of shared weights: by rank and parameter, in memory of all ranks, whether that rank has written it since the last
  // update. Only the writer's process counts the versions of its tensor.
  at::Tensor written_;
  std::vector<uint32_t> versions_;  // by parameter, after the last update
  std::optional<double> average_decay_;
  std::vector<int> gathered_on_ = {0};
};

}  // namespace lockstep::parallel
