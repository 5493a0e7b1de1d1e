// Data parallelism in one process: its lanes are computed by replicas of the network, on threads.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/parallel/lane_generators.h"
#include "lockstep/parallel/replicas/replica_set.h"
#include "lockstep/train/form.h"
#include "lockstep/train/lane_loss.h"

namespace lockstep::train {

// A replica computes several lanes one after the other. On the CPU replicas share the network's weights; on GPUs each
// has one of its own.
class ReplicasForm final : public Form {
 public:
  static void check(const Parts& parts);  // throws ConfigError for what the form can't take
  explicit ReplicasForm(const Parts& parts);

  World::Lanes lanes() const override { return {0, parts_.plan.lanes}; }
  parallel::StepResult run(int64_t number, data::StepBatch& batch, double decision) override;
  void sync_buffers() override {}  // the network's are the first replica's
  std::string first_not_finite() const override;
  static std::string text(const Parts& parts);
  // Whether gradients add up to the bits of data parallelism's.
  static bool has_bits_of_lanes(const Parts& parts);

 private:
  size_t replicas() const { return replicas_->devices().size(); }
  const Model& model_of(const torch::nn::Module& replica) const;

  const Parts& parts_;
  LaneLoss loss_;
  std::vector<Model> models_;                          // of the replicas
  std::vector<parallel::LaneGenerators> gpu_numbers_;  // by replica: its GPU's; empty on the CPU
  std::shared_ptr<parallel::ReplicaSet> replicas_;
  std::shared_ptr<const amp::MarkedWeights> weights_;  // that are trained
};

}  // namespace lockstep::train
