// The gradients of a stage's weights around the runs of a pipeline, by the rules that DistributedDataParallel has:
// those of one step's runs add up, and what an update has used is dropped.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/amp/gradient_marks.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/installed_gradients.h"

namespace lockstep::parallel {

// One thread.
class StageGradients {
 public:
  // Those of the weights that require one now, each once.
  explicit StageGradients(const torch::nn::Module& stage);

  const std::vector<at::Tensor>& weights() const { return weights_->all(); }
  amp::GradientMarks marks() const { return amp::GradientMarks({weights_}); }
  // A number that differs once a backward has added to .grad.
  uint64_t writes() const;
  bool has(const at::Tensor& weight) const { return weights_->find(weight) >= 0; }
  // Throws ConfigError where other weights of the stage require a gradient than at the beginning.
  void check_weights(const torch::nn::Module& stage, const std::string& whose) const;

  // Begins a run: what is in .grad is set aside, or dropped where it is zero, or an update has used it, or its step was
  // skipped. Throws ConfigError, with .grad as it was, for that of another step that nobody has used, or of another
  // loss or scale; with replicas for any other that no run has left, for it would not be folded.
  void begin(int64_t step, int loss_id, double loss_scale, bool has_replicas);
  // Replaces each by the sum over all replicas. Throws ConfigError for one that is sparse or missing.
  void fold(comm::Communicator& replicas, const std::string& label) const;
  // Adds what was set aside, and holds all of them (optim/held_gradient.h).
  void install();
  // Ends the run. `square_sum`: over all stages.
  void end(double square_sum);
  // Gives .grad back what was there before a run that has failed.
  void restore() noexcept;

 private:
  enum class Fate { kAside, kDropped };
  Fate fate_of(size_t index, bool has_replicas) const;

  std::vector<NamedParameter> parameters_;
  std::shared_ptr<const amp::MarkedWeights> weights_;  // the same
  std::vector<at::Tensor> aside_;                      // by weight, during a run
  InstalledGradients installed_;
  double square_sum_ = 0;  // of the last run

  int64_t step_ = 0;  // of the run
  int loss_id_ = InstalledGradients::kNoLoss;
  double loss_scale_ = 1;
};

}  // namespace lockstep::parallel
