#include "lockstep/amp/mixed_precision.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/amp/cast_model.h"
#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

const Options& checked(const Options& options) {
  if (options.num_losses < 1) throw ConfigError("amp: num_losses ", options.num_losses, ": expected 1 or more");
  return options;
}

}  // namespace

MixedPrecision::MixedPrecision(const std::vector<torch::nn::Module*>& models,
                               const std::vector<torch::optim::Optimizer*>& optimizers, const Options& options)
    : options_(checked(options)),
      policy_(make_policy(options)),
      device_(check_models(models)),
      initialized_(models),
      scalers_(static_cast<size_t>(options.num_losses), LossScaler(scaler_options(options))) {
  check_device(device_, policy_);
  check_optimizers(optimizers, models, policy_);
  if (policy_.cast_model) {
    for (auto* model : models) cast_model(*model, policy_.dtype, policy_.keep_batchnorm_fp32);
  }
  for (auto* optimizer : optimizers) optimizers_.emplace_back(*optimizer, policy_.master_weights);
}

at::Tensor MixedPrecision::cast_outputs(const at::Tensor& output) const {
  if (!output.is_floating_point()) return output;
  if (options_.cast_model_outputs) return output.to(*options_.cast_model_outputs);
  return policy_.casts() ? output.to(at::kFloat) : output;
}

at::Tensor MixedPrecision::cast_inputs(const at::Tensor& input) const {
  return policy_.cast_model && input.is_floating_point() ? input.to(policy_.dtype) : input;
}

StepReport MixedPrecision::step(const std::vector<torch::optim::Optimizer*>& optimizers,
                                const FoldedGradients& gradients, const StepOptions& options, int loss_id) {
  if (gradients.loss_scale != loss_scale(loss_id)) {
    throw ConfigError("amp: the gradients are those of a loss times ", gradients.loss_scale, ", and the loss scale is ",
                      loss_scale(loss_id), "; give it to DistributedDataParallel::run: run(…, mixed.loss_scale())");
  }
  const Verdict verdict = judge(scaler(loss_id), gradients.square_sum, options);
  if (verdict.report.skipped) return verdict.report;
  optim::Update update = verdict.update;
  // The sum is of several optimizers' gradients together, of which LAMB wants its own.
  if (optimizers.size() > 1) update.grad_norm = std::numeric_limits<double>::quiet_NaN();
  for (auto* optimizer : optimizers) find(*optimizer).take_and_update(update);
  return verdict.report;
}

const LossScaler& MixedPrecision::scaler(int loss_id) const {
  if (loss_id < 0 || loss_id >= options_.num_losses) {
    throw ConfigError("amp: loss_id ", loss_id, ": num_losses is ", options_.num_losses);
  }
  return scalers_[static_cast<size_t>(loss_id)];
}

LossScaler& MixedPrecision::scaler(int loss_id) {
  return const_cast<LossScaler&>(std::as_const(*this).scaler(loss_id));
}

size_t MixedPrecision::index_of(const torch::optim::Optimizer& optimizer) const {
  const auto found = std::find_if(optimizers_.begin(), optimizers_.end(),
                                  [&](const MixedOptimizer& of) { return &of.optimizer() == &optimizer; });
  if (found == optimizers_.end()) throw ConfigError("amp: an optimizer that was not given with the models");
  return static_cast<size_t>(found - optimizers_.begin());
}

MastersByWeight MixedPrecision::masters_by_weight() const {
  MastersByWeight all;
  for (const auto& optimizer : optimizers_) all.merge(optimizer.masters_by_weight());
  return all;
}

void MixedPrecision::load_masters_by_weight(const MastersByWeight& values) {
  for (auto& optimizer : optimizers_) optimizer.load_masters_by_weight(values);
}

}  // namespace lockstep::amp
